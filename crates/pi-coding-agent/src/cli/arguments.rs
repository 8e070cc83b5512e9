//! Words of the command line → [`Arguments`].
//!
//! The grammar is that of upstream: short flags may have several letters, `-p` takes the next word unless it looks
//! like a flag or a file, and an unknown `--flag` is kept, because an extension may register it later. No
//! general-purpose parser has that grammar, so the table in [`flags`] is read here.

use std::path::PathBuf;

use pi_ai::Secret;

use super::{
    extensions::is_package_source,
    flags::{self, Action, FLAGS},
};
use crate::{
    extensions::{FlagKind, FlagValues},
    resources::{Locations, ProjectTrust, prompt_file},
    workspace::local::Network,
};

/// What the command line says.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each one is a switch that a person typed")]
pub struct Arguments {
    /// `--provider`.
    pub provider: Option<String>,
    /// `--model`.
    pub model: Option<String>,
    /// `--models`.
    pub models: Option<Vec<String>>,
    /// `--thinking`, not yet checked: an invalid level is a warning.
    pub thinking: Option<String>,
    /// `--api-key`.
    pub api_key: Option<Secret>,
    /// `--list-models`, with its search text.
    pub list_models: Option<String>,
    /// `--export`: a session file, or the id of a session.
    pub export: Option<String>,
    /// `--print`.
    pub print: bool,
    /// `--mode`.
    pub mode: Option<OutputMode>,
    /// `--no-stdin`.
    pub no_stdin: bool,
    /// `--verbose`.
    pub verbose: bool,
    /// Every flag that chooses a session, in order; [`Arguments::session`] checks that they agree.
    pub sessions: Vec<SessionChoice>,
    /// `--session-dir`.
    pub session_dir: Option<PathBuf>,
    /// `--name`.
    pub name: Option<String>,
    /// `--tools`.
    pub tools: Option<Vec<String>>,
    /// `--exclude-tools`.
    pub exclude_tools: Vec<String>,
    /// `--no-tools`, `--no-builtin-tools`.
    pub tool_defaults: ToolDefaults,
    /// `--sandbox`, `--sandbox-network`.
    pub sandbox: Option<Network>,
    /// `--system-prompt`.
    pub system_prompt: Option<String>,
    /// `--append-system-prompt`.
    pub append_system_prompt: Vec<String>,
    /// `--no-context-files`.
    pub no_context_files: bool,
    /// `--skill`.
    pub skills: Vec<String>,
    /// `--no-skills`.
    pub no_skills: bool,
    /// `--prompt-template`.
    pub prompt_templates: Vec<String>,
    /// `--no-prompt-templates`.
    pub no_prompt_templates: bool,
    /// `--theme`.
    pub themes: Vec<String>,
    /// `--no-themes`.
    pub no_themes: bool,
    /// `--extension`.
    pub extensions: Vec<String>,
    /// `--no-extensions`.
    pub no_extensions: bool,
    /// `--approve`, `--no-approve`: the last one counts.
    pub trust: Option<TrustChoice>,
    /// `--offline`.
    pub offline: bool,
    /// `--help`.
    pub help: bool,
    /// `--version`.
    pub version: bool,
    /// Words that are prompts: the first one is the initial one, the others follow it.
    pub messages: Vec<String>,
    /// `@file` words, without the `@`.
    pub files: Vec<String>,
    /// Long flags that the table does not know.
    pub unknown: Vec<UnknownFlag>,
}

/// `--mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputMode {
    /// The answer's text.
    Text,
    /// Every event as a line.
    Json,
    /// Commands in, events out.
    Rpc,
}

/// A flag that chooses the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChoice {
    /// `--continue`.
    Continue,
    /// `--session`.
    Open(String),
    /// `--session-id`.
    Exactly(String),
    /// `--fork`.
    Fork(String),
    /// `--no-session`.
    InMemory,
}

/// Which tools are offered before `--tools` and `--exclude-tools` count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolDefaults {
    /// The usual ones.
    #[default]
    Usual,
    /// No built-in ones.
    NoBuiltins,
    /// None.
    None,
}

