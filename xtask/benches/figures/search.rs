//! What `grep` and `find` cost over 20,000 files of 256 MB, against a bare walk with the same crates, and against
//! `rg` and `fd` where they are installed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use grep_regex::RegexMatcher;
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, SearcherBuilder};
use ignore::{WalkBuilder, WalkState};
use pi_agent_core::{CancellationToken, ToolContext};
use pi_coding_agent::tools::builtin::{BuiltinTool, ToolSetup};
use pi_coding_agent::workspace::local::{LocalOptions, local_workspace};
use serde_json::{Value, json};
use xtask::Error;
use xtask::measure::{children_cpu, median, process_cpu};
use xtask::row::{Goal, Row};

use crate::{Finding, Size};

const FILES: usize = 20_000;
const FILE_BYTES: usize = 256 * 1024 * 1024 / FILES;
/// In one line of every hundredth file.
const NEEDLE: &str = "rare_needle";

pub(crate) fn run(size: Size) -> Result<Vec<Finding>, Error> {
    let folder = tempfile::tempdir()?;
    make_tree(folder.path())?;
    let runtime = tokio::runtime::Runtime::new()?;
    let setup = ToolSetup::new(local_workspace(LocalOptions {
        cwd: folder.path().to_owned(),
        temp_dir: folder.path().to_owned(),
        ..LocalOptions::default()
    }));
    let call = |tool: BuiltinTool, arguments: Value| -> Result<String, Error> {
        let Value::Object(arguments) = arguments else { return Err("arguments are an object".into()) };
        let context = ToolContext::new("call", CancellationToken::new());
        let output = runtime.block_on(tool.build(&setup).execute(arguments, context));
        Ok(output.map_err(|error| error.to_string())?.to_text())
    };
    let runs = size.pick(7, 25);
    let own = |work: &mut dyn FnMut() -> Result<(), Error>| -> Result<f64, Error> {
        let before = process_cpu();
        work()?;
        Ok(millis(process_cpu() - before))
    };
    let (mut grep, mut grep_few, mut grep_floor, mut find, mut find_floor) = (vec![], vec![], vec![], vec![], vec![]);
    let (mut rg, mut fd) = (vec![], vec![]);
    let rg_program = installed(&["rg"]);
    let fd_program = installed(&["fd", "fdfind"]);
    let mut lines = 0;
    // By turns, so that a busy moment of the machine meets all; the first round warms the caches.
    for round in 0..=runs {
        let keep = |list: &mut Vec<f64>, value: f64| {
            if round > 0 {
                list.push(value)
            }
        };
        let floor = own(&mut || {
            lines = bare_grep(folder.path())?;
            Ok(())
        })?;
        keep(&mut grep_floor, floor);
        keep(
            &mut grep,
            own(&mut || {
                let text = call(BuiltinTool::Grep, json!({"pattern": NEEDLE, "limit": 100_000}))?;
                if text.lines().count() == lines { Ok(()) } else { Err("grep and its floor differ".into()) }
            })?,
        );
        keep(&mut grep_few, own(&mut || call(BuiltinTool::Grep, json!({"pattern": "the"})).map(drop))?);
        keep(&mut find_floor, own(&mut || bare_find(folder.path()))?);
        keep(
            &mut find,
            own(&mut || call(BuiltinTool::Find, json!({"pattern": "*7*.txt", "limit": 100_000})).map(drop))?,
        );
        if let Some(program) = rg_program {
            keep(
                &mut rg,
                of_child(program, &["--no-config", "--hidden", "--line-number", NEEDLE, "."], folder.path())?,
            );
        }
        if let Some(program) = fd_program {
            let glob = ["--hidden", "--glob", "*7*.txt", "."];
            keep(&mut fd, of_child(program, &glob, folder.path())?);
        }
    }
    let (grep, find) = (median(grep), median(find));
    let mut findings = vec![
        Row::new("search.grep", grep, "CPU-ms").floor(median(grep_floor)).goal(Goal::Ratio(1.2)),
        Row::new("search.find", find, "CPU-ms").floor(median(find_floor)).goal(Goal::Ratio(1.2)),
        Row::new("search.grep_in_all_files", median(grep_few), "CPU-ms"),
    ]
    .into_iter()
    .map(Finding::Row)
    .collect::<Vec<_>>();
    for (name, value, program, theirs) in
        [("search.grep_beside_rg", grep, rg_program, rg), ("search.find_beside_fd", find, fd_program, fd)]
    {
        findings.push(match program {
            Some(_) => Finding::Row(Row::new(name, value, "CPU-ms").floor(median(theirs)).goal(Goal::Ratio(1.2))),
            None => Finding::LeftOut { name: name.to_owned(), reason: "the program is not installed".to_owned() },
        });
    }
    Ok(findings)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn make_tree(root: &Path) -> Result<(), Error> {
    let words = "the quick brown fox jumps over lazy dogs while state machines count tokens in long streams";
    for file in 0..FILES {
        let folder = root.join(format!("d{:02}/e{:02}", file % 20, file / 20 % 20));
        std::fs::create_dir_all(&folder)?;
        let mut text = String::with_capacity(FILE_BYTES + 200);
        let mut line = 0;
        while text.len() < FILE_BYTES {
            text.push_str(&format!("{file}:{line} {words}\n"));
            if line == 40 && file % 100 == 0 {
                text.push_str(&format!("here is a {NEEDLE} in file {file}\n"));
            }
            line += 1;
        }
        std::fs::write(folder.join(format!("f{file}.txt")), text)?;
    }
    Ok(())
}

fn walk(root: &Path) -> WalkBuilder {
    let mut walk = WalkBuilder::new(root);
    walk.hidden(false).require_git(false).git_global(false);
    walk.threads(std::thread::available_parallelism().map_or(2, std::num::NonZero::get));
    walk
}

/// The floor: all matches, sorted.
fn bare_grep(root: &Path) -> Result<usize, Error> {
    let matcher = RegexMatcher::new_line_matcher(NEEDLE)?;
    let found = Mutex::new(Vec::new());
    walk(root).build_parallel().run(|| {
        let mut searcher = SearcherBuilder::new().binary_detection(BinaryDetection::quit(0)).build();
        let (matcher, found) = (&matcher, &found);
        Box::new(move |entry| {
            let Ok(entry) = entry else { return WalkState::Continue };
            if entry.file_type().is_some_and(|file_type| file_type.is_file()) {
                let sink = Lossy(|number, line| {
                    found.lock().map_err(|_| std::io::ErrorKind::Other)?.push((
                        entry.path().to_owned(),
                        number,
                        line.to_owned(),
                    ));
                    Ok(true)
                });
                let _ = searcher.search_path(matcher, entry.path(), sink);
            }
            WalkState::Continue
        })
    });
    let mut found = found.into_inner().map_err(|_| "a thread panicked")?;
    found.sort();
    Ok(found.len())
}

/// The floor: all names, sorted.
fn bare_find(root: &Path) -> Result<(), Error> {
    let glob = globset::Glob::new("*7*.txt")?.compile_matcher();
    let found = Mutex::new(Vec::new());
    walk(root).build_parallel().run(|| {
        let (glob, found) = (&glob, &found);
        Box::new(move |entry| {
            if let Ok(entry) = entry
                && glob.is_match(entry.file_name())
                && let Ok(mut found) = found.lock()
            {
                found.push(entry.path().to_owned());
            }
            WalkState::Continue
        })
    });
    let mut found = found.into_inner().map_err(|_| "a thread panicked")?;
    found.sort();
    Ok(())
}

fn installed(names: &[&'static str]) -> Option<&'static str> {
    names
        .iter()
        .copied()
        .find(|name| Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok())
}

fn of_child(program: &str, arguments: &[&str], folder: &Path) -> Result<f64, Error> {
    let before = children_cpu()?;
    let mut child = Command::new(program);
    child.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());
    let output = child.output()?;
    if !output.status.success() {
        return Err(format!("{program} failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(millis(children_cpu()? - before))
}
