//! Searching any files, one after the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use tokio_util::sync::CancellationToken;

use super::super::{FindQuery, FindResult, GrepQuery, GrepResult, GrepStop, Search, SearchError};
use super::names::without_dot_slash;
use super::{Collector, FileSearch, FirstNames, GrepMatcher, NameMatcher, PathKey};
use crate::workspace::{EntryKind, FileKind, Files, read_to_end};

/// Search in files that are reached through [`Files`] only.
#[derive(Clone, Debug)]
pub(in crate::workspace) struct OverFiles {
    files: Arc<dyn Files>,
}

/// The files that a query's glob lets through, below the root.
pub(in crate::workspace) fn glob_override(root: &Path, glob: Option<&str>) -> Result<Override, SearchError> {
    let Some(glob) = glob else { return Ok(Override::empty()) };
    // A pattern never matches a leading `./`, which models like to write.
    let glob = match glob.strip_prefix('!') {
        Some(rest) => format!("!{}", without_dot_slash(rest)),
        None => without_dot_slash(glob).to_owned(),
    };
    let mut builder = OverrideBuilder::new(root);
    let failed = |error: ignore::Error| SearchError::Glob(error.to_string());
    builder.add(&glob).map_err(failed)?;
    builder.build().map_err(failed)
}

impl OverFiles {
    pub(in crate::workspace) fn new(files: Arc<dyn Files>) -> Self {
        Self { files }
    }

    /// Walks the tree below a directory in order of the names.
    async fn walk(
        &self,
        root: &Path,
        overrides: &Override,
        cancel: &CancellationToken,
        visit: &mut (dyn FnMut(Visited<'_>) -> Wanted + Send),
    ) -> Result<Walked, SearchError> {
        let mut walked = Walked::default();
        let mut ahead = vec![Directory { path: root.to_owned(), rules: self.rules_above(root).await }];
        while let Some(Directory { path, mut rules }) = ahead.pop() {
            if cancel.is_cancelled() {
                return Err(SearchError::Aborted);
            }
            let mut entries = match self.files.entries(&path).await {
                Ok(entries) => entries,
                Err(error) => {
                    // What has vanished meanwhile is no news.
                    if error.kind() != std::io::ErrorKind::NotFound {
                        let below = path.strip_prefix(root).unwrap_or(&path);
                        let name = if below.as_os_str().is_empty() { ".".to_owned() } else { shown(below) };
                        walked.unreadable.push(name + "/");
                    }
                    continue;
                }
            };
            if entries.iter().any(|entry| entry.name == ".git") {
                rules.git.clear();
            }
            self.add_rules(&path, &mut rules).await;
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            let mut inner = Vec::new();
            for entry in entries {
                let whole = path.join(&entry.name);
                let is_directory = entry.kind == EntryKind::Directory;
                if entry.name == ".git" || rules.ignore(overrides, &whole, is_directory) {
                    continue;
                }
                let below_root = whole.strip_prefix(root).unwrap_or(&whole);
                if visit(Visited { below_root, whole: &whole, kind: entry.kind }) == Wanted::Yes {
                    walked.wanted.push(whole.clone());
                }
                if is_directory {
                    inner.push(Directory { path: whole, rules: rules.clone() });
                }
            }
            ahead.extend(inner.into_iter().rev());
        }
        Ok(walked)
    }

    /// The rules of the directories above, down from the root of the repository.
    async fn rules_above(&self, root: &Path) -> Rules {
        let mut above: Vec<&Path> = Vec::new();
        for directory in root.ancestors() {
            if directory != root {
                above.push(directory);
            }
            if self.files.metadata(&directory.join(".git")).await.is_ok() {
                break;
            }
        }
        let mut rules = Rules::default();
        for directory in above.into_iter().rev() {
            self.add_rules(directory, &mut rules).await;
        }
        rules
    }

    async fn add_rules(&self, directory: &Path, rules: &mut Rules) {
        rules.git.extend(self.rules_of(directory, ".gitignore").await);
        rules.own.extend(self.rules_of(directory, ".ignore").await);
    }

    async fn rules_of(&self, directory: &Path, name: &str) -> Option<Arc<Gitignore>> {
        let path = directory.join(name);
        let content = read_to_end(self.files.as_ref(), &path).await.ok()?;
        let mut builder = GitignoreBuilder::new(directory);
        for line in String::from_utf8_lossy(&content).lines() {
            // A line that is no pattern says nothing, as with git.
            let _ = builder.add_line(Some(path.clone()), line);
        }
        builder.build().ok().map(Arc::new)
    }
}

/// Rules on the way to a directory, the deeper ones last. `own` are those of `.ignore`: they are the stronger ones.
#[derive(Clone, Debug, Default)]
struct Rules {
    git: Vec<Arc<Gitignore>>,
    own: Vec<Arc<Gitignore>>,
}

impl Rules {
    fn ignore(&self, overrides: &Override, path: &Path, is_directory: bool) -> bool {
        match overrides.matched(path, is_directory) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => {}
        }
        let rules = self.own.iter().rev().chain(self.git.iter().rev());
        let decided = rules.map(|rules| rules.matched(path, is_directory)).find(|found| !found.is_none());
        decided.is_some_and(|found| found.is_ignore())
    }
}

struct Directory {
    path: PathBuf,
    rules: Rules,
}

/// What a walk came upon.
#[derive(Debug, Default)]
struct Walked {
    /// What the visitor wanted.
    wanted: Vec<PathBuf>,
    /// Directories that could not be read, as they are shown.
    unreadable: Vec<String>,
}

/// An entry on the way.
struct Visited<'a> {
    below_root: &'a Path,
    whole: &'a Path,
    kind: EntryKind,
}

