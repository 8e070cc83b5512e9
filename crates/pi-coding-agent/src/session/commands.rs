//! What `pi sessions …` does: each command gives what it found as data, and as text for the screen.

use std::fmt::Write as _;

use pi_ai::Timestamp;

use crate::{
    messages::message_text,
    session::{
        entry::{EntryBody, EntryKind, MessageRole},
        error::SessionError,
        list::SessionFacts,
        repair::{Diagnosis, Repaired},
        session::Session,
        stats::SessionStats,
        time::iso,
    },
};

/// The longest line of what was said that a list shows, in characters.
const MOST_SHOWN: usize = 72;

/// A list as text: when each session was used, its id, its name or what was said first, and its folder.
pub fn list_text(sessions: &[SessionFacts], now: Timestamp) -> String {
    if sessions.is_empty() {
        return "There are no sessions.\n".into();
    }
    let mut text = String::new();
    for session in sessions {
        let title = session.name.as_deref().or(session.first_message.as_deref()).unwrap_or("(nothing was said yet)");
        let (age, title) = (age(session.modified, now), one_line(title, MOST_SHOWN));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{age:>9}  {:<36}  {title}", session.id);
        let _ =
            writeln!(text, "           {} messages in {}", session.messages, one_line(&session.cwd, 4 * MOST_SHOWN));
    }
    text
}

/// What was found as text: the list, with the words that were found.
#[cfg(feature = "search")]
pub fn hits_text(hits: &[super::Hit], now: Timestamp) -> String {
    if hits.is_empty() {
        return "Nothing was found.\n".into();
    }
    let mut text = String::new();
    for hit in hits {
        text += &list_text(std::slice::from_ref(&hit.session), now);
        let _ = writeln!(text, "           {}", one_line(&hit.excerpt, 2 * MOST_SHOWN));
    }
    text
}

/// The branch of a session as an outline: one line for each message, with its entry's id and label.
///
/// # Errors
/// When the session cannot be read.
pub fn outline_text(session: &Session) -> Result<String, SessionError> {
    let mut text = String::new();
    let _ = writeln!(text, "{}", session.name().unwrap_or(session.id()));
    for summary in session.branch() {
        let said = match summary.kind {
            EntryKind::Message(MessageRole::System) => continue,
            EntryKind::Message(_) | EntryKind::CustomMessage | EntryKind::BranchSummary | EntryKind::Compaction => {
                said(&session.entry(summary.id.as_str())?.body)
            }
            EntryKind::Unreadable => "(damaged)".into(),
            _ => continue,
        };
        let label = session.label(summary.id.as_str()).map(|label| format!(" [{}]", label.text));
        let _ = writeln!(
            text,
            "{:<8}  {:<9}{}  {}",
            summary.id,
            who(summary.kind),
            label.unwrap_or_default(),
            one_line(&said, MOST_SHOWN)
        );
    }
    Ok(text)
}

fn who(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Message(MessageRole::User) => "user",
        EntryKind::Message(MessageRole::Assistant) => "assistant",
        EntryKind::Message(MessageRole::ToolResult) => "result",
        EntryKind::Message(MessageRole::BashExecution) => "shell",
        EntryKind::CustomMessage => "extension",
        EntryKind::BranchSummary | EntryKind::Compaction => "summary",
        _ => "",
    }
}

fn said(body: &EntryBody) -> String {
    match body {
        EntryBody::Message(entry) => {
            let text = message_text(&entry.message);
            match entry.message.as_assistant() {
                Some(answer) if text.is_empty() => {
                    let calls = answer.tool_calls().map(|call| format!("calls {}", call.name));
                    calls.collect::<Vec<_>>().join(", ")
                }
                _ => text,
            }
        }
        EntryBody::CustomMessage(entry) => entry.content.text().into_owned(),
        EntryBody::BranchSummary(entry) => entry.summary.clone(),
        EntryBody::Compaction(entry) => entry.summary.clone(),
        _ => String::new(),
    }
}

