//! Selecting lines of a text that is read in pieces: what may be shown is kept, the rest is counted.

use encoding_rs::{Decoder, DecoderResult};

use super::encoding::TextEncoding;
use crate::tools::truncate::{Limits, MAX_BYTES, Truncation, truncate_head};

/// Text that is kept: enough to tell that it does not fit.
const KEPT: usize = MAX_BYTES + 4;

/// The lines of a text that were asked for.
#[derive(Debug)]
pub(super) struct Selection {
    /// Lines of the whole text; a line break at its end begins another, empty one.
    pub(super) total_lines: u64,
    /// The selected lines, as far as they may be shown.
    pub(super) truncation: Truncation,
    /// Bytes of the first selected line.
    pub(super) first_line_bytes: usize,
    /// Whether bytes of the selected lines could not be decoded.
    pub(super) had_odd_bytes: bool,
}

/// Takes a text piece by piece. Lines are counted from 0; `end` is the first line that is not wanted.
pub(super) struct LineSelector {
    start: u64,
    end: u64,
    /// Which line the next byte belongs to.
    line: u64,
    decoder: Decoder,
    /// Line breaks are single bytes, so that what is not wanted need not be decoded.
    is_bytewise: bool,
    scratch: String,
    kept: String,
    selected_bytes: usize,
    selected_breaks: usize,
    /// Line breaks at the very end of what was selected.
    trailing_breaks: usize,
    first_line_bytes: usize,
    had_odd_bytes: bool,
}

