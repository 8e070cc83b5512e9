//! JSON with half surrogate pairs.
//!
//! JavaScript strings may hold half a surrogate pair, and its JSON writer escapes it as `\ud83d`. Session files and
//! model output have them wherever a text was cut inside an emoji. Rust strings cannot hold a half, and serde_json
//! refuses the whole text; here the half is dropped and the rest is read.

use std::borrow::Cow;

use memchr::memchr2;
use serde::de::DeserializeOwned;

/// Reads JSON text; escapes of unpaired surrogates are left out.
///
/// Costs nothing over [`serde_json::from_str`] unless that fails. A [`RawValue`](serde_json::value::RawValue) inside
/// `T` keeps its text, halves included: read that with this function as well.
///
/// # Errors
///
/// As [`serde_json::from_str`]. When halves were left out, the column of the error is that of the text without them.
///
/// # Example
///
/// ```
/// let text: String = pi_ai::json::from_str_lenient(r#""cut \ud83d, whole \ud83d\ude00""#)?;
/// assert_eq!(text, "cut , whole 😀");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn from_str_lenient<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    match serde_json::from_str(text) {
        Err(error) if error.is_syntax() => match without_unpaired_escapes(text) {
            Cow::Borrowed(_) => Err(error),
            Cow::Owned(text) => serde_json::from_str(&text),
        },
        result => result,
    }
}

/// Reads JSON bytes as [`from_str_lenient`] reads text.
///
/// # Errors
///
/// As [`serde_json::from_slice`]; bytes that are not UTF-8 are an error.
pub fn from_slice_lenient<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    match serde_json::from_slice(bytes) {
        Err(error) if error.is_syntax() => match std::str::from_utf8(bytes) {
            Ok(text) => from_str_lenient(text),
            Err(_) => Err(error),
        },
        result => result,
    }
}

/// Reads JSON bytes as [`from_slice_lenient`], with U+FFFD for what is not UTF-8.
///
/// For text that must be shown even when it is damaged. Do not write the result back over its source.
///
/// # Errors
///
/// As [`serde_json::from_str`].
pub fn from_slice_lossy<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    match std::str::from_utf8(bytes) {
        Ok(text) => from_str_lenient(text),
        Err(_) => from_str_lenient(&String::from_utf8_lossy(bytes)),
    }
}

/// JSON text without the `\uXXXX` escapes of unpaired surrogates in its strings.
pub(crate) fn without_unpaired_escapes(text: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let mut copied = 0;
    let mut at = 0;
    let mut in_string = false;
    while let Some(offset) = memchr2(b'"', b'\\', &text.as_bytes()[at..]) {
        at += offset;
        let length = if text.as_bytes()[at] == b'"' {
            in_string = !in_string;
            1
        } else if !in_string {
            // No JSON: whoever reads the rest says so.
            break;
        } else {
            match escaped_unit(text, at) {
                Some(0xD800..=0xDBFF) if matches!(escaped_unit(text, at + 6), Some(0xDC00..=0xDFFF)) => 12,
                Some(0xD800..=0xDFFF) => {
                    kept.push_str(&text[copied..at]);
                    copied = at + 6;
                    6
                }
                Some(_) => 6,
                None => 2,
            }
        };
        at = (at + length).min(text.len());
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    kept.push_str(&text[copied..]);
    Cow::Owned(kept)
}

/// The UTF-16 unit that `\uXXXX` at this offset stands for.
fn escaped_unit(text: &str, at: usize) -> Option<u16> {
    let escape = text.as_bytes().get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit: u16, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str) -> Value {
        from_str_lenient(text).unwrap()
    }

    #[test]
    fn halves_are_left_out_wherever_they_stand() {
        assert_eq!(
            read(r#"{"a\udc00": ["x\ud83d", "\ud83d\ud83d\ude00", "\uDE00\uD83D"]}"#),
            json!({"a": ["x", "😀", ""]})
        );
        assert_eq!(read(r#""\ud83d\u0041\ud83dé\ud83d\\ude00""#), json!("Aé\\ude00"));
    }

    #[test]
    fn an_escaped_backslash_starts_no_escape() {
        assert_eq!(read(r#"["\\ud83d", "\ud83d"]"#), json!(["\\ud83d", ""]));
        assert_eq!(without_unpaired_escapes(r#""\\ud83d""#), r#""\\ud83d""#);
    }

    #[test]
    fn other_faults_stay_errors() {
        for text in [r#"{"a": "\ud83d""#, r#"{"a": "\ud83d", }"#, r#""\ud83"#, "", "\"\\"] {
            assert!(from_str_lenient::<Value>(text).is_err(), "{text}");
        }
        let error = from_str_lenient::<Vec<u8>>(r#"["\ud83d"]"#).unwrap_err();
        assert!(error.to_string().contains("expected u8"), "{error}");
    }

    #[test]
    fn only_the_lossy_form_takes_bytes_that_are_no_text() {
        let bytes = b"[\"caf\xe9 \\ud83d\"]";
        assert!(from_slice_lenient::<Value>(bytes).is_err());
        assert_eq!(from_slice_lossy::<Value>(bytes).unwrap(), json!(["caf\u{fffd} "]));
        assert_eq!(from_slice_lenient::<Value>("[\"é\\ud83d\"]".as_bytes()).unwrap(), json!(["é"]));
    }

    proptest! {
        #[test]
        fn escaped_units_read_as_the_text_without_its_halves(
            units in prop::collection::vec(prop_oneof![any::<u16>(), 0xD7F0u16..0xE010, Just(0x5C)], 0..40),
        ) {
            let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let whole: String = char::decode_utf16(units).filter_map(Result::ok).collect();
            prop_assert_eq!(from_str_lenient::<String>(&format!("\"{escaped}\"")).unwrap(), whole);
        }
    }
}
