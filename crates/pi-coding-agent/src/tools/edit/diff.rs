//! What an edit changed: a diff to look at and a unified patch.
//!
//! Both are computed around the edits only, so that time and memory follow the size of the change and not
//! of the file. Line breaks are LF in both, and the byte order mark is left out.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::line_diff::{Run, diff_lines, split_lines};
use super::matching::Match;

/// Unchanged lines shown around a change.
const CONTEXT: usize = 4;
/// Unchanged lines compared around a change: well above what is shown, so that a change is aligned as it
/// would be in a diff of the whole file.
const MARGIN: usize = 32;

/// The details of an edit's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EditDiff {
    /// Numbered lines to look at: `+n text`, `-n text` and ` n text`, with `...` where lines are left out.
    pub diff: String,
    /// A unified diff of the text with LF line breaks.
    pub patch: String,
    /// The first line that changed, counted from 1 in the new text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_changed_line: Option<usize>,
}

/// The diff of `text` (line breaks LF) and the text with the matches replaced.
pub(super) fn diff_edits(path: &str, text: &[u8], matches: &[Match]) -> EditDiff {
    let old_breaks = count_breaks(text);
    let new_breaks = matches.iter().fold(old_breaks, |breaks, found| {
        breaks + count_breaks(found.replacement.as_bytes()) - count_breaks(&text[found.range.clone()])
    });
    let number_width = (old_breaks.max(new_breaks) + 1).to_string().len();
    let mut shown = Shown { number_width, ..Shown::default() };
    let mut patch = format!("--- {path}\n+++ {path}\n");
    for window in windows(text, matches) {
        let old = &text[window.old.clone()];
        let new = window.new_text(text, matches);
        let (old, new) = (split_lines(old), split_lines(&new));
        let runs = diff_lines(&old, &new);
        shown.add(&runs, &old, &new, &window);
        for hunk in hunks(&runs) {
            hunk.write(&mut patch, &old, &new, &window);
        }
    }
    EditDiff { diff: shown.lines.join("\n"), patch, first_changed_line: shown.first_changed_line }
}

fn count_breaks(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

/// Whole lines around one or more edits.
struct Window {
    old: Range<usize>,
    /// Which matches lie in it.
    matches: Range<usize>,
    /// Lines in front of it, in the old and in the new text.
    old_line: usize,
    new_line: usize,
}

impl Window {
    fn new_text(&self, text: &[u8], matches: &[Match]) -> Vec<u8> {
        let mut new = Vec::new();
        let mut kept_from = self.old.start;
        for found in &matches[self.matches.clone()] {
            new.extend_from_slice(&text[kept_from..found.range.start]);
            new.extend_from_slice(found.replacement.as_bytes());
            kept_from = found.range.end;
        }
        new.extend_from_slice(&text[kept_from..self.old.end]);
        new
    }
}

fn windows(text: &[u8], matches: &[Match]) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
    let (mut counted, mut line) = (0, 0);
    let mut lines_gained = 0_isize;
    for (index, found) in matches.iter().enumerate() {
        let old = window_range(text, &found.range);
        match windows.last_mut() {
            Some(last) if old.start <= last.old.end => {
                last.old.end = last.old.end.max(old.end);
                last.matches.end = index + 1;
            }
            _ => {
                line += count_breaks(&text[counted..old.start]);
                counted = old.start;
                windows.push(Window {
                    old,
                    matches: index..index + 1,
                    old_line: line,
                    new_line: line.saturating_add_signed(lines_gained),
                });
            }
        }
        lines_gained +=
            count_breaks(found.replacement.as_bytes()) as isize - count_breaks(&text[found.range.clone()]) as isize;
    }
    windows
}

/// The lines that a range touches, with the margin on both sides.
fn window_range(text: &[u8], range: &Range<usize>) -> Range<usize> {
    let line_start = |before: usize| memchr::memrchr(b'\n', &text[..before]).map_or(0, |at| at + 1);
    let line_end = |from: usize| memchr::memchr(b'\n', &text[from..]).map_or(text.len(), |at| from + at + 1);

    let mut start = line_start(range.start);
    for _ in 0..MARGIN {
        if start == 0 {
            break;
        }
        start = line_start(start - 1);
    }
    // A match that ends with a line break ends with its line.
    let mut end = line_end(range.end.saturating_sub(1).max(range.start));
    for _ in 0..MARGIN {
        if end >= text.len() {
            break;
        }
        end = line_end(end);
    }
    start..end
}

#[derive(Default)]
struct Shown {
    lines: Vec<String>,
    number_width: usize,
    first_changed_line: Option<usize>,
}

