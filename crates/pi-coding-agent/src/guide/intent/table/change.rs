//! Requests to change files. Their arguments may contain any word.

use super::{Captures, Rule, words::*};
use crate::guide::intent::*;
use crate::guide::utterance::*;

pub(super) const RULES: &[Rule] = &[
    Rule {
        patterns: &[
            "replace|substitute|change|swap|rename|update|turn|convert * {a:q} by|with|to|into|for|as|-> * {b:q} everywhere|throughout *",
            "replace|substitute|change|swap|rename|update|turn|convert * {a:q} by|with|to|into|for|as|-> * {b:q} in|inside|within|of|across {scope}",
            "in|inside|within {scope} replace|substitute|change|swap|rename|update|turn|convert * {a:q} by|with|to|into|for|as|-> * {b:q}",
            "replace|substitute|change|swap|rename|update|turn|convert * {a:q} in|inside|within {scope} by|with|to|into|-> * {b:q}",
            "in|inside|within {scope} * {a:q} should|must be|read|become {b:q} *",
            "replace|substitute|change|swap|rename|update|turn|convert * {a:q} by|with|to|into|for|as|-> * {b:q}",
            "use {b:q} instead of {a:q} in {scope}",
            "use {b:q} instead of {a:q}",
            "replace|substitute|change|swap|rename {a} by|with|to|into|-> {b} in|inside|within|across {scope}",
            "in|inside|within {scope} replace|substitute|change|swap|rename {a} by|with|to|into|-> {b}",
            "replace|substitute|change|swap|rename {a} in|inside|within {scope} by|with|to|into|-> {b}",
            "replace|substitute|change|swap|rename {a} by|with|to|into|-> {b} everywhere|throughout *",
            "use {b} instead of {a} in {scope}",
        ],
        make: replace,
    },
    Rule { patterns: &["rename|move|mv the? file|folder? {a:p} to|into|as|-> {b:p}"], make: rename },
    Rule { patterns: &["replace|substitute|change|swap|rename {a} by|with|to|into|-> {b}"], make: replace },
    Rule {
        patterns: &[
            "create|make|add|mkdir a|the? new? empty? folder|directory|dir called|named? {path:p}",
            "create|make a|the? new? empty? folder|directory|dir called|named? {path:1}",
            "mkdir {path:1}",
        ],
        make: |kept, said| Some(Intent::MakeFolder { folder: kept.text(said, "path")?.to_owned() }),
    },
    Rule {
        patterns: &[
            "create|make|write|add|generate|produce|overwrite a|an|the|me? new? empty? text|source|small|simple? file|script|document|module|test? called|named|at? {path:p} with|containing|holding|saying|having|that|which *",
            "overwrite the? file? {path:p} with *",
            "create|make|write|add|generate|produce|touch|overwrite a|an|the|me? new? empty? text|source|small|simple? file|script|document|module|test? called|named|at? {path:p}",
            "create|make|write|add|generate|produce|touch|overwrite an? empty? {path:p}",
            "create|make|write|add|generate|produce|touch|overwrite {path:p} * {content:q} *",
            "create|make|write|generate a|an|the? new? file|script|document with * {content:q} called|named|at|in|as {path:p}",
        ],
        make: create,
    },
    Rule {
        patterns: &[
            "append|add|insert|put * {text:q} to|at|into|in|on the? very? top|beginning|start|head of|in * {file:p}",
            "append|add|insert|put * {text:q} to|at|into|in|on the? very? end|bottom of|in * {file:p}",
            "append|add|insert|put * {text:q} before|above * {anchor:q} to|in|into|of * {file:p}",
            "append|add|insert|put * {text:q} after|below|behind * {anchor:q} to|in|into|of * {file:p}",
            "append|add|insert|put in|to * {file:p} * {text:q}",
            "append|add * {text:q} to|into|in * {file:p}",
            "append|add a|the? line|text|words? {text} to|at|into|in the? end|bottom? of? the? file? {file:p}",
            "append|add a|the? new? line|lines|text {text:q}",
            "append {text:q}",
        ],
        make: insert,
    },
    Rule {
        patterns: &[
            "write|put|save|store|insert {content:q} to|into|in|as|at a|the? new? file? called|named? {path:p}",
            "write|put|save|store a|the? text|line|words? {content} to|into|as a|the? new? file? called|named? {path:p}",
        ],
        make: create,
    },
    Rule {
        patterns: &[
            "remove|delete|drop|erase|strip * {a:q} from|in|out of? the? file? {scope:p}",
            "remove|delete|drop|erase|strip all? every? the? occurrences|word|text|line|lines? of? {a} from|in the? file? {scope:p}",
        ],
        make: remove,
    },
    Rule {
        patterns: &["remove|delete|rm|erase the? file? called|named? {file:p}"],
        make: |kept, said| Some(Intent::Delete { file: kept.text(said, "file")?.to_owned() }),
    },
];

