//! The reference as a process that answers calls.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use xtask::Error;

use super::answer::Answer;

const DRIVER: &str = include_str!("driver.mjs");

/// A running reference; ended when dropped.
pub(super) struct Reference {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _driver: TempDir,
}

impl Reference {
    /// Starts it; the reason when it cannot be.
    pub(super) fn start(node: &str, folder: &Path) -> Result<Self, String> {
        let module = folder.join("node_modules/@earendil-works/pi-coding-agent/package.json");
        if !module.exists() {
            return Err(format!("{} is not there", module.display()));
        }
        let start = || -> std::io::Result<Self> {
            let driver = tempfile::tempdir()?;
            let script = driver.path().join("driver.mjs");
            std::fs::write(&script, DRIVER)?;
            let mut child = Command::new(node)
                .arg(script)
                .arg(std::path::absolute(folder)?)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
                return Err(std::io::Error::other("no pipes"));
            };
            Ok(Self { child, input, output: BufReader::new(output), _driver: driver })
        };
        let mut reference = start().map_err(|error| format!("{node} cannot be started: {error}"))?;
        // An answer proves that it runs at all.
        match reference.call("ls", &Map::new(), &std::env::temp_dir()) {
            Ok(_) => Ok(reference),
            Err(error) => Err(format!("the reference does not answer ({error}); it needs Node.js 22.19 or newer")),
        }
    }

    pub(super) fn call(&mut self, tool: &str, arguments: &Map<String, Value>, cwd: &Path) -> Result<Answer, Error> {
        writeln!(self.input, "{}", json!({"tool": tool, "arguments": arguments, "cwd": cwd}))?;
        self.input.flush()?;
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("it ended".into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
