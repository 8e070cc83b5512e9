//! What a result says about a command's output and its end.

use super::{FullOutput, OutputAccumulator, Snapshot};
use crate::tools::shown_name::shown_name;
use crate::tools::truncate::{MAX_BYTES, TruncatedBy, format_size};
use crate::workspace::{ShellExit, Survivor};

/// The output as the model gets it, with a note where something is missing.
pub(crate) fn shown_output(output: &OutputAccumulator, snapshot: &Snapshot) -> String {
    let mut text = snapshot.truncation.content.clone();
    if let Some(note) = truncation_note(output, snapshot) {
        add_paragraph(&mut text, &note);
    }
    if output.is_binary() {
        add_paragraph(&mut text, "[The output is not all text: NUL bytes were left out.]");
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
        FullOutput::File(path) => format!("[{shown}. Full output: {}]", path.display()),
        FullOutput::Lost(reason) => format!("[{shown}. The full output could not be saved: {reason}]"),
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
        ShellExit::Signal(signal) => format!("Command exited with code {code} (ended by {})", named(signal)),
        // A shell reports the signal that ended its command in this way.
        ShellExit::Code(129..=192) if signal_name(code - 128).is_some() => {
            format!("Command exited with code {code} (as after {})", named(code - 128))
        }
        ShellExit::Code(_) => format!("Command exited with code {code}"),
    }
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
