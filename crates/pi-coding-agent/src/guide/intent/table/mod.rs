//! Requests with a form of their own, as patterns; one file per subject.

mod change;
mod count;
mod explain;
mod facts;
mod folders;
mod git;
mod parts;
mod places;
mod read;
mod run;
mod talk;
mod words;

use std::sync::LazyLock;

pub(super) use words::{ORDINALS, bare, first_path, number_of};

use super::{
    Intent,
    pattern::{Captures, Pattern},
};
use crate::guide::utterance::Utterance;

type Make = fn(&Captures, &Utterance) -> Option<Intent>;

/// Patterns that mean the same, and what they mean. The first one that fits and makes an intent counts.
struct Rule {
    patterns: &'static [&'static str],
    make: Make,
}

/// The subjects in the order in which they are tried: those with free arguments first, general talk last.
const SUBJECTS: [&[Rule]; 11] = [
    change::RULES,
    run::RULES,
    git::RULES,
    count::RULES,
    read::RULES,
    places::RULES,
    parts::RULES,
    facts::RULES,
    folders::RULES,
    explain::RULES,
    talk::RULES,
];

/// Finds the rule that fits.
pub(super) fn look_up(said: &Utterance) -> Option<Intent> {
    static READ: LazyLock<Vec<(Vec<Pattern>, Make)>> = LazyLock::new(|| {
        let read = |rule: &Rule| (rule.patterns.iter().map(|pattern| Pattern::new(pattern)).collect(), rule.make);
        SUBJECTS.into_iter().flatten().map(read).collect()
    });
    READ.iter().find_map(|(patterns, make)| patterns.iter().find_map(|pattern| make(&pattern.fit(said)?, said)))
}
