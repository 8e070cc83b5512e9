//! Repair of string literals that break JSON's rules.
//!
//! Models write raw line breaks and tabs into strings, and backslashes that start no escape (regular expressions,
//! Windows paths). What was meant is plain in both cases.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use super::lenient::from_str_lenient;

/// Reads JSON text as [`from_str_lenient`]; when that fails, reads it again after [`repair_strings`].
///
/// # Errors
///
/// When the text is no JSON even then: the error of the repaired text, or of the text itself when nothing in it could
/// be repaired.
pub fn from_str_repaired<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    from_str_lenient(text).or_else(|error| match repair_strings(text) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(repaired) => from_str_lenient(&repaired),
    })
}

/// Escapes raw control characters inside string literals, and doubles backslashes that start no valid escape.
///
/// ```
/// let repaired = pi_ai::json::repair_strings("{\"pattern\": \"\\d+\ttab\"}");
/// assert_eq!(repaired, r#"{"pattern": "\\d+\ttab"}"#);
/// ```
pub fn repair_strings(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut repaired = String::new();
    let mut copied = 0;
    let mut in_string = false;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let mut length = 1;
        let replacement = match byte {
            b'"' => {
                in_string = !in_string;
                None
            }
            b'\\' if in_string => match escape_length(&bytes[at..]) {
                Some(escape) => {
                    length = escape;
                    None
                }
                None => Some(Cow::Borrowed("\\\\")),
            },
            0x00..=0x1F if in_string => Some(escape_control(byte)),
            _ => None,
        };
        if let Some(replacement) = replacement {
            repaired.push_str(&text[copied..at]);
            repaired.push_str(&replacement);
            copied = at + 1;
        }
        at += length;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    repaired.push_str(&text[copied..]);
    Cow::Owned(repaired)
}

/// The length of the valid escape that these bytes start with.
fn escape_length(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' if bytes.get(2..6)?.iter().all(u8::is_ascii_hexdigit) => Some(6),
        _ => None,
    }
}

fn escape_control(byte: u8) -> Cow<'static, str> {
    match byte {
        b'\n' => Cow::Borrowed("\\n"),
        b'\r' => Cow::Borrowed("\\r"),
        b'\t' => Cow::Borrowed("\\t"),
        _ => Cow::Owned(format!("\\u{byte:04x}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn control_characters_and_stray_backslashes_become_text() {
        let cases = [
            ("\"a\nb\u{1}\"", json!("a\nb\u{1}")),
            (r#""C:\dir\u12 \x""#, json!("C:\\dir\\u12 \\x")),
            ("\"\\\n\"", json!("\\\n")),
            (r#"["\"", "\\", "\d"]"#, json!(["\"", "\\", "\\d"])),
            (r#"{"\ud83d": "\q"}"#, json!({"": "\\q"})),
        ];
        for (text, value) in cases {
            assert_eq!(from_str_repaired::<Value>(text).unwrap(), value, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_outside_of_strings_stays_an_error() {
        for text in ["{\"a\": 1,}", "nope", "", "\"open", "\"\\", "{\"a\":\u{1} 1}"] {
            assert!(from_str_repaired::<Value>(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn valid_text_is_left_alone(text in ".*") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert!(matches!(repair_strings(&json), Cow::Borrowed(_)));
        }

        #[test]
        fn a_string_with_anything_but_quotes_and_escapes_reads_as_it_stands(text in "[^\"\\\\]*") {
            prop_assert_eq!(from_str_repaired::<String>(&format!("\"{text}\"")).unwrap(), text);
        }
    }
}
