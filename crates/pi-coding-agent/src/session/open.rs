//! Starting, opening and migrating sessions.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use pi_ai::SessionId;

use crate::session::{
    bytes::{MemoryBytes, ReadRange},
    environment::SessionEnvironment,
    error::SessionError,
    header::{CURRENT_VERSION, NewHeader, SessionHeader},
    id::session_id,
    load::{LastLine, Loaded, LoadedSession, Loader},
    manager::{Persistence, SessionManager, in_background},
    migrate::Migration,
    notice::Notice,
    rewrite::{ATTEMPTS, Draft, Taken},
    session::Session,
    store::{
        JsonlStore, MemoryStore, SessionStore, StoreError,
        disk::{DiskFile, OpenMode, append_all, read_pieces},
        temporary_beside, without_link,
    },
    time::iso,
    writer::{Writer, lock},
};

/// What a new session says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSession {
    /// The folder that it works in.
    pub cwd: PathBuf,
    /// Its id, instead of a new one.
    pub id: Option<SessionId>,
    /// The file of the session that it comes from.
    pub parent_session: Option<PathBuf>,
}

/// What a session is opened for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Reading and appending. Nobody else may have the session open for this.
    #[default]
    Write,
    /// Reading. The file is not changed in any way, and needs no lock.
    ReadOnly,
}

impl SessionManager {
    /// A new session that stays in memory.
    pub fn in_memory() -> Self {
        Self::in_memory_with(NewSession::default(), SessionEnvironment::default())
    }

    /// A new session that stays in memory.
    pub fn in_memory_with(new: NewSession, environment: SessionEnvironment) -> Self {
        let (header, line) = header(&new, &environment);
        let store = MemoryStore::new(line);
        let source = Arc::new(store.bytes().clone());
        let session = Session::new(header, store.bytes().len(), source);
        Self::new(session, Persistence::Memory, Writer::memory(store), new.cwd, environment)
    }

    /// A new session that gets a file in this folder with its first message. The file is named for the time and the
    /// session's id.
    ///
    /// # Errors
    /// When the session's id cannot be one.
    pub fn create(folder: &Path, new: NewSession, environment: SessionEnvironment) -> Result<Self, SessionError> {
        let (header, line) = checked_header(&new, &environment)?;
        let path = folder.join(file_name(&header));
        Ok(Self::buffered(header, line, path, new.cwd, environment))
    }

    /// A new session that gets this file with its first message.
    ///
    /// # Errors
    /// When the session's id cannot be one.
    pub fn create_at(path: &Path, new: NewSession, environment: SessionEnvironment) -> Result<Self, SessionError> {
        let (header, line) = checked_header(&new, &environment)?;
        Ok(Self::buffered(header, line, path.to_owned(), new.cwd, environment))
    }

    /// A session that has a header, and gets its file later.
    pub(crate) fn buffered(
        header: SessionHeader,
        line: Vec<u8>,
        path: PathBuf,
        cwd: PathBuf,
        environment: SessionEnvironment,
    ) -> Self {
        let bytes = MemoryBytes::from(line);
        let session = Session::new(header, bytes.len(), Arc::new(bytes.clone()));
        let writer = Writer::Buffered { bytes, path: path.clone() };
        Self::new(session, Persistence::Buffered { path }, writer, cwd, environment)
    }

    /// Opens a session file. It goes on at its last entry.
    ///
    /// Opened for writing, a file of an older version is rewritten (the old one is kept beside it), a last line without
    /// a line break gets one, and an empty file gets a header. `cwd` is where the session works when its file does not
    /// say.
    ///
    /// # Errors
    /// When the file cannot be read or is no session, or somebody else is writing to it. Then it is left as it is.
    pub async fn open(
        path: &Path,
        access: Access,
        cwd: &Path,
        environment: SessionEnvironment,
    ) -> Result<Self, SessionError> {
        let (path, cwd) = (path.to_owned(), cwd.to_owned());
        in_background(move || match access {
            Access::Write => open_for_writing(path, cwd, environment),
            Access::ReadOnly => open_for_reading(path, cwd, environment),
        })
        .await
    }

