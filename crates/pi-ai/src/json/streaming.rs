//! A JSON value that grows while its text arrives.
//!
//! What a piece of text says is read once and put where it belongs in the value; nothing that came before is read or
//! copied again. Text that is not finished, or not JSON, is read for what it most likely means:
//!
//! - A string shows the characters so far. An escape shows once it is complete; half a surrogate pair never does.
//! - A literal shows from its first letter on (`t` is `true`), a number while its digits so far are one.
//! - A member shows once its value has begun.
//! - Raw control characters and backslashes that start no escape are text, as in [`super::repair_strings`].
//! - Missing colons and commas are put up with. Unknown words, and values where none can be, are left out.
//! - What follows the root value is ignored.

use std::mem;

use serde_json::Value;

use super::string_literal::StringLiteral;

/// How many containers may be open inside one another. Deeper ones are left out.
///
/// serde_json refuses 128; the rest is for what arguments are put into (blocks, messages, session entries), so that
/// whatever is stored can be read back.
pub const MAX_DEPTH: usize = 100;

/// A number longer than this does not show before it ends, so that a piece never costs more than its own length.
const MAX_SHOWN_SCALAR: usize = 64;

/// Reads JSON text in pieces and holds the value of what has come so far.
///
/// ```
/// use pi_ai::json::StreamingJson;
/// use serde_json::json;
///
/// let mut json = StreamingJson::default();
/// json.push(r#"{"path": "src/ma"#);
/// assert_eq!(json.value(), Some(&json!({"path": "src/ma"})));
/// json.push(r#"in.rs", "line": 1"#);
/// assert_eq!(json.value(), Some(&json!({"path": "src/main.rs", "line": 1})));
/// json.push("2}");
/// assert_eq!(json.value(), Some(&json!({"path": "src/main.rs", "line": 12})));
/// ```
#[derive(Debug)]
pub struct StreamingJson {
    /// A list that holds the root value once there is one: so the root is an element like any other.
    document: Value,
    /// The containers that are open and part of the value, from the root inwards.
    open: Vec<Open>,
    /// How many containers are open inside of these that are not part of the value.
    skipped: usize,
    token: Token,
    finished: bool,
    too_deep: bool,
}

/// An open container, with what is needed to find its open child.
#[derive(Debug)]
enum Open {
    Array,
    Object { key: String, next: Next },
}

/// What an object's text goes on with.
#[derive(Clone, Copy, Debug)]
enum Next {
    Key,
    Colon,
    Value,
    Comma,
}

/// The token in which the text so far ends.
#[derive(Debug, Default)]
enum Token {
    #[default]
    None,
    Text(StringLiteral, Place),
    Scalar {
        text: String,
        place: Place,
        shown: Option<Shown>,
    },
}

/// Where a token goes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// The key of the innermost object.
    Key,
    /// The innermost container: under its key, or at its end.
    Value,
    /// Nowhere: it stands where no value can be, or in a container that is left out.
    Nowhere,
}

/// An unfinished scalar is part of the value; this is what it hides.
#[derive(Debug)]
struct Shown {
    hidden: Option<Value>,
}

impl Default for StreamingJson {
    fn default() -> Self {
        Self {
            document: Value::Array(Vec::new()),
            open: Vec::new(),
            skipped: 0,
            token: Token::None,
            finished: false,
            too_deep: false,
        }
    }
}

impl StreamingJson {
    /// Reads the next piece. Costs time in proportion to its length.
    pub fn push(&mut self, piece: &str) {
        // Out of `self`, so that the containers and the state can change side by side.
        let mut document = mem::take(&mut self.document);
        let mut rest = piece;
        self.read(&mut document, 0, &mut rest);
        self.document = document;
    }

    /// The value so far; `None` while none has begun.
    pub fn value(&self) -> Option<&Value> {
        self.document.get(0)
    }

    /// The value so far.
    pub fn into_value(self) -> Option<Value> {
        match self.document {
            Value::Array(mut items) => items.pop(),
            _ => None,
        }
    }

    /// For an owner who keeps the root object elsewhere between pieces.
    pub(super) fn root_mut(&mut self) -> Option<&mut Value> {
        self.document.get_mut(0)
    }

    /// Whether something was left out because it was nested deeper than [`MAX_DEPTH`].
    pub fn too_deep(&self) -> bool {
        self.too_deep
    }

