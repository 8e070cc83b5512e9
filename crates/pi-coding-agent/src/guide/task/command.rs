//! Running commands.

use super::text::{code, tail_block};
use crate::guide::desk::{Ask, CommandOutput, Desk, brief};

/// How long a command may run, in seconds.
pub(super) const TIMEOUT: u64 = 600;

/// Runs a command that was given.
pub(super) fn run(desk: &mut Desk<'_>, command: &str) -> Ask<String> {
    desk.remark(format!("Running {}.", code(brief(command))));
    let output = desk.run(command, Some(TIMEOUT))?;
    Ok(report(command, &output))
}

fn report(command: &str, output: &CommandOutput) -> String {
    let command = code(brief(command));
    let head = match (&output.ending, output.exit_code) {
        (Some(ending), _) => format!("{command} {ending}."),
        (None, Some(0)) => format!("{command} succeeded"),
        (None, Some(status)) => format!("{command} failed with exit code {status}"),
        (None, None) => format!("{command} did not end by itself"),
    };
    let head = head.trim_end_matches('.');
    if output.text.trim().is_empty() {
        format!("{head} and printed nothing.")
    } else {
        format!("{head}:\n\n{}", tail_block(&output.text, 80))
    }
}

/// Builds or checks the project.
pub(super) fn build(desk: &mut Desk<'_>) -> Ask<String> {
    desk.remark("Looking for what builds this project.");
    let entries = desk.list(".")?;
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    let command = if has("Cargo.toml") {
        "cargo build"
    } else if has("package.json") {
        "npm run build"
    } else if has("go.mod") {
        "go build ./..."
    } else if has("Makefile") || has("makefile") {
        "make"
    } else if has("CMakeLists.txt") {
        "cmake -B build && cmake --build build"
    } else if has("pom.xml") {
        "mvn -q compile"
    } else if has("build.gradle") || has("build.gradle.kts") {
        "./gradlew build -x test"
    } else if entries.iter().any(|entry| entry.name.ends_with(".py")) || has("pyproject.toml") {
        "python3 -m compileall -q ."
    } else {
        return Ok("I see no build file here that I know (Cargo.toml, package.json, go.mod, Makefile, CMakeLists.txt and the like).".to_owned());
    };
    let output = desk.run(command, Some(TIMEOUT))?;
    if output.succeeded() {
        return Ok(format!("The build works: {} succeeded.", code(command)));
    }
    let problems = super::tests::compile_errors(&output.text);
    if problems.is_empty() || output.ending.is_some() {
        return Ok(report(command, &output));
    }
    Ok(format!("The build fails: {} reports\n\n{}", code(command), super::text::list(&problems, 30)))
}
