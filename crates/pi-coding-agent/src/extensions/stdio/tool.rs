//! A tool that a program runs.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use pi_agent_core::{AgentTool, ExecutionMode, ToolArguments, ToolContext, ToolError, ToolOutput};
use pi_ai::{Content, InputBlock, ToolDeclaration, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{manifest::DeclaredTool, program::Program};
use crate::{agent_session::SessionTool, extensions::ExtensionError};

/// The tool as the session knows it.
pub(super) fn session_tool(name: &str, declared: &DeclaredTool, program: Arc<Program>) -> SessionTool {
    let time = declared.timeout_ms.map_or(program.manifest().timeouts.tool, Duration::from_millis);
    let tool = StdioTool {
        declaration: ToolDeclaration::new(name, &declared.description, declared.parameters.clone()),
        label: declared.label.clone().unwrap_or_else(|| name.to_owned()),
        mode: declared.mode(),
        time,
        program,
    };
    SessionTool {
        snippet: declared.prompt_snippet.clone(),
        guidelines: declared.prompt_guidelines.clone(),
        ..SessionTool::custom(tool)
    }
}

struct StdioTool {
    declaration: ToolDeclaration,
    label: String,
    mode: ExecutionMode,
    time: Duration,
    program: Arc<Program>,
}

#[async_trait]
impl AgentTool for StdioTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn label(&self) -> &str {
        &self.label
    }

    fn execution_mode(&self) -> ExecutionMode {
        self.mode
    }

    async fn execute(&self, arguments: ToolArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let params = json!({"callId": context.call_id, "name": self.declaration.name, "arguments": arguments});
        let answered = self.program.run_tool(&params, self.time, context).await;
        let named = |what: String| ToolError::new(format!("extension `{}`: {what}", self.program.manifest().name()));
        let answer = answered.map_err(|error| named(error.to_string()))?;
        let output: Output = serde_json::from_value(answer)
            .map_err(|error| named(format!("its answer is no result of a tool: {error}")))?;
        output.into_output().map_err(|error| named(error.to_string()))
    }
}

/// What a tool gives, as a program writes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Output {
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    details: Option<Value>,
    #[serde(default)]
    structured_content: Option<Value>,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    terminate: Option<bool>,
}

impl Output {
    pub(super) fn into_output(self) -> Result<ToolOutput, ExtensionError> {
        let content = match self.content {
            Some(Content::Text(text)) => vec![InputBlock::text(text)],
            Some(Content::Blocks(blocks)) => blocks,
            None => Vec::new(),
        };
        if let Some(InputBlock::Unknown(_)) = content.iter().find(|block| matches!(block, InputBlock::Unknown(_))) {
            return Err(ExtensionError::new("`content` is a text, or a list of text and image blocks"));
        }
        Ok(ToolOutput {
            content,
            details: self.details,
            structured_content: self.structured_content,
            usage: self.usage,
            is_error: self.is_error,
            terminate: self.terminate,
        })
    }
}
