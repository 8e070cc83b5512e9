//! Opening files that have to be regular ones. Anything else is refused at once: opening a named pipe would wait for its
//! writer, and a device may never end.

use std::{
    fs::{File, FileType, OpenOptions},
    io::{self, Read as _},
    path::Path,
};

/// Opens a regular file.
///
/// # Errors
/// Those of the file system; [`io::ErrorKind::IsADirectory`] for a folder, [`io::ErrorKind::InvalidInput`] for what is
/// neither.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;

        use rustix::fs::OFlags;

        // Without NONBLOCK, opening a named pipe waits for its writer; NOCTTY keeps a terminal from becoming ours.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
    }
    // Looked at first: opening a device may do something.
    check(std::fs::metadata(path)?.file_type())?;
    let file = options.open(path)?;
    check(file.metadata()?.file_type())?;
    Ok(file)
}

/// All bytes of a regular file.
///
/// # Errors
/// As [`open`].
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, OpenOptions::new().read(true))?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a regular file.
///
/// # Errors
/// As [`open`], and [`io::ErrorKind::InvalidData`] when it is not UTF-8.
pub(crate) fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path, OpenOptions::new().read(true))?.read_to_string(&mut text)?;
    Ok(text)
}

fn check(file_type: FileType) -> io::Result<()> {
    if file_type.is_file() {
        return Ok(());
    }
    if file_type.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder, not a file"));
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {}, not a regular file", unusual(file_type))))
}

#[cfg(unix)]
fn unusual(file_type: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;

    match () {
        () if file_type.is_fifo() => "a named pipe",
        () if file_type.is_socket() => "a socket",
        () if file_type.is_char_device() || file_type.is_block_device() => "a device",
        () => "a special file",
    }
}

#[cfg(not(unix))]
fn unusual(_file_type: FileType) -> &'static str {
    "a special file"
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(made.success());
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();

        assert_eq!(read(&at("link")).unwrap(), b"text");
        assert_eq!(read(&at("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(read(folder.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        for (name, what) in [("pipe", "a named pipe"), ("socket", "a socket"), ("/dev/zero", "a device")] {
            let error = read(&at(name)).unwrap_err().to_string();
            assert!(error.contains(what), "{name}: {error}");
            let mut both = OpenOptions::new();
            let error = open(&at(name), both.read(true).append(true)).unwrap_err().to_string();
            assert!(error.contains(what), "{name}: {error}");
        }
    }
}
