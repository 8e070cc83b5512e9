//! A session file read for a list: what was said in it, and little else.

use std::{borrow::Cow, fmt, io, path::Path};

use pi_ai::{Timestamp, json::from_slice_lossy};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use crate::session::{
    entry::{EntryKind, MessageRole, SessionInfo},
    header::SessionHeader,
    line::{Line, LineSplitter, Members, Step, is_json, read_line},
    store::disk::{Disk, OpenMode, read_pieces_through},
};

/// How much of what was said is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextDetail {
    /// What the user said first.
    #[default]
    First,
    /// Everything that the user and the model said.
    All,
}

/// What a list says about a session.
#[derive(Debug)]
pub(crate) struct Outline {
    pub(crate) header: SessionHeader,
    pub(crate) name: Option<String>,
    pub(crate) messages: usize,
    /// When somebody said something last.
    pub(crate) last_activity: Option<Timestamp>,
    pub(crate) first_message: Option<String>,
    pub(crate) text: String,
}

impl Outline {
    /// Reads a file; `None` when it is no session.
    pub(crate) fn read(
        disk: &dyn Disk,
        path: &Path,
        detail: TextDetail,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Option<Self>> {
        let file = disk.open(path, OpenMode::Read)?;
        let mut reader = Reader { detail, outline: Start::Before };
        let mut splitter = LineSplitter::default();
        read_pieces_through(buffer, &*file, 0, |piece| splitter.push(piece, |_, line| reader.line(line)))?;
        if let Some((_, line)) = splitter.rest()
            && is_json(line)
        {
            reader.line(line);
        }
        Ok(match reader.outline {
            Start::Found(outline) => Some(*outline),
            Start::Before | Start::Refused => None,
        })
    }
}

enum Start {
    Before,
    Found(Box<Outline>),
    Refused,
}

struct Reader {
    detail: TextDetail,
    outline: Start,
}

impl Reader {
    fn line(&mut self, line: &[u8]) {
        match &mut self.outline {
            Start::Refused => {}
            Start::Before => {
                let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
                if let Some(header) = SessionHeader::read(line) {
                    self.outline = Start::Found(Box::new(Outline {
                        header,
                        name: None,
                        messages: 0,
                        last_activity: None,
                        first_message: None,
                        text: String::new(),
                    }));
                } else if !line.is_empty() && is_json(line) {
                    self.outline = Start::Refused;
                }
            }
            Start::Found(outline) => outline.entry(line, self.detail),
        }
    }
}

impl Outline {
    fn entry(&mut self, line: &[u8], detail: TextDetail) {
        let Line::Entry(head) = read_line(line) else { return };
        match head.kind {
            EntryKind::SessionInfo => {
                if let Ok(info) = from_slice_lossy::<SessionInfo>(line) {
                    self.name = info.shown().map(str::to_owned);
                }
            }
            EntryKind::Message(role @ (MessageRole::User | MessageRole::Assistant)) => {
                let is_first = role == MessageRole::User && self.first_message.is_none();
                if detail == TextDetail::First && !is_first {
                    let Some(said) = glance(line).or_else(|| read_said(line)) else { return };
                    self.messages += 1;
                    if said.content.is_some() {
                        self.last_activity = self.last_activity.max(said.timestamp.or(head.timestamp));
                    }
                    return;
                }
                let Some(said) = read_said::<Texts>(line) else { return };
                self.messages += 1;
                let Some(Texts(text)) = said.content else { return };
                self.last_activity = self.last_activity.max(said.timestamp.or(head.timestamp));
                if text.is_empty() {
                    return;
                }
                if detail == TextDetail::All {
                    if !self.text.is_empty() {
                        self.text.push(' ');
                    }
                    self.text.push_str(&text);
                }
                if is_first {
                    self.first_message = Some(text);
                }
            }
            EntryKind::Message(_) => self.messages += 1,
            _ => {}
        }
    }
}

#[derive(Deserialize)]
struct Said<C> {
    /// `None` when the message has no content at all.
    #[serde(default = "Option::default")]
    content: Option<C>,
    #[serde(default, deserialize_with = "time_or_nothing")]
    timestamp: Option<Timestamp>,
}

fn read_said<C: DeserializeOwned>(line: &[u8]) -> Option<Said<C>> {
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "C: Deserialize<'de>"))]
    struct Entry<C> {
        message: Said<C>,
    }
    Some(from_slice_lossy::<Entry<C>>(line).ok()?.message)
}