impl Shown {
    fn add(&mut self, runs: &[Run], old: &[&[u8]], new: &[&[u8]], window: &Window) {
        let is_change = |index: Option<usize>| {
            index.and_then(|index| runs.get(index)).is_some_and(|run| !matches!(run, Run::Equal { .. }))
        };
        for (index, run) in runs.iter().enumerate() {
            match run {
                Run::Removed(range) => {
                    // The place in the new text is where the next kept or added line will stand.
                    if self.first_changed_line.is_none() {
                        self.changed_at(window.new_line + new_lines_before(runs, index));
                    }
                    self.push_lines('-', range.clone(), old, window.old_line);
                }
                Run::Added(range) => {
                    self.changed_at(window.new_line + range.start);
                    self.push_lines('+', range.clone(), new, window.new_line);
                }
                Run::Equal { old: range, .. } => {
                    let leading = if is_change(index.checked_sub(1)) { CONTEXT } else { 0 };
                    let trailing = if is_change(Some(index + 1)) { CONTEXT } else { 0 };
                    if range.len() <= leading + trailing {
                        self.push_lines(' ', range.clone(), old, window.old_line);
                    } else if leading + trailing > 0 {
                        self.push_lines(' ', range.start..range.start + leading, old, window.old_line);
                        self.push_gap();
                        self.push_lines(' ', range.end - trailing..range.end, old, window.old_line);
                    }
                }
            }
        }
    }

    fn changed_at(&mut self, line: usize) {
        self.first_changed_line.get_or_insert(line + 1);
    }

    fn push_lines(&mut self, sign: char, range: Range<usize>, lines: &[&[u8]], lines_before: usize) {
        let width = self.number_width;
        for index in range {
            let text = lines[index].strip_suffix(b"\n").unwrap_or(lines[index]);
            let number = lines_before + index + 1;
            self.lines.push(format!("{sign}{number:width$} {}", String::from_utf8_lossy(text)));
        }
    }

    /// Two windows in a row both leave out what is between them; it is marked once.
    fn push_gap(&mut self) {
        let gap = format!(" {:width$} ...", "", width = self.number_width);
        if self.lines.last() != Some(&gap) {
            self.lines.push(gap);
        }
    }
}

fn new_lines_before(runs: &[Run], index: usize) -> usize {
    runs[..index]
        .iter()
        .map(|run| match run {
            Run::Equal { new, .. } => new.len(),
            Run::Added(range) => range.len(),
            Run::Removed(_) => 0,
        })
        .sum()
}

/// One hunk of a unified diff: the runs it is made of.
struct Hunk {
    runs: Vec<Run>,
}

fn hunks(runs: &[Run]) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut open: Option<Hunk> = None;
    for (index, run) in runs.iter().enumerate() {
        let Run::Equal { old, new } = run else {
            let hunk = open.get_or_insert_with(|| Hunk {
                runs: index
                    .checked_sub(1)
                    .and_then(|before| runs.get(before))
                    .and_then(|before| before.last_lines(CONTEXT))
                    .into_iter()
                    .collect(),
            });
            hunk.runs.push(run.clone());
            continue;
        };
        let Some(hunk) = &mut open else { continue };
        if old.len() <= 2 * CONTEXT && index + 1 < runs.len() {
            hunk.runs.push(run.clone());
            continue;
        }
        let shown = old.len().min(CONTEXT);
        hunk.runs.push(Run::Equal { old: old.start..old.start + shown, new: new.start..new.start + shown });
        hunks.extend(open.take());
    }
    hunks.extend(open);
    hunks
}

impl Run {
    fn last_lines(&self, count: usize) -> Option<Self> {
        match self {
            Self::Equal { old, new } => {
                let count = count.min(old.len());
                Some(Self::Equal { old: old.end - count..old.end, new: new.end - count..new.end })
            }
            Self::Removed(_) | Self::Added(_) => None,
        }
    }
}

impl Hunk {
    fn write(&self, patch: &mut String, old: &[&[u8]], new: &[&[u8]], window: &Window) {
        use std::fmt::Write as _;

        let (mut old_range, mut new_range) = (None::<Range<usize>>, None::<Range<usize>>);
        let mut body = String::new();
        for run in &self.runs {
            let (sign, lines) = match run {
                Run::Equal { old: range, new: other } => {
                    extend(&mut old_range, range);
                    extend(&mut new_range, other);
                    (' ', &old[range.clone()])
                }
                Run::Removed(range) => {
                    extend(&mut old_range, range);
                    ('-', &old[range.clone()])
                }
                Run::Added(range) => {
                    extend(&mut new_range, range);
                    ('+', &new[range.clone()])
                }
            };
            for line in lines {
                body.push(sign);
                body.push_str(&String::from_utf8_lossy(line));
                if !line.ends_with(b"\n") {
                    body.push_str("\n\\ No newline at end of file\n");
                }
            }
        }
        let header = |range: Option<Range<usize>>, lines_before: usize| match range {
            // An empty range is named by the line in front of it.
            None => format!("{lines_before},0"),
            Some(range) => format!("{},{}", lines_before + range.start + 1, range.len()),
        };
        let _ = write!(
            patch,
            "@@ -{} +{} @@\n{body}",
            header(old_range, window.old_line),
            header(new_range, window.new_line)
        );
    }
}

fn extend(range: &mut Option<Range<usize>>, by: &Range<usize>) {
    match range {
        Some(range) => range.end = by.end,
        None => *range = Some(by.clone()),
    }
}
