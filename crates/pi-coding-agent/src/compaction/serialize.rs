//! The conversation as text for the summariser, so that it does not answer it.

use pi_ai::{AssistantBlock, Content, InputBlock, Message};

/// The most UTF-16 units of a tool result that the summariser sees.
const MAX_RESULT_UNITS: usize = 2000;

/// A conversation as text: who said what, tool calls with their arguments, the beginnings of tool results. Prompts,
/// thinking and pictures are left out.
pub fn serialize_conversation(messages: &[Message]) -> String {
    messages.iter().flat_map(parts).collect::<Vec<_>>().join("\n\n")
}

/// The parts of the text that one message makes.
pub(super) fn parts(message: &Message) -> Vec<String> {
    match message {
        Message::System(_) => Vec::new(),
        Message::User(user) => tagged("User", content_text(&user.content)),
        Message::ToolResult(result) => tagged("Tool result", cut(blocks_text(&result.content))),
        Message::Assistant(assistant) => {
            let texts: Vec<&str> = assistant.content.iter().filter_map(AssistantBlock::as_text).collect();
            let calls: Vec<String> = assistant
                .tool_calls()
                .map(|call| {
                    let arguments = call.arguments.iter().map(|(name, value)| format!("{name}={value}"));
                    format!("{}({})", call.name, arguments.collect::<Vec<_>>().join(", "))
                })
                .collect();
            let mut parts = tagged("Assistant", texts.join("\n"));
            parts.extend(tagged("Assistant called", calls.join("; ")));
            parts
        }
    }
}

fn tagged(who: &str, text: String) -> Vec<String> {
    if text.is_empty() { Vec::new() } else { vec![format!("[{who}] {text}")] }
}

fn content_text(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        Content::Blocks(blocks) => blocks_text(blocks),
    }
}

fn blocks_text(blocks: &[InputBlock]) -> String {
    blocks.iter().filter_map(InputBlock::as_text).collect()
}

/// The beginning of a long text, with a note of how much is missing.
fn cut(text: String) -> String {
    let kept = prefix(&text, MAX_RESULT_UNITS);
    match text[kept.len()..].encode_utf16().count() {
        0 => text,
        missing => format!("{kept}\n\n[{missing} characters of this result are left out]"),
    }
}

/// The longest beginning of at most so many UTF-16 units.
pub(super) fn prefix(text: &str, units: usize) -> &str {
    let mut left = units;
    let end = text.char_indices().find(|(_, character)| match left.checked_sub(character.len_utf16()) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// The longest end of at most so many UTF-16 units.
pub(super) fn suffix(text: &str, units: usize) -> &str {
    let mut left = units;
    let start = text.char_indices().rev().find(|(_, character)| match left.checked_sub(character.len_utf16()) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    &text[start.map_or(0, |(at, character)| at + character.len_utf8())..]
}

/// The beginning and the end of a text that is longer than so many UTF-16 units, with a note between them.
pub(super) fn head_and_tail(text: &str, units: usize) -> String {
    let length = text.encode_utf16().count();
    if length <= units {
        return text.to_owned();
    }
    let (head, tail) = (prefix(text, units / 2), suffix(text, units / 2));
    let kept = head.encode_utf16().count() + tail.encode_utf16().count();
    format!("{head}\n\n[{} characters are left out here]\n\n{tail}", length - kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_between_characters() {
        let text = "a😀b";
        let beginnings: Vec<_> = (0..6).map(|units| prefix(text, units)).collect();
        assert_eq!(beginnings, ["", "a", "a", "a😀", "a😀b", "a😀b"]);
        let ends: Vec<_> = (0..6).map(|units| suffix(text, units)).collect();
        assert_eq!(ends, ["", "b", "b", "😀b", "a😀b", "a😀b"]);
        assert_eq!(head_and_tail("漢字漢字", 2), "漢\n\n[2 characters are left out here]\n\n字");
    }
}
