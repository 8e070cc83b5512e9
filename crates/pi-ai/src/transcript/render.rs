//! A system message as text, for wires that have no sections.

use crate::message::SystemMessage;

/// The text of a system message that leads: content and sections, joined by blank lines.
pub fn render_full(message: &SystemMessage) -> String {
    let content = message.content.text();
    let sections = message.sections.values().flatten().map(String::as_str);
    join(std::iter::once(&*content).chain(sections))
}

/// The text of a system message in the middle of a conversation. It names each section that it changes or removes, so
/// that the model can tell what no longer holds.
pub fn render_update(message: &SystemMessage) -> String {
    let content = message.content.text();
    let sections: Vec<String> = message
        .sections
        .iter()
        .map(|(name, text)| match text {
            Some(text) => format!("The \"{name}\" part of your instructions now reads:\n{text}"),
            None => format!("The \"{name}\" part of your instructions no longer applies."),
        })
        .collect();
    join(std::iter::once(&*content).chain(sections.iter().map(String::as_str)))
}

fn join<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}
