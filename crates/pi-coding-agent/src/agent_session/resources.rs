//! Skills, prompt templates and what else the session has from files.

use std::sync::Arc;

use super::{AgentSession, AgentSessionError, Inner, SessionPrompt};
use crate::resources::{ResourceLoader, Resources, SystemPromptOptions, expand_prompt_template, expand_skill_command};

/// What the session has from files, and whether the system prompt follows it.
pub(crate) struct SessionResources {
    pub(crate) loader: Arc<dyn ResourceLoader>,
    pub(crate) prompt: PromptSource,
}

/// Who says what the system prompt is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptSource {
    /// The resources: it changes when they do.
    Resources,
    /// The application.
    Application,
}

impl SessionResources {
    /// Brings the prompt up to date with the resources.
    pub(crate) fn add_to(&self, prompt: &mut SystemPromptOptions) {
        if self.prompt == PromptSource::Resources {
            self.loader.resources().add_to(prompt);
        }
    }
}

impl AgentSession {
    /// Skills, prompt templates, themes and instructions that the session has.
    pub fn resources(&self) -> Arc<Resources> {
        self.inner.resources.loader.resources()
    }

    /// Reads settings and resources again. Sections of the system prompt that changed are announced with the next
    /// prompt.
    pub async fn reload_resources(&self) {
        self.inner.resources.loader.reload().await;
        self.inner.resources.add_to(&mut self.inner.state().prompt);
    }
}

impl Inner {
    /// Puts the text of a skill or a prompt template in the place of the command that stands for it.
    ///
    /// # Errors
    /// When a skill that is there cannot be read.
    pub(super) async fn expand(&self, prompt: SessionPrompt) -> Result<SessionPrompt, AgentSessionError> {
        if !prompt.text.starts_with('/') {
            return Ok(prompt);
        }
        let resources = self.resources.loader.resources();
        let SessionPrompt { text, images } = prompt;
        let expand = move || match expand_skill_command(&text, &resources.skills)? {
            Some(expanded) => Ok(expanded),
            None => Ok(expand_prompt_template(&text, &resources.prompt_templates)),
        };
        let expanding = tokio::task::spawn_blocking(expand);
        let expanded = expanding.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
        expanded.map(|text| SessionPrompt { text, images }).map_err(AgentSessionError::Skill)
    }
}
