//! Giving a file new content so that it has either the old or the new one at any moment, also after a loss of power.
//!
//! The content is written beside the file, forced to the disk and renamed over the file, with the file's mode, owner and
//! extended attributes. Which of both it is after a loss of power is not promised: the rename itself is not waited for. Where a rename would lose something (more than one hard link, an owner that cannot be set) or
//! is not possible (a directory that cannot be written to), the file is written in place.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;

use bytes::Bytes;
use rustix::fs::{Access as Permission, AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use super::place::{Intent, Place};
use super::{Access, unusual};

pub(in crate::workspace::local) fn check_writable(access: &Access, path: &std::path::Path) -> io::Result<()> {
    let place = Place::find(access, path, Intent::Write)?;
    let stat = place.stat()?;
    check_file(&place, &stat)
}

pub(in crate::workspace::local) fn replace(
    access: &Access,
    path: &std::path::Path,
    content: &[Bytes],
) -> io::Result<()> {
    let place = Place::find(access, path, Intent::Write)?;
    let existing = match place.stat() {
        Ok(stat) => {
            check_file(&place, &stat)?;
            Some(stat)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if existing.is_some_and(|stat| stat.st_nlink > 1) {
        return write_in_place(&place, content);
    }
    let mode = match &existing {
        // Not before it has the owner: until then nobody else may read what was private.
        Some(_) => Mode::RUSR | Mode::WUSR,
        None => Mode::from(0o666),
    };
    let beside = match Beside::create(&place, mode) {
        Ok(beside) => beside,
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) if existing.is_some() => {
            return write_in_place(&place, content);
        }
        Err(error) => return Err(error.into()),
    };
    write_all(&beside.file, content)?;
    if let Some(stat) = existing
        && take_over(&place, &stat, &beside.file).is_err()
    {
        return write_in_place(&place, content);
    }
    // The rename may reach the disk before the content does; after a loss of power the file would be empty.
    beside.file.sync_data()?;
    beside.rename()
}

fn check_file(place: &Place, stat: &Stat) -> io::Result<()> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(io::ErrorKind::IsADirectory.into()),
        other => return Err(unusual(other)),
    }
    if place.is_confined() && stat.st_nlink > 1 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the file has more than one hard link, and the others may be outside the allowed directories",
        ));
    }
    // A rename asks the directory; the file's own mode would not be asked.
    rustix::fs::accessat(place.directory(), place.name(), Permission::WRITE_OK, AtFlags::EACCESS)?;
    Ok(())
}

fn write_in_place(place: &Place, content: &[Bytes]) -> io::Result<()> {
    let file: File = place.open(OFlags::WRONLY | OFlags::NOCTTY, Mode::empty())?.into();
    write_all(&file, content)?;
    file.set_len(content.iter().map(|part| part.len() as u64).sum())
}

fn write_all(mut file: &File, content: &[Bytes]) -> io::Result<()> {
    content.iter().try_for_each(|part| file.write_all(part))
}

/// Gives the new file what belongs to the old one.
fn take_over(place: &Place, old: &Stat, new: &File) -> io::Result<()> {
    let made = rustix::fs::fstat(new)?;
    if (made.st_uid, made.st_gid) != (old.st_uid, old.st_gid) {
        rustix::fs::fchown(new, Some(Uid::from_raw(old.st_uid)), Some(Gid::from_raw(old.st_gid)))?;
    }
    rustix::fs::fchmod(new, Mode::from_raw_mode(old.st_mode))?;
    copy_extended_attributes(place, new);
    Ok(())
}

/// Copies what can be copied: some attributes belong to the system and refuse.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn copy_extended_attributes(place: &Place, new: &File) {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};

    let Ok(old) = place.open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty()) else {
        return;
    };
    let mut names = vec![0_u8; 64 * 1024];
    let Ok(length) = flistxattr(&old, &mut names) else { return };
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0_u8; 64 * 1024];
        if let Ok(length) = fgetxattr(&old, name, &mut value) {
            let _ = fsetxattr(new, name, &value[..length], XattrFlags::empty());
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn copy_extended_attributes(_place: &Place, _new: &File) {}

/// A new file in the directory of another; gone when dropped before it was renamed.
struct Beside<'a> {
    place: &'a Place,
    name: PathBuf,
    file: File,
    renamed: bool,
}

impl<'a> Beside<'a> {
    fn create(place: &'a Place, mode: Mode) -> Result<Self, Errno> {
        let name = place.sibling(&format!(".pi-{}.tmp", uuid::Uuid::new_v4().simple()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(place.directory(), &name, flags, mode)?;
        Ok(Self { place, name, file: file.into(), renamed: false })
    }

    fn rename(mut self) -> io::Result<()> {
        let directory = self.place.directory();
        rustix::fs::renameat(directory, &self.name, directory, self.place.name())?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // Nothing can be done about a leftover whose removal fails.
            let _ = rustix::fs::unlinkat(self.place.directory(), &self.name, AtFlags::empty());
        }
    }
}
