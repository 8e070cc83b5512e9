//! Fuzz entry points: one function over bytes per reader of foreign text. Each panics when a law is broken.
//!
//! The test run drives them from a fixed seed for a short time; cargo-fuzz can call them as they are.

use crate::session::{EntryBody, EntryKind, Session};
use crate::tools::edit::{Edit, EditError, Edited, Piece, apply_edits, normalize_tolerant};

/// A session file: whatever the bytes are, reading them ends, loses nothing that can be read, and leaves a tree in which
/// everything has its place.
pub fn session_file(data: &[u8]) {
    let Ok(session) = Session::from_bytes(data) else { return };
    let tree = session.tree();
    assert_eq!(tree.nodes.len(), session.len());
    // Every entry is below exactly one root, once.
    let mut seen = vec![false; tree.nodes.len()];
    let mut rest = tree.roots.clone();
    while let Some(place) = rest.pop() {
        assert!(!std::mem::replace(&mut seen[place], true), "entry {place} has two places");
        rest.extend(&tree.nodes[place].children);
    }
    assert!(seen.iter().all(|seen| *seen), "an entry has no place");

    if let Some(leaf) = session.leaf_id() {
        let leaf = session.summary(leaf.as_str()).expect("the leaf is an entry");
        assert_ne!(leaf.kind, EntryKind::Unreadable, "a session stands on a damaged entry");
    }
    for entry in session.entries() {
        let id = entry.id.as_str();
        let read = session.entry(id).expect("an entry can be read");
        assert_eq!(read.id, entry.id);
        let line = session.line(id).expect("an entry has a line");
        // Lines are kept as they were.
        assert!(data.windows(line.len().max(1)).any(|bytes| bytes == line), "a line that is not in the file");
        if matches!(read.body, EntryBody::Unknown(_)) {
            assert!(pi_ai::json::from_slice_lossy::<serde_json::Value>(&line).is_ok());
        }
        let projection = session.projection_at(Some(id)).expect("a branch can be read");
        assert!(projection.entries().len() <= session.len());
    }
    // The last line is closed, and everything is as it was.
    let closed = Session::from_bytes([data, b"\n"].concat()).expect("it was a session before");
    assert_eq!(closed.leaf_id(), session.leaf_id());
    assert_eq!(closed.context(), session.context());
}

/// What a program behind an extension writes: however it arrives, the lines are the same, none is kept that is too long,
/// and each is a message or says why it is none.
pub fn extension_lines(data: &[u8]) {
    use crate::extensions::stdio::wire::{LineCutter, read};
    const LIMIT: usize = 48;
    let cut = |pieces: &[&[u8]]| {
        let (mut cutter, mut lines) = (LineCutter::with_limit(LIMIT), Vec::new());
        let fits = pieces.iter().all(|piece| cutter.feed(piece, |line| lines.push(line.to_vec())).is_ok());
        (lines, fits)
    };
    let (lines, fits) = cut(&[data]);
    for size in [1, 3, 7] {
        assert_eq!(cut(&data.chunks(size).collect::<Vec<_>>()), (lines.clone(), fits), "pieces of {size} bytes");
    }
    let whole: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    assert_eq!(fits, whole.iter().all(|line| line.len() <= LIMIT));
    assert!(lines.iter().zip(&whole).all(|(line, whole)| line == whole && line.len() <= LIMIT));
    assert!(!fits || lines.len() + 1 == whole.len());
    for line in whole {
        if let Err(problem) = read(line) {
            assert!(!problem.to_string().is_empty());
        }
    }
}

