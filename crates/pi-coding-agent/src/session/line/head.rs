//! What the beginning of a line says about its entry.

use std::borrow::Cow;

use pi_ai::Timestamp;

use super::members::{Members, Step, read_string};
use crate::session::{
    entry::{EntryKind, MessageRole},
    time::parse_iso,
};

/// What a line is, judged by its beginning and its last byte.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// Nothing but blanks.
    Blank,
    /// A session header.
    Header,
    /// An entry whose ids could be read. Damage further inside shows when the entry is read whole.
    Entry(Head<'a>),
    /// No entry, and nothing in it says which one it was.
    Damaged,
}

/// What is known of an entry without reading its line whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    pub(crate) id: Cow<'a, str>,
    /// The parent that the line names, which need not exist.
    pub(crate) parent: Option<Cow<'a, str>>,
    pub(crate) timestamp: Option<Timestamp>,
    /// [`EntryKind::Unreadable`] when the line breaks off.
    pub(crate) kind: EntryKind,
}

/// Reads a line's beginning: no further than to the entry's ids, its time and, for a message, its role. Writers put
/// these first, so that the cost does not depend on what the entry holds.
pub(crate) fn read_line(line: &[u8]) -> Line<'_> {
    if let Some(head) = usual_message(line) {
        return Line::Entry(head);
    }
    let line = line.trim_ascii();
    if line.is_empty() {
        return Line::Blank;
    }
    let Some(members) = Members::of(line) else { return Line::Damaged };
    let ends_like_an_object = line.ends_with(b"}");
    let mut fields = Fields::default();
    let is_whole = fields.read(members).is_some() && ends_like_an_object;
    if is_whole && fields.kind.as_deref() == Some("session") {
        return Line::Header;
    }
    match (fields.id, fields.parent) {
        (Some(id), parent) if is_whole => {
            let kind = fields.kind.as_deref().map_or(EntryKind::Unknown, |kind| match kind {
                "message" => EntryKind::Message(fields.role.unwrap_or(MessageRole::Other)),
                kind => EntryKind::of_type(kind),
            });
            Line::Entry(Head { id, parent: parent.flatten(), timestamp: fields.timestamp, kind })
        }
        (Some(id), Some(parent)) => {
            Line::Entry(Head { id, parent, timestamp: fields.timestamp, kind: EntryKind::Unreadable })
        }
        _ => Line::Damaged,
    }
}

