//! What people should know about a session that opened all the same.

use std::{fmt, path::PathBuf};

use serde_json::Value;

use crate::session::id::EntryId;

/// Something about a session's file that is not as it should be. Nothing was lost by reading on; the bytes stay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A line is damaged. It stays in the file and counts for nothing; an entry whose ids could still be read keeps its
    /// place in the tree.
    DamagedLine {
        /// The line, from 1.
        line: u64,
        /// The entry, when its id could be read.
        entry: Option<EntryId>,
    },
    /// An entry turned out to be damaged when it was read whole. It keeps its place in the tree.
    DamagedEntry {
        /// The entry.
        entry: EntryId,
    },
    /// An entry is valid JSON of a known type, but its fields do not fit the type. It is kept, and is not in the context.
    UnfitEntry {
        /// The entry.
        entry: EntryId,
    },
    /// The last line breaks off: its writer was interrupted. It stays in the file and counts for nothing.
    TornEnd {
        /// The line, from 1.
        line: u64,
    },
    /// A session header where an entry should be, as when two files were joined. It stays in the file and counts for
    /// nothing.
    StrayHeader {
        /// The line, from 1.
        line: u64,
    },
    /// The file says a newer version of the format. What this version does not know is kept.
    NewerVersion {
        /// The version.
        version: u64,
    },
    /// What the file's header says in place of a version is none. The file is read as one of the current version, and
    /// is not rewritten.
    OddVersion {
        /// What it says, as JSON; of something long only the beginning.
        stated: String,
    },
    /// The file was of an older version and has been rewritten.
    Migrated {
        /// The version that it had.
        from: u64,
        /// Where the old file lies.
        old_file: PathBuf,
    },
    /// Another program wrote to the file in the very moment in which it was rewritten: what it wrote is only in the old
    /// file.
    LeftInOldFile {
        /// How much it is.
        bytes: u64,
        /// Where the old file lies. What was written is at its end.
        old_file: PathBuf,
    },
    /// Another program has written to the file. Its entries were read in.
    ForeignEntries {
        /// How many entries came in.
        count: usize,
    },
}

impl Notice {
    pub(crate) fn odd_version(stated: &Value) -> Self {
        const SHOWN: usize = 40;
        Self::OddVersion { stated: stated.to_string().chars().take(SHOWN).collect() }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DamagedLine { line, entry: None } => {
                write!(f, "line {line} is damaged and was passed over; it stays in the file")
            }
            Self::DamagedLine { line, entry: Some(entry) } => write!(
                f,
                "line {line} is damaged: what entry {entry} said is lost, its place in the conversation is kept"
            ),
            Self::DamagedEntry { entry } => {
                write!(f, "entry {entry} is damaged: what it said is lost, its place in the conversation is kept")
            }
            Self::UnfitEntry { entry } => {
                write!(f, "entry {entry} has fields that do not fit its type; it is kept, but not sent to the model")
            }
            Self::TornEnd { line } => write!(
                f,
                "line {line}, the last one, breaks off: its writer was interrupted; it was passed over and stays in the \
                 file"
            ),
            Self::StrayHeader { line } => {
                write!(f, "line {line} is another session header; it was passed over and stays in the file")
            }
            Self::NewerVersion { version } => write!(
                f,
                "the file says version {version} of the session format, this program knows version {}; what it does \
                 not know is kept",
                super::header::CURRENT_VERSION
            ),
            Self::OddVersion { stated } => write!(
                f,
                "the version of the session format in the file's header is not a whole number: {stated}; the file is \
                 read as one of version {} and is not rewritten",
                super::header::CURRENT_VERSION
            ),
            Self::Migrated { from, old_file } => write!(
                f,
                "the session was rewritten from version {from} of the format; the old file is {}",
                old_file.display()
            ),
            Self::LeftInOldFile { bytes, old_file } => write!(
                f,
                "another program wrote {bytes} bytes to the session in the moment in which it was rewritten; they are at \
                 the end of the old file, {}, and not in the session",
                old_file.display()
            ),
            Self::ForeignEntries { count } => {
                write!(f, "another program has written {count} entries to the session; they were read in")
            }
        }
    }
}
