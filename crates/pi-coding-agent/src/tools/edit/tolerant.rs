//! The tolerant view of a text: what is left when only the differences that models do not see are removed.
//!
//! Per line: NFKC, trailing white space gone, typographic quotes, dashes and spaces turned into their ASCII
//! forms. Lines stay lines, so a line number in the view is a line number in the text. Bytes that are not
//! UTF-8 pass unchanged. The view is computed unit by unit, where a unit is a stretch of the source that
//! normalises independently of its neighbours; walking the units again maps a place in the view back to
//! the bytes it came from, without keeping a table.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// A stretch of the source and what the view shows for it.
#[derive(Debug, PartialEq, Eq)]
enum Unit {
    /// The view shows these bytes as they are.
    Same(Range<usize>),
    /// The view shows other text, or none.
    Changed { source: Range<usize>, text: String },
}

impl Unit {
    fn shown_len(&self) -> usize {
        match self {
            Self::Same(range) => range.len(),
            Self::Changed { text, .. } => text.len(),
        }
    }
}

/// Where a match in the view lies in the source.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SourceMatch {
    /// The source bytes that the match covers.
    pub(super) source: Range<usize>,
    /// Text of the view in front of the match that came from the first covered character (half a ligature).
    pub(super) before: String,
    /// Text of the view behind the match that came from the last covered character.
    pub(super) after: String,
}

/// The tolerant view of a text whose line breaks are LF; borrowed when nothing differs.
pub(super) fn tolerant_view(text: &[u8]) -> Cow<'_, [u8]> {
    if text.is_ascii() && !has_trailing_white_space(text) {
        return Cow::Borrowed(text);
    }
    let mut view = Vec::with_capacity(text.len());
    let _ = walk_units(text, |unit| {
        match unit {
            Unit::Same(range) => view.extend_from_slice(&text[range]),
            Unit::Changed { text, .. } => view.extend_from_slice(text.as_bytes()),
        }
        ControlFlow::Continue(())
    });
    Cow::Owned(view)
}

/// The tolerant view of a string, as [`edit`](crate::tools::edit) compares it.
#[must_use]
pub fn normalize_tolerant(text: &str) -> String {
    String::from_utf8_lossy(&tolerant_view(text.as_bytes())).into_owned()
}

/// Maps a range of the view back to the source.
///
/// White space that the view dropped at the end of the match's last line is not part of the match.
pub(super) fn locate(text: &[u8], view_range: &Range<usize>) -> SourceMatch {
    let mut found = SourceMatch { source: text.len()..text.len(), before: String::new(), after: String::new() };
    let mut unit_start = 0;
    let _ = walk_units(text, |unit| {
        let shown = unit.shown_len();
        let in_unit = |place: usize| place - unit_start;
        let has_start = (unit_start..unit_start + shown).contains(&view_range.start);
        let has_end = unit_start < view_range.end && view_range.end <= unit_start + shown;
        match &unit {
            Unit::Same(source) => {
                if has_start {
                    found.source.start = source.start + in_unit(view_range.start);
                }
                if has_end {
                    found.source.end = source.start + in_unit(view_range.end);
                }
            }
            Unit::Changed { source, text } => {
                if has_start {
                    found.source.start = source.start;
                    found.before = text.get(..in_unit(view_range.start)).unwrap_or_default().to_owned();
                }
                if has_end {
                    found.source.end = source.end;
                    found.after = text.get(in_unit(view_range.end)..).unwrap_or_default().to_owned();
                }
            }
        }
        unit_start += shown;
        if has_end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found
}

fn has_trailing_white_space(text: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', text)
        .chain(std::iter::once(text.len()))
        .any(|end| end > 0 && is_ascii_space(text[end - 1]))
}

fn is_ascii_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c | b'\r')
}

/// White space at the end of a line that does not count: that of ECMAScript, which other implementations use.
fn is_trailing_space(character: char) -> bool {
    character == '\u{feff}' || (character.is_whitespace() && character != '\u{85}')
}

/// Hands out the units of a text in order until told to stop.
fn walk_units(text: &[u8], mut emit: impl FnMut(Unit) -> ControlFlow<()>) -> ControlFlow<()> {
    // Runs of lines without a difference are handed out in one piece.
    let mut same_from = 0;
    let mut line_start = 0;
    while line_start < text.len() {
        let line_end = memchr::memchr(b'\n', &text[line_start..]).map_or(text.len(), |at| line_start + at);
        let line = &text[line_start..line_end];
        let clean = line.is_ascii() && line.last().is_none_or(|last| !is_ascii_space(*last));
        if !clean {
            if same_from < line_start {
                emit(Unit::Same(same_from..line_start))?;
            }
            for unit in line_units(line, line_start) {
                emit(unit)?;
            }
            same_from = line_end;
        }
        line_start = line_end + 1;
    }
    if same_from < text.len() {
        emit(Unit::Same(same_from..text.len()))?;
    }
    ControlFlow::Continue(())
}

/// The units of one line (without its break) that starts at `offset` of the text.
fn line_units(line: &[u8], offset: usize) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut at = offset;
    // End of the last bytes that are not UTF-8: they are no white space, so trimming stops there.
    let mut floor = offset;
    for chunk in line.utf8_chunks() {
        push_text_units(chunk.valid(), at, &mut units);
        at += chunk.valid().len();
        if !chunk.invalid().is_empty() {
            push_same(&mut units, at..at + chunk.invalid().len());
            at += chunk.invalid().len();
            floor = at;
        }
    }
    trim_units(&mut units, line, offset, floor);
    units
}

