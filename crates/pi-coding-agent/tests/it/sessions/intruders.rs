//! Programs that take no lock and write at the worst moment.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use pi_coding_agent::session::{
    Access, EntryBody, SessionEnvironment, SessionError, SessionManager, diagnose_session, repair_session,
    store::disk::{Disk, DiskFile, FileFacts, OpenMode, SystemDisk},
};

use super::{HEADER, file, file_of, line, names_in, notices, said, say};

/// When another program appends.
#[derive(Clone, Copy, PartialEq)]
enum Moment {
    /// The old file is about to get its second name.
    BeforeKeeping,
    /// The new file is about to take the name.
    BeforeReplacing,
    /// Somebody has looked at the file's size.
    AfterLooking,
}

/// A disk on which another program appends to `target`, so often.
struct Intruded {
    target: PathBuf,
    text: String,
    moment: Moment,
    times: AtomicUsize,
}

impl Intruded {
    fn environment(target: &Path, text: &str, moment: Moment, times: usize) -> SessionEnvironment {
        SessionEnvironment {
            disk: Self::disk(target, &format!("{text}\n"), moment, times),
            ..SessionEnvironment::default()
        }
    }

    fn disk(target: &Path, text: &str, moment: Moment, times: usize) -> Arc<Self> {
        let (target, text, times) = (target.to_owned(), text.to_owned(), AtomicUsize::new(times));
        Arc::new(Self { target, text, moment, times })
    }

    fn intrude(&self, moment: Moment) -> io::Result<()> {
        let left = self.times.load(Ordering::SeqCst);
        if moment != self.moment || left == 0 {
            return Ok(());
        }
        self.times.store(left - 1, Ordering::SeqCst);
        std::fs::OpenOptions::new().append(true).open(&self.target)?.write_all(self.text.as_bytes())
    }
}

impl Disk for Intruded {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        SystemDisk.open(path, mode)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        SystemDisk.create(path)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        SystemDisk.rename_new(from, to)
    }

    fn copy_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.intrude(Moment::BeforeKeeping)?;
        SystemDisk.copy_new(from, to)
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.intrude(Moment::BeforeReplacing)?;
        SystemDisk.replace(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        SystemDisk.remove(path)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        SystemDisk.create_folder(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        SystemDisk.list(path)
    }

    fn facts(&self, path: &Path) -> io::Result<FileFacts> {
        let facts = SystemDisk.facts(path);
        if path == self.target {
            self.intrude(Moment::AfterLooking)?;
        }
        facts
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        SystemDisk.sync_folder(path)
    }
}

const OLD_HEADER: &str = r#"{"type":"session","id":"o","cwd":"/p"}"#;
const OLD: &str = r#"{"type":"message","message":{"role":"user","content":"old"}}"#;
const THEIRS: &str = r#"{"type":"message","message":{"role":"user","content":"theirs"}}"#;

async fn open(path: &Path, environment: SessionEnvironment) -> Result<SessionManager, SessionError> {
    SessionManager::open(path, Access::Write, Path::new("/"), environment).await
}

#[tokio::test]
async fn what_is_appended_during_a_migration_is_migrated_too() {
    for last_line_break in ["\n", ""] {
        let theirs = if last_line_break.is_empty() { format!("\n{THEIRS}") } else { THEIRS.to_owned() };
        let (folder, path) = file_of(format!("{OLD_HEADER}\n{OLD}{last_line_break}").as_bytes());
        let environment = Intruded::environment(&path, &theirs, Moment::BeforeKeeping, 2);
        let session = open(&path, environment).await.unwrap();
        assert_eq!(said(&session), ["old", "theirs", "theirs"]);
        assert_eq!(notices(&session).len(), 1, "{:?}", notices(&session));
        assert_eq!(names_in(folder.path()), ["session.jsonl", "session.jsonl.lock", "session.jsonl.v1"]);
        let kept = std::fs::read_to_string(folder.path().join("session.jsonl.v1")).unwrap();
        assert_eq!(kept.matches("theirs").count(), 2);
    }
}

#[tokio::test]
async fn a_file_that_grows_again_and_again_is_not_migrated() {
    let (folder, path) = file(&[OLD_HEADER, OLD]);
    let error = open(&path, Intruded::environment(&path, THEIRS, Moment::BeforeKeeping, 1000)).await.unwrap_err();
    assert!(matches!(error, SessionError::KeepsGrowing { .. }), "{error}");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(&format!("{OLD_HEADER}\n{OLD}\n{THEIRS}\n{THEIRS}\n")), "{text}");
    assert_eq!(names_in(folder.path()), ["session.jsonl"]);
}

