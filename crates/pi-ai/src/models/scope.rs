//! Several models at once: the scope that a person cycles through.

use std::fmt;

use super::{
    glob::Glob,
    provider::ModelHead,
    reference::{LevelSuffix, Matching, Reference, Resolution, collate, resolve, split_level},
};
use crate::model::ThinkingLevel;

/// The models that patterns stand for, and what was odd about the patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope<M> {
    /// Each model once, in the order of the patterns, with the level that its pattern names.
    pub models: Vec<(M, Option<ThinkingLevel>)>,
    /// What to tell the person who wrote the patterns.
    pub warnings: Vec<ScopeWarning>,
}

/// Something odd about a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeWarning {
    /// The pattern.
    pub pattern: String,
    /// What is odd.
    pub kind: ScopeWarningKind,
}

/// What is odd about a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScopeWarningKind {
    /// No model matches.
    NoMatch,
    /// Several providers have the model; all are in the scope.
    Ambiguous {
        /// Their ids, sorted.
        providers: Vec<String>,
    },
    /// The suffix is no thinking level; it was left out.
    UnknownLevel {
        /// The suffix.
        suffix: String,
    },
}

impl ScopeWarningKind {
    /// A short name of the kind.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoMatch => "no-match",
            Self::Ambiguous { .. } => "ambiguous",
            Self::UnknownLevel { .. } => "invalid-thinking-level",
        }
    }
}

impl fmt::Display for ScopeWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pattern = &self.pattern;
        match &self.kind {
            ScopeWarningKind::NoMatch => write!(f, "no usable model matches `{pattern}`"),
            ScopeWarningKind::Ambiguous { providers } => {
                let providers = providers.join(", ");
                write!(
                    f,
                    "`{pattern}` is a model of several providers ({providers}); write provider/id for one of them"
                )
            }
            ScopeWarningKind::UnknownLevel { suffix } => {
                write!(f, "`{suffix}` in `{pattern}` is not a thinking level; the default level is used")
            }
        }
    }
}

/// Finds what patterns stand for among models that can be used, given in the catalog's order.
///
/// A pattern is a reference (see [`resolve`]) or a glob over `provider/id` or `id`, with or without `:level`.
pub fn resolve_scope<'a>(patterns: &[impl AsRef<str>], models: &[ModelHead<'a>]) -> Scope<ModelHead<'a>> {
    let mut scope = Scope { models: Vec::new(), warnings: Vec::new() };
    for pattern in patterns.iter().map(AsRef::as_ref) {
        if Glob::is_pattern(pattern) {
            scope.add_glob(pattern, models);
        } else {
            scope.add_reference(pattern, models);
        }
    }
    scope
}

impl<'a> Scope<ModelHead<'a>> {
    fn add_glob(&mut self, pattern: &str, models: &[ModelHead<'a>]) {
        let (text, level) = split_level(pattern).map_or((pattern, None), |(base, level)| (base, Some(level)));
        // An id may look like a pattern: `model[1m]`.
        let literal = Reference { text, provider: None, suffix: LevelSuffix::NotRead, matching: Matching::Exact };
        match resolve(&literal, models, |_| true) {
            Resolution::Found { model, .. } => self.add(model, level),
            Resolution::Ambiguous { candidates, .. } => self.add_all(pattern, candidates, level),
            Resolution::NotFound { .. } => {
                let glob = Glob::new(text);
                let fits = |model: &&ModelHead<'_>| {
                    glob.matches(&format!("{}/{}", model.provider, model.id)) || glob.matches(model.id)
                };
                let matches: Vec<_> = models.iter().filter(fits).copied().collect();
                if matches.is_empty() {
                    self.warn(pattern, ScopeWarningKind::NoMatch);
                }
                matches.into_iter().for_each(|model| self.add(model, level));
            }
        }
    }

    fn add_reference(&mut self, pattern: &str, models: &[ModelHead<'a>]) {
        let reference = Reference { suffix: LevelSuffix::Lenient, ..Reference::new(pattern) };
        match resolve(&reference, models, |_| true) {
            Resolution::NotFound { .. } => self.warn(pattern, ScopeWarningKind::NoMatch),
            Resolution::Found { model, level, warning } => {
                if let Some(warning) = warning {
                    self.warn(pattern, ScopeWarningKind::UnknownLevel { suffix: warning.suffix });
                }
                self.add(model, level);
            }
            Resolution::Ambiguous { candidates, level, warning, .. } => {
                if let Some(warning) = warning {
                    self.warn(pattern, ScopeWarningKind::UnknownLevel { suffix: warning.suffix });
                }
                self.add_all(pattern, candidates, level);
            }
        }
    }

    fn add_all(&mut self, pattern: &str, candidates: Vec<ModelHead<'a>>, level: Option<ThinkingLevel>) {
        let mut providers: Vec<String> = candidates.iter().map(|model| model.provider.to_owned()).collect();
        providers.sort_by(|a, b| collate(a, b));
        providers.dedup();
        self.warn(pattern, ScopeWarningKind::Ambiguous { providers });
        candidates.into_iter().for_each(|model| self.add(model, level));
    }

    fn add(&mut self, model: ModelHead<'a>, level: Option<ThinkingLevel>) {
        if !self.models.iter().any(|(known, _)| (known.provider, known.id) == (model.provider, model.id)) {
            self.models.push((model, level));
        }
    }

    fn warn(&mut self, pattern: &str, kind: ScopeWarningKind) {
        self.warnings.push(ScopeWarning { pattern: pattern.to_owned(), kind });
    }
}
