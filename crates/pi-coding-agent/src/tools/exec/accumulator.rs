//! Keeping the output of a command within bounds while it is written.
//!
//! In memory stay the beginning and the end of the text; once it is more than a result may hold, all of it goes to a
//! file as it was written. Counts are exact whatever was let go.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::clean::TextCleaner;
use crate::tools::truncate::{Limits, TruncatedBy, Truncation, truncate_tail};
use crate::workspace::Files;

/// Text that programs get of one output; beyond, its middle is left out.
const STRUCTURED_BYTES: usize = 1024 * 1024;
const HEAD_BYTES: usize = STRUCTURED_BYTES / 2;
const TAIL_BYTES: usize = STRUCTURED_BYTES - HEAD_BYTES;

/// The output of one command as far as it has come.
pub(crate) struct OutputAccumulator {
    limits: Limits,
    cleaner: TextCleaner,
    /// The first [`HEAD_BYTES`] of the text.
    head: String,
    /// What is behind the head, or the last [`TAIL_BYTES`] at least of it.
    tail: Tail,
    total_bytes: usize,
    total_breaks: usize,
    /// Bytes of the line that is being written, and of the last one that was finished.
    open_line: usize,
    last_line: usize,
    raw: Raw,
}

/// Where the bytes are kept as they were written.
enum Raw {
    /// Few enough to wait whether a file is needed.
    Held(Vec<u8>),
    /// In a file.
    Spilled { path: PathBuf, writer: Pin<Box<dyn AsyncWrite + Send>> },
    /// In a file that is complete.
    Saved(PathBuf),
    /// Nowhere: the file could not be made or written.
    Lost(String),
}

/// The output at one moment, as a result shows it.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) truncation: Truncation,
    pub(crate) full_output: FullOutput,
}

/// Where all of the output is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FullOutput {
    /// In the snapshot.
    Shown,
    /// In a file.
    File(PathBuf),
    /// It could not be kept; the text says why.
    Lost(String),
}

/// The output for programs: all of it, or its beginning and end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StructuredOutput {
    pub(crate) text: String,
    pub(crate) truncated: bool,
}

