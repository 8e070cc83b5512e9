//! `cargo xtask beside`: the same tool calls on the same files, with the reference and with ours.
//!
//! What is compared is what a model and a program learn: whether a call failed, the text without its notes, details,
//! structured content, and the files afterwards. Wording is not; the differences listed in `docs/compatibility.md` are
//! not among the recorded calls.

mod answer;
mod generated;
mod reference;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, value_parser};
use pi_agent_core::{CancellationToken, ToolContext};
use pi_coding_agent::tools::builtin::{BuiltinTool, ToolSetup};
use pi_coding_agent::workspace::local::{LocalOptions, ProcessOptions, local_workspace};
use serde::Deserialize;
use serde_json::{Map, Value};
use tempfile::TempDir;
use xtask::{Error, Outcome};

use self::answer::Answer;
use self::reference::Reference;

const CALLS: &str = include_str!("calls.json");

pub(crate) fn command() -> Command {
    Command::new("beside")
        .about("Runs recorded tool calls with the reference and with ours, and compares")
        .long_about(
            "Runs recorded and generated tool calls with the reference implementation and with ours, each on files of \
             its own, and prints where they differ. Needs Node.js (22.19 or newer) and a folder in which `npm install \
             @earendil-works/pi-coding-agent@1.6.0` was run; without either it is skipped.",
        )
        .arg(
            Arg::new("reference")
                .long("reference")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("The folder whose node_modules hold the reference"),
        )
        .arg(Arg::new("node").long("node").value_name("PROGRAM").default_value("node").help("Node.js"))
        .arg(
            Arg::new("generated")
                .long("generated")
                .value_name("COUNT")
                .value_parser(value_parser!(u64))
                .default_value("300")
                .help("How many generated edits to compare besides"),
        )
}

/// Files, and calls on them in order.
#[derive(Clone, Debug, Deserialize)]
struct Case {
    name: String,
    /// A program without which the reference cannot do it.
    needs: Option<String>,
    files: BTreeMap<String, Content>,
    calls: Vec<Call>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    /// A line with `{n}` in it, as often.
    Lines {
        line: String,
        count: usize,
    },
}

#[derive(Clone, Debug, Deserialize)]
struct Call {
    tool: String,
    arguments: Map<String, Value>,
}

pub(crate) fn run(matches: &ArgMatches) -> Result<Outcome, Error> {
    let node = matches.get_one::<String>("node").map_or("node", String::as_str);
    let Some(folder) = matches.get_one::<PathBuf>("reference") else {
        println!("skipped: say with --reference where the reference is installed");
        return Ok(Outcome::Fine);
    };
    let mut reference = match Reference::start(node, folder) {
        Ok(reference) => reference,
        Err(reason) => {
            println!("skipped: {reason}");
            return Ok(Outcome::Fine);
        }
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let mut cases: Vec<Case> = serde_json::from_str(CALLS)?;
    let generated = matches.get_one::<u64>("generated").copied().unwrap_or_default();
    cases.extend((0..generated).filter_map(generated::edit));
    let (mut calls, mut differences) = (0, 0);
    for case in &cases {
        if let Some(needed) = case.needs.as_deref().filter(|program| !is_installed(program)) {
            println!("{}: skipped, `{needed}` is not installed", case.name);
            continue;
        }
        calls += case.calls.len();
        for difference in compare(case, &mut reference, &runtime)? {
            differences += 1;
            println!("{}: {difference}", case.name);
        }
    }
    println!("{calls} calls, {differences} differences");
    Ok(if differences == 0 { Outcome::Fine } else { Outcome::Failed })
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Runs a case with both and describes each difference.
fn compare(case: &Case, reference: &mut Reference, runtime: &tokio::runtime::Runtime) -> Result<Vec<String>, Error> {
    let (theirs, ours) = (make(&case.files)?, make(&case.files)?);
    let mut differences = Vec::new();
    for call in &case.calls {
        let expected = reference.call(&call.tool, &call.arguments, theirs.path())?;
        let found = runtime.block_on(call_ours(call, ours.path()))?;
        let what = format!("{} {}", call.tool, Value::Object(call.arguments.clone()));
        if let Some(difference) = expected.difference(&found, &call.tool) {
            differences.push(format!("{what}: {difference}"));
        }
        let (expected, found) = (files_below(theirs.path())?, files_below(ours.path())?);
        if expected != found {
            differences.push(format!("{what}: the files differ: {expected:?} there, {found:?} here"));
            break;
        }
    }
    Ok(differences)
}

fn make(files: &BTreeMap<String, Content>) -> Result<TempDir, Error> {
    let folder = tempfile::tempdir()?;
    for (path, content) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().ok_or("a path has a parent")?)?;
        match content {
            Content::Text(text) => std::fs::write(path, text)?,
            Content::Lines { line, count } => {
                let text: String = (1..=*count).map(|n| line.replace("{n}", &n.to_string()) + "\n").collect();
                std::fs::write(path, text)?;
            }
        }
    }
    Ok(folder)
}

async fn call_ours(call: &Call, cwd: &Path) -> Result<Answer, Error> {
    let setup = ToolSetup::new(local_workspace(LocalOptions {
        cwd: cwd.to_owned(),
        temp_dir: std::env::temp_dir(),
        processes: ProcessOptions { environment: std::env::vars_os().collect(), ..ProcessOptions::default() },
        ..LocalOptions::default()
    }));
    let tool = BuiltinTool::from_name(&call.tool).ok_or("there is no tool of that name")?.build(&setup);
    let arguments = tool.prepare_arguments(call.arguments.clone());
    let context = ToolContext::new("call", CancellationToken::new());
    Ok(match tool.execute(arguments, context).await {
        Ok(output) => Answer {
            text: Some(output.to_text()),
            details: output.details.unwrap_or_default(),
            structured: output.structured_content.unwrap_or_default(),
            failed: output.is_error.unwrap_or(false),
            error: None,
        },
        Err(error) => Answer { error: Some(error.to_string()), ..Answer::default() },
    })
}

/// The files and their contents; what is not UTF-8 shows as such.
fn files_below(folder: &Path) -> Result<BTreeMap<String, String>, Error> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in std::fs::read_dir(inner)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder)?.display().to_string();
                files.insert(name, std::fs::read(&path)?.escape_ascii().to_string());
            }
        }
    }
    Ok(files)
}