/// `--approve` or `--no-approve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustChoice {
    /// Trust the project for this run.
    Trust,
    /// Do not.
    Distrust,
}

/// A long flag that the table does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFlag {
    /// Its name without the dashes.
    pub name: String,
    /// What came after `=` or as the next word.
    pub value: Option<String>,
    /// How many prompts stood before it, when its value was the next word: of a flag that takes none, that is a prompt.
    pub before: Option<usize>,
}

/// A flag that an extension brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionFlag {
    /// Its name without the dashes.
    pub name: String,
    /// What it takes.
    pub kind: FlagKind,
}

/// The value of a flag is not one of those that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidValue {
    /// Those that it takes.
    pub expected: &'static str,
}

/// The command line cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentsError {
    /// A short flag that does not exist.
    #[error("unknown option -{flag}; `pi --help` lists the options")]
    UnknownShort {
        /// Without the dash.
        flag: String,
    },
    /// A long flag that neither the table nor an extension knows.
    #[error("unknown option --{flag}{}; `pi --help` lists the options", .suggestion.as_ref().map(|name| format!("; did you mean --{name}?")).unwrap_or_default())]
    UnknownLong {
        /// Without the dashes.
        flag: String,
        /// A flag of nearly this name.
        suggestion: Option<String>,
    },
    /// A flag that takes a value got none.
    #[error("--{flag} needs a value: --{flag} {value_name}")]
    MissingValue {
        /// Without the dashes.
        flag: String,
        /// What the help calls the value.
        value_name: &'static str,
    },
    /// An extension brings a flag that is one of pi's own.
    #[error("an extension brings the flag --{flag}, which pi has itself; it would never reach the extension")]
    Taken {
        /// Without the dashes.
        flag: String,
    },
    /// A value that the flag does not take.
    #[error("--{flag}: expected {expected}, found `{found}`")]
    InvalidValue {
        /// Without the dashes.
        flag: String,
        /// Those that it takes.
        expected: &'static str,
        /// What was given.
        found: String,
    },
    /// Two flags that do not go together.
    #[error("--{first} does not go together with --{second}; use one of them")]
    Conflict {
        /// Without the dashes.
        first: &'static str,
        /// Without the dashes.
        second: &'static str,
    },
    /// A flag that needs another one.
    #[error("--{flag} needs {needed}")]
    Needs {
        /// Without the dashes.
        flag: &'static str,
        /// What it needs.
        needed: &'static str,
    },
}

