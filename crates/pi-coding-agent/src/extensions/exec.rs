//! Programs that extensions run, without a shell.

use std::{path::PathBuf, process::Stdio, time::Duration};

use pi_ai::CancellationToken;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::Child,
};

use super::ExtensionError;

/// How long a program has to end itself before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// How a program is run.
#[derive(Clone, Debug)]
pub struct ExecOptions {
    /// Where. `None`: in the session's folder.
    pub cwd: Option<PathBuf>,
    /// When to end it.
    pub timeout: Option<Duration>,
    /// Ends it when it is cancelled, besides the signal of the context.
    pub signal: CancellationToken,
    /// How many bytes are read of what it writes; one that writes more is ended.
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
    program: &str,
    arguments: &[String],
    cwd: PathBuf,
    options: &ExecOptions,
    signal: &CancellationToken,
) -> Result<ExecResult, ExtensionError> {
    let mut command = tokio::process::Command::new(program);
    command
        .args(arguments)
        .current_dir(&cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let started = command.spawn();
    let mut child = started.map_err(|error| {
        ExtensionError::new(format!("`{program}` could not be started in {}: {error}", cwd.display()))
    })?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    // A budget for both together would let one starve the other, so that each may have all of it.
    let reading = async {
        let (out, err) =
            tokio::join!(read(stdout, &mut out, options.max_output), read(stderr, &mut err, options.max_output));
        if out && err { child.wait().await.ok() } else { None }
    };
    let ended = tokio::select! {
        status = reading => status,
        () = signal.cancelled() => None,
        () = options.signal.cancelled() => None,
        () = elapsed(options.timeout) => None,
    };
    let (code, killed) = match ended {
        Some(status) => (status.code(), false),
        None => (end(&mut child).await, true),
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(ExecResult { stdout: text(out), stderr: text(err), code, killed })
}

/// Reads to the end. Whether it came to it before the limit.
async fn read(from: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>, limit: usize) -> bool {
    let Some(mut from) = from else { return true };
    let mut piece = vec![0; 16 << 10];
    loop {
        match from.read(&mut piece).await {
            Ok(0) | Err(_) => return true,
            Ok(count) if into.len() + count > limit => return false,
            Ok(count) => into.extend_from_slice(&piece[..count]),
        }
    }
}

/// Ends a program, politely first.
async fn end(child: &mut Child) -> Option<i32> {
    #[cfg(unix)]
    if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw) {
        // It may be gone already, which is what is wanted.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        if let Ok(status) = tokio::time::timeout(GRACE, child.wait()).await {
            return status.ok().and_then(|status| status.code());
        }
    }
    // As above.
    let _ = child.kill().await;
    None
}

async fn elapsed(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => std::future::pending().await,
    }
}
