//! Which model a person means: `provider/id`, an id, or a part of either, with a thinking level behind a colon.

use std::{cmp::Ordering, fmt};

use super::provider::ModelHead;
use crate::model::ThinkingLevel;

/// What a person typed, and how generously to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference<'a> {
    /// The text.
    pub text: &'a str,
    /// Only this provider's models.
    pub provider: Option<&'a str>,
    /// What a suffix behind the last colon means.
    pub suffix: LevelSuffix,
    /// Whether a part of an id or name is enough.
    pub matching: Matching,
}

impl<'a> Reference<'a> {
    /// A reference as it is typed on a command line: a part of an id is enough, an unknown suffix is an error.
    pub fn new(text: &'a str) -> Self {
        Self { text, provider: None, suffix: LevelSuffix::Strict, matching: Matching::Partial }
    }
}

/// What a suffix behind the last colon of a reference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelSuffix {
    /// It is part of the id.
    NotRead,
    /// A thinking level; a suffix that is none is part of the id.
    Strict,
    /// A thinking level; a suffix that is none is left out, with a warning.
    Lenient,
}

/// How much of an id a reference must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// All of it.
    Exact,
    /// A part of it, or of the model's name.
    Partial,
}

/// What a reference means. `M` is whatever the candidates were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution<M> {
    /// One model.
    Found {
        /// The model.
        model: M,
        /// The level that the reference names.
        level: Option<ThinkingLevel>,
        /// The suffix was no level and was left out.
        warning: Option<UnknownSuffix>,
    },
    /// Several providers have it, and nothing says which is meant.
    Ambiguous {
        /// Their models, in the catalog's order.
        candidates: Vec<M>,
        /// How many of them can be used.
        usable: usize,
        /// The level that the reference names.
        level: Option<ThinkingLevel>,
        /// The suffix was no level and was left out.
        warning: Option<UnknownSuffix>,
    },
    /// None.
    NotFound {
        /// The provider is known: the id may be one that the catalog lacks.
        target: Option<UnknownModel<M>>,
    },
}

/// A suffix that is no thinking level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSuffix {
    /// The suffix.
    pub suffix: String,
    /// The reference that it was found in.
    pub text: String,
}

impl fmt::Display for UnknownSuffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { suffix, text } = self;
        let levels = ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ");
        write!(f, "`{suffix}` in `{text}` is not a thinking level ({levels}); the default level is used")
    }
}

/// An id that a known provider does not list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownModel<M> {
    /// The first of the provider's models.
    pub sample: M,
    /// The reference without the provider.
    pub text: String,
    /// The same without a thinking level.
    pub id: String,
    /// The level.
    pub level: Option<ThinkingLevel>,
}

/// Finds what a reference means among models, given in the catalog's order.
///
/// `usable` says of a provider whether it has a credential. That only decides between providers: the one model that
/// matches is found without credentials, too.
///
/// ```
/// use pi_ai::models::{ModelHead, Reference, Resolution, resolve};
/// let models = [ModelHead { provider: "anthropic", id: "claude-sonnet-5", name: "Claude Sonnet 5" }];
/// let found = resolve(&Reference::new("sonnet:high"), &models, |_| true);
/// assert!(matches!(found, Resolution::Found { model, level: Some(_), .. } if model.id == "claude-sonnet-5"));
/// ```
pub fn resolve<'a>(
    reference: &Reference<'_>,
    models: &[ModelHead<'a>],
    usable: impl Fn(&str) -> bool,
) -> Resolution<ModelHead<'a>> {
    let nothing = Resolution::NotFound { target: None };
    let text = reference.text.trim();
    if text.is_empty() {
        return nothing;
    }
    let pool: Vec<ModelHead<'a>> = match reference.provider {
        Some(provider) => models.iter().filter(|model| same(model.provider, provider)).copied().collect(),
        None => models.to_vec(),
    };
    let search = Search { reference, pool: &pool, usable: &usable };
    let found = search.text(text);
    if !matches!(found, Resolution::NotFound { .. }) {
        return found;
    }
    let split = search.split_provider(text);
    let sample = match (reference.provider, split) {
        (Some(_), _) => pool.first(),
        (None, Some((provider, _))) => pool.iter().find(|model| model.provider == provider),
        (None, None) => None,
    };
    let Some(sample) = sample else { return nothing };
    let text = split.map_or(text, |(_, rest)| rest);
    let suffix = match reference.suffix {
        LevelSuffix::NotRead => None,
        LevelSuffix::Strict | LevelSuffix::Lenient => split_level(text),
    };
    Resolution::NotFound {
        target: Some(UnknownModel {
            sample: *sample,
            text: text.to_owned(),
            id: suffix.map_or(text, |(base, _)| base).to_owned(),
            level: suffix.map(|(_, level)| level),
        }),
    }
}

struct Search<'s, 'a> {
    reference: &'s Reference<'s>,
    pool: &'s [ModelHead<'a>],
    usable: &'s dyn Fn(&str) -> bool,
}

