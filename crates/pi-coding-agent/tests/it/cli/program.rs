//! Runs the program in a folder and a home of its own.

use std::{
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use fake_llm::{Server, Wire};
use serde_json::{Value, json};

/// A hang is told from an end after this long.
const DEADLINE: Duration = Duration::from_secs(60);

/// A place to run `pi` in: a home and a working folder that nobody else has, and no environment variables but these.
pub(super) struct Place {
    folder: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

/// What a run of the program came to.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) code: Option<i32>,
}

impl Place {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        fs::create_dir_all(folder.path().join("home/.pi/agent")).unwrap();
        Self { folder, variables: Vec::new() }
    }

    /// A place whose `models.json` names this server, as provider `local` with the model `m`.
    pub(super) fn with_server(server: &Server, wire: Wire) -> Self {
        let place = Self::new();
        let (api, base_url) = match wire {
            Wire::AnthropicMessages => ("anthropic-messages", server.base_url().trim_end_matches("/v1").to_owned()),
            _ => ("openai-completions", server.base_url().to_owned()),
        };
        place.models(&json!({"providers": {"local": {
            "baseUrl": base_url, "api": api, "apiKey": "test-key", "models": [{"id": "m"}],
        }}}));
        place
    }

    pub(super) fn models(&self, models: &Value) {
        self.agent_file("models.json", &models.to_string());
    }

    pub(super) fn agent_file(&self, name: &str, text: &str) {
        fs::write(self.agent_dir().join(name), text).unwrap();
    }

    pub(super) fn agent_dir(&self) -> PathBuf {
        self.folder.path().join("home/.pi/agent")
    }

    pub(super) fn cwd(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(super) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.cwd().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
        command
            .args(words)
            .current_dir(self.cwd())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path().join("home"))
            .env("TMPDIR", self.folder.path())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(super) fn run(&self, words: &[&str]) -> Ran {
        wait(self.command(words).spawn().unwrap())
    }

    pub(super) fn run_with_stdin(&self, words: &[&str], stdin: &str) -> Ran {
        let mut child = self.command(words).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        wait(child)
    }

    /// The session files of the working folder, by name.
    pub(super) fn session_files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        collect(&self.agent_dir().join("sessions"), &mut files);
        files.sort();
        files
    }

    /// The lines of the only session.
    pub(super) fn session_lines(&self) -> Vec<Value> {
        let files = self.session_files();
        assert_eq!(files.len(), 1, "{files:?}");
        lines(&fs::read_to_string(&files[0]).unwrap())
    }
}

pub(super) fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"))).collect()
}

/// Waits for the program, reading both of its outputs.
pub(super) fn wait(mut child: Child) -> Ran {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let stdout = thread::spawn(move || stdout.map(read_all).unwrap_or_default());
    let stderr = thread::spawn(move || stderr.map(read_all).unwrap_or_default());
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > DEADLINE {
            child.kill().unwrap();
            panic!("pi did not end: {}", stderr.join().unwrap());
        }
        thread::sleep(Duration::from_millis(5));
    };
    Ran { stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap(), code: status.code() }
}

fn read_all(mut from: impl Read) -> String {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => collect(&path, files),
            path if path.extension().is_some_and(|ending| ending == "jsonl") => files.push(path),
            _ => {}
        }
    }
}
