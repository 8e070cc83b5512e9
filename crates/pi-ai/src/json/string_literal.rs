//! A string literal whose text arrives in pieces: where the next piece goes on, inside an escape or a pair of them.

use memchr::memchr2;

/// How far a string literal has been read.
#[derive(Debug, Default)]
pub(super) struct StringLiteral {
    escape: Escape,
    /// The first half of a surrogate pair whose second half may follow.
    high: Option<u16>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Escape {
    #[default]
    None,
    Backslash,
    Unicode {
        digits: [u8; 3],
        count: usize,
    },
}

impl StringLiteral {
    /// Reads on; whether the string ends. Without a target the text is dropped.
    pub(super) fn read(&mut self, mut target: Option<&mut String>, text: &mut &str) -> bool {
        let mut append = |part: &str| {
            if let Some(target) = target.as_deref_mut() {
                target.push_str(part);
            }
        };
        while let Some(&byte) = text.as_bytes().first() {
            match &mut self.escape {
                Escape::None => {
                    let end = memchr2(b'"', b'\\', text.as_bytes()).unwrap_or(text.len());
                    let (plain, rest) = text.split_at(end);
                    if !plain.is_empty() {
                        self.high = None;
                        append(plain);
                    }
                    match rest.as_bytes().first() {
                        None => *text = rest,
                        Some(b'"') => {
                            *text = &rest[1..];
                            return true;
                        }
                        Some(_) => {
                            *text = &rest[1..];
                            self.escape = Escape::Backslash;
                        }
                    }
                }
                Escape::Backslash => {
                    if byte == b'u' {
                        self.escape = Escape::Unicode { digits: [0; 3], count: 0 };
                        *text = &text[1..];
                        continue;
                    }
                    self.escape = Escape::None;
                    self.high = None;
                    match simple_escape(byte) {
                        Some(meant) => {
                            append(meant);
                            *text = &text[1..];
                        }
                        None => append("\\"),
                    }
                }
                Escape::Unicode { digits, count } => {
                    if !byte.is_ascii_hexdigit() {
                        // No escape after all: what was read of it is text.
                        append("\\u");
                        append(std::str::from_utf8(&digits[..*count]).unwrap_or_default());
                        self.escape = Escape::None;
                        self.high = None;
                        continue;
                    }
                    *text = &text[1..];
                    if let Some(digit) = digits.get_mut(*count) {
                        *digit = byte;
                        *count += 1;
                        continue;
                    }
                    let unit = digits.iter().chain([&byte]).fold(0, |unit, digit| unit << 4 | hex_value(*digit));
                    self.escape = Escape::None;
                    if let Some(character) = self.decode(unit) {
                        append(character.encode_utf8(&mut [0; 4]));
                    }
                }
            }
        }
        false
    }

    /// The character that a UTF-16 unit completes, if it does.
    fn decode(&mut self, unit: u16) -> Option<char> {
        let high = self.high.take();
        match unit {
            0xD800..=0xDBFF => {
                self.high = Some(unit);
                None
            }
            0xDC00..=0xDFFF => char::decode_utf16([high?, unit]).next()?.ok(),
            _ => char::from_u32(u32::from(unit)),
        }
    }
}

fn simple_escape(byte: u8) -> Option<&'static str> {
    Some(match byte {
        b'"' => "\"",
        b'\\' => "\\",
        b'/' => "/",
        b'b' => "\u{8}",
        b'f' => "\u{c}",
        b'n' => "\n",
        b'r' => "\r",
        b't' => "\t",
        _ => return None,
    })
}

fn hex_value(digit: u8) -> u16 {
    match digit {
        b'0'..=b'9' => u16::from(digit - b'0'),
        b'a'..=b'f' => u16::from(digit - b'a' + 10),
        _ => u16::from(digit.to_ascii_uppercase() - b'A' + 10),
    }
}
