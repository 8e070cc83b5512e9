//! Sessions: a conversation as a tree of entries that is only ever appended to, and never lost.
//!
//! [`SessionManager`] is what a running agent holds: it appends entries and knows the context of the next request.
//! [`Session`] is the part of it that reads; [`Session::from_bytes`] makes one without a file. Where sessions lie is
//! [`SessionFolder`]'s business, and how they are kept that of a [`SessionStore`](store::SessionStore).
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use pi_ai::Message;
//! use pi_coding_agent::session::{Access, NewSession, SessionManager};
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let new = NewSession { cwd: "/project".into(), ..NewSession::default() };
//! let session = SessionManager::create(folder, new, Default::default())?;
//! session.append_message(Message::user("hello")).await?;
//! let path = session.path().expect("it has a file since its first message");
//! drop(session);
//!
//! let session = SessionManager::open(&path, Access::Write, folder, Default::default()).await?;
//! assert_eq!(session.context().messages.len(), 1);
//! # Ok(()) }
//! ```
//!
//! The format, the promises and what happens to damaged files are written down in `docs/sessions.md`.

mod bytes;
pub mod commands;
mod delete;
mod entry;
mod environment;
mod error;
mod export;
mod folder;
mod fork;
mod header;
mod id;
#[cfg(feature = "search")]
mod index;
mod line;
mod list;
mod load;
mod manager;
mod migrate;
mod notice;
mod open;
mod outline;
mod projection;
mod repair;
mod rewrite;
#[cfg(feature = "search")]
mod search;
#[expect(clippy::module_inception, reason = "it holds the type of this name")]
mod session;
mod stats;
pub mod store;
mod time;
mod tree;
mod writer;

pub use delete::{Deleted, Trash, delete_session};
pub use entry::{
    BranchSummary, Compaction, ContextEdit, CustomEntry, CustomMessageEntry, Entry, EntryBody, EntryKind, Label,
    MessageEntry, MessageRole, ModelChange, Replacement, ReplacementContent, SessionInfo, ThinkingLevelChange,
    UsageEntry,
};
pub use environment::{SessionEnvironment, SyncPolicy};
pub use error::SessionError;
pub use export::ExportFormat;
pub use folder::{FoundSession, SessionFolder, all_sessions_folder, find_sessions};
pub use fork::Fork;
pub use header::{CURRENT_VERSION, SessionHeader};
pub use id::{EntryId, InvalidSessionId, session_id};
#[cfg(feature = "search")]
pub use index::Hit;
pub(crate) use line::LineSplitter;
pub use list::{ListOptions, ListProgress, SessionFacts, all_sessions};
pub(crate) use manager::in_background;
pub use manager::{Appended, Persistence, SessionManager};
pub use notice::Notice;
pub use open::{Access, NewSession};
pub use outline::TextDetail;
pub use projection::{EditEffect, ModelChoice, ProjectedEntry, Projection, SessionContext};
pub use repair::{Diagnosis, Problem, Repaired, diagnose_session, repair_session};
#[cfg(feature = "search")]
pub use search::{indexed_sessions, search_sessions};
pub use session::{EntrySummary, Session, SessionTree, TreeNode};
pub use stats::SessionStats;
pub(crate) use time::{iso as write_time, parse_iso as parse_time};
pub use tree::LabelMark;
pub use writer::Durability;
