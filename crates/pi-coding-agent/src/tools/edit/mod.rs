//! The `edit` tool: replacing exact pieces of text in a file.
//!
//! [`apply_edits`] is the whole of it without files: bytes and a list of [`Edit`]s in, an [`Edited`] out.
//! `matching` finds the text, `tolerant` is the view in which look-alikes are equal, `changed_lines` leaves alone the
//! lines that stay, `apply` puts the new text into the file's own bytes, `diff` tells what changed.

mod apply;
mod changed_lines;
mod diff;
mod file;
mod line_diff;
mod matching;
mod tolerant;
mod tool;

use serde::{Deserialize, Serialize};

pub use apply::{Edited, Piece, apply_edits};
pub use diff::EditDiff;
pub use file::{EditFileError, MAX_FILE_BYTES, edit_file};
pub use tolerant::normalize_tolerant;
pub use tool::{EditTool, prepare_arguments};

/// One replacement: a text that occurs once in the file, and what comes in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edit {
    /// The text to find.
    pub old_text: String,
    /// The text to put there.
    pub new_text: String,
}

impl Edit {
    /// A replacement of `old_text` by `new_text`.
    #[must_use]
    pub fn new(old_text: impl Into<String>, new_text: impl Into<String>) -> Self {
        Self { old_text: old_text.into(), new_text: new_text.into() }
    }

    /// The same edit with LF as its only line break, and without the byte order mark that `read` shows in front of
    /// a file's first line: the file's own mark is kept aside while matching.
    fn with_lf(&self) -> Self {
        let plain = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
        match self.old_text.strip_prefix('\u{feff}') {
            Some(old_text) if !old_text.is_empty() => Self {
                old_text: plain(old_text),
                new_text: plain(self.new_text.strip_prefix('\u{feff}').unwrap_or(&self.new_text)),
            },
            _ => Self { old_text: plain(&self.old_text), new_text: plain(&self.new_text) },
        }
    }
}

/// Which of how many edits an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EditPosition {
    /// Index into the list of edits, from 0.
    pub index: usize,
    /// Edits in the list.
    pub total: usize,
}

impl std::fmt::Display for EditPosition {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { index, total } = self;
        write!(formatter, "edit {} of {total} (edits[{index}])", index + 1)
    }
}

/// What is probably wrong with a text that was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotFoundHint {
    /// The text holds `\n` as two characters where the file has a line break.
    EscapedLineBreaks,
    /// The same lines stand in the file with other white space at their ends.
    OtherIndentation {
        /// Where, from 1.
        line: usize,
    },
    /// The file has bytes that are not UTF-8; text with such characters cannot match.
    NotUtf8 {
        /// Line of the first such byte, from 1.
        line: usize,
    },
}

impl std::fmt::Display for NotFoundHint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::EscapedLineBreaks => formatter
                .write_str(" It holds a backslash and an `n` where the file has a line break: send a real one."),
            Self::OtherIndentation { line } => {
                write!(formatter, " The same lines stand at line {line} with different indentation.")
            }
            Self::NotUtf8 { line } => write!(
                formatter,
                " The file is not valid UTF-8 (first at line {line}); text with such characters cannot be matched."
            ),
        }
    }
}

/// Why a list of edits cannot be applied. The file stays as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The list of edits is empty.
    #[error("`edits` is empty: give at least one object with `oldText` and `newText`.")]
    NoEdits,
    /// An edit has no text to look for.
    #[error("{position}: `oldText` is empty; give the text to replace, or use write for a new file.")]
    EmptyOldText {
        /// Which edit.
        position: EditPosition,
    },
    /// The text of an edit is not in the file.
    #[error(
        "{position}: `oldText` is not in the file. It must match with its white space and line breaks; copy it from what read shows.{}",
        .hint.map(|hint| hint.to_string()).unwrap_or_default()
    )]
    NotFound {
        /// Which edit.
        position: EditPosition,
        /// What is probably wrong.
        hint: Option<NotFoundHint>,
    },
    /// The text of an edit, or a look-alike, is in the file more than once.
    #[error(
        "{position}: `oldText` occurs {occurrences} times, at lines {}; quotes, dashes and white space at line ends count as equal. Add surrounding text to make it unique.",
        line_list(.lines, *.occurrences)
    )]
    NotUnique {
        /// Which edit.
        position: EditPosition,
        /// How often the text occurs, overlapping occurrences included.
        occurrences: usize,
        /// Lines of the first occurrences, from 1.
        lines: Vec<usize>,
    },
    /// Two edits touch the same text.
    #[error("edits[{first}] and edits[{second}] overlap: merge them into one edit, or make them disjoint.")]
    Overlap {
        /// Index of the one that starts first, from 0.
        first: usize,
        /// Index of the other.
        second: usize,
    },
    /// All edits together leave the text as it was.
    #[error("The edits leave the file as it is: `newText` equals the text that is there.")]
    NoChange,
    /// The file is in an encoding that edits cannot be matched in.
    #[error("The file is encoded as {encoding}; edit works on UTF-8. Convert it first (for example with iconv).")]
    Encoding {
        /// Name of the encoding.
        encoding: &'static str,
    },
}

fn line_list(lines: &[usize], occurrences: usize) -> String {
    let mut text = lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if lines.len() < occurrences {
        text.push_str(", …");
    }
    text
}
