//! What tools may know of the session that they run in.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::read::ImageOptions;

/// Facts about the session at the moment of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFacts {
    /// The session's id.
    pub session_id: Option<String>,
    /// Its file, when it has one.
    pub session_file: Option<PathBuf>,
    /// The model in use.
    pub model: Option<ModelFacts>,
    /// The thinking level, by its name.
    pub reasoning_level: Option<String>,
}

/// Facts about the model in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFacts {
    /// Its provider's id.
    pub provider: String,
    /// Its own id.
    pub id: String,
    /// Whether it takes images, and within which limits.
    pub images: ModelImages,
}

/// Whether a model takes images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelImages {
    /// It does.
    Taken(ImageOptions),
    /// It takes text only.
    NotTaken,
}

/// Answers with the facts of the moment.
#[derive(Clone)]
pub struct FactsSource(Arc<dyn Fn() -> SessionFacts + Send + Sync>);

impl FactsSource {
    /// Facts from a function that is asked at every call; it must not block.
    pub fn new(facts: impl Fn() -> SessionFacts + Send + Sync + 'static) -> Self {
        Self(Arc::new(facts))
    }

    /// The facts now.
    #[must_use]
    pub fn facts(&self) -> SessionFacts {
        (self.0)()
    }
}

impl Default for FactsSource {
    /// Tools outside any session.
    fn default() -> Self {
        Self::new(SessionFacts::default)
    }
}

impl fmt::Debug for FactsSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("FactsSource").field(&self.facts()).finish()
    }
}

impl SessionFacts {
    /// Environment variables by which a command can ask for them.
    #[must_use]
    pub fn variables(&self) -> Vec<(String, Option<String>)> {
        let file = self.session_file.as_ref().map(|file| file.display().to_string());
        let model = self.model.as_ref();
        [
            ("PI_SESSION_ID", self.session_id.clone()),
            ("PI_SESSION_FILE", file),
            ("PI_PROVIDER", model.map(|model| model.provider.clone())),
            ("PI_MODEL", model.map(|model| model.id.clone())),
            ("PI_REASONING_LEVEL", self.reasoning_level.clone()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }
}
