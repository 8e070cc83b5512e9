//! Collects what is wrong with a request, with the place.

use serde_json::{Map, Value};

use crate::rules::{Rules, UnknownFields, Violation};

/// The checks of one request.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) rules: Rules,
    request: usize,
    violations: Vec<Violation>,
}

impl Check {
    pub(crate) fn new(request: usize, rules: Rules) -> Self {
        Self { rules, request, violations: Vec::new() }
    }

    pub(crate) fn into_violations(self) -> Vec<Violation> {
        self.violations
    }

    pub(crate) fn fail(&mut self, at: &str, what: impl Into<String>) {
        self.violations.push(Violation { request: self.request, at: at.to_owned(), what: what.into() });
    }

    /// Fails unless `holds`.
    pub(crate) fn require(&mut self, holds: bool, at: &str, what: &str) {
        if !holds {
            self.fail(at, what);
        }
    }

    /// A non-empty string.
    pub(crate) fn text<'v>(&mut self, value: &'v Value, at: &str) -> Option<&'v str> {
        match value.as_str() {
            Some(text) if !text.is_empty() => Some(text),
            _ => {
                self.fail(at, format!("expected a non-empty string, found {}", kind(value)));
                None
            }
        }
    }

    /// A non-empty array.
    pub(crate) fn list<'v>(&mut self, value: &'v Value, at: &str) -> &'v [Value] {
        match value.as_array() {
            Some(list) if !list.is_empty() => list,
            _ => {
                self.fail(at, format!("expected a non-empty list, found {}", kind(value)));
                &[]
            }
        }
    }

    /// An object.
    pub(crate) fn object<'v>(&mut self, value: &'v Value, at: &str) -> Option<&'v Map<String, Value>> {
        if !value.is_object() {
            self.fail(at, format!("expected an object, found {}", kind(value)));
        }
        value.as_object()
    }

    /// No fields but these, when the rules refuse others.
    pub(crate) fn fields(&mut self, value: &Value, known: &[&str], at: &str) {
        if self.rules.unknown_fields == UnknownFields::Allowed {
            return;
        }
        let Some(object) = value.as_object() else {
            return;
        };
        for name in object.keys().filter(|name| !known.contains(&name.as_str())) {
            self.fail(at, format!("unknown field `{name}`"));
        }
    }

    /// A name that services accept for tools and ids: letters, digits, `_` and `-`.
    pub(crate) fn identifier<'v>(&mut self, value: &'v Value, longest: usize, at: &str) -> Option<&'v str> {
        let text = self.text(value, at)?;
        let accepted = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
        if text.len() > longest || !text.chars().all(accepted) {
            self.fail(at, format!("expected at most {longest} of [A-Za-z0-9_-], found `{text}`"));
        }
        Some(text)
    }

    /// Tool names that occur twice.
    pub(crate) fn unique(&mut self, names: &[&str], at: &str) {
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                self.fail(at, format!("`{name}` twice"));
            }
        }
    }
}

/// What a value is, for messages.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(text) if text.is_empty() => "an empty string",
        Value::String(_) => "a string",
        Value::Array(list) if list.is_empty() => "an empty list",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
