//! Requests that lean on what was said before: "and the second one?", "run them again", "explain it".

use super::{
    Countable, GitQuestion, Intent, Missing, Scope, Subject, keywords,
    table::{ORDINALS, bare, number_of},
};
use crate::guide::utterance::{TokenKind, Utterance, has_extension, looks_like_path};

/// The exchange before: what was asked and what was answered.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::guide) struct Earlier {
    intent: Intent,
    /// The file or place that the talk is about.
    focus: Option<String>,
    /// The list in the answer: each item's text.
    items: Vec<String>,
}

impl Earlier {
    pub(in crate::guide) fn new(intent: Intent, answer: &str) -> Self {
        let items: Vec<String> = answer.lines().filter_map(item_text).map(str::to_owned).collect();
        let focus = focus_of(&intent)
            .or_else(|| code_spans(answer).find(|span| looks_like_path(place(span).0)).map(str::to_owned));
        Self { intent, focus, items }
    }

    /// What a request means that has no meaning of its own.
    pub(super) fn resolve(&self, said: &Utterance) -> Option<Intent> {
        if is_repetition(said) {
            return Some(self.intent.clone());
        }
        if let Intent::Replace { from, to, words, .. } = &self.intent
            && said.tokens.len() <= 3
            && said.has(&["everywhere", "all", "both", "every"])
        {
            return Some(Intent::Replace {
                from: from.clone(),
                to: to.clone(),
                scope: Scope::Everywhere,
                words: *words,
            });
        }
        if let Some(number) = ordinal(said) {
            let index = match number {
                Ordinal::Nth(n) => n.checked_sub(1)?,
                Ordinal::Last => self.items.len().checked_sub(1)?,
            };
            return self.about_item(self.items.get(index)?);
        }
        let target = self.bare_target(said)?;
        if let Intent::Missing { what: Missing::File, request } = &self.intent {
            return with_file(request, target);
        }
        self.items
            .iter()
            .find(|item| key_of(item).is_some_and(|key| key.trim_end_matches('/') == target.trim_end_matches('/')))
            .and_then(|item| self.about_item(item))
            .or_else(|| self.about(target))
    }

    /// The request with "it", "that file" and the like replaced by what the talk is about.
    pub(super) fn spell_out(&self, said: &Utterance) -> Option<String> {
        let focus = self.focus.as_deref().map(|focus| place(focus).0)?;
        let at = said.tokens.iter().position(|token| {
            token.kind == TokenKind::Word && matches!(token.word.as_str(), "it" | "that" | "this" | "them" | "the")
        })?;
        let pronoun = &said.tokens[at];
        let noun = said.tokens.get(at + 1).filter(|token| {
            matches!(token.word.as_str(), "file" | "one" | "folder" | "directory" | "module" | "script")
        });
        if pronoun.word == "the" && noun.is_none() {
            return None;
        }
        let end = noun.unwrap_or(pronoun).inner.end;
        let before = said.text.get(..pronoun.inner.start)?;
        Some(format!("{before}{focus}{}", said.text.get(end..)?))
    }

