//! Writing lines: new ones, and old ones that hang on another parent.

use pi_ai::Timestamp;
use serde::Serialize;

use super::members::{Members, Step};
use crate::session::{id::EntryId, time::iso};

/// An entry as a line, LF included. What is common to all entries stands first, so that readers need not look further.
///
/// `body` must serialise as an object.
///
/// # Errors
/// When the body cannot be written as JSON.
pub(crate) fn write_line(
    kind: &str,
    id: &EntryId,
    parent: Option<&EntryId>,
    timestamp: Timestamp,
    body: &impl Serialize,
) -> serde_json::Result<Vec<u8>> {
    let mut line = Vec::with_capacity(512);
    line.extend_from_slice(b"{\"type\":");
    serde_json::to_writer(&mut line, kind)?;
    line.extend_from_slice(b",\"id\":");
    serde_json::to_writer(&mut line, id)?;
    line.extend_from_slice(b",\"parentId\":");
    serde_json::to_writer(&mut line, &parent)?;
    line.extend_from_slice(b",\"timestamp\":\"");
    line.extend_from_slice(iso(timestamp).as_bytes());
    line.push(b'"');
    let body_at = line.len();
    serde_json::to_writer(&mut line, body)?;
    if line[body_at..] == *b"{}" {
        line.truncate(body_at + 1);
    }
    // The body's opening brace becomes the comma between the common members and its own.
    line[body_at] = if line.len() == body_at + 1 { b'}' } else { b',' };
    line.push(b'\n');
    Ok(line)
}

/// A line with other ids in it, and everything else as it was: an entry that moves to another file.
///
/// `None` when the line is no object.
pub(crate) fn rechained(line: &[u8], parent: Option<&str>, first_kept: Option<&str>) -> Option<Vec<u8>> {
    let mut members = Members::of(line)?;
    let mut changed = Vec::with_capacity(line.len() + 16);
    let mut copied = 0;
    loop {
        let value = match members.next() {
            Step::Member { key: b"parentId" } => Some(serde_json::to_vec(&parent).ok()?),
            Step::Member { key: b"firstKeptEntryId" } => match first_kept {
                Some(first_kept) => Some(serde_json::to_vec(first_kept).ok()?),
                None => None,
            },
            Step::Member { .. } => None,
            Step::End => break,
            Step::Broken => return None,
        };
        let place = members.value()?;
        if let Some(value) = value {
            changed.extend_from_slice(&line[copied..place.start]);
            changed.extend_from_slice(&value);
            copied = place.end;
        }
    }
    changed.extend_from_slice(&line[copied..]);
    Some(changed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_common_members_stand_first() {
        let write = |body| {
            let line = write_line("custom", &"b".into(), Some(&"a".into()), Timestamp::default(), &body).unwrap();
            String::from_utf8(line).unwrap()
        };
        let head = r#"{"type":"custom","id":"b","parentId":"a","timestamp":"1970-01-01T00:00:00.000Z""#;
        assert_eq!(write(json!({"data": 1})), format!("{head},\"data\":1}}\n"));
        assert_eq!(write(json!({})), format!("{head}}}\n"));
    }

    #[test]
    fn a_moved_line_changes_in_its_ids_only() {
        let line =
            r#"{"type":"compaction", "id":"k","x":{"parentId":"deep"},"parentId":"l","firstKeptEntryId":"l","y":1.0}"#;
        let moved = |parent, kept| String::from_utf8(rechained(line.as_bytes(), parent, kept).unwrap()).unwrap();
        assert_eq!(
            moved(None, Some("m")),
            r#"{"type":"compaction", "id":"k","x":{"parentId":"deep"},"parentId":null,"firstKeptEntryId":"m","y":1.0}"#
        );
        assert_eq!(
            moved(Some("a"), None),
            r#"{"type":"compaction", "id":"k","x":{"parentId":"deep"},"parentId":"a","firstKeptEntryId":"l","y":1.0}"#
        );
    }
}
