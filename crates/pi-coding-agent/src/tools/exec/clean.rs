//! What a command writes, as text: decoded, and without what only a terminal understands.

/// Most bytes of one control string (a window title, an image) that are held back; then it was none.
const LONGEST_STRING: usize = 1024 * 1024;
/// Most bytes of one control sequence.
const LONGEST_SEQUENCE: usize = 256;

/// Turns the bytes of a command's output into text, piece by piece; where the pieces were cut does not matter.
///
/// Bytes that are not UTF-8 become U+FFFD. Escape sequences (CSI, OSC, DCS and the like, also in their 8-bit
/// forms) vanish, and so do control characters other than tab and line feed. A string that has not ended at the end of
/// its line was none: what stands in it is text.
#[derive(Debug, Default)]
pub(crate) struct TextCleaner {
    state: State,
    /// The beginning of a character that the next piece continues.
    incomplete: Vec<u8>,
    /// What stands in a control string that has not ended yet, as the text that it is if it never does.
    held: String,
    saw_nul: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// Behind ESC.
    Escape,
    /// In a CSI sequence or behind an escape's intermediate byte.
    Sequence { kind: Sequence, length: usize },
    /// In a string that ends with ST, or with BEL.
    String { length: usize, escape: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sequence {
    Csi,
    Escape,
}

impl TextCleaner {
    /// Appends the text of the next piece to `text`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], text: &mut String) {
        if !self.incomplete.is_empty() {
            bytes = self.complete(bytes, text);
        }
        while !bytes.is_empty() {
            if self.state == State::Text {
                let plain = plain_prefix(bytes);
                // Plain bytes are ASCII.
                text.push_str(std::str::from_utf8(&bytes[..plain]).unwrap_or_default());
                bytes = &bytes[plain..];
            }
            // At least one character that needs a closer look; then on to the next plain stretch.
            let odd = bytes.iter().position(|byte| is_plain(*byte)).unwrap_or(bytes.len());
            let odd = if self.state == State::Text { odd } else { bytes.len().min(odd.max(1)) };
            let (now, rest) = bytes.split_at(odd);
            bytes = rest;
            self.push_decoded(now, rest.is_empty(), text);
        }
    }

    /// What is left at the end of the output.
    pub(crate) fn finish(&mut self, text: &mut String) {
        if !std::mem::take(&mut self.incomplete).is_empty() {
            self.push_character(char::REPLACEMENT_CHARACTER, text);
        }
        text.push_str(&std::mem::take(&mut self.held));
        self.state = State::Text;
    }

    /// Whether there was a NUL byte: what was written is not text.
    pub(crate) fn is_binary(&self) -> bool {
        self.saw_nul
    }

    /// Joins what was cut with as much of the next piece as it takes; returns the rest.
    fn complete<'a>(&mut self, bytes: &'a [u8], text: &mut String) -> &'a [u8] {
        let continuation = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
        let (now, rest) = bytes.split_at(continuation);
        let mut joined = std::mem::take(&mut self.incomplete);
        joined.extend_from_slice(now);
        self.push_decoded(&joined, rest.is_empty(), text);
        rest
    }

    fn push_decoded(&mut self, bytes: &[u8], more_may_follow: bool, text: &mut String) {
        let mut at = 0;
        for chunk in bytes.utf8_chunks() {
            for character in chunk.valid().chars() {
                self.push_character(character, text);
            }
            at += chunk.valid().len() + chunk.invalid().len();
            if chunk.invalid().is_empty() {
                continue;
            }
            if more_may_follow && at == bytes.len() && is_cut_character(chunk.invalid()) {
                self.incomplete = chunk.invalid().to_vec();
            } else {
                self.push_character(char::REPLACEMENT_CHARACTER, text);
            }
        }
    }

    fn push_character(&mut self, character: char, text: &mut String) {
        self.saw_nul |= character == '\0';
        match self.state {
            State::Text => self.in_text(character, text),
            State::Escape => self.behind_escape(character, text),
            State::Sequence { kind, length } => self.in_sequence(kind, length, character, text),
            State::String { length, escape } => self.in_string(length, escape, character, text),
        }
    }

    fn in_text(&mut self, character: char, text: &mut String) {
        match character {
            '\t' | '\n' => text.push(character),
            '\u{1b}' => self.state = State::Escape,
            '\u{9b}' => self.state = Self::sequence(Sequence::Csi),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.state = Self::STRING,
            other if is_hidden(other) => {}
            other => text.push(other),
        }
    }

    fn behind_escape(&mut self, character: char, text: &mut String) {
        self.state = match character {
            '[' => Self::sequence(Sequence::Csi),
            ']' | 'P' | 'X' | '^' | '_' => Self::STRING,
            ' '..='/' => Self::sequence(Sequence::Escape),
            '\u{1b}' => State::Escape,
            // A final byte: the sequence is complete.
            '0'..='~' => State::Text,
            other => return self.as_text(other, text),
        };
    }

    fn in_sequence(&mut self, kind: Sequence, length: usize, character: char, text: &mut String) {
        let final_byte = match kind {
            Sequence::Csi => '@'..='~',
            Sequence::Escape => '0'..='~',
        };
        if final_byte.contains(&character) {
            self.state = State::Text;
        } else if (' '..='?').contains(&character) && length < LONGEST_SEQUENCE {
            self.state = State::Sequence { kind, length: length + 1 };
        } else {
            // Not a sequence after all, or cut short by another.
            self.as_text(character, text);
        }
    }

    fn in_string(&mut self, length: usize, escape: bool, character: char, text: &mut String) {
        match character {
            '\\' if escape => self.end_string(),
            '\u{7}' | '\u{9c}' | '\u{18}' | '\u{1a}' => self.end_string(),
            _ if escape => {
                // An escape that is no terminator begins something new. Doubled, it is passed on within a string.
                if character == '\u{1b}' {
                    self.held.clear();
                }
                text.push_str(&std::mem::take(&mut self.held));
                self.state = State::Escape;
                self.behind_escape(character, text);
            }
            _ if character == '\n' || length >= LONGEST_STRING => {
                text.push_str(&std::mem::take(&mut self.held));
                self.as_text(character, text);
            }
            _ => {
                if !is_hidden(character) {
                    self.held.push(character);
                }
                self.state = State::String { length: length + character.len_utf8(), escape: character == '\u{1b}' };
            }
        }
    }

    fn end_string(&mut self) {
        self.held.clear();
        self.state = State::Text;
    }

    fn as_text(&mut self, character: char, text: &mut String) {
        self.state = State::Text;
        self.in_text(character, text);
    }

    fn sequence(kind: Sequence) -> State {
        State::Sequence { kind, length: 0 }
    }

    const STRING: State = State::String { length: 0, escape: false };
}

