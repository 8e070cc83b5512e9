//! What texts for people say.

use super::super::text::{block, list, plural, sentence};
use crate::guide::language::first_paragraph;

pub(super) fn markdown(text: &str) -> String {
    let mut parts = Vec::new();
    let mut fenced = false;
    let mut headings = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced && line.starts_with('#') {
            let depth = line.chars().take_while(|c| *c == '#').count();
            headings.push((depth, line.trim_start_matches('#').trim().to_owned()));
        }
    }
    if let Some((_, title)) = headings.iter().find(|(depth, _)| *depth == 1) {
        parts.push(format!("Its title is \"{title}\"."));
    }
    if let Some(paragraph) = first_paragraph(text) {
        parts.push(format!("It begins: {}", sentence(&paragraph)));
    }
    let sections: Vec<String> = headings
        .iter()
        .filter(|(depth, _)| matches!(depth, 2 | 3))
        .map(|(depth, title)| format!("{}{title}", "  ".repeat(depth.saturating_sub(2))))
        .collect();
    if !sections.is_empty() {
        parts.push(format!("Its sections:\n\n{}", list(&sections, 40)));
    }
    parts.push(format!("It has about {}.", plural(text.split_whitespace().count(), "word")));
    parts.join("\n\n")
}

pub(super) fn plain(text: &str) -> String {
    format!("It has about {}. It begins:\n\n{}", plural(text.split_whitespace().count(), "word"), block(text, 15))
}
