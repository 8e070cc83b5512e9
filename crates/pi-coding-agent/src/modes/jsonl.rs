//! A byte stream cut into lines, for programs that send one JSON value a line.

use crate::session::LineSplitter;

/// Cuts a byte stream into lines of text, however the bytes arrive.
///
/// Only LF ends a line: the other separators of Unicode (U+2028, U+0085 and so on) are ordinary characters of JSON
/// strings. A CR in front of the LF is not part of the line. Bytes that are not UTF-8 become U+FFFD, so that the reader
/// of the line can say what is wrong with it.
///
/// ```
/// use pi_coding_agent::modes::jsonl::Lines;
/// let mut lines = Lines::default();
/// assert_eq!(lines.push(b"{\"type\":"), [""; 0]);
/// assert_eq!(lines.push(b"\"abort\"}\r\n[]"), ["{\"type\":\"abort\"}"]);
/// assert_eq!(lines.finish().as_deref(), Some("[]"));
/// ```
#[derive(Debug, Default)]
pub struct Lines {
    splitter: LineSplitter,
}

impl Lines {
    /// Takes the next bytes; gives the lines that end in them.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        self.splitter.push(bytes, |_, line| lines.push(text(line)));
        lines
    }

    /// The stream is over; gives what came after the last LF.
    pub fn finish(self) -> Option<String> {
        self.splitter.rest().map(|(_, line)| text(line))
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned()
}
