//! A small pattern language over tokens, so that what the guide understands is a table.
//!
//! A pattern is words between blanks: `a|b` one of several words, `a?` an optional one, `*` any number of tokens,
//! `{x}` one or more tokens that are kept, `{x:q}` one quoted token, `{x:p}` one token that may be a path, `{x:1}` one
//! token. It has to fit from the first token to the last.

use std::{collections::HashMap, ops::Range};

use crate::guide::utterance::{Token, Utterance, looks_like_path};

/// What a pattern kept, as ranges of tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Captures(HashMap<&'static str, Range<usize>>);

impl Captures {
    pub(super) fn range(&self, name: &str) -> Option<Range<usize>> {
        self.0.get(name).cloned()
    }

    /// The original text that was kept under a name.
    pub(super) fn text<'u>(&self, said: &'u Utterance, name: &str) -> Option<&'u str> {
        Some(said.slice(self.range(name)?)).filter(|text| !text.is_empty())
    }
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Many,
    One,
    Quoted,
    Path,
}

#[derive(Clone, Debug)]
enum Element {
    Words { choices: Vec<&'static str>, optional: bool },
    Any,
    Keep { name: &'static str, slot: Slot },
}

/// A pattern, read once.
#[derive(Clone, Debug)]
pub(super) struct Pattern(Vec<Element>);

impl Pattern {
    pub(super) fn new(text: &'static str) -> Self {
        Self(text.split_whitespace().map(element).collect())
    }

    /// Fits the pattern to everything that was said; the shortest captures win.
    pub(super) fn fit(&self, said: &Utterance) -> Option<Captures> {
        // Most patterns lack one of their words: looking for those first is cheap.
        let has = |choices: &[&str]| {
            said.tokens.iter().any(|token| !token.is_quoted() && choices.contains(&token.word.as_str()))
        };
        let lacks_a_word = self
            .0
            .iter()
            .any(|element| matches!(element, Element::Words { choices, optional: false } if !has(choices)));
        if lacks_a_word {
            return None;
        }
        let mut captures = Captures::default();
        // Backtracking is exponential in theory; the budget makes a long text fail instead of taking long.
        let mut budget = 20_000;
        fit_from(&self.0, &said.tokens, 0, &mut captures, &mut budget).then_some(captures)
    }
}

fn element(text: &'static str) -> Element {
    if text == "*" {
        return Element::Any;
    }
    if let Some(inner) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        let (name, slot) = match inner.split_once(':') {
            Some((name, "q")) => (name, Slot::Quoted),
            Some((name, "p")) => (name, Slot::Path),
            Some((name, _)) => (name, Slot::One),
            None => (inner, Slot::Many),
        };
        return Element::Keep { name, slot };
    }
    let (choices, optional) = match text.strip_suffix('?').filter(|rest| !rest.is_empty()) {
        Some(choices) => (choices, true),
        None => (text, false),
    };
    let choices = CLASSES.iter().find(|(name, _)| *name == choices).map_or(choices, |(_, words)| words);
    Element::Words { choices: choices.split('|').collect(), optional }
}

/// Names for sets of words, so that patterns stay short.
const CLASSES: [(&str, &str); 2] = [
    ("<show>", "show|print|display|cat|read|open|view|output|give|see|type|dump|list"),
    (
        "<kind>",
        "function|fn|method|struct|class|enum|trait|type|interface|constant|const|macro|variable|symbol|module|field|name|identifier",
    ),
];

fn fit_from(elements: &[Element], tokens: &[Token], at: usize, captures: &mut Captures, budget: &mut u32) -> bool {
    *budget = budget.saturating_sub(1);
    if *budget == 0 {
        return false;
    }
    let Some((element, rest)) = elements.split_first() else { return at == tokens.len() };
    match element {
        Element::Words { choices, optional } => {
            let fits = tokens.get(at).is_some_and(|token| !token.is_quoted() && choices.contains(&token.word.as_str()));
            (fits && fit_from(rest, tokens, at + 1, captures, budget))
                || (*optional && fit_from(rest, tokens, at, captures, budget))
        }
        Element::Any => (at..=tokens.len()).any(|next| fit_from(rest, tokens, next, captures, budget)),
        Element::Keep { name, slot } => {
            let most = match slot {
                Slot::Many => tokens.len(),
                Slot::One | Slot::Quoted | Slot::Path => at + 1,
            };
            let accepted = tokens.get(at).is_some_and(|token| match slot {
                Slot::Many | Slot::One => true,
                Slot::Quoted => token.is_quoted(),
                Slot::Path => looks_like_path(&token.word) || token.is_quoted() && !token.word.contains('\n'),
            });
            accepted
                && (at + 1..=most.min(tokens.len())).any(|end| {
                    captures.0.insert(name, at..end);
                    fit_from(rest, tokens, end, captures, budget)
                })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(pattern: &'static str, text: &str, name: &str) -> Option<String> {
        let said = Utterance::parse(text);
        Some(Pattern::new(pattern).fit(&said)?.text(&said, name)?.to_owned())
    }

    #[test]
    fn captures_keep_the_original_text() {
        let pattern = "replace {a} by|with {b} in {file:p}";
        assert_eq!(kept(pattern, "replace Foo Bar with \"x  y\" in a.txt", "a").unwrap(), "Foo Bar");
        assert_eq!(kept(pattern, "replace Foo Bar with \"x  y\" in a.txt", "b").unwrap(), "x  y");
        assert_eq!(kept(pattern, "replace Foo with Bar in a.txt", "file").unwrap(), "a.txt");
        assert_eq!(kept(pattern, "replace Foo with Bar in the file", "file"), None);
    }

    #[test]
    fn optional_words_and_gaps_may_be_missing() {
        let pattern = Pattern::new("run the? tests|test *");
        for text in ["run tests", "run the tests", "run the test and say what failed"] {
            assert!(pattern.fit(&Utterance::parse(text)).is_some(), "{text}");
        }
        assert!(pattern.fit(&Utterance::parse("run the program")).is_none());
    }
}
