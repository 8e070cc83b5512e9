//! Taking what was said apart, for the makers of intents.

use super::Captures;
use crate::guide::intent::*;
use crate::guide::utterance::*;

/// "the file a.txt please" → "a.txt".
pub(in crate::guide::intent) fn scope_text(text: &str) -> &str {
    let text = without_prefix(text, &["the file", "file", "the folder", "the directory", "folder", "directory", "the"]);
    text.trim_end_matches(['.', '!', '?', ',']).trim().trim_matches(['`', '"', '\'', '\u{201c}', '\u{201d}'])
}

pub(in crate::guide::intent) fn without_prefix<'t>(mut text: &'t str, prefixes: &[&str]) -> &'t str {
    while let Some(rest) = prefixes.iter().find_map(|prefix| {
        let rest = text.get(prefix.len()..)?;
        (text.is_char_boundary(prefix.len())
            && text[..prefix.len()].eq_ignore_ascii_case(prefix)
            && rest.starts_with(char::is_whitespace))
        .then(|| rest.trim_start())
    }) {
        text = rest;
    }
    // What was inside quotes is meant without them.
    unquoted(text)
}

pub(in crate::guide::intent) fn unquoted(text: &str) -> &str {
    let said = Utterance::parse(text);
    match said.tokens.as_slice() {
        [one] if one.is_quoted() && one.outer == (0..text.len()) => text.get(one.inner.clone()).unwrap_or(text),
        _ => text,
    }
}

/// A number in digits or as a word, an ordinal one too.
pub(in crate::guide::intent) fn number_of(text: &str) -> Option<usize> {
    const CARDINALS: [&str; 21] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
    ];
    let text = text.trim().trim_matches(['.', ',', '?', '!']).to_lowercase();
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|ending| text.strip_suffix(ending)).unwrap_or(&text);
    let ordinal = || ORDINALS.iter().position(|word| *word == text).map(|index| index + 1);
    digits.parse().ok().or_else(|| CARDINALS.iter().position(|word| *word == text)).or_else(ordinal)
}

/// "first" is 1.
pub(in crate::guide::intent) const ORDINALS: [&str; 10] =
    ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];

/// A name without the signs around it: `foo()` → `foo`.
pub(in crate::guide::intent) fn bare(name: &str) -> &str {
    name.trim()
        .trim_matches(['`', '"', '\'', '?', '!', ',', '\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}'])
        .trim_end_matches("()")
        .trim_end_matches('.')
}

pub(in crate::guide::intent) fn is_everywhere(scope: &str) -> bool {
    matches!(scope_of(scope), Scope::Everywhere)
        || ["code", "files", "source", "sources", "here", "it", "repository"].contains(&scope.to_lowercase().as_str())
}

/// "foo in src/lib.rs" → ("foo", "src/lib.rs"), when what follows the last `in` looks like a place.
pub(in crate::guide::intent) fn split_scope(text: &str) -> (&str, Option<String>) {
    for word in [" in ", " inside ", " within ", " under ", " across "] {
        if let Some((what, place)) = text.rsplit_once(word) {
            let place = scope_text(place);
            if looks_like_path(place) {
                return (unquoted(what.trim()), Some(place.to_owned()));
            }
            if is_everywhere(place) {
                return (unquoted(what.trim()), None);
            }
        }
    }
    (unquoted(text), None)
}

pub(in crate::guide::intent) fn scope_after_in(said: &Utterance) -> Option<String> {
    let at = said.tokens.iter().rposition(|token| {
        !token.is_quoted() && matches!(token.word.as_str(), "in" | "of" | "inside" | "under" | "does")
    })?;
    let rest = said.tokens.get(at + 1..)?;
    rest.iter()
        .map(|token| said.text.get(token.inner.clone()).unwrap_or_default())
        .find(|text| looks_like_path(text))
        .map(str::to_owned)
}

/// The first word that looks like a path.
pub(in crate::guide::intent) fn first_path(said: &Utterance) -> Option<String> {
    let texts = said.tokens.iter().map(|token| said.text.get(token.inner.clone()).unwrap_or_default());
    texts.into_iter().find(|text| looks_like_path(text) && !matches!(*text, "." | "..")).map(str::to_owned)
}

pub(in crate::guide::intent) fn scope_of(text: &str) -> Scope {
    let lower = text.to_lowercase();
    let everywhere = [
        "all files",
        "every file",
        "whole",
        "entire",
        "everywhere",
        "project",
        "repo",
        "codebase",
        "this folder",
        "workspace",
        "all the files",
    ];
    if everywhere.iter().any(|word| lower.starts_with(word)) || lower.starts_with("this ") && lower != "this file" {
        Scope::Everywhere
    } else {
        Scope::In(text.to_owned())
    }
}

pub(in crate::guide::intent) fn kept_is_quoted(kept: &Captures, said: &Utterance, name: &str) -> bool {
    kept.range(name)
        .and_then(|range| said.tokens.get(range))
        .is_some_and(|tokens| tokens.len() == 1 && tokens[0].is_quoted())
}

pub(in crate::guide::intent) fn after(said: &Utterance, markers: &[&str], vague: &[&str]) -> Option<String> {
    let at = said.tokens.iter().rposition(|token| markers.contains(&token.word.as_str()))?;
    let next =
        said.tokens.get(at + 1..)?.iter().find(|token| !["the", "crate", "package"].contains(&token.word.as_str()))?;
    let text = said.text.get(next.inner.clone())?;
    (!vague.contains(&next.word.as_str())).then(|| text.to_owned())
}

/// A request that asks for its file when none was named.
pub(in crate::guide::intent) fn with_or_without_file(
    file: Option<String>,
    request: impl FnOnce(String) -> Intent,
) -> Intent {
    match file {
        Some(file) => request(file),
        None => Intent::Missing { what: Missing::File, request: Box::new(request(String::new())) },
    }
}
