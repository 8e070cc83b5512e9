//! One writer per session: a lock file beside the session that says who holds it.

use std::{
    fmt,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// Who takes locks: this process, on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockOwner {
    /// The process id.
    pub process: u32,
    /// The machine's name.
    pub host: String,
}

impl LockOwner {
    /// This process on this machine.
    pub fn current() -> Self {
        Self { process: std::process::id(), host: host_name() }
    }
}

#[cfg(unix)]
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Who holds a session, as the lock file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// The process id; `None` when the lock file does not say.
    #[serde(rename = "pid", default)]
    pub process: Option<u32>,
    /// The machine's name.
    #[serde(default)]
    pub host: Option<String>,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.process, &self.host) {
            (Some(process), Some(host)) => write!(f, "process {process} on {host}"),
            (Some(process), None) => write!(f, "process {process}"),
            (None, _) => f.write_str("another process"),
        }
    }
}

/// The right to write to a session, until it is dropped.
///
/// The operating system frees the lock when its holder dies, so that a dead holder never blocks. On a file system
/// without locks the lock file itself is the lock, and one whose process is gone from this machine is taken over.
#[derive(Debug)]
pub struct SessionLock {
    path: PathBuf,
    file: File,
}

/// Why a session could not be locked.
#[derive(Debug)]
pub(crate) enum LockError {
    Held(LockHolder),
    Failed(io::Error),
}

