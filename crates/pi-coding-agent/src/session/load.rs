//! Reading a session's bytes into its tree, piece by piece.

use pi_ai::{SessionId, json::from_slice_lossy};
use serde_json::{Map, Value};

use crate::session::{
    header::{CURRENT_VERSION, SessionHeader},
    line::{Line, LineSplitter, is_json, read_line},
    notice::Notice,
    tree::{Place, Tree},
};

/// Takes a session's bytes in order, in pieces of any size, and keeps of each line what its beginning says.
#[derive(Debug, Default)]
pub(crate) struct Loader {
    splitter: LineSplitter,
    reading: Reading,
}

/// What the lines so far say.
#[derive(Debug, Default)]
struct Reading {
    lines: u64,
    start: Start,
    tree: Tree,
    notices: Vec<Notice>,
}

#[derive(Debug, Default)]
enum Start {
    /// No line that is JSON has come yet.
    #[default]
    Before,
    Header(Box<SessionHeader>),
    /// The first line that is JSON is no header.
    Refused,
}

/// What the bytes of a session are.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// There are none.
    Empty,
    /// They do not begin with a session header.
    NotASession,
    /// A session.
    Session(Box<LoadedSession>),
}

#[derive(Debug)]
pub(crate) struct LoadedSession {
    pub(crate) header: SessionHeader,
    pub(crate) tree: Tree,
    pub(crate) notices: Vec<Notice>,
    /// Where the bytes end.
    pub(crate) end: u64,
    pub(crate) last_line: LastLine,
    /// How many lines there are.
    pub(crate) lines: u64,
}

/// How the bytes of a session end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LastLine {
    /// With a line break, as they should.
    #[default]
    Closed,
    /// Without one, though the line is whole: whoever appends has to add it first.
    Open,
    /// In the middle of a line, which begins here.
    Torn {
        /// Where.
        at: u64,
    },
}

impl Loader {
    /// Reads a file whose header is lost: every line is taken for an entry.
    pub(crate) fn without_header() -> Self {
        let header = SessionHeader {
            id: SessionId::default(),
            version: CURRENT_VERSION,
            created: None,
            cwd: None,
            parent_session: None,
            fields: Map::new(),
        };
        let reading = Reading { start: Start::Header(Box::new(header)), ..Reading::default() };
        Self { splitter: LineSplitter::default(), reading }
    }

    /// Takes the next piece.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        let reading = &mut self.reading;
        self.splitter.push(piece, |at, line| reading.line(at, line));
    }

    /// There is no more.
    pub(crate) fn finish(self) -> Loaded {
        let Self { splitter, mut reading } = self;
        let mut last_line = LastLine::Closed;
        let mut end = splitter.position();
        if let Some((at, line)) = splitter.rest() {
            end = at + line.len() as u64;
            last_line = reading.last_line(at, line);
        }
        match reading.start {
            _ if end == 0 => Loaded::Empty,
            Start::Header(header) => {
                reading.tree.resolve();
                Loaded::Session(Box::new(LoadedSession {
                    header: *header,
                    tree: reading.tree,
                    notices: reading.notices,
                    end,
                    last_line,
                    lines: reading.lines,
                }))
            }
            Start::Before | Start::Refused => Loaded::NotASession,
        }
    }
}

/// Entries that another program appended, read into a session that is open.
#[derive(Debug)]
pub(crate) struct Growth<'a> {
    splitter: LineSplitter,
    reading: Reading,
    tree: &'a mut Tree,
}

impl<'a> Growth<'a> {
    /// Reading goes on at `at`, after this many lines.
    pub(crate) fn new(tree: &'a mut Tree, at: u64, lines: u64) -> Self {
        let reading = Reading { lines, tree: std::mem::take(tree), ..Reading::default() };
        Self { splitter: LineSplitter::starting_at(at), reading, tree }
    }

    pub(crate) fn push(&mut self, piece: &[u8]) {
        let reading = &mut self.reading;
        self.splitter.push(piece, |at, line| reading.entry_line(at, line));
    }

    pub(crate) fn finish(mut self) -> (u64, LastLine, u64, Vec<Notice>) {
        let mut last_line = LastLine::Closed;
        let mut end = self.splitter.position();
        if let Some((at, line)) = self.splitter.rest() {
            end = at + line.len() as u64;
            last_line = self.reading.last_line_of_entries(at, line);
        }
        self.reading.tree.resolve();
        *self.tree = self.reading.tree;
        (end, last_line, self.reading.lines, self.reading.notices)
    }
}

impl Reading {
    fn line(&mut self, at: u64, line: &[u8]) {
        match self.start {
            Start::Header(_) => self.entry_line(at, line),
            Start::Before => {
                self.lines += 1;
                self.first_line(line);
            }
            Start::Refused => self.lines += 1,
        }
    }

    /// A line where the header should be. Damaged lines before it are passed over; what is JSON must be the header.
    fn first_line(&mut self, line: &[u8]) {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        if line.is_empty() {
            return;
        }
        match from_slice_lossy(line) {
            Err(_) => self.notices.push(Notice::DamagedLine { line: self.lines, entry: None }),
            Ok(Value::Object(fields)) => {
                self.start = match SessionHeader::from_fields(fields) {
                    Some(header) => {
                        if header.version > CURRENT_VERSION {
                            self.notices.push(Notice::NewerVersion { version: header.version });
                        }
                        self.notices.extend(header.odd_version().map(Notice::odd_version));
                        Start::Header(Box::new(header))
                    }
                    None => Start::Refused,
                };
            }
            Ok(_) => self.start = Start::Refused,
        }
    }

    fn entry_line(&mut self, at: u64, line: &[u8]) {
        self.lines += 1;
        match read_line(line) {
            Line::Blank => {}
            Line::Header => self.notices.push(Notice::StrayHeader { line: self.lines }),
            Line::Entry(head) => {
                let place = Place { at, len: line.len() as u64 };
                let index = self.tree.push_line(head, place, self.lines, line);
                let node = &self.tree[index];
                if node.is_unreadable() {
                    self.notices.push(Notice::DamagedLine { line: self.lines, entry: Some(node.id.clone()) });
                }
            }
            Line::Damaged => {
                self.tree.push_gap();
                self.notices.push(Notice::DamagedLine { line: self.lines, entry: None });
            }
        }
    }

    /// The last line, which has no line break. It counts when it is whole.
    fn last_line(&mut self, at: u64, line: &[u8]) -> LastLine {
        match self.start {
            Start::Header(_) => self.last_line_of_entries(at, line),
            Start::Before | Start::Refused => {
                self.line(at, line);
                LastLine::Open
            }
        }
    }

    fn last_line_of_entries(&mut self, at: u64, line: &[u8]) -> LastLine {
        if line.trim_ascii().is_empty() || is_json(line) {
            self.entry_line(at, line);
            LastLine::Open
        } else {
            self.lines += 1;
            self.notices.push(Notice::TornEnd { line: self.lines });
            LastLine::Torn { at }
        }
    }
}
