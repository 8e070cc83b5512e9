//! The `find` tool: files and directories by name.

use async_trait::async_trait;
use pi_agent_core::{AgentTool, ReplayPolicy, ToolArguments, ToolContext, ToolError, ToolOutput};
use pi_ai::ToolDeclaration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ls::at_least_one;
use super::paths;
use super::search_text::{CutText, UNREADABLE, note_about, search_failed};
use super::shown_name::shown_name;
use super::truncate::{MAX_BYTES, Truncation, format_size};
use crate::workspace::{FindQuery, FindResult, Workspace};

/// Paths that are shown, unless the call says otherwise.
const DEFAULT_LIMIT: usize = 1000;

/// The details of a search in which something is missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FindDetails {
    /// The limit, when there were more results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_limit_reached: Option<usize>,
    /// What was cut, when the text was too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Truncation>,
}

/// The `find` tool.
#[derive(Debug)]
pub struct FindTool {
    workspace: Workspace,
    declaration: ToolDeclaration,
}

#[derive(Debug, Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    limit: Option<f64>,
}

impl FindTool {
    /// The tool for a workspace.
    #[must_use]
    pub fn new(workspace: Workspace) -> Self {
        let declaration = ToolDeclaration::new(
            "find",
            "Finds files and directories by a glob and returns their paths below the directory searched, directories \
             with `/` behind them. Hidden ones are found, those that .gitignore and its like exclude are not. At most \
             1000 paths or 50KB are returned, whichever is less.",
            json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "A glob: below `path`, as in 'src/**/*.ts', or for names at any depth, as in '*.ts'. All in lower case, it ignores case"},
                    "path": {"type": "string", "description": "The directory to search; without it, the working directory"},
                    "limit": {"type": "number", "description": "Most paths to return; 1000 without it"}
                },
                "required": ["pattern"]
            }),
        );
        Self { workspace, declaration }
    }
}

#[async_trait]
impl AgentTool for FindTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn replay_policy(&self) -> ReplayPolicy {
        ReplayPolicy::Safe
    }

    async fn execute(&self, arguments: ToolArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let Arguments { pattern, path, limit } = serde_json::from_value(Value::Object(arguments))?;
        let path = path.filter(|path| !path.is_empty()).unwrap_or_else(|| ".".to_owned());
        let root = paths::to_read(&path, &self.workspace).await?;
        let limit = at_least_one(limit, DEFAULT_LIMIT);
        let result = self.workspace.search().find(FindQuery { pattern, root, limit }, context.signal.clone()).await;
        Ok(present(&result.map_err(|error| search_failed(error, &path))?, limit))
    }
}

fn present(result: &FindResult, limit: usize) -> ToolOutput {
    let mut text = CutText::default();
    for path in &result.paths {
        text.push(&shown_name(path));
    }
    let truncation = text.finish();
    let mut text =
        if result.paths.is_empty() { "No files found matching pattern".to_owned() } else { truncation.content.clone() };
    let mut notices = Vec::new();
    let mut details = FindDetails::default();
    if result.more {
        notices.push(format!(
            "Only the first {limit} results. For more use limit={}, or a narrower pattern",
            limit.saturating_mul(2)
        ));
        details.result_limit_reached = Some(limit);
    }
    if truncation.truncated {
        notices.push(format!("Cut at {}", format_size(MAX_BYTES as u64)));
        details.truncation = Some(truncation);
    }
    let unreadable: Vec<&str> = result.unreadable.iter().map(String::as_str).collect();
    notices.extend(note_about(UNREADABLE, &unreadable));
    if !notices.is_empty() {
        text.push_str(&format!("\n\n[{}]", notices.join(". ")));
    }
    let output = ToolOutput::text(text);
    if details == FindDetails::default() { output } else { output.details(details) }
}
