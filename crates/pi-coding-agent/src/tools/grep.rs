//! The `grep` tool: lines of files that match a pattern.

use async_trait::async_trait;
use pi_agent_core::{AgentTool, ReplayPolicy, ToolArguments, ToolContext, ToolError, ToolOutput};
use pi_ai::ToolDeclaration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ls::at_least_one;
use super::paths;
use super::search_text::{CutText, UNREADABLE, note_about, search_failed};
use super::shown_name::shown_name;
use super::truncate::{MAX_BYTES, MAX_GREP_LINE, Truncation, format_size};
use crate::workspace::{
    CaseRule, GrepFile, GrepLine, GrepLineKind, GrepQuery, GrepResult, GrepStop, Pattern, Workspace,
};

/// Matches that are shown, unless the call says otherwise.
const DEFAULT_LIMIT: usize = 100;

/// The details of a search in which something is missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrepDetails {
    /// The limit, when there were more matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_limit_reached: Option<usize>,
    /// What was cut, when the text was too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Truncation>,
    /// Set when lines were cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines_truncated: Option<bool>,
}

/// The `grep` tool.
#[derive(Debug)]
pub struct GrepTool {
    workspace: Workspace,
    declaration: ToolDeclaration,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    ignore_case: Option<bool>,
    literal: Option<bool>,
    context: Option<f64>,
    limit: Option<f64>,
}

impl GrepTool {
    /// The tool for a workspace.
    #[must_use]
    pub fn new(workspace: Workspace) -> Self {
        let declaration = ToolDeclaration::new(
            "grep",
            "Searches the contents of files for a pattern and returns the matching lines with their files and line \
             numbers. Hidden files are searched, files that .gitignore and its like exclude are not. At most 100 \
             matches or 50KB are returned, whichever is less, and 500 characters of each line.",
            json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "A regular expression, or the text itself with `literal`"},
                    "path": {"type": "string", "description": "The directory or file to search; without it, the working directory"},
                    "glob": {"type": "string", "description": "Only files that this glob matches: below `path`, as in 'src/**/*.ts', or by their names, as in '*.ts'; `!` in front excludes them"},
                    "ignoreCase": {"type": "boolean", "description": "Take upper and lower case as equal"},
                    "literal": {"type": "boolean", "description": "Take the pattern as the text itself"},
                    "context": {"type": "number", "description": "Lines to show before and after each match; none without it"},
                    "limit": {"type": "number", "description": "Most matches to show; 100 without it"}
                },
                "required": ["pattern"]
            }),
        );
        Self { workspace, declaration }
    }
}

#[async_trait]
impl AgentTool for GrepTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn replay_policy(&self) -> ReplayPolicy {
        ReplayPolicy::Safe
    }

    async fn execute(&self, arguments: ToolArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments: Arguments = serde_json::from_value(Value::Object(arguments))?;
        let path = arguments.path.filter(|path| !path.is_empty()).unwrap_or_else(|| ".".to_owned());
        let root = paths::to_read(&path, &self.workspace).await?;
        let limit = at_least_one(arguments.limit, DEFAULT_LIMIT);
        let query = GrepQuery {
            pattern: if arguments.literal.unwrap_or(false) {
                Pattern::Literal(arguments.pattern)
            } else {
                Pattern::Regex(arguments.pattern)
            },
            case: if arguments.ignore_case.unwrap_or(false) { CaseRule::Insensitive } else { CaseRule::Sensitive },
            root,
            glob: arguments.glob.filter(|glob| !glob.is_empty()),
            // Casting ends at the limits of the type.
            context: arguments.context.map_or(0, |lines| lines.floor() as usize),
            limit,
            line_units: MAX_GREP_LINE,
            text_bytes: MAX_BYTES,
        };
        let result = self.workspace.search().grep(query, context.signal.clone()).await;
        Ok(present(result.map_err(|error| search_failed(error, &path))?, limit))
    }
}

fn present(result: GrepResult, limit: usize) -> ToolOutput {
    let mut text = CutText::default();
    let mut lines_truncated = false;
    for file in &result.files {
        for line in &file.lines {
            lines_truncated |= line.shortened;
            push_line(&mut text, file, line);
        }
    }
    let mut notices = Vec::new();
    let mut details = GrepDetails::default();
    if result.more {
        notices.push(format!(
            "Only the first {limit} matches. For more use limit={}, or a narrower pattern",
            limit.saturating_mul(2)
        ));
        details.match_limit_reached = Some(limit);
    }
    let truncation = text.finish();
    let mut text = if result.files.is_empty() { "No matches found".to_owned() } else { truncation.content.clone() };
    if truncation.truncated {
        notices.push(format!("Cut at {}", format_size(MAX_BYTES as u64)));
        details.truncation = Some(truncation);
    }
    if lines_truncated {
        notices.push(format!("Long lines are cut to {MAX_GREP_LINE} characters; read shows them whole"));
        details.lines_truncated = Some(true);
    }
    notices.extend(stopped_notices(&result));
    if !notices.is_empty() {
        text.push_str(&format!("\n\n[{}]", notices.join(". ")));
    }
    let output = ToolOutput::text(text);
    if details == GrepDetails::default() { output } else { output.details(details) }
}

fn push_line(text: &mut CutText, file: &GrepFile, line: &GrepLine) {
    let mark = match line.kind {
        GrepLineKind::Match => ':',
        GrepLineKind::Context => '-',
    };
    let head = format!("{}{mark}{}{mark} ", shown_name(&file.path), line.number);
    match &line.text {
        Some(line) => text.push(&format!("{head}{line}")),
        None => text.count(head.len() + line.len),
    }
}

/// Which files were not searched to their end.
fn stopped_notices(result: &GrepResult) -> Vec<String> {
    let within = result.files.iter().filter_map(|file| Some((file.path.as_str(), file.stopped?)));
    let without = result.stopped.iter().map(|(path, stop)| (path.as_str(), *stop));
    let stopped: Vec<(&str, GrepStop)> = within.chain(without).collect();
    let kinds = [
        (GrepStop::Binary, "Binary and not searched behind the first NUL byte"),
        (GrepStop::LongLine, "Not searched behind a line of more than 64MB"),
        (GrepStop::Unreadable, UNREADABLE),
    ];
    let of_kind = |(kind, words)| {
        let paths: Vec<&str> = stopped.iter().filter(|(_, stop)| *stop == kind).map(|(path, _)| *path).collect();
        note_about(words, &paths)
    };
    kinds.into_iter().filter_map(of_kind).collect()
}
