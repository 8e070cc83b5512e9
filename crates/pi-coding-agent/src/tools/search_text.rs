//! What `grep` and `find` share in what they say.

use pi_agent_core::ToolError;

use super::shown_name::shown_name;
use super::truncate::{Limits, MAX_BYTES, Truncation, truncate_head};
use crate::workspace::SearchError;

/// Lines of a result as far as they fit; the rest is counted.
#[derive(Debug, Default)]
pub(super) struct CutText {
    text: String,
    lines: usize,
    bytes: usize,
}

impl CutText {
    /// Adds a line.
    pub(super) fn push(&mut self, line: &str) {
        // The first line that does not fit is kept, so that the cut sees it.
        if self.bytes <= MAX_BYTES {
            if self.lines > 0 {
                self.text.push('\n');
            }
            self.text.push_str(line);
        }
        self.count(line.len());
    }

    /// Counts a line of that many bytes that is known not to fit.
    pub(super) fn count(&mut self, bytes: usize) {
        self.bytes += bytes + usize::from(self.lines > 0);
        self.lines += 1;
    }

    /// The text cut to the byte limit, with the counts of all lines.
    pub(super) fn finish(self) -> Truncation {
        Truncation { total_lines: self.lines, total_bytes: self.bytes, ..truncate_head(&self.text, Limits::BYTES_ONLY) }
    }
}

/// Files and directories that a note names.
const NAMED: usize = 3;

/// A note about some paths that names the first of them; none when there are none.
pub(super) fn note_about(words: &str, paths: &[&str]) -> Option<String> {
    let named: Vec<_> = paths.iter().take(NAMED).map(|path| shown_name(path)).collect();
    let more = match paths.len() - named.len() {
        _ if named.is_empty() => return None,
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("{words}: {}{more}", named.join(", ")))
}

/// What the note says about files and directories that a search could not look into.
pub(super) const UNREADABLE: &str = "Could not be read";

/// The error for the model, with the path as it wrote it.
pub(super) fn search_failed(error: SearchError, path: &str) -> ToolError {
    match error {
        SearchError::Root(_, error) if error.kind() == std::io::ErrorKind::NotFound => {
            ToolError::new(format!("Path not found: {path:?} (ENOENT)."))
        }
        SearchError::Root(_, error) => super::FileError { action: "search", path: path.to_owned(), error }.into(),
        other => other.into(),
    }
}
