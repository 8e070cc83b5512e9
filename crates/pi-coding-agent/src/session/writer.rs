//! Writing a session's lines to wherever it is kept.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::session::{
    bytes::{MemoryBytes, ReadRange},
    entry::EntryKind,
    environment::{SessionEnvironment, SyncPolicy},
    error::SessionError,
    load::LastLine,
    store::{AppendError, JsonlStore, LockError, MemoryStore, SessionLock, SessionStore, StoreError},
};

/// How well an entry is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// In memory. Sessions that are never written have no more; others get their file with the first message.
    Memory,
    /// It survives the death of the process.
    Written,
    /// It survives a loss of power.
    Synced,
}

/// Where a session's lines go.
pub(crate) enum Writer {
    /// Nowhere. What others write to the store can be read in.
    ReadOnly { store: Option<Box<dyn SessionStore>> },
    /// Into memory, and into a file as soon as somebody says something.
    Buffered { bytes: MemoryBytes, path: PathBuf },
    /// Into a store.
    Store {
        store: Box<dyn SessionStore>,
        /// A copy of a store's bytes that has no quick access to them.
        copy: Option<MemoryBytes>,
        is_synced: bool,
        kept: Durability,
    },
}

/// A line was written.
pub(crate) struct Written {
    pub(crate) durability: Durability,
    /// The session has this file now.
    pub(crate) new_file: Option<PathBuf>,
    /// Its bytes are to be read here from now on.
    pub(crate) new_source: Option<Arc<dyn ReadRange>>,
    /// It is written, but not forced to the disk as it should be.
    pub(crate) sync_error: Option<StoreError>,
    /// Somebody else wrote in the same moment: these are all bytes from the end on, and the line is among them.
    pub(crate) among: Option<Vec<u8>>,
}

/// The line was not written.
pub(crate) enum WriteError {
    /// Somebody else has appended these bytes. Take them in and try again.
    Grown(Vec<u8>),
    /// The last line had no line break; now it has. Try again.
    ClosedLastLine,
    Failed(SessionError),
}

impl From<SessionError> for WriteError {
    fn from(error: SessionError) -> Self {
        Self::Failed(error)
    }
}

impl Writer {
    /// Into a store whose bytes, up to now, are in `copy` if it has no quick access to them.
    pub(crate) fn store(store: impl SessionStore, copy: Option<MemoryBytes>) -> Self {
        Self::Store { store: Box::new(store), copy, is_synced: true, kept: Durability::Written }
    }

    /// Into memory only.
    pub(crate) fn memory(store: MemoryStore) -> Self {
        Self::Store { store: Box::new(store), copy: None, is_synced: true, kept: Durability::Memory }
    }

    /// Writes a line to a session that ends at `end`.
    pub(crate) async fn append(
        &mut self,
        environment: &SessionEnvironment,
        end: u64,
        last_line: LastLine,
        line: &[u8],
        kind: EntryKind,
    ) -> Result<Written, WriteError> {
        match self {
            Self::ReadOnly { .. } => Err(SessionError::ReadOnly.into()),
            Self::Buffered { bytes, path } if !kind.begins_conversation() => {
                bytes.append_at(end, line).map_err(|_| SessionError::Replaced { path: Some(path.clone()) })?;
                let durability = Durability::Memory;
                Ok(Written { durability, new_file: None, new_source: None, sync_error: None, among: None })
            }
            Self::Buffered { bytes, path } => {
                let path = path.clone();
                let mut all = bytes.copy_from(0);
                all.extend_from_slice(line);
                let (background, target) = (environment.clone(), path.clone());
                let store = super::manager::in_background(move || create_file(&background, &target, &all)).await?;
                let new_source = store.reader();
                *self = Self::Store { store: Box::new(store), copy: None, is_synced: false, kept: Durability::Written };
                let mut written = self.written(environment).await;
                (written.new_file, written.new_source) = (Some(path), new_source);
                Ok(written)
            }
            Self::Store { store, copy, is_synced, .. } => {
                let is_closed = last_line == LastLine::Closed;
                let bytes: &[u8] = if is_closed { line } else { b"\n" };
                let mut among = None;
                match store.append(end, bytes).await {
                    Ok(()) => {}
                    Err(AppendError::Mingled) => {
                        *is_synced = false;
                        among = Some(read_growth(store, copy, end).await?);
                    }
                    Err(error) => {
                        return Err(match error {
                            AppendError::Moved { .. } => WriteError::Grown(read_growth(store, copy, end).await?),
                            AppendError::Replaced | AppendError::Mingled => replaced(&**store).into(),
                            AppendError::Failed(error) => SessionError::Store(error).into(),
                        });
                    }
                }
                *is_synced = false;
                if let (Some(copy), None) = (copy, &among) {
                    copy.append_at(end, bytes).map_err(|_| replaced(&**store))?;
                }
                match among {
                    Some(grown) if !is_closed => Err(WriteError::Grown(grown)),
                    None if !is_closed => Err(WriteError::ClosedLastLine),
                    among => Ok(Written { among, ..self.written(environment).await }),
                }
            }
        }
    }

