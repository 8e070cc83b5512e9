//! Files of a system without Unix's directory handles: paths are resolved, checked, and then used. Between
//! the check and the use another process could swap in a link; `docs/security.md` says so.

mod processes;
mod program;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::{Access, Confinement, ReadScope};
use crate::workspace::{Entry, EntryKind, FileIdentity, FileKind, Metadata};

pub use processes::LocalProcesses;
pub(crate) use program::LocalProgram;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Intent {
    Read,
    Write,
}

pub(super) fn with_real_roots(access: Access) -> Access {
    match access {
        Access::Unrestricted => Access::Unrestricted,
        Access::Confined(confinement) => Access::Confined(Confinement {
            roots: confinement.roots.into_iter().map(|root| fs::canonicalize(&root).unwrap_or(root)).collect(),
            ..confinement
        }),
    }
}

pub(super) fn metadata(access: &Access, path: &Path) -> io::Result<Metadata> {
    let metadata = fs::metadata(resolve(access, path, Intent::Read)?)?;
    let kind = if metadata.is_dir() {
        FileKind::Directory
    } else if metadata.is_file() {
        FileKind::File
    } else {
        FileKind::Other
    };
    Ok(Metadata { kind, len: if kind == FileKind::File { metadata.len() } else { 0 } })
}

pub(super) fn entries(access: &Access, path: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(resolve(access, path, Intent::Read)?)? {
        let entry = entry?;
        let file_type = entry.file_type()?;
        let kind = if file_type.is_symlink() {
            match metadata(access, &entry.path()) {
                Ok(metadata) if metadata.kind == FileKind::Directory => EntryKind::LinkToDirectory,
                _ => EntryKind::Link,
            }
        } else if file_type.is_dir() {
            EntryKind::Directory
        } else if file_type.is_file() {
            EntryKind::File
        } else {
            EntryKind::Other
        };
        entries.push(Entry { name: entry.file_name(), kind });
    }
    Ok(entries)
}

pub(super) fn real_path(access: &Access, path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(resolve(access, path, Intent::Read)?)
}

pub(super) fn identity(access: &Access, path: &Path) -> io::Result<FileIdentity> {
    real_path(access, path).map(FileIdentity::Path)
}

pub(super) fn open(access: &Access, path: &Path) -> io::Result<(File, u64)> {
    let path = resolve(access, path, Intent::Read)?;
    if fs::metadata(&path)?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    Ok((file, len))
}

pub(super) fn check_writable(access: &Access, path: &Path) -> io::Result<()> {
    let metadata = fs::metadata(resolve(access, path, Intent::Write)?)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.permissions().readonly() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

pub(super) fn replace(access: &Access, path: &Path, content: &[Bytes]) -> io::Result<()> {
    let path = resolve(access, path, Intent::Write)?;
    let existing = match check_writable(&Access::Unrestricted, &path) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    let mut beside = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    for part in content {
        beside.write_all(part)?;
    }
    if existing {
        beside.as_file().set_permissions(fs::metadata(&path)?.permissions())?;
    }
    beside.as_file().sync_data()?;
    beside.persist(&path).map(drop).map_err(|error| error.error)
}

pub(super) fn create_dir_all(access: &Access, path: &Path) -> io::Result<()> {
    fs::create_dir_all(resolve(access, path, Intent::Write)?)
}

pub(super) fn create_private(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).open(path)
}

/// The path without links as far as it exists, when the access lets the intent through there.
fn resolve(access: &Access, path: &Path, intent: Intent) -> io::Result<PathBuf> {
    let real = real_as_far_as_it_exists(path)?;
    if let Access::Confined(confinement) = access {
        let in_roots = confinement.roots.iter().any(|root| real.starts_with(root));
        if !in_roots && (intent == Intent::Write || confinement.read == ReadScope::Roots) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "this is outside the allowed directories"));
        }
    }
    Ok(real)
}

fn real_as_far_as_it_exists(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Ok(real) => Ok(real),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Ok(target) = fs::read_link(path) {
                return real_as_far_as_it_exists(&path.parent().unwrap_or(Path::new("")).join(target));
            }
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(error);
            };
            Ok(real_as_far_as_it_exists(parent)?.join(name))
        }
        Err(error) => Err(error),
    }
}
