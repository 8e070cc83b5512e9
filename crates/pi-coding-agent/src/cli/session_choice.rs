//! Which session a command goes on with.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use super::arguments::{Arguments, SessionChoice};
use crate::{
    host::Host,
    resources::{SettingsManager, expand_home},
    session::{
        Access, FoundSession, NewSession, Notice, SessionEnvironment, SessionError, SessionFolder, SessionManager,
        all_sessions_folder, find_sessions,
    },
};

/// The session cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionChoiceError {
    /// The session belongs to another folder.
    #[error(
        "session {id} belongs to {}; change to that folder, or copy the session into this one with --fork {id}",
        .cwd.display()
    )]
    OtherFolder {
        /// Its id.
        id: String,
        /// Its folder.
        cwd: PathBuf,
    },
    /// The session's folder is gone.
    #[error(
        "the session worked in {}, which does not exist any more; copy it into this folder with --fork {}",
        .cwd.display(),
        .path.display()
    )]
    FolderGone {
        /// Its folder.
        cwd: PathBuf,
        /// Its file.
        path: PathBuf,
    },
    /// The file that was asked for is not there, or is no file.
    #[error(
        "the session file {} cannot be opened: {reason}; `pi sessions list` shows the sessions of this folder, and without \
         --session a new one begins",
        .path.display()
    )]
    NoFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Sessions cannot be kept in their folder.
    #[error(
        "sessions cannot be kept in {}, {named_by}: {reason}; choose another folder with --session-dir, or keep nothing \
         with --no-session",
        .folder.display()
    )]
    UnusableFolder {
        /// The folder.
        folder: PathBuf,
        /// Who chose it.
        named_by: NamedBy,
        /// Why.
        reason: io::Error,
    },
    /// An id that a fork should get is taken.
    #[error("there is a session with the id {id} already; choose another one with --session-id")]
    Taken {
        /// The id.
        id: String,
    },
    /// The session cannot be found, read or written.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Who chose the folder of the sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// `--session-dir`.
    Flag,
    /// `PI_CODING_AGENT_SESSION_DIR`.
    Variable,
    /// `sessionDir` in the settings.
    Setting,
    /// Nobody: it is the usual one.
    Nobody,
}

impl fmt::Display for NamedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flag => "which --session-dir names",
            Self::Variable => "which PI_CODING_AGENT_SESSION_DIR names",
            Self::Setting => "which the setting sessionDir names",
            Self::Nobody => "the usual folder",
        })
    }
}

/// The session to go on with, and what to tell the person.
#[derive(Debug)]
pub struct ChosenSession {
    /// The session.
    pub manager: SessionManager,
    /// For standard error.
    pub notices: Vec<String>,
}

/// The folder that this folder's sessions lie in: `--session-dir`, the environment, the setting, or the usual one.
pub fn session_folder(arguments: &Arguments, host: &Host, settings: &SettingsManager) -> SessionFolder {
    named_folder(arguments, host, settings).0
}

fn named_folder(arguments: &Arguments, host: &Host, settings: &SettingsManager) -> (SessionFolder, NamedBy) {
    let from_environment = || host.variable("PI_CODING_AGENT_SESSION_DIR").filter(|dir| !dir.is_empty());
    let chosen = arguments
        .session_dir
        .clone()
        .map(|dir| (dir, NamedBy::Flag))
        .or_else(|| from_environment().map(|dir| (dir.into(), NamedBy::Variable)))
        .or_else(|| settings.session_dir().map(|dir| (dir.into(), NamedBy::Setting)));
    match chosen {
        Some((dir, named_by)) => {
            let dir = host.cwd.join(expand_home(&dir, host.home.as_deref()));
            (SessionFolder::chosen(&dir, &host.agent_dir, &host.cwd), named_by)
        }
        None => (SessionFolder::usual(&host.agent_dir, &host.cwd), NamedBy::Nobody),
    }
}

