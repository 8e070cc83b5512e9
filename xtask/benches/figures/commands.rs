//! What `bash` adds to a command: to one that does nothing, and to one that writes very much.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use pi_agent_core::{CancellationToken, ToolContext};
use pi_coding_agent::tools::builtin::{BuiltinTool, ToolSetup};
use pi_coding_agent::workspace::local::{LocalOptions, ProcessOptions, local_workspace};
use serde_json::json;
use xtask::Error;
use xtask::measure::median;
use xtask::row::{Goal, Row};

use crate::program::{self, Bench};
use crate::{Finding, Size};

pub(crate) fn run(size: Size) -> Result<Vec<Finding>, Error> {
    let mut findings = vec![Finding::Row(nothing(size)?)];
    findings.extend(large_output(size)?.into_iter().map(Finding::Row));
    Ok(findings)
}

/// `true`, against spawning it with the standard library.
fn nothing(size: Size) -> Result<Row, Error> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let setup = ToolSetup::new(local_workspace(LocalOptions {
        cwd: folder.path().to_owned(),
        temp_dir: folder.path().to_owned(),
        processes: ProcessOptions { environment: [("PATH".into(), path.clone())].into(), ..ProcessOptions::default() },
        ..LocalOptions::default()
    }));
    let tool = BuiltinTool::Bash.build(&setup);
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..size.pick(300, 2000) {
        let started = Instant::now();
        let arguments = serde_json::from_value(json!({"command": "true"}))?;
        let context = ToolContext::new("call", CancellationToken::new());
        runtime.block_on(tool.execute(arguments, context)).map_err(|error| error.to_string())?;
        ours.push(started.elapsed().as_secs_f64() * 1e3);

        let started = Instant::now();
        let mut command = Command::new("/bin/bash");
        command.args(["-c", "true"]).current_dir(folder.path()).env_clear().env("PATH", &path).stdin(Stdio::null());
        command.output()?;
        floor.push(started.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Row::new("commands.true", median(ours), "ms").floor(median(floor)).goal(Goal::Ratio(1.3)))
}

/// A producer of 512 MB (3 GB in full), against the same piped into `cat > file`.
fn large_output(size: Size) -> Result<Vec<Row>, Error> {
    let tool_call = program::tool_call()?;
    let bench = Bench::empty()?;
    let megabytes = size.pick(512, 3 * 1024);
    let producer =
        format!("yes 'a line of output such as a build writes, some seventy characters long' | head -c {megabytes}M");
    let file: PathBuf = bench.path().join("floor");
    let to_file = format!("{producer} | cat > {}", file.display());
    let arguments = json!({"command": producer}).to_string();
    let tool = [OsStr::new("bash"), OsStr::new(&arguments)];
    let shell = [OsStr::new("-c"), OsStr::new(&to_file)];
    let (mut ours, mut floor, mut memory) = (Vec::new(), Vec::new(), 0);
    for _ in 0..size.pick(5, 3) {
        let run = timed(&bench, &tool_call, &tool)?;
        ours.push(run.0);
        memory = memory.max(run.1.ok_or("this system does not tell a process's memory")?);
        floor.push(timed(&bench, Path::new("/bin/bash"), &shell)?.0);
        std::fs::remove_file(&file)?;
    }
    let (ours, floor) = (median(ours), median(floor));
    Ok(vec![
        Row::new("commands.large_output", ours, "s").floor(floor).goal(Goal::Ratio(2.0)),
        Row::new("commands.large_output_memory", memory as f64 / 1e6, "MB").goal(Goal::Value(64.0)),
    ])
}

/// Seconds and the most memory of a program.
fn timed(bench: &Bench, program: &Path, arguments: &[&OsStr]) -> Result<(f64, Option<u64>), Error> {
    let run = program::run(bench.command(program, arguments))?;
    Ok((run.started.elapsed().as_secs_f64(), run.peak_memory))
}