    /// Opens a session that an application keeps in a store of its own. An empty one gets a header.
    ///
    /// # Errors
    /// When the store fails or does not hold a session of the current version.
    pub async fn open_store(
        mut store: impl SessionStore,
        new: NewSession,
        environment: SessionEnvironment,
    ) -> Result<Self, SessionError> {
        let reader = store.reader();
        let copy = reader.is_none().then(MemoryBytes::default);
        let mut loader = Loader::default();
        {
            let (loader, copy) = (&mut loader, copy.as_ref());
            store
                .read(0, &mut |piece| {
                    loader.push(piece);
                    if let Some(copy) = copy {
                        copy.push(piece);
                    }
                })
                .await?;
        }
        let source: Arc<dyn ReadRange> = match (reader, &copy) {
            (Some(reader), _) => reader,
            (None, Some(copy)) => Arc::new(copy.clone()),
            (None, None) => Arc::new(MemoryBytes::default()),
        };
        let (session, cwd) = match loader.finish() {
            Loaded::NotASession => return Err(SessionError::NotASession { path: None }),
            Loaded::Session(loaded) if loaded.header.version < CURRENT_VERSION => {
                return Err(SessionError::OldVersion { version: loaded.header.version });
            }
            Loaded::Session(loaded) => {
                let cwd = loaded.header.cwd.as_ref().map_or(new.cwd, PathBuf::from);
                let build = move || Session::from_loaded(*loaded, source).map_err(SessionError::read);
                (in_background(build).await?, cwd)
            }
            Loaded::Empty => {
                let (header, line) = checked_header(&new, &environment)?;
                store.append(0, &line).await.map_err(|error| StoreError::new("writing the session's header", error))?;
                if let Some(copy) = &copy {
                    copy.push(&line);
                }
                (Session::new(header, line.len() as u64, source), new.cwd)
            }
        };
        Ok(Self::new(session, Persistence::Store, Writer::store(store, copy), cwd, environment))
    }
}

/// `<time>_<id>.jsonl`.
pub(crate) fn file_name(header: &SessionHeader) -> String {
    let time = iso(header.created.unwrap_or_default()).replace([':', '.'], "-");
    format!("{time}_{}.jsonl", header.id)
}

pub(crate) fn checked_header(
    new: &NewSession,
    environment: &SessionEnvironment,
) -> Result<(SessionHeader, Vec<u8>), SessionError> {
    if let Some(id) = &new.id {
        session_id(id)?;
    }
    Ok(header(new, environment))
}

/// The first line of a new session.
fn header(new: &NewSession, environment: &SessionEnvironment) -> (SessionHeader, Vec<u8>) {
    let id = new.id.clone().unwrap_or_else(|| environment.ids.uuid_v7().into());
    let (cwd, parent) = (new.cwd.to_string_lossy(), new.parent_session.as_ref().map(|parent| parent.to_string_lossy()));
    let created = environment.clock.now();
    let line = NewHeader { id: &id, timestamp: created, cwd: &cwd, parent_session: parent.as_deref() }.line();
    let header = SessionHeader::read(&line).unwrap_or_else(|| SessionHeader {
        id: id.clone(),
        version: CURRENT_VERSION,
        created: Some(created),
        cwd: Some(cwd.clone().into_owned()),
        parent_session: parent.as_deref().map(str::to_owned),
        fields: serde_json::Map::new(),
    });
    (header, line)
}

/// Reads a file's lines.
pub(crate) fn scan(file: &dyn DiskFile, path: &Path) -> Result<Loaded, SessionError> {
    let mut loader = Loader::default();
    read_pieces(file, 0, |piece| loader.push(piece)).map_err(|error| failed("reading", path, error))?;
    Ok(loader.finish())
}

fn failed(action: &str, path: &Path, error: io::Error) -> SessionError {
    SessionError::Store(StoreError::new(format_args!("{action} {}", path.display()), error))
}

fn cwd_of(header: &SessionHeader, otherwise: PathBuf) -> PathBuf {
    header.cwd.as_ref().filter(|cwd| !cwd.is_empty()).map_or(otherwise, PathBuf::from)
}

pub(crate) fn open_for_writing(
    path: PathBuf,
    cwd: PathBuf,
    environment: SessionEnvironment,
) -> Result<SessionManager, SessionError> {
    let disk = environment.disk.clone();
    // Before the lock, whose file would otherwise appear beside a session that does not exist.
    disk.facts(&path).map_err(|error| failed("opening", &path, error))?;
    // What is rewritten is the file, not a link to it.
    let path = without_link(&path);
    let lock = lock(&environment, &path)?;
    let open = || disk.open(&path, OpenMode::Append).map_err(|error| failed("opening", &path, error));
    let mut file = open()?;
    let mut migrated = Vec::new();
    let loaded = match scan(&*file, &path)? {
        Loaded::NotASession => return Err(SessionError::NotASession { path: Some(path) }),
        Loaded::Empty => {
            let new = NewSession { cwd: cwd.clone(), ..NewSession::default() };
            let (_, line) = header(&new, &environment);
            append_all(&*file, &line).map_err(|error| failed("writing to", &path, error))?;
            loaded_again(&*file, &path)?
        }
        Loaded::Session(loaded) if loaded.header.version < CURRENT_VERSION => {
            let from = loaded.header.version;
            let Taken { old_file, late } = migrate_file(&*file, &path, from, &environment)?;
            migrated.push(Notice::Migrated { from, old_file: old_file.clone() });
            if late > 0 {
                migrated.push(Notice::LeftInOldFile { bytes: late, old_file });
            }
            file = open()?;
            loaded_again(&*file, &path)?
        }
        Loaded::Session(mut loaded) => {
            let size = || file.facts().map(|facts| facts.size).map_err(|error| failed("looking at", &path, error));
            if loaded.last_line == LastLine::Closed {
                *loaded
            } else if size()? != loaded.end {
                // Somebody else has just gone on with it. If it is still open, the first append closes it.
                loaded_again(&*file, &path)?
            } else {
                append_all(&*file, b"\n").map_err(|error| failed("writing to", &path, error))?;
                if size()? == loaded.end + 1 {
                    loaded.last_line = LastLine::Closed;
                    loaded.end += 1;
                    *loaded
                } else {
                    loaded_again(&*file, &path)?
                }
            }
        }
    };
    let store = JsonlStore::new(disk.clone(), path.clone(), file, Some(lock))
        .map_err(|error| failed("opening", &path, error))?;
    let source = store.reader().unwrap_or_else(|| Arc::new(MemoryBytes::default()));
    let mut session = Session::from_loaded(loaded, source).map_err(|error| failed("reading", &path, error))?;
    migrated.into_iter().for_each(|notice| session.add_notice(notice));
    let cwd = cwd_of(session.header(), cwd);
    let persistence = Persistence::File { path };
    Ok(SessionManager::new(session, persistence, Writer::store(store, None), cwd, environment))
}

