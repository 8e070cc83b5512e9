//! One change of a file at a time: calls that run in parallel must not undo each other's work.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::workspace::Files;

/// Puts changes of the same file in a row, in the order in which they were asked for; different files do not wait for
/// each other. Clones share the queue: one belongs to a session, and every tool that changes files should join it.
#[derive(Clone, Debug, Default)]
pub struct MutationQueue {
    /// Held while a call finds out which file it is about, so that calls queue in their order.
    registration: Arc<AsyncMutex<()>>,
    files: Arc<Mutex<HashMap<PathBuf, Weak<AsyncMutex<()>>>>>,
}

/// The right to change one file, until dropped.
#[derive(Debug)]
pub struct MutationTurn {
    _guard: OwnedMutexGuard<()>,
}

impl MutationQueue {
    /// Waits for the turn to change a file. Links to one file are one file.
    pub async fn turn(&self, files: &dyn Files, path: &Path) -> MutationTurn {
        let turn = {
            let _registration = self.registration.lock().await;
            let key = real_path(files, path).await;
            let mut turn = Box::pin(self.file(key).lock_owned());
            // Asked once, it has its place in the row.
            match futures::poll!(&mut turn) {
                std::task::Poll::Ready(guard) => return MutationTurn { _guard: guard },
                std::task::Poll::Pending => turn,
            }
        };
        MutationTurn { _guard: turn.await }
    }

    fn file(&self, key: PathBuf) -> Arc<AsyncMutex<()>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|_, file| file.strong_count() > 0);
        if let Some(file) = files.get(&key).and_then(Weak::upgrade) {
            return file;
        }
        let file = Arc::new(AsyncMutex::new(()));
        files.insert(key, Arc::downgrade(&file));
        file
    }
}

/// The real path of a file; where there is none yet, that of the nearest directory above with the rest behind.
async fn real_path(files: &dyn Files, path: &Path) -> PathBuf {
    for above in path.ancestors() {
        match files.real_path(above).await {
            Ok(real) => {
                let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
                return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(_) => break,
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::workspace::memory::MemoryFiles;

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
        assert!(queue.files.lock().unwrap().values().all(|file| file.strong_count() == 0));
    }
}
