//! How each kind of entry looks.

use std::fmt::Write as _;

use pi_ai::{
    AssistantBlock, AssistantMessage, Content, ImageContent, InputBlock, Message, SystemMessage, ToolResultMessage,
};
use serde_json::Value;

use super::{
    Drawing, Shown,
    text::{escaped, json, push_lines, push_long_lines, push_styled},
};
use crate::{
    messages::{CodingMessage, CustomContent, SessionMessage},
    session::{Entry, EntryBody, ReplacementContent, write_time},
};

/// Types of pictures that a browser shows and that run nothing.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// An entry as HTML; nothing for what people do not see.
pub(super) fn entry(entry: &Entry, shown: &Shown<'_>, drawing: Option<&dyn Drawing>) -> String {
    let mut html = String::new();
    match &entry.body {
        EntryBody::Message(message) => message_html(&mut html, &message.message, shown, drawing),
        EntryBody::CustomMessage(said) => {
            let content = CustomContent {
                custom_type: said.custom_type.clone(),
                content: said.content.clone(),
                display: said.display,
                details: said.details.clone(),
                timestamp: entry.timestamp,
            };
            custom_html(&mut html, &content, shown, drawing);
        }
        EntryBody::Custom(custom) => {
            // State of an extension: what it shows is the extension's to say.
            if let Some(drawn) = drawing.and_then(|drawing| drawing.entry(&entry.id, custom)) {
                open(&mut html, shown, "custom", &escaped(&custom.custom_type));
                drawn_html(&mut html, &drawn);
                close(&mut html);
            }
        }
        EntryBody::Compaction(compaction) => {
            let title = format!("Summary of the conversation up to here ({} tokens before)", compaction.tokens_before);
            summary_html(&mut html, shown, &title, &compaction.summary);
        }
        EntryBody::BranchSummary(summary) => summary_html(&mut html, shown, "Summary of a branch", &summary.summary),
        EntryBody::ModelChange(change) => {
            note(&mut html, shown, &format!("Model: {}/{}", change.provider, change.model_id));
        }
        EntryBody::ThinkingLevelChange(change) => {
            note(&mut html, shown, &format!("Thinking: {}", change.thinking_level));
        }
        EntryBody::ContextEdit(edit) => {
            let what = match &edit.replacement {
                None => "left out of".to_owned(),
                Some(replacement) => match &replacement.content {
                    ReplacementContent::Text(text) => format!("replaced by “{text}” in"),
                    ReplacementContent::Blocks(_) => "replaced in".to_owned(),
                },
            };
            note(&mut html, shown, &format!("From here on entry {} is {what} what the model sees.", edit.target_id));
        }
        EntryBody::Label(label) => {
            let text = match label.label.as_deref().filter(|label| !label.is_empty()) {
                Some(text) => format!("Entry {} is labelled “{text}”.", label.target_id),
                None => format!("The label of entry {} is taken away.", label.target_id),
            };
            note(&mut html, shown, &text);
        }
        EntryBody::SessionInfo(info) => {
            let text = match info.name.as_deref().filter(|name| !name.is_empty()) {
                Some(name) => format!("The session is called “{name}”."),
                None => "The session's name is taken away.".to_owned(),
            };
            note(&mut html, shown, &text);
        }
        EntryBody::Usage(_) => {}
        EntryBody::Unknown(_) => {
            note(&mut html, shown, "An entry of a type that this version does not know; the data below has it.");
        }
        EntryBody::Unreadable => note(&mut html, shown, "A damaged entry; what it said is lost."),
    }
    html
}

fn open(html: &mut String, shown: &Shown<'_>, class: &str, title: &str) {
    let _ = write!(html, "<article class=\"{class}\" id=\"e{}\"><header><h2>{title}</h2>", shown.number);
    if let Some(label) = shown.label {
        let _ = write!(html, "<span class=\"label\">{}</span>", escaped(label));
    }
    if let Some(time) = shown.time {
        let time = write_time(time);
        let _ = write!(html, "<time datetime=\"{time}\">{time}</time>");
    }
    html.push_str("</header>\n");
}

fn close(html: &mut String) {
    html.push_str("</article>\n");
}

fn note(html: &mut String, shown: &Shown<'_>, text: &str) {
    let _ = writeln!(html, "<p class=\"note\" id=\"e{}\">{}</p>", shown.number, escaped(text));
}

