//! `cargo xtask conformance`: runs vector files and says which cases differ.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, value_parser};
use futures::future::BoxFuture;
use pi_agent_core::testing::conformance as agent_core;
use pi_ai::testing::conformance as ai;
use pi_ai::testing::expect::Comparer;
use pi_ai::testing::vectors::{self, Vector};
use pi_coding_agent::testing::conformance as coding_agent;
use serde_json::Value;
use xtask::{Error, Outcome};

/// Turns a case's input into the value that is compared; `None` when it does not know the file.
#[derive(Clone, Copy)]
enum Runner {
    Blocking(fn(&str, &Value) -> Option<Value>),
    Async(for<'a> fn(&'a str, &'a Value) -> BoxFuture<'a, Option<Value>>),
}

/// The areas and what runs them. The runners live in the crate whose behaviour they show, so that
/// `cargo test` runs the same code on the project's own copies of the vectors.
const RUNNERS: &[(&str, Runner)] = &[
    ("agent_loop", Runner::Async(|stem, input| Box::pin(agent_core::agent_loop::run(stem, input)))),
    ("ai_data", Runner::Blocking(ai::ai_data::run)),
    ("coding_session", Runner::Async(|stem, input| Box::pin(coding_agent::coding_session::run(stem, input)))),
    ("compaction", Runner::Blocking(coding_agent::compaction::run)),
    ("convert_to_llm", Runner::Async(|stem, input| Box::pin(convert_to_llm(stem, input)))),
    ("extension_context", Runner::Async(|stem, input| Box::pin(coding_agent::extension_context::run(stem, input)))),
    ("modes", Runner::Blocking(coding_agent::modes::run)),
    ("provider_requests", Runner::Blocking(ai::provider_requests::run)),
    ("provider_responses", Runner::Blocking(ai::provider_responses::run)),
    ("provider_sequences", Runner::Blocking(ai::provider_sequences::run)),
    ("resources", Runner::Blocking(coding_agent::resources::run)),
    ("sessions", Runner::Async(coding_agent::sessions::run)),
    ("tools", Runner::Async(|stem, input| Box::pin(coding_agent::tools::run(stem, input)))),
    ("transcript", Runner::Blocking(ai::transcript::run)),
];

/// Two crates convert: each has files of its own.
async fn convert_to_llm(stem: &str, input: &Value) -> Option<Value> {
    match coding_agent::convert_to_llm::run(stem, input) {
        Some(converted) => Some(converted),
        None => agent_core::convert_to_llm::run(stem, input).await,
    }
}

pub(crate) fn command() -> Command {
    Command::new("conformance")
        .about("Runs the vector files under DIR and compares what comes out")
        .long_about(
            "Runs every vector file under DIR that has a runner and compares what comes out with what the file \
             expects. A file's area is the name of its folder. Failures are printed with the first path that \
             differs; the last line is `N passed, M failed, K skipped`, counted in cases.",
        )
        .arg(Arg::new("dir").value_name("DIR").required(true).value_parser(value_parser!(PathBuf)))
        .arg(Arg::new("area").long("area").value_name("NAME").help("Run only the files of this area"))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<Outcome, Error> {
    let dir = matches.get_one::<PathBuf>("dir").ok_or("DIR is missing")?;
    let area = matches.get_one::<String>("area").map(String::as_str);
    let files = vector_files(dir, area)?;
    if files.is_empty() {
        return Err(format!("no vector files (*.json) under {}", dir.display()).into());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut total = Tally::default();
    for file in &files {
        let report = run_file(file, RUNNERS, &runtime);
        print!("{}", report.text);
        total.add(&report.tally);
    }
    println!("{total}");
    Ok(if total.failed == 0 { Outcome::Fine } else { Outcome::Failed })
}

/// A vector file, with the folder's name as its area.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct VectorFile {
    area: String,
    path: PathBuf,
}

impl VectorFile {
    fn stem(&self) -> String {
        self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn name(&self) -> String {
        format!("{}/{}", self.area, self.stem())
    }
}

/// The JSON files in `dir` and the folders below it, sorted.
fn vector_files(dir: &Path, area: Option<&str>) -> Result<Vec<VectorFile>, Error> {
    let mut files = Vec::new();
    let mut folders = vec![dir.canonicalize().map_err(|error| format!("{}: {error}", dir.display()))?];
    while let Some(folder) = folders.pop() {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "json") && area.is_none_or(|a| a == name) {
                files.push(VectorFile { area: name.clone(), path });
            }
        }
    }
    files.sort();
    Ok(files)
}

/// How many cases went how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// What came out of one file, as it is printed.
struct Report {
    text: String,
    tally: Tally,
}

