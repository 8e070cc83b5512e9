//! The words after `pi sessions`: one table of commands and options, and what is read from it.

use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf};

/// One command.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) name: &'static str,
    /// Its words, as the help shows them.
    usage: &'static str,
    /// How many words it takes.
    words: std::ops::RangeInclusive<usize>,
    options: &'static [&'static Choice],
    /// One line for the list of commands.
    about: &'static str,
    /// What else its own help says.
    more: &'static str,
}

/// One option.
#[derive(Debug)]
pub(super) struct Choice {
    long: &'static str,
    /// What the help calls its value, if it takes one.
    value: Option<&'static str>,
    about: &'static str,
}

const fn switch(long: &'static str, about: &'static str) -> Choice {
    Choice { long, value: None, about }
}

const fn valued(long: &'static str, value: &'static str, about: &'static str) -> Choice {
    Choice { long, value: Some(value), about }
}

pub(super) static ALL: Choice = switch("all", "Sessions of every folder, not of this one alone");
pub(super) static LIMIT: Choice = valued("limit", "N", "At most so many");
pub(super) static JSON: Choice = switch("json", "JSON instead of text, one object on each line");
pub(super) static FULL: Choice = switch("full", "All that was said, as Markdown");
pub(super) static AT: Choice = valued("at", "ENTRY", "Only the branch that ends in this entry");
pub(super) static BEFORE: Choice = valued("before", "ENTRY", "Only what was said before this message of the user");
pub(super) static ID: Choice = valued("id", "ID", "The new session's id");
pub(super) static FORMAT: Choice =
    valued("format", "FORMAT", "jsonl, markdown or html; without it the file's name decides");
pub(super) static WRITE: Choice = switch("write", "Do it; the old file is kept beside the new one");
pub(super) static PERMANENTLY: Choice = switch("permanently", "Do not use the trash");
static SESSION_DIR: Choice = valued("session-dir", "DIR", "Where the sessions lie, for this run");
static HELP: Choice = switch("help", "Show this help");

/// What every command takes.
static COMMON: &[&Choice] = &[&SESSION_DIR, &HELP];

/// Every command, in the order of the help.
pub(super) static COMMANDS: &[Command] = &[
    Command {
        name: "list",
        usage: "",
        words: 0..=0,
        options: &[&ALL, &LIMIT, &JSON],
        about: "The sessions of this folder, the one that was used last first",
        more: "",
    },
    Command {
        name: "show",
        usage: "[SESSION]",
        words: 0..=1,
        options: &[&FULL, &AT],
        about: "What was said in a session, one line for each message",
        more: "The first column has the entries' ids, which --at and --before take.",
    },
    Command {
        name: "search",
        usage: "WORD...",
        words: 1..=usize::MAX,
        options: &[&ALL, &LIMIT, &JSON],
        about: "The sessions in which all of these words, or words that begin so, were said",
        more: "An index beside the sessions is brought up to date first; it can be deleted at any time.",
    },
    Command {
        name: "fork",
        usage: "SESSION",
        words: 1..=1,
        options: &[&AT, &BEFORE, &ID, &JSON],
        about: "Copy a session into a new one",
        more: "A whole copy works in this folder; a part of a session works where the session does.",
    },
    Command {
        name: "export",
        usage: "[SESSION [FILE]]",
        words: 0..=2,
        options: &[&FORMAT, &AT],
        about: "Write a branch into a file, or to standard output",
        more: "JSONL is a session of its own, which can be imported; the others are for people. A file that is there stays.",
    },
    Command {
        name: "stats",
        usage: "[SESSION]",
        words: 0..=1,
        options: &[&JSON],
        about: "Messages, tokens and costs, over all branches",
        more: "",
    },
    Command {
        name: "repair",
        usage: "SESSION",
        words: 1..=1,
        options: &[&WRITE, &JSON],
        about: "Say what is wrong with a session's file, and with --write repair it",
        more: "Exits with 0 when the session is sound or was repaired, and with 1 when there is something to repair.",
    },
    Command {
        name: "import",
        usage: "FILE...",
        words: 1..=usize::MAX,
        options: &[&JSON],
        about: "Copy session files to this folder's sessions, with their ids and working folders",
        more: "",
    },
    Command {
        name: "delete",
        usage: "SESSION...",
        words: 1..=usize::MAX,
        options: &[&PERMANENTLY],
        about: "Move sessions into the trash, where there is one",
        more: "All sessions are looked for first: when one of them is not there, none is deleted.",
    },
];

