//! Programs that are measured from outside: `pi` itself and the floors beside it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fake_llm::{Server, Wire};
use serde_json::json;
use tempfile::TempDir;
use xtask::measure::peak_memory_of;
use xtask::{Error, workspace};

/// The `pi` binary of this workspace, in release.
pub(crate) fn pi() -> Result<PathBuf, Error> {
    built(&["--package", "pi-coding-agent", "--bin", "pi"])?;
    Ok(workspace::target_dir()?.join("release/pi"))
}

/// The floor program: tokio, reqwest, one request.
pub(crate) fn bare_post() -> Result<PathBuf, Error> {
    built(&["--package", "xtask", "--example", "bare_post"])?;
    Ok(workspace::target_dir()?.join("release/examples/bare_post"))
}

/// A program that calls one tool.
pub(crate) fn tool_call() -> Result<PathBuf, Error> {
    built(&["--package", "xtask", "--example", "tool_call"])?;
    Ok(workspace::target_dir()?.join("release/examples/tool_call"))
}

fn built(target: &[&str]) -> Result<(), Error> {
    let built = workspace::cargo().args(["build", "--quiet", "--release"]).args(target).status()?.success();
    if built { Ok(()) } else { Err(format!("cargo build --release {} failed", target.join(" ")).into()) }
}

/// A home, an agent folder and a project for programs, with a model on a server. All of it goes with the value.
pub(crate) struct Bench {
    folder: TempDir,
}

impl Bench {
    /// A home without a model.
    pub(crate) fn empty() -> Result<Self, Error> {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join("project"))?;
        Ok(Self { folder })
    }

    /// A home whose `models.json` has the model `local/m` on this server, on the wire `openai-completions`.
    pub(crate) fn with_model_on(server: &Server) -> Result<Self, Error> {
        let folder = tempfile::tempdir()?;
        let model = json!({"id": "m", "contextWindow": 1_000_000_000, "maxTokens": 16_384});
        let provider = json!({
            "baseUrl": server.base_url_of(Wire::OpenAiCompletions), "api": Wire::OpenAiCompletions.name(),
            "apiKey": "k", "models": [model],
        });
        std::fs::create_dir(folder.path().join("agent"))?;
        std::fs::create_dir(folder.path().join("project"))?;
        let models = json!({"providers": {"local": provider}});
        std::fs::write(folder.path().join("agent/models.json"), models.to_string())?;
        Ok(Self { folder })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A program in this home, which sees nothing of the person who runs the bench.
    pub(crate) fn command(&self, program: &Path, arguments: &[&OsStr]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.path().join("project"))
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", self.path())
            .env("PI_CODING_AGENT_DIR", self.path().join("agent"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// A run of a program.
pub(crate) struct Run {
    /// When it was started.
    pub(crate) started: Instant,
    /// The most memory it had, in bytes, where the system tells.
    pub(crate) peak_memory: Option<u64>,
}

/// Runs the program to its end, with its output thrown away.
pub(crate) fn run(mut command: Command) -> Result<Run, Error> {
    let started = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn()?;
    let mut peak_memory = None;
    // The mark only rises, so the last look before the end misses next to nothing.
    while child.try_wait()?.is_none() {
        peak_memory = peak_memory_of(child.id()).max(peak_memory);
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(Run { started, peak_memory });
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?} ended with {}: {}", output.status, said.trim()).into())
}