impl Arguments {
    /// Reads the words after the program's name.
    ///
    /// # Errors
    /// When a short flag is unknown, a value is not one that its flag takes, or flags contradict each other.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, ArgumentsError> {
        let mut words = words.into_iter().peekable();
        let mut arguments = Self::default();
        while let Some(word) = words.next() {
            if word == "--" {
                words.by_ref().for_each(|word| arguments.plain_word(word));
            } else if let Some(long) = word.strip_prefix("--").filter(|name| !name.starts_with('-')) {
                let (name, inline) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (long, None),
                };
                match flags::by_long(name) {
                    Some(flag) => arguments.apply(flag, inline, &mut words)?,
                    None => {
                        let before = inline.is_none().then_some(arguments.messages.len());
                        let value = inline.or_else(|| words.next_if(|word| is_value(word)));
                        let before = before.filter(|_| value.is_some());
                        arguments.unknown.push(UnknownFlag { name: name.to_owned(), value, before });
                    }
                }
            } else if let Some(short) = word.strip_prefix('-').filter(|rest| !rest.is_empty() && !rest.starts_with('-'))
            {
                match flags::by_short(short) {
                    Some(flag) => arguments.apply(flag, None, &mut words)?,
                    None => return Err(ArgumentsError::UnknownShort { flag: short.to_owned() }),
                }
            } else {
                arguments.plain_word(word);
            }
        }
        arguments.check()?;
        Ok(arguments)
    }

    /// The one session that is asked for.
    pub fn session(&self) -> Option<&SessionChoice> {
        self.sessions.last()
    }

    /// Whether the project is trusted in this run, where the command line says so.
    pub fn trusted(&self) -> Option<ProjectTrust> {
        self.trust.map(|choice| match choice {
            TrustChoice::Trust => ProjectTrust::Trusted,
            TrustChoice::Distrust => ProjectTrust::Untrusted,
        })
    }

    /// Gives the unknown flags to the extensions that bring them. What was taken for the value of a flag that takes none
    /// is a prompt after all.
    ///
    /// # Errors
    /// When nobody brings a flag, or one that takes a value has none.
    pub fn settle_flags(&mut self, known: &[ExtensionFlag]) -> Result<FlagValues, ArgumentsError> {
        if let Some(flag) = known.iter().find(|flag| flags::by_long(&flag.name).is_some()) {
            return Err(ArgumentsError::Taken { flag: flag.name.clone() });
        }
        self.refuse_unknown(known)?;
        let mut values = FlagValues::new();
        let mut given_back = 0;
        for flag in std::mem::take(&mut self.unknown) {
            let takes_none = known.iter().any(|other| other.name == flag.name && other.kind == FlagKind::Switch);
            let value = match (takes_none, flag.value, flag.before) {
                (true, Some(word), Some(before)) => {
                    match word.strip_prefix('@') {
                        Some(file) if !file.is_empty() => self.files.push(file.to_owned()),
                        _ => {
                            self.messages.insert((before + given_back).min(self.messages.len()), word);
                            given_back += 1;
                        }
                    }
                    None
                }
                (false, None, _) => {
                    return Err(ArgumentsError::MissingValue { flag: flag.name, value_name: "TEXT" });
                }
                (_, value, _) => value,
            };
            values.insert(flag.name, value);
        }
        Ok(values)
    }

    /// Refuses the unknown flags that no extension brings.
    fn refuse_unknown(&self, known: &[ExtensionFlag]) -> Result<(), ArgumentsError> {
        let is_known = |name: &str| known.iter().any(|flag| flag.name == name);
        let Some(unknown) = self.unknown.iter().find(|flag| !is_known(&flag.name)) else { return Ok(()) };
        // A flag of the table lands here when its value is missing.
        if let Some(Action::Value(value_name, _)) = flags::by_long(&unknown.name).map(|flag| &flag.action) {
            return Err(ArgumentsError::MissingValue { flag: unknown.name.clone(), value_name });
        }
        let names = FLAGS.iter().map(|flag| flag.long).chain(known.iter().map(|flag| flag.name.as_str()));
        Err(ArgumentsError::UnknownLong {
            flag: unknown.name.clone(),
            suggestion: flags::nearest_of(&unknown.name, names).map(str::to_owned),
        })
    }

    fn apply(
        &mut self,
        flag: &flags::Flag,
        inline: Option<String>,
        words: &mut std::iter::Peekable<impl Iterator<Item = String>>,
    ) -> Result<(), ArgumentsError> {
        match flag.action {
            Action::Switch(apply) => apply(self),
            Action::OptionalValue(_, apply) => {
                let value = inline.or_else(|| words.next_if(|word| is_prompt(word)));
                apply(self, value);
            }
            Action::Value(_, apply) => match inline.or_else(|| words.next_if(|word| is_value(word))) {
                Some(value) => apply(self, value.clone()).map_err(|InvalidValue { expected }| {
                    ArgumentsError::InvalidValue { flag: flag.long.to_owned(), expected, found: value }
                })?,
                None => self.unknown.push(UnknownFlag { name: flag.long.to_owned(), value: None, before: None }),
            },
        }
        Ok(())
    }

    fn plain_word(&mut self, word: String) {
        match word.strip_prefix('@') {
            Some(file) if !file.is_empty() => self.files.push(file.to_owned()),
            _ => self.messages.push(word),
        }
    }

    fn check(&self) -> Result<(), ArgumentsError> {
        let has = |wanted: fn(&SessionChoice) -> bool| self.sessions.iter().any(wanted);
        let fork = has(|choice| matches!(choice, SessionChoice::Fork(_)));
        let exactly = has(|choice| matches!(choice, SessionChoice::Exactly(_)));
        let open = has(|choice| matches!(choice, SessionChoice::Open(_)));
        let going_on = has(|choice| matches!(choice, SessionChoice::Continue));
        let in_memory = has(|choice| matches!(choice, SessionChoice::InMemory));
        let conflicts = [
            (fork && open, "fork", "session"),
            (fork && going_on, "fork", "continue"),
            (fork && in_memory, "fork", "no-session"),
            (exactly && open, "session-id", "session"),
            (exactly && going_on, "session-id", "continue"),
            (open && going_on, "session", "continue"),
        ];
        if let Some((_, first, second)) = conflicts.into_iter().find(|(conflict, ..)| *conflict) {
            return Err(ArgumentsError::Conflict { first, second });
        }
        if self.provider.is_some() && self.model.is_none() {
            return Err(ArgumentsError::Needs { flag: "provider", needed: "--model" });
        }
        if self.api_key.is_some() && self.model.is_none() && self.models.is_none() {
            return Err(ArgumentsError::Needs {
                flag: "api-key",
                needed: "--model or --models: it is for one provider",
            });
        }
        if self.mode == Some(OutputMode::Rpc) && !self.files.is_empty() {
            return Err(ArgumentsError::Needs { flag: "mode rpc", needed: "no @files: they come with its commands" });
        }
        Ok(())
    }

    /// Makes paths absolute: what the command line names is meant from where it was typed, wherever the session works.
    pub(super) fn resolve_paths(&mut self, typed_in: &Locations) {
        let absolute = |path: &str| typed_in.resolve(path, &typed_in.cwd).to_string_lossy().into_owned();
        let resources = self.skills.iter_mut().chain(&mut self.prompt_templates).chain(&mut self.themes);
        let extensions = self.extensions.iter_mut().filter(|source| !is_package_source(source));
        for path in resources.chain(extensions).filter(|path| !path.trim().is_empty()) {
            *path = absolute(path);
        }
        // A prompt is a file's content where there is one of that name, else the text itself.
        for text in self.system_prompt.iter_mut().chain(&mut self.append_system_prompt) {
            if let Some(file) = prompt_file(text, typed_in).and_then(|file| file.into_os_string().into_string().ok()) {
                *text = file;
            }
        }
    }
}

