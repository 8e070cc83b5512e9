//! The benches of `cargo xtask bench`: each answers one question and holds its figure against a floor measured in the
//! same run.
//!
//! A topic is one file with one function that returns its rows, and a line in [`BENCHES`]. Figures are CPU time, or a
//! ratio to a floor, and medians of several runs: the machines that run this are shared, and wall time there says more
//! about the neighbours than about the code.

mod agent;
mod arguments;
mod commands;
mod decode;
mod encode;
mod extensions;
mod files;
mod program;
mod sdk;
mod search;
mod session;
mod start;
mod stream;
mod transcript;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, Command, value_parser};
use xtask::row::{self, Row};
use xtask::{Error, Outcome, workspace};

/// One topic: a name for the command line, what it asks, and the function that answers.
struct Bench {
    name: &'static str,
    asks: &'static str,
    run: fn(Size) -> Result<Vec<Finding>, Error>,
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "agent",
        asks: "What does the agent loop itself cost: per turn, per message, per delta, per agent?",
        run: agent::run,
    },
    Bench {
        name: "arguments",
        asks: "Do tool arguments cost their length while they stream, and how long does checking them take?",
        run: arguments::run,
    },
    Bench {
        name: "commands",
        asks: "What does bash add to a command that does nothing, and to one that writes very much?",
        run: commands::run,
    },
    Bench {
        name: "files",
        asks: "What do edit in a file of 100 MB and read in one of 1 GB cost, against reading and writing it?",
        run: files::run,
    },
    Bench {
        name: "search",
        asks: "What do grep and find cost in 20,000 files, against a bare walk, rg and fd?",
        run: search::run,
    },
    Bench {
        name: "decode",
        asks: "What does it cost to decode 200,000 text deltas, against finding and reading them and nothing else?",
        run: decode::run,
    },
    Bench {
        name: "encode",
        asks: "What does it cost to encode a transcript of 10 MB, against writing the same body as JSON?",
        run: encode::run,
    },
    Bench {
        name: "extensions",
        asks: "What does an event cost that nobody handles, and one that ten handlers get?",
        run: extensions::run,
    },
    Bench {
        name: "sdk",
        asks: "What does a program pay for a session of the usual options, and for reading 200 skills again?",
        run: sdk::run,
    },
    Bench {
        name: "session",
        asks: "What do opening a long session, appending to it and listing many cost, against the files' bare bytes?",
        run: session::run,
    },
    Bench {
        name: "start",
        asks: "How long from the start of `pi -p` to the first byte of its request, against a bare program?",
        run: start::run,
    },
    Bench {
        name: "stream",
        asks: "What do 200,000 text deltas in one answer cost `pi -p`, against decoding them and nothing else?",
        run: stream::run,
    },
    Bench {
        name: "transcript",
        asks: "Does appending to a transcript, and reading its prompt and tools, cost the same at any length?",
        run: transcript::run,
    },
];

/// How large the inputs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    /// All benches together take less than ten minutes on two cores.
    Usual,
    /// Larger inputs and more runs.
    Full,
}

impl Size {
    /// One of two numbers.
    fn pick(self, usual: usize, full: usize) -> usize {
        match self {
            Self::Usual => usual,
            Self::Full => full,
        }
    }
}

/// What a bench found: a row, or why there is none.
#[derive(Debug)]
enum Finding {
    Row(Row),
    /// The row of this name is left out: what is missing on this machine.
    LeftOut {
        name: String,
        reason: String,
    },
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    if matches.get_flag("list") {
        BENCHES.iter().for_each(|bench| println!("{:<12} {}", bench.name, bench.asks));
        return ExitCode::SUCCESS;
    }
    if let Some(path) = matches.get_one::<PathBuf>("open-session") {
        return match session::open_and_tell(path) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let name = matches.get_one::<String>("name").map_or("", String::as_str);
    let size = if matches.get_flag("full") { Size::Full } else { Size::Usual };
    match run(name, size) {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn command() -> Command {
    Command::new("figures")
        .arg(Arg::new("name"))
        .arg(Arg::new("full").long("full").action(ArgAction::SetTrue))
        .arg(Arg::new("list").long("list").action(ArgAction::SetTrue))
        // A bench runs itself again to see the memory of a process that does nothing else.
        .arg(Arg::new("open-session").long("open-session").hide(true).value_parser(value_parser!(PathBuf)))
        // `cargo bench` passes this to every bench.
        .arg(Arg::new("bench").long("bench").action(ArgAction::SetTrue).hide(true))
}

/// Runs the benches whose name begins with `name`. Fails when a goal is missed.
fn run(name: &str, size: Size) -> Result<Outcome, Error> {
    let chosen: Vec<&Bench> = BENCHES.iter().filter(|bench| bench.name.starts_with(name)).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
        return Err(format!("no bench begins with `{name}`; there are: {}", known.join(", ")).into());
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