/// What was found before levels come into play.
enum Hit<'a> {
    One(ModelHead<'a>),
    Several { candidates: Vec<ModelHead<'a>>, usable: usize },
}

impl<'a> Hit<'a> {
    fn into_resolution(self) -> Resolution<ModelHead<'a>> {
        match self {
            Self::One(model) => Resolution::Found { model, level: None, warning: None },
            Self::Several { candidates, usable } => {
                Resolution::Ambiguous { candidates, usable, level: None, warning: None }
            }
        }
    }
}

impl<'s, 'a> Search<'s, 'a> {
    fn text(&self, text: &str) -> Resolution<ModelHead<'a>> {
        let partly = || self.partial(text).filter(|_| self.reference.matching == Matching::Partial);
        if let Some(hit) = self.exact(text).or_else(partly) {
            return hit.into_resolution();
        }
        let nothing = Resolution::NotFound { target: None };
        let Some((base, suffix)) = text.rsplit_once(':') else { return nothing };
        match (self.reference.suffix, suffix.parse::<ThinkingLevel>()) {
            (LevelSuffix::NotRead, _) | (LevelSuffix::Strict, Err(_)) => nothing,
            // A level within a reference whose end was not understood is not trusted.
            (_, Ok(named)) => self.text(base).map_suffix(|_, warning| match warning {
                None => (Some(named), None),
                warning => (None, warning),
            }),
            (LevelSuffix::Lenient, Err(_)) => self
                .text(base)
                .map_suffix(|_, _| (None, Some(UnknownSuffix { suffix: suffix.to_owned(), text: text.to_owned() }))),
        }
    }

    /// `provider/rest`, or an id that has a slash itself. The named provider wins when it can be used, because that is
    /// what the form usually means; otherwise the one usable provider that has the whole text as an id.
    fn exact(&self, text: &str) -> Option<Hit<'a>> {
        let raw: Vec<_> = self.pool.iter().filter(|model| same(model.id, text)).copied().collect();
        let named = self.split_provider(text).and_then(|(provider, rest)| {
            let of_provider: Vec<_> = self.pool.iter().filter(|model| model.provider == provider).copied().collect();
            let by_id = of_provider.iter().find(|model| same(model.id, rest)).copied();
            by_id.or_else(|| raw.iter().find(|model| model.provider == provider).copied()).or_else(|| {
                let partial = self.reference.matching == Matching::Partial;
                if partial { best(containing(rest, &of_provider)) } else { None }
            })
        });
        let others: Vec<_> = raw.into_iter().filter(|model| Some(*model) != named).collect();
        let candidates: Vec<_> = named.into_iter().chain(others.iter().copied()).collect();
        let first = *candidates.first()?;
        if candidates.iter().all(|model| model.provider == first.provider) {
            return Some(Hit::One(first));
        }
        if let Some(named) = named
            && (self.usable)(named.provider)
        {
            return Some(Hit::One(named));
        }
        let usable: Vec<_> = others.into_iter().filter(|model| (self.usable)(model.provider)).collect();
        match (&usable[..], named) {
            ([only], _) => Some(Hit::One(*only)),
            ([], Some(named)) => Some(Hit::One(named)),
            _ => Some(Hit::Several { candidates, usable: usable.len() }),
        }
    }

    fn partial(&self, text: &str) -> Option<Hit<'a>> {
        let matches = containing(text, self.pool);
        let first = matches.first()?;
        let several = matches.iter().any(|model| model.provider != first.provider);
        let usable: Vec<_> = match several {
            true => matches.iter().filter(|model| (self.usable)(model.provider)).copied().collect(),
            false => Vec::new(),
        };
        let any_usable = !usable.is_empty();
        let pool = if any_usable { usable } else { matches };
        let best = best(pool.clone())?;
        let tied: Vec<_> = pool.into_iter().filter(|model| model.id == best.id).collect();
        if tied.iter().all(|model| model.provider == best.provider) {
            return Some(Hit::One(best));
        }
        let usable = if any_usable { tied.len() } else { 0 };
        Some(Hit::Several { candidates: tied, usable })
    }

    /// Splits a known provider off. Provider ids may have slashes, so the longest that fits is taken.
    fn split_provider<'t>(&self, text: &'t str) -> Option<(&'a str, &'t str)> {
        let mut best: Option<(&'a str, &'t str)> = None;
        for model in self.pool {
            let provider = model.provider.trim();
            if provider.is_empty() || best.is_some_and(|(known, _)| known.len() >= model.provider.len()) {
                continue;
            }
            let Some(slash) = text.get(provider.len()..).and_then(|rest| Some(provider.len() + rest.find('/')?)) else {
                continue;
            };
            let rest = text[slash + 1..].trim();
            if same(text[..slash].trim(), provider) && !rest.is_empty() {
                best = Some((model.provider, rest));
            }
        }
        best
    }
}

