//! The tools that a session knows, and those that it offers.

use std::{collections::HashSet, sync::Arc};

use indexmap::IndexMap;
use pi_agent_core::AgentTool;
use pi_ai::transcript::{current_tools, declared_tools};

use crate::{
    messages::SessionMessage,
    tool_selection::{AvailableTool, ToolOrigin, ToolSelection},
};

/// A tool with what the system prompt says of it.
#[derive(Clone)]
pub struct SessionTool {
    /// The tool.
    pub tool: Arc<dyn AgentTool>,
    /// One line for the prompt's list of tools; a tool without one is not listed there.
    pub snippet: Option<String>,
    /// Rules that hold while it is offered.
    pub guidelines: Vec<String>,
    /// Who brings it.
    pub origin: ToolOrigin,
}

impl SessionTool {
    /// A tool of an application. The system prompt does not mention it until it is given a [`snippet`](Self::snippet);
    /// the model knows it by its declaration.
    pub fn custom(tool: impl AgentTool) -> Self {
        Self { tool: Arc::new(tool), snippet: None, guidelines: Vec::new(), origin: ToolOrigin::Custom }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.tool.declaration().name
    }
}

impl std::fmt::Debug for SessionTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionTool").field("name", &self.name()).field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// Every tool that a session knows, by name, and which of them it offers.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolRegistry {
    known: IndexMap<String, SessionTool>,
    active: Vec<String>,
}

impl ToolRegistry {
    /// Adds tools; one with a known name takes its place.
    pub(super) fn register(&mut self, tools: impl IntoIterator<Item = SessionTool>) {
        for tool in tools {
            self.known.insert(tool.name().to_owned(), tool);
        }
    }

    /// Forgets a tool, and gives it back. It stays among those that are offered until others are chosen.
    pub(super) fn unregister(&mut self, name: &str) -> Option<SessionTool> {
        self.known.shift_remove(name)
    }

    /// What could be offered.
    pub(super) fn available(&self) -> Vec<AvailableTool<'_>> {
        self.known.values().map(|tool| AvailableTool { name: tool.name(), origin: tool.origin }).collect()
    }

    /// Offers exactly these; unknown names are left out.
    pub(super) fn activate(&mut self, names: impl IntoIterator<Item = String>) {
        let mut active: Vec<String> = Vec::new();
        for name in names {
            if self.known.contains_key(&name) && !active.contains(&name) {
                active.push(name);
            }
        }
        self.active = active;
    }

    /// Offers what a selection asks for. A session that goes on offers what its transcript says, unless the selection
    /// names its tools: tools that were taken away stay away, and new ones of the application come along.
    pub(super) fn activate_for(&mut self, selection: &ToolSelection, transcript: &[SessionMessage]) {
        let mut selected = selection.select(&self.available());
        if selection.leaves_the_choice_to_the_session() && transcript.iter().any(SessionMessage::is_system) {
            let declared: HashSet<String> = declared_tools(transcript).into_iter().map(|tool| tool.name).collect();
            let current: Vec<String> = current_tools(transcript).into_iter().map(|tool| tool.name).collect();
            let is_new = |tool: &SessionTool| tool.origin == ToolOrigin::Custom && !declared.contains(tool.name());
            let new = self.known.values().filter(|tool| is_new(tool)).map(|tool| tool.name().to_owned());
            selected = current.into_iter().chain(new).filter(|name| !selection.excludes(name)).collect();
        }
        self.activate(selected);
    }

    /// The names of those that are offered.
    pub(super) fn active(&self) -> &[String] {
        &self.active
    }

    /// Those that are offered.
    pub(super) fn active_tools(&self) -> impl Iterator<Item = &SessionTool> {
        self.active.iter().filter_map(|name| self.known.get(name))
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &SessionTool> {
        self.known.values()
    }
}
