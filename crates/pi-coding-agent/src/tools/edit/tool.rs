//! `edit` as a tool of an agent.

use async_trait::async_trait;
use pi_agent_core::{AgentTool, ToolArguments, ToolContext, ToolError, ToolOutput};
use pi_ai::ToolDeclaration;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Edit, edit_file};
use crate::tools::declare::declare_strict;
use crate::tools::mutation_queue::MutationQueue;
use crate::workspace::Workspace;

/// The `edit` tool.
#[derive(Debug)]
pub struct EditTool {
    workspace: Workspace,
    queue: MutationQueue,
    declaration: ToolDeclaration,
}

#[derive(Debug, Deserialize)]
struct Arguments {
    path: String,
    edits: Vec<Edit>,
}

impl EditTool {
    /// The tool for a workspace; tools that change files share the queue.
    #[must_use]
    pub fn new(workspace: Workspace, queue: MutationQueue) -> Self {
        let declaration = declare_strict(
            "edit",
            "Replaces pieces of text in one file. Each `oldText` must occur exactly once in the file as it is now, and \
             no two may overlap. Several changes to one file go into one call; changes that touch or lie close \
             together go into one edit. All edits are made, or none.",
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The file, relative to the working directory or absolute"},
                    "edits": {
                        "type": "array",
                        "description": "The replacements. Each is looked for in the file as it was before the call",
                        "items": {
                            "type": "object",
                            "properties": {
                                "oldText": {"type": "string", "description": "The text to replace, exactly as it stands in the file, long enough to occur only once"},
                                "newText": {"type": "string", "description": "The text to put there"}
                            },
                            "required": ["oldText", "newText"]
                        }
                    }
                },
                "required": ["path", "edits"]
            }),
        );
        Self { workspace, queue, declaration }
    }
}

#[async_trait]
impl AgentTool for EditTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn prepare_arguments(&self, arguments: ToolArguments) -> ToolArguments {
        prepare_arguments(arguments)
    }

    async fn execute(&self, arguments: ToolArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let Arguments { path, edits } = serde_json::from_value(Value::Object(arguments))?;
        let count = edits.len();
        let diff = edit_file(&self.workspace, &self.queue, &path, edits, &context.signal).await?;
        let blocks = if count == 1 { "1 block".to_owned() } else { format!("{count} blocks") };
        Ok(ToolOutput::text(format!("Replaced {blocks} in {path}.")).details(diff))
    }
}

/// Repairs the shapes in which models send edits: the list as JSON text, a single edit in its place, or the
/// two texts beside the path. What is beyond repair stays for the schema to refuse.
#[must_use]
pub fn prepare_arguments(mut arguments: ToolArguments) -> ToolArguments {
    if let Some(edits) = arguments.get_mut("edits") {
        if let Some(text) = edits.as_str()
            && let Ok(parsed) = serde_json::from_str::<Value>(text)
            && (parsed.is_array() || is_edit(&parsed))
        {
            *edits = parsed;
        }
        if is_edit(edits) {
            *edits = Value::Array(vec![edits.take()]);
        }
    }
    let beside = (arguments.get("oldText"), arguments.get("newText"));
    if let (Some(Value::String(old)), Some(Value::String(new))) = beside {
        let edit = json!({"oldText": old, "newText": new});
        arguments.shift_remove("oldText");
        arguments.shift_remove("newText");
        match arguments.get_mut("edits") {
            Some(Value::Array(edits)) => edits.push(edit),
            _ => {
                arguments.insert("edits".to_owned(), Value::Array(vec![edit]));
            }
        }
    }
    arguments
}

fn is_edit(value: &Value) -> bool {
    value.get("oldText").is_some_and(Value::is_string) && value.get("newText").is_some_and(Value::is_string)
}
