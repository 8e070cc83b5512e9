//! Programs that extensions run, without a shell, where the session's own commands run.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use bytes::Bytes;
use pi_ai::CancellationToken;
use tokio::sync::mpsc;

use super::ExtensionError;
use crate::workspace::{ProcessOutcome, ProgramCommand, ShellExit, Workspace};

/// How long a program has to end itself before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// Pieces of output that wait to be taken in; then the program waits.
const PIECES_WAITING: usize = 16;

/// How a program is run.
#[derive(Clone, Debug)]
pub struct ExecOptions {
    /// Where. `None`: in the session's folder.
    pub cwd: Option<PathBuf>,
    /// When to end it.
    pub timeout: Option<Duration>,
    /// Ends it when it is cancelled, besides the signal of the context.
    pub signal: CancellationToken,
    /// How many bytes are read of what it writes, both outputs together; one that writes more is ended.
    pub max_output: usize,
}

impl Default for ExecOptions {
    fn default() -> Self {
        Self { cwd: None, timeout: None, signal: CancellationToken::new(), max_output: 256 << 20 }
    }
}

/// A program that is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecResult {
    /// What it wrote, as text.
    pub stdout: String,
    /// What it wrote about errors, as text.
    pub stderr: String,
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Whether it was ended from here: aborted, out of time, or for writing too much.
    pub killed: bool,
}

impl ExecResult {
    /// Whether it ended by itself and well.
    pub fn succeeded(&self) -> bool {
        self.code == Some(0) && !self.killed
    }
}

pub(super) async fn exec(
    workspace: &Workspace,
    program: &str,
    arguments: Vec<String>,
    options: &ExecOptions,
    signal: &CancellationToken,
) -> Result<ExecResult, ExtensionError> {
    let cwd = options.cwd.as_ref().map_or_else(|| workspace.cwd().to_owned(), |cwd| workspace.cwd().join(cwd));
    let command =
        ProgramCommand { program: program.to_owned(), arguments, cwd, timeout: options.timeout, grace: GRACE };
    let shown_cwd = command.cwd.display().to_string();
    let over = signal.child_token();
    let budget = Budget { left: AtomicUsize::new(options.max_output), over: over.clone() };
    let (stdout, out) = mpsc::channel(PIECES_WAITING);
    let (stderr, err) = mpsc::channel(PIECES_WAITING);
    let running = workspace.processes().exec(command, stdout, stderr, over.clone());
    let mut all = std::pin::pin!(async { tokio::join!(running, budget.collect(out), budget.collect(err)) });
    let (end, out, err) = tokio::select! {
        all = &mut all => all,
        () = options.signal.cancelled() => {
            over.cancel();
            all.await
        }
    };
    let end =
        end.map_err(|error| ExtensionError::new(format!("`{program}` could not be started in {shown_cwd}: {error}")))?;
    let (code, ended) = match end.outcome {
        ProcessOutcome::Exited(ShellExit::Code(code)) => (Some(code), false),
        ProcessOutcome::Exited(_) => (None, false),
        ProcessOutcome::TimedOut | ProcessOutcome::Aborted => (None, true),
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(ExecResult { stdout: text(out), stderr: text(err), code, killed: ended || budget.is_exceeded() })
}

/// How much may still be read of both outputs together.
struct Budget {
    left: AtomicUsize,
    /// Ends the program that writes more.
    over: CancellationToken,
}

impl Budget {
    const EXCEEDED: usize = usize::MAX;

    fn is_exceeded(&self) -> bool {
        self.left.load(Ordering::Relaxed) == Self::EXCEEDED
    }

    /// Takes what comes, as far as the budget goes. What comes after it is read, so that nobody waits, and dropped.
    async fn collect(&self, mut pieces: mpsc::Receiver<Bytes>) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(piece) = pieces.recv().await {
            if self.is_exceeded() {
                continue;
            }
            // Both outputs are read by one task, so that nothing comes between the two steps.
            let left = self.left.load(Ordering::Relaxed);
            let taken = left.min(piece.len());
            all.extend_from_slice(&piece[..taken]);
            if taken < piece.len() {
                self.left.store(Self::EXCEEDED, Ordering::Relaxed);
                self.over.cancel();
            } else {
                self.left.store(left - taken, Ordering::Relaxed);
            }
        }
        all
    }
}