/// Control characters but for tab and line feed, and interlinear annotation marks: they hide text.
fn is_hidden(character: char) -> bool {
    matches!(character, '\u{fff9}'..='\u{fffb}') || (character.is_control() && !matches!(character, '\t' | '\n'))
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t')
}

/// Length of the bytes at the beginning that mean themselves; in blocks, so that the compiler can look at many at once.
fn plain_prefix(bytes: &[u8]) -> usize {
    const BLOCK: usize = 64;
    let blocks = bytes
        .chunks_exact(BLOCK)
        .take_while(|block| block.iter().fold(true, |plain, byte| plain & is_plain(*byte)))
        .count()
        * BLOCK;
    blocks + bytes[blocks..].iter().take_while(|byte| is_plain(**byte)).count()
}

/// Whether these bytes could become a character with more bytes behind them.
fn is_cut_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clean(pieces: &[&[u8]]) -> String {
        let mut cleaner = TextCleaner::default();
        let mut text = String::new();
        for piece in pieces {
            cleaner.push(piece, &mut text);
        }
        cleaner.finish(&mut text);
        text
    }

    #[test]
    fn colours_go_and_text_stays() {
        let output = b"ok \xff\xfe\x00 \x1b[31mred\x1b[0m \r50%\r100%\n";
        assert_eq!(clean(&[output]), "ok \u{fffd}\u{fffd} red 50%100%\n");
    }

    #[test]
    fn titles_links_and_device_strings_go() {
        let output = "plain\n\x1b]52;c;aGk=\x07clip\n\x1b[2J\x1b[Hprompt\n\x1b]8;;http://x/\x1b\\link\x1b]8;;\x1b\\\n\x1bP+q544e\x1b\\dcs\n\u{9b}31mc1\n";
        assert_eq!(clean(&[output.as_bytes()]), "plain\nclip\nprompt\nlink\ndcs\nc1\n");
    }

    #[test]
    fn a_string_that_never_ends_swallows_nothing() {
        assert_eq!(clean(&[b"a\x1b]0;title\nb\n"]), "a0;title\nb\n");
        for start in ["\x1bP", "\x1b_", "\x1b^", "\x1bX", "\x1b]", "\u{90}", "\u{98}", "\u{9d}", "\u{9e}", "\u{9f}"] {
            let output = format!("{start}never\x08 ends\n1\n2\nafter {start}too");
            assert_eq!(clean(&[output.as_bytes()]), "never ends\n1\n2\nafter too", "{start:?}");
            let coloured = format!("{start}never \x1b[31mends\x1b[0m\n");
            assert_eq!(clean(&[coloured.as_bytes()]), "never ends\n", "{start:?}");
        }
        // A string passed on to an outer terminal.
        assert_eq!(clean(&[b"a\x1bPtmux;\x1b\x1b]0;t\x07\x1b\\b"]), "ab");
    }

    #[test]
    fn an_unfinished_sequence_does_not_swallow_the_next_lines() {
        assert_eq!(clean(&[b"a\x1b[12\nb\n"]), "a\nb\n");
    }

    #[test]
    fn a_cut_character_is_one_character() {
        assert_eq!(clean(&[b"\xe6\xbc", b"\xa2!"]), "漢!");
        assert_eq!(clean(&[b"\xf0", b"\x9f", b"\x98", b"\x80"]), "😀");
        assert_eq!(clean(&[b"\xe6\xbc", b"x"]), "\u{fffd}x");
        assert_eq!(clean(&[b"x\xe6\xbc"]), "x\u{fffd}");
    }

    proptest! {
        #[test]
        fn where_the_output_was_cut_does_not_matter(
            output in proptest::collection::vec(prop_oneof![
                Just(b"\x1b[1;31m".to_vec()), Just(b"\x1b]0;t\x07".to_vec()), Just(b"\x1bPq\x1b\\".to_vec()),
                Just(b"\x1b_".to_vec()), Just("\u{90}".as_bytes().to_vec()),
                Just("漢".as_bytes().to_vec()), Just(b"\n".to_vec()), Just(b"\xff".to_vec()), Just(b"\x1b".to_vec()),
                Just("é😀".as_bytes().to_vec()), Just(b"plain text".to_vec()), Just(vec![0xe2, 0x80]), Just(b"\r\x08".to_vec()),
            ], 0..20),
            cuts in proptest::collection::vec(0_usize..200, 0..6),
        ) {
            let output = output.concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (output.len() + 1)).collect();
            cuts.extend([0, output.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &output[pair[0]..pair[1]]).collect();
            let whole = clean(&[&output]);
            prop_assert_eq!(clean(&pieces), whole.clone());
            prop_assert!(!whole.chars().any(|character| character.is_control() && !matches!(character, '\n' | '\t')));
        }
    }
}
