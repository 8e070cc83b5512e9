//! Numbers as JavaScript writes them.
//!
//! `#[serde(with = "pi_ai::json::number")]` on an `f64` field writes `0` rather than `0.0`, `1e+21` rather than
//! `1e21` and `0.000001` rather than `1e-6`, with the shortest digits that read back as the same number, so that files
//! written by either program are the same bytes. Reading takes any JSON number.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::Error as _};
use serde_json::{Number, value::RawValue};

/// The largest magnitude up to which every integer is an `f64` of its own (2^53).
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Writes a number as `JSON.stringify` does; `null` for NaN and the infinities.
///
/// For serde_json. Other formats get a wrapper of its own from those numbers that serde_json writes differently.
///
/// # Errors
///
/// Those of the serializer.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let value = *value;
    if !value.is_finite() {
        return serializer.serialize_unit();
    }
    if let Some(integer) = safe_integer(value) {
        return serializer.serialize_i64(integer);
    }
    // Where serde_json and JavaScript agree there is no text to make.
    if value.fract() != 0.0 && !(1e-7..1e-5).contains(&value.abs()) {
        return serializer.serialize_f64(value);
    }
    RawValue::from_string(to_text(value)).map_err(S::Error::custom)?.serialize(serializer)
}

/// Reads any JSON number.
///
/// # Errors
///
/// When the value is no number.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Number::deserialize(deserializer)?.as_f64().ok_or_else(|| D::Error::custom("expected a number that fits a double"))
}

/// A number's text in JavaScript: `String(value)`.
///
/// ```
/// use pi_ai::json::number::to_text;
///
/// assert_eq!([0.0, -1.5, 1e21, 1e20, 1e-6, 1e-7].map(to_text), [
///     "0", "-1.5", "1e+21", "100000000000000000000", "0.000001", "1e-7",
/// ]);
/// ```
pub fn to_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let (digits, exponent) = shortest_digits(value.abs());
    let sign = if value < 0.0 { "-" } else { "" };
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    match exponent {
        // Whole, with zeros behind the digits where they do not reach the point.
        0..=20 if count <= exponent + 1 => {
            format!("{sign}{digits:0<width$}", width = exponent as usize + 1)
        }
        0..=20 => {
            let (whole, fraction) = digits.split_at(exponent as usize + 1);
            format!("{sign}{whole}.{fraction}")
        }
        -6..=-1 => format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize)),
        _ => {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            let plus = if exponent > 0 { "+" } else { "" };
            format!("{sign}{first}{point}{rest}e{plus}{exponent}")
        }
    }
}

/// The shortest digits that read back as `value`, of several the closest, of two the even ones; and the exponent of the
/// first digit. The standard library takes the odd ones in such a tie, serde_json does as JavaScript.
fn shortest_digits(value: f64) -> (String, i32) {
    let text = Number::from_f64(value).map(|number| number.to_string()).unwrap_or_default();
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    let zeros = digits.len() - significant.len();
    let exponent = exponent.parse().unwrap_or(0) + whole.len() as i32 - zeros as i32 - 1;
    (significant.trim_end_matches('0').to_owned(), exponent)
}

/// The JSON number of a double: an integer where it is one (`42`, not `42.0`); `None` for NaN and the infinities.
pub fn to_number(value: f64) -> Option<Number> {
    match safe_integer(value) {
        Some(integer) => Some(integer.into()),
        None => Number::from_f64(value),
    }
}

fn safe_integer(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() <= MAX_SAFE_INTEGER).then_some(value as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Cost(#[serde(with = "super")] f64);

    #[test]
    fn costs_are_written_like_javascript_writes_them() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (3.0, "3"),
            (-12.5, "-12.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (0.0000012, "0.0000012"),
            (0.000001, "0.000001"),
            (0.00000123, "0.00000123"),
            (0.0000001, "1e-7"),
            (-1.5e-9, "-1.5e-9"),
            (9007199254740993.0, "9007199254740992"),
            (1.5e17, "150000000000000000"),
            (123456789012345680000.0, "123456789012345680000"),
            (1e21, "1e+21"),
            (1.25e300, "1.25e+300"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (5e-324, "5e-324"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
        ];
        for (value, text) in cases {
            assert_eq!(serde_json::to_string(&Cost(value)).unwrap(), text);
        }
    }

    #[test]
    fn every_json_number_is_read() {
        for (text, value) in
            [("0", 0.0), ("-3", -3.0), ("18446744073709551615", 18446744073709551615.0), ("1e+21", 1e21), ("0.5", 0.5)]
        {
            assert_eq!(serde_json::from_str::<Cost>(text).unwrap(), Cost(value));
        }
        for text in ["null", "\"1\"", "[]", "true"] {
            assert!(serde_json::from_str::<Cost>(text).is_err());
        }
    }

    #[test]
    fn values_are_made_of_the_same_numbers() {
        assert_eq!(serde_json::to_value(Cost(0.0000012)).unwrap(), json!(0.0000012));
        assert_eq!(serde_json::to_value(Cost(2.0)).unwrap(), json!(2));
        assert_eq!(to_number(-0.0), Some(0.into()));
        assert_eq!(to_number(f64::NAN), None);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value in any::<f64>()) {
            let text = serde_json::to_string(&Cost(value)).unwrap();
            if value.is_finite() {
                prop_assert_eq!(&text, &to_text(value));
                prop_assert_eq!(text.parse::<f64>().unwrap(), value);
                prop_assert_eq!(serde_json::from_str::<Cost>(&text).unwrap(), Cost(value));
            } else {
                prop_assert_eq!(text, "null");
            }
        }
    }
}