impl OutputAccumulator {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            cleaner: TextCleaner::default(),
            head: String::new(),
            tail: Tail::default(),
            total_bytes: 0,
            total_breaks: 0,
            open_line: 0,
            last_line: 0,
            raw: Raw::Held(Vec::new()),
        }
    }

    /// Takes the next piece of output; `see` gets its text. When it becomes too much, a file is made in `files`.
    pub(crate) async fn push(&mut self, bytes: &[u8], files: &dyn Files, see: impl FnOnce(&str)) {
        let mut text = String::with_capacity(bytes.len());
        self.cleaner.push(bytes, &mut text);
        see(&text);
        self.add_text(text);
        self.keep_raw(bytes, files).await;
    }

    /// Lets others read in the file what has come so far.
    pub(crate) async fn flush(&mut self) {
        if let Raw::Spilled { writer, .. } = &mut self.raw
            && let Err(error) = writer.flush().await
        {
            self.raw = Raw::Lost(error.to_string());
        }
    }

    /// Ends the output; `see` gets the text that was held back. The file is complete then.
    pub(crate) async fn finish(&mut self, files: &dyn Files, see: impl FnOnce(&str)) {
        let mut text = String::new();
        self.cleaner.finish(&mut text);
        see(&text);
        self.add_text(text);
        self.keep_raw(&[], files).await;
        if let Raw::Spilled { writer, path } = &mut self.raw {
            self.raw = match writer.shutdown().await {
                Ok(()) => Raw::Saved(std::mem::take(path)),
                Err(error) => Raw::Lost(error.to_string()),
            };
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let total_lines = self.total_breaks + usize::from(self.open_line > 0);
        let truncated = total_lines > self.limits.lines || self.total_bytes > self.limits.bytes;
        let mut shown = truncate_tail(&self.recent(), self.limits);
        if truncated {
            // What is kept may fit as it is; of the whole, the break behind its last line is not kept.
            if !shown.truncated && shown.content.ends_with('\n') {
                shown.content.pop();
                shown.output_bytes -= 1;
            }
            let all_lines = shown.output_lines >= self.limits.lines.min(total_lines);
            shown.truncated_by = Some(match all_lines && !shown.last_line_partial {
                true => TruncatedBy::Lines,
                false => TruncatedBy::Bytes,
            });
        }
        Snapshot {
            truncation: Truncation { truncated, total_lines, total_bytes: self.total_bytes, ..shown },
            full_output: match &self.raw {
                Raw::Held(_) => FullOutput::Shown,
                Raw::Spilled { path, .. } | Raw::Saved(path) => FullOutput::File(path.clone()),
                Raw::Lost(reason) => FullOutput::Lost(reason.clone()),
            },
        }
    }

    /// Bytes of the last line, whole.
    pub(crate) fn last_line_bytes(&self) -> usize {
        if self.open_line > 0 { self.open_line } else { self.last_line }
    }

    /// Whether the output was no text.
    pub(crate) fn is_binary(&self) -> bool {
        self.cleaner.is_binary()
    }

    pub(crate) fn structured(&self) -> StructuredOutput {
        let omitted = (self.total_bytes - self.head.len()).saturating_sub(TAIL_BYTES);
        let kept = self.tail.last_bytes(usize::MAX);
        if omitted == 0 {
            return StructuredOutput { text: format!("{}{kept}", self.head), truncated: false };
        }
        let tail = last_bytes(&kept, TAIL_BYTES);
        let omitted = self.total_bytes - self.head.len() - tail.len();
        StructuredOutput {
            text: format!("{}\n\n[... {omitted} bytes omitted ...]\n\n{tail}", self.head),
            truncated: true,
        }
    }

    fn add_text(&mut self, text: String) {
        self.total_bytes += text.len();
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        self.total_breaks += breaks;
        match text.rsplit_once('\n') {
            Some((finished, open)) => {
                let start_of_last = finished.rfind('\n');
                self.last_line = match start_of_last {
                    Some(at) => finished.len() - at - 1,
                    None => self.open_line + finished.len(),
                };
                self.open_line = open.len();
            }
            None => self.open_line += text.len(),
        }

        let into_head = if self.tail.is_empty() {
            floor_char_boundary(&text, HEAD_BYTES - self.head.len().min(HEAD_BYTES))
        } else {
            0
        };
        self.head.push_str(&text[..into_head]);
        self.tail.push(if into_head == 0 { text } else { text[into_head..].to_owned() });
    }

    /// The end of the text: at least what a snapshot may show, from the start of a line where one is near.
    fn recent(&self) -> String {
        // More than fits, and a line break, tell that a line does not fit.
        let wanted = 2 * self.limits.bytes + 2;
        let mut recent = self.tail.last_bytes(wanted);
        if self.tail.bytes < wanted {
            recent.insert_str(0, last_bytes(&self.head, wanted));
        }
        if recent.len() < self.total_bytes
            && let Some(first_break) = recent.find('\n')
            && first_break + 1 < recent.len()
        {
            recent.drain(..=first_break);
        }
        recent
    }

    fn is_too_much(&self, raw: usize) -> bool {
        raw > self.limits.bytes
            || self.total_bytes > self.limits.bytes
            || self.total_breaks + usize::from(self.open_line > 0) > self.limits.lines
    }

    async fn keep_raw(&mut self, bytes: &[u8], files: &dyn Files) {
        if let Raw::Held(held) = &mut self.raw {
            held.extend_from_slice(bytes);
            let held_bytes = held.len();
            if !self.is_too_much(held_bytes) {
                return;
            }
            let held = match std::mem::replace(&mut self.raw, Raw::Lost(String::new())) {
                Raw::Held(held) => held,
                other => {
                    self.raw = other;
                    return;
                }
            };
            self.raw = match files.create_temporary("pi-bash").await {
                Ok(file) => Raw::Spilled { path: file.path, writer: file.writer },
                Err(error) => Raw::Lost(error.to_string()),
            };
            self.write(&held).await;
        } else {
            self.write(bytes).await;
        }
    }

    async fn write(&mut self, bytes: &[u8]) {
        if let Raw::Spilled { writer, .. } = &mut self.raw
            && let Err(error) = writer.write_all(bytes).await
        {
            self.raw = Raw::Lost(error.to_string());
        }
    }
}

