//! `cargo xtask picture`: the README's picture of a terminal, made from a real run.

mod screen;
mod svg;

use std::path::Path;
use std::process::{Command as Process, Stdio};

use clap::{Arg, ArgMatches, Command};

use xtask::workspace;
use xtask::{Error, Outcome};

/// The question in the picture: the first one a newcomer would ask of this folder.
const QUESTION: &str = "Which crates does this workspace have, and what does each do?";

/// The width of the pictured terminal, in characters.
const COLUMNS: usize = 100;

/// Lines past these are left out, and the picture says so.
const ROWS: usize = 42;

pub(crate) fn command() -> Command {
    Command::new("picture")
        .about("Makes docs/terminal.svg, a picture of a terminal, from a real run of `pi`")
        .long_about(
            "Builds `pi` in release, runs it once in this repository, offline and without any key, settings or \
             session of yours, and draws what a terminal would show as docs/terminal.svg.",
        )
        .arg(Arg::new("question").value_name("QUESTION").default_value(QUESTION).help("What `pi -p` is asked"))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<Outcome, Error> {
    let question = matches.get_one::<String>("question").map_or(QUESTION, String::as_str);
    let built = workspace::cargo().args(["build", "--quiet", "--release", "--package", "pi-coding-agent"]).status()?;
    if !built.success() {
        return Err("cargo build --release -p pi-coding-agent failed".into());
    }
    let output = ask(&workspace::target_dir()?.join("release/pi"), question)?;
    let typed = format!("\x1b[32m$\x1b[0m pi -p \"{question}\"\n");
    let mut lines = screen::lines(&(typed + &output), COLUMNS);
    if lines.len() > ROWS {
        let hidden = lines.len() - ROWS;
        lines.truncate(ROWS);
        lines.push(screen::Line::dim(format!("… {hidden} more lines")));
    }
    let path = workspace::root().join("docs/terminal.svg");
    std::fs::write(&path, svg::draw(&lines, COLUMNS))?;
    println!("wrote {}", path.display());
    Ok(Outcome::Fine)
}

/// What `pi` prints, standard error first: it is what a person sees first.
fn ask(pi: &Path, question: &str) -> Result<String, Error> {
    let home = tempfile::tempdir()?;
    let output = Process::new(pi)
        .args(["-p", question, "--no-session"])
        .current_dir(workspace::root())
        // Nothing of the person who runs this may get into the picture.
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("HOME", home.path())
        .env("PI_CODING_AGENT_DIR", home.path())
        .env("COLUMNS", COLUMNS.to_string())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", pi.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("pi ended with {}: {}", output.status, said.trim()).into());
    }
    let mut text = String::from("\x1b[2m");
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    text.push_str("\x1b[0m");
    text.push_str(&String::from_utf8_lossy(&output.stdout));
    Ok(text)
}
