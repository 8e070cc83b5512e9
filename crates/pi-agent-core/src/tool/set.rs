//! The tools of an agent, by name.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use pi_ai::{ToolDeclaration, schema::CompiledSchema};

use super::AgentTool;

/// The tools that can be run, in order, each name once: of two tools with one name the later one stays, at the place of
/// the first. Cloning copies a pointer.
#[derive(Clone, Default)]
pub struct ToolSet(Arc<[Entry]>);

#[derive(Clone)]
struct Entry {
    tool: Arc<dyn AgentTool>,
    /// Compiled at the first call.
    schema: Arc<OnceLock<CompiledSchema>>,
}

impl ToolSet {
    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn AgentTool>> {
        self.entry(name).map(|entry| &entry.tool)
    }

    /// The tools, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<dyn AgentTool>> {
        self.0.iter().map(|entry| &entry.tool)
    }

    /// What the model is told about them.
    pub fn declarations(&self) -> impl ExactSizeIterator<Item = &ToolDeclaration> {
        self.iter().map(|tool| tool.declaration())
    }

    /// Their names.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.declarations().map(|declaration| declaration.name.as_str())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tool of this name, with its schema.
    pub(crate) fn callable(&self, name: &str) -> Option<(&Arc<dyn AgentTool>, &CompiledSchema)> {
        let entry = self.entry(name)?;
        let schema = entry.schema.get_or_init(|| CompiledSchema::new(&entry.tool.declaration().parameters));
        Some((&entry.tool, schema))
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.tool.declaration().name == name)
    }
}

impl FromIterator<Arc<dyn AgentTool>> for ToolSet {
    fn from_iter<I: IntoIterator<Item = Arc<dyn AgentTool>>>(tools: I) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        for tool in tools {
            let name = &tool.declaration().name;
            let known = entries.iter().position(|entry| entry.tool.declaration().name == *name);
            let entry = Entry { tool, schema: Arc::default() };
            match known {
                Some(known) => entries[known] = entry,
                None => entries.push(entry),
            }
        }
        Self(entries.into())
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Tool, ToolArguments};

    fn tool(name: &str, description: &str) -> Arc<dyn AgentTool> {
        let declaration = ToolDeclaration::new(name, description, serde_json::json!({"type": "object"}));
        Arc::new(Tool::from_declaration(declaration, async |_: ToolArguments, _| Ok("")))
    }

    #[test]
    fn a_later_tool_takes_the_place_of_one_with_its_name() {
        let tools: ToolSet = [tool("a", "1"), tool("b", "2"), tool("a", "3")].into_iter().collect();
        let told: Vec<_> = tools.declarations().map(|told| (told.name.as_str(), told.description.as_str())).collect();
        assert_eq!(told, [("a", "3"), ("b", "2")]);
    }
}
