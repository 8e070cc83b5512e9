//! The `pi` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    pi_coding_agent::cli::main(std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()))
}