fn loaded_again(file: &dyn DiskFile, path: &Path) -> Result<LoadedSession, SessionError> {
    match scan(file, path)? {
        Loaded::Session(loaded) => Ok(*loaded),
        Loaded::Empty | Loaded::NotASession => Err(SessionError::Replaced { path: Some(path.to_owned()) }),
    }
}

fn open_for_reading(
    path: PathBuf,
    cwd: PathBuf,
    environment: SessionEnvironment,
) -> Result<SessionManager, SessionError> {
    let session_of = |error| failed("reading", &path, error);
    let file = environment.disk.open(&path, OpenMode::Read).map_err(|error| failed("opening", &path, error))?;
    let loaded = match scan(&*file, &path)? {
        Loaded::Session(loaded) => loaded,
        Loaded::Empty | Loaded::NotASession => return Err(SessionError::NotASession { path: Some(path) }),
    };
    let (session, store): (_, Option<Box<dyn SessionStore>>) = if loaded.header.version < CURRENT_VERSION {
        let mut new = Vec::new();
        let mut migration = Migration::new(loaded.header.version, &*environment.ids);
        read_pieces(&*file, 0, |piece| migration.push(piece, &mut new)).map_err(session_of)?;
        migration.finish(&mut new);
        (Session::from_bytes(new)?, None)
    } else {
        let store = JsonlStore::new(environment.disk.clone(), path.clone(), file, None).map_err(session_of)?;
        let source = store.reader().unwrap_or_else(|| Arc::new(MemoryBytes::default()));
        (Session::from_loaded(*loaded, source).map_err(session_of)?, Some(Box::new(store)))
    };
    let cwd = cwd_of(session.header(), cwd);
    let persistence = Persistence::ReadOnly { path };
    Ok(SessionManager::new(session, persistence, Writer::ReadOnly { store }, cwd, environment))
}

/// Rewrites a file of an older version: the new one is made beside it, the old one gets another name, which is no
/// session's, the new one its name. What other programs append meanwhile is rewritten as well.
fn migrate_file(
    file: &dyn DiskFile,
    path: &Path,
    from: u64,
    environment: &SessionEnvironment,
) -> Result<Taken, SessionError> {
    let disk = &*environment.disk;
    for _ in 0..ATTEMPTS {
        let (temporary, new_file) = temporary_beside(disk, path).map_err(|error| failed("rewriting", path, error))?;
        let read_to = migrate_into(&*new_file, file, from, environment).map_err(|error| {
            let _ = disk.remove(&temporary);
            failed("rewriting", path, error)
        })?;
        let draft = Draft { file: temporary, source: file, read_to };
        if let Some(taken) = draft.take_place(disk, path, || keep_old(disk, path, from))? {
            return Ok(taken);
        }
    }
    Err(SessionError::KeepsGrowing { path: path.to_owned() })
}

/// Writes what a file of an older version says. Gives where that one ended.
fn migrate_into(
    new_file: &dyn DiskFile,
    file: &dyn DiskFile,
    from: u64,
    environment: &SessionEnvironment,
) -> io::Result<u64> {
    let mut migration = Migration::new(from, &*environment.ids);
    let mut pending = Vec::new();
    let mut result = Ok(());
    let read_to = read_pieces(file, 0, |piece| {
        migration.push(piece, &mut pending);
        if result.is_ok() {
            result = append_all(new_file, &pending);
        }
        pending.clear();
    })?;
    result?;
    migration.finish(&mut pending);
    append_all(new_file, &pending)?;
    new_file.sync()?;
    Ok(read_to)
}

/// Gives the old file a second name, so that there is no moment in which the session has none.
fn keep_old(disk: &dyn crate::session::store::disk::Disk, path: &Path, version: u64) -> io::Result<PathBuf> {
    let mut attempt = 0u32;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(match attempt {
            0 => format!(".v{version}"),
            _ => format!(".v{version}-{attempt}"),
        });
        let old = PathBuf::from(name);
        match disk.copy_new(path, &old) {
            Ok(()) => return Ok(old),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}
