//! The one table of command-line flags: the parser, the help and the suggestions all read it.

use crate::workspace::local::Network;

use super::arguments::{Arguments, InvalidValue, OutputMode, SessionChoice, ToolDefaults, TrustChoice};

/// One flag.
#[derive(Debug)]
pub struct Flag {
    /// Its name without the dashes.
    pub long: &'static str,
    /// Its short form without the dash; some have more than one letter.
    pub short: Option<&'static str>,
    /// Whether it takes a value, and what it does.
    pub action: Action,
    /// Where the help lists it.
    pub group: Group,
    /// One line for the help.
    pub help: &'static str,
}

/// What a flag does when it is met.
#[derive(Debug)]
pub enum Action {
    /// It takes no value.
    Switch(fn(&mut Arguments)),
    /// It takes one, named so in the help. Without one it is treated like an unknown flag.
    Value(&'static str, fn(&mut Arguments, String) -> Result<(), InvalidValue>),
    /// The next word is its value unless it looks like a flag or a file.
    OptionalValue(&'static str, fn(&mut Arguments, Option<String>)),
}

/// A heading of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Which model answers.
    Model,
    /// What comes out, and how.
    Output,
    /// Where the conversation is kept.
    Session,
    /// What the model may do.
    Tools,
    /// What the model is told.
    Prompt,
    /// What takes part in the session.
    Extensions,
    /// Everything else.
    General,
}

impl Group {
    /// Every heading, in the order of the help.
    pub const ALL: [Self; 7] =
        [Self::Model, Self::Output, Self::Session, Self::Tools, Self::Prompt, Self::Extensions, Self::General];

    /// The heading's text.
    pub fn title(self) -> &'static str {
        match self {
            Self::Model => "Model",
            Self::Output => "Output",
            Self::Session => "Session",
            Self::Tools => "Tools",
            Self::Prompt => "Prompt",
            Self::Extensions => "Extensions",
            Self::General => "General",
        }
    }
}

use Action::{OptionalValue, Switch, Value};

