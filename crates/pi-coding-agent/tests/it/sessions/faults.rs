//! A disk that fails: each operation in turn, in each way.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use pi_ai::Message;
use pi_coding_agent::session::{
    Access, Durability, EntryId, ListOptions, NewSession, SessionEnvironment, SessionFolder, SessionManager,
    SyncPolicy,
    store::disk::{Disk, DiskFile, FileFacts, OpenMode, SystemDisk},
};

use super::{HEADER, line, names_in};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    NoSpace,
    Io,
    ReadOnly,
    /// The write stops in the middle, and the next one finds no space.
    ShortWrite,
    /// Writes take one byte less than half, again and again, and succeed.
    Slow,
}

impl Fault {
    fn error(self) -> io::Error {
        let code = match self {
            Self::NoSpace | Self::ShortWrite | Self::Slow => 28,
            Self::Io => 5,
            Self::ReadOnly => 30,
        };
        io::Error::from_raw_os_error(code)
    }
}

/// Fails its `fail_at`th operation.
#[derive(Clone)]
struct FaultyDisk {
    shared: Arc<Shared>,
}

struct Shared {
    fault: Fault,
    fail_at: usize,
    operations: AtomicUsize,
    /// How often a file or a folder was forced to the disk.
    syncs: AtomicUsize,
    /// What failed, for messages.
    failed: Mutex<Option<&'static str>>,
}

impl FaultyDisk {
    fn new(fault: Fault, fail_at: usize) -> Self {
        let shared = Shared {
            fault,
            fail_at,
            operations: AtomicUsize::new(0),
            syncs: AtomicUsize::new(0),
            failed: Mutex::new(None),
        };
        Self { shared: Arc::new(shared) }
    }

    fn step(&self, what: &'static str) -> io::Result<()> {
        if self.shared.fault == Fault::ShortWrite {
            // Only writes can be short, and count.
            return Ok(());
        }
        let operation = self.shared.operations.fetch_add(1, Ordering::Relaxed);
        let fails = operation == self.shared.fail_at && self.shared.fault != Fault::Slow;
        if fails {
            *self.shared.failed.lock().unwrap() = Some(what);
            return Err(self.shared.fault.error());
        }
        Ok(())
    }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        self.step("open")?;
        Ok(Arc::new(FaultyFile { disk: self.clone(), file: SystemDisk.open(path, mode)? }))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.step("create")?;
        Ok(Arc::new(FaultyFile { disk: self.clone(), file: SystemDisk.create(path)? }))
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step("rename_new")?;
        SystemDisk.rename_new(from, to)
    }

    fn copy_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step("copy_new")?;
        SystemDisk.copy_new(from, to)
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step("replace")?;
        SystemDisk.replace(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        SystemDisk.remove(path)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.step("create_folder")?;
        SystemDisk.create_folder(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.step("list")?;
        SystemDisk.list(path)
    }

    fn facts(&self, path: &Path) -> io::Result<FileFacts> {
        self.step("facts")?;
        SystemDisk.facts(path)
    }

    fn sync_folder(&self, _path: &Path) -> io::Result<()> {
        self.shared.syncs.fetch_add(1, Ordering::Relaxed);
        self.step("sync_folder")
    }
}

struct FaultyFile {
    disk: FaultyDisk,
    file: Arc<dyn DiskFile>,
}

impl DiskFile for FaultyFile {
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        self.disk.step("read_at")?;
        self.file.read_at(at, into)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let shared = &self.disk.shared;
        match shared.fault {
            Fault::Slow => self.file.append(&bytes[..bytes.len().div_ceil(2)]),
            Fault::ShortWrite => match shared.operations.fetch_add(1, Ordering::Relaxed).checked_sub(shared.fail_at) {
                Some(0) => {
                    *shared.failed.lock().unwrap() = Some("append");
                    self.file.append(&bytes[..bytes.len() / 2])
                }
                Some(1) => Err(shared.fault.error()),
                _ => self.file.append(bytes),
            },
            _ => {
                self.disk.step("append")?;
                self.file.append(bytes)
            }
        }
    }

    fn facts(&self) -> io::Result<FileFacts> {
        self.disk.step("file facts")?;
        self.file.facts()
    }

    fn sync(&self) -> io::Result<()> {
        // The power is not cut here, and forcing a disk takes a while.
        self.disk.shared.syncs.fetch_add(1, Ordering::Relaxed);
        self.disk.step("sync")
    }
}

