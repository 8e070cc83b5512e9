//! Requests to show the text of a file.

use super::{Captures, Rule, words::*};
use crate::guide::intent::*;
use crate::guide::utterance::*;

pub(super) const RULES: &[Rule] = &[
    Rule {
        patterns: &[
            "<show> * first|top|last|bottom {n:1} lines|line of|from|in the? file? {file:p} *",
            "<show> * lines|line {n:1} to|through|-|until|and {m:1} of|from|in the? file? {file:p} *",
            "<show> * lines|line {n:1} of|from|in the? file? {file:p} *",
            "<show> {file:p} lines|line from? {n:1} to|through|-|until|and {m:1}",
            "<show> {file:p} lines|line {n:1}",
            "<show> me? the? first|top|last|bottom {n:1} lines|line",
            "what is|does|are|stands? on|in|at? line|lines {n:1} of|from|in the? file? {file:p} *",
            "<show> me? the? {n:1} line of|from|in the? file? {file:p} *",
            "what is the? {n:1} line of|from|in the? file? {file:p} *",
            "head|tail {file:p}",
        ],
        make: read_lines,
    },
    Rule {
        patterns: &[
            "<show> me? the? whole|full|complete|entire|raw? file|content|contents|text|source|code of|in|from the? file? called|named? {file:p} *",
            "<show> me? the|whole|full? file {file:p} *",
            "<show> me? {file:p}",
            "<show> me? the? content|contents|text|source of {file:p}",
            "what does the? file? {file:p} say|contain|hold|look *",
            "what is|are written|inside|the? content|contents? in|of|inside the? file {file:p} *",
            "what is the? content|contents of|in the? file? {file:p} *",
        ],
        make: |kept, said| {
            let file = kept.text(said, "file")?;
            if is_listing(said) || file.ends_with('/') || matches!(file, "." | "..") {
                return Some(Intent::Overview { folder: Some(file.to_owned()) });
            }
            Some(Intent::Read { file: file.to_owned(), lines: Lines::All })
        },
    },
];

fn read_lines(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let number = |name: &str| -> Option<usize> { number_of(kept.text(said, name)?) };
    let file = kept.text(said, "file").map(str::to_owned);
    let lines = match (kept.text(said, "n"), number("m")) {
        (Some(n), Some(to)) => Lines::Range(number_of(n)?, to),
        (Some(n), None) => match n.split_once(['-', '–']) {
            Some((from, to)) => Lines::Range(number_of(from)?, number_of(to)?),
            None if said.has(&["first", "top"]) => Lines::First(number_of(n)?),
            None if said.has(&["last", "bottom"]) => Lines::Last(number_of(n)?),
            None => Lines::Range(number_of(n)?, number_of(n)?),
        },
        (None, _) if said.has(&["tail"]) => Lines::Last(10),
        (None, _) => Lines::First(10),
    };
    Some(with_or_without_file(file, |file| Intent::Read { file, lines }))
}

fn is_listing(said: &Utterance) -> bool {
    said.tokens.first().is_some_and(|token| matches!(token.word.as_str(), "list" | "ls"))
}
