//! The `bash` tool: a command in the session's shell.
//!
//! A command that is ended, by its timeout or an abort, is ended with everything in its session. What went into a
//! session of its own stays; which of that the result names is said at
//! [`ProcessEnd::survivors`](crate::workspace::ProcessEnd::survivors).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pi_agent_core::{AgentTool, ToolArguments, ToolContext, ToolError, ToolOutput};
use pi_ai::{InputBlock, ToolDeclaration};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::declare::declare_strict;
use super::exec::{
    CutShort, Execution, NO_OUTPUT, OutputAccumulator, Snapshot, Watch, add_paragraph, cut_short_line, execute,
    exit_line, shown_output, survivors_line,
};
use super::session_facts::FactsSource;
use super::truncate::Truncation;
use crate::workspace::{ProcessError, ProcessOutcome, ShellCommand, Workspace};

/// Longest timeout, in milliseconds: what other implementations' timers can hold.
const MAX_TIMEOUT_MS: f64 = 2_147_483_647.0;

/// Changes a command before it runs: an extension that puts it into a container, for example.
pub type CommandHook = Arc<dyn Fn(ShellCommand) -> ShellCommand + Send + Sync>;

/// How `bash` runs commands.
#[derive(Clone, Default)]
pub struct BashOptions {
    /// Put in front of every command, on a line of its own.
    pub command_prefix: Option<String>,
    /// What commands learn about the session, as `PI_*` variables.
    pub facts: FactsSource,
    /// Changes each command before it runs.
    pub hook: Option<CommandHook>,
}

impl fmt::Debug for BashOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("BashOptions")
            .field("command_prefix", &self.command_prefix)
            .field("facts", &self.facts)
            .field("has_hook", &self.hook.is_some())
            .finish()
    }
}

/// The details of a `bash` result whose output was cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BashDetails {
    /// What was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Truncation>,
    /// The file with all of the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
}

/// The `bash` tool.
#[derive(Debug)]
pub struct BashTool {
    workspace: Workspace,
    options: BashOptions,
    declaration: ToolDeclaration,
    output_schema: Value,
}

#[derive(Debug, Deserialize)]
struct Arguments {
    command: String,
    timeout: Option<f64>,
}

impl BashTool {
    /// The tool for a workspace.
    #[must_use]
    pub fn new(workspace: Workspace, options: BashOptions) -> Self {
        let declaration = declare_strict(
            "bash",
            "Runs a bash command in the working directory and returns what it writes to standard output and standard \
             error. Only the last 2000 lines or 50KB are returned, whichever is less; a longer output is saved to a \
             file that the result names. There is no terminal and no input.",
            json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "The command to run"},
                    "timeout": {"type": "number", "description": "Seconds after which the command is ended; without it, it may run for ever"}
                },
                "required": ["command"]
            }),
        );
        let output_schema = json!({
            "type": "object",
            "properties": {
                "output": {"type": "string", "description": "Standard output and standard error; the middle is left out beyond 1 MiB"},
                "truncated": {"type": "boolean"},
                "full_output_path": {"type": "string", "description": "The file with all of the output, when something was left out"},
                "exit_code": {"type": "number"},
                "wall_time_seconds": {"type": "number"}
            },
            "required": ["output", "truncated", "exit_code", "wall_time_seconds"]
        });
        Self { workspace, options, declaration, output_schema }
    }

    fn command(&self, arguments: &Arguments) -> Result<ShellCommand, ToolError> {
        let command = ShellCommand {
            script: with_prefix(self.options.command_prefix.as_deref(), &arguments.command),
            cwd: self.workspace.cwd().to_owned(),
            variables: self.options.facts.facts().variables(),
            timeout: arguments.timeout.map(checked_timeout).transpose()?,
        };
        Ok(match &self.options.hook {
            Some(hook) => hook(command),
            None => command,
        })
    }
}

pub(super) fn with_prefix(prefix: Option<&str>, command: &str) -> String {
    match prefix {
        Some(prefix) if !prefix.is_empty() => format!("{prefix}\n{command}"),
        _ => command.to_owned(),
    }
}

fn checked_timeout(seconds: f64) -> Result<Duration, ToolError> {
    let usable = seconds.is_finite() && seconds > 0.0 && seconds * 1000.0 <= MAX_TIMEOUT_MS;
    if usable { Duration::try_from_secs_f64(seconds).ok() } else { None }.ok_or_else(|| {
        ToolError::new(format!(
            "The timeout must be more than 0 and at most {} seconds, not {seconds}.",
            MAX_TIMEOUT_MS / 1000.0
        ))
    })
}

#[async_trait]
impl AgentTool for BashTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn output_schema(&self) -> Option<&Value> {
        Some(&self.output_schema)
    }

    async fn execute(&self, arguments: ToolArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments: Arguments = serde_json::from_value(Value::Object(arguments))?;
        let command = self.command(&arguments)?;
        let timeout = arguments.timeout.unwrap_or_default();
        // Shows that it runs before there is anything to show.
        context.update(ToolOutput::default());
        let mut watch = Updates { context: &context };
        let done = execute(&self.workspace, command, context.signal.clone(), &mut watch).await;
        report(done, timeout)
    }
}

fn report(done: Execution, timeout: f64) -> Result<ToolOutput, ToolError> {
    let Execution { end, output, wall_time } = done;
    let snapshot = output.snapshot();
    let mut text = shown_output(&output, &snapshot);
    let end = end.map_err(|error: ProcessError| match text.as_str() {
        "" => ToolError::from(error),
        _ => ToolError::new(format!("{text}\n\n{error}")),
    })?;
    let exit = match end.outcome {
        ProcessOutcome::Exited(exit) => exit,
        ended => {
            add_paragraph(
                &mut text,
                &cut_short_line(match ended {
                    ProcessOutcome::TimedOut => CutShort::After { seconds: timeout },
                    _ => CutShort::Aborted,
                }),
            );
            if let Some(survivors) = survivors_line(&end.survivors) {
                text.push_str(". ");
                text.push_str(&survivors);
            }
            return Err(ToolError::new(text));
        }
    };
    if text.is_empty() {
        text.push_str(NO_OUTPUT);
    }
    if exit.code() != 0 {
        add_paragraph(&mut text, &exit_line(exit));
    }
    let structured = output.structured();
    let mut result = ToolOutput::text(text).structured(Structured {
        truncated: structured.truncated,
        full_output_path: path_of(&snapshot).filter(|_| structured.truncated),
        output: structured.text,
        exit_code: exit.code(),
        wall_time_seconds: (wall_time.as_secs_f64() * 10.0).round() / 10.0,
    });
    if snapshot.truncation.truncated {
        result = result.details(details_of(snapshot));
    }
    Ok(if exit.code() == 0 { result } else { result.failed() })
}

#[derive(Serialize)]
struct Structured {
    output: String,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    full_output_path: Option<String>,
    exit_code: i32,
    wall_time_seconds: f64,
}

fn path_of(snapshot: &Snapshot) -> Option<String> {
    snapshot.full_output.path().map(|path| path.display().to_string())
}

fn details_of(snapshot: Snapshot) -> BashDetails {
    BashDetails {
        full_output_path: path_of(&snapshot),
        truncation: snapshot.truncation.truncated.then_some(snapshot.truncation),
    }
}

struct Updates<'a> {
    context: &'a ToolContext,
}

impl Watch for Updates<'_> {
    fn update(&mut self, output: &OutputAccumulator) {
        let snapshot = output.snapshot();
        let text = InputBlock::text(snapshot.truncation.content.clone());
        self.context.update(ToolOutput::blocks([text]).details(details_of(snapshot)));
    }
}
