//! Where sessions lie, and how one is found.

use std::{
    collections::HashMap,
    io,
    path::{Component, Path, PathBuf},
};

use pi_ai::SessionId;

use crate::session::{
    environment::SessionEnvironment,
    error::SessionError,
    header::SessionHeader,
    line::is_json,
    list::SessionFacts,
    manager::{SessionManager, in_background},
    open::{Access, NewSession},
    store::{
        StoreError,
        disk::{Disk, OpenMode, read_full},
    },
};

/// A folder of session files, as the sessions of one working directory see it.
///
/// The usual folder belongs to one working directory, so all sessions in it do. In any other folder only sessions
/// whose header names the working directory count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFolder {
    path: PathBuf,
    cwd: PathBuf,
    sharing: Sharing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    Own,
    Shared,
}

impl SessionFolder {
    /// The usual folder of a working directory, below the agent's own folder. Both paths are absolute.
    ///
    /// ```
    /// use std::path::Path;
    /// use pi_coding_agent::session::SessionFolder;
    /// let folder = SessionFolder::usual(Path::new("/home/me/.pi/agent"), Path::new("/projects/app"));
    /// assert_eq!(folder.path(), Path::new("/home/me/.pi/agent/sessions/--projects-app--"));
    /// ```
    pub fn usual(agent_dir: &Path, cwd: &Path) -> Self {
        let cwd = normalized(cwd);
        let text = cwd.to_string_lossy();
        let name = text.strip_prefix(['/', '\\']).unwrap_or(&text).replace(['/', '\\', ':'], "-");
        let path = normalized(agent_dir).join("sessions").join(format!("--{name}--"));
        Self { path, cwd, sharing: Sharing::Own }
    }

