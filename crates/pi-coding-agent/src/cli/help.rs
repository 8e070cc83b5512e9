//! The text of `pi --help`, made from the flag table.

use std::fmt::Write;

use super::{
    arguments::ExtensionFlag,
    flags::{Action, FLAGS, Flag, Group},
};
use crate::extensions::FlagKind;

/// The whole help, with the flags that extensions bring.
pub fn text(of_extensions: &[(ExtensionFlag, Option<String>)]) -> String {
    let mut text = String::from(
        "pi, a coding agent: it reads, searches, edits and runs things in the current folder.\n\n\
         Usage: pi [OPTIONS] [--] [@FILE...] [PROMPT...]\n       \
         pi sessions COMMAND   list, show, search, fork, export, repair or delete what was kept\n\n\
         The first word that is no option is the prompt; further ones are sent after it, one at a time.\n\
         @FILE puts a file into the prompt. Text on standard input comes before both.\n",
    );
    for group in Group::ALL {
        let _ = write!(text, "\n{}:\n", group.title());
        for flag in FLAGS.iter().filter(|flag| flag.group == group) {
            let _ = writeln!(text, "  {:<34} {}", usage(flag), flag.help);
        }
        if group == Group::Extensions {
            for (flag, description) in of_extensions {
                let value = if flag.kind == FlagKind::Text { " TEXT" } else { "" };
                let usage = format!("--{}{value}", flag.name);
                let _ = writeln!(text, "  {usage:<34} {}", description.as_deref().unwrap_or_default());
            }
        }
    }
    text.push_str(
        "\nExamples:\n  \
         pi -p \"What does this project do?\"\n  \
         pi -p --continue \"And which part is tested least?\"\n  \
         cargo test 2>&1 | pi -p \"Explain the first failure\"\n  \
         pi -p --model anthropic/claude-sonnet-4-5:high @src/main.rs \"Find the bug\"\n\n\
         Without a key of any provider the built-in offline guide answers; docs/providers.md says how to set one.\n",
    );
    text
}

/// What is shown when the interactive mode is asked for.
pub fn short() -> String {
    String::from(
        "The interactive mode is not there yet. Give a prompt and pi answers and exits:\n  \
         pi -p \"What does this project do?\"\n  \
         pi -p --continue \"Go on\"\n  \
         echo \"some text\" | pi\n\
         pi --help lists every option.\n",
    )
}

fn usage(flag: &Flag) -> String {
    let short = flag.short.map(|short| format!("-{short}, ")).unwrap_or_default();
    match flag.action {
        Action::Switch(_) => format!("{short}--{}", flag.long),
        Action::Value(name, _) => format!("{short}--{} {name}", flag.long),
        Action::OptionalValue(name, _) => format!("{short}--{} [{name}]", flag.long),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_is_in_the_help_and_no_line_is_too_long() {
        let help = text(&[]);
        for flag in FLAGS {
            assert!(help.contains(&format!("--{}", flag.long)), "--{}", flag.long);
        }
        for line in help.lines() {
            assert!(line.chars().count() <= 120, "{line}");
        }
    }
}
