//! What a result says about a command's output and its end: how it is written, and how a reader of results tells it
//! from the output.

use super::{FullOutput, OutputAccumulator, Snapshot};
use crate::tools::shown_name::shown_name;
use crate::tools::truncate::{MAX_BYTES, TruncatedBy, format_size};
use crate::workspace::{ShellExit, Survivor};

/// Stands for the output of a command that wrote nothing.
pub(crate) const NO_OUTPUT: &str = "(no output)";
const NUL_BYTES: &str = "[The output is not all text: NUL bytes were left out.]";
const FULL_OUTPUT: &str = "Full output: ";
const NOT_SAVED: &str = "The full output could not be saved: ";
const EXITED: &str = "Command exited with code ";
const TIMED_OUT: &str = "Command timed out after ";
const ABORTED: &str = "Command aborted";

/// The output as the model gets it, with a note where something is missing.
pub(crate) fn shown_output(output: &OutputAccumulator, snapshot: &Snapshot) -> String {
    let mut text = snapshot.truncation.content.clone();
    if let Some(note) = truncation_note(output, snapshot) {
        add_paragraph(&mut text, &note);
    }
    if output.is_binary() {
        add_paragraph(&mut text, NUL_BYTES);
    }
    text
}

fn truncation_note(output: &OutputAccumulator, snapshot: &Snapshot) -> Option<String> {
    let truncation = &snapshot.truncation;
    if !truncation.truncated {
        return None;
    }
    let last = truncation.total_lines;
    let first = last + 1 - truncation.output_lines.min(last);
    let shown = if truncation.last_line_partial {
        let shown = format_size(truncation.output_bytes as u64);
        let size = format_size(output.last_line_bytes() as u64);
        format!("Last {shown} of line {last}, which has {size}")
    } else if truncation.truncated_by == Some(TruncatedBy::Bytes) {
        format!("Lines {first}-{last} of {last} ({} limit)", format_size(MAX_BYTES as u64))
    } else {
        format!("Lines {first}-{last} of {last}")
    };
    Some(match &snapshot.full_output {
        FullOutput::File(path) => format!("[{shown}. {FULL_OUTPUT}{}]", path.display()),
        FullOutput::Lost(reason) => format!("[{shown}. {NOT_SAVED}{reason}]"),
        FullOutput::Shown => format!("[{shown}.]"),
    })
}

/// Adds a text behind a blank line, or as the whole text.
pub(crate) fn add_paragraph(text: &mut String, paragraph: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(paragraph);
}

/// How a shell's end reads: its code, and the signal when one was the cause.
pub(crate) fn exit_line(exit: ShellExit) -> String {
    let code = exit.code();
    let named = |signal: i32| signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned);
    match exit {
        ShellExit::Signal(signal) => format!("{EXITED}{code} (ended by {})", named(signal)),
        // A shell reports the signal that ended its command in this way.
        ShellExit::Code(129..=192) if signal_name(code - 128).is_some() => {
            format!("{EXITED}{code} (as after {})", named(code - 128))
        }
        ShellExit::Code(_) => format!("{EXITED}{code}"),
    }
}

/// How the end of a command that did not end by itself reads.
pub(crate) fn cut_short_line(outcome: CutShort) -> String {
    match outcome {
        CutShort::After { seconds } => format!("{TIMED_OUT}{seconds} seconds"),
        CutShort::Aborted => ABORTED.to_owned(),
    }
}

/// Why a command did not end by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CutShort {
    After { seconds: f64 },
    Aborted,
}

/// A result's text, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report<'t> {
    /// What the command wrote, as far as it is there.
    pub(crate) output: &'t str,
    /// Whether the beginning of the output was left out.
    pub(crate) is_cut: bool,
    /// The code that the result names: none when the command succeeded or did not end by itself.
    pub(crate) exit_code: Option<i32>,
    /// How it ended when not by itself, without the word "Command".
    pub(crate) cut_short: Option<&'t str>,
}

impl<'t> Report<'t> {
    /// Takes a text apart that [`shown_output`] and the lines about the end made up.
    pub(crate) fn read(text: &'t str) -> Self {
        let mut report = Report::default();
        let mut rest = text.trim_end();
        let (before, last) = last_paragraph(rest);
        if let Some(code) = last.strip_prefix(EXITED).and_then(|code| code.split(' ').next()?.parse().ok()) {
            report.exit_code = Some(code);
            rest = before;
        } else if last.starts_with(TIMED_OUT) || last == ABORTED || last.starts_with("Command aborted. ") {
            report.cut_short = last.strip_prefix("Command ");
            rest = before;
        }
        if let (before, NUL_BYTES) = last_paragraph(rest) {
            rest = before;
        }
        let (before, last) = last_paragraph(rest);
        if is_truncation_note(last) {
            report.is_cut = true;
            rest = before;
        }
        report.output = if rest == NO_OUTPUT { "" } else { rest };
        report
    }
}

