//! Questions to git.

use super::{Rule, words::*};
use crate::guide::intent::*;

pub(super) const RULES: &[Rule] = &[
    Rule {
        patterns: &[
            "what|which * changed|changes|modified *",
            "what did|have i|we|you|it|they change|changed|modify|modified|edit|edited|touch *",
            "git status",
            "is|are * uncommitted|unstaged|dirty *",
            "show|list|give me? the|my|all? uncommitted|unstaged|local|current|recent? changes|modifications *",
        ],
        make: |_, said| {
            let file = first_path(said);
            Some(Intent::Git(if said.has(&["commit", "commits"]) && !said.has(&["uncommitted"]) {
                GitQuestion::LastCommit
            } else {
                GitQuestion::Changes { file }
            }))
        },
    },
    Rule {
        patterns: &["show|print|give|see|what|which me? is? the|a|my? diff|diffs|patch *", "git diff *", "diff *"],
        make: |_, said| Some(Intent::Git(GitQuestion::Diff { file: first_path(said) })),
    },
    Rule {
        patterns: &["* last|latest|newest|previous|recent commit *", "git show *"],
        make: |_, said| (!said.has(&["commits"])).then_some(Intent::Git(GitQuestion::LastCommit)),
    },
    Rule {
        patterns: &["* commits|history|changelog|log *", "git log *"],
        make: |_, said| {
            if said.has(&["many", "number", "count"]) {
                return Some(Intent::Count { what: Countable::Commits, scope: None });
            }
            let about_git = said.has(&["commit", "commits", "history", "git"]);
            about_git.then(|| Intent::Git(GitQuestion::Log { file: first_path(said) }))
        },
    },
    Rule {
        patterns: &["which|what|current|on * branch|branches *", "git branch *", "show|list the? branch|branches *"],
        make: |_, _| Some(Intent::Git(GitQuestion::Branch)),
    },
];
