//! Compares what a vector expects with what the code made.
//!
//! Expected values may hold placeholders for wording and ids that are ours to choose:
//!
//! | Placeholder | Accepts |
//! |---|---|
//! | `{"$any_text": true}` | any string that is not empty |
//! | `{"$contains": ["a", "b"]}` | a string with these parts, in this order |
//! | `{"$contains_all": ["a", "b"]}` | a string with these parts, in any order |
//! | `{"$id": 1, "prefix": "fc_", "max_length": 64}` | an id of `[A-Za-z0-9_-]`; equal numbers are equal ids |
//! | `{"$unpaired": "text"}` | `text`, which is what is left when half a surrogate pair is dropped |
//!
//! ```
//! use pi_ai::testing::expect::mismatch;
//! use serde_json::json;
//!
//! assert_eq!(mismatch(&json!({"n": 1}), &json!({"n": 1.0})), None);
//! assert_eq!(
//!     mismatch(&json!({"a": [1, {"$any_text": true}]}), &json!({"a": [1, ""]})).unwrap(),
//!     "$.a[1]: expected some text, found \"\"",
//! );
//! ```

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

/// The first difference between two values under the default rules, as `path: expected …, found …`.
pub fn mismatch(expected: &Value, actual: &Value) -> Option<String> {
    Comparer::new().mismatch(expected, actual)
}

/// Compares the values of one vector case.
///
/// It remembers which id stood for which `$id` number, so one comparer belongs to one case: use it for every value of
/// that case, and a new one for the next.
#[derive(Clone, Debug, Default)]
pub struct Comparer {
    relative_error: f64,
    json_text_keys: Vec<String>,
    named_ids: bool,
    ids: BTreeMap<String, String>,
}

impl Comparer {
    /// The rules that hold everywhere: numbers by value, keys in any order, placeholders.
    pub fn new() -> Self {
        Self::default()
    }

    /// The rules of a vector area, named by its folder (`provider_requests`, `sessions`, …).
    pub fn for_area(area: &str) -> Self {
        match area {
            "provider_requests" | "provider_sequences" => Self::new().json_text_under("arguments"),
            "provider_responses" | "ai_data" => Self::new().relative_error(1e-9),
            "sessions" => Self::new().named_ids(),
            _ => Self::new(),
        }
    }

    /// Accepts numbers that differ by at most this part of the larger one.
    #[must_use]
    pub fn relative_error(mut self, error: f64) -> Self {
        self.relative_error = error;
        self
    }

    /// Compares strings under `key` by the JSON they hold, when both hold JSON.
    #[must_use]
    pub fn json_text_under(mut self, key: &str) -> Self {
        self.json_text_keys.push(key.to_owned());
        self
    }

    /// Reads the expected strings `#1`, `#2`, … as ids, like `{"$id": 1}`.
    #[must_use]
    pub fn named_ids(mut self) -> Self {
        self.named_ids = true;
        self
    }

    /// The first difference, as `path: expected …, found …`; `None` when there is none.
    pub fn mismatch(&mut self, expected: &Value, actual: &Value) -> Option<String> {
        let mut path = String::from("$");
        self.compare(expected, actual, &mut path, None).map(|what| format!("{path}: {what}"))
    }

    /// On a difference `path` is left where it was found.
    fn compare(&mut self, expected: &Value, actual: &Value, path: &mut String, key: Option<&str>) -> Option<String> {
        match expected {
            Value::Object(fields) => match Placeholder::read(fields) {
                Some(placeholder) => self.compare_placeholder(&placeholder, actual),
                None => self.compare_objects(fields, actual, path),
            },
            Value::Array(items) => self.compare_arrays(items, actual, path),
            Value::Number(number) => match actual {
                Value::Number(other) if self.same_number(number, other) => None,
                _ => Some(differs(expected, actual)),
            },
            Value::String(text) => self.compare_text(text, actual, path, key),
            Value::Null | Value::Bool(_) => (expected != actual).then(|| differs(expected, actual)),
        }
    }

