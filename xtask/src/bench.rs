//! `cargo xtask bench`: hands over to the benches in `benches/figures`, in a release build.

use clap::{Arg, ArgAction, ArgMatches, Command};
use xtask::{Error, Outcome, workspace};

pub(crate) fn command() -> Command {
    Command::new("bench")
        .about("Runs the benches, prints a table and writes target/bench.json")
        .long_about(
            "Runs the benches, prints a table and writes target/bench.json, a list of {name, value, unit, floor, \
             ratio, goal, holds}. The ratio is value to floor; the floor is measured in the same run.\n\nBenches only \
             make sense in a release build, so this is `cargo bench --package xtask --bench figures`.",
        )
        .arg(Arg::new("name").value_name("NAME").help("Run only the benches whose name begins so"))
        .arg(Arg::new("full").long("full").action(ArgAction::SetTrue).help("Larger inputs and more runs"))
        .arg(Arg::new("list").long("list").action(ArgAction::SetTrue).help("Only say which benches there are"))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<Outcome, Error> {
    let mut command = workspace::cargo();
    command.args(["bench", "--quiet", "--package", "xtask", "--bench", "figures", "--"]);
    command.args(matches.get_one::<String>("name"));
    for switch in ["full", "list"].into_iter().filter(|switch| matches.get_flag(switch)) {
        command.arg(format!("--{switch}"));
    }
    Ok(if command.status()?.success() { Outcome::Fine } else { Outcome::Failed })
}
