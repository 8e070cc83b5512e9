//! Limits on what a tool hands to the model, and the two ways to cut a text down to them.
//!
//! [`truncate_head`] keeps the beginning (file contents), [`truncate_tail`] keeps the end (command
//! output). Both keep whole lines and never split a character; what was left out is counted in the
//! [`Truncation`] they return, which also is the `truncation` object in a tool result's details.

use serde::{Deserialize, Serialize};

/// Lines a tool result may have, unless the tool says otherwise.
pub const MAX_LINES: usize = 2000;
/// UTF-8 bytes a tool result may have, unless the tool says otherwise.
pub const MAX_BYTES: usize = 50 * 1024;
/// UTF-16 units of one line that `grep` shows.
pub const MAX_GREP_LINE: usize = 500;
/// The largest whole number that every reader of JSON keeps exactly; as a line limit it means "none".
pub const NO_LINE_LIMIT: usize = 9_007_199_254_740_991;

/// How much of a text may stay: both limits hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most lines that stay.
    pub lines: usize,
    /// Most UTF-8 bytes that stay.
    pub bytes: usize,
}

impl Limits {
    /// The byte limit alone, for outputs whose number of lines is limited elsewhere.
    pub const BYTES_ONLY: Self = Self { lines: NO_LINE_LIMIT, bytes: MAX_BYTES };
}

impl Default for Limits {
    fn default() -> Self {
        Self { lines: MAX_LINES, bytes: MAX_BYTES }
    }
}

/// The limit that a text ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum TruncatedBy {
    /// It had too many lines.
    Lines,
    /// It had too many bytes.
    Bytes,
}

/// What is left of a text, and the counts of before and after.
///
/// A line break at the end of the text does not begin another line: `"a\n"` has one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Truncation {
    /// The text that stays.
    pub content: String,
    /// Whether anything was left out.
    pub truncated: bool,
    /// Which limit decided; `None` when everything stayed.
    pub truncated_by: Option<TruncatedBy>,
    /// Lines of the whole text.
    pub total_lines: usize,
    /// UTF-8 bytes of the whole text.
    pub total_bytes: usize,
    /// Lines of `content`.
    pub output_lines: usize,
    /// UTF-8 bytes of `content`.
    pub output_bytes: usize,
    /// `content` is the end of one line that alone is over the byte limit (only when the end is kept).
    pub last_line_partial: bool,
    /// `content` is empty because the first line alone is over the byte limit (only when the beginning is kept).
    pub first_line_exceeds_limit: bool,
    /// The line limit that was applied.
    pub max_lines: usize,
    /// The byte limit that was applied.
    pub max_bytes: usize,
}

impl Truncation {
    fn whole(content: &str, total_lines: usize, limits: Limits) -> Self {
        Self {
            content: content.to_owned(),
            truncated: false,
            truncated_by: None,
            total_lines,
            total_bytes: content.len(),
            output_lines: total_lines,
            output_bytes: content.len(),
            last_line_partial: false,
            first_line_exceeds_limit: false,
            max_lines: limits.lines,
            max_bytes: limits.bytes,
        }
    }
}

/// Keeps as many whole lines from the beginning as both limits allow.
///
/// When the first line alone is over the byte limit nothing is kept and
/// [`first_line_exceeds_limit`](Truncation::first_line_exceeds_limit) is set.
///
/// ```
/// use pi_coding_agent::tools::truncate::{Limits, truncate_head};
///
/// let cut = truncate_head("one\ntwo\nthree\n", Limits { lines: 2, ..Limits::default() });
/// assert_eq!(cut.content, "one\ntwo");
/// assert_eq!((cut.output_lines, cut.total_lines), (2, 3));
/// ```
#[must_use]
pub fn truncate_head(content: &str, limits: Limits) -> Truncation {
    let total_lines = count_lines(content);
    if total_lines <= limits.lines && content.len() <= limits.bytes {
        return Truncation::whole(content, total_lines, limits);
    }
    let mut kept = Truncation {
        content: String::new(),
        truncated: true,
        truncated_by: Some(TruncatedBy::Lines),
        output_lines: 0,
        output_bytes: 0,
        ..Truncation::whole("", total_lines, limits)
    };
    kept.total_bytes = content.len();
    // That it does not fit is said even when no line is wanted.
    if lines(content).next().is_some_and(|first| first.len() > limits.bytes) {
        kept.truncated_by = Some(TruncatedBy::Bytes);
        kept.first_line_exceeds_limit = true;
        return kept;
    }

    let mut end = 0;
    for (index, line) in lines(content).enumerate().take(limits.lines) {
        let start = if index == 0 { 0 } else { end + 1 };
        if start + line.len() > limits.bytes {
            kept.truncated_by = Some(TruncatedBy::Bytes);
            break;
        }
        end = start + line.len();
        kept.output_lines += 1;
    }
    kept.content.push_str(&content[..end]);
    kept.output_bytes = end;
    kept
}