    fn compare_objects(&mut self, expected: &Map<String, Value>, actual: &Value, path: &mut String) -> Option<String> {
        let Value::Object(found) = actual else {
            return Some(format!("expected an object, found {}", excerpt(actual)));
        };
        for (key, value) in expected {
            let length = path.len();
            push_key(path, key);
            let Some(other) = found.get(key) else {
                return Some(format!("expected {}, found nothing", excerpt(value)));
            };
            if let Some(difference) = self.compare(value, other, path, Some(key)) {
                return Some(difference);
            }
            path.truncate(length);
        }
        let extra = found.iter().find(|(key, _)| !expected.contains_key(*key))?;
        push_key(path, extra.0);
        Some(format!("expected nothing, found {}", excerpt(extra.1)))
    }

    fn compare_arrays(&mut self, expected: &[Value], actual: &Value, path: &mut String) -> Option<String> {
        let Value::Array(found) = actual else {
            return Some(format!("expected a list, found {}", excerpt(actual)));
        };
        for (index, (value, other)) in expected.iter().zip(found).enumerate() {
            let length = path.len();
            path.push_str(&format!("[{index}]"));
            if let Some(difference) = self.compare(value, other, path, None) {
                return Some(difference);
            }
            path.truncate(length);
        }
        if let Some(missing) = expected.get(found.len()) {
            path.push_str(&format!("[{}]", found.len()));
            return Some(format!("expected {}, but the list ends here", excerpt(missing)));
        }
        let extra = found.get(expected.len())?;
        path.push_str(&format!("[{}]", expected.len()));
        Some(format!("expected the list to end, found {}", excerpt(extra)))
    }

    fn compare_text(&mut self, expected: &str, actual: &Value, path: &mut String, key: Option<&str>) -> Option<String> {
        let Value::String(found) = actual else {
            return Some(format!("expected {expected:?}, found {}", excerpt(actual)));
        };
        if self.named_ids && is_named_id(expected) {
            return self.compare_id(expected, found);
        }
        if expected == found {
            return None;
        }
        if key.is_some_and(|key| self.json_text_keys.iter().any(|json| json == key))
            && let (Ok(expected), Ok(found)) = (serde_json::from_str(expected), serde_json::from_str(found))
        {
            return self.compare(&expected, &found, path, None);
        }
        Some(format!("expected {}, found {}", quote(expected), quote(found)))
    }

    fn compare_placeholder(&mut self, placeholder: &Placeholder<'_>, actual: &Value) -> Option<String> {
        let Value::String(text) = actual else {
            return Some(format!("expected some text, found {}", excerpt(actual)));
        };
        match placeholder {
            Placeholder::AnyText => text.is_empty().then(|| "expected some text, found \"\"".to_owned()),
            Placeholder::Unpaired(expected) => {
                (text != expected).then(|| format!("expected {}, found {}", quote(expected), quote(text)))
            }
            Placeholder::ContainsAll(parts) => parts
                .iter()
                .find(|part| !text.contains(**part))
                .map(|part| format!("expected text with {}, found {}", quote(part), quote(text))),
            Placeholder::ContainsInOrder(parts) => {
                let mut rest = text.as_str();
                for part in parts {
                    let Some(at) = rest.find(part) else {
                        return Some(format!(
                            "expected text with {} after the parts before it, found {}",
                            quote(part),
                            quote(text),
                        ));
                    };
                    rest = &rest[at + part.len()..];
                }
                None
            }
            Placeholder::Id { number, prefix, max_length } => {
                if !text.starts_with(prefix) {
                    return Some(format!("expected an id that starts with {prefix:?}, found {}", quote(text)));
                }
                if text.len() as u64 > *max_length {
                    return Some(format!("expected an id of at most {max_length} characters, found {}", quote(text)));
                }
                if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
                    return Some(format!("expected an id of [A-Za-z0-9_-], found {}", quote(text)));
                }
                self.compare_id(&format!("#{number}"), text)
            }
        }
    }

    /// Equal names must be equal ids, different names different ids.
    fn compare_id(&mut self, name: &str, found: &str) -> Option<String> {
        if found.is_empty() {
            return Some("expected an id, found \"\"".to_owned());
        }
        if let Some(known) = self.ids.get(name) {
            return (known != found).then(|| format!("expected id {name} ({}), found {}", quote(known), quote(found)));
        }
        if let Some((other, _)) = self.ids.iter().find(|(_, id)| *id == found) {
            return Some(format!("expected a new id for {name}, found {}, which is {other}", quote(found)));
        }
        self.ids.insert(name.to_owned(), found.to_owned());
        None
    }

    /// Numbers as JavaScript reads them: as doubles, so that 1 is 1.0 and no digit past the 17th counts.
    fn same_number(&self, expected: &Number, found: &Number) -> bool {
        let (Some(expected), Some(found)) = (expected.as_f64(), found.as_f64()) else {
            return expected == found;
        };
        expected == found || (expected - found).abs() <= self.relative_error * expected.abs().max(found.abs())
    }
}

