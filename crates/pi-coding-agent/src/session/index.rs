//! An index over session files: quick lists, and a search for words.
//!
//! It is a SQLite file that can be thrown away at any time: what is in it comes from the session files, and it is
//! brought up to date each time it is used, by their sizes and times.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use pi_ai::Timestamp;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Transaction, params};

use crate::session::{
    error::SessionError,
    list::{ListOptions, ListProgress, SessionFacts, each_file, read_one},
    outline::TextDetail,
    store::{
        StoreError,
        disk::{Disk, FileFacts},
    },
};

/// The index's file in the folder that it is about.
pub(crate) const INDEX_NAME: &str = ".search-index.sqlite";
/// Another one makes the index anew.
const VERSION: i64 = 2;

/// How many files are read before what was read is written down.
const BATCH: usize = 256;

/// How much of a session the index has. Words cost many times what facts cost, so that lists do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// What a list shows.
    Facts,
    /// Everything that was said, too.
    Words,
}

/// A session in which something was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The session, without its text.
    pub session: SessionFacts,
    /// The words that were found, with some around them. What was found is between `«` and `»`.
    pub excerpt: String,
}

/// The index of a folder of sessions.
pub(crate) struct SessionIndex {
    connection: Connection,
}

impl SessionIndex {
    /// Opens the index of a folder, and makes one when there is none, or it cannot be used. Where nothing can be
    /// written it is made in memory, for this once.
    pub(crate) fn open(folder: &Path) -> Result<Self, SessionError> {
        let path = folder.join(INDEX_NAME);
        let opened = Self::open_file(&path).or_else(|_| {
            // It can be thrown away; what made it unusable does not matter.
            for suffix in ["", "-wal", "-shm", "-journal"] {
                let mut name = path.as_os_str().to_owned();
                name.push(suffix);
                let _ = std::fs::remove_file(name);
            }
            Self::open_file(&path)
        });
        let opened = opened.or_else(|error| {
            tracing::warn!(%error, path = %path.display(), "the index over sessions cannot be kept");
            Self::prepare(Connection::open_in_memory()?)
        });
        opened.map_err(|error| failed(&path, error))
    }

    fn open_file(path: &Path) -> rusqlite::Result<Self> {
        let path = regular(path)?;
        make_private(&path);
        Self::prepare(Connection::open_with_flags(&path, OpenFlags::default() | OpenFlags::SQLITE_OPEN_NOFOLLOW)?)
    }

