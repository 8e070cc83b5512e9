//! Lists of sessions, with what is needed to choose one.

use std::{
    ffi::OsStr,
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use pi_ai::{CancellationToken, SessionId, Timestamp};
use serde::Serialize;

use crate::session::{
    environment::SessionEnvironment,
    error::SessionError,
    folder::{SessionFolder, session_files},
    manager::in_background,
    outline::{Outline, TextDetail},
    store::{StoreError, disk::Disk},
};

/// What a list says about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFacts {
    /// Its file.
    pub path: PathBuf,
    /// Its id.
    pub id: SessionId,
    /// The folder that it works in; empty when its header does not say.
    pub cwd: String,
    /// Its name.
    pub name: Option<String>,
    /// The file of the session that it comes from.
    pub parent_session: Option<String>,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// When somebody said something last.
    pub modified: Timestamp,
    /// How many message entries it has, on all branches.
    pub messages: usize,
    /// What the user said first.
    pub first_message: Option<String>,
    /// All that was said, for searching; empty when it was not asked for.
    pub text: String,
}

/// How far a list has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ListProgress {
    /// How many files were looked at.
    pub done: usize,
    /// How many there are.
    pub total: usize,
}

/// What a list is to do.
#[derive(Clone, Default)]
pub struct ListOptions {
    /// How much of what was said is wanted.
    pub text: TextDetail,
    /// Ends the list early, with an error.
    pub signal: CancellationToken,
    /// Told after each file, from whatever thread.
    pub progress: Option<Arc<dyn Fn(ListProgress) + Send + Sync>>,
}

impl fmt::Debug for ListOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListOptions").field("text", &self.text).finish_non_exhaustive()
    }
}

impl SessionFolder {
    /// The sessions of this folder, the one that was used last first. Files that cannot be read, or are no sessions, are
    /// passed over.
    ///
    /// # Errors
    /// When the folder cannot be read, or the list is ended early.
    pub async fn sessions(
        &self,
        options: ListOptions,
        environment: &SessionEnvironment,
    ) -> Result<Vec<SessionFacts>, SessionError> {
        let (folder, disk) = (self.clone(), environment.disk.clone());
        in_background(move || {
            let files = folder.files(&*disk).map_err(|error| failed(folder.path(), error))?;
            let mut sessions = read_all(files, &options, &*disk)?;
            let mut is_member = folder.members();
            sessions.retain(|session| is_member(session));
            Ok(sessions)
        })
        .await
    }
}

/// The sessions of all folders in a folder (see [`all_sessions_folder`](super::all_sessions_folder)), the one that was
/// used last first.
///
/// # Errors
/// When the folder cannot be read, or the list is ended early.
pub async fn all_sessions(
    folder: &Path,
    options: ListOptions,
    environment: &SessionEnvironment,
) -> Result<Vec<SessionFacts>, SessionError> {
    let (folder, disk) = (folder.to_owned(), environment.disk.clone());
    in_background(move || {
        let folders = match disk.list(&folder) {
            Ok(folders) => folders,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(&folder, error)),
        };
        // What is no folder has no files in it.
        let files: Vec<PathBuf> =
            folders.iter().flat_map(|folder| session_files(&*disk, folder).unwrap_or_default()).collect();
        read_all(files, &options, &*disk)
    })
    .await
}

fn failed(folder: &Path, error: std::io::Error) -> SessionError {
    SessionError::Store(StoreError::new(format_args!("listing {}", folder.display()), error))
}

/// Reads the files on a few threads.
fn read_all(
    mut files: Vec<PathBuf>,
    options: &ListOptions,
    disk: &dyn Disk,
) -> Result<Vec<SessionFacts>, SessionError> {
    // Names begin with a time: the newest first, also among sessions that were used at the same time.
    files.sort_by_cached_key(|file| std::cmp::Reverse(file.file_name().map(OsStr::to_owned)));
    let done = AtomicUsize::new(0);
    let found = Mutex::new(Vec::with_capacity(files.len()));
    each_file(
        &files,
        |file| file,
        options,
        |at, path, buffer| {
            if let Some(facts) = read_one(disk, path, options.text, buffer) {
                found.lock().unwrap_or_else(PoisonError::into_inner).push((at, facts));
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(progress) = &options.progress {
                progress(ListProgress { done, total: files.len() });
            }
        },
    )?;
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(at, facts)| (std::cmp::Reverse(facts.modified), *at));
    Ok(found.into_iter().map(|(_, facts)| facts).collect())
}

/// Does something with each file, on a few threads, each of which has a buffer for what it reads.
///
/// # Errors
/// When the list is ended early.
pub(crate) fn each_file<T: Sync>(
    files: &[T],
    path_of: impl Fn(&T) -> &PathBuf + Sync,
    options: &ListOptions,
    work: impl Fn(usize, &Path, &mut Vec<u8>) + Sync,
) -> Result<(), SessionError> {
    const MOST_THREADS: usize = 8;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS).min(files.len());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut buffer = Vec::new();
                while let Some((at, file)) = take(files, &next).filter(|_| !options.signal.is_cancelled()) {
                    work(at, path_of(file), &mut buffer);
                }
            });
        }
    });
    if options.signal.is_cancelled() { Err(SessionError::Cancelled) } else { Ok(()) }
}

fn take<'a, T>(files: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    files.get(at).map(|file| (at, file))
}

/// `None` for a file that cannot be read or is no session.
pub(crate) fn read_one(disk: &dyn Disk, path: &Path, text: TextDetail, buffer: &mut Vec<u8>) -> Option<SessionFacts> {
    let outline = Outline::read(disk, path, text, buffer).ok()??;
    let said = outline.last_activity.filter(|time| time.as_millis() > 0);
    let modified = said.or(outline.header.created).or_else(|| {
        let since = disk.facts(path).ok()?.modified.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(Timestamp::from_millis(since.as_millis().try_into().ok()?))
    });
    Some(SessionFacts {
        path: path.to_owned(),
        id: outline.header.id,
        cwd: outline.header.cwd.unwrap_or_default(),
        name: outline.name,
        parent_session: outline.header.parent_session,
        created: outline.header.created,
        modified: modified.unwrap_or_default(),
        messages: outline.messages,
        first_message: outline.first_message,
        text: outline.text,
    })
}