    fn bare_target<'s>(&self, said: &'s Utterance) -> Option<&'s str> {
        let tokens: Vec<_> = said
            .tokens
            .iter()
            .filter(|token| {
                !matches!(
                    token.word.as_str(),
                    "the"
                        | "file"
                        | "crate"
                        | "folder"
                        | "module"
                        | "package"
                        | "one"
                        | "in"
                        | "for"
                        | "of"
                        | "function"
                )
            })
            .collect();
        match tokens.as_slice() {
            [only] if said.continues || keywords::bare_target(said).is_some() || self.names(&only.word) => {
                Some(bare(said.text.get(only.inner.clone())?))
            }
            _ => None,
        }
    }

    fn names(&self, word: &str) -> bool {
        self.items.iter().any(|item| key_of(item).is_some_and(|key| key.to_lowercase() == word))
    }

    fn about_item(&self, item: &str) -> Option<Intent> {
        let key = key_of(item)?;
        if let Some(line) = line_in(item) {
            let spans = || code_spans(item);
            let with_place = spans().find_map(|span| {
                let (file, line) = place(span);
                Some((file.to_owned(), line?))
            });
            let in_focus = || self.focus.as_deref().map(|focus| (place(focus).0.to_owned(), line));
            if let Some((file, line)) = with_place.or_else(in_focus) {
                return Some(Intent::Explain { subject: Subject::At { file, line } });
            }
        }
        self.about(&key)
    }

    /// The request before, about something else.
    fn about(&self, target: &str) -> Option<Intent> {
        let target = target.to_owned();
        let (file, line) = place(&target);
        if let Some(line) = line {
            return Some(Intent::Explain { subject: Subject::At { file: file.to_owned(), line } });
        }
        Some(match &self.intent {
            Intent::Members { kind, .. } => Intent::Members { kind: *kind, named: Some(target) },
            Intent::Overview { folder } | Intent::Project { folder } => {
                let path = match folder.as_deref().filter(|folder| *folder != ".") {
                    Some(folder) if !target.starts_with(folder) => format!("{}/{target}", folder.trim_end_matches('/')),
                    _ => target,
                };
                if path.ends_with('/') {
                    Intent::Overview { folder: Some(path) }
                } else {
                    Intent::Explain { subject: Subject::Named(path) }
                }
            }
            Intent::Read { lines, .. } => Intent::Read { file: target, lines: *lines },
            Intent::Definition { .. } if !has_extension(&target) => Intent::Definition { name: target },
            Intent::Search { scope, usage, .. } if !looks_like_path(&target) => {
                Intent::Search { text: target, scope: scope.clone(), usage: *usage }
            }
            Intent::Search { text, usage, .. } => {
                Intent::Search { text: text.clone(), scope: Some(target), usage: *usage }
            }
            Intent::Tests { .. } => Intent::Tests { scope: Some(target), command: None },
            Intent::Count { what: Countable::Occurrences(text), .. } if looks_like_path(&target) => {
                Intent::Count { what: Countable::Occurrences(text.clone()), scope: Some(target) }
            }
            Intent::Count { what: Countable::Occurrences(_), scope } => {
                Intent::Count { what: Countable::Occurrences(target), scope: scope.clone() }
            }
            Intent::Count { what, .. } => Intent::Count { what: what.clone(), scope: Some(target) },
            Intent::Git(GitQuestion::Changes { .. } | GitQuestion::Diff { .. }) => {
                Intent::Git(GitQuestion::Diff { file: Some(target) })
            }
            Intent::Git(GitQuestion::Log { .. }) if looks_like_path(&target) => {
                Intent::Git(GitQuestion::Log { file: Some(target) })
            }
            Intent::Git(GitQuestion::Log { .. }) => Intent::Run { command: format!("git show --stat {target}") },
            Intent::Replace { from, to, words, .. } => {
                Intent::Replace { from: from.clone(), to: to.clone(), scope: Scope::In(target), words: *words }
            }
            Intent::Dependencies { .. } => Intent::Dependencies { of: Some(target) },
            Intent::Fact { .. } => Intent::Fact { key: target },
            _ => Intent::Explain { subject: Subject::Named(target) },
        })
    }
}

/// Completes a request that lacked its file.
fn with_file(request: &Intent, file: &str) -> Option<Intent> {
    let mut request = request.clone();
    match &mut request {
        Intent::Replace { scope, .. } => *scope = Scope::In(file.to_owned()),
        Intent::Insert { file: missing, .. } | Intent::Read { file: missing, .. } => *missing = file.to_owned(),
        Intent::Count { scope, .. } => *scope = Some(file.to_owned()),
        _ => return None,
    }
    Some(request)
}

fn focus_of(intent: &Intent) -> Option<String> {
    match intent {
        Intent::Read { file, .. } | Intent::Insert { file, .. } => Some(file.clone()),
        Intent::Create { file, .. } => Some(file.clone()),
        Intent::Move { to, .. } => Some(to.clone()),
        Intent::Replace { scope: Scope::In(path), .. } => Some(path.clone()),
        Intent::Explain { subject: Subject::Named(name) } if looks_like_path(name) => Some(name.clone()),
        Intent::Explain { subject: Subject::At { file, .. } } => Some(file.clone()),
        Intent::Overview { folder } | Intent::Project { folder } => folder.clone(),
        Intent::Count { scope, .. } => scope.clone(),
        Intent::Several(all) => all.iter().rev().find_map(focus_of),
        Intent::Missing { request, .. } => focus_of(request).filter(|focus| !focus.is_empty()),
        _ => None,
    }
}

