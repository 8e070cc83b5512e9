//! A session as a file of lines.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;

use super::{
    AppendError, ReadRange, SessionLock, SessionStore, StoreError,
    disk::{ChangeMark, Disk, DiskFile, FileFacts, OpenMode, append_all, read_full, read_pieces},
};
use crate::session::{environment::SessionEnvironment, error::SessionError, writer::lock};

/// Up to this size bytes are written by the calling thread: a write to the page cache takes microseconds, a hop to
/// another thread costs more.
const INLINE_LIMIT: usize = 64 << 10;

/// Keeps a session in a file, one entry per line.
pub struct JsonlStore {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    identity: Option<(u64, u64)>,
    /// The file as it was when its name was known to be this one's.
    seen: Option<ChangeMark>,
    name_is_new: bool,
    /// Held as long as somebody may write.
    _lock: Option<SessionLock>,
}

impl JsonlStore {
    /// A store on a file that is open. With a lock it may be written to.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        path: PathBuf,
        file: Arc<dyn DiskFile>,
        lock: Option<SessionLock>,
    ) -> io::Result<Self> {
        let identity = file.facts()?.identity;
        Ok(Self { disk, path, file, identity, seen: None, name_is_new: false, _lock: lock })
    }

    /// Opens a file for writing, and takes its lock; one that does not exist is made, empty.
    ///
    /// Sessions are opened with [`SessionManager::open`](crate::session::SessionManager::open), which also repairs and
    /// migrates; this is for those who build on the store alone.
    ///
    /// # Errors
    /// When somebody else is writing to it, or it cannot be opened.
    pub fn open(path: &Path, environment: &SessionEnvironment) -> Result<Self, SessionError> {
        let lock = lock(environment, path)?;
        let disk = environment.disk.clone();
        let failed = |error| StoreError::new(format_args!("opening {}", path.display()), error);
        let file = match disk.open(path, OpenMode::Append) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => disk.create(path),
            opened => opened,
        };
        Ok(Self::new(disk, path.to_owned(), file.map_err(failed)?, Some(lock)).map_err(failed)?)
    }

    /// Makes the file of a session, which appears whole or not at all. Nothing fails after it has appeared.
    pub(crate) fn create(disk: Arc<dyn Disk>, path: PathBuf, content: &[u8], lock: SessionLock) -> io::Result<Self> {
        let mut identity = None;
        let file = create_beside(&*disk, &path, |file| {
            identity = file.facts()?.identity;
            append_all(file, content)
        })?;
        Ok(Self { disk, path, file, identity, seen: None, name_is_new: true, _lock: Some(lock) })
    }

    /// The file now, if it still has its name. Looking up the name costs more than looking at the open file, and is only
    /// done when something about the file has changed that was not this store's own writing.
    fn facts(&mut self) -> Result<FileFacts, AppendError> {
        let facts = self.file.facts().map_err(|error| self.failed("looking at", error))?;
        if facts.change.is_none() || facts.change != self.seen {
            match self.disk.facts(&self.path) {
                Ok(named) if named.identity == self.identity => self.seen = facts.change,
                Ok(_) => return Err(AppendError::Replaced),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(AppendError::Replaced),
                Err(error) => return Err(self.failed("looking at", error).into()),
            }
        }
        Ok(facts)
    }

    fn failed(&self, action: &str, error: io::Error) -> StoreError {
        StoreError::new(format_args!("{action} {}", self.path.display()), error)
    }
}

impl std::fmt::Debug for JsonlStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JsonlStore").field("path", &self.path).finish_non_exhaustive()
    }
}

#[async_trait]
impl SessionStore for JsonlStore {
    async fn read(&mut self, from: u64, sink: &mut (dyn for<'a> FnMut(&'a [u8]) + Send)) -> Result<u64, StoreError> {
        let size = self.file.facts().map_err(|error| self.failed("looking at", error))?.size;
        if from > size {
            return Err(StoreError::new(format_args!("reading {}", self.path.display()), "it has been cut short"));
        }
        read_pieces(&*self.file, from, sink).map_err(|error| self.failed("reading", error))
    }

    async fn append(&mut self, at: u64, bytes: &[u8]) -> Result<(), AppendError> {
        let (before, len) = (self.facts()?, bytes.len() as u64);
        match before.size.cmp(&at) {
            std::cmp::Ordering::Less => return Err(AppendError::Replaced),
            std::cmp::Ordering::Greater => return Err(AppendError::Moved { end: before.size }),
            std::cmp::Ordering::Equal => {}
        }
        let written = if bytes.len() <= INLINE_LIMIT {
            append_all(&*self.file, bytes)
        } else {
            let (file, bytes) = (self.file.clone(), bytes.to_vec());
            in_background(move || append_all(&*file, &bytes)).await
        };
        written.map_err(|error| self.failed("writing to", error))?;
        // A program that takes no lock may have come between the look at the size and the write.
        match self.file.facts() {
            Ok(after) if after.size == at + len => {
                let names = |facts: FileFacts| facts.change.map(|change| change.names);
                self.seen = after.change.filter(|_| names(after) == names(before));
                Ok(())
            }
            Ok(_) | Err(_) => Err(AppendError::Mingled),
        }
    }

    async fn sync(&mut self) -> Result<(), StoreError> {
        let (file, disk) = (self.file.clone(), self.disk.clone());
        let folder = self.name_is_new.then(|| self.path.parent().map(Path::to_owned)).flatten();
        let synced = in_background(move || {
            file.sync()?;
            folder.map_or(Ok(()), |folder| disk.sync_folder(&folder))
        });
        synced.await.map_err(|error| self.failed("forcing to the disk", error))?;
        self.name_is_new = false;
        Ok(())
    }

    fn sync_when_dropped(&mut self) {
        let folder = self.path.parent().filter(|_| self.name_is_new);
        let synced = self.file.sync().and_then(|()| folder.map_or(Ok(()), |folder| self.disk.sync_folder(folder)));
        if let Err(error) = synced {
            tracing::warn!(%error, path = %self.path.display(), "the session could not be forced to the disk");
        }
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn reader(&self) -> Option<Arc<dyn ReadRange>> {
        Some(Arc::new(FileReader(self.file.clone())))
    }
}

/// Reads ranges of a file.
pub(crate) struct FileReader(pub(crate) Arc<dyn DiskFile>);

impl ReadRange for FileReader {
    fn read_range(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        match read_full(&*self.0, at, into)? {
            count if count == into.len() => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

async fn in_background<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Makes a file with this content that has a name of its own until it is whole, and gives it its final name then. It
/// never appears in part, and never takes the place of another file.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] when the name is taken, and those of the file system; then nothing is left behind
/// that could be removed.
pub(crate) fn create_beside(
    disk: &dyn Disk,
    path: &Path,
    write: impl FnOnce(&dyn DiskFile) -> io::Result<()>,
) -> io::Result<Arc<dyn DiskFile>> {
    let (temporary, file) = temporary_beside(disk, path)?;
    let named = write(&*file).and_then(|()| disk.rename_new(&temporary, path));
    if let Err(error) = named {
        let _ = disk.remove(&temporary);
        return Err(error);
    }
    Ok(file)
}

/// A new file beside another one, under a name that is no session's.
///
/// # Errors
/// Those of the file system.
pub(crate) fn temporary_beside(disk: &dyn Disk, path: &Path) -> io::Result<(PathBuf, Arc<dyn DiskFile>)> {
    let mut attempt = 0u32;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}-{attempt}.tmp", std::process::id()));
        let temporary = PathBuf::from(name);
        match disk.create(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}