/// Keeps as many whole lines from the end as both limits allow.
///
/// When the last line alone is over the byte limit, its end is kept from a character boundary on and
/// [`last_line_partial`](Truncation::last_line_partial) is set.
#[must_use]
pub fn truncate_tail(content: &str, limits: Limits) -> Truncation {
    let total_lines = count_lines(content);
    if total_lines <= limits.lines && content.len() <= limits.bytes {
        return Truncation::whole(content, total_lines, limits);
    }
    let mut kept = Truncation {
        truncated: true,
        truncated_by: Some(TruncatedBy::Lines),
        output_lines: 0,
        output_bytes: 0,
        ..Truncation::whole("", total_lines, limits)
    };
    kept.total_bytes = content.len();

    // The final line break is not part of what is kept: it ends the last line, it does not begin one.
    let body = content.strip_suffix('\n').unwrap_or(content);
    let mut start = body.len();
    let mut end = body.len();
    while kept.output_lines < limits.lines {
        let line_start = memchr::memrchr(b'\n', &body.as_bytes()[..end]).map_or(0, |at| at + 1);
        if body.len() - line_start > limits.bytes {
            kept.truncated_by = Some(TruncatedBy::Bytes);
            if kept.output_lines == 0 {
                start = ceil_char_boundary(body, body.len() - limits.bytes);
                kept.output_lines = 1;
                kept.last_line_partial = true;
            }
            break;
        }
        start = line_start;
        kept.output_lines += 1;
        if line_start == 0 {
            break;
        }
        end = line_start - 1;
    }
    kept.content.push_str(&body[start..]);
    kept.output_bytes = kept.content.len();
    kept
}

/// Lines of a text as [`Truncation`] counts them.
#[must_use]
pub fn count_lines(content: &str) -> usize {
    let breaks = memchr::memchr_iter(b'\n', content.as_bytes()).count();
    breaks + usize::from(!content.is_empty() && !content.ends_with('\n'))
}

fn lines(content: &str) -> impl Iterator<Item = &str> {
    content.strip_suffix('\n').unwrap_or(content).split('\n')
}

fn ceil_char_boundary(text: &str, mut index: usize) -> usize {
    while !text.is_char_boundary(index) {
        index += 1;
    }
    index
}

/// The first `units` UTF-16 units of a text, without the half of a surrogate pair at the cut.
///
/// UTF-16 units are what the protocol's other implementations count, so that limits mean the same everywhere.
#[must_use]
pub fn head_utf16(text: &str, units: usize) -> &str {
    if text.len() <= units {
        return text;
    }
    let mut used = 0;
    for (index, character) in text.char_indices() {
        used += character.len_utf16();
        if used > units {
            return &text[..index];
        }
    }
    text
}

/// The last `units` UTF-16 units of a text, without the half of a surrogate pair at the cut.
#[must_use]
pub fn tail_utf16(text: &str, units: usize) -> &str {
    if text.len() <= units {
        return text;
    }
    let mut used = 0;
    for (index, character) in text.char_indices().rev() {
        used += character.len_utf16();
        if used > units {
            return &text[index + character.len_utf8()..];
        }
    }
    text
}

/// A line cut to `units` UTF-16 units, with a mark where something is missing; `None` when it fits.
#[must_use]
pub fn shorten_line(line: &str, units: usize) -> Option<String> {
    let head = head_utf16(line, units);
    (head.len() < line.len()).then(|| format!("{head}... [truncated]"))
}

/// A size as people read it: `512B`, `1.5KB`, `4.8MB`.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    const KB: u64 = 1024;
    const MB: u64 = 1024 * 1024;
    if bytes < KB {
        format!("{bytes}B")
    } else if bytes < MB {
        format!("{}KB", one_decimal(bytes, KB))
    } else {
        format!("{}MB", one_decimal(bytes, MB))
    }
}

/// `bytes / unit` with one decimal, rounded half up (a float's rounding would depend on its representation).
fn one_decimal(bytes: u64, unit: u64) -> String {
    let tenths = (u128::from(bytes) * 10 + u128::from(unit) / 2) / u128::from(unit);
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cut_in_front_of_a_wide_character_leaves_it_out() {
        assert_eq!(head_utf16("abcd😀x", 5), "abcd");
        assert_eq!(tail_utf16("abcd😀x", 2), "x");
        assert_eq!(shorten_line("파파파", 2).as_deref(), Some("파파... [truncated]"));
        assert_eq!(shorten_line("파파파", 3), None);
    }

    #[test]
    fn the_end_of_one_huge_line_begins_at_a_character() {
        let cut = truncate_tail("🦀🦀🦀", Limits { lines: 10, bytes: 6 });
        assert_eq!(cut.content, "🦀");
        assert!(cut.last_line_partial);
    }

    #[test]
    fn sizes_are_rounded_not_cut() {
        assert_eq!(format_size(1023), "1023B");
        assert_eq!(format_size(1_048_575), "1024.0KB");
        assert_eq!(format_size(1_048_576), "1.0MB");
    }

    fn texts() -> impl Strategy<Value = String> {
        proptest::collection::vec(
            prop_oneof![Just("a"), Just("\n"), Just("\n"), Just("é"), Just("漢"), Just("😀"), Just("\r\n")],
            0..60,
        )
        .prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn what_stays_is_whole_lines_within_the_limits_and_counted_right(
            text in texts(), lines in 1_usize..8, bytes in 1_usize..40,
        ) {
            let limits = Limits { lines, bytes };
            for (cut, is_head) in [(truncate_head(&text, limits), true), (truncate_tail(&text, limits), false)] {
                prop_assert_eq!(cut.total_bytes, text.len());
                prop_assert_eq!(cut.total_lines, count_lines(&text));
                prop_assert_eq!(cut.output_bytes, cut.content.len());
                prop_assert!(cut.output_lines <= lines);
                prop_assert!(cut.output_bytes <= bytes);
                if !cut.truncated {
                    prop_assert_eq!(&cut.content, &text);
                    prop_assert_eq!(cut.truncated_by, None);
                } else if is_head {
                    prop_assert!(text.starts_with(&cut.content));
                    prop_assert!(cut.output_lines == 0 || text[cut.content.len()..].starts_with('\n'));
                } else {
                    let body = text.strip_suffix('\n').unwrap_or(&text);
                    prop_assert!(body.ends_with(&cut.content));
                    let before = &body[..body.len() - cut.content.len()];
                    prop_assert!(cut.last_line_partial || before.is_empty() || before.ends_with('\n'));
                }
            }
        }
    }
}