fn summary_html(html: &mut String, shown: &Shown<'_>, title: &str, text: &str) {
    open(html, shown, "summary", title);
    push_lines(html, "text", text);
    close(html);
}

fn message_html(html: &mut String, message: &SessionMessage, shown: &Shown<'_>, drawing: Option<&dyn Drawing>) {
    match message {
        SessionMessage::Llm(Message::System(system)) => system_html(html, system, shown),
        SessionMessage::Llm(Message::User(user)) => {
            open(html, shown, "user", "User");
            content_html(html, &user.content);
            close(html);
        }
        SessionMessage::Llm(Message::Assistant(answer)) => answer_html(html, answer, shown),
        SessionMessage::Llm(Message::ToolResult(result)) => result_html(html, result, shown),
        SessionMessage::Custom(custom) => match &**custom {
            CodingMessage::BashExecution(bash) => {
                let failed = bash.cancelled || bash.exit_code.is_some_and(|code| code != 0);
                let hidden = if bash.exclude_from_context == Some(true) { ", not for the model" } else { "" };
                open(html, shown, if failed { "bash failed" } else { "bash" }, &format!("Shell{hidden}"));
                push_lines(html, "code", &format!("$ {}", bash.command));
                push_long_lines(html, "output", &bash.output);
                match bash.exit_code {
                    _ if bash.cancelled => html.push_str("<p class=\"note\">Cancelled.</p>\n"),
                    Some(code) if code != 0 => drop(writeln!(html, "<p class=\"note\">Exit code {code}.</p>")),
                    _ => {}
                }
                close(html);
            }
            CodingMessage::Custom(custom) => custom_html(html, custom, shown, drawing),
            CodingMessage::BranchSummary(summary) => summary_html(html, shown, "Summary of a branch", &summary.summary),
            CodingMessage::CompactionSummary(summary) => {
                summary_html(html, shown, "Summary of the conversation up to here", &summary.summary);
            }
        },
        SessionMessage::Unknown(unknown) => {
            open(html, shown, "custom", &format!("Message of the role {}", escaped(&unknown.role)));
            html.push_str("<details><summary>What it holds</summary><pre class=\"code\">");
            html.push_str(&json(&Value::Object(unknown.fields.clone())));
            html.push_str("</pre></details>\n");
            close(html);
        }
    }
}

fn system_html(html: &mut String, system: &SystemMessage, shown: &Shown<'_>) {
    open(html, shown, "system", "Instructions");
    html.push_str("<details><summary>");
    let mut parts: Vec<String> = system
        .sections
        .iter()
        .map(|(name, text)| format!("{}{name}", if text.is_some() { "" } else { "without " }))
        .collect();
    parts.extend(system.tools_added.iter().map(|tool| format!("+{}", tool.name)));
    parts.extend(system.tools_removed.iter().map(|tool| format!("-{}", tool.name)));
    html.push_str(&escaped(if parts.is_empty() { "text" } else { "changes" }));
    let _ = writeln!(html, ": {}</summary>", escaped(&parts.join(", ")));
    push_lines(html, "text", &system.content.text());
    for (name, text) in &system.sections {
        if let Some(text) = text {
            let _ = writeln!(html, "<h2>{}</h2>", escaped(name));
            push_lines(html, "text", text);
        }
    }
    html.push_str("</details>\n");
    close(html);
}

fn answer_html(html: &mut String, answer: &AssistantMessage, shown: &Shown<'_>) {
    let class = if answer.is_failed() { "assistant failed" } else { "assistant" };
    open(html, shown, class, &format!("Assistant <span class=\"dim\">{}</span>", escaped(&answer.model)));
    for block in &answer.content {
        match block {
            AssistantBlock::Text(text) => push_lines(html, "text", &text.text),
            AssistantBlock::Thinking(thinking) if thinking.thinking.trim().is_empty() => {}
            AssistantBlock::Thinking(thinking) => {
                html.push_str("<details><summary>Reasoning</summary>\n");
                push_lines(html, "thinking", &thinking.thinking);
                html.push_str("</details>\n");
            }
            AssistantBlock::ToolCall(call) => {
                let _ = write!(html, "<details open><summary>Calls <code>{}</code></summary>", escaped(&call.name));
                push_long_lines(html, "code", &arguments_text(&call.arguments));
                html.push_str("</details>\n");
            }
            AssistantBlock::Unknown(_) => html.push_str("<p class=\"note\">A block of an unknown type.</p>\n"),
        }
    }
    if let Some(error) = &answer.error_message {
        push_lines(html, "error", error);
    }
    close(html);
}

