//! One change of a file at a time: calls that run in parallel must not undo each other's work.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::workspace::{FileIdentity, Files};

/// Puts changes of the same file in a row, in the order in which they were asked for; different files do not wait for
/// each other. Clones share the queue: one belongs to a session, and every tool that changes files should join it.
///
/// Names of one file (links, hard links, a path through a linked directory) share its row. Calls that use different
/// names stand in it in the order in which the names were found out to be one file.
#[derive(Clone, Debug, Default)]
pub struct MutationQueue {
    rows: Arc<Mutex<HashMap<Row, Weak<AsyncMutex<()>>>>>,
}

/// What calls wait for: first for the name, so that they keep their order while it is found out what it stands for,
/// then for the file.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Row {
    Name(PathBuf),
    File(FileIdentity),
}

/// The right to change one file, until dropped.
#[derive(Debug)]
pub struct MutationTurn {
    _file: OwnedMutexGuard<()>,
    _name: OwnedMutexGuard<()>,
}

impl MutationQueue {
    /// Waits for the turn to change a file. Links to one file are one file.
    pub async fn turn(&self, files: &dyn Files, path: &Path) -> MutationTurn {
        // Nothing that holds a file waits for a name, so that no two calls can wait for each other.
        let name = self.row(Row::Name(path.to_owned())).lock_owned().await;
        let identity = identity(files, path).await;
        let file = self.row(Row::File(identity)).lock_owned().await;
        MutationTurn { _file: file, _name: name }
    }

    fn row(&self, key: Row) -> Arc<AsyncMutex<()>> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.retain(|_, row| row.strong_count() > 0);
        if let Some(row) = rows.get(&key).and_then(Weak::upgrade) {
            return row;
        }
        let row = Arc::new(AsyncMutex::new(()));
        rows.insert(key, Arc::downgrade(&row));
        row
    }
}

/// Which file it is; where there is none yet, the real path of the nearest directory above with the rest behind.
async fn identity(files: &dyn Files, path: &Path) -> FileIdentity {
    match files.identity(path).await {
        Ok(identity) => identity,
        Err(error) if is_missing(&error) => FileIdentity::Path(real_path_to_be(files, path).await),
        Err(_) => FileIdentity::Path(path.to_owned()),
    }
}

async fn real_path_to_be(files: &dyn Files, path: &Path) -> PathBuf {
    for above in path.ancestors().skip(1) {
        match files.real_path(above).await {
            Ok(real) => return real.join(path.strip_prefix(above).unwrap_or(Path::new(""))),
            Err(error) if is_missing(&error) => {}
            Err(_) => break,
        }
    }
    path.to_owned()
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::workspace::memory::MemoryFiles;
    use crate::workspace::{Entry, Metadata, OpenedFile, TemporaryFile};

    #[tokio::test(start_paused = true)]
    async fn changes_of_one_file_come_in_the_order_they_were_asked_for() {
        let queue = MutationQueue::default();
        let files = MemoryFiles::new([("/a", ""), ("/b", "")]);
        let log = Mutex::new(Vec::new());
        let change = async |name: &'static str, path: &'static str, duration: u64| {
            let _turn = queue.turn(&files, Path::new(path)).await;
            log.lock().unwrap().push(format!("{name} begins"));
            tokio::time::sleep(Duration::from_millis(duration)).await;
            log.lock().unwrap().push(format!("{name} ends"));
        };
        tokio::join!(change("first", "/a", 30), change("second", "/a", 10), change("other", "/b", 20));
        let log = log.into_inner().unwrap();
        assert_eq!(log, ["first begins", "other begins", "other ends", "first ends", "second begins", "second ends"]);
        assert!(queue.rows.lock().unwrap().values().all(|row| row.strong_count() == 0));
    }

    /// Files of which one cannot be found out about for a while.
    #[derive(Debug)]
    struct SlowFile(MemoryFiles);

    #[async_trait::async_trait]
    impl Files for SlowFile {
        async fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
            if path == Path::new("/slow") {
                tokio::time::sleep(Duration::from_secs(1000)).await;
            }
            self.0.real_path(path).await
        }

        async fn metadata(&self, path: &Path) -> io::Result<Metadata> {
            self.0.metadata(path).await
        }

        async fn entries(&self, path: &Path) -> io::Result<Vec<Entry>> {
            self.0.entries(path).await
        }

        async fn open(&self, path: &Path) -> io::Result<OpenedFile> {
            self.0.open(path).await
        }

        async fn replace(&self, path: &Path, content: Vec<bytes::Bytes>) -> io::Result<()> {
            self.0.replace(path, content).await
        }

        async fn check_writable(&self, path: &Path) -> io::Result<()> {
            self.0.check_writable(path).await
        }

        async fn create_dir_all(&self, path: &Path) -> io::Result<()> {
            self.0.create_dir_all(path).await
        }

        async fn create_temporary(&self, prefix: &str) -> io::Result<TemporaryFile> {
            self.0.create_temporary(prefix).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_does_not_answer_keeps_no_other_waiting() {
        let queue = MutationQueue::default();
        let files = SlowFile(MemoryFiles::new([("/slow", ""), ("/quick", "")]));
        let slow = queue.turn(&files, Path::new("/slow"));
        let quick = async {
            let started = tokio::time::Instant::now();
            let _turn = queue.turn(&files, Path::new("/quick")).await;
            assert!(started.elapsed() < Duration::from_secs(1));
        };
        tokio::join!(slow, quick);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn hard_links_are_one_file() {
        use crate::workspace::local::{Access, LocalFiles};

        let folder = tempfile::tempdir().unwrap();
        let name = |name: &str| folder.path().join(name);
        std::fs::write(name("one"), "").unwrap();
        std::fs::hard_link(name("one"), name("two")).unwrap();
        let files = LocalFiles::new(Access::Unrestricted, folder.path().to_owned());
        let queue = MutationQueue::default();
        let first = queue.turn(&files, &name("one")).await;
        let second = async { queue.turn(&files, &name("two")).await };
        assert!(tokio::time::timeout(Duration::from_millis(200), second).await.is_err(), "it should have to wait");
        drop(first);
        queue.turn(&files, &name("two")).await;
    }
}
