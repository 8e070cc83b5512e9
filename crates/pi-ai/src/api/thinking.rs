//! A model's own words for how hard to think.

use crate::model::{Model, ThinkingLevel};

/// What a model calls "not at all".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Off<'a> {
    /// It has a word for it.
    Word(&'a str),
    /// Nothing is known.
    Unnamed,
    /// It cannot be turned off.
    Unsupported,
}

impl<'a> Off<'a> {
    pub(crate) fn word(self) -> Option<&'a str> {
        match self {
            Self::Word(word) => Some(word),
            Self::Unnamed | Self::Unsupported => None,
        }
    }
}

pub(crate) fn off_word(model: &Model) -> Off<'_> {
    match model.thinking_level_map.get(&ThinkingLevel::Off) {
        Some(Some(word)) => Off::Word(word),
        Some(None) => Off::Unsupported,
        None => Off::Unnamed,
    }
}

/// The model's word for a level, else the level's name.
pub(crate) fn effort_word(model: &Model, level: ThinkingLevel) -> &str {
    model.mapped_level(level).unwrap_or(level.as_str())
}