/// Whether a word can be the value of a flag.
fn is_value(word: &str) -> bool {
    !word.starts_with('-') || word == "-"
}

/// Whether the word after `-p` is the prompt. A line of dashes begins many a pasted text.
fn is_prompt(word: &str) -> bool {
    !word.starts_with('@') && (!word.starts_with('-') || word.starts_with("---"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> Result<Arguments, ArgumentsError> {
        Arguments::parse(line.iter().map(ToString::to_string))
    }

    #[test]
    fn print_takes_the_next_word_unless_it_is_a_flag_or_a_file() {
        assert_eq!(parse(&["-p", "hi"]).unwrap().messages, ["hi"]);
        assert_eq!(parse(&["-p", "---\nfront matter"]).unwrap().messages, ["---\nfront matter"]);
        let arguments = parse(&["-p", "@a.txt", "--mode", "json", "do it"]).unwrap();
        assert!(arguments.print);
        assert_eq!((arguments.files, arguments.messages), (vec!["a.txt".into()], vec!["do it".into()]));
    }

    #[test]
    fn a_sandbox_keeps_the_network_out_unless_it_is_let_in() {
        assert_eq!(parse(&["hi"]).unwrap().sandbox, None);
        assert_eq!(parse(&["--sandbox", "hi"]).unwrap().sandbox, Some(Network::Denied));
        assert_eq!(parse(&["--sandbox-network", "--sandbox"]).unwrap().sandbox, Some(Network::Allowed));
    }

    #[test]
    fn short_flags_of_several_letters_are_known() {
        let arguments = parse(&["-nt", "-xt", "bash,edit", "-nc", "-na"]).unwrap();
        assert_eq!(arguments.tool_defaults, ToolDefaults::None);
        assert_eq!(arguments.exclude_tools, ["bash", "edit"]);
        assert_eq!(arguments.trust, Some(TrustChoice::Distrust));
        assert_eq!(parse(&["-zz"]).unwrap_err(), ArgumentsError::UnknownShort { flag: "zz".into() });
    }

    #[test]
    fn an_unknown_long_flag_waits_for_extensions_and_is_refused_with_a_suggestion() {
        let mut arguments = parse(&["--plan=fast", "--modle", "x", "hello"]).unwrap();
        assert_eq!(arguments.messages, ["hello"]);
        let error = arguments.clone().settle_flags(&[text("plan")]).unwrap_err().to_string();
        assert!(error.contains("--modle") && error.contains("--model?"), "{error}");
        let values = arguments.settle_flags(&[text("plan"), text("modle")]).unwrap();
        assert_eq!(values["plan"].as_deref(), Some("fast"));
        assert_eq!(values["modle"].as_deref(), Some("x"));
        let mut arguments = parse(&["--depht", "3"]).unwrap();
        let error = arguments.settle_flags(&[text("depth")]).unwrap_err().to_string();
        assert!(error.contains("did you mean --depth?"), "{error}");
    }

    fn text(name: &str) -> ExtensionFlag {
        ExtensionFlag { name: name.to_owned(), kind: FlagKind::Text }
    }

    #[test]
    fn a_flag_that_takes_nothing_leaves_the_prompt_alone() {
        let switch = |name: &str| ExtensionFlag { kind: FlagKind::Switch, ..text(name) };
        let known = [switch("plan"), switch("fast"), text("depth")];
        let mut arguments = parse(&["first", "--plan", "second", "third", "--fast", "fourth", "--depth", "3"]).unwrap();
        let values = arguments.settle_flags(&known).unwrap();
        assert_eq!(arguments.messages, ["first", "second", "third", "fourth"]);
        assert_eq!((&values["plan"], &values["fast"], &values["depth"]), (&None, &None, &Some("3".into())));
        let mut arguments = parse(&["--plan", "@notes.txt", "--fast=false", "do it"]).unwrap();
        let values = arguments.settle_flags(&known).unwrap();
        assert_eq!((arguments.files, arguments.messages), (vec!["notes.txt".into()], vec!["do it".into()]));
        assert_eq!(values["fast"].as_deref(), Some("false"));
        let error = parse(&["--depth"]).unwrap().settle_flags(&known).unwrap_err();
        assert_eq!(error.to_string(), "--depth needs a value: --depth TEXT");
        let error = parse(&[]).unwrap().settle_flags(&[text("model")]).unwrap_err();
        assert!(error.to_string().contains("--model"), "{error}");
    }

    #[test]
    fn a_flag_without_its_value_is_named() {
        let mut arguments = parse(&["--model", "--print"]).unwrap();
        let error = arguments.settle_flags(&[]).unwrap_err().to_string();
        assert_eq!(error, "--model needs a value: --model PATTERN");
    }

    #[test]
    fn after_two_dashes_everything_is_text_or_a_file() {
        let arguments = parse(&["--", "--model", "@b.txt"]).unwrap();
        assert_eq!((arguments.messages, arguments.files), (vec!["--model".into()], vec!["b.txt".into()]));
    }

    #[test]
    fn contradictions_are_refused() {
        assert!(parse(&["--fork", "a", "--no-session"]).is_err());
        assert!(parse(&["--session-id", "a", "-c"]).is_err());
        assert!(parse(&["--provider", "x"]).is_err());
        assert!(parse(&["--api-key", "k"]).is_err());
        assert!(parse(&["--mode", "xml"]).unwrap_err().to_string().contains("text, json or rpc"));
    }

    #[test]
    fn tools_may_be_changed_by_signs() {
        assert_eq!(parse(&["--tools=+grep,-bash"]).unwrap().tools.unwrap(), ["+grep", "-bash"]);
    }
}
