//! What answers, and how hard it thinks.

use std::sync::Arc;

use pi_ai::{Model, ThinkingLevel};
use serde::Serialize;

/// Another model answers from now on.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelSelectEvent {
    /// The model.
    pub model: Arc<Model>,
    /// The one before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_model: Option<Arc<Model>>,
    /// What set it off.
    pub source: SelectSource,
}

impl ModelSelectEvent {
    pub(crate) fn new(model: Arc<Model>, previous_model: Option<Arc<Model>>, source: SelectSource) -> Self {
        Self { model, previous_model, source }
    }
}

/// What set off the choice of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SelectSource {
    /// It was named.
    #[default]
    Set,
    /// The next one was taken.
    Cycle,
    /// It is the session's own.
    Restore,
}

/// The model thinks harder or less from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ThinkingLevelSelectEvent {
    /// The level.
    pub level: ThinkingLevel,
    /// The one before.
    pub previous_level: ThinkingLevel,
}

impl ThinkingLevelSelectEvent {
    pub(crate) fn new(level: ThinkingLevel, previous_level: ThinkingLevel) -> Self {
        Self { level, previous_level }
    }
}