#[tokio::test]
async fn what_is_appended_in_the_moment_of_the_renaming_is_told() {
    let (folder, path) = file(&[OLD_HEADER, OLD]);
    let session = open(&path, Intruded::environment(&path, THEIRS, Moment::BeforeReplacing, 1)).await.unwrap();
    assert_eq!(said(&session), ["old"]);
    let told = format!("{} bytes", THEIRS.len() + 1);
    assert!(notices(&session).iter().any(|notice| notice.contains(&told)), "{:?}", notices(&session));
    let kept = std::fs::read_to_string(folder.path().join("session.jsonl.v1")).unwrap();
    assert!(kept.ends_with(&format!("{THEIRS}\n")));
}

#[tokio::test]
async fn what_is_appended_during_a_repair_is_in_the_repaired_file() {
    let (folder, path) = file(&[HEADER, &line("a", None, "one"), "{\"torn"]);
    let theirs = line("b", Some("a"), "theirs");
    let environment = Intruded::environment(&path, &theirs, Moment::BeforeKeeping, 1);
    let repaired = repair_session(&path, Path::new("/"), &environment).unwrap();
    assert_eq!((repaired.diagnosis.entries, repaired.left_in_old_file), (2, 0));
    assert!(diagnose_session(&path, &environment).unwrap().is_sound());
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().last().unwrap(), theirs);
    assert_eq!(names_in(folder.path()), ["session.jsonl", "session.jsonl.damaged"]);
}

#[tokio::test]
async fn a_file_that_grows_again_and_again_is_not_repaired() {
    let (folder, path) = file(&[HEADER, &line("a", None, "one"), "{\"torn"]);
    let environment = Intruded::environment(&path, &line("b", Some("a"), "theirs"), Moment::BeforeKeeping, 1000);
    let error = repair_session(&path, Path::new("/"), &environment).unwrap_err();
    assert!(matches!(error, SessionError::KeepsGrowing { .. }), "{error}");
    assert!(std::fs::read_to_string(&path).unwrap().contains("{\"torn\n"));
    assert_eq!(names_in(folder.path()), ["session.jsonl"]);

    let environment = Intruded::environment(&path, "{}", Moment::BeforeReplacing, 1);
    let repaired = repair_session(&path, Path::new("/"), &environment).unwrap();
    assert_eq!(repaired.left_in_old_file, 3);
}

#[tokio::test]
async fn an_entry_that_lands_behind_a_foreign_one_is_found_there() {
    // A line that breaks off swallows ours, which is then written again.
    let whole = line("b", Some("a"), "theirs, and rather long, so that it covers ours") + "\n";
    for (theirs, foreign) in [(whole, 1), ("{\"torn".into(), 0)] {
        let (_folder, path) = file(&[HEADER, &line("a", None, "one")]);
        let disk = Intruded::disk(&path, &theirs, Moment::AfterLooking, 0);
        let environment = SessionEnvironment { disk: disk.clone(), ..SessionEnvironment::default() };
        let session = open(&path, environment).await.unwrap();
        disk.times.store(1, Ordering::SeqCst);
        let mine = say(&session, "mine").await;
        assert_eq!(session.leaf_id().as_ref(), Some(&mine));
        assert_eq!(said(&session), ["one", "mine"], "{theirs}");
        assert_ne!(session.entry(mine.as_str()).unwrap().body, EntryBody::Unreadable, "{theirs}");
        assert_eq!(session.with(|session| session.contains("b")), foreign == 1);
        let told = notices(&session).iter().filter(|notice| notice.contains("written 1 entries")).count();
        assert_eq!(told, foreign, "{:?}", notices(&session));
        say(&session, "next").await;
        let copy = session.branched(&session.leaf_id().unwrap()).await.unwrap();
        assert_eq!(said(&copy), ["one", "mine", "next"], "{theirs}");
        let memory = session.with(|session| session.entries().collect::<Vec<_>>());
        drop(session);
        let again = open(&path, SessionEnvironment::default()).await.unwrap();
        assert_eq!(said(&again), ["one", "mine", "next"], "{theirs}");
        assert_eq!(again.with(|session| session.entries().collect::<Vec<_>>()), memory);
    }
}