/// The last line and what is before it, if it stands alone or behind a blank line.
fn last_paragraph(text: &str) -> (&str, &str) {
    match text.rsplit_once('\n') {
        None => ("", text),
        Some((before, last)) => before.strip_suffix('\n').map_or((text, ""), |before| (before, last)),
    }
}

/// Whether a line is what [`truncation_note`] writes.
fn is_truncation_note(line: &str) -> bool {
    let Some(inner) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else { return false };
    let (shown, ending) = match inner.split_once(". ") {
        Some((shown, ending)) => (shown, ending),
        None => (inner.strip_suffix('.').unwrap_or_default(), FULL_OUTPUT),
    };
    let is_known = match (shown.strip_prefix("Lines "), shown.strip_prefix("Last ")) {
        (Some(lines), _) => lines.starts_with(|c: char| c.is_ascii_digit()) && lines.contains(" of "),
        (_, Some(part)) => part.contains(" of line ") && part.contains(", which has "),
        _ => false,
    };
    is_known && (ending.starts_with(FULL_OUTPUT) || ending.starts_with(NOT_SAVED))
}

/// Which processes are out of reach.
pub(crate) fn survivors_line(survivors: &[Survivor]) -> Option<String> {
    if survivors.is_empty() {
        return None;
    }
    let names: Vec<_> = survivors.iter().map(|survivor| shown_name(&survivor.to_string()).into_owned()).collect();
    Some(format!("Still running, in a session of their own: {}", names.join(", ")))
}

/// Names of signals that have the same number on Linux and macOS, and of those that programs end by.
fn signal_name(signal: i32) -> Option<&'static str> {
    let bus_error = if cfg!(target_os = "linux") { 7 } else { 10 };
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        bus if bus == bus_error => "SIGBUS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::truncate::{Limits, truncate_tail};

    fn snapshots() -> Vec<Snapshot> {
        let outputs = [
            || FullOutput::File("/tmp/a. b.log".into()),
            || FullOutput::Lost("No space left on device. (os error 28)".into()),
            || FullOutput::Shown,
        ];
        let texts = [("x\ny\nz", Limits { lines: 1, bytes: 9 }), ("xx\nyy\nz", Limits { lines: 9, bytes: 3 })];
        let huge = [("z".repeat(20), Limits { lines: 9, bytes: 1 })];
        let texts = texts.map(|(text, limits)| (text.to_owned(), limits)).into_iter().chain(huge);
        let cut = texts.map(|(text, limits)| truncate_tail(&text, limits)).collect::<Vec<_>>();
        cut.iter()
            .flat_map(|cut| outputs.iter().map(|output| Snapshot { truncation: cut.clone(), full_output: output() }))
            .collect()
    }

    #[test]
    fn every_note_about_missing_output_is_recognised_whatever_ended_the_command() {
        let nothing_saved = OutputAccumulator::new(Limits::default());
        let endings = [
            (String::new(), None, None),
            (exit_line(ShellExit::Code(3)), Some(3), None),
            (exit_line(ShellExit::Code(137)), Some(137), None),
            (exit_line(ShellExit::Signal(9)), Some(137), None),
            (cut_short_line(CutShort::After { seconds: 2.5 }), None, Some("timed out after 2.5 seconds")),
            (cut_short_line(CutShort::Aborted), None, Some("aborted")),
        ];
        for snapshot in snapshots() {
            let shown = shown_output(&nothing_saved, &snapshot);
            for (line, exit_code, cut_short) in &endings {
                let mut text = shown.clone();
                if !line.is_empty() {
                    add_paragraph(&mut text, line);
                }
                let report = Report { output: "z", is_cut: true, exit_code: *exit_code, cut_short: *cut_short };
                assert_eq!(Report::read(&text), report, "{text}");
            }
        }
    }

    #[test]
    fn output_that_looks_like_a_note_stays_output() {
        for text in ["a\n[Lines 1-2 of 3.]", "[Lines of code]", "a\n\n[x]", "a\nCommand exited with code 1"] {
            assert_eq!(Report::read(text), Report { output: text, ..Report::default() });
        }
        assert_eq!(Report::read(NO_OUTPUT).output, "");
    }
}
