//! The first line of a session file.

use pi_ai::{SessionId, Timestamp};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::session::time::{iso, parse_iso};

/// The version of the file format that is written.
pub const CURRENT_VERSION: u64 = 3;

/// What the first line of a session says.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionHeader {
    /// The session's id.
    pub id: SessionId,
    /// The version of the file format; the first one did not write it. Something that is no version counts as the
    /// current one: a file of which nobody knows that it is old is not rewritten.
    pub version: u64,
    /// When the session was made.
    pub created: Option<Timestamp>,
    /// The folder that it works in, as it was written.
    pub cwd: Option<String>,
    /// The file of the session that it was forked from, as it was written.
    pub parent_session: Option<String>,
    /// The whole line as it was read.
    pub fields: Map<String, Value>,
}

/// What a new header says.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewHeader<'a> {
    pub(crate) id: &'a SessionId,
    #[serde(serialize_with = "write_time")]
    pub(crate) timestamp: Timestamp,
    pub(crate) cwd: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_session: Option<&'a str>,
}

fn write_time<S: serde::Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&iso(*time))
}

impl NewHeader<'_> {
    /// The line, LF included.
    pub(crate) fn line(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Line<'a> {
            r#type: &'static str,
            version: u64,
            #[serde(flatten)]
            header: &'a NewHeader<'a>,
        }
        let line = Line { r#type: "session", version: CURRENT_VERSION, header: self };
        let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

impl SessionHeader {
    /// Reads a line; `None` when it is no header: not a JSON object, of another type, or without an id.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        Self::from_fields(pi_ai::json::from_slice_lossy(line).ok()?)
    }

    pub(crate) fn from_fields(fields: Map<String, Value>) -> Option<Self> {
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        if text("type") != Some("session") {
            return None;
        }
        Some(Self {
            id: text("id")?.into(),
            version: stated_version(&fields).unwrap_or(CURRENT_VERSION),
            created: text("timestamp").and_then(parse_iso),
            cwd: text("cwd").map(str::to_owned),
            parent_session: text("parentSession").map(str::to_owned),
            fields,
        })
    }

    /// What the line says in place of a version, when that is no version.
    pub(crate) fn odd_version(&self) -> Option<&Value> {
        stated_version(&self.fields).err()
    }
}

/// The version that a header states, or what it says in place of one.
fn stated_version(fields: &Map<String, Value>) -> Result<u64, &Value> {
    /// Every whole number up to here can be told from its neighbours as a float.
    const LARGEST: f64 = (1u64 << 53) as f64;
    let stated = match fields.get("version") {
        None | Some(Value::Null) => return Ok(1),
        Some(stated) => stated,
    };
    // Other programs may write 3 as 3.0.
    let whole = || stated.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=LARGEST).contains(number));
    stated.as_u64().or_else(|| whole().map(|number| number as u64)).ok_or(stated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_header_reads_back() {
        let id = SessionId::from("s-1");
        let time = Timestamp::from_millis(1_700_000_000_000);
        let line = NewHeader { id: &id, timestamp: time, cwd: "/project", parent_session: None }.line();
        assert_eq!(
            String::from_utf8_lossy(&line),
            "{\"type\":\"session\",\"version\":3,\"id\":\"s-1\",\"timestamp\":\"2023-11-14T22:13:20.000Z\",\"cwd\":\"/project\"}\n"
        );
        let read = SessionHeader::read(&line).unwrap();
        assert_eq!((read.id, read.version, read.created), (id, 3, Some(time)));
        assert_eq!((read.cwd.as_deref(), read.parent_session), (Some("/project"), None));
    }

    #[test]
    fn a_header_needs_its_type_and_an_id() {
        for line in ["{\"type\":\"session\"}", "{\"type\":\"session\",\"id\":7}", "{\"id\":\"x\"}", "[]", "{"] {
            assert_eq!(SessionHeader::read(line.as_bytes()), None, "{line}");
        }
        assert_eq!(SessionHeader::read(b"{\"type\":\"session\",\"id\":\"x\",\"cwd\":1}").unwrap().version, 1);
    }

    #[test]
    fn what_is_no_version_is_not_taken_for_an_old_one() {
        let read = |version: &str| {
            let line = format!("{{\"type\":\"session\",\"id\":\"x\",\"version\":{version}}}");
            let header = SessionHeader::read(line.as_bytes()).unwrap();
            (header.version, header.odd_version().is_some())
        };
        for (version, wanted) in [("null", 1), ("1", 1), ("2.0", 2), ("3", 3), ("3.0", 3), ("3e0", 3), ("4.0", 4)] {
            assert_eq!(read(version), (wanted, false), "{version}");
        }
        for version in ["3.5", "0.5", "-1", "-1.0", "1e300", "\"3\"", "\"1\"", "true", "false", "[]", "{}"] {
            assert_eq!(read(version), (CURRENT_VERSION, true), "{version}");
        }
    }
}
