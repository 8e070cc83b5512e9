//! Files of a Unix system: every operation is done at a [`Place`], a directory that is held open and a name
//! in it, so that what was checked is what is used.

mod place;
mod processes;
mod program;
mod replace;
mod session;
mod spawn;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use super::Access;
use crate::workspace::{Entry, EntryKind, FileIdentity, FileKind, Metadata};
use place::{Intent, Place};

pub use processes::LocalProcesses;
pub(crate) use program::LocalProgram;

pub(super) use place::with_real_roots;
pub(super) use replace::{check_writable, replace};

pub(super) fn metadata(access: &Access, path: &Path) -> io::Result<Metadata> {
    let place = Place::find(access, path, Intent::Read)?;
    let stat = place.stat()?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        _ => FileKind::Other,
    };
    Ok(Metadata { kind, len: if kind == FileKind::File { size(&stat) } else { 0 } })
}

pub(super) fn entries(access: &Access, path: &Path) -> io::Result<Vec<Entry>> {
    let place = Place::find(access, path, Intent::Read)?;
    let directory = place.open(OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
    let mut entries = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let file_type = match entry.file_type() {
            FileType::Unknown => match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                // It vanished in the meantime.
                Err(_) => continue,
            },
            known => known,
        };
        let kind = match file_type {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => {
                // Asked through the access, so that a confinement does not tell what a link outside leads to.
                match metadata(access, &path.join(name)) {
                    Ok(metadata) if metadata.kind == FileKind::Directory => EntryKind::LinkToDirectory,
                    _ => EntryKind::Link,
                }
            }
            FileType::Fifo => EntryKind::Pipe,
            FileType::Socket => EntryKind::Socket,
            _ => EntryKind::Other,
        };
        entries.push(Entry { name: name.to_owned(), kind });
    }
    Ok(entries)
}

pub(super) fn real_path(access: &Access, path: &Path) -> io::Result<PathBuf> {
    let place = Place::find(access, path, Intent::Read)?;
    place.stat()?;
    place.real_path()
}

pub(super) fn identity(access: &Access, path: &Path) -> io::Result<FileIdentity> {
    let place = Place::find(access, path, Intent::Read)?;
    let stat = place.stat()?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink > 1 {
        return Ok(FileIdentity::Number { device: number(stat.st_dev), inode: number(stat.st_ino) });
    }
    place.real_path().map(FileIdentity::Path)
}

pub(super) fn open(access: &Access, path: &Path) -> io::Result<(File, u64)> {
    let place = Place::find(access, path, Intent::Read)?;
    // Without NONBLOCK, opening a named pipe waits for its writer.
    let file = place.open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((file.into(), size(&stat))),
        FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
        other => Err(unusual(other)),
    }
}

pub(super) fn create_dir_all(access: &Access, path: &Path) -> io::Result<()> {
    match access {
        Access::Unrestricted => std::fs::create_dir_all(path),
        Access::Confined(_) => {
            let place = Place::find(access, path, Intent::CreateAbove)?;
            match place.make_directory() {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made?,
            }
            if FileType::from_raw_mode(place.stat()?.st_mode) == FileType::Directory {
                Ok(())
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        }
    }
}

/// Creates a file that only the user can read; never follows a link that someone else put there.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// A number whose type differs between systems.
fn number<T>(number: T) -> u64
where
    u64: TryFrom<T>,
{
    u64::try_from(number).unwrap_or_default()
}

fn size(stat: &rustix::fs::Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

fn unusual(file_type: FileType) -> io::Error {
    let what = match file_type {
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "a special file",
    };
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a regular file"))
}
