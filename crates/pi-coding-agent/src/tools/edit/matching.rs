//! Finding the text of each edit in the file: exact first, else in the tolerant view, and exactly once.

use std::ops::Range;

use memchr::memmem;

use super::changed_lines::changed_lines;
use super::tolerant::{SourceMatch, locate, tolerant_view};
use super::{Edit, EditError, EditPosition, NotFoundHint};

/// Candidate lines that an error names.
const LINES_NAMED: usize = 10;

/// A change that an edit makes in the text whose line breaks are LF: what takes the place of a range.
#[derive(Debug)]
pub(super) struct Match {
    /// Index into the list of edits.
    pub(super) edit: usize,
    /// Bytes of the text that go.
    pub(super) range: Range<usize>,
    /// Text that comes, line breaks LF.
    pub(super) replacement: String,
}

/// Finds every edit in `text` (line breaks LF, no byte order mark): all of them or an error. The changes are sorted by
/// place and leave out the lines that an edit's old and new text share; none are left when nothing changes.
pub(super) fn find_matches(text: &[u8], edits: &[Edit]) -> Result<Vec<Match>, EditError> {
    let edits: Vec<Edit> = edits.iter().map(Edit::with_lf).collect();
    let position = |index| EditPosition { index, total: edits.len() };
    if edits.is_empty() {
        return Err(EditError::NoEdits);
    }
    if let Some(index) = edits.iter().position(|edit| edit.old_text.is_empty()) {
        return Err(EditError::EmptyOldText { position: position(index) });
    }

    let view = tolerant_view(text);
    let mut matches = Vec::with_capacity(edits.len());
    for (index, edit) in edits.iter().enumerate() {
        matches.push(find_one(text, &view, edit, position(index))?);
    }
    matches.sort_by_key(|found: &Found| found.range.start);
    for pair in matches.windows(2) {
        if let [first, second] = pair
            && first.range.end > second.range.start
        {
            return Err(EditError::Overlap { first: first.edit, second: second.edit });
        }
    }
    Ok(matches.into_iter().flat_map(|found| found.changes(text, &edits)).collect())
}

/// Where the whole old text of an edit was found.
struct Found {
    edit: usize,
    range: Range<usize>,
    /// Kept halves of characters that the match covers only in part, in front of the new text and behind it.
    before: String,
    after: String,
}

impl Found {
    fn changes(self, text: &[u8], edits: &[Edit]) -> Vec<Match> {
        let edit = &edits[self.edit];
        let whole = |replacement| Match { edit: self.edit, range: self.range.clone(), replacement };
        if self.before.is_empty() && self.after.is_empty() {
            return changed_lines(text, whole(edit.new_text.clone()), &edit.old_text);
        }
        vec![whole(format!("{}{}{}", self.before, edit.new_text, self.after))]
    }
}

fn find_one(text: &[u8], view: &[u8], edit: &Edit, position: EditPosition) -> Result<Found, EditError> {
    let old_text = edit.old_text.as_bytes();
    let exact = Occurrences::of(old_text, text);
    let old_view = tolerant_view(old_text);
    // Where the views are the texts themselves, the exact search has said it all. White space alone has an
    // empty view; only its exact form can be looked for.
    let views_are_the_texts = std::ptr::eq(text, view) && *old_view == *old_text;
    let tolerant = (!old_view.is_empty() && !views_are_the_texts).then(|| Occurrences::of(&old_view, view));
    let found = match &tolerant {
        Some(tolerant) if tolerant.count >= exact.count => (tolerant, view),
        _ => (&exact, text),
    };
    if found.0.count > 1 {
        return Err(EditError::NotUnique { position, occurrences: found.0.count, lines: found.0.lines(found.1) });
    }
    if let Some(start) = exact.first() {
        return Ok(Found {
            edit: position.index,
            range: start..start + edit.old_text.len(),
            before: String::new(),
            after: String::new(),
        });
    }
    tolerant
        .and_then(|tolerant| tolerant.first())
        .and_then(|start| locate_tolerant(text, view, edit, start..start + old_view.len()))
        .map(|SourceMatch { source, before, after }| Found { edit: position.index, range: source, before, after })
        .ok_or_else(|| EditError::NotFound { position, hint: hint_for(text, edit) })
}

/// Where a match in the view lies in the text; `None` when it is none after all.
fn locate_tolerant(text: &[u8], view: &[u8], edit: &Edit, view_range: Range<usize>) -> Option<SourceMatch> {
    let ends_in_space = edit.old_text.chars().next_back().is_some_and(|last| last != '\n' && last.is_whitespace());
    // Without this, `return ` would be found in `returned`.
    if ends_in_space && view.get(view_range.end).is_some_and(|next| *next != b'\n') {
        return None;
    }
    let mut found = locate(text, &view_range);
    if ends_in_space {
        found.source.end = line_end(text, found.source.end);
    }
    Some(found)
}

