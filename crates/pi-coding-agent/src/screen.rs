//! Text from sessions, models and files on its way to people: a terminal, a page.

use std::fmt::Write;

use crate::tools::exec::TextCleaner;

/// Takes out what a terminal would obey (escape sequences and control characters but tab and line break), and shows
/// characters that change the order of others by their numbers.
pub(crate) fn for_screen(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut cleaner = TextCleaner::default();
    cleaner.push(text.as_bytes(), &mut cleaned);
    cleaner.finish(&mut cleaned);
    if !cleaned.contains(changes_order) {
        return cleaned;
    }
    let mut shown = String::with_capacity(cleaned.len());
    for character in cleaned.chars() {
        if changes_order(character) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "<U+{:04X}>", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

fn changes_order(character: char) -> bool {
    matches!(character, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_comes_through() {
        assert_eq!(for_screen("a\u{1b}[31mred\u{1b}]52;c;aGk=\u{7}\tb\r\n\u{9b}2J"), "ared\tb\n");
        assert_eq!(for_screen("file\u{202e}gpj.exe"), "file<U+202E>gpj.exe");
        assert_eq!(for_screen("plain é 漢"), "plain é 漢");
    }
}