    /// A folder of the user's choice. When it is the usual one after all, it counts as that.
    pub fn chosen(path: &Path, agent_dir: &Path, cwd: &Path) -> Self {
        let usual = Self::usual(agent_dir, cwd);
        let path = normalized(path);
        if path == usual.path { usual } else { Self { path, cwd: usual.cwd, sharing: Sharing::Shared } }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The working directory.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The folder in which the sessions of other working directories lie too, in it or in the folders in it.
    pub fn everywhere(&self) -> &Path {
        match self.sharing {
            Sharing::Own => self.path.parent().unwrap_or(&self.path),
            Sharing::Shared => &self.path,
        }
    }

    /// Tells whether a session lies in this folder and belongs to the working directory. Many sessions share a
    /// directory, so each one is looked up on the disk only once.
    pub(crate) fn members(&self) -> impl FnMut(&SessionFacts) -> bool + use<> {
        let folder = self.clone();
        let mut known = HashMap::<String, bool>::new();
        move |session| {
            session.path.parent() == Some(&folder.path)
                && match known.get(&session.cwd) {
                    Some(is_included) => *is_included,
                    None => {
                        let is_included = folder.includes(Some(&session.cwd));
                        known.insert(session.cwd.clone(), is_included);
                        is_included
                    }
                }
        }
    }

    /// Whether a session of this working directory belongs to this folder's list.
    pub(crate) fn includes(&self, cwd: Option<&str>) -> bool {
        match self.sharing {
            Sharing::Own => true,
            Sharing::Shared => cwd.is_some_and(|cwd| !cwd.is_empty() && is_same_folder(Path::new(cwd), &self.cwd)),
        }
    }

    /// The session files in the folder, whatever they hold. A folder that does not exist has none.
    pub(crate) fn files(&self, disk: &dyn Disk) -> io::Result<Vec<PathBuf>> {
        session_files(disk, &self.path)
    }

    /// The session that was written to last.
    ///
    /// # Errors
    /// When the folder cannot be read. Files that cannot be read, or are no sessions, are passed over.
    pub async fn most_recent(&self, environment: &SessionEnvironment) -> Result<Option<PathBuf>, SessionError> {
        Ok(self.newest(environment).await?.session)
    }

    /// As [`most_recent`](Self::most_recent), and the files that were written to later and have lost their header.
    pub(crate) async fn newest(&self, environment: &SessionEnvironment) -> Result<Newest, SessionError> {
        let (folder, disk) = (self.clone(), environment.disk.clone());
        in_background(move || {
            let mut files = folder.listed(&*disk)?;
            let facts = |path: &PathBuf| disk.facts(path).ok();
            files.sort_by_cached_key(|path| std::cmp::Reverse(facts(path).map(|facts| facts.modified)));
            let mut newest = Newest::default();
            for path in files {
                match read_header(&*disk, &path) {
                    Ok(Some(header)) if folder.includes(header.cwd.as_deref()) => {
                        newest.session = Some(path);
                        break;
                    }
                    Ok(None) if facts(&path).is_some_and(|facts| facts.size > 0) => newest.headless.push(path),
                    Ok(_) | Err(_) => {}
                }
            }
            Ok(newest)
        })
        .await
    }

    /// The session files in the folder of a session, itself included, that have its id: more than one when a file was
    /// copied, so that the id alone does not say which one is meant.
    ///
    /// # Errors
    /// When the folder cannot be read. Files that cannot be read, or are no sessions, are passed over.
    pub async fn namesakes(
        path: &Path,
        id: &SessionId,
        environment: &SessionEnvironment,
    ) -> Result<Vec<PathBuf>, SessionError> {
        let (path, disk, id) = (path.to_owned(), environment.disk.clone(), id.clone());
        in_background(move || {
            let folder = path.parent().unwrap_or(Path::new("."));
            let has_id =
                |path: &PathBuf| read_header(&*disk, path).ok().flatten().is_some_and(|header| header.id == id);
            let files = session_files(&*disk, folder).map_err(|error| {
                SessionError::Store(StoreError::new(format_args!("listing {}", folder.display()), error))
            })?;
            let mut found: Vec<PathBuf> = files.into_iter().filter(has_id).collect();
            found.sort();
            Ok(found)
        })
        .await
    }

    /// The session of exactly this id.
    ///
    /// # Errors
    /// When the folder cannot be read. Files that cannot be read, or are no sessions, are passed over.
    pub async fn find(&self, id: &str, environment: &SessionEnvironment) -> Result<Option<PathBuf>, SessionError> {
        let (folder, disk, id) = (self.clone(), environment.disk.clone(), id.to_owned());
        in_background(move || Ok(folder.find_all(&*disk, |found| found == id)?.pop().map(|(path, _)| path))).await
    }

    /// The session whose id is this, or the only one whose id begins so.
    ///
    /// # Errors
    /// When there is none, there are several, or the folder cannot be read.
    pub async fn find_by_prefix(
        &self,
        prefix: &str,
        environment: &SessionEnvironment,
    ) -> Result<PathBuf, SessionError> {
        let (folder, disk, wanted) = (self.clone(), environment.disk.clone(), prefix.to_owned());
        in_background(move || {
            let mut found = folder.find_all(&*disk, |id| id.starts_with(&wanted))?;
            if let Some(exact) = found.iter().position(|(_, id)| *id == wanted) {
                return Ok(found.swap_remove(exact).0);
            }
            match found.len() {
                0 => Err(SessionError::NoSuchSession { wanted, folder: folder.path }),
                1 => Ok(found.remove(0).0),
                _ => {
                    let mut found: Vec<String> = found.into_iter().map(|(_, id)| id).collect();
                    found.sort();
                    Err(SessionError::AmbiguousId { wanted, found })
                }
            }
        })
        .await
    }

    fn find_all(
        &self,
        disk: &dyn Disk,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<(PathBuf, String)>, SessionError> {
        let headers = self.listed(disk)?.into_iter().filter_map(|path| Some((self.header_of(disk, &path)?, path)));
        let wanted = headers.filter(|(header, _)| is_wanted(&header.id));
        Ok(wanted.map(|(header, path)| (path, header.id.to_string())).collect())
    }

    fn listed(&self, disk: &dyn Disk) -> Result<Vec<PathBuf>, SessionError> {
        self.files(disk).map_err(|error| {
            SessionError::Store(StoreError::new(format_args!("listing {}", self.path.display()), error))
        })
    }

    /// The header of a file that belongs to this folder's list.
    fn header_of(&self, disk: &dyn Disk, path: &Path) -> Option<SessionHeader> {
        let header = read_header(disk, path).ok().flatten()?;
        self.includes(header.cwd.as_deref()).then_some(header)
    }
}

impl SessionManager {
    /// Opens the session of the folder that was written to last, or starts a new one.
    ///
    /// # Errors
    /// As [`SessionManager::open`].
    pub async fn continue_recent(
        folder: &SessionFolder,
        environment: SessionEnvironment,
    ) -> Result<Self, SessionError> {
        match folder.most_recent(&environment).await? {
            Some(path) => Self::open(&path, Access::Write, folder.cwd(), environment).await,
            None => {
                let new = NewSession { cwd: folder.cwd().to_owned(), ..NewSession::default() };
                Self::create(folder.path(), new, environment)
            }
        }
    }
}

/// What of a folder was written to last.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    pub(crate) session: Option<PathBuf>,
    /// What was written to later, and is not opened: the first line is no header.
    pub(crate) headless: Vec<PathBuf>,
}

/// A session that was found by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSession {
    /// Its file.
    pub path: PathBuf,
    /// Its id.
    pub id: SessionId,
    /// The folder that it works in, when its header says.
    pub cwd: Option<PathBuf>,
}