/// Opens or makes the session that the command line asks for.
///
/// # Errors
/// When it cannot be found, read or written, or belongs somewhere else.
pub async fn choose_session(
    arguments: &Arguments,
    host: &Host,
    settings: &SettingsManager,
    environment: SessionEnvironment,
) -> Result<ChosenSession, SessionChoiceError> {
    let (folder, named_by) = named_folder(arguments, host, settings);
    let opening = Opening { host, folder: &folder, named_by, environment: &environment };
    let source = arguments.sessions.iter().find_map(|choice| match choice {
        SessionChoice::Fork(asked) => Some(asked),
        _ => None,
    });
    let exact_id = arguments.sessions.iter().find_map(|choice| match choice {
        SessionChoice::Exactly(id) => Some(id),
        _ => None,
    });
    match (source, arguments.session()) {
        (Some(asked), _) => opening.fork(asked, exact_id).await,
        (None, Some(SessionChoice::InMemory)) => Ok(ChosenSession {
            manager: SessionManager::in_memory_with(opening.new_session(), environment),
            notices: Vec::new(),
        }),
        (None, Some(SessionChoice::Continue)) => {
            opening.check_folder().await?;
            let newest = folder.newest(&environment).await?;
            let mut chosen = match newest.session {
                Some(path) => opening.open(&path).await,
                None => {
                    let notice = "There is no earlier session of this folder; a new one begins.";
                    opening.create(None, Some(notice.into())).await
                }
            }?;
            chosen.notices.splice(0..0, newest.headless.iter().map(|path| headless(path)));
            Ok(chosen)
        }
        (None, Some(SessionChoice::Open(asked))) => {
            let path = opening.locate(asked, Belonging::Required).await?;
            opening.open(&path).await
        }
        (None, Some(SessionChoice::Exactly(id))) => {
            opening.check_folder().await?;
            match folder.find(id, &environment).await? {
                Some(path) => opening.open(&path).await,
                None => opening.create(Some(id), Some(format!("There is no session {id} yet; it is made."))).await,
            }
        }
        (None, Some(SessionChoice::Fork(_)) | None) => opening.create(None, None).await,
    }
}

/// Whether a session must belong to the folder that it is opened from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Belonging {
    Required,
    /// It is only copied.
    Unimportant,
}

struct Opening<'a> {
    host: &'a Host,
    folder: &'a SessionFolder,
    named_by: NamedBy,
    environment: &'a SessionEnvironment,
}

impl Opening<'_> {
    fn new_session(&self) -> NewSession {
        NewSession { cwd: self.host.cwd.clone(), ..NewSession::default() }
    }

    /// A folder of sessions that is no folder is told before anything is asked or answered.
    async fn check_folder(&self) -> Result<(), SessionChoiceError> {
        match tokio::fs::metadata(self.folder.path()).await {
            Ok(metadata) if !metadata.is_dir() => Err(self.unusable(io::Error::other("it is a file, not a folder"))),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.unusable(error)),
            _ => Ok(()),
        }
    }

    /// Makes the folder, so that what is wrong with it is told before an answer is paid for and cannot be kept.
    async fn make_folder(&self) -> Result<(), SessionChoiceError> {
        self.check_folder().await?;
        let (disk, folder) = (self.environment.disk.clone(), self.folder.path().to_owned());
        tokio::task::spawn_blocking(move || {
            disk.create_folder(&folder)?;
            #[cfg(unix)]
            rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)?;
            Ok(())
        })
        .await
        .unwrap_or_else(|panicked| Err(io::Error::other(panicked)))
        .map_err(|error| self.unusable(error))
    }

    fn unusable(&self, reason: io::Error) -> SessionChoiceError {
        SessionChoiceError::UnusableFolder { folder: self.folder.path().to_owned(), named_by: self.named_by, reason }
    }

    async fn create(&self, id: Option<&str>, notice: Option<String>) -> Result<ChosenSession, SessionChoiceError> {
        self.make_folder().await?;
        let new = NewSession { id: id.map(Into::into), ..self.new_session() };
        let manager = SessionManager::create(self.folder.path(), new, self.environment.clone())?;
        Ok(ChosenSession { manager, notices: notice.into_iter().collect() })
    }

    async fn fork(&self, asked: &str, id: Option<&String>) -> Result<ChosenSession, SessionChoiceError> {
        self.make_folder().await?;
        if let Some(id) = id
            && self.folder.find(id, self.environment).await?.is_some()
        {
            return Err(SessionChoiceError::Taken { id: id.clone() });
        }
        let source = self.locate(asked, Belonging::Unimportant).await?;
        let id = id.map(|id| id.as_str().into());
        let manager = SessionManager::fork_from(&source, self.folder, id, self.environment.clone()).await?;
        Ok(ChosenSession { manager, notices: Vec::new() })
    }

    /// Opens a session file, unless the folder that it worked in is gone.
    async fn open(&self, path: &Path) -> Result<ChosenSession, SessionChoiceError> {
        let manager = SessionManager::open(path, Access::Write, &self.host.cwd, self.environment.clone()).await?;
        let cwd = manager.cwd().to_owned();
        if !tokio::fs::metadata(&cwd).await.is_ok_and(|metadata| metadata.is_dir()) {
            return Err(SessionChoiceError::FolderGone { cwd, path: path.to_owned() });
        }
        let mut notices = damage(&manager, path);
        if cwd != self.host.cwd {
            notices.push(format!("The session works in {}.", cwd.display()));
        }
        Ok(ChosenSession { manager, notices })
    }

    async fn locate(&self, asked: &str, belonging: Belonging) -> Result<PathBuf, SessionChoiceError> {
        let found = locate(asked, self.host, self.folder, self.environment).await?;
        match found.elsewhere {
            Some(FoundSession { id, cwd, .. }) if belonging == Belonging::Required => {
                Err(SessionChoiceError::OtherFolder { id: id.to_string(), cwd: cwd.unwrap_or_default() })
            }
            _ => Ok(found.path),
        }
    }
}

