//! `cargo xtask costs`: what the third-party crates under a crate of ours cost to build.

use std::collections::BTreeSet;

use clap::{Arg, ArgMatches, Command};

use xtask::measure::children_cpu;
use xtask::workspace;
use xtask::{Error, Outcome};

pub(crate) fn command() -> Command {
    Command::new("costs")
        .about("Counts the third-party crates under a crate of ours and the CPU time they take to build")
        .long_about(
            "Builds the crate in an empty target folder (dev profile, debug 0, not incremental), takes off what our \
             own crates take when they are built again, and prints what is left: the CPU-seconds of the third-party \
             crates with their build scripts.",
        )
        .arg(
            Arg::new("package")
                .long("package")
                .short('p')
                .value_name("CRATE")
                .default_value("pi-ai")
                .help("The crate, with its default features"),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<Outcome, Error> {
    let package = matches.get_one::<String>("package").map_or("pi-ai", String::as_str);
    let crates = third_party_crates(package)?;
    let target = tempfile::tempdir()?;
    let build = || -> Result<f64, Error> {
        let before = children_cpu()?;
        let mut command = workspace::cargo();
        command
            .args(["build", "--quiet", "--lib", "--package", package])
            .env("CARGO_TARGET_DIR", target.path())
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
        match command.status()?.success() {
            true => Ok((children_cpu()? - before).as_secs_f64()),
            false => Err(format!("cargo build -p {package} failed").into()),
        }
    };
    let whole = build()?;
    for own in workspace::metadata()?.packages {
        let mut command = workspace::cargo();
        command.args(["clean", "--quiet", "--package", &own.name]).env("CARGO_TARGET_DIR", target.path());
        command.status()?;
    }
    let own = build()?;
    println!("{package}, default features: {} third-party crates, {:.1} CPU-seconds", crates.len(), whole - own);
    println!("(our own crates in it: {own:.1} CPU-seconds)");
    Ok(Outcome::Fine)
}

/// Every third-party crate that is built for `package`, as `name version`.
pub(crate) fn third_party_crates(package: &str) -> Result<BTreeSet<String>, Error> {
    let arguments = ["tree", "--package", package, "--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    let output = workspace::cargo().args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    let text = String::from_utf8(output.stdout)?;
    // A path in parentheses marks a crate of the workspace, ` (*)` one that was listed before.
    let lines = text.lines().map(|line| line.trim_end_matches(" (*)"));
    Ok(lines.filter(|line| !line.is_empty() && !line.contains('/')).map(str::to_owned).collect())
}