    /// Reads on in `container`, around which `depth` containers are open, until it closes or the text ends.
    ///
    /// The recursion is what gives the parent back when a child closes, without a walk from the root; it is as deep as
    /// [`MAX_DEPTH`] at most.
    fn read(&mut self, container: &mut Value, depth: usize, text: &mut &str) {
        loop {
            if self.open.len() > depth {
                match self.open_child(container, depth) {
                    Some(child) => self.read(child, depth + 1, text),
                    None => self.lose_children(depth),
                }
                if self.open.len() > depth {
                    return;
                }
                if self.skipped == 0 {
                    self.value_ended(container);
                }
                continue;
            }
            if self.finished {
                return;
            }
            if text.is_empty() {
                self.show_scalar(container);
                return;
            }
            match &mut self.token {
                Token::None if self.skipped > 0 => self.read_skipped(container, text),
                Token::None => {
                    if self.read_structure(container, text) == Flow::Closed && depth > 0 {
                        self.open.pop();
                        return;
                    }
                }
                Token::Text(..) => self.read_text(container, text),
                Token::Scalar { .. } => self.read_scalar(container, text),
            }
        }
    }

    /// The owner changed the value between pieces: what was open in it goes nowhere from here on.
    fn lose_children(&mut self, depth: usize) {
        self.skipped += self.open.drain(depth..).count();
        if let Token::Text(_, place) | Token::Scalar { place, .. } = &mut self.token {
            *place = Place::Nowhere;
        }
    }

    /// The open child of the container around which `depth` others are open.
    fn open_child<'a>(&self, container: &'a mut Value, depth: usize) -> Option<&'a mut Value> {
        let child = match (depth.checked_sub(1).map(|at| &self.open[at]), container) {
            (Some(Open::Object { key, .. }), Value::Object(members)) => members.get_mut(key.as_str()),
            (None | Some(Open::Array), Value::Array(items)) => items.last_mut(),
            _ => None,
        };
        match (child?, &self.open[depth]) {
            (child @ Value::Array(_), Open::Array) | (child @ Value::Object(_), Open::Object { .. }) => Some(child),
            _ => None,
        }
    }

    /// Reads one character outside of tokens. What it starts is read by the caller's next round.
    fn read_structure(&mut self, container: &mut Value, text: &mut &str) -> Flow {
        let Some(&byte) = text.as_bytes().first() else {
            return Flow::Goes;
        };
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {}
            b'"' => self.start_text(container),
            b'{' => self.start_container(
                container,
                Value::Object(Default::default()),
                Open::Object { key: String::new(), next: Next::Key },
            ),
            b'[' => self.start_container(container, Value::Array(Vec::new()), Open::Array),
            b'}' | b']' => {
                *text = &text[1..];
                return Flow::Closed;
            }
            b':' => {
                if let Some(Open::Object { next: next @ Next::Colon, .. }) = self.open.last_mut() {
                    *next = Next::Value;
                }
            }
            b',' => {
                if let Some(Open::Object { next, .. }) = self.open.last_mut() {
                    *next = Next::Key;
                }
            }
            _ => {
                self.token = Token::Scalar { text: String::new(), place: self.place_of_value(), shown: None };
                return Flow::Goes;
            }
        }
        *text = &text[1..];
        Flow::Goes
    }

    /// Where a value goes that starts here.
    fn place_of_value(&self) -> Place {
        match self.open.last() {
            Some(Open::Object { next: Next::Key | Next::Comma, .. }) => Place::Nowhere,
            // A missing colon is put up with.
            _ => Place::Value,
        }
    }

    fn start_text(&mut self, container: &mut Value) {
        let place = match self.open.last_mut() {
            // A missing comma is put up with.
            Some(Open::Object { key, next: Next::Key | Next::Comma }) => {
                key.clear();
                Place::Key
            }
            _ => {
                put(container, self.open.last(), Value::String(String::new()));
                Place::Value
            }
        };
        self.token = Token::Text(StringLiteral::default(), place);
    }

    fn start_container(&mut self, container: &mut Value, value: Value, open: Open) {
        if self.place_of_value() == Place::Nowhere {
            self.skipped = 1;
        } else if self.open.len() == MAX_DEPTH {
            self.too_deep = true;
            self.skipped = 1;
        } else {
            put(container, self.open.last(), value);
            self.open.push(open);
        }
    }

    /// Reads on in containers that are left out: only their ends count, and the strings, which may hold brackets.
    fn read_skipped(&mut self, container: &Value, text: &mut &str) {
        let at = text.bytes().position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']'));
        let Some(at) = at else {
            *text = "";
            return;
        };
        match text.as_bytes()[at] {
            b'"' => self.token = Token::Text(StringLiteral::default(), Place::Nowhere),
            b'{' | b'[' => self.skipped += 1,
            _ => self.skipped -= 1,
        }
        *text = &text[at + 1..];
        if self.skipped == 0 {
            self.value_ended(container);
        }
    }

    fn read_text(&mut self, container: &mut Value, text: &mut &str) {
        let Token::Text(state, place) = &mut self.token else {
            return;
        };
        let place = *place;
        let target = match (place, self.open.last_mut()) {
            (Place::Key, Some(Open::Object { key, .. })) => Some(key),
            (Place::Value, frame) => match placed(container, frame.as_deref()) {
                Some(Value::String(target)) => Some(target),
                _ => None,
            },
            _ => None,
        };
        if !state.read(target, text) {
            return;
        }
        self.token = Token::None;
        match (place, self.open.last_mut()) {
            (Place::Key, Some(Open::Object { next, .. })) => *next = Next::Colon,
            _ if self.skipped > 0 => {}
            _ => self.value_ended(container),
        }
    }

    fn read_scalar(&mut self, container: &mut Value, text: &mut &str) {
        let Token::Scalar { text: scalar, place, shown } = &mut self.token else {
            return;
        };
        let end = text.bytes().position(ends_scalar);
        let (more, rest) = text.split_at(end.unwrap_or(text.len()));
        *text = rest;
        if *place == Place::Value {
            scalar.push_str(more);
        }
        if end.is_none() {
            return;
        }
        if *place == Place::Value {
            let value = serde_json::from_str(scalar).ok();
            show(container, self.open.last(), shown, value);
        }
        self.token = Token::None;
        if self.skipped == 0 {
            self.value_ended(container);
        }
    }

    /// Shows what an unfinished scalar is so far, or hides it again.
    fn show_scalar(&mut self, container: &mut Value) {
        if let Token::Scalar { text, place: Place::Value, shown } = &mut self.token {
            let value = if text.len() <= MAX_SHOWN_SCALAR { unfinished_scalar(text) } else { None };
            show(container, self.open.last(), shown, value);
        }
    }

    /// A value in the innermost open container has ended, be it part of the value or not.
    fn value_ended(&mut self, container: &Value) {
        match self.open.last_mut() {
            Some(Open::Object { next, .. }) => *next = Next::Comma,
            Some(Open::Array) => {}
            // Before the root there may be words that are none.
            None => self.finished = container.get(0).is_some(),
        }
    }
}

