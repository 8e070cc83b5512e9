//! What tools add to their output: notices about lines left out, about how a command ended.

use super::CommandOutput;

/// Takes the exit code and notices off a command's text.
pub(super) fn command_output(text: &str, exit_code: Option<i32>) -> CommandOutput {
    let mut rest = text.trim_end();
    let mut output = CommandOutput { text: String::new(), exit_code, ending: None, cut: false };
    // The ending comes last, before it the notice about lines left out.
    if let Some((before, last)) = last_line(rest) {
        if let Some(code) =
            last.strip_prefix("Command exited with code ").and_then(|code| code.trim_end_matches('.').parse().ok())
        {
            output.exit_code = Some(code);
            rest = before;
        } else if let Some(ending) = last
            .strip_prefix("Command ")
            .filter(|ending| ending.starts_with("timed out") || ending.starts_with("aborted"))
        {
            output.exit_code = None;
            output.ending = Some(ending.trim_end_matches('.').to_owned());
            rest = before;
        }
    }
    if let Some((before, last)) = last_line(rest)
        && last.starts_with("[Showing ")
        && last.ends_with(']')
    {
        output.cut = true;
        rest = before;
    }
    let rest = rest.trim_end();
    output.text = if rest == "(no output)" { String::new() } else { rest.to_owned() };
    output
}

/// The last line and what is before it.
fn last_line(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_end();
    if text.is_empty() {
        return None;
    }
    Some(match text.rfind('\n') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => ("", text),
    })
}

/// What a reading tool says at the end about lines that it left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ReadNotice {
    /// Where to go on, from 1.
    pub(super) next_line: Option<usize>,
    /// How many lines the whole file has, where it says so.
    pub(super) total: Option<usize>,
}

/// Takes the notice off the text of a read file. A file that happens to end like a notice is left alone unless the
/// notice names a line to go on from.
pub(super) fn read_notice(text: &str) -> (&str, ReadNotice) {
    let Some((before, last)) = last_line(text) else { return (text, ReadNotice::default()) };
    let Some(inner) = last.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return (text, ReadNotice::default());
    };
    let Some(next_line) = number_after(inner, "offset=") else { return (text, ReadNotice::default()) };
    let total = number_after(inner, " of ").or_else(|| {
        inner.split_whitespace().next()?.parse::<usize>().ok().map(|more| next_line.saturating_sub(1) + more)
    });
    // The notice stands after a blank line of its own.
    let body = before.strip_suffix('\n').unwrap_or(before);
    (body, ReadNotice { next_line: Some(next_line), total })
}

fn number_after(text: &str, marker: &str) -> Option<usize> {
    let (_, after) = text.split_once(marker)?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
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
        let long =
            command_output("z\n\n[Showing lines 10-20 of 20. Full output: /tmp/x]\n\nCommand exited with code 1", None);
        assert_eq!((long.text.as_str(), long.cut, long.exit_code), ("z", true, Some(1)));
        assert_eq!(command_output("(no output)", Some(0)).text, "");
    }

    #[test]
    fn a_notice_about_lines_left_out_is_taken_off() {
        let (body, notice) = read_notice("a\nb\n\n[Showing lines 1-2 of 9. Use offset=3 to continue.]");
        assert_eq!((body, notice.next_line, notice.total), ("a\nb", Some(3), Some(9)));
        let (body, notice) = read_notice("a\n\n[7 more lines in file. Use offset=2 to continue.]");
        assert_eq!((body, notice.next_line, notice.total), ("a", Some(2), Some(8)));
        let (body, notice) = read_notice("x = [1, 2]\n[section]");
        assert_eq!((body, notice), ("x = [1, 2]\n[section]", ReadNotice::default()));
    }
}