/// Totals as text.
pub fn stats_text(stats: &SessionStats) -> String {
    let usage = &stats.usage;
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<18}{value:>14}");
    };
    row("entries", stats.entries.to_string());
    row("messages", stats.total_messages.to_string());
    row("  of the user", stats.user_messages.to_string());
    row("  of models", stats.assistant_messages.to_string());
    row("tool calls", stats.tool_calls.to_string());
    row("tool results", stats.tool_results.to_string());
    row("compactions", stats.compactions.to_string());
    if stats.damaged > 0 {
        row("damaged", stats.damaged.to_string());
    }
    row("tokens", stats.tokens().to_string());
    row("  input", usage.input.to_string());
    row("  output", usage.output.to_string());
    row("  cache reads", usage.cache_read.to_string());
    row("  cache writes", usage.cache_write.to_string());
    row("cost", format!("${:.4}", usage.cost.total));
    text
}

/// What is wrong with a session file, as text.
pub fn diagnosis_text(diagnosis: &Diagnosis) -> String {
    if diagnosis.is_sound() {
        return "The session is sound.\n".into();
    }
    let mut text = String::new();
    for problem in &diagnosis.problems {
        let _ = writeln!(text, "- {problem}");
    }
    if diagnosis.needs_repair() {
        let _ = writeln!(
            text,
            "A repaired file has {} entries and loses {} lines. With --write it is made; the old file is kept.",
            diagnosis.entries, diagnosis.lost_lines
        );
    }
    text
}

/// What a repair did, as text.
pub fn repaired_text(repaired: &Repaired) -> String {
    match &repaired.old_file {
        None if repaired.diagnosis.is_sound() => "The session is sound; nothing was done.\n".into(),
        None => "There is nothing that a repair could do.\n".into(),
        Some(old_file) => {
            let mut text = format!(
                "Repaired: {} entries, {} lines taken out. The old file is {}.\n",
                repaired.diagnosis.entries,
                repaired.diagnosis.lost_lines,
                old_file.display()
            );
            if repaired.left_in_old_file > 0 {
                text.push_str(&format!(
                    "Another program wrote {} bytes meanwhile; they are at the end of the old file only.\n",
                    repaired.left_in_old_file
                ));
            }
            text
        }
    }
}

/// How long ago something was; the day, when it is longer than a month ago.
fn age(time: Timestamp, now: Timestamp) -> String {
    let minutes = now.as_millis().saturating_sub(time.as_millis()) / 60_000;
    match minutes {
        0 => "now".into(),
        1..60 => format!("{minutes} min"),
        60..1_440 => format!("{} h", minutes / 60),
        1_440..43_200 => format!("{} days", minutes / 1_440),
        _ => iso(time).split('T').next().unwrap_or_default().to_owned(),
    }
}

/// A text on one line, cut to so many characters. Control characters, which a terminal would obey, are left out.
fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    for word in text.split(|character: char| character.is_whitespace() || character.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
            count += 1;
        }
        for character in word.chars() {
            if count == most {
                line.push('…');
                return line;
            }
            line.push(character);
            count += 1;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_shown_on_one_line_without_control_characters() {
        assert_eq!(one_line("a\n\n b\t\u{1b}[31mred\u{7}", 20), "a b [31mred");
        assert_eq!(one_line("漢字漢字", 3), "漢字漢…");
        assert_eq!(one_line("漢字漢", 3), "漢字漢");
    }

    #[test]
    fn ages_are_told_roughly() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let told = |minutes: u64| age(Timestamp::from_millis(1_700_000_000_000 - minutes * 60_000), now);
        assert_eq!([told(0), told(59), told(60), told(2_880)], ["now", "59 min", "1 h", "2 days"]);
        assert_eq!(told(60_000), "2023-10-04");
    }
}