impl<M> Resolution<M> {
    fn map_suffix(
        self,
        change: impl FnOnce(Option<ThinkingLevel>, Option<UnknownSuffix>) -> (Option<ThinkingLevel>, Option<UnknownSuffix>),
    ) -> Self {
        match self {
            Self::Found { model, level, warning } => {
                let (level, warning) = change(level, warning);
                Self::Found { model, level, warning }
            }
            Self::Ambiguous { candidates, usable, level, warning } => {
                let (level, warning) = change(level, warning);
                Self::Ambiguous { candidates, usable, level, warning }
            }
            Self::NotFound { target } => Self::NotFound { target },
        }
    }
}

/// Splits a thinking level off.
pub(super) fn split_level(text: &str) -> Option<(&str, ThinkingLevel)> {
    let (base, suffix) = text.rsplit_once(':')?;
    Some((base, suffix.parse().ok()?))
}

fn containing<'a>(text: &str, models: &[ModelHead<'a>]) -> Vec<ModelHead<'a>> {
    let wanted = text.to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&wanted);
    models.iter().filter(|model| has(model.id) || has(model.name)).copied().collect()
}

/// Aliases before dated versions, then the last in alphabetical order, which is the newest of a family.
fn best(matches: Vec<ModelHead<'_>>) -> Option<ModelHead<'_>> {
    let aliases: Vec<_> = matches.iter().filter(|model| is_alias(model.id)).copied().collect();
    let pool = if aliases.is_empty() { matches } else { aliases };
    // Of equals the first counts.
    pool.into_iter().reduce(|best, model| if collate(model.id, best.id) == Ordering::Greater { model } else { best })
}

/// Whether an id does not end in a date (`-20250929`).
fn is_alias(id: &str) -> bool {
    let dated =
        id.rsplit_once('-').is_some_and(|(_, date)| date.len() == 8 && date.bytes().all(|c| c.is_ascii_digit()));
    !dated
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!a.is_ascii() && a.to_lowercase() == b.to_lowercase())
}

/// The alphabetical order of people: punctuation, digits, then letters whatever their case; the case decides between
/// texts that are equal otherwise.
pub(super) fn collate(a: &str, b: &str) -> Ordering {
    let primary = |text: &str| -> Vec<(u8, u32)> { text.chars().flat_map(char::to_lowercase).map(weight).collect() };
    let lower_first = |text: &str| -> Vec<bool> { text.chars().map(char::is_uppercase).collect() };
    primary(a).cmp(&primary(b)).then_with(|| lower_first(a).cmp(&lower_first(b)))
}

fn weight(c: char) -> (u8, u32) {
    const PUNCTUATION: &str = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
    match c {
        c if c.is_whitespace() => (0, u32::from(c)),
        c if c.is_alphabetic() => (4, u32::from(c)),
        c if c.is_numeric() => (3, u32::from(c)),
        c => match PUNCTUATION.find(c) {
            Some(at) => (1, at as u32),
            None => (2, u32::from(c)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODELS: [ModelHead<'static>; 4] = [
        ModelHead { provider: "one", id: "big-1", name: "Big" },
        ModelHead { provider: "two", id: "big-1", name: "Big" },
        ModelHead { provider: "two", id: "one/small", name: "Small" },
        ModelHead { provider: "two", id: "small-20250101", name: "Small, dated" },
    ];

    fn found(text: &str, usable: &[&str]) -> String {
        match resolve(&Reference::new(text), &MODELS, |provider| usable.contains(&provider)) {
            Resolution::Found { model, .. } => format!("{}|{}", model.provider, model.id),
            Resolution::Ambiguous { usable, .. } => format!("ambiguous, {usable} usable"),
            Resolution::NotFound { target } => format!("unknown {:?}", target.map(|target| target.id)),
        }
    }

    #[test]
    fn of_providers_with_the_same_id_the_usable_one_is_meant() {
        assert_eq!(found("big-1", &["two"]), "two|big-1");
        assert_eq!(found("big-1", &["one", "two"]), "ambiguous, 2 usable");
        assert_eq!(found("big-1", &[]), "ambiguous, 0 usable");
        assert_eq!(found("BIG", &["one"]), "one|big-1");
        assert_eq!(found("one/big-1", &["two"]), "one|big-1");
    }

    #[test]
    fn an_id_with_a_slash_is_not_taken_for_a_provider_that_lacks_it() {
        assert_eq!(found("one/small", &["two"]), "two|one/small");
        assert_eq!(found("one/other", &["two"]), "unknown Some(\"other\")");
        assert_eq!(found("three/other", &["two"]), "unknown None");
    }

    #[test]
    fn people_sort_punctuation_before_digits_before_letters() {
        let mut ids = vec!["b", "A", "a", "a-1", "a.1", "a1", "a_1", "ab", "1"];
        ids.sort_by(|a, b| collate(a, b));
        assert_eq!(ids, ["1", "a", "A", "a_1", "a-1", "a.1", "a1", "ab", "b"]);
    }
}
