//! `text/event-stream`: bytes, cut anywhere → whole events.
//!
//! The parser is our own because it is on the hot path: `eventsource-stream` costs more per event than decoding the
//! JSON in it, re-reads a line with every piece that comes, and gives up on the first byte that is not UTF-8. It
//! serves as the oracle of a property test instead.

use std::{mem, ops::Range};

use super::Frame;

/// The most bytes that the data of one event may have, unless a framer is made with another limit.
pub const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;

/// Memory beyond this is given back once what it held is done with.
const KEPT_CAPACITY: usize = 256 * 1024;

/// One event is larger than the limit. The framer gives nothing after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one event of the response has more than {limit} bytes; the server may not be sending an event stream")]
pub struct EventTooLarge {
    /// The limit, in bytes.
    pub limit: usize,
}

/// Cuts a byte stream into events. The result does not depend on how the bytes arrive.
///
/// Lines end with LF, CR or CRLF; comments and unknown fields are dropped; one space after the colon is taken away;
/// several `data` lines are joined by LF; what is not UTF-8 is replaced within its event. Each byte is looked at once.
///
/// ```
/// use pi_ai::api::sse::SseFramer;
/// let mut framer = SseFramer::default();
/// framer.push(b"event: ping\ndata: on");
/// assert!(framer.next_frame()?.is_none());
/// framer.push(b"e\n\n: a comment\ndata:two");
/// let frame = framer.next_frame()?.expect("the first event is whole");
/// assert_eq!((frame.name, frame.data), (Some("ping"), "one"));
/// assert!(framer.next_frame()?.is_none());
/// framer.finish();
/// assert_eq!(framer.next_frame()?.expect("the end completes an event").data, "two");
/// # Ok::<(), pi_ai::api::sse::EventTooLarge>(())
/// ```
#[derive(Debug)]
pub struct SseFramer {
    limit: usize,
    input: Input,
    at: Position,
    buffer: Vec<u8>,
    /// Where the line begins that is being read. What is before it is done with, but for [`Data::Line`].
    line: usize,
    /// Up to where that line was searched for its end.
    searched: usize,
    /// The event that is being read.
    data: Data,
    name: String,
    /// Data lines that were joined.
    joined: Vec<u8>,
    /// What the frame that was last given borrows, beside the buffer.
    given_name: String,
    repaired: String,
}

/// The `data` field of the event that is being read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Data {
    None,
    /// One line, which stays where it is in the buffer.
    Line(Range<usize>),
    /// Several lines, in [`SseFramer::joined`].
    Joined,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Before the first line: it may begin with a byte order mark.
    Start,
    Line,
    /// After a CR: an LF belongs to it.
    CarriageReturn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Open,
    Ended,
    TooLarge,
}

impl Default for SseFramer {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }
}

