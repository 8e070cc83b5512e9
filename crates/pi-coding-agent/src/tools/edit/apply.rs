//! Putting the matched edits into the file's own bytes: its byte order mark, line breaks and odd bytes stay.

use std::borrow::Cow;
use std::ops::Range;

use super::diff::{EditDiff, diff_edits};
use super::matching::{Match, find_matches};
use super::{Edit, EditError};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A piece of the edited file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// These bytes of the original stay.
    Kept(Range<usize>),
    /// These bytes are new.
    New(Vec<u8>),
}

/// The edited file as pieces of the original, so that a large file is not copied to change one line.
#[derive(Clone, Debug)]
pub struct Edited {
    /// The pieces in order.
    pub pieces: Vec<Piece>,
    /// What changed, for people and for `patch`.
    pub diff: EditDiff,
}

impl Edited {
    /// The edited file in one piece; `original` is what was edited.
    #[must_use]
    pub fn to_bytes(&self, original: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(original.len());
        for piece in &self.pieces {
            match piece {
                Piece::Kept(range) => bytes.extend_from_slice(original.get(range.clone()).unwrap_or_default()),
                Piece::New(new) => bytes.extend_from_slice(new),
            }
        }
        bytes
    }
}

/// Applies edits to a file: all of them, or none and the reason.
///
/// Every edit is matched against the original, exactly or else tolerantly, and must occur once. Bytes
/// outside the matches stay as they are, whether or not they are UTF-8, and so do lines that an edit's old and
/// new text share. A line that takes another's place takes its line break too; further ones take the form of the line
/// where the change is. `path` only names the file in the diff.
///
/// # Errors
///
/// The first edit that cannot be applied, and why; see [`EditError`].
///
/// ```
/// use pi_coding_agent::tools::edit::{Edit, apply_edits};
///
/// let edited = apply_edits(b"one\r\ntwo\r\n", &[Edit::new("two", "2\n3")], "f.txt")?;
/// assert_eq!(edited.to_bytes(b"one\r\ntwo\r\n"), b"one\r\n2\r\n3\r\n");
/// # Ok::<(), pi_coding_agent::tools::edit::EditError>(())
/// ```
pub fn apply_edits(original: &[u8], edits: &[Edit], path: &str) -> Result<Edited, EditError> {
    if let Some(encoding) = wide_encoding(original) {
        return Err(EditError::Encoding { encoding });
    }
    let body_start = if original.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let body = &original[body_start..];
    let text = with_lf(body);
    let matches = find_matches(&text, edits)?;
    if matches.iter().all(|found| text[found.range.clone()] == *found.replacement.as_bytes()) {
        return Err(EditError::NoChange);
    }
    let diff = diff_edits(path, &text, &matches);
    Ok(Edited { pieces: splice(original, body_start, &matches), diff })
}

/// A wide encoding that a byte order mark announces: its text cannot be matched as UTF-8.
fn wide_encoding(original: &[u8]) -> Option<&'static str> {
    match original {
        [0xff, 0xfe, 0, 0, ..] => Some("UTF-32LE"),
        [0, 0, 0xfe, 0xff, ..] => Some("UTF-32BE"),
        [0xff, 0xfe, ..] => Some("UTF-16LE"),
        [0xfe, 0xff, ..] => Some("UTF-16BE"),
        _ => None,
    }
}

/// The text with every line break as LF; borrowed when it has no other.
pub(super) fn with_lf(body: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'\r', body) else {
        return Cow::Borrowed(body);
    };
    let mut text = Vec::with_capacity(body.len());
    text.extend_from_slice(&body[..first]);
    let mut rest = &body[first..];
    while let Some((b'\r', after)) = rest.split_first() {
        text.push(b'\n');
        rest = after.strip_prefix(b"\n").unwrap_or(after);
        let plain = memchr::memchr(b'\r', rest).unwrap_or(rest.len());
        text.extend_from_slice(&rest[..plain]);
        rest = &rest[plain..];
    }
    Cow::Owned(text)
}

/// The pieces of the new file. Offsets of matches are those of the text with LF, sorted and disjoint.
fn splice(original: &[u8], body_start: usize, matches: &[Match]) -> Vec<Piece> {
    let body = &original[body_start..];
    let mut offsets = OriginalOffsets::new(body);
    let mut pieces = Pieces::default();
    pieces.keep(original, 0..body_start);
    let mut kept_from = body_start;
    for found in matches {
        let start = offsets.at(found.range.start);
        pieces.keep(original, kept_from..body_start + start);
        let end = offsets.at(found.range.end);
        pieces.add(with_endings_of(body, start..end, &found.replacement));
        kept_from = body_start + end;
    }
    pieces.keep(original, kept_from..original.len());
    pieces.list
}

