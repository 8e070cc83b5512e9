//! Replacing a file's content so that readers see the old or the new one, never a part.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

/// Replaces the content of a file, making it and its folder where needed. A link stays a link: what it points to is
/// replaced. Permissions stay; a new file gets the usual ones.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    fs::create_dir_all(&folder)?;
    let mut new = new_file(&folder)?;
    new.write_all(content)?;
    if let Ok(metadata) = fs::metadata(&target) {
        new.as_file().set_permissions(metadata.permissions())?;
    }
    // The content must be on disk before the name points to it, or a power cut leaves an empty file.
    new.as_file().sync_data()?;
    new.persist(&target)?;
    Ok(())
}

#[cfg(unix)]
fn new_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    // The user's umask takes away what it should.
    tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o666)).tempfile_in(folder)
}

#[cfg(not(unix))]
fn new_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::NamedTempFile::new_in(folder)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_link_and_the_permissions_of_its_target_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("real.json"), dir.path().join("link.json"));
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&target, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
