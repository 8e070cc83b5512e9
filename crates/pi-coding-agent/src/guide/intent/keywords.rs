//! What is left when no pattern fits: the words that matter, in any order.

use super::{
    Countable, GitQuestion, Intent, Missing, PartKind, Scope, Subject, Usage, WholeWords,
    table::{bare, first_path},
};
use crate::guide::utterance::{Utterance, has_extension, looks_like_identifier, looks_like_path};

/// Makes the most of single words.
pub(super) fn guess(said: &Utterance) -> Option<Intent> {
    let path = first_path(said);
    let name = name_in(said);
    let quoted = said.tokens.iter().find(|token| token.is_quoted()).map(|token| token.word.clone());
    let asks_for_new_code = said.has(&[
        "fix",
        "refactor",
        "implement",
        "improve",
        "optimize",
        "optimise",
        "design",
        "translate",
        "generate",
        "write",
        "develop",
        "debug",
        "rewrite",
        "port",
        "migrate",
        "commit",
        "push",
        "install",
        "deploy",
        "upgrade",
    ]);
    if asks_for_new_code {
        return None;
    }
    if said.has(&["test", "tests", "testsuite"])
        && said
            .has(&["run", "fail", "failed", "fails", "failing", "pass", "passes", "passing", "green", "red", "execute"])
    {
        return Some(Intent::Tests { scope: None, command: None });
    }
    if said.has(&["defined", "define", "defines", "definition", "declared", "declaration", "implemented"])
        && let Some(name) = name.clone().or_else(|| quoted.clone())
    {
        return Some(Intent::Definition { name: bare(&name).to_owned() });
    }
    if said.has(&["used", "usage", "usages", "uses", "calls", "callers", "references", "referenced"])
        && let Some(name) = name.clone().or_else(|| quoted.clone())
    {
        return Some(Intent::Search { text: bare(&name).to_owned(), scope: path, usage: Usage::Name });
    }
    if said.has(&["replace", "substitute"]) {
        let request = Intent::Replace {
            from: String::new(),
            to: String::new(),
            scope: Scope::Unsaid,
            words: WholeWords::Anywhere,
        };
        return Some(Intent::Missing { what: Missing::Content, request: Box::new(request) });
    }
    if said.has(&["search", "grep", "find", "look", "occurrences"])
        && let Some(text) = quoted.clone().or_else(|| name.clone())
    {
        return Some(Intent::Search { text, scope: path, usage: Usage::Text });
    }
    if said.has(&["crate", "crates"])
        && said.has(&["which", "what", "list", "each", "every", "all", "overview", "workspace"])
    {
        return Some(Intent::Members { kind: PartKind::Crates, named: None });
    }
    if said.has(&["packages", "modules", "members", "subprojects", "components"])
        && said.has(&["which", "what", "list", "each", "every", "all", "overview"])
    {
        let kind = if said.has(&["modules"]) { PartKind::Modules } else { PartKind::Packages };
        return Some(Intent::Members { kind, named: None });
    }
    if said.has(&["lines"]) && said.has(&["many", "count", "number"]) {
        return Some(Intent::Count { what: Countable::Lines, scope: path });
    }
    if said.has(&["files"]) && said.has(&["many", "count", "number"]) {
        return Some(Intent::Count { what: Countable::Files { extension: None }, scope: path });
    }
    if said.has(&["changed", "diff", "uncommitted", "modified"]) {
        return Some(Intent::Git(GitQuestion::Changes { file: path }));
    }
    if said.has(&["dependencies", "deps"]) {
        return Some(Intent::Dependencies { of: path });
    }
    if said.has(&[
        "explain",
        "describe",
        "summarize",
        "summarise",
        "summary",
        "purpose",
        "does",
        "mean",
        "about",
        "what",
        "understand",
        "how",
    ]) {
        if let Some(subject) = path.clone().or_else(|| name.clone()) {
            return Some(Intent::Explain { subject: Subject::Named(bare(&subject).to_owned()) });
        }
        if !said.attachments.is_empty() {
            return Some(Intent::Explain { subject: Subject::Attached });
        }
    }
    if said.has(&["folder", "directory", "files"])
        && said.has(&["what", "list", "show", "which", "there", "here", "content", "contents", "contain", "contains"])
    {
        return Some(Intent::Overview { folder: path });
    }
    if said.has(&["project", "repo", "repository", "codebase", "workspace"])
        && said.has(&["what", "explain", "describe", "overview", "about", "summary", "understand"])
    {
        return Some(Intent::Project { folder: path });
    }
    bare_target(said)
}

/// Nothing but a path or a name.
pub(super) fn bare_target(said: &Utterance) -> Option<Intent> {
    let [only] = said.tokens.as_slice() else { return None };
    let text = said.text.get(only.inner.clone())?;
    if looks_like_path(text) {
        return Some(if has_extension(text) || !text.contains('/') {
            Intent::Explain { subject: Subject::Named(text.to_owned()) }
        } else {
            Intent::Overview { folder: Some(text.to_owned()) }
        });
    }
    looks_like_identifier(text).then(|| Intent::Definition { name: bare(text).to_owned() })
}

fn name_in(said: &Utterance) -> Option<String> {
    let texts = said.tokens.iter().map(|token| said.text.get(token.inner.clone()).unwrap_or_default());
    // The first word of a sentence has a capital for another reason.
    let mut candidates = texts.enumerate().filter(|(_, text)| looks_like_identifier(text) && !looks_like_path(text));
    candidates.next().map(|(_, text)| text.to_owned())
}