    fn prepare(mut connection: Connection) -> rusqlite::Result<Self> {
        connection.busy_timeout(Duration::from_secs(5))?;
        // What a loss of power takes away is made anew.
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "off")?;
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version != VERSION {
            transaction.execute_batch(
                "drop table if exists sessions;
                 drop table if exists words;
                 create table sessions (
                     rowid integer primary key, path blob not null unique, size integer not null,
                     written integer not null, is_session integer not null, has_words integer not null, id text, cwd text, name text, parent text,
                     created integer, modified integer, messages integer, first text
                 );
                 create virtual table words using fts5 (name, text, tokenize = \"unicode61 remove_diacritics 2\");",
            )?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        transaction.commit()?;
        Ok(Self { connection })
    }

    /// Reads in what has changed in these files, all that there are in `scope`, and forgets the others in it.
    pub(crate) fn update(
        &mut self,
        wanted: Depth,
        scope: &Path,
        files: Vec<PathBuf>,
        options: &ListOptions,
        disk: &dyn Disk,
    ) -> Result<(), SessionError> {
        let updated = self.try_update(wanted, scope, files, options, disk);
        updated.map_err(|error| match error {
            UpdateError::Sqlite(error) => failed(Path::new(INDEX_NAME), error),
            UpdateError::Session(error) => error,
        })
    }

    fn try_update(
        &mut self,
        wanted: Depth,
        scope: &Path,
        files: Vec<PathBuf>,
        options: &ListOptions,
        disk: &dyn Disk,
    ) -> Result<(), UpdateError> {
        let mut known = self.known()?;
        known.retain(|path, _| path.starts_with(scope));
        let mut changed = Vec::new();
        for file in files {
            let Ok(facts) = disk.facts(&file) else { continue };
            let stamp = Stamp::of(&facts);
            let is_known = known.remove(&file).is_some_and(|(known, depth)| known == stamp && depth >= wanted);
            if !is_known {
                changed.push((file, stamp));
            }
        }
        if !known.is_empty() {
            let transaction = self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            for path in known.keys() {
                forget(&transaction, path)?;
            }
            transaction.commit()?;
        }
        let text = match wanted {
            Depth::Facts => TextDetail::First,
            Depth::Words => TextDetail::All,
        };
        let done = AtomicUsize::new(0);
        // In batches, so that the text of all sessions is never in memory at once, and what was done stays done.
        for batch in changed.chunks(BATCH) {
            let read = Mutex::new(Vec::with_capacity(batch.len()));
            each_file(
                batch,
                |(path, _)| path,
                options,
                |at, path, buffer| {
                    let facts = read_one(disk, path, text, buffer);
                    read.lock().unwrap_or_else(PoisonError::into_inner).push((at, facts));
                    if let Some(progress) = &options.progress {
                        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                        progress(ListProgress { done, total: changed.len() });
                    }
                },
            )?;
            let transaction = self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            for (at, facts) in read.into_inner().unwrap_or_else(PoisonError::into_inner) {
                let (path, stamp) = &batch[at];
                forget(&transaction, path)?;
                remember(&transaction, path, *stamp, facts.as_ref(), wanted)?;
            }
            transaction.commit()?;
        }
        Ok(())
    }

    fn known(&self) -> rusqlite::Result<HashMap<PathBuf, (Stamp, Depth)>> {
        let mut statement = self.connection.prepare("select path, size, written, has_words from sessions")?;
        let rows = statement.query_map([], |row| {
            let depth = if row.get(3)? { Depth::Words } else { Depth::Facts };
            Ok((path_of(row.get(0)?), (Stamp { size: row.get(1)?, written: row.get(2)? }, depth)))
        })?;
        rows.collect()
    }

    /// The wanted sessions, the one that was used last first. Their text is not kept in memory.
    pub(crate) fn sessions(
        &self,
        mut is_wanted: impl FnMut(&SessionFacts) -> bool,
    ) -> Result<Vec<SessionFacts>, SessionError> {
        let mut read = || -> rusqlite::Result<Vec<SessionFacts>> {
            let mut statement = self
                .connection
                .prepare(&format!("select {FACTS} from sessions where is_session order by modified desc, path desc"))?;
            let sessions = statement.query_map([], facts_of)?;
            sessions.filter(|session| session.as_ref().map_or(true, &mut is_wanted)).collect()
        };
        read().map_err(|error| failed(Path::new(INDEX_NAME), error))
    }

    /// The wanted sessions that have all of these words, or words that begin so, the best first.
    pub(crate) fn search(
        &self,
        query: &str,
        limit: usize,
        mut is_wanted: impl FnMut(&SessionFacts) -> bool,
    ) -> Result<Vec<Hit>, SessionError> {
        let words: Vec<String> =
            query.split_whitespace().map(|word| format!("\"{}\"*", word.replace('"', "\"\""))).collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let words = words.join(" ");
        let mut read = || -> rusqlite::Result<Vec<Hit>> {
            let mut found = self.connection.prepare(
                "select sessions.rowid from words join sessions on sessions.rowid = words.rowid
                 where words match ? order by bm25(words, 4.0, 1.0), modified desc",
            )?;
            // An excerpt costs reading the text again, so that only those that are shown get one.
            let mut shown = self.connection.prepare(&format!(
                "select {FACTS}, snippet(words, -1, '«', '»', '…', 16) from words
                 join sessions on sessions.rowid = words.rowid where words match ? and words.rowid = ?"
            ))?;
            let mut hits = Vec::new();
            let mut rows = found.query([&words])?;
            while hits.len() < limit
                && let Some(row) = rows.next()?
            {
                let hit = shown.query_row(params![words, row.get::<_, i64>(0)?], |row| {
                    let session = facts_of(row)?;
                    Ok(if is_wanted(&session) { Some(Hit { session, excerpt: row.get(9)? }) } else { None })
                })?;
                hits.extend(hit);
            }
            Ok(hits)
        };
        read().map_err(|error| failed(Path::new(INDEX_NAME), error))
    }
}

/// The index holds what was said, so that only its owner may read it, as with the sessions themselves.
/// The index's path without links on the way. A link in the place of the index or one of its files is an error: a folder
/// that somebody else made could have it lead to any database of the user.
fn regular(path: &Path) -> rusqlite::Result<PathBuf> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        if std::fs::symlink_metadata(&name).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(rusqlite::Error::InvalidPath(name.into()));
        }
    }
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    Ok(folder.map_or_else(|| path.to_owned(), |folder| folder.join(INDEX_NAME)))
}