/// Edits of a file: what is outside the matches stays byte for byte, what was matched looks like what was looked
/// for, and the patch turns the old text into the new one.
///
/// The bytes are a file and edits, separated by 0x1e, each edit an old and a new text, separated by 0x1f. An
/// old text of 0x01 and three bytes is a part of the file itself: from where, how long, and how disguised.
pub fn edit(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == 0x1e);
    let file = parts.next().unwrap_or_default();
    let edits: Vec<Edit> = parts.map(|part| read_edit(part, file)).collect();
    match apply_edits(file, &edits, "f") {
        Ok(edited) => check_edited(file, &edits, &edited),
        Err(EditError::NotUnique { occurrences, lines, .. }) => {
            assert!(occurrences > 1 && !lines.is_empty() && lines.is_sorted());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn read_edit(part: &[u8], file: &[u8]) -> Edit {
    let (old, new) = match part.iter().position(|byte| *byte == 0x1f) {
        Some(at) => (&part[..at], &part[at + 1..]),
        None => (part, [].as_slice()),
    };
    let old = match old {
        [1, start, length, disguise, ..] => disguised(part_of(file, *start, *length), *disguise),
        other => String::from_utf8_lossy(other).into_owned(),
    };
    Edit::new(old, String::from_utf8_lossy(new))
}

fn part_of(file: &[u8], start: u8, length: u8) -> String {
    let text = String::from_utf8_lossy(file);
    text.chars().skip(usize::from(start) % 64).take(usize::from(length) % 16 + 1).collect()
}

fn disguised(text: String, how: u8) -> String {
    match how % 6 {
        0 => text.replace('\'', "\u{2019}").replace('"', "\u{201c}"),
        1 => text.replace('-', "\u{2014}").replace(' ', "\u{a0}"),
        2 => text.replace('\n', " \t\n"),
        3 => text.replace('\n', "\r\n"),
        4 => text + "  ",
        _ => text,
    }
}

fn check_edited(file: &[u8], edits: &[Edit], edited: &Edited) {
    let removed = removed_texts(file, edited);
    // Lines that an edit's two texts share stay, and ranges that touch are one.
    let lines: usize = edits.iter().map(|edit| edit.old_text.split('\n').count()).sum();
    assert!(removed.len() <= lines, "every line of an edit removes at most one range");
    for text in &removed {
        // Half a ligature at an end belongs to the removed bytes, and blanks at the end of a line to none.
        let looks = looks_like(text);
        let is_asked_for = |edit: &Edit| {
            let asked = looks_like(edit.old_text.as_bytes());
            asked.contains(&looks) || asked.lines().any(|line| !line.is_empty() && looks.contains(line))
        };
        assert!(edits.iter().any(is_asked_for), "{text:?} was not asked for");
    }
    let after = edited.to_bytes(file);
    let mark = "\u{feff}".as_bytes();
    assert!(!file.starts_with(mark) || after.starts_with(mark), "the byte order mark stays");
    let body = if file.starts_with(mark) { mark.len() } else { 0 };
    if let (Some(before), Some(after)) = (plain_text(&file[body..]), plain_text(&after[body..])) {
        assert_eq!(apply_patch(&before, &edited.diff.patch), after, "the patch");
    }
}

/// The ranges of the file that no piece keeps; the pieces keep ranges in order.
fn removed_texts<'a>(file: &'a [u8], edited: &Edited) -> Vec<&'a [u8]> {
    let mut removed = Vec::new();
    let mut at = 0;
    for piece in &edited.pieces {
        if let Piece::Kept(range) = piece {
            assert!(at <= range.start && range.start < range.end && range.end <= file.len(), "the pieces are in order");
            if at < range.start {
                removed.push(&file[at..range.start]);
            }
            at = range.end;
        }
    }
    if at < file.len() {
        removed.push(&file[at..]);
    }
    removed
}

/// A text without all that a tolerant match looks over; where it begins or ends inside a line counts for nothing.
fn looks_like(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text).replace("\r\n", "\n").replace('\r', "\n").replace('\u{feff}', "");
    normalize_tolerant(&text).trim_end().to_owned()
}

fn plain_text(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// Applies a unified diff as `patch` would, and checks every line that it claims to find.
pub fn apply_patch(text: &str, patch: &str) -> String {
    let old: Vec<&str> = text.split_inclusive('\n').collect();
    let mut new = String::new();
    let mut at = 0;
    let lines: Vec<&str> = patch.split_inclusive('\n').skip(2).collect();
    for (index, line) in lines.iter().enumerate() {
        let ends_here = lines.get(index + 1).is_some_and(|next| next.starts_with("\\ No newline"));
        let body = line.get(1..).unwrap_or_default();
        let body = if ends_here { body.strip_suffix('\n').unwrap_or(body) } else { body };
        match line.as_bytes().first() {
            Some(b'@') => {
                let start: usize =
                    line.split(['-', ',']).nth(1).and_then(|number| number.parse().ok()).expect("a hunk");
                let empty = line.split([' ', ',']).nth(2) == Some("0");
                while at + usize::from(!empty) < start {
                    new.push_str(old[at]);
                    at += 1;
                }
            }
            Some(b'\\') => {}
            Some(b'+') => new.push_str(body),
            Some(sign @ (b' ' | b'-')) => {
                assert_eq!(old.get(at), Some(&body), "line {} of the patch", index + 3);
                if *sign == b' ' {
                    new.push_str(body);
                }
                at += 1;
            }
            _ => panic!("line {} of the patch is none: {line:?}", index + 3),
        }
    }
    new.extend(old[at.min(old.len())..].iter().copied());
    new
}
