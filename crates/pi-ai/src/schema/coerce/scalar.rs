//! Conversions of single values; `None` where a value does not convert.

use serde_json::{Number, Value};

use super::super::equal::equal;
use crate::json::number;

/// The literal, when the value converts to exactly it.
pub(super) fn to_literal(literal: &Value, value: &Value) -> Option<Value> {
    let converted = match literal {
        Value::String(_) => to_text(value),
        Value::Number(_) => to_number(value),
        Value::Bool(_) => to_boolean(value),
        _ => None,
    };
    converted.filter(|converted| equal(converted, literal))
}

pub(super) fn to_text(value: &Value) -> Option<Value> {
    match value {
        Value::Null => Some("null".into()),
        _ => text_like(value),
    }
}

pub(super) fn to_number(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) => Some(value.clone()),
        Value::Bool(_) | Value::Null => number_like(value),
        Value::String(text) if trim(text).is_empty() => Some(0.into()),
        Value::String(text) => parse_number(text).or_else(|| parse_word(text)).map(Value::Number),
        _ => None,
    }
}

pub(super) fn to_integer(value: &Value) -> Option<Value> {
    whole(&to_number(value)?)
}

pub(super) fn to_boolean(value: &Value) -> Option<Value> {
    let holds = match value {
        Value::Bool(holds) => *holds,
        Value::Null => false,
        Value::Number(number) => zero_or_one(number)?,
        Value::String(text) if text == "1" || text.eq_ignore_ascii_case("true") => true,
        Value::String(text) if text == "0" || text.eq_ignore_ascii_case("false") => false,
        _ => return None,
    };
    Some(holds.into())
}

pub(super) fn to_null(value: &Value) -> Option<Value> {
    match value {
        Value::Null => Some(Value::Null),
        Value::String(text)
            if text == "0" || ["null", "undefined"].iter().any(|word| text.eq_ignore_ascii_case(word)) =>
        {
            Some(Value::Null)
        }
        _ => null_like(value),
    }
}

/// A number without its fraction.
pub(super) fn whole(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) if number.is_f64() => number::to_number(number.as_f64()?.trunc()).map(Value::Number),
        Value::Number(_) => Some(value.clone()),
        _ => None,
    }
}

/// Numbers from texts of them, booleans and `null`.
pub(super) fn number_like(value: &Value) -> Option<Value> {
    match value {
        Value::Null => Some(0.into()),
        Value::Bool(holds) => Some(u8::from(*holds).into()),
        Value::String(text) => parse_number(text).map(Value::Number),
        _ => None,
    }
}

pub(super) fn boolean_like(value: &Value) -> Option<Value> {
    let holds = match value {
        Value::Null => false,
        Value::Number(number) => zero_or_one(number)?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    Some(holds.into())
}

pub(super) fn text_like(value: &Value) -> Option<Value> {
    match value {
        Value::Null => Some("".into()),
        Value::Bool(holds) => Some(holds.to_string().into()),
        Value::Number(number) if number.is_f64() => Some(number::to_text(number.as_f64()?).into()),
        Value::Number(number) => Some(number.to_string().into()),
        _ => None,
    }
}

pub(super) fn null_like(value: &Value) -> Option<Value> {
    let empty = match value {
        Value::String(text) => text.is_empty(),
        Value::Bool(holds) => !holds,
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => false,
    };
    empty.then_some(Value::Null)
}

fn zero_or_one(number: &Number) -> Option<bool> {
    match number.as_f64()? {
        0.0 => Some(false),
        1.0 => Some(true),
        _ => None,
    }
}

/// The number that a text is, as JavaScript reads it: blanks around it, `0x`, `0o`, `0b`, a point first or last.
fn parse_number(text: &str) -> Option<Number> {
    let text = trim(text);
    if let Some((prefix, digits)) = text.split_at_checked(2) {
        let radix = match prefix {
            "0x" | "0X" => 16,
            "0o" | "0O" => 8,
            "0b" | "0B" => 2,
            _ => 10,
        };
        if radix != 10 {
            // Unlike JavaScript's, `from_str_radix` takes a sign.
            let unsigned = digits.starts_with(|first: char| first.is_digit(radix));
            return u64::from_str_radix(digits, radix).ok().filter(|_| unsigned).map(Number::from);
        }
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Some(integer.into());
    }
    if let Ok(integer) = text.parse::<u64>() {
        return Some(integer.into());
    }
    // Rust also reads `inf` and `nan`.
    let decimal = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    text.parse::<f64>().ok().filter(|_| decimal).and_then(number::to_number)
}

/// What else stands for a number in text.
fn parse_word(text: &str) -> Option<Number> {
    if text.eq_ignore_ascii_case("true") {
        return Some(1.into());
    }
    if text.eq_ignore_ascii_case("false") {
        return Some(0.into());
    }
    let digits = text.strip_suffix('n')?;
    let canonical = digits == "0" || !digits.trim_start_matches('-').starts_with(['0', '+']);
    digits.parse::<i64>().ok().filter(|_| canonical).map(Number::from)
}

/// Without the blanks that JavaScript knows.
fn trim(text: &str) -> &str {
    text.trim_matches(|character: char| character.is_whitespace() || character == '\u{feff}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_numbers_as_javascript_reads_them() {
        let cases = [
            (" 42 ", json!(42)),
            ("-7.50", json!(-7.5)),
            (".5", json!(0.5)),
            ("5.", json!(5)),
            ("+3", json!(3)),
            ("1e3", json!(1000)),
            ("0x1F", json!(31)),
            ("0b101", json!(5)),
            ("007", json!(7)),
            ("12345678901234567890", json!(12345678901234567890u64)),
            ("", json!(0)),
            ("TRUE", json!(1)),
            ("12n", json!(12)),
            ("-0", json!(0)),
        ];
        for (text, number) in cases {
            assert_eq!(to_number(&json!(text)), Some(number), "{text:?}");
        }
        for text in ["abc", "0x", "0x-1", "1_000", "1,5", "inf", "NaN", "Infinity", "1e999", "- 1", "é", "１", "012n"]
        {
            assert_eq!(to_number(&json!(text)), None, "{text:?}");
        }
    }

    #[test]
    fn integers_lose_their_fraction() {
        assert_eq!(to_integer(&json!("3.9")), Some(json!(3)));
        assert_eq!(to_integer(&json!(-3.9)), Some(json!(-3)));
        assert_eq!(to_integer(&json!(4.0)).unwrap().to_string(), "4");
    }
}