fn make_private(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // It is there already, or SQLite says what is wrong.
    let _ = options.open(path);
}

const FACTS: &str = "path, id, cwd, sessions.name, parent, created, modified, messages, first";

fn facts_of(row: &Row<'_>) -> rusqlite::Result<SessionFacts> {
    let time = |millis: i64| Timestamp::from_millis(millis.try_into().unwrap_or(0));
    Ok(SessionFacts {
        path: path_of(row.get(0)?),
        id: row.get::<_, String>(1)?.into(),
        cwd: row.get(2)?,
        name: row.get(3)?,
        parent_session: row.get(4)?,
        created: row.get::<_, Option<i64>>(5)?.map(time),
        modified: time(row.get(6)?),
        messages: row.get::<_, i64>(7)?.try_into().unwrap_or(0),
        first_message: row.get(8)?,
        text: String::new(),
    })
}

/// When a file was written last, as far as can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    size: i64,
    written: i64,
}

impl Stamp {
    fn of(facts: &FileFacts) -> Self {
        let since = facts.modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            size: i64::try_from(facts.size).unwrap_or(i64::MAX),
            written: i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        }
    }
}

fn forget(transaction: &Transaction<'_>, path: &Path) -> rusqlite::Result<()> {
    let mut find = transaction.prepare_cached("select rowid from sessions where path = ?")?;
    if let Some(row) = find.query_row([path_bytes(path)], |row| row.get::<_, i64>(0)).optional()? {
        transaction.prepare_cached("delete from words where rowid = ?")?.execute([row])?;
        transaction.prepare_cached("delete from sessions where rowid = ?")?.execute([row])?;
    }
    Ok(())
}

/// A file that is no session is remembered too, so that it is not read again.
fn remember(
    transaction: &Transaction<'_>,
    path: &Path,
    stamp: Stamp,
    facts: Option<&SessionFacts>,
    depth: Depth,
) -> rusqlite::Result<()> {
    let millis = |time: Timestamp| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let mut statement = transaction.prepare_cached(
        "insert into sessions
             (path, size, written, is_session, has_words, id, cwd, name, parent, created, modified, messages, first)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    let row = statement.insert(params![
        path_bytes(path),
        stamp.size,
        stamp.written,
        facts.is_some(),
        facts.is_none() || depth == Depth::Words,
        facts.map(|facts| facts.id.as_str()),
        facts.map(|facts| &facts.cwd),
        facts.and_then(|facts| facts.name.as_ref()),
        facts.and_then(|facts| facts.parent_session.as_ref()),
        facts.and_then(|facts| facts.created).map(millis),
        facts.map(|facts| millis(facts.modified)),
        facts.map(|facts| i64::try_from(facts.messages).unwrap_or(i64::MAX)),
        facts.and_then(|facts| facts.first_message.as_ref()),
    ])?;
    if let (Some(facts), Depth::Words) = (facts, depth) {
        let mut statement = transaction.prepare_cached("insert into words (rowid, name, text) values (?, ?, ?)")?;
        statement.execute(params![row, facts.name, facts.text])?;
    }
    Ok(())
}

/// Paths need not be text.
fn path_bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_encoded_bytes().to_vec()
}

#[cfg(unix)]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    let path: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(bytes);
    path.into()
}

#[cfg(not(unix))]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

enum UpdateError {
    Sqlite(rusqlite::Error),
    Session(SessionError),
}

impl From<rusqlite::Error> for UpdateError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<SessionError> for UpdateError {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

fn failed(path: &Path, error: rusqlite::Error) -> SessionError {
    SessionError::Store(StoreError::new(format_args!("using the search index {}", path.display()), error))
}
