//! `cargo xtask bench`: each bench answers one question and holds its figure against a floor measured in the same run.
//!
//! A topic is one file with one function that returns its rows, and a line in [`BENCHES`]. Figures are CPU time, or a
//! ratio to a floor, and medians of several runs: the machines that run this are shared, and wall time there says more
//! about the neighbours than about the code.

pub(crate) mod measure;
mod row;
mod transcript;

use std::process::Command as Process;

use clap::{Arg, ArgAction, ArgMatches, Command};

pub(crate) use row::{Goal, Row};

use crate::workspace;
use crate::{Error, Outcome};

/// One topic: a name for the command line, what it asks, and the function that answers.
struct Bench {
    name: &'static str,
    asks: &'static str,
    run: fn(Size) -> Result<Vec<Finding>, Error>,
}

const BENCHES: &[Bench] = &[Bench {
    name: "transcript",
    asks: "Does appending to a transcript, and reading its prompt and tools, cost the same at any length?",
    run: transcript::run,
}];

/// How large the inputs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// All benches together take less than ten minutes on two cores.
    Usual,
    /// Larger inputs and more runs.
    Full,
}

impl Size {
    /// One of two numbers.
    pub(crate) fn pick(self, usual: usize, full: usize) -> usize {
        match self {
            Self::Usual => usual,
            Self::Full => full,
        }
    }
}

/// What a bench found: a row, or why there is none.
#[derive(Debug)]
pub(crate) enum Finding {
    Row(Row),
    /// The row of this name is left out: what is missing on this machine.
    #[expect(dead_code, reason = "no bench that needs something of the machine has landed yet")]
    LeftOut {
        name: String,
        reason: String,
    },
}

pub(crate) fn command() -> Command {
    let topics: Vec<String> = BENCHES.iter().map(|bench| format!("  {:<12} {}", bench.name, bench.asks)).collect();
    Command::new("bench")
        .about("Runs the benches, prints a table and writes target/bench.json")
        .long_about(
            "Runs the benches, prints a table and writes target/bench.json, a list of {name, value, unit, floor, \
             ratio, goal, holds}. The ratio is value to floor, the floor is measured in the same run.\n\nBenches only \
             make sense in a release build: started in another one, the command runs itself again with `cargo run \
             --release --package xtask`.",
        )
        .after_help(format!("Benches:\n{}", topics.join("\n")))
        .arg(Arg::new("name").value_name("NAME").help("Run only the benches whose name begins so"))
        .arg(Arg::new("full").long("full").action(ArgAction::SetTrue).help("Larger inputs"))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<Outcome, Error> {
    let name = matches.get_one::<String>("name").map_or("", String::as_str);
    let size = if matches.get_flag("full") { Size::Full } else { Size::Usual };
    let chosen: Vec<&Bench> = BENCHES.iter().filter(|bench| bench.name.starts_with(name)).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
        return Err(format!("no bench begins with `{name}`; there are: {}", known.join(", ")).into());
    }
    if cfg!(debug_assertions) {
        return run_in_release(name, size);
    }
    let mut rows = Vec::new();
    let mut left_out = Vec::new();
    for bench in chosen {
        eprintln!("{}: {}", bench.name, bench.asks);
        for finding in (bench.run)(size)? {
            match finding {
                Finding::Row(row) => rows.push(row),
                Finding::LeftOut { name, reason } => left_out.push(format!("{name}: left out, {reason}")),
            }
        }
    }
    print!("{}", row::table(&rows));
    for line in left_out {
        println!("{line}");
    }
    let path = workspace::target_dir()?.join("bench.json");
    std::fs::write(&path, serde_json::to_string_pretty(&rows)? + "\n")?;
    println!("wrote {}", path.display());
    let missed = rows.iter().any(|row| row.holds() == Some(false));
    Ok(if missed { Outcome::Failed } else { Outcome::Fine })
}

fn run_in_release(name: &str, size: Size) -> Result<Outcome, Error> {
    let mut command: Process = workspace::cargo();
    command.args(["run", "--quiet", "--release", "--package", "xtask", "--", "bench"]);
    if !name.is_empty() {
        command.arg(name);
    }
    if size == Size::Full {
        command.arg("--full");
    }
    Ok(if command.status()?.success() { Outcome::Fine } else { Outcome::Failed })
}
