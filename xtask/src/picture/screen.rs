//! What a terminal makes of a program's output, as far as a picture needs it: colours, wrapping, nothing that moves.

/// One line of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) spans: Vec<Span>,
}

/// Characters of one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) style: Style,
}

/// How characters look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// One of the sixteen terminal colours.
    pub(crate) color: Option<u8>,
    pub(crate) weight: Weight,
}

/// How strongly characters are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Weight {
    Dim,
    #[default]
    Normal,
    Bold,
}

impl Line {
    /// A line of dim text.
    pub(crate) fn dim(text: String) -> Self {
        let style = Style { weight: Weight::Dim, ..Style::default() };
        Self { spans: vec![Span { text, style }] }
    }

    fn push(&mut self, character: char, style: Style) {
        match self.spans.last_mut() {
            Some(span) if span.style == style => span.text.push(character),
            _ => self.spans.push(Span { text: character.into(), style }),
        }
    }

    fn width(&self) -> usize {
        self.spans.iter().map(|span| span.text.chars().count()).sum()
    }
}

/// The output as lines of at most `columns` characters. Colours are kept, other control sequences are dropped.
pub(crate) fn lines(output: &str, columns: usize) -> Vec<Line> {
    let mut lines = vec![Line::default()];
    let mut style = Style::default();
    let mut characters = output.chars();
    while let Some(character) = characters.next() {
        match character {
            '\x1b' => style = escape(&mut characters, style),
            '\n' => lines.push(Line::default()),
            '\t' => (0..4).for_each(|_| put(&mut lines, ' ', style, columns)),
            other if other.is_control() => {}
            other => put(&mut lines, other, style, columns),
        }
    }
    while lines.last().is_some_and(|line| line.spans.is_empty()) {
        lines.pop();
    }
    lines
}

fn put(lines: &mut Vec<Line>, character: char, style: Style, columns: usize) {
    if lines.last().is_none_or(|line| line.width() >= columns) {
        lines.push(Line::default());
    }
    if let Some(line) = lines.last_mut() {
        line.push(character, style);
    }
}

/// Reads an escape sequence and returns the style that holds after it.
fn escape(characters: &mut std::str::Chars<'_>, style: Style) -> Style {
    if characters.next() != Some('[') {
        return style;
    }
    let mut parameters = String::new();
    for character in characters {
        match character {
            'm' => return parameters.split(';').fold(style, styled),
            '@'..='~' => return style,
            other => parameters.push(other),
        }
    }
    style
}

fn styled(style: Style, code: &str) -> Style {
    match code.parse::<u8>().unwrap_or_default() {
        0 => Style::default(),
        1 => Style { weight: Weight::Bold, ..style },
        2 => Style { weight: Weight::Dim, ..style },
        22 => Style { weight: Weight::Normal, ..style },
        code @ 30..=37 => Style { color: Some(code - 30), ..style },
        39 => Style { color: None, ..style },
        code @ 90..=97 => Style { color: Some(code - 90 + 8), ..style },
        _ => style,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn texts(output: &str, columns: usize) -> Vec<String> {
        let text = |line: &Line| line.spans.iter().map(|span| span.text.as_str()).collect();
        lines(output, columns).iter().map(text).collect()
    }

    #[test]
    fn long_lines_wrap_and_control_sequences_vanish() {
        assert_eq!(texts("abcde\n\n\x1b[2Kx\x1b[1;31my\x1b[0m\r\n\n", 3), ["abc", "de", "", "xy"]);
        assert_eq!(texts("", 3), Vec::<String>::new());
        assert_eq!(texts("a\x1b[", 3), ["a"]);
    }

    #[test]
    fn colours_and_weights_are_kept() {
        let lines = lines("\x1b[1;92mok\x1b[22m!\x1b[m", 80);
        let green = Style { color: Some(10), weight: Weight::Bold };
        let expected = vec![
            Span { text: "ok".to_owned(), style: green },
            Span { text: "!".to_owned(), style: Style { weight: Weight::Normal, ..green } },
        ];
        assert_eq!(lines, [Line { spans: expected }]);
    }
}