fn push_same(units: &mut Vec<Unit>, range: Range<usize>) {
    match units.last_mut() {
        Some(Unit::Same(last)) if last.end == range.start => last.end = range.end,
        _ => units.push(Unit::Same(range)),
    }
}

fn push_text_units(text: &str, offset: usize, units: &mut Vec<Unit>) {
    let mut characters = text.char_indices().peekable();
    while let Some((start, first)) = characters.next() {
        let mut end = start + first.len_utf8();
        let mut stable = is_boundary(first);
        while let Some((at, next)) = characters.next_if(|(_, next)| !is_boundary(*next)) {
            end = at + next.len_utf8();
            stable = false;
        }
        let source = offset + start..offset + end;
        if stable {
            let folded = fold(first);
            if folded == first {
                push_same(units, source);
            } else {
                units.push(Unit::Changed { source, text: folded.to_string() });
            }
            continue;
        }
        let shown: String = text[start..end].nfkc().map(fold).collect();
        if shown == text[start..end] {
            push_same(units, source);
        } else {
            units.push(Unit::Changed { source, text: shown });
        }
    }
}

/// Whether text can be cut in front of this character without changing its normal form.
fn is_boundary(character: char) -> bool {
    character.is_ascii()
        || (canonical_combining_class(character) == 0 && is_nfkc_quick(std::iter::once(character)) == IsNormalized::Yes)
}

fn fold(character: char) -> char {
    match character {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// Drops the white space at the end of a line's units, down to `floor`.
fn trim_units(units: &mut Vec<Unit>, line: &[u8], offset: usize, floor: usize) {
    let line_end = offset + line.len();
    let mut dropped_from = line_end;
    while let Some(last) = units.pop() {
        match last {
            Unit::Same(range) => {
                let from = range.start.max(floor).min(range.end);
                let kept = std::str::from_utf8(&line[from - offset..range.end - offset])
                    .map_or(range.end, |text| from + text.trim_end_matches(is_trailing_space).len());
                dropped_from = kept;
                if kept > range.start {
                    units.push(Unit::Same(range.start..kept));
                    break;
                }
            }
            Unit::Changed { source, mut text } => {
                text.truncate(text.trim_end_matches(is_trailing_space).len());
                if text.is_empty() {
                    dropped_from = source.start;
                } else {
                    dropped_from = source.end;
                    units.push(Unit::Changed { source, text });
                    break;
                }
            }
        }
    }
    if dropped_from < line_end {
        units.push(Unit::Changed { source: dropped_from..line_end, text: String::new() });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_decomposed_accent_and_its_letter_are_one_unit() {
        assert_eq!(normalize_tolerant("e\u{301}x"), "éx");
        let found = locate("ae\u{301}x".as_bytes(), &(1..3));
        assert_eq!(found.source, 1..4);
    }

    #[test]
    fn half_a_ligature_keeps_its_other_half() {
        let found = locate("\u{fb01}ne".as_bytes(), &(1..4));
        assert_eq!((found.source, found.before.as_str(), found.after.as_str()), (0..5, "f", ""));
    }

    #[test]
    fn bytes_that_are_not_text_pass_unchanged_and_end_the_trimming() {
        assert_eq!(*tolerant_view(b"caf\xe9  \nx \xff"), *b"caf\xe9\nx \xff");
    }

    fn texts() -> impl Strategy<Value = String> {
        const PARTS: &[&str] = &[
            "a", "e", "\n", " ", "\t", "\u{301}", "\u{fb01}", "\u{2019}", "\u{2014}", "\u{a0}", "Ａ", "한", "\u{1112}",
            "\u{1161}", "½", "\u{feff}", "´", "漢", "\u{0323}",
        ];
        proptest::collection::vec(proptest::sample::select(PARTS), 0..40).prop_map(|parts| parts.concat())
    }

    /// The definition, without units: what the view must be.
    fn by_definition(text: &str) -> String {
        let composed: String = text.nfkc().collect();
        let lines: Vec<String> = composed
            .split('\n')
            .map(|line| line.trim_end_matches(is_trailing_space).chars().map(fold).collect())
            .collect();
        lines.join("\n")
    }

    proptest! {
        #[test]
        fn the_view_is_what_normalising_the_whole_text_gives(text in texts()) {
            prop_assert_eq!(normalize_tolerant(&text), by_definition(&text));
        }

        #[test]
        fn every_range_of_the_view_comes_from_the_source_range_it_is_mapped_to(text in texts(), a in 0_usize..60, b in 0_usize..60) {
            let view = tolerant_view(text.as_bytes());
            let view = std::str::from_utf8(&view).unwrap();
            let bounds: Vec<usize> = view.char_indices().map(|(at, _)| at).chain([view.len()]).collect();
            let (a, b) = (bounds[a % bounds.len()], bounds[b % bounds.len()]);
            let (a, b) = (a.min(b), a.max(b));
            if a == b {
                return Ok(());
            }
            let found = locate(text.as_bytes(), &(a..b));
            let source = &text[found.source.clone()];
            // Lines inside the match lose their trailing white space; at its end only what the view kept is covered.
            let normalised: String = source.nfkc().map(fold).collect();
            let whole = format!("{}{}{}", found.before, &view[a..b], found.after);
            let trimmed = |text: &str| text.split('\n').map(|line| line.trim_end_matches(is_trailing_space).to_owned()).collect::<Vec<_>>().join("\n");
            prop_assert_eq!(trimmed(&normalised), trimmed(&whole));
        }
    }
}
