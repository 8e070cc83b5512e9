//! A reply encoded into the bytes that go out, in the order and at the moments they do.

use std::sync::{Arc, Mutex, PoisonError};

use crate::reply::{Content, Cut, End, Framing, Pieces, Reply, Step, Wait};
use crate::wire::{Asked, Wire};

/// The size of a piece when nothing else is asked for.
const BULK_PIECE: usize = 16 * 1024;

/// Answers with more parts than this are encoded once and kept.
const KEPT_FROM: usize = 1_000;

/// A reply and, when it is a big one, its encoding.
#[derive(Debug)]
pub(crate) struct Planned {
    reply: Reply,
    kept: Mutex<Option<Kept>>,
}

#[derive(Debug)]
struct Kept {
    wire: Wire,
    model: String,
    plan: Arc<Plan>,
}

impl Planned {
    pub(crate) fn new(reply: Reply) -> Self {
        Self { reply, kept: Mutex::new(None) }
    }

    /// The bytes for a request on this wire.
    pub(crate) fn plan(&self, wire: Wire, asked: &Asked<'_>) -> Arc<Plan> {
        if !is_big(&self.reply) {
            return Arc::new(Plan::new(&self.reply, wire, asked));
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(known) if known.wire == wire && known.model == asked.model => known.plan.clone(),
            _ => {
                let plan = Arc::new(Plan::new(&self.reply, wire, asked));
                *kept = Some(Kept { wire, model: asked.model.to_owned(), plan: plan.clone() });
                plan
            }
        }
    }
}

fn is_big(reply: &Reply) -> bool {
    match &reply.content {
        Content::Answer(answer) => answer.parts.len() > KEPT_FROM,
        Content::Steps(steps) => steps.len() > KEPT_FROM,
        Content::Error(_) => false,
    }
}

/// Everything that goes out for one request.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) before_head: Vec<Wait>,
    pub(crate) head: Vec<u8>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) end: End,
    /// Whether the connection can carry another request afterwards.
    pub(crate) reusable: bool,
}

/// Bytes that go out together, after their waits.
#[derive(Debug, Default)]
pub(crate) struct Segment {
    pub(crate) waits: Vec<Wait>,
    pub(crate) writes: Vec<Vec<u8>>,
}

impl Plan {
    fn new(reply: &Reply, wire: Wire, asked: &Asked<'_>) -> Self {
        let (steps, status) = match &reply.content {
            Content::Answer(answer) => {
                let dialect = wire.dialect();
                (dialect.steps(answer, asked), reply.status)
            }
            Content::Error(message) => {
                let dialect = wire.dialect();
                let body = dialect.error_body(reply.status, message).to_string();
                (vec![Step::Bytes(body.into_bytes())], reply.status)
            }
            Content::Steps(steps) => (steps.clone(), reply.status),
        };
        let full_length: usize = steps.iter().map(step_length).sum();
        let steps = match reply.cut {
            Some(cut) => cut_steps(steps, cut),
            None => steps,
        };
        let mut segments = segments(steps, &reply.pieces, reply.framing);
        if reply.framing == Framing::Chunked && reply.end == End::Complete {
            let last = b"0\r\n\r\n".to_vec();
            match segments.last_mut() {
                Some(segment) => segment.writes.push(last),
                None => segments.push(Segment { waits: Vec::new(), writes: vec![last] }),
            }
        }
        Self {
            before_head: reply.before_head.clone(),
            head: head(status, reply, wire, full_length),
            segments,
            end: reply.end,
            reusable: reply.end == End::Complete && reply.framing != Framing::UntilClose,
        }
    }
}

fn step_length(step: &Step) -> usize {
    match step {
        Step::Bytes(bytes) => bytes.len(),
        Step::Wait(_) => 0,
    }
}

fn cut_steps(steps: Vec<Step>, cut: Cut) -> Vec<Step> {
    let (mut events, mut bytes) = match cut {
        Cut::Events(events) => (events, usize::MAX),
        Cut::Bytes(bytes) => (usize::MAX, bytes),
    };
    let mut kept = Vec::new();
    for step in steps {
        if events == 0 || bytes == 0 {
            break;
        }
        match step {
            Step::Wait(_) => kept.push(step),
            Step::Bytes(mut piece) => {
                piece.truncate(bytes);
                bytes -= piece.len();
                events -= 1;
                kept.push(Step::Bytes(piece));
            }
        }
    }
    kept
}