/// The one form that writers give to nearly every line, read without walking over members: a session has tens of
/// thousands of them. `None` leaves a line to the general way, which says the same about this form.
fn usual_message(line: &[u8]) -> Option<Head<'_>> {
    line.ends_with(b"}").then_some(())?;
    let (id, rest) = simple_string(line.strip_prefix(br#"{"type":"message","id":""#)?)?;
    let rest = rest.strip_prefix(br#","parentId":"#)?;
    let (parent, rest) = match rest.strip_prefix(b"\"") {
        Some(parent) => simple_string(parent).map(|(parent, rest)| (Some(parent), rest))?,
        None => (None, rest.strip_prefix(b"null")?),
    };
    let (time, rest) = simple_string(rest.strip_prefix(br#","timestamp":""#)?)?;
    let (role, _) = simple_string(rest.strip_prefix(br#","message":{"role":""#)?)?;
    Some(Head {
        id: id.into(),
        parent: parent.map(Cow::Borrowed),
        timestamp: parse_iso(time),
        kind: EntryKind::Message(MessageRole::of(role)),
    })
}

/// A short string of plain ASCII up to its closing quote, and what follows.
fn simple_string(bytes: &[u8]) -> Option<(&str, &[u8])> {
    const LONGEST: usize = 64;
    let end = bytes.iter().take(LONGEST).position(|byte| !matches!(byte, b' '..=b'!' | b'#'..=b'[' | b']'..=b'~'))?;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    Some((text, bytes[end..].strip_prefix(b"\"")?))
}

#[derive(Default)]
struct Fields<'a> {
    kind: Option<Cow<'a, str>>,
    id: Option<Cow<'a, str>>,
    /// Inner `None`: the line says that there is no parent.
    parent: Option<Option<Cow<'a, str>>>,
    timestamp: Option<Timestamp>,
    has_time: bool,
    role: Option<MessageRole>,
}

impl<'a> Fields<'a> {
    /// `None` when the object breaks off before everything was found.
    fn read(&mut self, mut members: Members<'a>) -> Option<()> {
        while !self.is_complete() {
            match members.next() {
                Step::Member { key: b"type" } => self.kind = members.string_value()?,
                Step::Member { key: b"id" } => self.id = members.string_value()?,
                Step::Member { key: b"parentId" } => self.parent = Some(members.string_value()?),
                Step::Member { key: b"timestamp" } => {
                    self.timestamp = members.string_value()?.and_then(|time| parse_iso(&time));
                    self.has_time = true;
                }
                Step::Member { key: b"message" } => {
                    self.role = role_of(members.rest());
                    if self.is_complete() {
                        break;
                    }
                    members.skip()?;
                }
                Step::Member { .. } => members.skip()?,
                Step::End => break,
                Step::Broken => return None,
            }
        }
        Some(())
    }

    fn is_complete(&self) -> bool {
        self.kind.as_deref().is_some_and(|kind| kind != "message" || self.role.is_some())
            && self.id.is_some()
            && self.parent.is_some()
            && self.has_time
    }
}

/// The role of the message that some bytes begin with.
fn role_of(message: &[u8]) -> Option<MessageRole> {
    let mut members = Members::of(message)?;
    loop {
        match members.next() {
            Step::Member { key: b"role" } => {
                let value = members.value()?;
                return Some(MessageRole::of(&read_string(&message[value])?));
            }
            Step::Member { .. } => members.skip()?,
            Step::End | Step::Broken => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head<'a>(id: &'a str, parent: Option<&'a str>, kind: EntryKind) -> Line<'a> {
        let time = Timestamp::from_millis(1_704_067_200_000);
        Line::Entry(Head { id: id.into(), parent: parent.map(Into::into), timestamp: Some(time), kind })
    }

    #[test]
    fn ids_and_role_are_found_wherever_they_stand() {
        for line in [
            r#"{"type":"message","id":"b","parentId":"a","timestamp":"2024-01-01T00:00:00.000Z","message":{"role":"user","content":"}"}}"#,
            r#" {"message":{"content":[{"role":"x"}],"role":"user"},"parentId":"a","type":"message","timestamp":"2024-01-01T00:00:00.000Z","id":"b"} "#,
        ] {
            assert_eq!(read_line(line.as_bytes()), head("b", Some("a"), EntryKind::Message(MessageRole::User)));
        }
        let custom = r#"{"type":"custom","customType":"x","data":{"id":"no"},"id":"c","parentId":null,"timestamp":"2024-01-01T00:00:00.000Z"}"#;
        assert_eq!(read_line(custom.as_bytes()), head("c", None, EntryKind::Custom));
    }

    #[test]
    fn the_usual_form_is_read_as_any_other() {
        fn owned(head: Head<'_>) -> (String, Option<String>, Option<Timestamp>, EntryKind) {
            (head.id.into_owned(), head.parent.map(Cow::into_owned), head.timestamp, head.kind)
        }
        for (parent, time, message) in [
            ("null", "2024-01-01T00:00:00.000Z", r#"{"role":"user","content":"hi"}"#),
            ("\"a\"", "2024-02-29T12:34:56.789Z", r#"{"role":"assistant","content":[]}"#),
            ("\"\"", "no time", r#"{"role":"x-custom"}"#),
        ] {
            let line = format!(
                r#"{{"type":"message","id":"b","parentId":{parent},"timestamp":"{time}","message":{message}}}"#
            );
            let other_form = format!(" {line}");
            let Line::Entry(generally) = read_line(other_form.as_bytes()) else { panic!("{line}") };
            assert_eq!(owned(usual_message(line.as_bytes()).unwrap()), owned(generally), "{line}");
        }
        for line in [
            r#"{"type":"message","id":"b\u0062","parentId":null,"timestamp":"","message":{"role":"user"}}"#,
            r#"{"type":"message","id":"é","parentId":null,"timestamp":"","message":{"role":"user"}}"#,
            r#"{"type":"message","id":"b","parentId":5,"timestamp":"","message":{"role":"user"}}"#,
            r#"{"type":"message","id":"b","parentId":null,"timestamp":"","message":{"role":"user"#,
            r#"{"type":"custom","id":"b","parentId":null,"timestamp":""}"#,
        ] {
            assert!(usual_message(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[test]
    fn a_cut_line_is_unreadable_as_long_as_it_still_names_its_parent() {
        let line = r#"{"type":"message","id":"b","parentId":"a","timestamp":"2024-01-01T00:00:00.000Z","message":{"role":"user","content":"hi"}}"#;
        let parent_ends = line.find(r#","timestamp"#).unwrap();
        for end in 1..line.len() {
            match read_line(&line.as_bytes()[..end]) {
                Line::Damaged => assert!(end < parent_ends, "{}", &line[..end]),
                Line::Entry(head) => {
                    assert!(end >= parent_ends, "{}", &line[..end]);
                    // One closing brace is missing: that shows only when the line is read whole.
                    let looks_whole = line[..end].ends_with('}');
                    assert_eq!(head.kind == EntryKind::Unreadable, !looks_whole, "{}", &line[..end]);
                    assert_eq!((&*head.id, head.parent.as_deref()), ("b", Some("a")));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn what_names_no_entry_is_damaged() {
        for line in ["x", "null", "[]", "17", "{", "{}", r#"{"type":"message"}"#, r#"{"id":5,"parentId":null}"#, "\0\0"]
        {
            assert_eq!(read_line(line.as_bytes()), Line::Damaged, "{line}");
        }
        assert_eq!(read_line(b" \r\n"), Line::Blank);
        assert_eq!(read_line(br#"{"type":"session","id":"x"}"#), Line::Header);
    }
}
