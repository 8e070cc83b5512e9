//! Composing answers.

use crate::guide::desk::Amount;

/// "1 file", "2 files".
pub(super) fn plural(count: usize, noun: &str) -> String {
    match (count, noun) {
        (1, noun) => format!("1 {noun}"),
        (count, noun) if noun.ends_with(['s', 'x']) || noun.ends_with("ch") || noun.ends_with("sh") => {
            format!("{count} {noun}es")
        }
        (count, noun) if noun.ends_with('y') && !noun.ends_with("ey") => {
            format!("{count} {}ies", &noun[..noun.len() - 1])
        }
        (count, noun) => format!("{count} {noun}s"),
    }
}

/// "2 files", "at least 300 files".
pub(super) fn amount(amount: Amount, noun: &str) -> String {
    match amount {
        Amount::Exactly(count) => plural(count, noun),
        Amount::AtLeast(count) => format!("at least {}", plural(count, noun)),
    }
}

/// A list of which only a part may be at hand.
pub(super) fn list_of(items: &[String], most: usize, total: Amount) -> String {
    let shown = items.len().min(most);
    let listed = list(&items[..shown], most);
    match total {
        Amount::Exactly(total) if total > shown => format!("{listed}\n… and {} more", total - shown),
        Amount::AtLeast(_) => format!("{listed}\n… and more"),
        Amount::Exactly(_) => listed,
    }
}

/// "a, b and 3 others".
pub(super) fn enumerate_some(items: &[String], most: usize) -> String {
    let mut shown: Vec<String> = items.iter().take(most).cloned().collect();
    match items.len() - shown.len() {
        0 => {}
        1 => shown.push("1 other".to_owned()),
        more => shown.push(format!("{more} others")),
    }
    enumerate(&shown)
}

/// A name in backticks.
pub(super) fn code(text: impl AsRef<str>) -> String {
    format!("`{}`", text.as_ref().replace('`', "'"))
}

/// "a, b and c".
pub(super) fn enumerate(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Lines of a list; what is more than `most` is counted.
pub(super) fn list(items: &[String], most: usize) -> String {
    let mut lines: Vec<String> = items.iter().take(most).map(|item| format!("- {item}")).collect();
    if items.len() > most {
        lines.push(format!("… and {} more", items.len() - most));
    }
    lines.join("\n")
}

/// A fenced block of at most so many lines.
pub(super) fn block(text: &str, most: usize) -> String {
    block_in("", text, most)
}

/// A fenced block in a language.
pub(super) fn block_in(language: &str, text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let fence = if text.contains("```") { "````" } else { "```" };
    let shown: Vec<String> = lines.iter().take(most).map(|line| shorten(line, 400)).collect();
    let more = if lines.len() > most { format!("\n({} more lines)", lines.len() - most) } else { String::new() };
    format!("{fence}{language}\n{}\n{fence}{more}", shown.join("\n"))
}

/// The last lines in a fenced block.
pub(super) fn tail_block(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(most);
    let shown = block(&lines[skipped..].join("\n"), most);
    if skipped > 0 { format!("{shown}\n(the last {most} of {} lines)", lines.len()) } else { shown }
}

/// A text of at most so many characters.
pub(super) fn shorten(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// With a full stop at the end.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?', '…', ':']) || text.is_empty() { text.to_owned() } else { format!("{text}.") }
}

/// With a capital at the start, unless the first word is a name.
pub(super) fn capital(text: &str) -> String {
    if text.split_whitespace().next().is_some_and(|word| word.contains(['-', '_', '`', '.', ':', '/'])) {
        return text.to_owned();
    }
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

/// "a" or "an", by the first letter.
pub(super) fn article(noun: &str) -> &'static str {
    if noun.to_lowercase().starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}
