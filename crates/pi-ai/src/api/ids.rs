//! Tool-call ids, as the wires take them.

use std::borrow::Cow;

/// The id with everything but letters, digits, `_` and `-` replaced by `_`.
pub(crate) fn plain(id: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match id.chars().all(is_plain) {
        true => Cow::Borrowed(id),
        // A character beyond the basic plane is two units to those who made this rule.
        false => id
            .chars()
            .flat_map(|c| {
                std::iter::repeat_n(if is_plain(c) { c } else { '_' }, if is_plain(c) { 1 } else { c.len_utf16() })
            })
            .collect(),
    }
}

/// The first characters of an id.
pub(crate) fn clipped(id: &str, length: usize) -> &str {
    id.char_indices().nth(length).map_or(id, |(at, _)| &id[..at])
}

/// As [`plain`] and [`clipped`].
pub(crate) fn plain_clipped(id: &str, length: usize) -> Cow<'_, str> {
    match plain(id) {
        Cow::Borrowed(id) => Cow::Borrowed(clipped(id, length)),
        Cow::Owned(id) => Cow::Owned(clipped(&id, length).to_owned()),
    }
}

/// A short text that stands for a long one: the same for the same text, another one for nearly every other.
pub(crate) fn short_hash(text: &str) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(text.as_bytes());
    let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    base36(number)
}

fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    while number > 0 || digits.is_empty() {
        digits.push(char::from_digit((number % 36) as u32, 36).unwrap_or('0'));
        number /= 36;
    }
    digits.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_made_plain_and_short() {
        assert!(matches!(plain("call_1-A"), Cow::Borrowed(_)));
        assert_eq!(plain("a.b|c/é😀"), "a_b_c____");
        assert_eq!(plain_clipped("a.bc", 3), "a_b");
        assert_eq!(clipped("ab", 3), "ab");
    }

    #[test]
    fn a_hash_is_short_and_stays_the_same() {
        assert_eq!(short_hash("x"), short_hash("x"));
        assert_ne!(short_hash("x"), short_hash("y"));
        assert!(short_hash("x").len() <= 13);
    }
}