/// Whether a message has content and when it was said, from the beginning and the end of its line. Writers put the
/// content near the beginning and the time at the end; `None` when this one did not.
fn glance(line: &[u8]) -> Option<Said<IsThere>> {
    let end = line.trim_ascii_end().strip_suffix(b"}}")?;
    let digits = end.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, time) = end.split_at(end.len() - digits);
    if !before.ends_with(b"\"timestamp\":") {
        return None;
    }
    let timestamp = std::str::from_utf8(time).ok()?.parse().ok().map(Timestamp::from_millis)?;
    let mut entry = Members::of(line)?;
    to_member(&mut entry, b"message")?;
    let mut message = Members::of(entry.rest())?;
    to_member(&mut message, b"content")?;
    let content = match message.rest().first()? {
        b'"' | b'[' => Some(IsThere),
        b'n' => None,
        _ => return None,
    };
    Some(Said { content, timestamp: Some(timestamp) })
}

fn to_member(members: &mut Members<'_>, wanted: &[u8]) -> Option<()> {
    loop {
        match members.next() {
            Step::Member { key } if key == wanted => return Some(()),
            Step::Member { .. } => members.skip()?,
            Step::End | Step::Broken => return None,
        }
    }
}

fn time_or_nothing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Lenient {
        Time(Timestamp),
        Other(IgnoredAny),
    }
    Ok(match Lenient::deserialize(deserializer)? {
        Lenient::Time(time) => Some(time),
        Lenient::Other(_) => None,
    })
}

/// Content of a shape that content can have, whatever it says.
struct IsThere;

impl<'de> Deserialize<'de> for IsThere {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Passing;
        impl<'de> Visitor<'de> for Passing {
            type Value = IsThere;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of content blocks")
            }
            fn visit_str<E>(self, _text: &str) -> Result<IsThere, E> {
                Ok(IsThere)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut blocks: A) -> Result<IsThere, A::Error> {
                while blocks.next_element::<IgnoredAny>()?.is_some() {}
                Ok(IsThere)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<IsThere, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(IsThere)
            }
        }
        deserializer.deserialize_any(Passing)
    }
}

/// The text of a content: a string, or text blocks joined by blanks. Everything else is passed over unread.
struct Texts(String);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextsVisitor;
        impl<'de> Visitor<'de> for TextsVisitor {
            type Value = Texts;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of content blocks")
            }
            fn visit_str<E>(self, text: &str) -> Result<Texts, E> {
                Ok(Texts(text.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut blocks: A) -> Result<Texts, A::Error> {
                let mut joined: Option<String> = None;
                while let Some(block) = blocks.next_element::<Block<'de>>()? {
                    if let Some(text) = block.text() {
                        match &mut joined {
                            None => joined = Some(text.into_owned()),
                            Some(joined) => {
                                joined.push(' ');
                                joined.push_str(&text);
                            }
                        }
                    }
                }
                Ok(Texts(joined.unwrap_or_default()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Texts, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Texts(String::new()))
            }
        }
        deserializer.deserialize_any(TextsVisitor)
    }
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

impl<'a> Block<'a> {
    fn text(self) -> Option<Cow<'a, str>> {
        self.text.filter(|_| self.kind.as_deref() == Some("text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(message: &str) -> String {
        let time = "2026-01-01T00:00:00.000Z";
        format!(r#"{{"type":"message","id":"a","parentId":null,"timestamp":"{time}","message":{message}}}"#)
    }

    #[test]
    fn a_glance_tells_what_reading_tells() {
        let seen = |line: &str| glance(line.as_bytes()).map(|said| (said.content.is_some(), said.timestamp));
        let read =
            |line: &str| read_said(line.as_bytes()).map(|said: Said<IsThere>| (said.content.is_some(), said.timestamp));
        for message in [
            r#"{"role":"user","content":"text","timestamp":5}"#,
            r#"{"role":"user","content":[{"type":"text","text":"\"timestamp\":9}}"}],"timestamp":1700000000000}"#,
            r#"{"role":"assistant","usage":{"input":1},"content":[],"timestamp":7}"#,
            r#"{"role":"user","content":null,"timestamp":5}"#,
        ] {
            let line = entry(message);
            assert!(seen(&line).is_some(), "{line}");
            assert_eq!(seen(&line), read(&line), "{line}");
        }
    }

    #[test]
    fn what_others_write_in_another_order_is_left_to_reading() {
        for message in [
            r#"{"role":"user","timestamp":5,"content":"text"}"#,
            r#"{"role":"user","content":"text","timestamp":5.5}"#,
            r#"{"role":"user","content":{"text":"x"},"timestamp":5}"#,
            r#"{"role":"user","timestamp":5}"#,
            r#"{"role":"user","content":"text"}"#,
        ] {
            assert!(glance(entry(message).as_bytes()).is_none(), "{message}");
        }
    }
}
