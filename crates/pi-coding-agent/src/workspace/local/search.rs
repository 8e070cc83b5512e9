//! Searching this machine: a parallel walk.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use ignore::{DirEntry, WalkBuilder, WalkState};
use tokio_util::sync::CancellationToken;

use super::{Access, system};
use crate::workspace::search::engine::{
    Collector, FileSearch, FirstNames, GrepMatcher, NameMatcher, PathKey, glob_override,
};
use crate::workspace::{FileKind, FindQuery, FindResult, GrepQuery, GrepResult, GrepStop, Search, SearchError};

/// Search on this machine, as far as the access goes.
#[derive(Clone, Debug)]
pub struct LocalSearch {
    access: Access,
    /// The user's own ignore rules for all repositories.
    global_rules: Option<PathBuf>,
}

impl LocalSearch {
    /// Search within `access`. In `home` git's rules for all of the user's repositories are looked for.
    #[must_use]
    pub fn new(access: Access, home: Option<&Path>) -> Self {
        Self { access: system::with_real_roots(access), global_rules: home.map(|home| home.join(".config/git/ignore")) }
    }

    fn kind(&self, root: &Path) -> Result<FileKind, SearchError> {
        system::metadata(&self.access, root)
            .map(|metadata| metadata.kind)
            .map_err(|error| SearchError::Root(root.to_owned(), error))
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        match &self.access {
            Access::Unrestricted => File::open(path),
            Access::Confined(_) => system::open(&self.access, path).map(|(file, _)| file),
        }
    }

    fn walk(&self, root: &Path, own_ignore_file: &str) -> WalkBuilder {
        let mut walk = WalkBuilder::new(root);
        walk.current_dir(root)
            .hidden(false)
            .git_global(false)
            .require_git(is_in_repository(root))
            .add_custom_ignore_filename(own_ignore_file)
            .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git")
            .threads(std::thread::available_parallelism().map_or(2, |threads| threads.get().min(12)));
        if let Some(rules) = self.global_rules.as_deref().filter(|rules| rules.exists()) {
            // Rules that cannot be read say nothing.
            let _ = walk.add_ignore(rules);
        }
        walk
    }

    fn grep_blocking(&self, query: &GrepQuery, cancel: &CancellationToken) -> Result<GrepResult, SearchError> {
        let matcher = GrepMatcher::new(query, cancel.clone())?;
        let root = query.root.as_path();
        let collector = Collector::new(&matcher);
        if self.kind(root)? != FileKind::Directory {
            let failed = |error| SearchError::Root(root.to_owned(), error);
            let (file, _) = system::open(&self.access, root).map_err(failed)?;
            let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            collector.add(PathKey::new(&name), FileSearch::new(matcher).search(name, file));
            return finished(cancel, collector.finish());
        }
        let overrides = glob_override(root, query.glob.as_deref())?;
        self.walk(root, ".rgignore").overrides(overrides).build_parallel().run(|| {
            let mut search = FileSearch::new(matcher.clone());
            let collector = &collector;
            Box::new(move |entry| {
                if cancel.is_cancelled() {
                    return WalkState::Quit;
                }
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(error) => {
                        if let Some(name) = unreadable(root, &error) {
                            collector.add_stopped(PathKey::new(&name), name, GrepStop::Unreadable);
                        }
                        return WalkState::Continue;
                    }
                };
                let Some(name) = below(root, &entry) else { return WalkState::Continue };
                let key = PathKey::new(&name);
                if !collector.wants(&key) {
                    // Whatever is below a directory stands behind it.
                    return WalkState::Skip;
                }
                if entry.file_type().is_some_and(|file_type| file_type.is_file()) {
                    match self.open(entry.path()) {
                        Ok(file) => {
                            let searched = search.search(name, file);
                            // A binary file on the way is no news.
                            if !searched.file.lines.is_empty() || searched.file.stopped != Some(GrepStop::Binary) {
                                collector.add(key, searched);
                            }
                        }
                        Err(_) => collector.add_stopped(key, name, GrepStop::Unreadable),
                    }
                }
                WalkState::Continue
            })
        });
        finished(cancel, collector.finish())
    }

    fn find_blocking(&self, query: &FindQuery, cancel: &CancellationToken) -> Result<FindResult, SearchError> {
        let matcher = NameMatcher::new(query)?;
        let root = query.root.as_path();
        if self.kind(root)? != FileKind::Directory {
            return Err(SearchError::NotADirectory(root.to_owned()));
        }
        let first = Mutex::new(FirstNames::new(query.limit));
        self.walk(root, ".fdignore").build_parallel().run(|| {
            let mut own = OwnNames { names: FirstNames::new(query.limit), all: &first };
            let matcher = &matcher;
            Box::new(move |entry| {
                if cancel.is_cancelled() {
                    return WalkState::Quit;
                }
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(error) => {
                        unreadable(root, &error).into_iter().for_each(|name| own.names.add_unreadable(name));
                        return WalkState::Continue;
                    }
                };
                let Ok(below_root) = entry.path().strip_prefix(root) else { return WalkState::Continue };
                if entry.depth() > 0
                    && matcher.matches(below_root, entry.path())
                    && let Some(mut name) = below(root, &entry)
                {
                    if entry.file_type().is_some_and(|file_type| file_type.is_dir()) {
                        name.push('/');
                    }
                    own.names.add(name);
                }
                WalkState::Continue
            })
        });
        let first = first.into_inner().unwrap_or_else(PoisonError::into_inner);
        finished(cancel, first.finish())
    }
}