/// What the words ask for.
#[derive(Debug)]
pub(super) enum Asked {
    /// The help of a command, or of all.
    Help(Option<&'static Command>),
    /// To run a command.
    Run(Request),
}

/// A command with its words and options.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) command: &'static Command,
    pub(super) words: Vec<String>,
    options: BTreeMap<&'static str, String>,
}

/// Words that cannot be understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WordsError {
    #[error("there is no command `sessions {found}`{}; `pi sessions --help` lists them", suggested(.suggestion))]
    UnknownCommand { found: String, suggestion: Option<&'static str> },
    #[error("unknown option {found}; `pi sessions {command} --help` lists the options")]
    UnknownOption { found: String, command: &'static str },
    #[error("--{option} needs a value: --{option} {value}")]
    MissingValue { option: &'static str, value: &'static str },
    #[error("--{option} takes no value")]
    UnwantedValue { option: &'static str },
    #[error("--{option}: expected {expected}, found `{found}`")]
    InvalidValue { option: &'static str, expected: &'static str, found: String },
    #[error("--{first} does not go together with --{second}; use one of them")]
    Conflict { first: &'static str, second: &'static str },
    #[error("expected `pi sessions {command} {usage}`, found {found}")]
    WordCount { command: &'static str, usage: &'static str, found: String },
}

fn suggested(name: &Option<&str>) -> String {
    name.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

impl Asked {
    /// Reads the words after `sessions`. `None` when there are none.
    pub(super) fn read(words: impl IntoIterator<Item = String>) -> Result<Option<Self>, WordsError> {
        let mut words = words.into_iter();
        let Some(name) = words.next() else { return Ok(None) };
        if matches!(&*name, "--help" | "-h" | "help") {
            return Ok(Some(Self::Help(None)));
        }
        let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
            let begins = |command: &&Command| command.name.starts_with(&*name) || name.starts_with(command.name);
            let suggestion = COMMANDS.iter().find(begins).map(|command| command.name);
            return Err(WordsError::UnknownCommand { found: name, suggestion });
        };
        let mut request = Request { command, words: Vec::new(), options: BTreeMap::new() };
        while let Some(word) = words.next() {
            if word == "--" {
                request.words.extend(words.by_ref());
            } else if word == "-h" {
                return Ok(Some(Self::Help(Some(command))));
            } else if let Some(long) = word.strip_prefix("--") {
                let (name, inline) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (long, None),
                };
                let mut known = command.options.iter().chain(COMMON);
                let Some(option) = known.find(|option| option.long == name) else {
                    return Err(WordsError::UnknownOption { found: word, command: command.name });
                };
                if option.long == HELP.long {
                    return Ok(Some(Self::Help(Some(command))));
                }
                request.take(option, inline, &mut words)?;
            } else if word.len() > 1 && word.starts_with('-') {
                return Err(WordsError::UnknownOption { found: word, command: command.name });
            } else {
                request.words.push(word);
            }
        }
        request.check()?;
        Ok(Some(Self::Run(request)))
    }
}

impl Request {
    fn take(
        &mut self,
        option: &'static Choice,
        inline: Option<String>,
        words: &mut impl Iterator<Item = String>,
    ) -> Result<(), WordsError> {
        let value = match (option.value, inline) {
            (None, None) => String::new(),
            (None, Some(_)) => return Err(WordsError::UnwantedValue { option: option.long }),
            (Some(value), inline) => {
                let given = inline.or_else(|| words.next().filter(|word| !word.starts_with("--")));
                given.ok_or(WordsError::MissingValue { option: option.long, value })?
            }
        };
        self.options.insert(option.long, value);
        Ok(())
    }

    fn check(&self) -> Result<(), WordsError> {
        let Command { name, usage, words, .. } = self.command;
        if !words.contains(&self.words.len()) {
            let found = match self.words.len() {
                0 => "nothing".to_owned(),
                1 => "1 word".to_owned(),
                count => format!("{count} words"),
            };
            return Err(WordsError::WordCount { command: name, usage, found });
        }
        self.limit()?;
        let conflicts = [(&AT, &BEFORE), (&ID, &AT), (&ID, &BEFORE)];
        match conflicts.into_iter().find(|(first, second)| self.has(first) && self.has(second)) {
            Some((first, second)) => Err(WordsError::Conflict { first: first.long, second: second.long }),
            None => Ok(()),
        }
    }

    /// Whether a switch is on, or an option has a value.
    pub(super) fn has(&self, option: &Choice) -> bool {
        self.options.contains_key(option.long)
    }

    /// The value of an option.
    pub(super) fn value(&self, option: &Choice) -> Option<&str> {
        self.options.get(option.long).map(String::as_str)
    }

    /// `--limit`.
    pub(super) fn limit(&self) -> Result<Option<usize>, WordsError> {
        let Some(found) = self.value(&LIMIT) else { return Ok(None) };
        found.parse().map(Some).map_err(|_| invalid(&LIMIT, "a number", found))
    }

    /// `--session-dir`.
    pub(super) fn session_dir(&self) -> Option<PathBuf> {
        self.value(&SESSION_DIR).map(PathBuf::from)
    }
}

/// A value that an option does not take.
pub(super) fn invalid(option: &'static Choice, expected: &'static str, found: &str) -> WordsError {
    WordsError::InvalidValue { option: option.long, expected, found: found.to_owned() }
}

/// The help of one command, or of all.
pub(super) fn help(command: Option<&Command>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let Some(command) = command else {
        text.push_str("What was kept of earlier conversations.\n\nUsage: pi sessions COMMAND [WORDS] [OPTIONS]\n\n");
        for command in COMMANDS {
            let _ =
                writeln!(text, "  {:<24} {}", format!("{} {}", command.name, command.usage).trim_end(), command.about);
        }
        text.push_str(
            "\nSESSION is a session's id, the beginning of one, or its file. Where it may be left out, the last session of \
             this\nfolder is meant.\n`pi sessions COMMAND --help` lists a command's options.\n",
        );
        return text;
    };
    let usage = format!("{} {}", command.name, command.usage);
    let _ = writeln!(text, "{}.\n\nUsage: pi sessions {} [OPTIONS]\n", command.about, usage.trim_end());
    for option in command.options.iter().chain(COMMON) {
        let value = option.value.map(|value| format!(" {value}")).unwrap_or_default();
        let _ = writeln!(text, "  {:<24} {}", format!("--{}{value}", option.long), option.about);
    }
    if !command.more.is_empty() {
        let _ = writeln!(text, "\n{}", command.more);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Option<Asked>, WordsError> {
        Asked::read(line.split_whitespace().map(str::to_owned))
    }

    fn request(line: &str) -> Request {
        match read(line) {
            Ok(Some(Asked::Run(request))) => request,
            other => panic!("{other:?}"),
        }
    }

    fn error(line: &str) -> String {
        read(line).unwrap_err().to_string()
    }

    #[test]
    fn options_stand_anywhere_and_words_after_two_dashes_are_words() {
        let found = request("search --limit=3 two words --all -- --json");
        assert_eq!(found.words, ["two", "words", "--json"]);
        assert_eq!(found.limit(), Ok(Some(3)));
        assert!(found.has(&ALL) && !found.has(&JSON));
        assert_eq!(request("list --session-dir d").session_dir(), Some("d".into()));
        assert_eq!(request("export s -").words, ["s", "-"]);
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        assert_eq!(
            error("lis"),
            "there is no command `sessions lis`; did you mean list?; `pi sessions --help` lists them"
        );
        assert_eq!(error("list --write"), "unknown option --write; `pi sessions list --help` lists the options");
        assert_eq!(error("list -x"), "unknown option -x; `pi sessions list --help` lists the options");
        assert_eq!(error("list --limit"), "--limit needs a value: --limit N");
        assert_eq!(error("list --limit few"), "--limit: expected a number, found `few`");
        assert_eq!(error("repair"), "expected `pi sessions repair SESSION`, found nothing");
        assert_eq!(error("fork s --at a --before b"), "--at does not go together with --before; use one of them");
        assert_eq!(error("repair s --write=yes"), "--write takes no value");
    }

    #[test]
    fn every_command_and_option_is_in_the_help_and_no_line_is_too_long() {
        let all = help(None);
        for command in COMMANDS {
            assert!(all.contains(&format!("  {} ", command.name)), "{}", command.name);
            let own = help(Some(command));
            for option in command.options {
                assert!(own.contains(&format!("--{}", option.long)), "{own}");
            }
            assert!(own.lines().chain(all.lines()).all(|line| line.chars().count() <= 120), "{own}");
        }
        assert!(matches!(read("list -h"), Ok(Some(Asked::Help(Some(command)))) if command.name == "list"));
        assert!(matches!(read("--help"), Ok(Some(Asked::Help(None)))));
        assert!(matches!(read(""), Ok(None)));
    }
}
