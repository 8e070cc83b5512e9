//! Running a project's tests and saying what failed.

mod report;
mod runner;

use super::text::{block, code, list, plural, sentence, tail_block};
use crate::guide::{
    desk::{Ask, CommandOutput, Desk, line_count},
    intent::PipedQuestion,
};

pub(super) use report::compile_errors;
use report::{Failure, Report, read_report};
use runner::{Runner, choose};

/// Runs the tests: with the command that was given, else with the one that fits the project.
pub(super) fn run(desk: &mut Desk<'_>, scope: Option<&str>, command: Option<&str>) -> Ask<String> {
    let runner = match command {
        Some(command) => Runner { command: command.to_owned(), without: None },
        None => {
            desk.remark("Looking for the project's tests.");
            match choose(desk, scope)? {
                Some(runner) => runner,
                None => {
                    return Ok("I see no tests here that I know how to run: no Cargo.toml, package.json with a test script, Python \
                               tests, go.mod, or Makefile with a test target."
                        .to_owned());
                }
            }
        }
    };
    let mut command = runner.command;
    let mut output = desk.run(&command, Some(super::command::TIMEOUT))?;
    // The usual tool may not be installed where a built-in one does the same.
    if let Some((sign, instead)) = &runner.without
        && !output.succeeded()
        && output.text.contains(sign)
    {
        command = instead.clone();
        output = desk.run(&command, Some(super::command::TIMEOUT))?;
    }
    Ok(tell(&command, &output))
}

fn tell(command: &str, output: &CommandOutput) -> String {
    let report = read_report(&output.text);
    let ran = code(command);
    if let Some(ending) = &output.ending {
        let failures = failures_list(&report);
        return format!("The tests did not end: {ran} {ending}.{failures}\n\n{}", tail_block(&output.text, 20));
    }
    let counts = counts(&report);
    if output.succeeded() {
        if report.passed == Some(0) && report.failures.is_empty() {
            return format!("Nothing failed, but no test ran: {ran} found none.");
        }
        let counts = if counts.is_empty() { String::new() } else { format!(" ({counts})") };
        return format!("All tests pass{counts}. I ran {ran}.");
    }
    let exit = output.exit_code.map(|status| format!(" (exit code {status})")).unwrap_or_default();
    if !report.failures.is_empty() {
        let counts = if counts.is_empty() { String::new() } else { format!(" ({counts})") };
        let is_are = if report.failures.len() == 1 { "test failed" } else { "tests failed" };
        return format!("{} {is_are}{counts}. I ran {ran}.{}", report.failures.len(), failures_list(&report));
    }
    let errors = compile_errors(&output.text);
    if !errors.is_empty() {
        return format!(
            "The tests could not run, because the code does not build. {ran} reports\n\n{}",
            list(&errors, 30)
        );
    }
    if output.text.trim().is_empty() {
        return format!("{ran} failed{exit} and printed nothing.");
    }
    format!(
        "{ran} failed{exit}, and I could not tell from its output which tests failed. The end of it:\n\n{}",
        tail_block(&output.text, 30)
    )
}

fn counts(report: &Report) -> String {
    let mut parts = Vec::new();
    if let Some(passed) = report.passed {
        parts.push(format!("{passed} passed"));
    }
    if let Some(failed) = report.failed.filter(|failed| *failed > 0) {
        parts.push(format!("{failed} failed"));
    }
    if let Some(skipped) = report.skipped.filter(|skipped| *skipped > 0) {
        parts.push(format!("{skipped} skipped"));
    }
    parts.join(", ")
}

fn failures_list(report: &Report) -> String {
    if report.failures.is_empty() {
        return String::new();
    }
    let items: Vec<String> = report.failures.iter().map(described).collect();
    let missing = report.failed.unwrap_or(0).saturating_sub(report.failures.len());
    let more = if missing > 0 {
        format!("\n\n({} more by the count, not named in the output that I got.)", plural(missing, "failure"))
    } else {
        String::new()
    };
    format!("\n\n{}{more}", list(&items, 50))
}

fn described(failure: &Failure) -> String {
    let place = failure.place.as_ref().map(|place| format!(" ({})", code(place))).unwrap_or_default();
    let why = failure.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    format!("{}{place}{why}", code(&failure.name))
}

/// Answers a question about output that somebody else's command printed.
pub(super) fn about_piped(output: &str, question: PipedQuestion) -> String {
    if question == PipedQuestion::Size {
        let words = plural(output.split_whitespace().count(), "word");
        return format!("The piped text has {} and {words}.", plural(line_count(output), "line"));
    }
    let report = read_report(output);
    let (kind, problems): (&str, Vec<String>) = if report.failures.is_empty() {
        ("error", compile_errors(output))
    } else {
        ("failed test", report.failures.iter().map(described).collect())
    };
    if problems.is_empty() {
        return format!(
            "I see no failed test and no compiler error of a kind that I know in the piped text. The end of it:\n\n{}",
            tail_block(output, 20)
        );
    }
    let PipedQuestion::Failure(number) = question else {
        return format!("The piped text tells of {}:\n\n{}", plural(problems.len(), kind), list(&problems, 50));
    };
    let Some(problem) = number.checked_sub(1).and_then(|index| problems.get(index)) else {
        return format!("The piped text tells of {} only:\n\n{}", plural(problems.len(), kind), list(&problems, 50));
    };
    let shown = match number.checked_sub(1).and_then(|index| report.failures.get(index)) {
        Some(failure) => format!("\n\n{}", block(&passage(output, &failure.name), 15)),
        None => String::new(),
    };
    format!("Number {number} of {} is {}{shown}", plural(problems.len(), kind), sentence(problem))
}

/// The lines that tell of a test: from its own heading, or from its last mention before the summary.
fn passage(output: &str, name: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let is_heading = |line: &str| line.contains(name) && line.starts_with(['-', '=', '_', '#', '\u{25cf}']);
    let start = lines.iter().position(|line| is_heading(line)).or_else(|| lines.iter().position(|l| l.contains(name)));
    let rest = &lines[start.unwrap_or(0)..];
    let next = rest.iter().skip(1).position(|line| line.starts_with("---- ") || line.starts_with("failures:"));
    rest[..next.map_or(rest.len(), |next| next + 1)].join("\n").trim_end().to_owned()
}
