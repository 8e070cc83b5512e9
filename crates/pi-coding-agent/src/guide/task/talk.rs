//! What the guide says about itself.

use super::text::{code, list};
use crate::guide::desk::Desk;

pub(super) fn greeting() -> String {
    "Hello. I am the built-in guide: not a language model, but rules that use the same tools. Ask me what is in this folder, \
     what a file does, where a name is defined, or to run the tests."
        .to_owned()
}

pub(super) fn thanks() -> String {
    "You are welcome.".to_owned()
}

pub(super) fn help(desk: &Desk<'_>) -> String {
    let tools: Vec<String> = desk.conversation.tools.iter().map(code).collect();
    let tools =
        if tools.is_empty() { "No tool is active.".to_owned() } else { format!("Active tools: {}.", tools.join(", ")) };
    format!(
        "I am the guide that is built into pi. I am no language model: I recognise certain requests by rules, call the \
         session's tools, and answer from what they return.\n\n{}\n\n{tools} With a provider's key, pi uses a real model instead; \
         `pi --help` says how.",
        abilities()
    )
}

/// What can be asked, as a list.
fn abilities() -> String {
    let abilities = [
        "what is in this folder; what is this project; which crates, packages or modules it has and what each does",
        "explain a file (`explain Cargo.toml`), show it or some lines of it",
        "find where a name is defined or used; search for a text; find files by name",
        "run the tests and say what failed; build; run a command (run `make lint`)",
        "replace \"a\" by \"b\" in a file or everywhere; create a file with a given text; append to, rename or delete a file",
        "count lines, files, functions, tests or occurrences; the largest files; the languages used",
        "what changed, the diff, the last commits (with git); dependencies, version, licence",
    ];
    list(&abilities.map(str::to_owned), abilities.len())
}

pub(in crate::guide) fn not_understood(desk: &Desk<'_>) -> String {
    let pictures = if desk.conversation.has_pictures { " I cannot look at pictures either." } else { "" };
    format!(
        "I do not understand this request. I am pi's built-in guide, which works by rules and not by a language model.{pictures} \
         What I can do:\n\n{}",
        abilities()
    )
}
