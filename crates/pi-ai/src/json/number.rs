//! Numbers as JavaScript writes them, so that files stay byte-compatible: `0`, not `0.0`.

use serde::{Deserialize, Deserializer, Serializer};

/// The largest integer up to which every integer is exact in an `f64`.
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// Writes a whole number without a fraction.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if number.fract() == 0.0 && number.abs() <= MAX_SAFE {
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f64(*number)
    }
}

/// Reads any JSON number.
///
/// # Errors
/// When the input is no number.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    f64::deserialize(deserializer)
}
