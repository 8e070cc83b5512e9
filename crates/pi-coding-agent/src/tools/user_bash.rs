//! Commands that a person runs in the session: `!command`, `!!command`.
//!
//! They differ from the model's: nothing about the session is in their environment, and there is no timeout.
//! What an aborted command wrote is kept.

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::bash::with_prefix;
use super::exec::{Watch, execute};
use crate::workspace::{ProcessError, ProcessOutcome, ShellCommand, Workspace};

/// A person's command that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserCommandResult {
    /// The end of what it wrote, as text without control sequences.
    pub output: String,
    /// Its exit code; absent when it was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Whether it wrote more than `output` holds.
    pub truncated: bool,
    /// The file with all that it wrote, when there was more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
}

/// Runs a person's command. `on_text` gets the output while it comes.
///
/// # Errors
///
/// When it could not be started.
pub async fn run_user_command(
    workspace: &Workspace,
    command: &str,
    prefix: Option<&str>,
    cancel: CancellationToken,
    on_text: &mut (dyn FnMut(&str) + Send),
) -> Result<UserCommandResult, ProcessError> {
    let command = ShellCommand {
        script: with_prefix(prefix, command),
        cwd: workspace.cwd().to_owned(),
        variables: Vec::new(),
        timeout: None,
    };
    let done = execute(workspace, command, cancel, &mut Texts { on_text }).await;
    let snapshot = done.output.snapshot();
    let exit_code = match done.end?.outcome {
        ProcessOutcome::Exited(exit) => Some(exit.code()),
        ProcessOutcome::TimedOut | ProcessOutcome::Aborted => None,
    };
    Ok(UserCommandResult {
        output: snapshot.truncation.content.clone(),
        exit_code,
        cancelled: exit_code.is_none(),
        truncated: snapshot.truncation.truncated,
        full_output_path: snapshot.full_output.path().map(|path| path.display().to_string()),
    })
}

struct Texts<'a> {
    on_text: &'a mut (dyn FnMut(&str) + Send),
}

impl Watch for Texts<'_> {
    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            (self.on_text)(text);
        }
    }
}
