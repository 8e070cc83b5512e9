//! What people do by hand on this workspace, written down once: `cargo xtask --help`.

mod bench;
mod beside;
mod conformance;
mod costs;
mod features;
mod mock;
mod picture;
mod sessions;
mod wires;

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use xtask::{Error, Outcome};

fn main() -> ExitCode {
    let matches = command().get_matches();
    match run(&matches) {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn command() -> Command {
    Command::new("xtask")
        .bin_name("cargo xtask")
        .about("What people do by hand on this workspace, written down once")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(conformance::command())
        .subcommand(bench::command())
        .subcommand(beside::command())
        .subcommand(picture::command())
        .subcommand(features::command())
        .subcommand(costs::command())
        .subcommand(sessions::command())
        .subcommand(wires::command())
        .subcommand(mock::command())
}

fn run(matches: &ArgMatches) -> Result<Outcome, Error> {
    match matches.subcommand() {
        Some(("conformance", matches)) => conformance::run(matches),
        Some(("bench", matches)) => bench::run(matches),
        Some(("beside", matches)) => beside::run(matches),
        Some(("picture", matches)) => picture::run(matches),
        Some(("features", matches)) => features::run(matches),
        Some(("costs", matches)) => costs::run(matches),
        Some(("sessions", matches)) => sessions::run(matches),
        Some(("wires", matches)) => wires::run(matches),
        Some(("mock", matches)) => mock::run(matches),
        _ => unreachable!("clap requires one of the subcommands above"),
    }
}

/// A switch that only checks what the command would write.
fn check_switch() -> Arg {
    Arg::new("check")
        .long("check")
        .action(ArgAction::SetTrue)
        .help("Write nothing; fail when the file is not as it would be written")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}
