//! Running commands on a system without Unix's sessions: on Windows in a job object, which ends whole.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
#[cfg(windows)]
use process_wrap::tokio::JobObject;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::workspace::local::launch::Launch;
use crate::workspace::local::{DRAIN_AFTER_EXIT, IDLE_AFTER_EXIT, ProcessOptions};
use crate::workspace::{ProcessEnd, ProcessError, ProcessOutcome, Processes, ProgramCommand, ShellCommand, ShellExit};

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

/// Commands on this machine.
#[derive(Debug)]
pub struct LocalProcesses {
    options: ProcessOptions,
}

impl LocalProcesses {
    /// Commands with these options.
    #[must_use]
    pub fn new(options: ProcessOptions) -> Self {
        Self { options }
    }

    fn spawn(launch: &Launch) -> Result<Box<dyn ChildWrapper>, ProcessError> {
        let mut wrap = CommandWrap::with_new(&launch.program, |process| {
            process
                .args(&launch.arguments)
                .current_dir(&launch.folder)
                .env_clear()
                .envs(&launch.environment)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
        });
        #[cfg(windows)]
        wrap.wrap(JobObject);
        wrap.wrap(KillOnDrop);
        wrap.spawn().map_err(ProcessError::Start)
    }
}

#[async_trait]
impl Processes for LocalProcesses {
    async fn run(
        &self,
        command: ShellCommand,
        output: mpsc::Sender<Bytes>,
        cancel: CancellationToken,
    ) -> Result<ProcessEnd, ProcessError> {
        let timeout = command.timeout;
        let launch = Launch::shell(&self.options, command)?;
        self.run_to_end(launch, output.clone(), output, timeout, cancel).await
    }

    async fn exec(
        &self,
        command: ProgramCommand,
        stdout: mpsc::Sender<Bytes>,
        stderr: mpsc::Sender<Bytes>,
        cancel: CancellationToken,
    ) -> Result<ProcessEnd, ProcessError> {
        let timeout = command.timeout;
        let launch = Launch::program(&self.options, command)?;
        self.run_to_end(launch, stdout, stderr, timeout, cancel).await
    }
}

impl LocalProcesses {
    async fn run_to_end(
        &self,
        launch: Launch,
        output: mpsc::Sender<Bytes>,
        errors: mpsc::Sender<Bytes>,
        timeout: Option<Duration>,
        cancel: CancellationToken,
    ) -> Result<ProcessEnd, ProcessError> {
        if !tokio::fs::metadata(&launch.folder).await.is_ok_and(|metadata| metadata.is_dir()) {
            return Err(ProcessError::MissingDirectory(launch.folder));
        }
        if let Some(sandbox) = &self.options.sandbox {
            sandbox.enter()?;
        }
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut child = Self::spawn(&launch)?;
        let mut readers = JoinSet::new();
        let pieces = Arc::new(AtomicU64::new(0));
        if let Some(stdout) = child.stdout().take() {
            readers.spawn(forward(stdout, output, Arc::clone(&pieces)));
        }
        if let Some(stderr) = child.stderr().take() {
            readers.spawn(forward(stderr, errors, Arc::clone(&pieces)));
        }
        let outcome = tokio::select! {
            biased;
            () = cancel.cancelled() => ProcessOutcome::Aborted,
            () = until(deadline) => ProcessOutcome::TimedOut,
            // The shell itself, not all that it started.
            status = child.inner_mut().wait() => {
                let code = status.map_err(ProcessError::Start)?.code().unwrap_or(1);
                ProcessOutcome::Exited(ShellExit::Code(code))
            }
        };
        if !matches!(outcome, ProcessOutcome::Exited(_)) {
            // The whole job; what was ended already does not matter.
            let _ = child.start_kill();
        }
        let _ = tokio::time::timeout(DRAIN_AFTER_EXIT, drain(&mut readers, &pieces)).await;
        Ok(ProcessEnd { outcome, survivors: Vec::new() })
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn forward(mut pipe: impl AsyncRead + Unpin, output: mpsc::Sender<Bytes>, pieces: Arc<AtomicU64>) {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(CHUNK);
        match pipe.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            // A receiver that is gone wants no more; the pipe is emptied all the same.
            Ok(_) => {
                let _ = output.send(buffer.split().freeze()).await;
                pieces.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Waits for both pipes to end, or for nothing to come any more.
async fn drain(readers: &mut JoinSet<()>, pieces: &AtomicU64) {
    let mut seen = pieces.load(Ordering::Relaxed);
    loop {
        match tokio::time::timeout(IDLE_AFTER_EXIT, readers.join_next()).await {
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(_) => {
                let now = pieces.load(Ordering::Relaxed);
                if now == seen {
                    return;
                }
                seen = now;
            }
        }
    }
}
