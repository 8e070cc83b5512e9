//! What `read` says behind a text: how it is written, and how a reader of results tells it from the text.

use std::fmt::{self, Display, Formatter};

use crate::tools::truncate::{MAX_BYTES, format_size};

/// Something about a text that its reader should know. Lines are counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Notice<'a> {
    /// Not even one line fits. `path` is quoted for a shell.
    LineTooLong { line: f64, bytes: u64, path: &'a str },
    /// Some lines are shown, up to a limit of the tool.
    Lines { first: f64, last: f64, total: f64, limit: Limit },
    /// All lines that were asked for are shown; the file has more.
    MoreLines { left: f64, next: f64 },
    /// The file is not in UTF-8.
    Decoded(&'a str),
    /// Some bytes are none of the encoding's.
    OddBytes(&'a str),
}

/// Which limit left lines out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Bytes,
    Lines,
}

const GO_ON: &str = ". Go on with offset=";
const MORE_LINES: &str = " more lines in the file";
const TOO_LONG: &str = ", more than the limit of ";
const EDIT_WORKS: &str = "; edit works on UTF-8 and finds only its ASCII parts.";
const ODD_BYTES: &str = " are shown as \u{fffd}.";

impl Display for Notice<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let most = format_size(MAX_BYTES as u64);
        match self {
            Notice::LineTooLong { line, bytes, path } => {
                let size = format_size(*bytes);
                write!(
                    f,
                    "[Line {line} alone has {size}{TOO_LONG}{most}. For a part of it use bash: \
                     sed -n '{line}p' {path} | head -c {MAX_BYTES}]"
                )
            }
            Notice::Lines { first, last, total, limit } => {
                let limit = match limit {
                    Limit::Bytes => format!(" ({most} limit)"),
                    Limit::Lines => String::new(),
                };
                write!(f, "[Lines {first}-{last} of {total}{limit}{GO_ON}{}.]", last + 1.0)
            }
            Notice::MoreLines { left, next } => write!(f, "[{left}{MORE_LINES}{GO_ON}{next}.]"),
            Notice::Decoded(name) => write!(f, "[Decoded from {name}{EDIT_WORKS}]"),
            Notice::OddBytes(name) => write!(f, "[Bytes that are not valid {name}{ODD_BYTES}]"),
        }
    }
}

/// What the notices behind a text say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remarks {
    /// Where to go on, from 1.
    pub(crate) next_line: Option<usize>,
    /// Lines of the whole file; a line break at its end begins another, empty one.
    pub(crate) total_lines: Option<usize>,
    /// A line that is too long to be shown, from 1. There is no text then.
    pub(crate) too_long: Option<usize>,
    /// The encoding that the text was decoded from, when it is not UTF-8.
    pub(crate) encoding: Option<String>,
}

/// Takes the notices off the end of a result's text.
pub(crate) fn take_remarks(text: &str) -> (&str, Remarks) {
    let mut remarks = Remarks::default();
    let (mut rest, mut found) = (text, false);
    loop {
        let (before, last) = rest.rsplit_once('\n').unwrap_or(("", rest));
        if !remarks.note(last) {
            break;
        }
        found = true;
        // The first notice stands behind a blank line, or alone.
        match before.strip_suffix('\n') {
            Some(body) => return (body, remarks),
            None if before.is_empty() => return ("", remarks),
            None => rest = before,
        }
    }
    // Lines that only look like notices are part of the text.
    if found { (text, Remarks::default()) } else { (text, remarks) }
}

impl Remarks {
    /// Takes in what a line says, if it is a notice.
    fn note(&mut self, line: &str) -> bool {
        let Some(inner) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else { return false };
        if let Some((what, next)) = inner.split_once(GO_ON) {
            let Some(next) = next.strip_suffix('.').and_then(|next| next.parse::<usize>().ok()) else { return false };
            let total = match what.strip_suffix(MORE_LINES) {
                Some(left) => left.parse::<usize>().ok().map(|left| next.saturating_sub(1) + left),
                None => what.strip_prefix("Lines ").and_then(|lines| number(lines.split_once(" of ")?.1)),
            };
            self.next_line = Some(next);
            self.total_lines = total;
            return total.is_some();
        }
        if let Some(rest) = inner.strip_prefix("Line ").filter(|rest| rest.contains(TOO_LONG)) {
            self.too_long = number(rest);
            return self.too_long.is_some();
        }
        if let Some(name) = inner.strip_prefix("Decoded from ").and_then(|rest| rest.strip_suffix(EDIT_WORKS)) {
            self.encoding = Some(name.to_owned());
            return true;
        }
        inner.starts_with("Bytes that are not valid ") && inner.ends_with(ODD_BYTES)
    }
}

/// The number that a text begins with.
fn number(text: &str) -> Option<usize> {
    text.get(..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notice_that_is_written_is_recognised() {
        let lines = |limit| Notice::Lines { first: 1.0, last: 9.0, total: 50.0, limit };
        let cases = [
            (lines(Limit::Bytes), Remarks { next_line: Some(10), total_lines: Some(50), ..Remarks::default() }),
            (lines(Limit::Lines), Remarks { next_line: Some(10), total_lines: Some(50), ..Remarks::default() }),
            (
                Notice::MoreLines { left: 7.0, next: 4.0 },
                Remarks { next_line: Some(4), total_lines: Some(10), ..Remarks::default() },
            ),
            (Notice::Decoded("windows-1252"), Remarks { encoding: Some("windows-1252".into()), ..Remarks::default() }),
            (Notice::OddBytes("UTF-8"), Remarks::default()),
        ];
        for (notice, remarks) in cases {
            assert_eq!(take_remarks(&format!("a\nb\n\n\n{notice}")), ("a\nb\n", remarks.clone()), "{notice}");
            assert_eq!(take_remarks(&notice.to_string()), ("", remarks.clone()), "{notice}");
            let odd = Notice::OddBytes("UTF-8");
            assert_eq!(take_remarks(&format!("a\n\n{notice}\n{odd}")), ("a", remarks), "{notice}");
        }
        let long = Notice::LineTooLong { line: 3.0, bytes: 3_000_000, path: "'a b'" };
        assert_eq!(take_remarks(&long.to_string()), ("", Remarks { too_long: Some(3), ..Remarks::default() }));
    }

    #[test]
    fn text_in_brackets_is_no_notice() {
        for text in ["x = [1, 2]\n[section]", "[Lines of code]", "a\n[Decoded from x]", "", "[", "a\n\n[Line 3]\n"] {
            assert_eq!(take_remarks(text), (text, Remarks::default()));
        }
        // Without a blank line before it, it is a line of the text.
        let text = format!("a\n{}", Notice::OddBytes("UTF-8"));
        assert_eq!(take_remarks(&text), (text.as_str(), Remarks::default()));
    }
}
