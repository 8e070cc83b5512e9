//! Putting a rewritten file in the place of a session's, though programs that take no lock may write to it meanwhile.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::session::{
    error::SessionError,
    store::{
        StoreError,
        disk::{Disk, DiskFile},
    },
};

/// How often a file is rewritten that has grown each time.
pub(crate) const ATTEMPTS: usize = 5;

/// A rewritten file that is to take the place of the one that it was made from.
pub(crate) struct Draft<'a> {
    /// Where it lies.
    pub(crate) file: PathBuf,
    /// The file that it was made from.
    pub(crate) source: &'a dyn DiskFile,
    /// How far that one was read.
    pub(crate) read_to: u64,
}

/// A rewritten file has the name now.
pub(crate) struct Taken {
    /// Where the old file lies.
    pub(crate) old_file: PathBuf,
    /// How many bytes somebody wrote to the old file in the very moment in which the new one took its name.
    pub(crate) late: u64,
}

impl Draft<'_> {
    /// Gives the draft the name `path`. Before, `keep` gives the file that has it a second one.
    ///
    /// `None` when that file has grown since it was read: it is to be rewritten again. Then, and when it fails, the
    /// draft is gone and the file is as it was.
    ///
    /// # Errors
    /// When another file has the name by now, it was cut short, or the disk fails.
    pub(crate) fn take_place(
        self,
        disk: &dyn Disk,
        path: &Path,
        keep: impl FnOnce() -> io::Result<PathBuf>,
    ) -> Result<Option<Taken>, SessionError> {
        let taken = self.try_to_take_place(disk, path, keep);
        if !matches!(taken, Ok(Some(_))) {
            let _ = disk.remove(&self.file);
        }
        taken
    }

    fn try_to_take_place(
        &self,
        disk: &dyn Disk,
        path: &Path,
        keep: impl FnOnce() -> io::Result<PathBuf>,
    ) -> Result<Option<Taken>, SessionError> {
        let failed = |error| {
            SessionError::Store(StoreError::new(format_args!("putting a rewritten {} in place", path.display()), error))
        };
        let old_file = keep().map_err(failed)?;
        // The last look: whoever writes later hits the time between two system calls.
        let is_as_read = self.is_as_read(disk, path);
        if !matches!(is_as_read, Ok(true)) {
            let _ = disk.remove(&old_file);
            return is_as_read.map(|_| None);
        }
        disk.replace(&self.file, path).map_err(failed)?;
        let late = self.source.facts().map_or(0, |facts| facts.size.saturating_sub(self.read_to));
        Ok(Some(Taken { old_file, late }))
    }

    /// Whether the file was read to its end; an error when it is another one or was cut short.
    fn is_as_read(&self, disk: &dyn Disk, path: &Path) -> Result<bool, SessionError> {
        let failed = |error| SessionError::Store(StoreError::new(format_args!("looking at {}", path.display()), error));
        let (read, now) = (self.source.facts().map_err(failed)?, disk.facts(path).map_err(failed)?);
        if read.identity != now.identity || now.size < self.read_to {
            return Err(SessionError::Replaced { path: Some(path.to_owned()) });
        }
        Ok(now.size == self.read_to)
    }
}
