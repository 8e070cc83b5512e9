//! Text with theme tokens: what extensions show, in any mode.
//!
//! It says what a piece of text means, not which colour it has: the terminal, an exported page and a program behind a
//! pipe each draw it in their own way. It is plain data and can be written as JSON.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::resources::ThemeToken;

/// Lines of text.
///
/// ```
/// use pi_coding_agent::{resources::ThemeToken, styled_text::{Span, StyledText}};
/// let mut text = StyledText::line([Span::token("[audit] ", ThemeToken::Accent), Span::plain("read")]);
/// text.push_line([Span::token("at 12:00", ThemeToken::Dim)]);
/// assert_eq!(text.to_string(), "[audit] read\nat 12:00");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StyledText {
    /// The lines, from the top.
    pub lines: Vec<StyledLine>,
}

/// One line. It holds no line break.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StyledLine {
    /// Its parts, from the left.
    pub spans: Vec<Span>,
}

/// A piece of text that looks the same all over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// The text.
    pub text: String,
    /// What it means; the theme says which colour that is.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_token",
        deserialize_with = "read_token"
    )]
    pub token: Option<ThemeToken>,
    /// What lies behind it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "write_token",
        deserialize_with = "read_token"
    )]
    pub background: Option<ThemeToken>,
    /// How it stands out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emphasis: Vec<Emphasis>,
}

/// How text stands out besides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Emphasis {
    /// Bold.
    Bold,
    /// Italic.
    Italic,
    /// Underlined.
    Underline,
    /// Struck through.
    Strikethrough,
}

impl StyledText {
    /// One line.
    pub fn line(spans: impl IntoIterator<Item = Span>) -> Self {
        let mut text = Self::default();
        text.push_line(spans);
        text
    }

    /// Plain text; a line for each of its lines.
    pub fn plain(text: &str) -> Self {
        Self { lines: text.lines().map(|line| StyledLine { spans: vec![Span::plain(line)] }).collect() }
    }

    /// Adds a line below. A line break in a span begins another line.
    pub fn push_line(&mut self, spans: impl IntoIterator<Item = Span>) {
        let mut line = StyledLine::default();
        for span in spans {
            let mut pieces = span.text.split('\n');
            let first = pieces.next().unwrap_or_default().trim_end_matches('\r').to_owned();
            line.spans.push(Span { text: first, ..span.clone() });
            for piece in pieces {
                self.lines.push(std::mem::take(&mut line));
                line.spans.push(Span { text: piece.trim_end_matches('\r').to_owned(), ..span.clone() });
            }
        }
        self.lines.push(line);
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

impl Span {
    /// Text as usual.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Text that means something.
    pub fn token(text: impl Into<String>, token: ThemeToken) -> Self {
        Self { text: text.into(), token: Some(token), ..Self::default() }
    }

    /// Has it stand out.
    #[must_use]
    pub fn with(mut self, emphasis: Emphasis) -> Self {
        self.emphasis.push(emphasis);
        self
    }

    /// Puts something behind it.
    #[must_use]
    pub fn on(mut self, background: ThemeToken) -> Self {
        self.background = Some(background);
        self
    }
}

/// The text alone.
impl std::fmt::Display for StyledText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, line) in self.lines.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            line.spans.iter().try_for_each(|span| f.write_str(&span.text))?;
        }
        Ok(())
    }
}

impl From<&str> for StyledText {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

impl From<String> for StyledText {
    fn from(text: String) -> Self {
        Self::plain(&text)
    }
}

fn write_token<S: Serializer>(token: &Option<ThemeToken>, serializer: S) -> Result<S::Ok, S::Error> {
    token.map(ThemeToken::as_str).serialize(serializer)
}

/// A token that this version does not know is text as usual.
fn read_token<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ThemeToken>, D::Error> {
    let name: Option<String> = Option::deserialize(deserializer)?;
    Ok(name.as_deref().and_then(ThemeToken::from_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_survives_a_trip_through_json() {
        let mut text = StyledText::line([
            Span::token("a", ThemeToken::Accent).with(Emphasis::Bold).on(ThemeToken::SelectedBg),
            Span::plain("b"),
        ]);
        text.push_line([Span::plain("c")]);
        let json = serde_json::to_string(&text).unwrap();
        assert_eq!(
            json,
            r#"[[{"text":"a","token":"accent","background":"selectedBg","emphasis":["bold"]},{"text":"b"}],[{"text":"c"}]]"#
        );
        assert_eq!(serde_json::from_str::<StyledText>(&json).unwrap(), text);
    }

    #[test]
    fn a_line_break_in_a_span_begins_another_line() {
        let text = StyledText::line([Span::plain("a\r\nb"), Span::plain("c")]);
        let lines: Vec<String> =
            text.lines.iter().map(|line| line.spans.iter().map(|span| span.text.as_str()).collect()).collect();
        assert_eq!(lines, ["a", "bc"]);
    }

    #[test]
    fn an_unknown_token_is_plain_text() {
        let span: Span = serde_json::from_str(r#"{"text":"a","token":"futuristic"}"#).unwrap();
        assert_eq!(span, Span::plain("a"));
    }
}