#[derive(PartialEq, Eq)]
enum Wanted {
    Yes,
    No,
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/")
}

#[async_trait]
impl Search for OverFiles {
    async fn grep(&self, query: GrepQuery, cancel: CancellationToken) -> Result<GrepResult, SearchError> {
        let matcher = GrepMatcher::new(&query, cancel.clone())?;
        let overrides = glob_override(&query.root, query.glob.as_deref())?;
        let root =
            self.files.metadata(&query.root).await.map_err(|error| SearchError::Root(query.root.clone(), error))?;
        let walked = match root.kind {
            FileKind::Directory => {
                let visit = &mut |visited: Visited<'_>| match visited.kind {
                    EntryKind::File => Wanted::Yes,
                    _ => Wanted::No,
                };
                self.walk(&query.root, &overrides, &cancel, visit).await?
            }
            _ => Walked { wanted: vec![query.root.clone()], unreadable: Vec::new() },
        };
        let collector = Collector::new(&matcher);
        for name in walked.unreadable {
            collector.add_stopped(PathKey::new(&name), name, GrepStop::Unreadable);
        }
        let mut search = FileSearch::new(matcher);
        for path in walked.wanted {
            if cancel.is_cancelled() {
                return Err(SearchError::Aborted);
            }
            let is_root = path == query.root;
            let name = match path.strip_prefix(&query.root) {
                Ok(below) if !is_root => shown(below),
                _ => path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            };
            let key = PathKey::new(&name);
            if !collector.wants(&key) {
                continue;
            }
            match read_to_end(self.files.as_ref(), &path).await {
                Ok(content) => {
                    let searched = search.search(name, content.as_ref());
                    if is_root || searched.file.stopped != Some(GrepStop::Binary) || !searched.file.lines.is_empty() {
                        collector.add(key, searched);
                    }
                }
                Err(error) if is_root => return Err(SearchError::Root(query.root, error)),
                Err(_) => collector.add_stopped(key, name, GrepStop::Unreadable),
            }
        }
        Ok(collector.finish())
    }

    async fn find(&self, query: FindQuery, cancel: CancellationToken) -> Result<FindResult, SearchError> {
        let matcher = NameMatcher::new(&query)?;
        let root =
            self.files.metadata(&query.root).await.map_err(|error| SearchError::Root(query.root.clone(), error))?;
        if root.kind != FileKind::Directory {
            return Err(SearchError::NotADirectory(query.root));
        }
        let mut first = FirstNames::new(query.limit);
        let visit = &mut |visited: Visited<'_>| {
            if matcher.matches(visited.below_root, visited.whole) {
                let slash = if visited.kind == EntryKind::Directory { "/" } else { "" };
                first.add(format!("{}{slash}", shown(visited.below_root)));
            }
            Wanted::No
        };
        let walked = self.walk(&query.root, &Override::empty(), &cancel, visit).await?;
        walked.unreadable.into_iter().for_each(|name| first.add_unreadable(name));
        Ok(first.finish())
    }
}
