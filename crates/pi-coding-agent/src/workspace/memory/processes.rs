//! Processes that are none: refused, or scripted by the test.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::workspace::{ProcessEnd, ProcessError, ProcessOutcome, Processes, ShellCommand, ShellExit};

/// Runs nothing: every command is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProcesses;

#[async_trait]
impl Processes for NoProcesses {
    async fn run(
        &self,
        _command: ShellCommand,
        _output: mpsc::Sender<Bytes>,
        _cancel: CancellationToken,
    ) -> Result<ProcessEnd, ProcessError> {
        Err(ProcessError::Unsupported)
    }
}

type Script = dyn Fn(&ShellCommand) -> (Bytes, i32) + Send + Sync;

/// Answers every command with an output and an exit code that a function makes up.
#[derive(Clone)]
pub struct ScriptedProcesses(Arc<Script>);

impl ScriptedProcesses {
    /// Processes that answer as `script` says: what the command writes, and its exit code.
    pub fn new(script: impl Fn(&ShellCommand) -> (Bytes, i32) + Send + Sync + 'static) -> Self {
        Self(Arc::new(script))
    }
}

impl fmt::Debug for ScriptedProcesses {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ScriptedProcesses").finish_non_exhaustive()
    }
}

#[async_trait]
impl Processes for ScriptedProcesses {
    async fn run(
        &self,
        command: ShellCommand,
        output: mpsc::Sender<Bytes>,
        _cancel: CancellationToken,
    ) -> Result<ProcessEnd, ProcessError> {
        let (written, code) = (self.0)(&command);
        // A receiver that is gone wants no output; the command ends all the same.
        let _ = output.send(written).await;
        Ok(ProcessEnd { outcome: ProcessOutcome::Exited(ShellExit::Code(code)), survivors: Vec::new() })
    }
}
