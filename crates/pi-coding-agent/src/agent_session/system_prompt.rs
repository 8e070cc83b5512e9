//! What the system prompt should say, against what the transcript says.

use indexmap::IndexMap;
use pi_ai::{SystemMessage, transcript::current_system_message};

use super::{AgentSession, AgentSessionError, Inner};
use crate::{
    messages::SessionMessage,
    resources::{self, Sections, SystemPromptOptions},
};

impl AgentSession {
    /// The system prompt, as the transcript has it.
    pub fn system_prompt(&self) -> String {
        self.inner.manager.with(|session| pi_ai::transcript::current_system_prompt(session.projection().messages()))
    }

    /// What the system prompt is made of. What changed is announced with the next prompt, section by section.
    pub fn system_prompt_options(&self) -> SystemPromptOptions {
        self.inner.state().prompt.clone()
    }

    /// Changes what the system prompt is made of.
    pub fn update_system_prompt(&self, change: impl FnOnce(&mut SystemPromptOptions)) {
        change(&mut self.inner.state().prompt);
    }

    /// The tools that are offered, by name.
    pub fn active_tools(&self) -> Vec<String> {
        self.inner.state().tools.active().to_vec()
    }

    /// Every tool that could be offered, by name.
    pub fn known_tools(&self) -> Vec<String> {
        self.inner.state().tools.all().map(|tool| tool.name().to_owned()).collect()
    }

    /// Offers exactly these tools from the next request on; unknown names are left out. The transcript says the
    /// difference.
    pub fn set_active_tools(&self, names: impl IntoIterator<Item = String>) {
        self.inner.activate_tools(names);
    }

    /// Adds tools, or replaces those of the same name, and offers them.
    pub fn register_tools(&self, tools: impl IntoIterator<Item = super::SessionTool>) {
        let active: Vec<String> = {
            let mut state = self.inner.state();
            let tools: Vec<_> = tools.into_iter().collect();
            let names: Vec<String> = tools.iter().map(|tool| tool.name().to_owned()).collect();
            state.tools.register(tools);
            state.tools.active().iter().cloned().chain(names).collect()
        };
        self.set_active_tools(active);
    }
}

impl Inner {
    pub(super) fn activate_tools(&self, names: impl IntoIterator<Item = String>) {
        let tools: Vec<_> = {
            let mut state = self.state();
            state.tools.activate(names);
            state.tools.active_tools().map(|tool| tool.tool.clone()).collect()
        };
        self.agent.set_tools(tools);
    }

    /// The system message that makes the transcript's prompt say what it should, if it does not yet.
    pub(super) fn prompt_update(&self) -> Result<Option<SystemMessage>, AgentSessionError> {
        let wanted = self.wanted_sections()?;
        let said = self.manager.with(|session| current_system_message(session.projection().messages()));
        let said: Sections = said
            .map(|head| head.sections.into_iter().filter_map(|(name, text)| Some((name, text?))).collect())
            .unwrap_or_default();
        let patch = resources::diff(&said, &wanted);
        Ok(patch.map(|sections| SystemMessage { sections, timestamp: self.clock.now(), ..SystemMessage::default() }))
    }

    /// What the prompt of the next run is made of, with the tools that are offered.
    pub(super) fn prompt_options(&self) -> SystemPromptOptions {
        let state = self.state();
        let mut options = state.run.prompt.clone().unwrap_or_else(|| state.prompt.clone());
        options.selected_tools = state.tools.active().to_vec();
        options.tool_snippets.extend(
            state.tools.active_tools().filter_map(|tool| Some((tool.name().to_owned(), tool.snippet.clone()?))),
        );
        let guidelines: IndexMap<_, _> = state
            .tools
            .active_tools()
            .filter(|tool| !tool.guidelines.is_empty())
            .map(|tool| (tool.name().to_owned(), tool.guidelines.clone()))
            .collect();
        options.tool_guidelines.extend(guidelines);
        options
    }

    /// The prompt that options make, as text.
    pub(super) fn rendered_prompt(&self, options: &SystemPromptOptions) -> String {
        match resources::build_system_message(options, self.clock.now()) {
            Ok(message) => pi_ai::transcript::current_system_prompt(&[SessionMessage::from(message)]),
            // An impossible name of a section is refused when the run begins.
            Err(_) => String::new(),
        }
    }

    fn wanted_sections(&self) -> Result<Sections, AgentSessionError> {
        // A prompt that holds for one run only is put in on the way to the model; the record keeps its sections.
        let is_for_this_run = self.state().run.prompt.is_some();
        let mut options = self.prompt_options();
        match options.force_system_prompt.take().filter(|_| !is_for_this_run) {
            // A prompt of its own takes the place of every section.
            Some(prompt) => Ok(Sections::from([("preamble".to_owned(), prompt)])),
            None => Ok(resources::build_sections(&options)?),
        }
    }
}
