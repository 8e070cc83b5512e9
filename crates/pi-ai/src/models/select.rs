//! From what a person asked for to the model that is used.

use std::{fmt, sync::Arc};

use super::reference::{UnknownSuffix, collate};
use crate::{
    id::ProviderId,
    model::{Model, ThinkingLevel},
};

/// A model that was asked for by name.
#[derive(Clone, Debug)]
pub struct Selected {
    /// The model.
    pub model: Arc<Model>,
    /// The thinking level that came with the name.
    pub level: Option<ThinkingLevel>,
    /// What to tell the person.
    pub warning: Option<SelectWarning>,
}

/// Something to tell a person who asked for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelectWarning {
    /// The suffix is no thinking level.
    UnknownLevel(UnknownSuffix),
    /// The provider lists no such model; it is asked for all the same.
    Unlisted {
        /// The provider.
        provider: ProviderId,
        /// The model.
        id: String,
    },
}

impl fmt::Display for SelectWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownLevel(suffix) => suffix.fmt(f),
            Self::Unlisted { provider, id } => {
                write!(
                    f,
                    "{provider} lists no model `{id}`; it is asked for under that id, with the provider's usual settings"
                )
            }
        }
    }
}

/// No one model is meant.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// There is no such provider.
    #[error("there is no provider `{name}` with models")]
    UnknownProvider {
        /// What was asked for.
        name: String,
    },
    /// There is no such model.
    #[error("no model matches `{text}`")]
    NotFound {
        /// What was asked for.
        text: String,
    },
    /// Several providers have it.
    #[error("`{text}` is a model of several providers ({}); {hint}; name one as provider/model", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        text: String,
        /// The models, as `provider/id`, sorted.
        candidates: Vec<String>,
        /// Why none of them was taken.
        hint: &'static str,
    },
    /// Stored credentials cannot be read.
    #[error(transparent)]
    Credentials(#[from] super::CredentialError),
}

impl SelectError {
    pub(super) fn ambiguous(text: &str, mut candidates: Vec<String>, usable: usize, inline_key: InlineKey) -> Self {
        candidates.sort_by(|a, b| collate(a, b));
        let hint = match (inline_key, usable) {
            (InlineKey::Given, _) => "the key that was given does not choose between them",
            (InlineKey::None, 0) => "none of them has a key",
            (InlineKey::None, _) => "more than one of them has a key",
        };
        Self::Ambiguous { text: text.to_owned(), candidates, hint }
    }
}

/// Whether a key comes along with a choice of model. It goes to whichever provider is chosen, so that stored ones must
/// not choose it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InlineKey {
    /// It does not.
    #[default]
    None,
    /// It does.
    Given,
}

/// What a person asked for.
#[derive(Clone, Debug, Default)]
pub struct ModelChoice {
    /// Only this provider.
    pub provider: Option<String>,
    /// A reference, such as `anthropic/claude-sonnet-5:high`.
    pub model: String,
    /// A thinking level that was asked for by itself. A suffix of the reference is then part of an id that is not
    /// listed.
    pub level: Option<ThinkingLevel>,
    /// Whether a key comes along.
    pub inline_key: InlineKey,
}
