//! A summary of a conversation that is handed over as text: what was asked, what came of it, which files came up.

use super::text::{code, list, shorten};
use crate::guide::utterance::{has_extension, looks_like_path};

/// Requests that a summary names at most; the last ones count.
const MOST_REQUESTS: usize = 40;

/// Writes the summary of the record in `<conversation>`, and keeps an earlier one.
pub(super) fn summarize(request: &str) -> String {
    let record = between(request, "<conversation>", "</conversation>").unwrap_or(request);
    let previous = between(request, "<previous-summary>", "</previous-summary>");
    let turns = turns(record);
    let skipped = turns.len().saturating_sub(MOST_REQUESTS);
    let done: Vec<String> = turns
        .iter()
        .skip(skipped)
        .map(|turn| match &turn.outcome {
            Some(outcome) => format!("[x] {} → {}", turn.request, outcome),
            None => format!("[ ] {}", turn.request),
        })
        .collect();
    let goal = turns.last().map_or("It is not recorded.", |turn| &turn.request);
    let files = files(record);
    let none = || "- none".to_owned();
    let section = |items: &[String]| if items.is_empty() { none() } else { list(items, items.len()) };
    let earlier = previous.map(|text| format!("## Earlier\n\n{}\n\n", text.trim())).unwrap_or_default();
    format!(
        "{earlier}## Goal\n\nThe last request was: {goal}\n\n## Progress\n\n{}\n\n## Critical Context\n\nFiles that came up:\n\n{}",
        section(&done),
        section(&files)
    )
}

fn between<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let (_, inside) = text.split_once(open)?;
    Some(inside.split_once(close).map_or(inside, |(inside, _)| inside))
}

struct Turn {
    request: String,
    /// The beginning of the last thing that was answered.
    outcome: Option<String>,
}

fn turns(record: &str) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for line in record.lines() {
        if let Some(request) = line.strip_prefix("[User] ") {
            turns.push(Turn { request: shorten(request.trim(), 200), outcome: None });
        } else if let (Some(answer), Some(turn)) = (line.strip_prefix("[Assistant] "), turns.last_mut()) {
            turn.outcome = Some(shorten(answer.trim(), 200));
        }
    }
    turns
}

fn files(record: &str) -> Vec<String> {
    const MOST: usize = 40;
    let around = |c: char| !(c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~'));
    let mut seen = std::collections::HashSet::new();
    record
        .split_whitespace()
        .flat_map(|word| word.split(around))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| looks_like_path(word) && has_extension(word) && seen.insert((*word).to_owned()))
        .take(MOST)
        .map(code)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_names_requests_outcomes_and_files_and_keeps_the_earlier_one() {
        let text = summarize(
            "<conversation>\n[User] explain src/a.rs\n[Assistant called] read(path=\"src/a.rs\")\n[Tool result] x\n\
             [Assistant] It is a Rust file.\n[User] run the tests\n</conversation>\n\n\
             <previous-summary>\nolder things\n</previous-summary>\n\nWrite notes.",
        );
        for part in [
            "older things",
            "last request was: run the tests",
            "[x] explain src/a.rs → It is a Rust file.",
            "[ ] run the tests",
            "`src/a.rs`",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