/// One thread's names; handed over when the thread is done.
struct OwnNames<'a> {
    names: FirstNames,
    all: &'a Mutex<FirstNames>,
}

impl Drop for OwnNames<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.merge(std::mem::take(&mut self.names));
    }
}

/// The path below the root, `/` between its parts; `None` for the root itself.
fn below(root: &Path, entry: &DirEntry) -> Option<String> {
    let below = entry.path().strip_prefix(root).ok()?;
    if below.as_os_str().is_empty() { None } else { Some(with_slashes(below)) }
}

fn with_slashes(path: &Path) -> String {
    let path = path.to_string_lossy();
    if cfg!(windows) { path.replace('\\', "/") } else { path.into_owned() }
}

/// The directory that a walk could not read, below the root and with `/` behind it; `None` for what has vanished
/// meanwhile.
fn unreadable(root: &Path, error: &ignore::Error) -> Option<String> {
    if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return None;
    }
    let below = path_of(error)?.strip_prefix(root).ok()?;
    Some(if below.as_os_str().is_empty() { "./".to_owned() } else { with_slashes(below) + "/" })
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        ignore::Error::Partial(errors) => errors.iter().find_map(path_of),
        _ => None,
    }
}

/// Within a repository the rules of an outer one end at its border; outside of any, `.gitignore` counts all the same.
fn is_in_repository(root: &Path) -> bool {
    root.ancestors().any(|directory| directory.join(".git").exists())
}

fn finished<T>(cancel: &CancellationToken, result: T) -> Result<T, SearchError> {
    if cancel.is_cancelled() { Err(SearchError::Aborted) } else { Ok(result) }
}

#[async_trait]
impl Search for LocalSearch {
    async fn grep(&self, query: GrepQuery, cancel: CancellationToken) -> Result<GrepResult, SearchError> {
        let search = self.clone();
        blocking(move || search.grep_blocking(&query, &cancel)).await
    }

    async fn find(&self, query: FindQuery, cancel: CancellationToken) -> Result<FindResult, SearchError> {
        let search = self.clone();
        blocking(move || search.find_blocking(&query, &cancel)).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SearchError> + Send + 'static,
) -> Result<T, SearchError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that shuts down cancels it.
            Err(_) => Err(SearchError::Aborted),
        },
    }
}
