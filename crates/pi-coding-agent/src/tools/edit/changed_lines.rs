//! Leaving alone what an edit does not change: lines that its old and its new text share keep the file's bytes.

use std::ops::Range;

use super::line_diff::{Run, diff_lines};
use super::matching::Match;

/// The parts of a match that change, in order; none when its old and its new text are the same.
///
/// The lines of the matched range are those of `old_text` one by one, though they may differ in what a tolerant
/// match overlooks. Where they do not correspond, the match stays in one piece.
pub(super) fn changed_lines(text: &[u8], found: Match, old_text: &str) -> Vec<Match> {
    let old: Vec<&[u8]> = old_text.as_bytes().split(|byte| *byte == b'\n').collect();
    let in_file = line_ranges(text, &found.range);
    if old.len() != in_file.len() {
        return vec![found];
    }
    let new: Vec<&str> = found.replacement.split('\n').collect();
    let new_bytes: Vec<&[u8]> = new.iter().map(|line| line.as_bytes()).collect();
    changes(&diff_lines(&old, &new_bytes))
        .into_iter()
        .map(|change| {
            let (range, replacement) = change.place(&in_file, &new);
            Match { edit: found.edit, range, replacement }
        })
        .collect()
}

/// The lines in a range, without their line feeds: one more than there are line feeds.
fn line_ranges(text: &[u8], range: &Range<usize>) -> Vec<Range<usize>> {
    let mut start = range.start;
    let breaks = memchr::memchr_iter(b'\n', &text[range.clone()]).map(|at| range.start + at);
    breaks.chain([range.end]).map(|end| std::mem::replace(&mut start, end + 1)..end).collect()
}

/// Lines between two that stay, or between one that stays and the end of the match.
#[derive(Debug)]
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

fn changes(runs: &[Run]) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    for run in runs {
        let (old_end, new_end) = match run {
            Run::Equal { old, new } => {
                (old_at, new_at) = (old.end, new.end);
                continue;
            }
            Run::Removed(old) => (old.end, new_at),
            Run::Added(new) => (old_at, new.end),
        };
        match changes.last_mut() {
            Some(last) if last.old.end == old_at && last.new.end == new_at => {
                (last.old.end, last.new.end) = (old_end, new_end);
            }
            _ => changes.push(Change { old: old_at..old_end, new: new_at..new_end }),
        }
        (old_at, new_at) = (old_end, new_end);
    }
    changes
}

impl Change {
    /// Where it is in the file, and what comes there. Where lines change, the line break behind them stays; where
    /// lines only come or go, one line break comes or goes with each: that behind it, or at the end that before it.
    fn place(&self, in_file: &[Range<usize>], new: &[&str]) -> (Range<usize>, String) {
        let lines = new[self.new.clone()].join("\n");
        if !self.old.is_empty() && !self.new.is_empty() {
            return (in_file[self.old.start].start..in_file[self.old.end - 1].end, lines);
        }
        if let Some(next) = in_file.get(self.old.end) {
            let start = in_file[self.old.start].start;
            let lines = if self.new.is_empty() { lines } else { lines + "\n" };
            return (start..next.start, lines);
        }
        // A match has at least one line, and so has its replacement: at the end there is one before.
        let start = in_file[self.old.start.saturating_sub(1)].end;
        let end = in_file.last().map_or(start, |last| last.end);
        (start..end, if self.new.is_empty() { lines } else { format!("\n{lines}") })
    }
}