fn replace(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let (from, to) = (kept.text(said, "a")?, kept.text(said, "b")?);
    let from = without_prefix(
        from,
        &[
            "all occurrences of",
            "every occurrence of",
            "each occurrence of",
            "the occurrences of",
            "the word",
            "the text",
            "the string",
            "the name",
            "all",
            "every",
        ],
    );
    // A whole sentence is no text to be replaced: something else was meant.
    if from.is_empty() || from.split_whitespace().count() > 12 && !kept_is_quoted(kept, said, "a") {
        return None;
    }
    let renames = said.tokens.first().is_some_and(|token| token.word == "rename");
    let scope = match kept.text(said, "scope").map(scope_text) {
        Some(scope) => scope_of(scope),
        None if said.has(&["everywhere", "throughout"]) => Scope::Everywhere,
        None => Scope::Unsaid,
    };
    if renames && scope == Scope::Unsaid && looks_like_path(from) && looks_like_path(to) {
        return None;
    }
    let words = if renames && looks_like_word(from) { WholeWords::Only } else { WholeWords::Anywhere };
    Some(Intent::Replace { from: from.to_owned(), to: to.to_owned(), scope, words })
}

fn looks_like_word(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn rename(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let (from, to) = (kept.text(said, "a")?, kept.text(said, "b")?);
    let moves = said.tokens.first().is_some_and(|token| matches!(token.word.as_str(), "move" | "mv"));
    (moves || looks_like_path(from) && looks_like_path(to))
        .then(|| Intent::Move { from: from.to_owned(), to: to.to_owned() })
}

fn create(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let range = kept.range("path")?;
    let file = kept.text(said, "path")?.trim_end_matches([':', ',']);
    if !looks_like_path(file) && !said.has(&["file", "script", "document"]) {
        return None;
    }
    // "add a test", "make it work": a request to write code, which is not the creation of a file.
    let verb = said.tokens.first()?.word.as_str();
    if verb == "add" && !said.has(&["file", "folder"]) {
        return None;
    }
    let existing = if verb == "overwrite" || said.has(&["overwrite", "overwriting"]) {
        Existing::Overwrite
    } else {
        Existing::Keep
    };
    let content = match kept.text(said, "content") {
        Some(content) => Some(content.to_owned()),
        None => content_after(said, range.end),
    };
    if content.is_none() && !said.has(&["empty", "touch"]) && said.tokens.len() > range.end {
        let request = Intent::Create { file: file.to_owned(), content: None, existing };
        return Some(Intent::Missing { what: Missing::Content, request: Box::new(request) });
    }
    Some(Intent::Create { file: file.to_owned(), content: content.or(Some(String::new())), existing })
}

/// The content that is given behind a path: the words after `with …` or a colon; a quote or a block without its signs.
fn content_after(said: &Utterance, from: usize) -> Option<String> {
    const LEADS: [&str; 18] = [
        "with",
        "containing",
        "holding",
        "saying",
        "having",
        "that",
        "which",
        "contains",
        "says",
        "has",
        "the",
        "following",
        "content",
        "contents",
        "text",
        "line",
        "lines",
        "just",
    ];
    // These say that the words behind them are the content, whatever they are.
    const NAMES: [&str; 9] =
        ["content", "contents", "text", "line", "lines", "containing", "contains", "saying", "says"];
    const DESCRIBES: [&str; 10] =
        ["a", "an", "some", "prints", "does", "code", "tests", "reads", "computes", "implements"];
    let rest = said.tokens.get(from..)?;
    let leads = rest.iter().take_while(|token| !token.is_quoted() && LEADS.contains(&token.word.as_str())).count();
    let first = rest.get(leads)?;
    if first.is_quoted() {
        return Some(first.word.clone());
    }
    let named = rest.iter().take(leads).any(|token| NAMES.contains(&token.word.as_str()));
    // "with a function that …" asks for code that nobody wrote.
    let described = DESCRIBES.contains(&first.word.as_str()) && !named;
    if leads > 0 && !described {
        return Some(said.rest_from(from + leads).to_owned()).filter(|content| !content.is_empty());
    }
    rest.iter().find(|token| token.is_quoted()).map(|token| token.word.clone())
}

fn insert(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let file = kept.text(said, "file").map(str::to_owned);
    if file.as_deref().is_some_and(|file| !looks_like_path(file)) {
        return None;
    }
    let text = kept.text(said, "text")?.to_owned();
    let place = match kept.text(said, "anchor") {
        Some(anchor) if said.has(&["before", "above"]) => Place::Before(anchor.to_owned()),
        Some(anchor) => Place::After(anchor.to_owned()),
        None if said.has(&["top", "beginning", "start", "head"]) => Place::Top,
        None => Place::End,
    };
    Some(with_or_without_file(file, |file| Intent::Insert { text, file, place }))
}

fn remove(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let from =
        without_prefix(kept.text(said, "a")?, &["all occurrences of", "the word", "the text", "the line", "the"]);
    Some(Intent::Replace {
        from: from.to_owned(),
        to: String::new(),
        scope: Scope::In(kept.text(said, "scope")?.to_owned()),
        words: WholeWords::Anywhere,
    })
}
