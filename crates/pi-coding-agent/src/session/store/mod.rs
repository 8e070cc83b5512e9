//! Where sessions are kept: the contract of a store, and the two that come with this crate.
//!
//! To a store a session is an append-only sequence of bytes, made of lines that each end in LF. It needs to know
//! nothing of what is in them.

mod check;
pub mod disk;
mod jsonl;
mod lock;
mod memory;

use std::{fmt, io, path::Path, sync::Arc};

use async_trait::async_trait;

pub use check::check_store;
pub use jsonl::JsonlStore;
pub(crate) use jsonl::{FileReader, create_beside, temporary_beside};
pub(crate) use lock::{LockError, without_link};
pub use lock::{LockHolder, LockOwner, SessionLock};
pub use memory::MemoryStore;

pub use crate::session::bytes::ReadRange;

/// Keeps one session.
///
/// [`SessionManager::open_store`](super::SessionManager::open_store) makes a session of one; [`check_store`] tells
/// whether a new one keeps the promises below. `docs/sessions.md` shows one for a database.
///
/// # What a store promises
///
/// - The bytes only grow. A position is the number of bytes before it.
/// - [`append`](Self::append) writes all of its bytes at exactly the position that the caller names, or says that the
///   end is elsewhere and writes nothing. That makes two writers safe even without a lock. A store that cannot do this
///   in one step tells afterwards, with [`AppendError::Mingled`].
/// - What was appended when `append` returned `Ok` is there for every later reader, also when the process dies in the
///   next instruction. What was not, may be there in part: readers cope with a last line that breaks off.
/// - After [`sync`](Self::sync) it is also there when the machine loses power.
///
/// Dropping one of the futures may leave the operation done, not done, or (for `append`) done in part; the caller
/// finds out at its next `append`.
#[async_trait]
pub trait SessionStore: Send + 'static {
    /// Hands the bytes from a position to the end to `sink`, in order and in pieces of any size, and gives the
    /// position of the end.
    ///
    /// # Errors
    /// When the bytes cannot be read, or there is no such position.
    async fn read(&mut self, from: u64, sink: &mut (dyn for<'a> FnMut(&'a [u8]) + Send)) -> Result<u64, StoreError>;

    /// Appends bytes to a session that ends at `at`.
    ///
    /// # Errors
    /// [`AppendError::Moved`] when the session ends further on: nothing was written.
    async fn append(&mut self, at: u64, bytes: &[u8]) -> Result<(), AppendError>;

    /// Makes everything that was appended survive a loss of power.
    ///
    /// # Errors
    /// When that cannot be promised.
    async fn sync(&mut self) -> Result<(), StoreError>;

    /// The session is let go of, and [`sync`](Self::sync) was not called since the last append. A store that can make
    /// its bytes survive a loss of power without waiting for a runtime does it here; nobody is told when it fails.
    fn sync_when_dropped(&mut self) {}

    /// The file that the session is in, to name it in errors. A store that has none says nothing.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Quick access to any range, for entries that are read one by one. A store that has none is read once, and its
    /// bytes stay in memory.
    fn reader(&self) -> Option<Arc<dyn ReadRange>> {
        None
    }
}

/// A store failed.
#[derive(Debug, thiserror::Error)]
#[error("{action} failed: {source}{}", remedy(source.downcast_ref()))]
pub struct StoreError {
    action: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// What to do about a disk that does not take more.
fn remedy(error: Option<&io::Error>) -> &'static str {
    use io::ErrorKind::{FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.map(io::Error::kind) {
        Some(StorageFull | QuotaExceeded | FileTooLarge) => {
            "; make room there, or keep sessions in another folder. What was stored before is kept"
        }
        Some(ReadOnlyFilesystem | PermissionDenied) => "; check its owner and permissions, or use another folder",
        _ => "",
    }
}

impl StoreError {
    /// A failure with what was being done, for example `writing to /a/b.jsonl`, and why it failed.
    pub fn new(action: impl fmt::Display, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { action: action.to_string(), source: source.into() }
    }

    /// The operating system's error, when there is one.
    pub fn io_error(&self) -> Option<&io::Error> {
        self.source.downcast_ref()
    }
}

/// Why bytes were not appended, not all of them, or perhaps not where they should be.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The session ends further on: somebody else has appended to it. Nothing was written.
    #[error("the session ends at {end}, not where the writer thought")]
    Moved {
        /// Where it ends.
        end: u64,
    },
    /// What has the session's name now is not what was opened, or was cut short. Nothing was written.
    #[error("the session was replaced or cut short since it was opened")]
    Replaced,
    /// All bytes were written, but somebody else wrote in the same moment: they may lie further on than at the named
    /// position, which is where to read from to find them. Only for stores that cannot compare and append in one step.
    #[error("somebody else wrote in the same moment, so that the bytes may lie further on")]
    Mingled,
    /// The store failed. The bytes may have been written in part.
    #[error(transparent)]
    Failed(#[from] StoreError),
}