fn head(status: u16, reply: &Reply, wire: Wire, length: usize) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in &reply.headers {
        let value = match &reply.content {
            Content::Answer(_) if name == "content-type" => wire.dialect().content_type(),
            _ => value.as_str(),
        };
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match reply.framing {
        Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
        Framing::ContentLength => head.push_str(&format!("content-length: {length}\r\n")),
        Framing::UntilClose => head.push_str("connection: close\r\n"),
    }
    head.push_str("\r\n");
    head.into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

/// Cuts the steps into segments at the waits, and each segment's bytes into pieces.
fn segments(steps: Vec<Step>, pieces: &Pieces, framing: Framing) -> Vec<Segment> {
    let mut cutter = Cutter::new(pieces, framing);
    let mut segments = vec![Segment::default()];
    for step in steps {
        let last = segments.len() - 1;
        match step {
            Step::Bytes(bytes) => cutter.feed(&bytes, &mut segments[last]),
            Step::Wait(wait) => {
                cutter.flush(&mut segments[last]);
                if segments[last].writes.is_empty() {
                    segments[last].waits.push(wait);
                } else {
                    segments.push(Segment { waits: vec![wait], writes: Vec::new() });
                }
            }
        }
    }
    let last = segments.len() - 1;
    cutter.flush(&mut segments[last]);
    segments
}

/// Collects bytes and hands them on in the pieces asked for.
struct Cutter<'a> {
    pieces: &'a Pieces,
    framing: Framing,
    pending: Vec<u8>,
    /// How many bytes of the body came before `pending`.
    offset: usize,
    /// How many of the offsets of [`Pieces::At`] are behind us.
    passed: usize,
}

impl<'a> Cutter<'a> {
    fn new(pieces: &'a Pieces, framing: Framing) -> Self {
        Self { pieces, framing, pending: Vec::new(), offset: 0, passed: 0 }
    }

    fn feed(&mut self, mut bytes: &[u8], segment: &mut Segment) {
        while !bytes.is_empty() {
            let (taken, rest) = bytes.split_at(self.room().min(bytes.len()));
            self.pending.extend_from_slice(taken);
            bytes = rest;
            if self.room() == 0 {
                self.flush(segment);
            }
        }
        if *self.pieces == Pieces::Events {
            self.flush(segment);
        }
    }

    /// How many bytes the current piece still takes.
    fn room(&mut self) -> usize {
        match self.pieces {
            Pieces::Bulk => BULK_PIECE - self.pending.len(),
            Pieces::Events => usize::MAX,
            Pieces::Every(size) => (*size).max(1) - self.pending.len(),
            Pieces::At(offsets) => {
                let at = self.offset + self.pending.len();
                while offsets.get(self.passed).is_some_and(|offset| *offset <= self.offset) {
                    self.passed += 1;
                }
                offsets.get(self.passed).map_or(usize::MAX, |offset| offset.saturating_sub(at))
            }
        }
    }

    fn flush(&mut self, segment: &mut Segment) {
        if self.pending.is_empty() {
            return;
        }
        let piece = std::mem::take(&mut self.pending);
        self.offset += piece.len();
        let write = match self.framing {
            Framing::Chunked => {
                let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
                chunk.extend_from_slice(&piece);
                chunk.extend_from_slice(b"\r\n");
                chunk
            }
            Framing::ContentLength | Framing::UntilClose => piece,
        };
        match segment.writes.last_mut() {
            // Nothing tells bulk pieces apart, so they share few, large writes.
            Some(last) if *self.pieces == Pieces::Bulk && last.len() < 16 * BULK_PIECE => last.extend(write),
            _ => segment.writes.push(write),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces_of(body: &str, pieces: Pieces) -> Vec<String> {
        let steps = vec![Step::Bytes(body.as_bytes().to_vec())];
        let segments = segments(steps, &pieces, Framing::UntilClose);
        let writes = segments.into_iter().flat_map(|segment| segment.writes);
        writes.map(|write| String::from_utf8(write).unwrap()).collect()
    }

    #[test]
    fn a_body_is_cut_at_exactly_the_offsets_asked_for() {
        assert_eq!(pieces_of("abcdefgh", Pieces::At(vec![1, 3, 7])), ["a", "bc", "defg", "h"]);
        assert_eq!(pieces_of("abcdefgh", Pieces::At(vec![])), ["abcdefgh"]);
        assert_eq!(pieces_of("abc", Pieces::At(vec![0, 2, 2, 9])), ["ab", "c"]);
        assert_eq!(pieces_of("abcdefgh", Pieces::Every(3)), ["abc", "def", "gh"]);
    }

    #[test]
    fn a_cut_keeps_what_came_before_it() {
        let steps = || vec![Step::Bytes(b"one".to_vec()), Step::Bytes(b"two".to_vec())];
        let text = |steps: Vec<Step>| -> String {
            let bytes = steps.into_iter().filter_map(|step| match step {
                Step::Bytes(bytes) => Some(bytes),
                Step::Wait(_) => None,
            });
            String::from_utf8(bytes.flatten().collect()).unwrap()
        };
        assert_eq!(text(cut_steps(steps(), Cut::Events(1))), "one");
        assert_eq!(text(cut_steps(steps(), Cut::Bytes(4))), "onet");
        assert_eq!(text(cut_steps(steps(), Cut::Bytes(0))), "");
        assert_eq!(text(cut_steps(steps(), Cut::Events(9))), "onetwo");
    }
}
