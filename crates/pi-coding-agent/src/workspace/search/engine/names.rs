//! Matching names, and keeping the first of them.

use std::collections::BinaryHeap;
use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use super::super::{FindQuery, FindResult, SearchError};
use super::collect::PathKey;

/// A pattern of `find` made ready.
#[derive(Clone, Debug)]
pub(in crate::workspace) struct NameMatcher {
    glob: GlobMatcher,
    compared: Compared,
}

/// What a pattern is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    Name,
    PathBelowRoot,
    WholePath,
}

impl NameMatcher {
    pub(in crate::workspace) fn new(query: &FindQuery) -> Result<Self, SearchError> {
        let pattern = if cfg!(windows) { query.pattern.replace('\\', "/") } else { query.pattern.clone() };
        let pattern = without_dot_slash(&pattern);
        let compared = if !pattern.contains('/') {
            Compared::Name
        } else if Path::new(pattern).is_absolute() {
            Compared::WholePath
        } else {
            Compared::PathBelowRoot
        };
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .case_insensitive(pattern == pattern.to_lowercase())
            .build()
            .map_err(|error| SearchError::Glob(error.to_string()))?;
        Ok(Self { glob: glob.compile_matcher(), compared })
    }

    /// Whether an entry matches: `below_root` is its path below the root, `whole` its whole path.
    pub(in crate::workspace) fn matches(&self, below_root: &Path, whole: &Path) -> bool {
        match self.compared {
            Compared::Name => below_root.file_name().is_some_and(|name| self.glob.is_match(name)),
            Compared::PathBelowRoot => self.glob.is_match(below_root),
            Compared::WholePath => self.glob.is_match(whole),
        }
    }
}

/// The pattern without `./` in front, which no path has.
pub(in crate::workspace) fn without_dot_slash(mut pattern: &str) -> &str {
    while let Some(rest) = pattern.strip_prefix("./") {
        pattern = rest.trim_start_matches('/');
    }
    pattern
}

/// The first names in order, of those that come in any order.
#[derive(Debug, Default)]
pub(in crate::workspace) struct FirstNames {
    limit: usize,
    names: BinaryHeap<(PathKey, String)>,
    unreadable: Vec<String>,
}

impl FirstNames {
    /// Room for as many names, and one more to tell that there are more.
    pub(in crate::workspace) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), names: BinaryHeap::new(), unreadable: Vec::new() }
    }

    pub(in crate::workspace) fn add(&mut self, name: String) {
        let key = PathKey::new(&name);
        if self.names.len() > self.limit {
            if self.names.peek().is_some_and(|(last, _)| key >= *last) {
                return;
            }
            self.names.pop();
        }
        self.names.push((key, name));
    }

    /// A directory that could not be read.
    pub(in crate::workspace) fn add_unreadable(&mut self, name: String) {
        self.unreadable.push(name);
    }

    pub(in crate::workspace) fn merge(&mut self, other: Self) {
        self.unreadable.extend(other.unreadable);
        for (_, name) in other.names {
            self.add(name);
        }
    }

    pub(in crate::workspace) fn finish(mut self) -> FindResult {
        self.unreadable.sort_by_cached_key(|name| PathKey::new(name));
        let mut paths: Vec<String> = self.names.into_sorted_vec().into_iter().map(|(_, name)| name).collect();
        let more = paths.len() > self.limit;
        paths.truncate(self.limit);
        FindResult { paths, more, unreadable: self.unreadable }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        let query = FindQuery { pattern: pattern.to_owned(), root: "/r".into(), limit: 1 };
        NameMatcher::new(&query).unwrap().matches(Path::new(path), &Path::new("/r").join(path))
    }

    #[test]
    fn a_pattern_without_a_slash_looks_at_names() {
        assert!(matches("*.rs", "a/b/c.rs"));
        assert!(matches("*", "a/.hidden"));
        assert!(!matches("*.rs", "a.rs/b"));
        assert!(matches("{a,b}.rs", "x/b.rs"));
    }

    #[test]
    fn a_pattern_with_a_slash_starts_at_the_root() {
        assert!(matches("src/*.rs", "src/a.rs"));
        assert!(matches("./src/*.rs", "src/a.rs"));
        assert!(!matches("src/*.rs", "x/src/a.rs"));
        assert!(!matches("src/*.rs", "src/x/a.rs"));
        assert!(matches("**/src/*.rs", "x/src/a.rs"));
        assert!(matches("**/src/*.rs", "src/a.rs"));
        assert!(matches("src/**", "src/x/a.rs"));
        assert!(!matches("src/**", "src"));
        assert!(matches("/r/src/*", "src/a"));
    }

    #[test]
    fn small_letters_match_all_letters() {
        assert!(matches("readme*", "README.md"));
        assert!(!matches("Readme*", "README.md"));
    }

    #[test]
    fn the_first_names_stay_and_one_more_is_known() {
        let mut first = FirstNames::new(2);
        for name in ["c", "a/b", "a", "a.b", "b"] {
            first.add(name.to_owned());
        }
        let mut other = FirstNames::new(2);
        other.add_unreadable("locked/".to_owned());
        first.merge(other);
        let (paths, unreadable) = (vec!["a".to_owned(), "a/b".to_owned()], vec!["locked/".to_owned()]);
        assert_eq!(first.finish(), FindResult { paths, more: true, unreadable });
    }
}