fn is_repetition(said: &Utterance) -> bool {
    let words: Vec<&str> = said
        .words()
        .filter(|word| !matches!(*word, "it" | "them" | "that" | "this" | "the" | "do" | "run" | "try" | "please"))
        .collect();
    matches!(
        words.as_slice(),
        ["again"] | ["once", "more"] | ["rerun"] | ["repeat"] | ["one", "more", "time"] | ["another", "time"]
    )
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ordinal {
    Nth(usize),
    Last,
}

/// "the second one", "number 3", "#2", "the last".
fn ordinal(said: &Utterance) -> Option<Ordinal> {
    let fillers = [
        "the", "one", "number", "item", "of", "them", "these", "those", "that", "about", "explain", "show", "me",
        "open", "describe", "more", "on", "is", "what", "does", "do", "it", "tell", "in", "detail", "crate", "file",
        "failure", "package", "module", "entry", "result", "no", "read", "say", "mean", "test", "failed", "why", "did",
        "fail", "for", "function", "folder", "commit", "look", "at", "give", "look", "match",
    ];
    let mut found = None;
    for word in said.words() {
        let number =
            ORDINALS.iter().position(|known| *known == word).map(|index| Ordinal::Nth(index + 1)).or_else(|| {
                let digits = word
                    .trim_start_matches('#')
                    .trim_end_matches("st")
                    .trim_end_matches("nd")
                    .trim_end_matches("rd")
                    .trim_end_matches("th");
                let numbered = word.starts_with('#')
                    || said.has(&["number", "item", "no", "one"])
                    || said.tokens.len() == 1
                    || digits.len() < word.len();
                (numbered && digits.chars().all(|c| c.is_ascii_digit()))
                    .then(|| number_of(digits))
                    .flatten()
                    .map(Ordinal::Nth)
            });
        let number = number.or_else(|| (word == "last" && !said.has(&["commit", "lines"])).then_some(Ordinal::Last));
        match number {
            Some(number) if found.is_none() => found = Some(number),
            Some(_) => return None,
            None if fillers.contains(&word) => {}
            None => return None,
        }
    }
    found.filter(|_| said.tokens.iter().all(|token| !token.is_quoted()))
}

/// The text of a list item at the outer level.
fn item_text(line: &str) -> Option<&str> {
    if let Some(text) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
        return Some(text);
    }
    let (number, text) = line.split_once(". ")?;
    (!number.is_empty() && number.len() <= 3 && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

/// What an item is about: its first code span, else the words before a colon or a dash.
fn key_of(item: &str) -> Option<String> {
    if let Some(span) = code_spans(item).next() {
        return Some(span.to_owned());
    }
    let end = item.find([':', '—', '–']).unwrap_or(item.len());
    let key = item.get(..end)?.trim().trim_matches('*');
    (!key.is_empty()).then(|| key.to_owned())
}

fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2).filter(|span| !span.is_empty() && !span.contains('\n'))
}

/// `src/a.rs:12` as a file and a line; without a line the whole text.
fn place(text: &str) -> (&str, Option<usize>) {
    match text.rsplit_once(':') {
        Some((file, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) && !file.ends_with(':') => {
            // `src/a.rs:12:5` has a column too.
            match (file.rsplit_once(':'), line.parse()) {
                (Some((inner, number)), _) if number.parse::<usize>().is_ok() => (inner, number.parse().ok()),
                (_, Ok(line)) => (file, Some(line)),
                (_, Err(_)) => (text, None),
            }
        }
        _ => (text, None),
    }
}

fn line_in(item: &str) -> Option<usize> {
    let by_place = code_spans(item).find_map(|span| place(span).1);
    by_place.or_else(|| {
        let (_, after) = item.split_once("line ")?;
        after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    })
}