impl From<io::Error> for LockError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// The lock file of a session file.
pub(crate) fn lock_path(session: &Path) -> PathBuf {
    let mut name = session.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

impl SessionLock {
    /// Takes the lock of a session file, which need not exist yet.
    ///
    /// A session that is reached through a link has the lock of the file that the link leads to.
    pub(crate) fn acquire(session: &Path, owner: &LockOwner) -> Result<Self, LockError> {
        let path = lock_path(&without_link(session));
        // Whoever gives a lock back removes its file; then the file that was locked here is not the one with the name.
        for _ in 0..100 {
            let mut file = open(&path)?;
            match file.try_lock() {
                Ok(()) => refuse_foreign(&mut file, &path)?,
                Err(TryLockError::WouldBlock) => return Err(LockError::Held(read_holder(&mut file))),
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    refuse_foreign(&mut file, &path)?;
                    let holder = read_holder(&mut file);
                    if holder.process.is_some() && !is_gone(&holder, owner) {
                        return Err(LockError::Held(holder));
                    }
                }
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
            if is_still_named(&file, &path) {
                let mut lock = Self { path, file };
                lock.write_holder(owner)?;
                return Ok(lock);
            }
        }
        Err(LockError::Held(LockHolder::default()))
    }

    fn write_holder(&mut self, owner: &LockOwner) -> io::Result<()> {
        let holder = LockHolder { process: Some(owner.process), host: Some(owner.host.clone()) };
        let mut text = serde_json::to_vec(&holder)?;
        text.push(b'\n');
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(&text)
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        // While the lock is held, so that nobody else's file is removed. What fails here costs nothing: a lock file
        // that nobody holds does not block.
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

/// The file itself, where the last part of a path is a link to it.
pub(crate) fn without_link(session: &Path) -> PathBuf {
    let is_link = fs::symlink_metadata(session).is_ok_and(|metadata| metadata.is_symlink());
    is_link.then(|| fs::canonicalize(session).ok()).flatten().unwrap_or_else(|| session.to_owned())
}

/// Opens the lock file. A link in its place is not followed: a folder that somebody else made could have it lead to any
/// file of the user.
fn open(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(foreign(path, "it is no regular file"));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    options.open(path)
}

/// What holds anything but a holder, or what is left of one, is no lock file, and is left alone.
fn refuse_foreign(file: &mut File, path: &Path) -> io::Result<()> {
    const LONGEST: u64 = 4096;
    let mut text = Vec::new();
    file.rewind()?;
    file.take(LONGEST).read_to_end(&mut text)?;
    let is_ours = text.starts_with(br#"{"pid":"#) || br#"{"pid":"#.starts_with(&text);
    // A loss of power leaves zeros.
    let is_emptied = text.iter().all(|byte| *byte == 0);
    if file.metadata()?.is_file() && (is_ours || is_emptied) {
        Ok(())
    } else {
        Err(foreign(path, "its content is no lock"))
    }
}

fn foreign(path: &Path, reason: &str) -> io::Error {
    let path = path.display();
    io::Error::other(format!("{path} is not a lock file ({reason}). Remove it if nobody needs it, and try again"))
}

fn read_holder(file: &mut File) -> LockHolder {
    let mut text = Vec::new();
    let read = file.rewind().and_then(|()| file.take(4096).read_to_end(&mut text));
    match read {
        Ok(_) => serde_json::from_slice(&text).unwrap_or_default(),
        Err(_) => LockHolder::default(),
    }
}

#[cfg(unix)]
fn is_still_named(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(ours), Ok(named)) => (ours.dev(), ours.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// Elsewhere a file that is open cannot be removed under its holder.
#[cfg(not(unix))]
fn is_still_named(_file: &File, path: &Path) -> bool {
    path.exists()
}

/// Whether the holder was a process of this machine that runs no more.
#[cfg(unix)]
fn is_gone(holder: &LockHolder, owner: &LockOwner) -> bool {
    let same_host = holder.host.as_deref() == Some(&*owner.host);
    let process = holder.process.and_then(|process| rustix::process::Pid::from_raw(i32::try_from(process).ok()?));
    same_host
        && process.is_some_and(|process| rustix::process::test_kill_process(process) == Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
fn is_gone(_holder: &LockHolder, _owner: &LockOwner) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(process: u32) -> LockOwner {
        LockOwner { process, host: "here".into() }
    }

    #[test]
    fn a_second_writer_is_told_who_holds_the_session() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("a.jsonl");
        let first = SessionLock::acquire(&session, &owner(7)).unwrap();
        match SessionLock::acquire(&session, &owner(8)) {
            Err(LockError::Held(holder)) => assert_eq!(holder.to_string(), "process 7 on here"),
            other => panic!("{other:?}"),
        }
        drop(first);
        assert!(!lock_path(&session).exists());
        SessionLock::acquire(&session, &owner(8)).unwrap();
    }

    #[test]
    fn a_lock_file_that_nobody_holds_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("a.jsonl");
        for left_behind in ["", "{\"pid\":1,\"host\":\"here\"}", "{\"pid\":1,\"ho", "{\"p", "\0\0\0"] {
            fs::write(lock_path(&session), left_behind).unwrap();
            let lock = SessionLock::acquire(&session, &owner(8)).unwrap();
            let text = fs::read_to_string(lock_path(&session)).unwrap();
            assert_eq!(text, "{\"pid\":8,\"host\":\"here\"}\n");
            drop(lock);
        }
    }

    #[test]
    fn what_is_no_lock_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (session, other) = (folder.path().join("a.jsonl"), folder.path().join("notes.txt"));
        fs::write(&other, "precious").unwrap();
        fs::copy(&other, lock_path(&session)).unwrap();
        assert!(matches!(SessionLock::acquire(&session, &owner(8)), Err(LockError::Failed(_))));
        assert_eq!(fs::read_to_string(lock_path(&session)).unwrap(), "precious");
        #[cfg(unix)]
        {
            fs::remove_file(lock_path(&session)).unwrap();
            std::os::unix::fs::symlink(&other, lock_path(&session)).unwrap();
            assert!(matches!(SessionLock::acquire(&session, &owner(8)), Err(LockError::Failed(_))));
            assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_session_has_the_sessions_lock() {
        let folder = tempfile::tempdir().unwrap();
        let (session, link) = (folder.path().join("a.jsonl"), folder.path().join("link.jsonl"));
        fs::write(&session, "").unwrap();
        std::os::unix::fs::symlink(&session, &link).unwrap();
        let _held = SessionLock::acquire(&link, &owner(7)).unwrap();
        assert!(matches!(SessionLock::acquire(&session, &owner(8)), Err(LockError::Held(_))));
    }
}