impl SseFramer {
    /// A framer that refuses events of more than `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            input: Input::Open,
            at: Position::Start,
            buffer: Vec::new(),
            line: 0,
            searched: 0,
            data: Data::None,
            name: String::new(),
            joined: Vec::new(),
            given_name: String::new(),
            repaired: String::new(),
        }
    }

    /// Takes the next bytes. Take the frames that they complete before the next push: until then they stay in memory.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.input == Input::Open {
            self.make_room();
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// The stream ended: an event that lacks its blank line counts as whole.
    pub fn finish(&mut self) {
        if self.input == Input::Open {
            self.input = Input::Ended;
            // The first ends a line that was begun (or a CR), the second the event.
            self.buffer.extend_from_slice(b"\n\n");
        }
    }

    /// The next event that is whole, or `None` when more bytes are needed.
    ///
    /// # Errors
    /// When an event exceeds the limit.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, EventTooLarge> {
        let data = loop {
            if self.input == Input::TooLarge {
                return Err(EventTooLarge { limit: self.limit });
            }
            let Some(line) = self.next_line() else {
                if self.pending() > self.limit {
                    self.input = Input::TooLarge;
                    continue;
                }
                return Ok(None);
            };
            if line.is_empty() {
                match mem::replace(&mut self.data, Data::None) {
                    Data::None => self.name.clear(),
                    data => break data,
                }
            } else {
                self.field(line);
                if self.pending() > self.limit {
                    self.input = Input::TooLarge;
                }
            }
        };
        mem::swap(&mut self.name, &mut self.given_name);
        self.name.clear();
        let bytes = match data {
            Data::Line(range) => &self.buffer[range],
            Data::Joined | Data::None => &self.joined[..],
        };
        let data = match std::str::from_utf8(bytes) {
            Ok(data) => data,
            Err(_) => {
                self.repaired = String::from_utf8_lossy(bytes).into_owned();
                &self.repaired
            }
        };
        let name = (!self.given_name.is_empty()).then_some(&*self.given_name);
        Ok(Some(Frame { name, data }))
    }

    /// The next whole line, without its end.
    fn next_line(&mut self) -> Option<Range<usize>> {
        if self.at == Position::CarriageReturn {
            let next = *self.buffer.get(self.line)?;
            self.at = Position::Line;
            if next == b'\n' {
                self.line += 1;
                self.searched = self.line;
            }
        }
        let Some(found) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let (mut start, end) = (self.line, self.searched + found);
        if self.at == Position::Start && self.buffer[start..end].starts_with("\u{feff}".as_bytes()) {
            start += '\u{feff}'.len_utf8();
        }
        self.at = match self.buffer[end] {
            b'\r' => Position::CarriageReturn,
            _ => Position::Line,
        };
        self.line = end + 1;
        self.searched = self.line;
        Some(start..end)
    }

    fn field(&mut self, line: Range<usize>) {
        let text = &self.buffer[line.clone()];
        if let Some(value) = value_of(text, b"data") {
            let value_range = line.end - value.len()..line.end;
            match mem::replace(&mut self.data, Data::Joined) {
                Data::None => self.data = Data::Line(value_range),
                Data::Line(first) => {
                    self.joined.clear();
                    self.joined.extend_from_slice(&self.buffer[first]);
                    self.joined.push(b'\n');
                    self.joined.extend_from_slice(&self.buffer[value_range]);
                }
                Data::Joined => {
                    self.joined.push(b'\n');
                    self.joined.extend_from_slice(&self.buffer[value_range]);
                }
            }
        } else if let Some(value) = value_of(text, b"event") {
            self.name.clear();
            self.name.push_str(&String::from_utf8_lossy(value));
        }
    }

    /// The size of the event so far, with the line that was begun.
    fn pending(&self) -> usize {
        let data = match &self.data {
            Data::None => 0,
            Data::Line(range) => range.len(),
            Data::Joined => self.joined.len(),
        };
        data + self.name.len() + (self.searched - self.line)
    }

    /// Drops what is done with, once it is most of the buffer: each byte is moved at most once on average.
    fn make_room(&mut self) {
        if self.joined.capacity() > KEPT_CAPACITY && self.data != Data::Joined {
            self.joined = Vec::new();
        }
        if self.repaired.capacity() > KEPT_CAPACITY {
            self.repaired = String::new();
        }
        let done = match &self.data {
            Data::Line(range) => range.start,
            Data::None | Data::Joined => self.line,
        };
        if done == 0 || done < self.buffer.len() / 2 {
            return;
        }
        self.buffer.drain(..done);
        self.line -= done;
        self.searched -= done;
        if let Data::Line(range) = &mut self.data {
            *range = range.start - done..range.end - done;
        }
        if self.buffer.capacity() > KEPT_CAPACITY && self.buffer.len() < KEPT_CAPACITY / 4 {
            self.buffer.shrink_to(KEPT_CAPACITY);
        }
    }
}

