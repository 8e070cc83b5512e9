//! What extensions bring besides handlers: what there is of it, and how it is run.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use pi_ai::CancellationToken;
use serde_json::Value;

use super::{
    Command, CommandContext, CommandInfo, Completion, ExtensionFailure, ExtensionRunner, FailurePlace, FlagInfo,
    FlagValue, ShortcutInfo, ThenInSession,
    contain::{contained, contained_now},
    flag,
    runner::{Loaded, failure},
};
use crate::{agent_session::SessionTool, resources::Diagnostic};

impl ExtensionRunner {
    /// What is wrong with what extensions bring: failures, and names that two of them have.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let as_diagnostic = |failure: &ExtensionFailure| match failure.place {
            FailurePlace::Loading => Diagnostic::error(failure.to_string()),
            _ => Diagnostic::warning(failure.to_string()),
        };
        let mut found: Vec<_> = self.failures().iter().map(as_diagnostic).collect();
        let loaded = self.loaded();
        let (mut tools, mut flags, mut keys) = (HashMap::new(), HashMap::new(), HashMap::new());
        for extension in loaded.iter() {
            let (name, brings) = (&*extension.name, extension.brings());
            for (what, taken, brought) in [
                ("tool", &mut tools, brings.tools.keys().cloned().collect::<Vec<_>>()),
                ("flag", &mut flags, brings.flags.keys().cloned().collect()),
            ] {
                for brought in brought {
                    let text = match taken.get(&brought) {
                        None => {
                            taken.insert(brought, name);
                            continue;
                        }
                        Some(first) => format!(
                            "extension `{name}` brings the {what} `{brought}`, which extension `{first}` brings already; \
                             that of `{first}` is used"
                        ),
                    };
                    found.push(Diagnostic::error(text));
                }
            }
            for key in brings.shortcuts.keys() {
                if let Some(before) = keys.insert(key.clone(), name) {
                    let text = format!("extension `{name}` takes the shortcut {key} from extension `{before}`");
                    found.push(Diagnostic::warning(text));
                }
            }
        }
        found
    }

    /// The tools that extensions bring; of several with one name the first.
    pub(crate) fn tools(&self) -> Vec<SessionTool> {
        let mut names = HashSet::new();
        let mut tools = Vec::new();
        for loaded in self.loaded().iter() {
            tools.extend(loaded.brings().tools.values().filter(|tool| names.insert(tool.name().to_owned())).cloned());
        }
        tools
    }

    /// The flags that extensions bring; of several with one name the first.
    pub fn flags(&self) -> Vec<FlagInfo> {
        let mut names = HashSet::new();
        let mut flags = Vec::new();
        for loaded in self.loaded().iter() {
            let brings = loaded.brings();
            flags.extend(brings.flags.values().filter(|flag| names.insert(flag.name.clone())).map(|flag| FlagInfo {
                name: flag.name.clone(),
                description: flag.description.clone(),
                kind: flag.kind,
                extension: loaded.name.to_string(),
            }));
        }
        flags
    }

    pub(super) fn flag(&self, name: &str) -> Option<FlagValue> {
        let flag = self.loaded().iter().find_map(|loaded| loaded.brings().flags.get(name).cloned())?;
        flag::value_of(&flag, self.given_flags().get(name))
    }

    /// The shortcuts that extensions bring; of several with one key the last.
    pub fn shortcuts(&self) -> Vec<ShortcutInfo> {
        let mut shortcuts: Vec<ShortcutInfo> = Vec::new();
        for loaded in self.loaded().iter() {
            for shortcut in loaded.brings().shortcuts.values() {
                shortcuts.retain(|other| other.key != shortcut.key);
                shortcuts.push(ShortcutInfo {
                    key: shortcut.key.clone(),
                    description: shortcut.description.clone(),
                    extension: loaded.name.to_string(),
                });
            }
        }
        shortcuts
    }

    /// Runs a shortcut. Whether there was one.
    pub async fn run_shortcut(&self, key: &str) -> bool {
        let found = self.loaded().iter().rev().find_map(|loaded| {
            let run = loaded.brings().shortcuts.get(&key.to_lowercase()).map(|shortcut| shortcut.run.clone());
            Some((loaded.clone(), run?))
        });
        let Some((loaded, run)) = found else { return false };
        let signal = CancellationToken::new();
        let context = CommandContext::new(self.context_of(&loaded, &signal));
        if let Err(error) = contained(&signal, || run(String::new(), context)).await {
            self.report(failure(&loaded.name, FailurePlace::Shortcut(key.to_owned()), &error)).await;
        }
        true
    }

    /// The commands that extensions bring. Several with one name get numbers: `name:1`, `name:2`.
    pub fn commands(&self) -> Vec<CommandInfo> {
        self.named_commands()
            .into_iter()
            .map(|(name, loaded, command)| CommandInfo {
                name,
                description: command.description,
                extension: loaded.name.to_string(),
            })
            .collect()
    }

    fn named_commands(&self) -> Vec<(String, Arc<Loaded>, Command)> {
        let loaded = self.loaded();
        let all: Vec<(Arc<Loaded>, Command)> = loaded
            .iter()
            .flat_map(|loaded| {
                loaded.brings().commands.values().map(|command| (loaded.clone(), command.clone())).collect::<Vec<_>>()
            })
            .collect();
        let mut named: Vec<(String, Arc<Loaded>, Command)> = Vec::with_capacity(all.len());
        for (index, (loaded, command)) in all.iter().enumerate() {
            let is_namesake = |(_, other): &&(Arc<Loaded>, Command)| other.name == command.name;
            let mut number = all[..=index].iter().filter(is_namesake).count();
            let mut name = match all.iter().filter(is_namesake).count() {
                1 => command.name.clone(),
                _ => format!("{}:{number}", command.name),
            };
            while named.iter().any(|(taken, ..)| *taken == name) {
                number += 1;
                name = format!("{}:{number}", command.name);
            }
            named.push((name, loaded.clone(), command.clone()));
        }
        named
    }

    /// What the arguments of a command may be, given how they begin.
    pub fn completions(&self, command: &str, beginning: &str) -> Vec<Completion> {
        let found = self.named_commands().into_iter().find(|(name, ..)| name == command);
        let Some((_, _, Command { complete: Some(complete), .. })) = found else { return Vec::new() };
        contained_now(|| complete(beginning)).unwrap_or_default()
    }

    /// The command that a text calls up, with its arguments.
    pub(crate) fn command_of(&self, text: &str) -> Option<CalledCommand> {
        let called = text.strip_prefix('/')?;
        if self.loaded().is_empty() {
            return None;
        }
        let (name, arguments) = called.split_once(char::is_whitespace).unwrap_or((called, ""));
        let found = self.named_commands().into_iter().find(|(known, ..)| known == name);
        let (name, loaded, command) = found?;
        Some(CalledCommand { name, loaded, command, arguments: arguments.trim().to_owned() })
    }

    /// Runs a command. A failure is reported.
    pub(crate) async fn run_command(&self, called: CalledCommand, signal: &CancellationToken) {
        let CalledCommand { name, loaded, command, arguments } = called;
        let context = CommandContext::new(self.context_of(&loaded, signal));
        if let Err(error) = contained(signal, || (command.run)(arguments, context)).await {
            self.report(failure(&loaded.name, FailurePlace::Command(name), &error)).await;
        }
    }

    /// Runs what a command of the session before wants to do in this one, as its extension of that name. A failure is
    /// reported.
    pub(super) async fn run_in_session(&self, extension: &str, lifetime: CancellationToken, then: impl ThenInSession) {
        let Some(loaded) = self.loaded().iter().find(|loaded| *loaded.name == *extension).cloned() else { return };
        let context = CommandContext::new(self.context_of(&loaded, &lifetime));
        if let Err(error) = contained(&lifetime, || then.run(context)).await {
            self.report(failure(&loaded.name, FailurePlace::Replacement, &error)).await;
        }
    }

    /// Says something to whoever listens to a channel.
    pub(super) async fn emit(&self, channel: &str, value: Value, signal: &CancellationToken) {
        for loaded in self.loaded().iter() {
            let listeners: Vec<_> =
                loaded.brings().bus.iter().filter(|bus| bus.channel == channel).map(|bus| bus.run.clone()).collect();
            for run in listeners {
                let context = self.context_of(loaded, signal);
                if let Err(error) = contained(signal, || run(value.clone(), context)).await {
                    self.report(failure(&loaded.name, FailurePlace::Bus(channel.to_owned()), &error)).await;
                }
            }
        }
    }
}

/// A command that a text calls up.
pub(crate) struct CalledCommand {
    pub(crate) name: String,
    loaded: Arc<Loaded>,
    command: Command,
    arguments: String,
}
