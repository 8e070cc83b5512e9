//! Text that came through a pipe stands in front of the request, and nothing need stand between the two.

use super::{Intent, PipedQuestion, Subject, table::first_path, table::number_of};
use crate::guide::utterance::{Utterance, looks_like_identifier};

/// The name under which piped text is spoken of.
pub(in crate::guide) const PIPED: &str = "standard input";

/// Piped text and what is asked about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::guide) struct Piped<'t> {
    pub(in crate::guide) material: &'t str,
    pub(in crate::guide) request: &'t str,
}

/// Words that a request about a text begins with.
const BEGINNINGS: [&str; 22] = [
    "explain",
    "describe",
    "summarize",
    "summarise",
    "what",
    "which",
    "why",
    "how",
    "where",
    "who",
    "find",
    "list",
    "show",
    "count",
    "tell",
    "please",
    "search",
    "give",
    "is",
    "are",
    "does",
    "did",
];
/// Those of them that hardly end a longer word.
const UNMISTAKABLE: [&str; 4] = ["explain", "describe", "summarize", "summarise"];
/// A request has at most so many words.
const MOST_WORDS: usize = 30;
/// A text of more words than this is more than a request.
const MATERIAL_WORDS: usize = 40;

impl<'t> Piped<'t> {
    /// Tells the two apart; `None` when the text is a request and nothing else.
    pub(in crate::guide) fn split(text: &'t str) -> Option<Self> {
        let text = text.trim();
        if text.starts_with('<') {
            return None;
        }
        let last_line = text.rfind('\n').map_or(0, |at| at + 1);
        let glued = text.get(last_line..)?.char_indices().map(|(at, _)| last_line + at).filter(|at| *at > last_line);
        let glued = glued.into_iter().find(|at| begins_request(text, *at, last_line > 0));
        let own_line = || {
            let is_long = text.split_whitespace().nth(MATERIAL_WORDS).is_some();
            let begins = first_word(text.get(last_line..)?).is_some_and(|word| is_one_of(word, &BEGINNINGS));
            (last_line > 0 && is_long && begins).then_some(last_line)
        };
        let at = glued.or_else(own_line)?;
        let (material, request) = text.split_at_checked(at)?;
        let words = request.split_whitespace().count();
        ((2..=MOST_WORDS).contains(&words)).then_some(Self { material: material.trim_end(), request })
    }

    /// What is asked, when it is about the piped text.
    pub(super) fn intent(&self) -> Option<Intent> {
        let said = Utterance::parse(self.request);
        let names_something = || {
            said.tokens.iter().any(|token| {
                looks_like_identifier(said.text.get(token.inner.clone()).unwrap_or_default()) || token.is_quoted()
            })
        };
        if first_path(&said).is_some() || names_something() {
            return None;
        }
        let about = |question| Some(Intent::AboutPiped { text: self.material.to_owned(), question });
        if said.has(&[
            "failure", "failures", "failed", "fails", "fail", "failing", "error", "errors", "wrong", "broken", "broke",
            "problem", "problems", "panic", "panicked",
        ]) {
            let number = said.words().find_map(|word| number_of(word).filter(|_| word != "one"));
            return about(number.map_or(PipedQuestion::Failures, PipedQuestion::Failure));
        }
        if said.has(&["many", "count", "number"]) && said.has(&["lines", "words"]) {
            return about(PipedQuestion::Size);
        }
        let about_it = said.has(&[
            "this", "that", "it", "text", "output", "log", "input", "message", "here", "above", "these", "diff",
        ]);
        let asks = said.has(&["explain", "describe", "summarize", "summarise", "what", "summary", "tell"]);
        (about_it && asks).then_some(Intent::Explain { subject: Subject::Attached })
    }
}

/// Whether a request is glued to what stands before it.
fn begins_request(text: &str, at: usize, has_lines_before: bool) -> bool {
    let (Some(before), Some(rest)) = (text.get(..at), text.get(at..)) else { return false };
    let (Some(previous), Some(word)) = (before.chars().next_back(), first_word(rest)) else { return false };
    let is_glued =
        previous.is_alphanumeric() || matches!(previous, '.' | ':' | ';' | ',' | '!' | '?' | '}' | ')' | ']' | '%');
    if !is_glued {
        return false;
    }
    let capital = word.starts_with(|c: char| c.is_ascii_uppercase()) && !previous.is_uppercase();
    match (capital, has_lines_before) {
        (true, _) => is_one_of(word, &BEGINNINGS),
        (false, true) if !previous.is_alphabetic() => is_one_of(word, &BEGINNINGS),
        (false, true) => is_one_of(word, &UNMISTAKABLE),
        (false, false) => false,
    }
}

/// The word before the first blank.
fn first_word(text: &str) -> Option<&str> {
    let (word, _) = text.split_once(char::is_whitespace)?;
    (!word.is_empty() && word.len() < 12).then_some(word)
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_told_from_the_text_before_it() {
        for (text, material, request) in [
            ("a\nfinished in 0.00sExplain the first failure", "a\nfinished in 0.00s", "Explain the first failure"),
            ("a\nfinished in 0.00sexplain this", "a\nfinished in 0.00s", "explain this"),
            ("error: no such fileWhat is wrong here?", "error: no such file", "What is wrong here?"),
            ("{\n}what is this?", "{\n}", "what is this?"),
        ] {
            assert_eq!(Piped::split(text), Some(Piped { material, request }), "{text}");
        }
        let log = "one two three\n".repeat(20);
        assert_eq!(Piped::split(&format!("{log}Explain it all")).map(|piped| piped.request), Some("Explain it all"));
        for text in [
            "Explain the first failure",
            "somewhat is left\nsomewhat is right",
            "create a.txt with \"Explain this\"",
            "Read a.txt.\nExplain b.txt",
            "re-explain the file",
            "",
        ] {
            assert_eq!(Piped::split(text), None, "{text}");
        }
    }
}
