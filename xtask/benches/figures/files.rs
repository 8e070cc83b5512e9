//! What `edit` costs in a file of 100 MB, and `read` in one of 1 GB.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Instant;

use pi_agent_core::{CancellationToken, ToolContext};
use pi_coding_agent::tools::builtin::{BuiltinTool, ToolSetup};
use pi_coding_agent::workspace::local::{LocalOptions, local_workspace};
use serde_json::json;
use xtask::Error;
use xtask::measure::median;
use xtask::row::{Goal, Row};

use crate::program::{self, Bench};
use crate::{Finding, Size};

const MB: usize = 1024 * 1024;

pub(crate) fn run(size: Size) -> Result<Vec<Finding>, Error> {
    let mut findings = vec![Finding::Row(edit(size)?)];
    findings.extend(read(size)?.into_iter().map(Finding::Row));
    Ok(findings)
}

/// One line of a large file, against reading the file and writing it.
fn edit(size: Size) -> Result<Row, Error> {
    let folder = tempfile::tempdir()?;
    write_lines(&folder.path().join("file"), 100 * MB)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let setup = ToolSetup::new(local_workspace(LocalOptions {
        cwd: folder.path().to_owned(),
        temp_dir: folder.path().to_owned(),
        ..LocalOptions::default()
    }));
    let tool = BuiltinTool::Edit.build(&setup);
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for round in 0..size.pick(9, 31) {
        let started = Instant::now();
        let bytes = std::fs::read(folder.path().join("file"))?;
        std::fs::write(folder.path().join("copy"), &bytes)?;
        drop(bytes);
        floor.push(started.elapsed().as_secs_f64() * 1e3);

        let started = Instant::now();
        let line = format!("line {} of", 500_000 + round);
        let edits = json!([{"oldText": line, "newText": format!("LINE {} of", 500_000 + round)}]);
        let arguments = serde_json::from_value(json!({"path": "file", "edits": edits}))?;
        let context = ToolContext::new("call", CancellationToken::new());
        runtime.block_on(tool.execute(arguments, context)).map_err(|error| error.to_string())?;
        ours.push(started.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Row::new("files.edit_in_100_mb", median(ours), "ms").floor(median(floor)).goal(Goal::Ratio(3.0)))
}

/// Some lines from the middle of a very large file, against reading it in pieces and counting its lines.
fn read(size: Size) -> Result<Vec<Row>, Error> {
    let tool_call = program::tool_call()?;
    let bench = Bench::empty()?;
    let file = bench.path().join("project/file");
    write_lines(&file, 1024 * MB)?;
    let arguments = json!({"path": "file", "offset": 8_000_000}).to_string();
    let tool = [OsStr::new("read"), OsStr::new(&arguments)];
    let (mut ours, mut floor, mut memory) = (Vec::new(), Vec::new(), 0);
    for _ in 0..size.pick(5, 15) {
        let run = program::run(bench.command(&tool_call, &tool))?;
        ours.push(run.started.elapsed().as_secs_f64());
        memory = memory.max(run.peak_memory.ok_or("this system does not tell a process's memory")?);
        let started = Instant::now();
        count_lines(&file)?;
        floor.push(started.elapsed().as_secs_f64());
    }
    Ok(vec![
        Row::new("files.read_in_1_gb", median(ours), "s").floor(median(floor)),
        Row::new("files.read_in_1_gb_memory", memory as f64 / 1e6, "MB").goal(Goal::Value(32.0)),
    ])
}

fn write_lines(path: &Path, bytes: usize) -> Result<(), Error> {
    let mut file = std::io::BufWriter::with_capacity(MB, std::fs::File::create(path)?);
    let (mut written, mut line) = (0, 0);
    while written < bytes {
        let text = format!("line {line} of a file that is long, with words on it, to about eighty characters\n");
        file.write_all(text.as_bytes())?;
        written += text.len();
        line += 1;
    }
    Ok(file.flush()?)
}

fn count_lines(path: &Path) -> Result<usize, Error> {
    let mut file = std::fs::File::open(path)?;
    let mut buffer = vec![0; 256 * 1024];
    let mut lines = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(lines),
            read => lines += memchr::memchr_iter(b'\n', &buffer[..read]).count(),
        }
    }
}
