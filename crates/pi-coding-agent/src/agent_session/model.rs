//! Which model answers, and how hard it thinks.

use std::sync::Arc;

use pi_ai::{Model, ThinkingLevel};

use crate::{
    extensions::event::{self, ModelSelectEvent, SelectSource, ThinkingLevelSelectEvent},
    tools::{
        read::{ImageLimits, ImageOptions},
        session_facts::{ModelFacts, ModelImages, SessionFacts},
    },
};

use super::{AgentSession, AgentSessionError, Inner, SessionEvent};

/// The model and the thinking level of the next request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    pub(crate) model: Option<Arc<Model>>,
    /// Already clamped to the model.
    pub(crate) level: ThinkingLevel,
    pub(crate) recorded: Recorded,
}

/// Whether a selection is the session's own or a stand-in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// It is written into the session and comes back when the session is resumed.
    #[default]
    Yes,
    /// It stands in until something better can be had.
    No,
}

impl AgentSession {
    /// The model that answers the next request.
    pub fn model(&self) -> Option<Arc<Model>> {
        self.inner.state().selection.model.clone()
    }

    /// How hard it thinks.
    pub fn thinking_level(&self) -> ThinkingLevel {
        self.inner.state().selection.level
    }

    /// Why the model that the session was made with before does not answer; to be shown.
    pub fn model_notice(&self) -> Option<&str> {
        self.inner.model_notice.as_deref()
    }

    /// Has another model answer from the next request on. It thinks as hard as the settings say, else as the model before
    /// it, at the nearest level that it supports.
    ///
    /// # Errors
    /// When the change cannot be stored.
    pub async fn set_model(&self, model: Arc<Model>) -> Result<(), AgentSessionError> {
        self.select_model(model, None).await
    }

    pub(super) async fn select_model(
        &self,
        model: Arc<Model>,
        level: Option<ThinkingLevel>,
    ) -> Result<(), AgentSessionError> {
        let inner = &self.inner;
        let level = inner.level_for(&model, level);
        let (previous, before) = {
            let mut state = inner.state();
            let before = state.selection.level;
            let selection = Selection { model: Some(model.clone()), level, recorded: Recorded::Yes };
            (std::mem::replace(&mut state.selection, selection).model, before)
        };
        inner.agent.set_model(model.clone());
        inner.manager.append_model_change(model.provider.clone(), model.id.clone()).await?;
        if level != before {
            inner.change_level(level, before).await?;
        }
        let payload = || ModelSelectEvent::new(model, previous, SelectSource::Set);
        inner.extensions.notify(event::ModelSelect, &inner.lifetime, payload).await;
        Ok(())
    }

    /// Has the model think harder or less from the next request on: at the nearest level that it supports, which is
    /// given back.
    ///
    /// # Errors
    /// When the change cannot be stored.
    pub async fn set_thinking_level(&self, level: ThinkingLevel) -> Result<ThinkingLevel, AgentSessionError> {
        let (before, level) = {
            let mut state = self.inner.state();
            let clamped = state.selection.model.as_ref().map_or(ThinkingLevel::Off, |model| model.clamp(level));
            (std::mem::replace(&mut state.selection.level, clamped), clamped)
        };
        if level != before {
            self.inner.change_level(level, before).await?;
        }
        Ok(level)
    }
}

impl AgentSession {
    /// Records what answers, in a session that does not say so yet. A model that only stands in is not recorded, so
    /// that a better one takes over as soon as it can be had.
    pub(crate) async fn record_start(&self) -> Result<(), AgentSessionError> {
        let Selection { model, level, recorded } = self.inner.state().selection.clone();
        let (Some(model), Recorded::Yes) = (model, recorded) else { return Ok(()) };
        let said = self.inner.manager.context();
        let same_model = said.model.is_some_and(|said| said.provider == *model.provider && said.model_id == *model.id);
        if !same_model {
            self.inner.manager.append_model_change(model.provider.clone(), model.id.clone()).await?;
        }
        let is_new = self.inner.manager.with(|session| !session.has_conversation());
        if is_new || said.thinking_level != level {
            self.inner.manager.append_thinking_level_change(level).await?;
        }
        Ok(())
    }
}

impl Inner {
    /// What tools may know of the session.
    pub(super) fn facts(&self) -> SessionFacts {
        let Selection { model, level, .. } = self.state().selection.clone();
        SessionFacts {
            session_id: Some(self.manager.id().to_string()),
            session_file: self.manager.path(),
            model: model.map(|model| ModelFacts {
                provider: model.provider.to_string(),
                id: model.id.to_string(),
                images: if model.reads_images() {
                    ModelImages::Taken(image_options(&model))
                } else {
                    ModelImages::NotTaken
                },
            }),
            reasoning_level: Some(level.to_string()),
        }
    }

    /// Records the level when the branch says another one, as it may after the session went to another place.
    pub(super) async fn record_level(&self) -> Result<(), AgentSessionError> {
        let Selection { model, level, .. } = self.state().selection.clone();
        let said = self.manager.with(|session| session.projection().recorded_thinking_level());
        if let (Some(model), Some(said)) = (model, said)
            && model.clamp(said) != level
        {
            self.manager.append_thinking_level_change(level).await?;
        }
        Ok(())
    }

    /// Applies and records a level that the state already has.
    async fn change_level(&self, level: ThinkingLevel, before: ThinkingLevel) -> Result<(), AgentSessionError> {
        self.agent.set_thinking_level(level);
        self.manager.append_thinking_level_change(level).await?;
        let payload = || ThinkingLevelSelectEvent::new(level, before);
        self.extensions.notify(event::ThinkingLevelSelect, &self.lifetime, payload).await;
        self.tell(SessionEvent::ThinkingLevelChanged { level }).await;
        Ok(())
    }
}

/// How pictures are made to fit a model.
fn image_options(model: &Model) -> ImageOptions {
    let resize = model.input_limits.as_ref().and_then(|limits| limits.images.as_ref()?.resize);
    resize.map_or(ImageOptions::Default, |resize| {
        ImageOptions::Within(ImageLimits {
            width: resize.max_width,
            height: resize.max_height,
            bytes: usize::try_from(resize.max_bytes).unwrap_or(usize::MAX),
            jpeg_quality: resize.jpeg_quality,
        })
    })
}
