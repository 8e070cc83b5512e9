//! What tools add to their output: notices about lines left out, about how a command ended.

use super::CommandOutput;
use crate::tools::exec::Report;

/// Takes the exit code and notices off a command's text.
pub(super) fn command_output(text: &str, exit_code: Option<i32>) -> CommandOutput {
    let report = Report::read(text);
    CommandOutput {
        text: report.output.to_owned(),
        exit_code: if report.cut_short.is_some() { None } else { report.exit_code.or(exit_code) },
        ending: report.cut_short.map(str::to_owned),
        cut: report.is_cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commands_end_is_told_from_its_output() {
        let failed = command_output("a\nb\n\nCommand exited with code 101", None);
        assert_eq!((failed.text.as_str(), failed.exit_code), ("a\nb", Some(101)));
        let late = command_output("a\n\nCommand timed out after 5 seconds", None);
        assert_eq!((late.exit_code, late.ending.as_deref()), (None, Some("timed out after 5 seconds")));
        assert_eq!(command_output("(no output)", Some(0)).text, "");
    }
}
