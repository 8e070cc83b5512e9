//! What can go wrong with sessions.

use std::{io, path::PathBuf};

use crate::session::{
    id::{EntryId, InvalidSessionId},
    store::{LockHolder, StoreError},
};

/// Why a session could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The file is not a session: its first line is no session header. It was left as it is.
    #[error(
        "{} is not a pi session: its first line is not a session header. The file was left as it is; `pi sessions \
         repair` says what can be saved of it",
        shown(path)
    )]
    NotASession {
        /// The file.
        path: Option<PathBuf>,
    },
    /// The file is not a session, and nothing in it looks like a part of one. It was left as it is.
    #[error(
        "{} is not a pi session, and nothing in it is: no line is a session header or an entry. The file was left as it \
         is",
        path.display()
    )]
    NoSessionLeft {
        /// The file.
        path: PathBuf,
    },
    /// A store holds a session of an older version of the format; only files are rewritten.
    #[error(
        "the session is of version {version} of the format, a store has to hold version {}: export it with \
         `pi sessions export` first",
        super::header::CURRENT_VERSION
    )]
    OldVersion {
        /// The version.
        version: u64,
    },
    /// Somebody else is writing to the session.
    #[error(
        "the session {0} is in use by {holder}. Read it with `pi sessions show {0}`, go on in a copy of it with \
         `pi --fork {0}`, or end the other program",
        path.display()
    )]
    InUse {
        /// The session's file.
        path: PathBuf,
        /// Who holds it.
        holder: LockHolder,
    },
    /// The session was opened for reading only.
    #[error("the session was opened for reading only")]
    ReadOnly,
    /// There is no such entry in the session.
    #[error("there is no entry {id} in the session")]
    UnknownEntry {
        /// The id.
        id: EntryId,
    },
    /// A context edit may only change an entry of the branch that the session stands on.
    #[error("entry {id} is not on the current branch, so its content cannot be changed from here")]
    NotOnBranch {
        /// The id.
        id: EntryId,
    },
    /// A context edit may only change what people, models, tools and extensions say.
    #[error(
        "entry {id} has no content that can be changed: only user, assistant, tool result and extension messages have"
    )]
    NotEditable {
        /// The id.
        id: EntryId,
    },
    /// A fork goes back to before a message of the user.
    #[error("entry {id} is not a message of the user: a fork goes back to before one")]
    NotAUserMessage {
        /// The id.
        id: EntryId,
    },
    /// A summary of a branch or of a compaction is not a message entry.
    #[error("a summary has an entry of its own: append it as a compaction or as a branch summary")]
    SummaryMessage,
    /// The text cannot be a session id.
    #[error(transparent)]
    InvalidId(#[from] InvalidSessionId),
    /// There is no such session.
    #[error("there is no session {wanted} in {}; `pi sessions list --all` shows all that there are", folder.display())]
    NoSuchSession {
        /// What was asked for.
        wanted: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// More than one session's id begins like this.
    #[error("{} sessions have an id that begins with {wanted}: {}", found.len(), found.join(", "))]
    AmbiguousId {
        /// What was asked for.
        wanted: String,
        /// The ids.
        found: Vec<String>,
    },
    /// Nothing has been said yet, so the session has no file that could be copied.
    #[error("the session has not been saved yet: it gets a file with its first message")]
    NotSaved,
    /// Nothing has been said yet, so there is nothing to show.
    #[error("the session is empty: there is nothing to export")]
    NothingToExport,
    /// There is a file of this name already. It was left as it is.
    #[error("{} exists already; it was left as it is", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file was replaced or cut short by another program. Nothing was written to it.
    #[error(
        "{} was replaced or cut short by another program since it was opened. Nothing was written to it; open it again",
        shown(path)
    )]
    Replaced {
        /// The file.
        path: Option<PathBuf>,
    },
    /// Another program appends to the file again and again, so that it cannot be rewritten. It was left as it is.
    #[error(
        "{} grows while it is being rewritten: another program keeps writing to it. It was left as it is; end that \
         program and try again",
        path.display()
    )]
    KeepsGrowing {
        /// The file.
        path: PathBuf,
    },
    /// The entry is written, but it could not be forced to the disk: it may be lost when the machine loses power.
    #[error(
        "entry {id} is written, but could not be forced to the disk ({source}): it may be lost when the power fails"
    )]
    NotSynced {
        /// The entry.
        id: EntryId,
        /// Why.
        source: StoreError,
    },
    /// An extension's data nests too deep to be read back. Nothing was written.
    #[error(
        "{what} of the entry nest deeper than {levels} levels, and could not be read back: store it flatter, or as text"
    )]
    TooDeep {
        /// Which part of the entry.
        what: &'static str,
        /// How deep it may be.
        levels: usize,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The caller ended the operation.
    #[error("the operation was ended before it was done")]
    Cancelled,
    /// An entry cannot be written as JSON.
    #[error("the entry cannot be written as JSON: {0}")]
    Unwritable(#[from] serde_json::Error),
}

impl SessionError {
    pub(crate) fn read(error: io::Error) -> Self {
        Self::Store(StoreError::new("reading the session", error))
    }
}

fn shown(path: &Option<PathBuf>) -> std::borrow::Cow<'_, str> {
    path.as_ref().map_or("the session's store".into(), |path| path.to_string_lossy())
}
