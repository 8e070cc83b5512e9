//! `read` as a tool of an agent.

use async_trait::async_trait;
use pi_agent_core::{AgentTool, ReplayPolicy, ToolArguments, ToolContext, ToolError, ToolOutput};
use pi_ai::{InputBlock, ToolDeclaration};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{ImageOptions, ImageRead, ReadOutcome, ReadRequest, TextRead, read_file};
use crate::tools::declare::declare_strict;
use crate::tools::session_facts::{FactsSource, ModelImages, SessionFacts};
use crate::workspace::Workspace;

/// The `read` tool.
#[derive(Debug)]
pub struct ReadTool {
    workspace: Workspace,
    images: ReadImages,
    facts: FactsSource,
    declaration: ToolDeclaration,
    output_schema: Value,
}

/// Whether images are made to fit the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadImages {
    /// Made smaller where they are over the limits of the model in use.
    #[default]
    FitModel,
    /// Handed out as they are.
    AsTheyAre,
}

#[derive(Debug, Deserialize)]
struct Arguments {
    path: String,
    offset: Option<f64>,
    limit: Option<f64>,
}

impl ReadTool {
    /// The tool for a workspace.
    #[must_use]
    pub fn new(workspace: Workspace, images: ReadImages, facts: FactsSource) -> Self {
        let declaration = declare_strict(
            "read",
            "Reads a text file or shows an image (JPEG, PNG, GIF, WebP, BMP). A text is returned without line numbers, \
             at most 2000 lines or 50KB of it, whichever is less; the result then says with which offset to go on.",
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The file, relative to the working directory or absolute"},
                    "offset": {"type": "number", "description": "First line to read, from 1"},
                    "limit": {"type": "number", "description": "Most lines to read"}
                },
                "required": ["path"]
            }),
        );
        let output_schema = json!({
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {
                        "type": {"const": "image"},
                        "data": {"type": "string"},
                        "mimeType": {"type": "string"},
                        "note": {"type": "string"}
                    },
                    "required": ["type", "data", "mimeType", "note"]
                }
            ]
        });
        Self { workspace, images, facts, declaration, output_schema }
    }
}

#[async_trait]
impl AgentTool for ReadTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn replay_policy(&self) -> ReplayPolicy {
        ReplayPolicy::Safe
    }

    fn output_schema(&self) -> Option<&Value> {
        Some(&self.output_schema)
    }

    async fn execute(&self, arguments: ToolArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let Arguments { path, offset, limit } = serde_json::from_value(Value::Object(arguments))?;
        let facts = self.facts.facts();
        let images = match (self.images, facts.model.as_ref().map(|model| model.images)) {
            (ReadImages::AsTheyAre, _) => ImageOptions::AsTheyAre,
            (ReadImages::FitModel, Some(ModelImages::Taken(options))) => options,
            (ReadImages::FitModel, _) => ImageOptions::Default,
        };
        let request = ReadRequest { path, offset, limit };
        Ok(match read_file(&self.workspace, &request, &images, &context.signal).await? {
            ReadOutcome::Text(text) => text_output(text),
            ReadOutcome::Image(image) => image_output(image, &facts),
        })
    }
}

fn text_output(read: TextRead) -> ToolOutput {
    let text = read.text();
    let mut details = Map::new();
    if let Some(truncation) = &read.truncation {
        details.insert("truncation".to_owned(), json!(truncation));
    }
    if let Some(encoding) = read.encoding {
        details.insert("encoding".to_owned(), encoding.into());
    }
    let output = ToolOutput::text(text.clone()).structured(text);
    if details.is_empty() { output } else { output.details(details) }
}

fn image_output(read: ImageRead, facts: &SessionFacts) -> ToolOutput {
    let Some(image) = read.image else {
        return ToolOutput::text(read.text.clone()).structured(read.text);
    };
    let structured = json!({"type": "image", "data": image.data, "mimeType": image.mime_type, "note": read.text});
    let blocks = [InputBlock::text(read.text), InputBlock::image(image.data, image.mime_type)];
    let output = ToolOutput::blocks(blocks).structured(structured);
    match &facts.model {
        // The image is replaced when the request is made; whoever looks at the result can tell why.
        Some(model) if model.images == ModelImages::NotTaken => {
            output.details(json!({"imageUnsupportedByModel": model.id}))
        }
        _ => output,
    }
}