#[derive(PartialEq)]
enum Flow {
    Goes,
    Closed,
}

/// Puts a value under the key of the innermost object, or at the end of the innermost list; returns what it replaces.
fn put(container: &mut Value, open: Option<&Open>, value: Value) -> Option<Value> {
    match (container, open) {
        (Value::Object(members), Some(Open::Object { key, .. })) => members.insert(key.clone(), value),
        (Value::Array(items), None | Some(Open::Array)) => {
            items.push(value);
            None
        }
        _ => None,
    }
}

/// What was [`put`] last.
fn placed<'a>(container: &'a mut Value, open: Option<&Open>) -> Option<&'a mut Value> {
    match (container, open) {
        (Value::Object(members), Some(Open::Object { key, .. })) => members.get_mut(key.as_str()),
        (Value::Array(items), None | Some(Open::Array)) => items.last_mut(),
        _ => None,
    }
}

/// Takes back what was [`put`] last.
fn take_back(container: &mut Value, open: Option<&Open>, hidden: Option<Value>) {
    if let Some(hidden) = hidden {
        if let Some(value) = placed(container, open) {
            *value = hidden;
        }
        return;
    }
    match (container, open) {
        (Value::Object(members), Some(Open::Object { key, .. })) => {
            // It is the last one: nothing changes its place.
            members.remove(key.as_str());
        }
        (Value::Array(items), None | Some(Open::Array)) => {
            items.pop();
        }
        _ => {}
    }
}

/// Makes a scalar's value, or none, part of the container; `shown` says what is so now.
fn show(container: &mut Value, open: Option<&Open>, shown: &mut Option<Shown>, value: Option<Value>) {
    match (value, shown.take()) {
        (Some(value), None) => *shown = Some(Shown { hidden: put(container, open, value) }),
        (Some(value), Some(before)) => {
            if let Some(placed) = placed(container, open) {
                *placed = value;
            }
            *shown = Some(before);
        }
        (None, Some(before)) => take_back(container, open, before.hidden),
        (None, None) => {}
    }
}

fn ends_scalar(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b'{' | b'}' | b'[' | b']' | b'"')
}

fn unfinished_scalar(text: &str) -> Option<Value> {
    let literals = [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)];
    if let Some((_, value)) = literals.into_iter().find(|(name, _)| name.starts_with(text)) {
        return Some(value);
    }
    if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return None;
    }
    // An exponent without digits does not count yet.
    let unsigned = text.strip_suffix(['+', '-']).unwrap_or(text);
    let mantissa = unsigned.strip_suffix(['e', 'E']);
    serde_json::from_str(mantissa.unwrap_or(text)).ok()
}
