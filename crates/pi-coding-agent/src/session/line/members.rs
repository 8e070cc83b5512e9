//! Walking over the members of a JSON object without reading what is in them.

use std::{borrow::Cow, ops::Range};

use memchr::memchr2;

/// The members of the JSON object that some bytes begin with.
///
/// It is made for speed on lines that JSON writers wrote: values that are passed over are not checked, so that going
/// past a member does not mean that it is valid JSON.
#[derive(Debug)]
pub(crate) struct Members<'a> {
    bytes: &'a [u8],
    at: usize,
    is_first: bool,
}

/// What comes next in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// A member whose value begins here. Take it with [`Members::string_value`], [`Members::value`] or
    /// [`Members::skip`] before asking for the next.
    Member { key: &'a [u8] },
    /// The object ends.
    End,
    /// The bytes end, or are no JSON.
    Broken,
}

impl<'a> Members<'a> {
    /// `None` when the bytes do not begin an object.
    pub(crate) fn of(bytes: &'a [u8]) -> Option<Self> {
        let at = past_blanks(bytes, 0);
        (bytes.get(at) == Some(&b'{')).then_some(Self { bytes, at: at + 1, is_first: true })
    }

    pub(crate) fn next(&mut self) -> Step<'a> {
        self.at = past_blanks(self.bytes, self.at);
        match self.bytes.get(self.at) {
            Some(b'}') => {
                self.at += 1;
                return Step::End;
            }
            Some(b',') if !self.is_first => self.at = past_blanks(self.bytes, self.at + 1),
            Some(b'"') if self.is_first => {}
            _ => return Step::Broken,
        }
        self.is_first = false;
        let Some(key) = string_at(self.bytes, self.at) else { return Step::Broken };
        let colon = past_blanks(self.bytes, key.end + 1);
        if self.bytes.get(colon) != Some(&b':') {
            return Step::Broken;
        }
        self.at = past_blanks(self.bytes, colon + 1);
        Step::Member { key: &self.bytes[key] }
    }

    /// Goes past the value. `None` when the bytes end in it.
    pub(crate) fn skip(&mut self) -> Option<()> {
        self.value().map(drop)
    }

    /// The value's place. `None` when the bytes end in it.
    pub(crate) fn value(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        self.at = past_value(self.bytes, start)?;
        Some(start..self.at)
    }

    /// The value, when it is a string. Outer `None`: the bytes end in it.
    pub(crate) fn string_value(&mut self) -> Option<Option<Cow<'a, str>>> {
        let value = self.value()?;
        Some(read_string(&self.bytes[value]))
    }

    /// What the value begins with.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at.min(self.bytes.len())..]
    }
}

/// The text of a JSON string literal; `None` when it is none.
pub(crate) fn read_string(literal: &[u8]) -> Option<Cow<'_, str>> {
    let inner = literal.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr2(b'\\', b'"', inner).is_none()
        && let Ok(text) = std::str::from_utf8(inner)
    {
        return Some(Cow::Borrowed(text));
    }
    pi_ai::json::from_slice_lossy::<String>(literal).ok().map(Cow::Owned)
}

/// The inside of the string that begins at `at`.
fn string_at(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let end = string_end(bytes, at)?;
    Some(at + 1..end - 1)
}

/// The place after the string that begins at `at`.
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// The place after the value that begins at `at`.
fn past_value(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => string_end(bytes, at),
        b'{' | b'[' => {
            let mut depth = 0usize;
            let mut at = at;
            loop {
                match bytes.get(at)? {
                    b'"' => at = string_end(bytes, at)?,
                    b'{' | b'[' => {
                        depth += 1;
                        at += 1;
                    }
                    b'}' | b']' => {
                        depth -= 1;
                        at += 1;
                        if depth == 0 {
                            return Some(at);
                        }
                    }
                    _ => at += 1,
                }
            }
        }
        b',' | b'}' | b']' | b':' => None,
        _ => {
            let length = bytes[at..].iter().position(|byte| matches!(byte, b',' | b'}' | b']') || is_blank(*byte))?;
            Some(at + length)
        }
    }
}

fn past_blanks(bytes: &[u8], at: usize) -> usize {
    let blanks = bytes.get(at..).unwrap_or_default().iter().take_while(|byte| is_blank(**byte)).count();
    at + blanks
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    /// All members, read one by one.
    fn walk(bytes: &[u8]) -> Option<Map<String, Value>> {
        let mut members = Members::of(bytes)?;
        let mut found = Map::new();
        loop {
            match members.next() {
                Step::Member { key } => {
                    let key = read_string(&[b"\"", key, b"\""].concat())?.into_owned();
                    let value = members.value()?;
                    found.insert(key, serde_json::from_slice(&bytes[value]).ok()?);
                }
                Step::End => return Some(found),
                Step::Broken => return None,
            }
        }
    }

    #[test]
    fn a_cut_object_is_broken_wherever_it_is_cut() {
        let line = br#"{"a":"b\"}","c":{"d":["}"]},"e":-1.5e3,"f":null , "g":true}"#;
        assert_eq!(walk(line), serde_json::from_slice(line).ok());
        for end in 0..line.len() {
            assert_eq!(walk(&line[..end]), None, "{}", String::from_utf8_lossy(&line[..end]));
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for bytes in ["", "[1]", "null", "{,}", "{\"a\":1,,}", "{\"a\" 1}", "{a:1}", "{\"a\":}", "\"x"] {
            assert_eq!(walk(bytes.as_bytes()), None, "{bytes}");
        }
        assert_eq!(walk(b" {} trailing"), Some(Map::new()));
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z\"\\\\{}\\[\\],:é😀\n]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-z\"\\\\é]{0,4}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_walk_finds_what_a_parser_finds(value in json()) {
            let pretty = serde_json::to_vec_pretty(&value).unwrap();
            for line in [serde_json::to_vec(&value).unwrap(), pretty] {
                prop_assert_eq!(walk(&line).map(Value::Object), value.is_object().then(|| value.clone()));
            }
        }
    }
}
