//! File names as they are shown to the model.

use std::borrow::Cow;

/// The name with its control characters and line separators escaped (`\n`, `\u{1b}`): a name must not pass for a line
/// of its own, nor reach a terminal as a command to it.
pub(crate) fn shown_name(name: &str) -> Cow<'_, str> {
    let unsafe_to_show = |character: char| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}');
    if !name.contains(unsafe_to_show) {
        return Cow::Borrowed(name);
    }
    let mut shown = String::with_capacity(name.len() + 8);
    for character in name.chars() {
        if unsafe_to_show(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_terminal_would_obey_is_escaped() {
        assert_eq!(shown_name(r"a b\n\é漢😀.txt"), r"a b\n\é漢😀.txt");
        assert_eq!(shown_name("a\nb\x1b[2J\u{9b}1m\u{7f}\u{2028}"), r"a\nb\u{1b}[2J\u{9b}1m\u{7f}\u{2028}");
    }
}
