//! The lock that several programs share: a folder `<file>.lock` beside a file.
//!
//! Other programs that write the same files take the same lock, so its form is fixed: making the folder is taking the
//! lock, and a folder that nobody has touched for ten seconds belongs to a program that died.

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// How long a lock may stand untouched before its owner counts as dead.
const STALE_AFTER: Duration = Duration::from_secs(10);
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// A held lock; dropping it lets go.
#[derive(Debug)]
pub(crate) struct FileLock {
    folder: PathBuf,
}

impl FileLock {
    /// Takes the lock of a file, waiting up to two seconds for another program. Blocks the thread.
    ///
    /// # Errors
    /// When another program holds it all the time, or the folder cannot be made.
    pub(crate) fn acquire(file: &Path) -> io::Result<Self> {
        let mut name = file.as_os_str().to_owned();
        name.push(".lock");
        let folder = PathBuf::from(name);
        for _ in 0..ATTEMPTS {
            match std::fs::create_dir(&folder) {
                Ok(()) => return Ok(Self { folder }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if !remove_if_stale(&folder)? {
                        std::thread::sleep(PAUSE);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        let message =
            format!("another program holds {}; if none is running, remove that folder and try again", folder.display());
        Err(io::Error::new(io::ErrorKind::WouldBlock, message))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Nothing can be done about a failure; the lock then ages and is taken over.
        drop(std::fs::remove_dir(&self.folder));
    }
}

/// Removes a lock whose owner is dead. It is moved aside first: a move has one winner, so that of two programs that
/// find the same dead lock only one removes it, and never the other's new one.
fn remove_if_stale(folder: &Path) -> io::Result<bool> {
    if !is_stale(folder) {
        return Ok(false);
    }
    let aside = folder.with_extension(format!("lock.stale-{}", std::process::id()));
    match std::fs::rename(folder, &aside) {
        Ok(()) if is_stale(&aside) => {
            std::fs::remove_dir(&aside)?;
            Ok(true)
        }
        // It was replaced in between by a live one: give it back.
        Ok(()) => std::fs::rename(&aside, folder).map(|()| false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

fn is_stale(folder: &Path) -> bool {
    let modified = std::fs::metadata(folder).and_then(|metadata| metadata.modified());
    let age = |modified| SystemTime::now().duration_since(modified).unwrap_or_default();
    modified.is_ok_and(|modified| age(modified) > STALE_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_keeps_others_out_and_is_free_after_drop() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        let lock = FileLock::acquire(&file).unwrap();
        assert!(dir.path().join("settings.json.lock").is_dir());
        let waiting = std::thread::spawn({
            let file = file.clone();
            move || FileLock::acquire(&file).map(drop)
        });
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waiting.is_finished());
        drop(lock);
        waiting.join().unwrap().unwrap();
        assert!(!dir.path().join("settings.json.lock").exists());
    }

    #[test]
    fn a_lock_whose_owner_died_is_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        let folder = dir.path().join("settings.json.lock");
        std::fs::create_dir(&folder).unwrap();
        let old = SystemTime::now() - Duration::from_secs(60);
        std::fs::File::open(&folder).unwrap().set_modified(old).unwrap();
        drop(FileLock::acquire(&file).unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