/// What is wrong with a session's file, for people. Of a file that is damaged all over only the beginning is told.
pub(super) fn damage(manager: &SessionManager, path: &Path) -> Vec<String> {
    const TOLD: usize = 5;
    let path = path.display();
    manager.with(|session| {
        let notices = session.notices();
        let mut told: Vec<String> = notices
            .iter()
            .take(TOLD)
            .map(|notice| match notice {
                Notice::Migrated { .. } => format!("{path}: {notice}."),
                Notice::DamagedLine { .. } | Notice::DamagedEntry { .. } | Notice::StrayHeader { .. } => {
                    format!("Warning: {path}: {notice}. `pi sessions repair` says what can be saved.")
                }
                _ => format!("Warning: {path}: {notice}."),
            })
            .collect();
        if let Some(more) = notices.len().checked_sub(TOLD).filter(|more| *more > 0) {
            told.push(format!("Warning: {path}: {more} more of its lines are not as they should be."));
        }
        told
    })
}

fn headless(path: &Path) -> String {
    format!(
        "Warning: {0} was written to later, but its first line is no session header, so it was passed over. `pi sessions \
         repair {0}` says what can be saved.",
        path.display()
    )
}

/// A session that was asked for.
#[derive(Debug)]
pub(super) struct Located {
    /// Its file.
    pub(super) path: PathBuf,
    /// What is known of it when it belongs to another folder and was not asked for by its path.
    elsewhere: Option<FoundSession>,
}

/// Looks for a path, an id or the beginning of one: in this folder first, then in all.
pub(super) async fn locate(
    asked: &str,
    host: &Host,
    folder: &SessionFolder,
    environment: &SessionEnvironment,
) -> Result<Located, SessionChoiceError> {
    if asked.contains(['/', '\\']) || asked.ends_with(".jsonl") {
        let path = host.cwd.join(expand_home(Path::new(asked), host.home.as_deref()));
        // Without the `.` of what was typed.
        let path: PathBuf = path.components().collect();
        let reason = match tokio::fs::metadata(&path).await {
            Ok(metadata) if metadata.is_file() => return Ok(Located { path, elsewhere: None }),
            Ok(metadata) if metadata.is_dir() => "it is a folder; name a file in it",
            Ok(_) => "it is not a regular file",
            Err(error) if error.kind() == io::ErrorKind::NotFound => "there is no such file",
            // Opening it tells what is wrong.
            Err(_) => return Ok(Located { path, elsewhere: None }),
        };
        return Err(SessionChoiceError::NoFile { path, reason });
    }
    let not_here = match folder.find_by_prefix(asked, environment).await {
        Ok(path) => return Ok(Located { path, elsewhere: None }),
        Err(error @ SessionError::NoSuchSession { .. }) => error,
        Err(error) => return Err(error.into()),
    };
    let usual = all_sessions_folder(&host.agent_dir);
    let mut found = find_sessions(folder.everywhere(), asked, environment).await?;
    if folder.everywhere() != usual {
        found.extend(find_sessions(&usual, asked, environment).await?);
    }
    if let Some(exact) = found.iter().position(|session| session.id == *asked) {
        found = vec![found.swap_remove(exact)];
    }
    match <[FoundSession; 1]>::try_from(found) {
        Ok([only]) => Ok(Located { path: only.path.clone(), elsewhere: Some(only) }),
        Err(none) if none.is_empty() => Err(not_here.into()),
        Err(several) => {
            let found = several.iter().map(|session| session.id.to_string()).collect();
            Err(SessionError::AmbiguousId { wanted: asked.to_owned(), found }.into())
        }
    }
}