fn run_file(file: &VectorFile, runners: &[(&str, Runner)], runtime: &tokio::runtime::Runtime) -> Report {
    let mut tally = Tally::default();
    let mut text = String::new();
    let name = file.name();
    let cases = match vectors::load(&file.path) {
        Ok(cases) => cases,
        Err(_) if holds_no_cases(&file.path) => {
            return Report { text: format!("{name}: data, no cases\n"), tally };
        }
        Err(error) => {
            tally.failed = 1;
            return Report { text: format!("{name}: FAILED: {error}\n"), tally };
        }
    };
    let runner = runners.iter().find(|(area, _)| *area == file.area).map(|(_, runner)| *runner);
    let mut known = false;
    for case in &cases {
        match runner.map_or(Verdict::NoRunner, |runner| judge(runner, file, case, runtime)) {
            Verdict::Same => {
                known = true;
                tally.passed += 1;
            }
            Verdict::Differs(difference) => {
                known = true;
                tally.failed += 1;
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{name} / {}: FAILED: {difference}", case.name);
            }
            Verdict::NoRunner => tally.skipped += 1,
        }
    }
    match known {
        true if tally.skipped > 0 => text += &format!("{name}: no runner for {} of its cases\n", tally.skipped),
        true => text += &format!("{name}: {tally}\n"),
        false => text += &format!("{name}: no runner ({} cases)\n", tally.skipped),
    }
    Report { text, tally }
}

/// Whether the file is JSON but no list of objects with a name, an input and an expectation, as data beside the
/// vectors is. A list in which only some cases are broken is not data.
fn holds_no_cases(path: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(path) else { return false };
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Array(items)) => items.iter().all(|item| item.get("expected").is_none()),
        Ok(_) => true,
        Err(_) => false,
    }
}

enum Verdict {
    Same,
    Differs(String),
    NoRunner,
}

fn judge(runner: Runner, file: &VectorFile, case: &Vector, runtime: &tokio::runtime::Runtime) -> Verdict {
    let stem = file.stem();
    // A case that panics must not keep the others from running.
    let outcome = catch_unwind(AssertUnwindSafe(|| match runner {
        Runner::Blocking(run) => run(&stem, &case.input),
        Runner::Async(run) => runtime.block_on(run(&stem, &case.input)),
    }));
    match outcome {
        Ok(Some(actual)) => match Comparer::for_area(&file.area).mismatch(&case.expected, &actual) {
            Some(difference) => Verdict::Differs(difference),
            None => Verdict::Same,
        },
        Ok(None) => Verdict::NoRunner,
        Err(panic) => Verdict::Differs(format!("panicked: {}", panic_text(&*panic))),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.and_then(|text| text.lines().next()).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn double(stem: &str, input: &Value) -> Option<Value> {
        assert_ne!(input.as_i64(), Some(13), "thirteen");
        (stem == "double").then(|| Value::from(input.as_i64().unwrap_or_default() * 2))
    }

    fn double_later<'a>(stem: &'a str, input: &'a Value) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async move { double(stem, input) })
    }

    fn report(area: &str, file: &str, text: &str, runner: Runner) -> Report {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(area);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join(file), text).unwrap();
        let files = vector_files(dir.path(), None).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        run_file(&files[0], &[("math", runner)], &runtime)
    }

    const CASES: &str = r#"[
        {"name": "two", "input": 1, "expected": 2},
        {"name": "wrong", "input": 2, "expected": 5},
        {"name": "unlucky", "input": 13, "expected": 26}
    ]"#;

    #[test]
    fn failures_are_named_with_what_differs() {
        for runner in [Runner::Blocking(double), Runner::Async(double_later)] {
            let report = report("math", "double.json", CASES, runner);
            assert_eq!(report.tally, Tally { passed: 1, failed: 2, skipped: 0 });
            let lines: Vec<&str> = report.text.lines().collect();
            assert_eq!(lines[0], "math/double / wrong: FAILED: $: expected 5, found 4");
            assert!(lines[1].starts_with("math/double / unlucky: FAILED: panicked: "), "{}", lines[1]);
            assert_eq!(lines[2], "math/double: 1 passed, 2 failed, 0 skipped");
        }
    }

    #[test]
    fn files_without_a_runner_are_named_and_skipped() {
        let cases = r#"[{"name": "a", "input": 1, "expected": 2}]"#;
        for (area, file) in [("math", "halve.json"), ("music", "double.json")] {
            let report = report(area, file, cases, Runner::Blocking(double));
            assert_eq!(report.tally, Tally { passed: 0, failed: 0, skipped: 1 });
            assert!(report.text.ends_with(": no runner (1 cases)\n"), "{}", report.text);
        }
    }

    #[test]
    fn a_broken_vector_file_is_a_failure_and_data_is_not() {
        let broken = r#"[{"name": "a", "input": 1, "expected": 2}, {"name": "b"}]"#;
        assert_eq!(report("math", "double.json", broken, Runner::Blocking(double)).tally.failed, 1);
        assert_eq!(report("math", "double.json", "[1", Runner::Blocking(double)).tally.failed, 1);
        let data = report("math", "catalog.json", r#"{"a": 1}"#, Runner::Blocking(double));
        assert_eq!((data.tally, data.text.as_str()), (Tally::default(), "math/catalog: data, no cases\n"));
    }
}