/// What a user does in a day. Gives every entry that was acknowledged, with its file.
async fn day(folder: &Path, environment: &SessionEnvironment) -> Vec<(PathBuf, EntryId)> {
    let mut acknowledged = Vec::new();
    let new = NewSession { cwd: "/project".into(), ..NewSession::default() };
    let session = SessionManager::create(&folder.join("sessions"), new, environment.clone()).unwrap();
    for number in 0..4 {
        if let Ok(appended) = session.append_message(Message::user(format!("message {number}"))).await {
            acknowledged.push((session.path().unwrap(), appended.id));
        }
        let _ = session.end_turn().await;
    }
    let leaf = session.leaf_id();
    let _ = session.append_session_info("a name").await;
    if let Some(leaf) = leaf {
        let _ = session.append_label_change(&leaf, Some("x")).await;
        let _ = session.branch(&leaf).await;
        if let Ok(fork) = session.branched(&leaf).await
            && let Ok(appended) = fork.append_message(Message::user("in the fork")).await
        {
            acknowledged.push((fork.path().unwrap(), appended.id));
        }
    }
    let _ = session.refresh().await;
    if let Ok(appended) = session.append_message(Message::user("last")).await {
        acknowledged.push((session.path().unwrap(), appended.id));
    }
    let memory = session.with(|session| {
        let entries = session.entries().map(|entry| (entry.id, entry.parent_id));
        entries.collect::<Vec<_>>()
    });
    let path = session.path().unwrap();
    drop(session);
    // What the program knew is what is on the disk.
    if path.exists() {
        let read = SessionManager::open(&path, Access::ReadOnly, folder, SessionEnvironment::default()).await.unwrap();
        for entry in memory {
            let summary = read.with(|read| read.summary(entry.0.as_str())).expect("the file has what memory has");
            assert_eq!(summary.parent_id, entry.1);
        }
    }

    let old = folder.join("old.jsonl");
    std::fs::write(&old, "{\"type\":\"session\",\"id\":\"o\"}\n{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"old\"}}\n").unwrap();
    let torn = folder.join("torn.jsonl");
    std::fs::write(&torn, format!("{HEADER}\n{}\n{{\"type", line("a", None, "one"))).unwrap();
    let place = SessionFolder::chosen(&folder.join("sessions"), Path::new("/agent"), Path::new("/project"));
    for file in [&old, &torn, &path] {
        let before = std::fs::read(file).unwrap_or_default();
        match SessionManager::open(file, Access::Write, folder, environment.clone()).await {
            Ok(session) => {
                if let Ok(appended) = session.append_message(Message::user("again")).await {
                    acknowledged.push((file.clone(), appended.id));
                }
            }
            Err(_) => {
                // It may have been closed, or rewritten from an older version, before it failed.
                let after = std::fs::read(file).unwrap_or_default();
                let kept = std::fs::read(file.with_extension("jsonl.v1")).unwrap_or_default();
                let is_closed = after == [&before[..], b"\n"].concat();
                assert!(after == before || is_closed || kept == before, "a file changed, but was not opened");
            }
        }
        let _ = SessionManager::fork_from(file, &place, None, environment.clone()).await;
        let _ = SessionManager::import(file, &place, environment.clone()).await;
    }
    let _ = place.sessions(ListOptions::default(), environment).await;
    let _ = place.most_recent(environment).await;
    acknowledged
}