impl LineSelector {
    pub(super) fn new(encoding: TextEncoding, start: u64, end: u64) -> Self {
        let encoding = encoding.encoding;
        Self {
            start,
            end,
            line: 0,
            // The mark was judged already; in UTF-8 it is part of the text.
            decoder: encoding.new_decoder_without_bom_handling(),
            is_bytewise: encoding != encoding_rs::UTF_16LE && encoding != encoding_rs::UTF_16BE,
            scratch: String::new(),
            kept: String::new(),
            selected_bytes: 0,
            selected_breaks: 0,
            trailing_breaks: 0,
            first_line_bytes: 0,
            had_odd_bytes: false,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if !self.is_bytewise {
            self.decode(bytes, Last::No);
            return;
        }
        let (before, rest) = split_after_breaks(bytes, self.start.saturating_sub(self.line));
        self.line += count(before);
        if rest.is_empty() {
            return;
        }
        let (wanted, behind) = split_after_breaks(rest, self.end.saturating_sub(self.line));
        if !wanted.is_empty() {
            self.decode(wanted, Last::No);
        }
        self.line += count(behind);
    }

    pub(super) fn finish(mut self) -> Selection {
        self.decode(&[], Last::Yes);
        let total_lines = self.line + 1;
        // The break behind the last selected line is not part of the selection, unless it ends the text.
        if self.end < total_lines && self.trailing_breaks > 0 {
            self.trailing_breaks -= 1;
            self.selected_breaks -= 1;
            self.selected_bytes -= 1;
            self.kept.truncate(self.selected_bytes);
        }
        let mut truncation = truncate_head(&self.kept, Limits::default());
        if !self.is_kept_whole() {
            truncation.total_bytes = self.selected_bytes;
            truncation.total_lines = self.selected_breaks + usize::from(self.trailing_breaks == 0);
        }
        Selection {
            total_lines,
            truncation,
            first_line_bytes: self.first_line_bytes,
            had_odd_bytes: self.had_odd_bytes,
        }
    }

    fn is_kept_whole(&self) -> bool {
        self.kept.len() == self.selected_bytes
    }

    fn decode(&mut self, mut bytes: &[u8], last: Last) {
        let mut text = std::mem::take(&mut self.scratch);
        loop {
            text.clear();
            text.reserve(bytes.len().max(16) + bytes.len() / 2);
            let (result, read) = self.decoder.decode_to_string_without_replacement(bytes, &mut text, last == Last::Yes);
            bytes = &bytes[read..];
            self.select(&text);
            match result {
                DecoderResult::InputEmpty => break,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(_, _) => {
                    self.had_odd_bytes |= (self.start..self.end).contains(&self.line);
                    self.select("\u{fffd}");
                }
            }
        }
        self.scratch = text;
    }

    fn select(&mut self, text: &str) {
        let (before, rest) = split_after_breaks(text.as_bytes(), self.start.saturating_sub(self.line));
        self.line += count(before);
        if self.line < self.start {
            return;
        }
        let (wanted, behind) = split_after_breaks(rest, self.end.saturating_sub(self.line));
        let breaks = count(wanted);
        if self.selected_breaks == 0 {
            self.first_line_bytes += memchr::memchr(b'\n', wanted).unwrap_or(wanted.len());
        }
        let wanted = &text[before.len()..before.len() + wanted.len()];
        self.line += breaks;
        self.selected_breaks += breaks as usize;
        self.selected_bytes += wanted.len();
        let trailing = wanted.len() - wanted.trim_end_matches('\n').len();
        let before_them = if trailing == wanted.len() { self.trailing_breaks } else { 0 };
        self.trailing_breaks = before_them + trailing;
        if self.kept.len() < KEPT {
            let mut room = (KEPT - self.kept.len()).min(wanted.len());
            while !wanted.is_char_boundary(room) {
                room += 1;
            }
            self.kept.push_str(&wanted[..room]);
        }
        self.line += count(behind);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Yes,
    No,
}

fn count(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Splits behind the given number of line breaks; all of it is in front when there are fewer.
fn split_after_breaks(bytes: &[u8], breaks: u64) -> (&[u8], &[u8]) {
    if breaks == 0 {
        return bytes.split_at(0);
    }
    let nth = usize::try_from(breaks - 1).unwrap_or(usize::MAX);
    match memchr::memchr_iter(b'\n', bytes).nth(nth) {
        Some(at) => bytes.split_at(at + 1),
        None => bytes.split_at(bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;
    use proptest::prelude::*;

    use super::*;

    fn select(text: &[u8], cuts: &[usize], start: u64, end: u64) -> Selection {
        let mut selector = LineSelector::new(TextEncoding { encoding: UTF_8, mark: 0 }, start, end);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        for pair in cuts.windows(2) {
            selector.push(&text[pair[0]..pair[1]]);
        }
        selector.finish()
    }

    #[test]
    fn a_selection_larger_than_what_is_kept_is_counted_right() {
        let text = "0123456789\n".repeat(10_000) + "\n\n";
        for end in [9_000, 10_001, 10_002, 10_003, u64::MAX] {
            let selection = select(text.as_bytes(), &[5, 7000, 70_000], 1, end);
            let lines: Vec<&str> = text.split('\n').collect();
            let wanted = lines[1..lines.len().min(usize::try_from(end).unwrap_or(usize::MAX))].join("\n");
            assert_eq!(selection.truncation, truncate_head(&wanted, Limits::default()), "up to {end}");
            assert_eq!(selection.total_lines, lines.len() as u64);
        }
    }

    proptest! {
        #[test]
        fn the_selected_lines_are_those_of_the_split_text(
            text in "[ab\n\u{e9}\u{1f600}]{0,40}", cuts in proptest::collection::vec(0_usize..200, 0..4),
            start in 0_u64..8, length in 0_u64..8,
        ) {
            let lines: Vec<&str> = text.split('\n').collect();
            let start_at = lines.len().min(start as usize);
            let end_at = lines.len().min((start + length) as usize).max(start_at);
            let selection = select(text.as_bytes(), &cuts, start, start + length);
            prop_assert_eq!(selection.total_lines, lines.len() as u64);
            let wanted = lines[start_at..end_at].join("\n");
            prop_assert_eq!(&selection.truncation, &truncate_head(&wanted, Limits::default()));
            if start_at < end_at {
                prop_assert_eq!(selection.first_line_bytes, lines[start_at].len());
            }
            prop_assert!(!selection.had_odd_bytes);
        }
    }
}