    async fn written(&mut self, environment: &SessionEnvironment) -> Written {
        let mut durability = match self {
            Self::Store { kept, .. } => *kept,
            Self::ReadOnly { .. } | Self::Buffered { .. } => Durability::Memory,
        };
        let mut sync_error = None;
        if environment.sync == SyncPolicy::PerEntry && durability == Durability::Written {
            match self.sync().await {
                Ok(()) => durability = Durability::Synced,
                Err(error) => sync_error = Some(error),
            }
        }
        Written { durability, new_file: None, new_source: None, sync_error, among: None }
    }

    /// Makes what was written survive a loss of power.
    pub(crate) async fn sync(&mut self) -> Result<(), StoreError> {
        if let Self::Store { store, is_synced, .. } = self
            && !*is_synced
        {
            store.sync().await?;
            *is_synced = true;
        }
        Ok(())
    }

    /// The last handle is dropped.
    pub(crate) fn sync_when_dropped(&mut self) {
        if let Self::Store { store, is_synced: false, .. } = self {
            store.sync_when_dropped();
        }
    }

    /// What somebody else has appended after `end`.
    pub(crate) async fn read_growth(&mut self, end: u64) -> Result<Vec<u8>, SessionError> {
        match self {
            Self::ReadOnly { store: None } | Self::Buffered { .. } => Ok(Vec::new()),
            Self::ReadOnly { store: Some(store) } => read_growth(store, &None, end).await,
            Self::Store { store, copy, .. } => read_growth(store, copy, end).await,
        }
    }
}

async fn read_growth(
    store: &mut Box<dyn SessionStore>,
    copy: &Option<MemoryBytes>,
    end: u64,
) -> Result<Vec<u8>, SessionError> {
    let mut bytes = Vec::new();
    store.read(end, &mut |piece| bytes.extend_from_slice(piece)).await?;
    if let Some(copy) = copy {
        copy.append_at(end, &bytes).map_err(|_| replaced(&**store))?;
    }
    Ok(bytes)
}

fn replaced(store: &dyn SessionStore) -> SessionError {
    SessionError::Replaced { path: store.path().map(Path::to_owned) }
}

/// Makes the file of a session that was only in memory until now, and takes its lock.
fn create_file(environment: &SessionEnvironment, path: &Path, content: &[u8]) -> Result<JsonlStore, SessionError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => SessionError::Exists { path: path.to_owned() },
        _ => SessionError::Store(StoreError::new(format_args!("creating {}", path.display()), error)),
    };
    if let Some(folder) = path.parent() {
        environment.disk.create_folder(folder).map_err(failed)?;
    }
    let lock = lock(environment, path)?;
    JsonlStore::create(environment.disk.clone(), path.to_owned(), content, lock).map_err(failed)
}

/// Takes the lock of a session file.
pub(crate) fn lock(environment: &SessionEnvironment, path: &Path) -> Result<SessionLock, SessionError> {
    SessionLock::acquire(path, &environment.owner).map_err(|error| match error {
        LockError::Held(holder) => SessionError::InUse { path: path.to_owned(), holder },
        LockError::Failed(error) => {
            SessionError::Store(StoreError::new(format_args!("locking {}", path.display()), error))
        }
    })
}
