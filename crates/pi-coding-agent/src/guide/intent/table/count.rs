//! Questions how many.

use super::{Captures, Rule, words::*};
use crate::guide::intent::*;
use crate::guide::language::Language;
use crate::guide::utterance::*;

pub(super) const RULES: &[Rule] = &[
    Rule {
        patterns: &[
            "how many lines|line|loc in|of|does|has|are|do|is * {scope:p} * ",
            "how long|big|large is the? file? {scope:p} *",
            "count the? lines|line in|of * {scope:p} *",
            "* number of lines in|of * {scope:p} *",
        ],
        make: |kept, said| {
            Some(Intent::Count { what: Countable::Lines, scope: Some(kept.text(said, "scope")?.to_owned()) })
        },
    },
    Rule {
        patterns: &[
            "how many times|often does|do|is|are? the? word|text|string? {text} occur|occurs|appear|appears|used|mentioned|show in|across * {scope:p} *",
            "how many times|often does|do|is|are? the? word|text|string? {text} occur|occurs|appear|appears|used|mentioned|show *",
            "how often does|do|is|are? the? word|text|string? {text} occur|occurs|appear|appears|used|mentioned|show in|across * {scope:p} *",
            "how often does|do|is|are? the? word|text|string? {text} occur|occurs|appear|appears|used|mentioned|show *",
            "how many|count|number the|of? all? occurrences|mentions|instances|uses|usages of|for? the? word|text? {text} are|in|across|there|do|does * {scope:p} *",
            "how many|count|number the|of? all? occurrences|mentions|instances|uses|usages of|for? the? word|text? {text}",
            "how many todo|todos|fixme|fixmes *",
        ],
        make: |kept, said| {
            let text = kept.text(said, "text").unwrap_or(if said.has(&["fixme", "fixmes"]) { "FIXME" } else { "TODO" });
            let scope = kept.text(said, "scope").map(str::to_owned).or_else(|| scope_after_in(said));
            Some(Intent::Count { what: Countable::Occurrences(without_scope(text).to_owned()), scope })
        },
    },
    Rule {
        patterns: &["how many|much {what}", "count all? the? {what}", "* number|amount|count of {what}"],
        make: count,
    },
];

fn count(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let words: Vec<String> = kept
        .text(said, "what")?
        .to_lowercase()
        .split_whitespace()
        .map(|word| word.trim_matches(['?', '.', ',', '!']).to_owned())
        .collect();
    let has = |candidates: &[&str]| words.iter().take(5).any(|word| candidates.contains(&word.as_str()));
    let scope = scope_after_in(said).or_else(|| first_path(said));
    let language = words.iter().find_map(|word| Language::of_name(word));
    let what = if has(&["crates", "crate"]) {
        Countable::Members(PartKind::Crates)
    } else if has(&["packages", "members", "subprojects"]) {
        Countable::Members(PartKind::Packages)
    } else if has(&["modules"]) {
        Countable::Members(PartKind::Modules)
    } else if has(&["dependencies", "deps"]) {
        Countable::Dependencies
    } else if has(&["commits"]) {
        Countable::Commits
    } else if has(&["tests", "testcases"]) {
        Countable::Tests
    } else if has(&["functions", "function", "methods"]) {
        Countable::Functions
    } else if has(&["words"]) {
        Countable::Words
    } else if has(&["files", "file"]) {
        let extension = words.iter().find_map(|word| word.strip_prefix("*.").or_else(|| word.strip_prefix('.')));
        let by_language = language.and_then(|language| language.extensions().first().copied());
        let named = words
            .first()
            .filter(|word| words.get(1).is_some_and(|next| next == "files") && Language::of_extension(word).is_some());
        Countable::Files { extension: extension.or(by_language).or(named.map(String::as_str)).map(str::to_owned) }
    } else if has(&["lines", "line", "loc", "code"]) {
        Countable::Lines
    } else {
        return None;
    };
    let scope = scope.filter(|scope| {
        !matches!(what, Countable::Files { .. }) || !scope.starts_with(['*', '.']) || scope.contains('/')
    });
    Some(Intent::Count { what, scope })
}

fn without_scope(text: &str) -> &str {
    split_scope(text).0
}
