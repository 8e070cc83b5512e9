//! Text from sessions, models and extensions on its way into a page: nothing of it is taken for the page's own.

use std::fmt::Write as _;

use serde_json::Value;

use crate::{
    screen::for_screen,
    styled_text::{Emphasis, Span, StyledText},
};

/// Appends text: without control sequences, with characters that change the order of others shown by their numbers,
/// and with everything escaped that means something in HTML, within attributes, too.
pub(super) fn push_text(html: &mut String, text: &str) {
    let text = for_screen(text);
    html.reserve(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
}

/// Text as HTML, see [`push_text`].
pub(super) fn escaped(text: &str) -> String {
    let mut html = String::new();
    push_text(&mut html, text);
    html
}

/// A value as indented JSON.
pub(super) fn json(value: &Value) -> String {
    escaped(&serde_json::to_string_pretty(value).unwrap_or_default())
}

/// Lines as people wrote them.
pub(super) fn push_lines(html: &mut String, class: &str, text: &str) {
    let text = text.trim_matches('\n');
    if text.trim().is_empty() {
        return;
    }
    let _ = write!(html, "<pre class=\"{class}\">");
    push_text(html, text);
    html.push_str("</pre>\n");
}

/// Lines as people wrote them; of very many the first ones, and the rest when it is asked for.
pub(super) fn push_long_lines(html: &mut String, class: &str, text: &str) {
    /// As many as are looked over at a glance.
    const SHOWN: usize = 20;
    let count = text.lines().count();
    if count <= SHOWN + 5 {
        return push_lines(html, class, text);
    }
    let at = text.match_indices('\n').nth(SHOWN - 1).map_or(text.len(), |(at, _)| at);
    push_lines(html, class, &text[..at]);
    let _ = writeln!(html, "<details><summary>{} more lines</summary>", count - SHOWN);
    push_lines(html, class, &text[at..]);
    html.push_str("</details>\n");
}

/// Text with theme tokens: each span has the classes that the style sheet colours.
pub(super) fn push_styled(html: &mut String, text: &StyledText) {
    html.push_str("<pre class=\"styled\">");
    for (index, line) in text.lines.iter().enumerate() {
        if index > 0 {
            html.push('\n');
        }
        line.spans.iter().for_each(|span| push_span(html, span));
    }
    html.push_str("</pre>\n");
}

fn push_span(html: &mut String, span: &Span) {
    let mut classes: Vec<String> = Vec::new();
    classes.extend(span.token.map(|token| format!("t-{}", token.as_str())));
    classes.extend(span.background.map(|token| format!("b-{}", token.as_str())));
    classes.extend(span.emphasis.iter().map(|emphasis| {
        match emphasis {
            Emphasis::Bold => "bold",
            Emphasis::Italic => "italic",
            Emphasis::Underline => "underline",
            Emphasis::Strikethrough => "strike",
        }
        .to_owned()
    }));
    if classes.is_empty() {
        return push_text(html, &span.text);
    }
    let _ = write!(html, "<span class=\"{}\">", classes.join(" "));
    push_text(html, &span.text);
    html.push_str("</span>");
}

/// The beginning of a text on one line, for lists.
pub(super) fn headline(text: &str) -> String {
    /// As much as fits beside the conversation.
    const LONGEST: usize = 70;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("(no text)");
    let mut short: String = line.chars().take(LONGEST).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    escaped(&short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::ThemeToken;

    #[test]
    fn text_cannot_become_part_of_the_page() {
        assert_eq!(
            escaped("<script>alert(\"x\")</script> & 'y' \u{1b}[31mred\u{202e}"),
            "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &#39;y&#39; red&lt;U+202E&gt;"
        );
        let mut html = String::new();
        let evil = Span { text: "</pre><img src=x>".to_owned(), ..Span::default() };
        push_styled(&mut html, &StyledText::line([Span::token("a", ThemeToken::Accent).with(Emphasis::Bold), evil]));
        let expected =
            "<pre class=\"styled\"><span class=\"t-accent bold\">a</span>&lt;/pre&gt;&lt;img src=x&gt;</pre>\n";
        assert_eq!(html, expected);
    }

    #[test]
    fn long_texts_are_cut_where_a_line_ends() {
        let mut html = String::new();
        let text = (1..=40).map(|line| format!("línea {line}\n")).collect::<String>();
        push_long_lines(&mut html, "c", &text);
        assert!(html.contains("20 more lines") && html.contains("línea 20</pre>"), "{html}");
        assert!(headline(&"é".repeat(100)).ends_with("é…"));
    }
}