/// The session in a folder, or in the folders in it, that has this id, or else all whose ids begin so. Reads no more of
/// a file than its header.
///
/// # Errors
/// When the folder cannot be read. Files that cannot be read, or are no sessions, are passed over.
pub async fn find_sessions(
    folder: &Path,
    id: &str,
    environment: &SessionEnvironment,
) -> Result<Vec<FoundSession>, SessionError> {
    let (folder, disk, wanted) = (folder.to_owned(), environment.disk.clone(), id.to_owned());
    in_background(move || {
        let failed = |error| SessionError::Store(StoreError::new(format_args!("listing {}", folder.display()), error));
        let mut found = Vec::new();
        for path in files_below(&*disk, &folder).map_err(failed)? {
            let Some(header) = read_header(&*disk, &path).ok().flatten() else { continue };
            if header.id.starts_with(&wanted) {
                found.push(FoundSession { path, id: header.id, cwd: header.cwd.map(PathBuf::from) });
            }
        }
        if let Some(exact) = found.iter().position(|session| session.id == *wanted) {
            found = vec![found.swap_remove(exact)];
        }
        Ok(found)
    })
    .await
}

/// The folder that holds the usual folders of all working directories.
pub fn all_sessions_folder(agent_dir: &Path) -> PathBuf {
    normalized(agent_dir).join("sessions")
}

/// The session files in a folder, whatever they hold.
pub(crate) fn session_files(disk: &dyn Disk, folder: &Path) -> io::Result<Vec<PathBuf>> {
    match disk.list(folder) {
        Ok(mut files) => {
            files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
            Ok(files)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The session files in a folder and in the folders in it.
pub(crate) fn files_below(disk: &dyn Disk, folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = session_files(disk, folder)?;
    let inside = match disk.list(folder) {
        Ok(inside) => inside,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let is_file =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jsonl" || extension == "lock");
    for folder in inside.iter().filter(|path| !is_file(path)) {
        // What is no folder has no files in it.
        files.extend(session_files(disk, folder).unwrap_or_default());
    }
    Ok(files)
}

/// Reads the header of a session file, without reading further than a mebibyte.
pub(crate) fn read_header(disk: &dyn Disk, path: &Path) -> io::Result<Option<SessionHeader>> {
    const LIMIT: usize = 1 << 20;
    const PIECE: usize = 4096;
    let file = disk.open(path, OpenMode::Read)?;
    let mut bytes = Vec::new();
    let mut line_start = 0;
    loop {
        let at = bytes.len();
        bytes.resize(at + PIECE, 0);
        let count = read_full(&*file, at as u64, &mut bytes[at..])?;
        bytes.truncate(at + count);
        let is_end = count < PIECE;
        while let Some(length) = memchr::memchr(b'\n', &bytes[line_start..]) {
            let line = &bytes[line_start..line_start + length];
            line_start += length + 1;
            if let Some(verdict) = judge(line) {
                return Ok(verdict);
            }
        }
        if is_end || bytes.len() >= LIMIT {
            let rest = &bytes[line_start..];
            return Ok(if is_end { judge(rest).flatten() } else { None });
        }
    }
}

/// `None`: a line to pass over. `Some(None)`: a line that should be the header and is not.
fn judge(line: &[u8]) -> Option<Option<SessionHeader>> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return None;
    }
    match SessionHeader::read(line) {
        Some(header) => Some(Some(header)),
        None => is_json(line).then_some(None),
    }
}

/// Takes `.`, `..` and doubled separators out of an absolute path, without looking at the disk.
pub(crate) fn normalized(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                result.pop();
            }
            other => result.push(other),
        }
    }
    result
}

/// Whether two paths name one folder: by their text, or, when both exist, by where they lead.
fn is_same_folder(a: &Path, b: &Path) -> bool {
    let (a, b) = (normalized(a), normalized(b));
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