/// Arguments for people: long texts as they are, the rest as JSON.
fn arguments_text(arguments: &serde_json::Map<String, Value>) -> String {
    let mut lines = Vec::new();
    for (name, value) in arguments {
        match value {
            Value::String(text) if text.contains('\n') => lines.push(format!("{name}:\n{text}")),
            other => lines.push(format!("{name}: {}", serde_json::to_string_pretty(other).unwrap_or_default())),
        }
    }
    lines.join("\n")
}

fn result_html(html: &mut String, result: &ToolResultMessage, shown: &Shown<'_>) {
    let (class, failed) = if result.is_error { ("result failed", ", failed") } else { ("result", "") };
    open(html, shown, class, &format!("Result of <code>{}</code>{failed}", escaped(&result.tool_name)));
    for block in &result.content {
        match block {
            InputBlock::Text(text) => push_long_lines(html, "output", &text.text),
            InputBlock::Image(image) => picture(html, image),
            InputBlock::Unknown(_) => html.push_str("<p class=\"note\">A block of an unknown type.</p>\n"),
        }
    }
    if let Some(diff) = result.details.as_ref().and_then(|details| details.get("diff")).and_then(Value::as_str) {
        diff_html(html, diff);
    }
    if let Some(calls) = result.nested_calls.as_ref().filter(|calls| !calls.is_null()) {
        html.push_str("<details><summary>Calls that it made itself</summary><pre class=\"code\">");
        html.push_str(&json(calls));
        html.push_str("</pre></details>\n");
    }
    close(html);
}

fn diff_html(html: &mut String, diff: &str) {
    html.push_str("<details><summary>What changed</summary><pre class=\"code\">");
    for line in diff.lines() {
        let class = match line.chars().next() {
            Some('+') => "t-toolDiffAdded",
            Some('-') => "t-toolDiffRemoved",
            _ => "t-toolDiffContext",
        };
        let _ = writeln!(html, "<span class=\"{class}\">{}</span>", escaped(line));
    }
    html.push_str("</pre></details>\n");
}

/// What an extension said. What it keeps for itself is not shown, and neither is what it hides from people.
fn custom_html(html: &mut String, custom: &CustomContent, shown: &Shown<'_>, drawing: Option<&dyn Drawing>) {
    if !custom.display {
        return;
    }
    open(html, shown, "custom", &escaped(&custom.custom_type));
    match drawing.and_then(|drawing| drawing.message(custom)) {
        Some(drawn) => drawn_html(html, &drawn),
        None => content_html(html, &custom.content),
    }
    close(html);
}

/// The gist, and everything when it is asked for.
fn drawn_html(html: &mut String, drawn: &super::Drawn) {
    push_styled(html, &drawn.collapsed);
    if drawn.expanded != drawn.collapsed {
        html.push_str("<details><summary>More</summary>\n");
        push_styled(html, &drawn.expanded);
        html.push_str("</details>\n");
    }
}

fn content_html(html: &mut String, content: &Content) {
    match content {
        Content::Text(text) => push_lines(html, "text", text),
        Content::Blocks(blocks) => {
            for block in blocks {
                match block {
                    InputBlock::Text(text) => push_lines(html, "text", &text.text),
                    InputBlock::Image(image) => picture(html, image),
                    InputBlock::Unknown(_) => {}
                }
            }
        }
    }
}

/// A picture within the page. What is none, or could be more than one, is only named.
fn picture(html: &mut String, image: &ImageContent) {
    let is_base64 = image.data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
    if is_base64 && PICTURES.contains(&image.mime_type.as_str()) {
        let _ = writeln!(html, "<img alt=\"A picture\" src=\"data:{};base64,{}\">", image.mime_type, image.data);
    } else {
        let _ = writeln!(html, "<p class=\"note\">A picture ({}) that is not shown.</p>", escaped(&image.mime_type));
    }
}
