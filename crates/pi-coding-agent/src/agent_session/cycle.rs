//! Going through models and thinking levels.

use std::sync::Arc;

use pi_ai::{Model, ThinkingLevel};

use super::{AgentSession, AgentSessionError, Inner};

/// A model to choose from.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopedModel {
    /// The model.
    pub model: Arc<Model>,
    /// How hard it thinks when it is chosen; `None`: as the settings say.
    pub level: Option<ThinkingLevel>,
}

impl From<Arc<Model>> for ScopedModel {
    fn from(model: Arc<Model>) -> Self {
        Self { model, level: None }
    }
}

/// Which way to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// To the next one.
    #[default]
    Forward,
    /// To the one before.
    Backward,
}

impl AgentSession {
    /// The models to choose from; none means all that have a key.
    pub fn scoped_models(&self) -> Vec<ScopedModel> {
        self.inner.state().scope.clone()
    }

    /// Changes the models to choose from.
    pub fn set_scoped_models(&self, models: impl IntoIterator<Item = ScopedModel>) {
        self.inner.state().scope = models.into_iter().collect();
    }

    /// Has the next model of the scope answer (without a scope, of all that have a key). Gives the new one; `None` when
    /// there is no other.
    ///
    /// # Errors
    /// When stored credentials cannot be read, or the change cannot be stored.
    pub async fn cycle_model(&self, direction: Direction) -> Result<Option<Arc<Model>>, AgentSessionError> {
        let inner = &self.inner;
        let scope = self.scoped_models();
        let candidates = match &inner.models {
            // An application that answers by itself can use every model that it names.
            None => scope,
            Some(models) => {
                let available = models.available().await?;
                if scope.is_empty() {
                    available.into_iter().map(ScopedModel::from).collect()
                } else {
                    let is_usable = |wanted: &ScopedModel| available.iter().any(|model| is_same(model, &wanted.model));
                    scope.into_iter().filter(is_usable).collect()
                }
            }
        };
        let current = self.model();
        let at = candidates
            .iter()
            .position(|candidate| current.as_ref().is_some_and(|current| is_same(current, &candidate.model)));
        let next = match (at, direction) {
            (Some(_), _) if candidates.len() == 1 => None,
            (Some(at), Direction::Forward) => candidates.get((at + 1) % candidates.len()),
            (Some(0), Direction::Backward) | (None, Direction::Backward) => candidates.last(),
            (Some(at), Direction::Backward) => candidates.get(at - 1),
            (None, Direction::Forward) => candidates.first(),
        };
        let Some(ScopedModel { model, level }) = next else { return Ok(None) };
        self.select_model(model.clone(), *level).await?;
        Ok(Some(model.clone()))
    }

    /// Has the model think at the next of its levels, and at the first after the last. Gives the new one; `None` for a
    /// model that cannot think.
    ///
    /// # Errors
    /// When the change cannot be stored.
    pub async fn cycle_thinking_level(&self) -> Result<Option<ThinkingLevel>, AgentSessionError> {
        let Some(model) = self.model().filter(|model| model.reasoning) else { return Ok(None) };
        let levels: Vec<ThinkingLevel> = model.thinking_levels().collect();
        let current = self.thinking_level();
        let at = levels.iter().position(|level| *level == current).map_or(0, |at| at + 1);
        let Some(next) = levels.get(at % levels.len().max(1)) else { return Ok(None) };
        Ok(Some(self.set_thinking_level(*next).await?))
    }

    /// The thinking levels of the model that answers; only `off` without one.
    pub fn available_thinking_levels(&self) -> Vec<ThinkingLevel> {
        self.model().map_or_else(|| vec![ThinkingLevel::Off], |model| model.thinking_levels().collect())
    }
}

fn is_same(a: &Model, b: &Model) -> bool {
    a.provider == b.provider && a.id == b.id
}

impl Inner {
    /// How hard a model thinks when it is switched to: as it was asked for, as the settings say, else as before.
    pub(super) fn level_for(&self, model: &Model, asked: Option<ThinkingLevel>) -> ThinkingLevel {
        let settings = self.settings.settings();
        let of_model = || settings.model_thinking_levels.get(&format!("{}/{}", model.provider, model.id)).copied();
        let level = asked.or_else(of_model).or(settings.default_thinking_level);
        model.clamp(level.unwrap_or_else(|| self.state().selection.level))
    }
}
