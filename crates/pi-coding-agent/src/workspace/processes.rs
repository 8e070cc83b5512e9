//! The process half of a workspace.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A script for the workspace's shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellCommand {
    /// The script.
    pub script: String,
    /// The directory it starts in.
    pub cwd: PathBuf,
    /// Environment variables that differ from the workspace's own: set to a value, or taken out.
    pub variables: Vec<(String, Option<String>)>,
    /// When to end it.
    pub timeout: Option<Duration>,
}

/// A program that is run without a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCommand {
    /// Its name, which is looked up on the workspace's `PATH`, or its path; a relative one starts from `cwd`.
    pub program: String,
    /// Its arguments, word by word.
    pub arguments: Vec<String>,
    /// The directory it starts in.
    pub cwd: PathBuf,
    /// When to end it.
    pub timeout: Option<Duration>,
    /// How long it has to end itself before it is killed.
    pub grace: Duration,
}

impl ProgramCommand {
    /// The same as a script: each word quoted for a POSIX shell, which gives its place to the program.
    #[must_use]
    pub fn to_shell(&self) -> ShellCommand {
        let quote = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
        let words: Vec<String> = std::iter::once(&self.program).chain(&self.arguments).map(quote).collect();
        ShellCommand {
            script: format!("exec {}", words.join(" ")),
            cwd: self.cwd.clone(),
            variables: Vec::new(),
            timeout: self.timeout,
        }
    }
}

/// How a shell came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShellExit {
    /// It ended itself.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
}

impl ShellExit {
    /// The exit code, by the shell's own convention 128 + n after signal n.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// How a command came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessOutcome {
    /// The shell ended. What it left in the background may go on.
    Exited(ShellExit),
    /// The time was up and everything was ended.
    TimedOut,
    /// The caller cancelled and everything was ended.
    Aborted,
}

/// A process that outlived the end of its command because it had left its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Survivor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (pid {})", self.name, self.pid)
    }
}

/// The end of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessEnd {
    /// How it ended.
    pub outcome: ProcessOutcome,
    /// Processes of a command that was ended that are known to run on, out of reach in sessions of their own: those that
    /// still hold its output, and those that descended from its shell when the end began. On Linux only; one that was
    /// given away by its parents before and writes elsewhere is not seen.
    pub survivors: Vec<Survivor>,
}

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// Its directory is not there.
    #[error("The working directory does not exist: {}. No command can run there; create it again or use another directory.", .0.display())]
    MissingDirectory(PathBuf),
    /// There is no shell.
    #[error("No shell to run commands with: {0}")]
    NoShell(String),
    /// There is no such program.
    #[error("`{program}` is in no directory of PATH (relative ones are not searched). Install it, or name its path.")]
    NoProgram {
        /// Its name.
        program: String,
    },
    /// The workspace runs no commands.
    #[error("This workspace runs no commands.")]
    Unsupported,
    /// The sandbox that was asked for cannot be set up, so nothing was run.
    #[error("The command was not run. {0}")]
    Sandbox(#[from] super::local::SandboxUnavailable),
    /// Starting it failed.
    #[error("The command could not be started: {0}")]
    Start(#[source] std::io::Error),
}

/// Running commands.
#[async_trait]
pub trait Processes: fmt::Debug + Send + Sync + 'static {
    /// Runs a command with nothing on its standard input and sends what it writes, standard output and
    /// error in order of arrival, to `output`. Returns when the shell has ended, or soon after the time is up or
    /// `cancel` fires: then the command and everything it started has been ended, politely first.
    ///
    /// The receiver must be drained meanwhile; dropping it discards the rest of the output.
    ///
    /// # Errors
    ///
    /// Only when the command could not be started.
    async fn run(
        &self,
        command: ShellCommand,
        output: mpsc::Sender<Bytes>,
        cancel: CancellationToken,
    ) -> Result<ProcessEnd, ProcessError>;

    /// Runs a program without a shell, with nothing on its standard input, and sends what it writes to `stdout` and
    /// `stderr`. It ends as [`run`](Self::run) does.
    ///
    /// Both receivers must be drained meanwhile. Where it is not implemented the program's words go quoted to the
    /// shell, and both outputs come as one, to `stdout`.
    ///
    /// # Errors
    ///
    /// Only when the program could not be started.
    async fn exec(
        &self,
        command: ProgramCommand,
        stdout: mpsc::Sender<Bytes>,
        stderr: mpsc::Sender<Bytes>,
        cancel: CancellationToken,
    ) -> Result<ProcessEnd, ProcessError> {
        drop(stderr);
        self.run(command.to_shell(), stdout, cancel).await
    }

    /// Ends every command that runs, at once and with all it started, and every one that is begun later: for a program
    /// that quits without waiting for them. Where commands end with the program anyway there is nothing to do.
    fn kill_all(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_program_mean_nothing_to_a_shell() {
        let command = ProgramCommand {
            program: "git".into(),
            arguments: vec!["log".into(), "it's $HOME; ls".into(), String::new()],
            cwd: "/project".into(),
            timeout: None,
            grace: Duration::ZERO,
        };
        assert_eq!(command.to_shell().script, r"exec 'git' 'log' 'it'\''s $HOME; ls' ''");
    }
}