/// The value of a line that has this field: after the colon and at most one space, or nothing when there is no colon.
fn value_of<'a>(line: &'a [u8], field: &[u8]) -> Option<&'a [u8]> {
    match line.strip_prefix(field)? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt, stream};
    use proptest::prelude::*;

    use super::*;

    type Event = (Option<String>, String);

    fn events(pieces: &[&[u8]]) -> Vec<Event> {
        let mut framer = SseFramer::default();
        let mut events = Vec::new();
        let mut take = |framer: &mut SseFramer| {
            while let Some(frame) = framer.next_frame().unwrap() {
                events.push((frame.name.map(str::to_owned), frame.data.to_owned()));
            }
        };
        for piece in pieces {
            framer.push(piece);
            take(&mut framer);
        }
        framer.finish();
        take(&mut framer);
        events
    }

    fn data(body: &str) -> Vec<String> {
        events(&[body.as_bytes()]).into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn lines_end_with_any_of_the_three_line_ends() {
        for end in ["\n", "\r", "\r\n"] {
            assert_eq!(data(&"data: a|data: b||data: c||".replace('|', end)), ["a\nb", "c"], "{end:?}");
        }
    }

    #[test]
    fn the_space_after_the_colon_is_optional_and_only_one_is_taken() {
        assert_eq!(data("data:a\n\ndata: b\n\ndata:  c\n\ndata\n\n"), ["a", "b", " c", ""]);
    }

    #[test]
    fn comments_and_unknown_fields_are_dropped_wherever_they_stand() {
        let body = ": hi\n\n:\ndata: a\n: in the middle\nid: 7\nretry: 9\ndatum: no\ndata: b\n\n: bye\n\n";
        assert_eq!(data(body), ["a\nb"]);
    }

    #[test]
    fn an_event_has_the_name_of_its_own_lines_only() {
        let body = "event: a\n\nevent: x\nevent: b\ndata: 1\n\ndata: 2\n\n";
        let named = |name: Option<&str>, data: &str| (name.map(str::to_owned), data.to_owned());
        assert_eq!(events(&[body.as_bytes()]), [named(Some("b"), "1"), named(None, "2")]);
    }

    #[test]
    fn a_byte_order_mark_belongs_to_the_stream_and_not_to_its_first_line() {
        assert_eq!(data("\u{feff}data: a\n\n\u{feff}data: b\n\n"), ["a"]);
        let cut = ["\u{feff}".as_bytes(), b"data: a\n\n"].concat();
        assert_eq!(events(&[&cut[..1], &cut[1..2], &cut[2..]]).len(), 1);
    }

    #[test]
    fn the_end_of_the_stream_completes_the_last_event() {
        for tail in ["", "\n", "\r", "\r\n", "\n\n", "\r\r"] {
            assert_eq!(data(&format!("data: a\n\ndata: b{tail}")), ["a", "b"], "{tail:?}");
        }
        assert_eq!(data("event: a\nid: 1"), Vec::<String>::new());
    }

    #[test]
    fn what_is_not_utf8_is_replaced_within_its_event() {
        let body = b"data: a\xff\n\ndata: b\n\ndata: \xf0\x9f\ndata: c\n\n";
        let texts: Vec<_> = events(&[body]).into_iter().map(|(_, data)| data).collect();
        assert_eq!(texts, ["a\u{fffd}", "b", "\u{fffd}\nc"]);
    }

    #[test]
    fn an_event_beyond_the_limit_is_an_error_however_it_arrives() {
        for pieces in [
            vec!["data: 0123456789\n\n"],
            vec!["data: 01234", "56789"],
            vec!["data: 01234\ndata: 56789\n\n"],
            vec!["data: ok\n\n", "data: 01234\nda", "ta: 56789\n\n"],
        ] {
            let mut framer = SseFramer::with_limit(9);
            let outcome = pieces.iter().try_for_each(|piece| {
                framer.push(piece.as_bytes());
                while let Some(frame) = framer.next_frame()? {
                    assert_eq!(frame.data, "ok");
                }
                Ok(())
            });
            assert_eq!(outcome, Err(EventTooLarge { limit: 9 }), "{pieces:?}");
            framer.push(b"\n\ndata: later\n\n");
            assert!(framer.next_frame().is_err());
        }
    }

    #[test]
    fn a_long_event_in_small_reads_leaves_no_memory_behind() {
        let body = format!("data: {}\n\ndata: x\n\n", "y".repeat(4 << 20));
        let mut framer = SseFramer::default();
        let mut lengths = Vec::new();
        for piece in body.as_bytes().chunks(1400) {
            framer.push(piece);
            while let Some(frame) = framer.next_frame().unwrap() {
                lengths.push(frame.data.len());
            }
        }
        framer.push(b":");
        assert_eq!(lengths, [4 << 20, 1]);
        assert!(framer.buffer.capacity() <= KEPT_CAPACITY, "{}", framer.buffer.capacity());
    }

    /// Text in which line ends, fields and odd bytes are frequent.
    fn body() -> impl Strategy<Value = Vec<u8>> {
        let token = prop_oneof![
            6 => Just(b"data:".to_vec()), 2 => Just(b"data".to_vec()), 2 => Just(b"event:".to_vec()),
            6 => Just(b"\n".to_vec()), 4 => Just(b"\n\n".to_vec()), 2 => Just(b"\r\n".to_vec()), 1 => Just(b"\r".to_vec()),
            3 => Just(b" ".to_vec()), 3 => Just(b"{\"a\":1}".to_vec()), 2 => Just("é🦀".as_bytes().to_vec()),
            1 => Just(b":".to_vec()), 1 => Just("\u{feff}".as_bytes().to_vec()),
        ];
        prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
    }

    proptest! {
        #[test]
        fn the_events_do_not_depend_on_the_cuts(
            tokens in body(),
            noise in prop::collection::vec(any::<u8>(), 0..4),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let body = [tokens, noise].concat();
            let whole = events(&[&body]);
            let bytes: Vec<&[u8]> = body.chunks(1).collect();
            prop_assert_eq!(&events(&bytes), &whole);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]).collect();
            prop_assert_eq!(&events(&pieces), &whole);
        }

        #[test]
        fn it_agrees_with_eventsource_stream(tokens in body()) {
            use eventsource_stream::Eventsource as _;
            // The oracle panics on a byte order mark.
            prop_assume!(!tokens.starts_with("\u{feff}".as_bytes()));
            // Ours also gives the last event when it lacks its blank line.
            let body = [&tokens[..], b"\n\n"].concat();
            let oracle = stream::iter([Ok::<_, std::convert::Infallible>(body.clone())]).eventsource();
            let expected: Vec<Event> = oracle.collect::<Vec<_>>().now_or_never().unwrap()
                .into_iter()
                .map(|event| event.unwrap())
                .map(|event| ((event.event != "message").then_some(event.event), event.data))
                .collect();
            prop_assert_eq!(events(&[&body]), expected);
        }
    }
}