async fn check(acknowledged: Vec<(PathBuf, EntryId)>, what: &str) {
    for (path, id) in acknowledged {
        let reader = SessionManager::open(&path, Access::ReadOnly, Path::new("/"), SessionEnvironment::default()).await;
        let reader = reader.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(reader.with(|session| session.contains(id.as_str())), "{what}: {id} is lost");
        let again = SessionManager::open(&path, Access::Write, Path::new("/"), SessionEnvironment::default()).await;
        again.unwrap_or_else(|error| panic!("{what}: {error}")).append_session_info("on").await.unwrap();
    }
}

async fn run(fault: Fault, fail_at: usize) -> Option<&'static str> {
    let folder = tempfile::tempdir().unwrap();
    let disk = FaultyDisk::new(fault, fail_at);
    let environment =
        SessionEnvironment { disk: Arc::new(disk.clone()), sync: SyncPolicy::PerTurn, ..SessionEnvironment::default() };
    let acknowledged = day(folder.path(), &environment).await;
    let failed = *disk.shared.failed.lock().unwrap();
    check(acknowledged, &format!("{fault:?} at {fail_at} ({failed:?})")).await;
    let leftovers = names_in(folder.path()).into_iter().chain(names_in_or_none(&folder.path().join("sessions")));
    let leftovers: Vec<String> = leftovers.filter(|name| name.ends_with(".tmp") || name.ends_with(".lock")).collect();
    assert_eq!(leftovers, [""; 0], "{fault:?} at {fail_at} ({failed:?})");
    failed
}

fn names_in_or_none(folder: &Path) -> Vec<String> {
    if folder.exists() { names_in(folder) } else { Vec::new() }
}

async fn fails_anywhere(fault: Fault) {
    let mut fail_at = 0;
    // Until the day ends before anything fails.
    while run(fault, fail_at).await.is_some() {
        fail_at += 1;
    }
    assert!(fail_at > 10, "only {fail_at} operations");
}

#[tokio::test]
async fn a_full_disk_loses_nothing_that_was_acknowledged() {
    fails_anywhere(Fault::NoSpace).await;
}

#[tokio::test]
async fn a_failing_disk_loses_nothing_that_was_acknowledged() {
    fails_anywhere(Fault::Io).await;
}

#[tokio::test]
async fn a_disk_that_becomes_read_only_loses_nothing_that_was_acknowledged() {
    fails_anywhere(Fault::ReadOnly).await;
}

#[tokio::test]
async fn a_write_that_stops_in_the_middle_loses_nothing_that_was_acknowledged() {
    fails_anywhere(Fault::ShortWrite).await;
}

#[tokio::test]
async fn writes_that_come_in_small_parts_are_completed() {
    assert_eq!(run(Fault::Slow, 0).await, None);
}

#[tokio::test]
async fn the_setting_says_when_a_session_is_forced_to_the_disk_from_its_first_entry_on() {
    // An entry that makes the file forces its folder, too.
    for (sync, after_first, after_second, after_turn) in
        [(SyncPolicy::PerEntry, 2, 3, 3), (SyncPolicy::PerTurn, 0, 0, 2), (SyncPolicy::Never, 0, 0, 0)]
    {
        let folder = tempfile::tempdir().unwrap();
        let disk = FaultyDisk::new(Fault::Slow, usize::MAX);
        let environment = SessionEnvironment { disk: Arc::new(disk.clone()), sync, ..SessionEnvironment::default() };
        let new = NewSession { cwd: "/project".into(), ..NewSession::default() };
        let session = SessionManager::create(folder.path(), new, environment).unwrap();
        let syncs = || disk.shared.syncs.load(Ordering::Relaxed);
        let first = session.append_message(Message::user("one")).await.unwrap();
        assert_eq!(syncs(), after_first, "{sync:?}");
        let synced = sync == SyncPolicy::PerEntry;
        assert_eq!(first.durability, if synced { Durability::Synced } else { Durability::Written });
        session.append_message(Message::user("two")).await.unwrap();
        assert_eq!(syncs(), after_second, "{sync:?}");
        session.end_turn().await.unwrap();
        assert_eq!(syncs(), after_turn, "{sync:?}");
        drop(session);
        assert_eq!(syncs(), after_turn, "{sync:?}");
    }
}