fn line_end(text: &[u8], from: usize) -> usize {
    memchr::memchr(b'\n', &text[from..]).map_or(text.len(), |at| from + at)
}

/// Where a needle occurs, overlapping occurrences included.
#[derive(Debug)]
struct Occurrences {
    count: usize,
    /// The first of them, as many as an error names.
    starts: Vec<usize>,
}

impl Occurrences {
    fn of(needle: &[u8], text: &[u8]) -> Self {
        let finder = memmem::Finder::new(needle);
        let mut starts = Vec::new();
        let Some(first) = finder.find(text) else {
            return Self { count: 0, starts };
        };
        starts.push(first);
        let Some(second) = finder.find(&text[first + 1..]).map(|at| first + 1 + at) else {
            return Self { count: 1, starts };
        };
        // More than one: counting must stay linear where occurrences overlap (`aaaa…` in a long `aaaa…`).
        let mut count = 1;
        for_each_overlapping(needle, &text[second..], |at| {
            count += 1;
            if starts.len() < LINES_NAMED {
                starts.push(second + at);
            }
        });
        Self { count, starts }
    }

    fn first(&self) -> Option<usize> {
        self.starts.first().copied()
    }

    /// Line numbers (from 1) of the occurrences that are kept.
    fn lines(&self, text: &[u8]) -> Vec<usize> {
        let mut line = 1;
        let mut counted = 0;
        self.starts
            .iter()
            .map(|start| {
                line += memchr::memchr_iter(b'\n', &text[counted..*start]).count();
                counted = *start;
                line
            })
            .collect()
    }
}

/// Knuth, Morris and Pratt: every occurrence in time linear in needle and text.
fn for_each_overlapping(needle: &[u8], text: &[u8], mut found: impl FnMut(usize)) {
    let mut borders = vec![0_usize; needle.len()];
    let mut matched = 0;
    for index in 1..needle.len() {
        while matched > 0 && needle[index] != needle[matched] {
            matched = borders[matched - 1];
        }
        if needle[index] == needle[matched] {
            matched += 1;
        }
        borders[index] = matched;
    }
    matched = 0;
    for (index, byte) in text.iter().enumerate() {
        while matched > 0 && needle[matched] != *byte {
            matched = borders[matched - 1];
        }
        if needle[matched] == *byte {
            matched += 1;
        }
        if matched == needle.len() {
            found(index + 1 - needle.len());
            matched = borders[matched - 1];
        }
    }
}

/// What may have gone wrong, for the error's text.
fn hint_for(text: &[u8], edit: &Edit) -> Option<NotFoundHint> {
    if edit.old_text.contains("\\n") {
        let unescaped = edit.old_text.replace("\\n", "\n").replace("\\t", "\t");
        if memmem::find(text, unescaped.as_bytes()).is_some() {
            return Some(NotFoundHint::EscapedLineBreaks);
        }
    }
    if let Some(line) = find_with_other_indentation(text, &edit.old_text) {
        return Some(NotFoundHint::OtherIndentation { line });
    }
    let error = std::str::from_utf8(text).err()?;
    let line = 1 + memchr::memchr_iter(b'\n', &text[..error.valid_up_to()]).count();
    Some(NotFoundHint::NotUtf8 { line })
}

/// The line (from 1) where the same lines stand, but for white space at their ends.
fn find_with_other_indentation(text: &[u8], old_text: &str) -> Option<usize> {
    let wanted: Vec<&[u8]> = old_text.trim_matches('\n').split('\n').map(|line| line.as_bytes().trim_ascii()).collect();
    if wanted.iter().all(|line| line.is_empty()) {
        return None;
    }
    let first = wanted.iter().position(|line| !line.is_empty())?;
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect();
    (0..lines.len().saturating_sub(wanted.len() - 1))
        .find(|start| lines[start + first] == wanted[first] && lines[*start..start + wanted.len()] == wanted[..])
        .map(|start| start + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_occurrences_are_counted() {
        let found = Occurrences::of(b"aa", b"aaaa baa");
        assert_eq!(found.count, 4);
        assert_eq!(found.starts, [0, 1, 2, 6]);
    }

    #[test]
    fn counting_a_long_needle_in_its_own_repetition_is_linear() {
        let text = vec![b'a'; 2_000_000];
        assert_eq!(Occurrences::of(&text[..1_000_000], &text).count, 1_000_001);
    }
}
