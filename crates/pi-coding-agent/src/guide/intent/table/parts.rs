//! Questions about the parts of a project.

use super::{Captures, Rule, words::*};
use crate::guide::intent::*;
use crate::guide::utterance::*;

pub(super) const RULES: &[Rule] = &[
    Rule {
        patterns: &[
            "what is|does|do the? crate|package|module|member|library {named:1} *",
            "what is|does|do the? {named:1} crate|package|module|member|library *",
            "explain|describe|summarize|summarise the? crate|package|module|member {named:1} *",
            "explain|describe|summarize|summarise the? {named:1} crate|package|module|member *",
        ],
        make: |kept, said| {
            members(kept, said).filter(|intent| matches!(intent, Intent::Members { named: Some(_), .. }))
        },
    },
    Rule {
        patterns: &[
            "which|what|list|show|name|give|describe|explain|enumerate|summarize|summarise|are|do|does * crates|crate|packages|subpackages|members|modules|subprojects|subproject|projects|components|libraries|libs|apps|services|parts|pieces *",
            "* crates|packages|members|modules|subprojects|components|libraries of|in this|the|my|our *",
        ],
        make: members,
    },
];

fn members(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let kind = if said.has(&["crate", "crates"]) {
        PartKind::Crates
    } else if said.has(&["module", "modules"]) {
        PartKind::Modules
    } else if said.has(&["package", "packages", "subpackages"]) {
        PartKind::Packages
    } else {
        PartKind::Any
    };
    let named = kept.text(said, "named").map(bare).filter(|name| {
        !["the", "this", "each", "every", "a", "all", "in", "of", "these", "which", "main", "whole", "what"]
            .contains(&name.to_lowercase().as_str())
    });
    // "which files depend on crate x", "what dependencies …" are other questions.
    if said.has(&["dependencies", "deps", "depend", "depends", "installed", "outdated", "defined", "files"]) {
        return None;
    }
    Some(Intent::Members { kind, named: named.map(str::to_owned) })
}