enum Placeholder<'a> {
    AnyText,
    ContainsInOrder(Vec<&'a str>),
    ContainsAll(Vec<&'a str>),
    Id { number: u64, prefix: &'a str, max_length: u64 },
    Unpaired(&'a str),
}

impl<'a> Placeholder<'a> {
    /// `None` for an object that is no placeholder. An object with one of the names but another shape is none either:
    /// `$`-names also occur in JSON Schema.
    fn read(fields: &'a Map<String, Value>) -> Option<Self> {
        if let Some(number) = fields.get("$id").and_then(Value::as_u64) {
            let known = |key: &String| matches!(key.as_str(), "$id" | "prefix" | "max_length");
            return fields.keys().all(known).then(|| Self::Id {
                number,
                prefix: fields.get("prefix").and_then(Value::as_str).unwrap_or_default(),
                max_length: fields.get("max_length").and_then(Value::as_u64).unwrap_or(u64::MAX),
            });
        }
        let mut only = fields.iter();
        let (Some((name, value)), None) = (only.next(), only.next()) else {
            return None;
        };
        match (name.as_str(), value) {
            ("$any_text", Value::Bool(true)) => Some(Self::AnyText),
            ("$contains", Value::Array(parts)) => Some(Self::ContainsInOrder(texts(parts)?)),
            ("$contains_all", Value::Array(parts)) => Some(Self::ContainsAll(texts(parts)?)),
            ("$unpaired", Value::String(text)) => Some(Self::Unpaired(text)),
            _ => None,
        }
    }
}

fn texts(parts: &[Value]) -> Option<Vec<&str>> {
    parts.iter().map(Value::as_str).collect()
}

fn is_named_id(text: &str) -> bool {
    text.strip_prefix('#').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn push_key(path: &mut String, key: &str) {
    if !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) {
        path.push('.');
        path.push_str(key);
    } else {
        path.push_str(&format!("[{key:?}]"));
    }
}

fn differs(expected: &Value, actual: &Value) -> String {
    format!("expected {}, found {}", excerpt(expected), excerpt(actual))
}

fn quote(text: &str) -> String {
    shorten(format!("{text:?}"))
}

fn excerpt(value: &Value) -> String {
    shorten(value.to_string())
}

/// Long values end a terminal's patience before they help.
fn shorten(text: String) -> String {
    const LIMIT: usize = 400;
    match text.char_indices().nth(LIMIT) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_compared_by_value() {
        assert_eq!(mismatch(&json!([1, -0.5, 1e3]), &json!([1.0, -0.5, 1000])), None);
        assert_eq!(mismatch(&json!(12345678901234567000u64), &json!(12345678901234567890u64)), None);
        assert_eq!(mismatch(&json!(1), &json!(2)).unwrap(), "$: expected 1, found 2");
        assert!(mismatch(&json!(1), &json!("1")).is_some());
        assert!(mismatch(&json!(0.1), &json!(0.1000000001)).is_some());
        assert_eq!(Comparer::new().relative_error(1e-9).mismatch(&json!(0.1), &json!(0.10000000001)), None);
    }

    #[test]
    fn the_first_difference_is_named_with_its_path() {
        let expected = json!({"a": {"b c": [1, {"d": true}]}, "z": null});
        let cases = [
            (json!({"a": {"b c": [1, {"d": false}]}, "z": null}), "$.a[\"b c\"][1].d: expected true, found false"),
            (json!({"a": {"b c": [1]}, "z": null}), "$.a[\"b c\"][1]: expected {\"d\":true}, but the list ends here"),
            (
                json!({"a": {"b c": [1, {"d": true}, 7]}, "z": null}),
                "$.a[\"b c\"][2]: expected the list to end, found 7",
            ),
            (json!({"a": {"b c": [1, {"d": true}]}}), "$.z: expected null, found nothing"),
            (json!({"a": {"b c": [1, {"d": true}]}, "z": null, "y": 0}), "$.y: expected nothing, found 0"),
            (json!({"a": 5, "z": null}), "$.a: expected an object, found 5"),
        ];
        for (actual, difference) in cases {
            assert_eq!(mismatch(&expected, &actual).as_deref(), Some(difference));
        }
        assert_eq!(mismatch(&expected, &json!({"z": null, "a": {"b c": [1, {"d": true}]}})), None);
    }

    #[test]
    fn placeholders_stand_for_wording() {
        let in_order = json!({"$contains": ["one", "two"]});
        assert_eq!(mismatch(&in_order, &json!("one, then two")), None);
        assert!(mismatch(&in_order, &json!("two, then one")).is_some());
        assert!(mismatch(&json!({"$contains": ["one", "one"]}), &json!("one")).is_some());
        assert_eq!(mismatch(&json!({"$contains_all": ["one", "two"]}), &json!("two, then one")), None);
        assert!(mismatch(&json!({"$contains_all": ["three"]}), &json!("two, then one")).is_some());
        assert_eq!(mismatch(&json!({"$any_text": true}), &json!("x")), None);
        assert!(mismatch(&json!({"$any_text": true}), &json!(null)).is_some());
        assert_eq!(mismatch(&json!({"$unpaired": "a"}), &json!("a")), None);
        assert!(mismatch(&json!({"$unpaired": "a"}), &json!("b")).is_some());
        assert!(mismatch(&json!({"$ref": "#/a"}), &json!("x")).is_some());
        assert_eq!(mismatch(&json!({"$ref": "#/a"}), &json!({"$ref": "#/a"})), None);
    }

    #[test]
    fn ids_are_consistent_within_a_case() {
        let expected = json!([{"$id": 1, "prefix": "fc_"}, {"$id": 2, "max_length": 4}, {"$id": 1}]);
        assert_eq!(mismatch(&expected, &json!(["fc_9", "a-b", "fc_9"])), None);
        for wrong in [
            json!(["fc_9", "a-b", "other"]),
            json!(["fc_9", "fc_9", "fc_9"]),
            json!(["call", "a-b", "call"]),
            json!(["fc_9", "abcde", "fc_9"]),
            json!(["fc_9", "a|b", "fc_9"]),
            json!(["fc_9", "", "fc_9"]),
        ] {
            assert!(mismatch(&expected, &wrong).is_some(), "{wrong}");
        }
        let mut case = Comparer::new();
        assert_eq!(case.mismatch(&json!({"$id": 1}), &json!("a")), None);
        assert!(case.mismatch(&json!({"$id": 1}), &json!("b")).is_some());
    }

    #[test]
    fn areas_bring_their_rules() {
        let mut sessions = Comparer::for_area("sessions");
        assert_eq!(sessions.mismatch(&json!(["#1", "#2", "#1", "#x"]), &json!(["a", "b", "a", "#x"])), None);
        assert!(mismatch(&json!("#1"), &json!("a")).is_some());

        let mut requests = Comparer::for_area("provider_requests");
        let expected = json!({"arguments": "{\"a\": 1, \"b\": 2}", "text": "{}"});
        assert_eq!(requests.mismatch(&expected, &json!({"arguments": "{\"b\":2,\"a\":1.0}", "text": "{}"})), None);
        assert!(requests.mismatch(&expected, &json!({"arguments": "{\"a\":1}", "text": "{}"})).is_some());
        assert!(requests.mismatch(&expected, &json!({"arguments": "{\"a\":1,\"b\":2}", "text": "{ }"})).is_some());
    }
}
