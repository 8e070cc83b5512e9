//! Which session a command goes on with.

use std::path::{Path, PathBuf};

use super::arguments::{Arguments, SessionChoice};
use crate::{
    host::Host,
    resources::{SettingsManager, expand_home},
    session::{
        Access, FoundSession, NewSession, SessionEnvironment, SessionError, SessionFolder, SessionManager,
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
    let from_environment = || host.variable("PI_CODING_AGENT_SESSION_DIR").filter(|dir| !dir.is_empty());
    let chosen = arguments
        .session_dir
        .clone()
        .or_else(|| from_environment().map(PathBuf::from))
        .or_else(|| settings.session_dir().map(PathBuf::from));
    match chosen {
        Some(dir) => {
            let dir = host.cwd.join(expand_home(&dir, host.home.as_deref()));
            SessionFolder::chosen(&dir, &host.agent_dir, &host.cwd)
        }
        None => SessionFolder::usual(&host.agent_dir, &host.cwd),
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
    let folder = session_folder(arguments, host, settings);
    let opening = Opening { host, folder: &folder, environment: &environment };
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
        (None, Some(SessionChoice::Continue)) => match folder.most_recent(&environment).await? {
            Some(path) => opening.open(&path).await,
            None => opening.create(None, Some("There is no earlier session of this folder; a new one begins.".into())),
        },
        (None, Some(SessionChoice::Open(asked))) => {
            let path = opening.locate(asked, Belonging::Required).await?;
            opening.open(&path).await
        }
        (None, Some(SessionChoice::Exactly(id))) => match folder.find(id, &environment).await? {
            Some(path) => opening.open(&path).await,
            None => opening.create(Some(id), Some(format!("There is no session {id} yet; it is made."))),
        },
        (None, Some(SessionChoice::Fork(_)) | None) => opening.create(None, None),
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
    environment: &'a SessionEnvironment,
}

impl Opening<'_> {
    fn new_session(&self) -> NewSession {
        NewSession { cwd: self.host.cwd.clone(), ..NewSession::default() }
    }

    fn create(&self, id: Option<&str>, notice: Option<String>) -> Result<ChosenSession, SessionChoiceError> {
        let new = NewSession { id: id.map(Into::into), ..self.new_session() };
        let manager = SessionManager::create(self.folder.path(), new, self.environment.clone())?;
        Ok(ChosenSession { manager, notices: notice.into_iter().collect() })
    }

    async fn fork(&self, asked: &str, id: Option<&String>) -> Result<ChosenSession, SessionChoiceError> {
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
        let mut notices: Vec<String> =
            manager.with(|session| session.notices().iter().map(ToString::to_string).collect());
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
        return Ok(Located { path, elsewhere: None });
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