/// Every flag, in the order of the help.
pub static FLAGS: &[Flag] = &[
    Flag {
        long: "provider",
        short: None,
        action: Value("NAME", |arguments, value| set(&mut arguments.provider, value)),
        group: Group::Model,
        help: "Provider of the model; needs --model",
    },
    Flag {
        long: "model",
        short: None,
        action: Value("PATTERN", |arguments, value| set(&mut arguments.model, value)),
        group: Group::Model,
        help: "Model as provider/id, id or part of a name, with :LEVEL for the thinking level",
    },
    Flag {
        long: "models",
        short: None,
        action: Value("LIST", |arguments, value| {
            arguments.models = Some(list(&value));
            Ok(())
        }),
        group: Group::Model,
        help: "Models to choose from, by comma; globs on provider/id or id",
    },
    Flag {
        long: "thinking",
        short: None,
        action: Value("LEVEL", |arguments, value| set(&mut arguments.thinking, value)),
        group: Group::Model,
        help: "off, minimal, low, medium, high, xhigh or max",
    },
    Flag {
        long: "api-key",
        short: None,
        action: Value("KEY", |arguments, value| {
            arguments.api_key = Some(value.into());
            Ok(())
        }),
        group: Group::Model,
        help: "Key for this run only; needs --model or --models",
    },
    Flag {
        long: "list-models",
        short: None,
        action: OptionalValue("SEARCH", |arguments, value| arguments.list_models = Some(value.unwrap_or_default())),
        group: Group::Model,
        help: "List the models that have a key, and exit",
    },
    Flag {
        long: "export",
        short: None,
        action: Value("SESSION", |arguments, value| set(&mut arguments.export, value)),
        group: Group::Output,
        help: "Write a session as an HTML page, to the file that follows, and exit",
    },
    Flag {
        long: "print",
        short: Some("p"),
        action: OptionalValue("PROMPT", |arguments, value| {
            arguments.print = true;
            arguments.messages.extend(value);
        }),
        group: Group::Output,
        help: "Answer and exit",
    },
    Flag {
        long: "mode",
        short: None,
        action: Value("MODE", |arguments, value| {
            arguments.mode = Some(match value.as_str() {
                "text" => OutputMode::Text,
                "json" => OutputMode::Json,
                "rpc" => OutputMode::Rpc,
                _ => return Err(InvalidValue { expected: "text, json or rpc" }),
            });
            Ok(())
        }),
        group: Group::Output,
        help: "text, or json: every event as a line",
    },
    Flag {
        long: "no-stdin",
        short: None,
        action: Switch(|arguments| arguments.no_stdin = true),
        group: Group::Output,
        help: "Do not read standard input, even when it is a pipe",
    },
    Flag {
        long: "verbose",
        short: None,
        action: Switch(|arguments| arguments.verbose = true),
        group: Group::Output,
        help: "Say more: with --version which features are on, otherwise what was loaded",
    },
    Flag {
        long: "continue",
        short: Some("c"),
        action: Switch(|arguments| arguments.sessions.push(SessionChoice::Continue)),
        group: Group::Session,
        help: "Go on with this folder's latest session",
    },
    Flag {
        long: "session",
        short: None,
        action: Value("PATH|ID", |arguments, value| {
            arguments.sessions.push(SessionChoice::Open(not_blank(value, A_SESSION)?));
            Ok(())
        }),
        group: Group::Session,
        help: "Go on with a session, by file or by the beginning of its id",
    },
    Flag {
        long: "session-id",
        short: None,
        action: Value("ID", |arguments, value| {
            arguments.sessions.push(SessionChoice::Exactly(not_blank(value, "the id of a session")?));
            Ok(())
        }),
        group: Group::Session,
        help: "Open the session with this id, or make it",
    },
    Flag {
        long: "fork",
        short: None,
        action: Value("PATH|ID", |arguments, value| {
            arguments.sessions.push(SessionChoice::Fork(not_blank(value, A_SESSION)?));
            Ok(())
        }),
        group: Group::Session,
        help: "Copy a session into a new one and go on there",
    },
    Flag {
        long: "no-session",
        short: None,
        action: Switch(|arguments| arguments.sessions.push(SessionChoice::InMemory)),
        group: Group::Session,
        help: "Keep the session in memory only",
    },
    Flag {
        long: "session-dir",
        short: None,
        action: Value("DIR", |arguments, value| {
            arguments.session_dir = Some(not_blank(value, "a folder")?.into());
            Ok(())
        }),
        group: Group::Session,
        help: "Folder for session files in this run",
    },
    Flag {
        long: "name",
        short: Some("n"),
        action: Value("TEXT", |arguments, value| {
            arguments.name = Some(not_blank(value, "a name that is not blank")?);
            Ok(())
        }),
        group: Group::Session,
        help: "Name of the session",
    },
    Flag {
        long: "tools",
        short: Some("t"),
        action: Value("LIST", |arguments, value| {
            arguments.tools = Some(list(&value));
            Ok(())
        }),
        group: Group::Tools,
        help: "Tools to offer, by comma, * for any; or +NAME and -NAME to change the usual ones",
    },
    Flag {
        long: "exclude-tools",
        short: Some("xt"),
        action: Value("LIST", |arguments, value| {
            arguments.exclude_tools.extend(list(&value));
            Ok(())
        }),
        group: Group::Tools,
        help: "Tools not to offer, whatever else is said",
    },
    Flag {
        long: "no-tools",
        short: Some("nt"),
        action: Switch(|arguments| arguments.tool_defaults = ToolDefaults::None),
        group: Group::Tools,
        help: "No tools at all",
    },
    Flag {
        long: "no-builtin-tools",
        short: Some("nbt"),
        action: Switch(|arguments| {
            if arguments.tool_defaults == ToolDefaults::Usual {
                arguments.tool_defaults = ToolDefaults::NoBuiltins;
            }
        }),
        group: Group::Tools,
        help: "None of the built-in tools",
    },
    Flag {
        long: "sandbox",
        short: None,
        action: Switch(|arguments| {
            arguments.sandbox.get_or_insert_default();
        }),
        group: Group::Tools,
        help: "Write only below the working folder, no network for commands (Linux)",
    },
    Flag {
        long: "sandbox-network",
        short: None,
        action: Switch(|arguments| arguments.sandbox = Some(Network::Allowed)),
        group: Group::Tools,
        help: "The same, with the network for commands",
    },
    Flag {
        long: "system-prompt",
        short: None,
        action: Value("TEXT|FILE", |arguments, value| set(&mut arguments.system_prompt, value)),
        group: Group::Prompt,
        help: "Instead of the usual system prompt",
    },
    Flag {
        long: "append-system-prompt",
        short: None,
        action: Value("TEXT|FILE", |arguments, value| {
            arguments.append_system_prompt.push(value);
            Ok(())
        }),
        group: Group::Prompt,
        help: "After the system prompt; may be given several times",
    },
    Flag {
        long: "no-context-files",
        short: Some("nc"),
        action: Switch(|arguments| arguments.no_context_files = true),
        group: Group::Prompt,
        help: "Do not read AGENTS.md and its like",
    },
    Flag {
        long: "skill",
        short: None,
        action: Value("PATH", |arguments, value| {
            arguments.skills.push(value);
            Ok(())
        }),
        group: Group::Prompt,
        help: "A skill, or a folder of skills; may be given several times",
    },
    Flag {
        long: "no-skills",
        short: Some("ns"),
        action: Switch(|arguments| arguments.no_skills = true),
        group: Group::Prompt,
        help: "Only the skills that --skill names",
    },
    Flag {
        long: "prompt-template",
        short: None,
        action: Value("PATH", |arguments, value| {
            arguments.prompt_templates.push(value);
            Ok(())
        }),
        group: Group::Prompt,
        help: "A prompt template, or a folder of them; may be given several times",
    },
    Flag {
        long: "no-prompt-templates",
        short: Some("np"),
        action: Switch(|arguments| arguments.no_prompt_templates = true),
        group: Group::Prompt,
        help: "Only the templates that --prompt-template names",
    },
    Flag {
        long: "theme",
        short: None,
        action: Value("PATH", |arguments, value| {
            arguments.themes.push(value);
            Ok(())
        }),
        group: Group::Prompt,
        help: "A theme, or a folder of themes; may be given several times",
    },
    Flag {
        long: "no-themes",
        short: None,
        action: Switch(|arguments| arguments.no_themes = true),
        group: Group::Prompt,
        help: "Only the themes that --theme names, and the built-in ones",
    },
    Flag {
        long: "extension",
        short: Some("e"),
        action: Value("PATH", |arguments, value| {
            arguments.extensions.push(value);
            Ok(())
        }),
        group: Group::Extensions,
        help: "An extension: its folder, or its manifest; may be given several times",
    },
    Flag {
        long: "no-extensions",
        short: Some("ne"),
        action: Switch(|arguments| arguments.no_extensions = true),
        group: Group::Extensions,
        help: "Only the extensions that --extension names",
    },
    Flag {
        long: "approve",
        short: Some("a"),
        action: Switch(|arguments| arguments.trust = Some(TrustChoice::Trust)),
        group: Group::General,
        help: "Use this project's own settings in this run",
    },
    Flag {
        long: "no-approve",
        short: Some("na"),
        action: Switch(|arguments| arguments.trust = Some(TrustChoice::Distrust)),
        group: Group::General,
        help: "Do not use them",
    },
    Flag {
        long: "offline",
        short: None,
        action: Switch(|arguments| arguments.offline = true),
        group: Group::General,
        help: "Start without the network (as with PI_OFFLINE=1)",
    },
    Flag {
        long: "help",
        short: Some("h"),
        action: Switch(|arguments| arguments.help = true),
        group: Group::General,
        help: "This help",
    },
    Flag {
        long: "version",
        short: Some("v"),
        action: Switch(|arguments| arguments.version = true),
        group: Group::General,
        help: "The version",
    },
];

