//! Searching one file.

use std::io;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use tokio_util::sync::CancellationToken;

use super::super::{CaseRule, GrepFile, GrepLine, GrepLineKind, GrepQuery, GrepStop, Pattern, SearchError};
use crate::tools::truncate::shorten_line;

/// Longest line that is held in memory.
const LONGEST_LINE: usize = 64 * 1024 * 1024;

/// A query made ready; shared by all threads.
#[derive(Clone, Debug)]
pub(in crate::workspace) struct GrepMatcher {
    regex: RegexMatcher,
    context: usize,
    limit: usize,
    line_units: usize,
    text_bytes: usize,
    cancel: CancellationToken,
}

impl GrepMatcher {
    pub(in crate::workspace) fn new(query: &GrepQuery, cancel: CancellationToken) -> Result<Self, SearchError> {
        let mut builder = RegexMatcherBuilder::new();
        builder.multi_line(true).line_terminator(Some(b'\n')).case_insensitive(query.case == CaseRule::Insensitive);
        let (pattern, builder) = match &query.pattern {
            Pattern::Regex(pattern) => (pattern, &mut builder),
            Pattern::Literal(text) => (text, builder.fixed_strings(true)),
        };
        Ok(Self {
            regex: builder.build(pattern).map_err(|error| SearchError::Pattern(error.to_string()))?,
            context: query.context,
            limit: query.limit.max(1),
            line_units: query.line_units,
            text_bytes: query.text_bytes,
            cancel,
        })
    }

    pub(in crate::workspace) fn limit(&self) -> usize {
        self.limit
    }

    pub(in crate::workspace) fn context(&self) -> usize {
        self.context
    }

    pub(in crate::workspace) fn text_bytes(&self) -> usize {
        self.text_bytes
    }
}

/// Searches files one after the other; each thread has its own.
pub(in crate::workspace) struct FileSearch {
    matcher: GrepMatcher,
    searcher: Searcher,
}

/// One file that was searched.
pub(in crate::workspace) struct Searched {
    pub(in crate::workspace) file: GrepFile,
    /// Whether it has more matches than the limit of the whole search.
    pub(in crate::workspace) more: bool,
}

impl FileSearch {
    pub(in crate::workspace) fn new(matcher: GrepMatcher) -> Self {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .before_context(matcher.context)
            .after_context(matcher.context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(LONGEST_LINE))
            .build();
        Self { matcher, searcher }
    }

    /// Searches bytes under this name.
    pub(in crate::workspace) fn search(&mut self, path: String, reader: impl io::Read) -> Searched {
        let mut lines = Lines::new(&self.matcher);
        let reader = Cancellable { reader, cancel: &self.matcher.cancel };
        let result = self.searcher.search_reader(&self.matcher.regex, reader, &mut lines);
        let stopped = match result {
            Ok(()) => lines.binary.then_some(GrepStop::Binary),
            Err(error) if error.kind() == io::ErrorKind::Other => Some(GrepStop::LongLine),
            Err(_) => Some(GrepStop::Unreadable),
        };
        Searched { more: lines.more, file: GrepFile { path, lines: lines.lines, stopped } }
    }
}

/// Ends when the caller cancels.
struct Cancellable<'a, R> {
    reader: R,
    cancel: &'a CancellationToken,
}

impl<R: io::Read> io::Read for Cancellable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.reader.read(buffer)
    }
}

/// Takes the lines of one file.
struct Lines<'a> {
    matcher: &'a GrepMatcher,
    lines: Vec<GrepLine>,
    matches: usize,
    /// Set at the last match that is allowed: its context goes up to this line.
    context_end: Option<u64>,
    more: bool,
    text_bytes: usize,
    binary: bool,
}

impl<'a> Lines<'a> {
    fn new(matcher: &'a GrepMatcher) -> Self {
        Self { matcher, lines: Vec::new(), matches: 0, context_end: None, more: false, text_bytes: 0, binary: false }
    }

    fn push(&mut self, number: u64, kind: GrepLineKind, bytes: &[u8]) {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        // A longer piece than any limit needs is never decoded: a minified file is one line.
        let most = self.matcher.line_units.saturating_mul(4).saturating_add(4);
        let text = String::from_utf8_lossy(bytes.get(..most).unwrap_or(bytes)).into_owned();
        let shortened = shorten_line(&text, self.matcher.line_units);
        let is_shortened = shortened.is_some();
        let text = shortened.unwrap_or(text);
        let len = text.len();
        let fits = self.text_bytes <= self.matcher.text_bytes;
        self.text_bytes += len;
        self.lines.push(GrepLine { number, kind, text: fits.then_some(text), len, shortened: is_shortened });
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let number = found.line_number().unwrap_or_default();
        match self.context_end {
            None => {
                self.push(number, GrepLineKind::Match, found.bytes());
                self.matches += 1;
                if self.matches >= self.matcher.limit {
                    self.context_end = Some(number.saturating_add(self.matcher.context as u64));
                }
                Ok(true)
            }
            Some(end) => {
                self.more = true;
                if number <= end {
                    self.push(number, GrepLineKind::Context, found.bytes());
                }
                Ok(number < end)
            }
        }
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let number = context.line_number().unwrap_or_default();
        // In front of a match that is beyond the limit.
        if self.context_end.is_some_and(|end| number > end) {
            return Ok(true);
        }
        self.push(number, GrepLineKind::Context, context.bytes());
        Ok(true)
    }

    fn binary_data(&mut self, _searcher: &Searcher, _offset: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }

    fn finish(&mut self, _searcher: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}
