//! The search half of a workspace.

#[cfg(feature = "search")]
pub(in crate::workspace) mod engine;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

/// A text to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// A regular expression.
    Regex(String),
    /// The text itself.
    Literal(String),
}

/// Whether upper and lower case differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaseRule {
    /// They differ.
    #[default]
    Sensitive,
    /// They are equal.
    Insensitive,
}

/// What to look for in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepQuery {
    /// The text to look for.
    pub pattern: Pattern,
    /// Whether upper and lower case differ.
    pub case: CaseRule,
    /// The file or directory to search, an absolute path.
    pub root: PathBuf,
    /// Only files that this glob matches, or all but those when it starts with `!`. Without `/` it is
    /// compared with file names at any depth, else with paths below `root`.
    pub glob: Option<String>,
    /// Lines to give before and after each match.
    pub context: usize,
    /// Most matching lines to give; at least one is given.
    pub limit: usize,
    /// UTF-16 units of a line to give.
    pub line_units: usize,
    /// Bytes of text to give; lines beyond come with their length only.
    pub text_bytes: usize,
}

/// Why a line is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrepLineKind {
    /// It matches.
    Match,
    /// It stands near a match, or matches beyond the limit.
    Context,
}

/// One line of a file, without its line break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepLine {
    /// Its number, from 1.
    pub number: u64,
    /// Why it is given.
    pub kind: GrepLineKind,
    /// Its text, cut to what the query allows; `None` when the text given before used that up.
    pub text: Option<String>,
    /// Bytes of its text after the cut, whether or not it is given.
    pub len: usize,
    /// Whether something was cut off.
    pub shortened: bool,
}

/// The lines found in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepFile {
    /// Its path below the root with `/` between the parts, or its name when the root is the file.
    pub path: String,
    /// The lines in order.
    pub lines: Vec<GrepLine>,
    /// Set when the file was not searched to its end.
    pub stopped: Option<GrepStop>,
}

/// Why a file was not searched to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrepStop {
    /// It is binary from here on (a NUL byte).
    Binary,
    /// It has a line that is too long to hold in memory.
    LongLine,
    /// It could not be read.
    Unreadable,
}

/// What was found, files in order of their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrepResult {
    /// Files with lines to give.
    pub files: Vec<GrepFile>,
    /// Whether there is at least one more match than the limit let through.
    pub more: bool,
    /// Files without lines that were not searched to their end, but for binary ones met on the way, and directories
    /// that could not be read (with `/` behind them).
    pub stopped: Vec<(String, GrepStop)>,
}

/// Which names to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindQuery {
    /// A glob. Without `/` it is compared with names at any depth, else with paths below `root`, or with whole
    /// paths when it is absolute. Written all in lower case it ignores case.
    pub pattern: String,
    /// The directory to search, an absolute path.
    pub root: PathBuf,
    /// Most paths to give; at least one is given.
    pub limit: usize,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindResult {
    /// Paths below the root in order, `/` between the parts and behind directories.
    pub paths: Vec<String>,
    /// Whether there is at least one more than the limit let through.
    pub more: bool,
    /// Directories that could not be read, in order, with `/` behind them.
    pub unreadable: Vec<String>,
}

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The place to search cannot be reached.
    #[error("{}", .1)]
    Root(PathBuf, #[source] io::Error),
    /// `find` was pointed at something else than a directory.
    #[error("Not a directory: {}", .0.display())]
    NotADirectory(PathBuf),
    /// The regular expression cannot be read.
    #[error("The pattern is not a regular expression that can be used ({0}). Set `literal` to look for it as it is.")]
    Pattern(String),
    /// The glob cannot be read.
    #[error("The glob cannot be used: {0}")]
    Glob(String),
    /// The caller cancelled.
    #[error("Operation aborted")]
    Aborted,
    /// This build or this workspace cannot search.
    #[error("This build has no search: it was built without the `search` feature.")]
    Unsupported,
}

/// Searching trees of files. Ignore files are honoured, hidden files are searched, `.git` is not, links are not followed.
#[async_trait]
pub trait Search: fmt::Debug + Send + Sync + 'static {
    /// Looks for a text in files. A root that is a file is searched even where it would be ignored.
    async fn grep(&self, query: GrepQuery, cancel: CancellationToken) -> Result<GrepResult, SearchError>;

    /// Looks for names.
    async fn find(&self, query: FindQuery, cancel: CancellationToken) -> Result<FindResult, SearchError>;
}

/// A search that finds nothing because there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSearch;

#[async_trait]
impl Search for NoSearch {
    async fn grep(&self, _query: GrepQuery, _cancel: CancellationToken) -> Result<GrepResult, SearchError> {
        Err(SearchError::Unsupported)
    }

    async fn find(&self, _query: FindQuery, _cancel: CancellationToken) -> Result<FindResult, SearchError> {
        Err(SearchError::Unsupported)
    }
}

/// Search in any files, one after the other: for workspaces whose files cannot be searched where they are.
#[must_use]
pub fn search_over_files(files: Arc<dyn super::Files>) -> Arc<dyn Search> {
    #[cfg(feature = "search")]
    return Arc::new(engine::OverFiles::new(files));
    #[cfg(not(feature = "search"))]
    {
        drop(files);
        Arc::new(NoSearch)
    }
}