impl FullOutput {
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Shown | Self::Lost(_) => None,
        }
    }
}

/// The end of a text, in the pieces that it came in, so that none is moved.
#[derive(Default)]
struct Tail {
    pieces: VecDeque<String>,
    bytes: usize,
}

impl Tail {
    /// Smaller pieces are joined to the one before, so that there are never many.
    const SMALL: usize = 8 * 1024;

    fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    fn push(&mut self, mut text: String) {
        self.bytes += text.len();
        match self.pieces.back_mut() {
            _ if text.is_empty() => {}
            Some(last) if text.len() < Self::SMALL && last.len() < TAIL_BYTES / 2 => last.push_str(&text),
            _ => {
                if text.len() < text.capacity() / 2 {
                    text.shrink_to_fit();
                }
                self.pieces.push_back(text);
            }
        }
        while let Some(first) = self.pieces.front()
            && self.bytes - first.len() >= TAIL_BYTES
        {
            self.bytes -= first.len();
            self.pieces.pop_front();
        }
    }

    /// Its last bytes, as far as it has them; less by the part of a character that is cut.
    fn last_bytes(&self, bytes: usize) -> String {
        let mut too_much = self.bytes.saturating_sub(bytes);
        let mut text = String::with_capacity(self.bytes - too_much);
        for piece in &self.pieces {
            if too_much >= piece.len() {
                too_much -= piece.len();
                continue;
            }
            text.push_str(last_bytes(piece, piece.len() - std::mem::take(&mut too_much)));
        }
        text
    }
}

fn last_bytes(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

fn floor_char_boundary(text: &str, mut index: usize) -> usize {
    if index >= text.len() {
        return text.len();
    }
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::workspace::memory::MemoryFiles;

    async fn accumulate(pieces: &[Vec<u8>], limits: Limits, files: &MemoryFiles) -> OutputAccumulator {
        let mut output = OutputAccumulator::new(limits);
        for piece in pieces {
            output.push(piece, files, |_| {}).await;
        }
        output.finish(files, |_| {}).await;
        output
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn programs_get_the_beginning_and_the_end_of_a_huge_output() {
        let files = MemoryFiles::default();
        let pieces: Vec<Vec<u8>> = (0..40).map(|_| "漢".repeat(20_000).into_bytes()).collect();
        let output = run(accumulate(&pieces, Limits::default(), &files));
        let structured = output.structured();
        assert!(structured.truncated);
        let (head, rest) = structured.text.split_once("\n\n[... ").unwrap();
        let (omitted, tail) = rest.split_once(" bytes omitted ...]\n\n").unwrap();
        assert_eq!(head.len() + omitted.parse::<usize>().unwrap() + tail.len(), 40 * 60_000);
        assert!(head.len() + tail.len() <= STRUCTURED_BYTES);
    }

    proptest! {
        #[test]
        fn a_snapshot_is_what_truncating_the_whole_text_gives(
            pieces in proptest::collection::vec(proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'a'), Just(b'b')], 0..30), 0..12),
            lines in 1_usize..6, bytes in 1_usize..50,
        ) {
            let limits = Limits { lines, bytes };
            let files = MemoryFiles::default();
            let output = run(accumulate(&pieces, limits, &files));
            let snapshot = output.snapshot();
            let whole = String::from_utf8(pieces.concat()).unwrap();
            prop_assert_eq!(&snapshot.truncation, &truncate_tail(&whole, limits));
            match &snapshot.full_output {
                FullOutput::Shown => prop_assert!(!snapshot.truncation.truncated),
                FullOutput::File(path) => prop_assert_eq!(files.content(path).unwrap(), whole.as_bytes()),
                FullOutput::Lost(reason) => prop_assert!(false, "{}", reason),
            }
            let last = whole.strip_suffix('\n').unwrap_or(&whole).rsplit('\n').next().unwrap().len();
            prop_assert_eq!(output.last_line_bytes(), last);
        }
    }
}