/// The new text with the line breaks of the lines that it takes the place of, one by one. Those that it has beyond
/// them are like the line where the range ends, or where it starts when no line break is in it.
fn with_endings_of(body: &[u8], range: Range<usize>, new: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(new.len());
    let mut at = range.start;
    let (mut of_lone_cr, mut beyond) = (None, None);
    for line in new.split_inclusive('\n') {
        let Some(line) = line.strip_suffix('\n') else {
            bytes.extend_from_slice(line.as_bytes());
            break;
        };
        bytes.extend_from_slice(line.as_bytes());
        let ending = match memchr::memchr2(b'\r', b'\n', &body[at..range.end]).map(|found| at + found) {
            Some(found) => {
                let ending = match &body[found..] {
                    [b'\r', b'\n', ..] => "\r\n",
                    [b'\r', ..] => *of_lone_cr.get_or_insert_with(|| line_ending_at(body, found)),
                    _ => "\n",
                };
                at = found + if body[found..].starts_with(b"\r\n") { 2 } else { 1 };
                ending
            }
            None => *beyond.get_or_insert_with(|| line_ending_at(body, if at > range.start { range.end } else { at })),
        };
        bytes.extend_from_slice(ending.as_bytes());
    }
    bytes
}

/// Maps offsets in the text with LF to offsets in the original, for offsets that only grow.
///
/// Only CRLF changes length, so an offset moves by the number of CRLFs in front of it, and a range that
/// covers the LF of one covers the whole of it.
struct OriginalOffsets<'a> {
    body: &'a [u8],
    crlf_before: usize,
    next_crlf: Option<usize>,
}

impl<'a> OriginalOffsets<'a> {
    fn new(body: &'a [u8]) -> Self {
        Self { body, crlf_before: 0, next_crlf: find_crlf(body, 0) }
    }

    fn at(&mut self, offset: usize) -> usize {
        while let Some(crlf) = self.next_crlf
            && crlf - self.crlf_before < offset
        {
            self.crlf_before += 1;
            self.next_crlf = find_crlf(self.body, crlf + 2);
        }
        offset + self.crlf_before
    }
}

fn find_crlf(body: &[u8], from: usize) -> Option<usize> {
    memchr::memchr_iter(b'\r', &body[from..]).map(|at| from + at).find(|at| body.get(at + 1) == Some(&b'\n'))
}

/// The line break of the line at `offset`, or of the line before when the last line has none. A lone CR
/// counts only in a file without any LF; elsewhere it is more likely a control character inside a line.
fn line_ending_at(body: &[u8], offset: usize) -> &'static str {
    let line_feed = memchr::memchr(b'\n', &body[offset..])
        .map(|at| offset + at)
        .or_else(|| memchr::memrchr(b'\n', &body[..offset]));
    match line_feed {
        Some(at) if at > 0 && body[at - 1] == b'\r' => "\r\n",
        Some(_) => "\n",
        None if memchr::memchr(b'\r', body).is_some() => "\r",
        None => "\n",
    }
}

#[derive(Default)]
struct Pieces {
    list: Vec<Piece>,
    ends_with_cr: bool,
}

impl Pieces {
    fn keep(&mut self, original: &[u8], range: Range<usize>) {
        let bytes = &original[range.clone()];
        self.before(bytes);
        if let Some(last) = bytes.last() {
            self.ends_with_cr = *last == b'\r';
            self.list.push(Piece::Kept(range));
        }
    }

    fn add(&mut self, bytes: Vec<u8>) {
        self.before(&bytes);
        if let Some(last) = bytes.last() {
            self.ends_with_cr = *last == b'\r';
            self.list.push(Piece::New(bytes));
        }
    }

    /// A CR in front of a seam and an LF behind it would become one line break. An LF between them makes
    /// the CR a break of its own, so that the file has the lines that the diff shows.
    fn before(&mut self, next: &[u8]) {
        if self.ends_with_cr && next.first() == Some(&b'\n') {
            self.list.push(Piece::New(vec![b'\n']));
        }
    }
}
