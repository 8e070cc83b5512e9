//! Older versions of the file format.

use std::collections::HashSet;

use pi_ai::{IdSource, json::from_slice_lossy};
use serde_json::{Map, Value};

use crate::session::{header::CURRENT_VERSION, id::EntryId, line::LineSplitter};

/// Rewrites the lines of a session of an older version, one by one.
///
/// Version 1 had neither ids nor parents: each entry follows the one before. Version 2 had another name for extension
/// messages. Lines that cannot be read stay as they are.
pub(crate) struct Migration<'a> {
    from: u64,
    ids: &'a dyn IdSource,
    splitter: LineSplitter,
    /// For version 1: the id of every line that is JSON, by its number; `None` for headers.
    given: Vec<Option<EntryId>>,
    taken: HashSet<EntryId>,
    last: Option<EntryId>,
}

impl<'a> Migration<'a> {
    pub(crate) fn new(from: u64, ids: &'a dyn IdSource) -> Self {
        Self { from, ids, splitter: LineSplitter::default(), given: Vec::new(), taken: HashSet::new(), last: None }
    }

    /// Takes the next piece of the old file and adds to the new one.
    pub(crate) fn push(&mut self, piece: &[u8], new: &mut Vec<u8>) {
        let mut splitter = std::mem::take(&mut self.splitter);
        splitter.push(piece, |_, line| self.line(line, new));
        self.splitter = splitter;
    }

    /// The old file ends.
    pub(crate) fn finish(mut self, new: &mut Vec<u8>) {
        let splitter = std::mem::take(&mut self.splitter);
        if let Some((_, line)) = splitter.rest() {
            self.line(line, new);
        }
    }

    fn line(&mut self, line: &[u8], new: &mut Vec<u8>) {
        match from_slice_lossy::<Value>(line.trim_ascii()) {
            Ok(Value::Object(mut fields)) => {
                self.change(&mut fields);
                // A map of JSON values can always be written.
                if serde_json::to_writer(&mut *new, &fields).is_err() {
                    new.extend_from_slice(line);
                }
            }
            Ok(_) => {
                self.given.push(None);
                new.extend_from_slice(line);
            }
            Err(_) => new.extend_from_slice(line),
        }
        new.push(b'\n');
    }

    fn change(&mut self, fields: &mut Map<String, Value>) {
        if fields.get("type").and_then(Value::as_str) == Some("session") {
            fields.insert("version".into(), CURRENT_VERSION.into());
            self.given.push(None);
            return;
        }
        if self.from < 2 {
            self.hang(fields);
        }
        let message = fields.get_mut("message").and_then(Value::as_object_mut);
        if let Some(role) = message.and_then(|message| message.get_mut("role"))
            && role == "hookMessage"
        {
            *role = "custom".into();
        }
    }

    /// Gives an entry an id and a parent.
    fn hang(&mut self, fields: &mut Map<String, Value>) {
        let id = EntryId::generate(self.ids, |id| self.taken.contains(id));
        self.taken.insert(id.clone());
        fields.insert("id".into(), id.as_str().into());
        fields.insert("parentId".into(), self.last.as_ref().map(EntryId::as_str).into());
        // A compaction may name itself: it keeps nothing.
        self.given.push(Some(id.clone()));
        if fields.get("firstKeptEntryIndex").is_some_and(Value::is_number) {
            let kept = fields.shift_remove("firstKeptEntryIndex").and_then(|kept| usize::try_from(kept.as_u64()?).ok());
            if let Some(kept) = kept.and_then(|kept| self.given.get(kept)?.as_ref()) {
                fields.insert("firstKeptEntryId".into(), kept.as_str().into());
            }
        }
        self.last = Some(id);
    }
}

#[cfg(test)]
mod tests {
    use pi_ai::id::CountingIds;

    use super::*;

    #[test]
    fn lines_that_cannot_be_read_stay_as_they_are() {
        let old = b"{\"type\":\"session\",\"id\":\"s\"}\n{torn\n\n{\"type\":\"x\"}\r\n{\"type\":\"compaction\",\"firstKeptEntryIndex\":1}";
        for piece in [1, 7, old.len()] {
            let (ids, mut new) = (CountingIds::default(), Vec::new());
            let mut migration = Migration::new(1, &ids);
            old.chunks(piece).for_each(|piece| migration.push(piece, &mut new));
            migration.finish(&mut new);
            assert_eq!(
                String::from_utf8(new).unwrap(),
                "{\"type\":\"session\",\"id\":\"s\",\"version\":3}\n{torn\n\n\
                 {\"type\":\"x\",\"id\":\"00000001\",\"parentId\":null}\n\
                 {\"type\":\"compaction\",\"id\":\"00000002\",\"parentId\":\"00000001\",\"firstKeptEntryId\":\"00000001\"}\n"
            );
        }
    }
}