/// The flag of this long name.
pub fn by_long(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.long == name)
}

/// The flag of this short name.
pub fn by_short(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.short == Some(name))
}

/// The flag whose name is nearest to a mistyped one, if one is near.
pub fn nearest(name: &str) -> Option<&'static Flag> {
    by_long(nearest_of(name, FLAGS.iter().map(|flag| flag.long))?)
}

/// The name that is nearest to a mistyped one, if one is near.
pub fn nearest_of<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let reach = name.chars().count().div_ceil(3);
    names
        .into_iter()
        .map(|other| (edit_distance(name, other), other))
        .filter(|(distance, _)| *distance <= reach)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

fn set(slot: &mut Option<String>, value: String) -> Result<(), InvalidValue> {
    *slot = Some(value);
    Ok(())
}

/// What `--session` and `--fork` take.
const A_SESSION: &str = "a session's file, its id or the beginning of its id";

/// Refuses a value that says nothing: an empty variable of a script, most often.
fn not_blank(value: String, expected: &'static str) -> Result<String, InvalidValue> {
    if value.trim().is_empty() { Err(InvalidValue { expected }) } else { Ok(value) }
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// How many letters have to be changed, added, left out or swapped with their neighbour.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        rows[i][0] = i;
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            rows[i][j] = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                rows[i][j] = rows[i][j].min(rows[i - 2][j - 2] + 1);
            }
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (i, flag) in FLAGS.iter().enumerate() {
            for other in &FLAGS[i + 1..] {
                assert_ne!(flag.long, other.long);
                assert!(flag.short.is_none() || flag.short != other.short, "-{:?}", flag.short);
            }
        }
    }

    #[test]
    fn a_typo_finds_its_flag() {
        assert_eq!(nearest("modle").map(|flag| flag.long), Some("model"));
        assert_eq!(nearest("no-sesion").map(|flag| flag.long), Some("no-session"));
        assert!(nearest("frobnicate").is_none());
    }
}
