//! The manifest of an extension that is a program: `extension.json`.
//!
//! Everything that the extension brings is declared here and nowhere else. So pi knows flags, tools and commands before
//! anything runs, starts the program only when something of it is used, and a person can read what an extension takes
//! part in before running it. After a crash nothing has to be declared again.

use std::{
    fs::OpenOptions,
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};

use indexmap::IndexMap;
use pi_agent_core::ExecutionMode;
use pi_ai::{Model, models::Provider};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::limits;
use crate::{
    extensions::{EventKind, FlagKind, FlagValue},
    regular_file,
    resources::{
        Diagnostic,
        document::{self, kind_of},
    },
};

/// The name of the file in an extension's folder.
pub const MANIFEST_FILE: &str = "extension.json";
/// The version of the protocol.
pub const PROTOCOL: u64 = 1;

/// What an extension that is a program brings, and how it is run.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The file.
    pub(super) file: PathBuf,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) command: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) events: Vec<(EventKind, Subscription)>,
    pub(super) tools: IndexMap<String, DeclaredTool>,
    pub(super) commands: IndexMap<String, DeclaredCommand>,
    pub(super) flags: IndexMap<String, DeclaredFlag>,
    pub(super) shortcuts: IndexMap<String, DeclaredShortcut>,
    pub(super) providers: Vec<Provider>,
    pub(super) entry_renderers: Vec<String>,
    pub(super) message_renderers: Vec<String>,
    pub(super) bus: Vec<String>,
    pub(super) timeouts: Timeouts,
    pub(super) restart: Restart,
}

/// A manifest is missing or wrong. It names file and line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidManifest(Box<Diagnostic>);

impl From<Diagnostic> for InvalidManifest {
    fn from(problem: Diagnostic) -> Self {
        Self(Box::new(problem))
    }
}

impl From<InvalidManifest> for Diagnostic {
    fn from(invalid: InvalidManifest) -> Self {
        *invalid.0
    }
}

/// How an event reaches the program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Subscription {
    #[serde(default)]
    pub(super) timeout_ms: Option<u64>,
    /// `None` where the event has no list of messages.
    #[serde(default)]
    pub(super) messages: Option<MessageDetail>,
}

/// What a program is told of the messages of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum MessageDetail {
    /// A short description of each.
    #[default]
    Described,
    /// All of each.
    Whole,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DeclaredTool {
    pub(super) description: String,
    #[serde(default)]
    pub(super) label: Option<String>,
    #[serde(default = "any_object")]
    pub(super) parameters: Value,
    #[serde(default)]
    pub(super) prompt_snippet: Option<String>,
    #[serde(default)]
    pub(super) prompt_guidelines: Vec<String>,
    #[serde(default)]
    execution_mode: Scheduling,
    #[serde(default)]
    pub(super) timeout_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Scheduling {
    #[default]
    Parallel,
    Sequential,
}

impl DeclaredTool {
    pub(super) fn mode(&self) -> ExecutionMode {
        match self.execution_mode {
            Scheduling::Parallel => ExecutionMode::Parallel,
            Scheduling::Sequential => ExecutionMode::Sequential,
        }
    }
}

fn any_object() -> Value {
    serde_json::json!({"type": "object"})
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DeclaredCommand {
    #[serde(default)]
    pub(super) description: Option<String>,
    /// What its arguments may be.
    #[serde(default)]
    pub(super) completions: Vec<String>,
    #[serde(default)]
    pub(super) timeout_ms: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DeclaredFlag {
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(rename = "type", default = "switch")]
    pub(super) kind: FlagKind,
    #[serde(default)]
    pub(super) default: Option<FlagValue>,
}

fn switch() -> FlagKind {
    FlagKind::Switch
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DeclaredShortcut {
    #[serde(default)]
    pub(super) description: Option<String>,
}

/// A provider, in the words of `models.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DeclaredProvider {
    base_url: String,
    api: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    api_key: Option<String>,
    #[serde(default)]
    headers: IndexMap<String, String>,
    models: Vec<Model>,
}

impl DeclaredProvider {
    fn provider(self, id: &str) -> Provider {
        let mut provider = Provider::new(id, self.base_url).api(self.api);
        if let Some(name) = self.name {
            provider = provider.name(name);
        }
        provider = match self.api_key {
            Some(key) => provider.api_key(&key),
            None => provider.without_key(),
        };
        for (name, value) in &self.headers {
            provider = provider.header(name, value);
        }
        self.models.into_iter().fold(provider, Provider::model)
    }
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    pub(super) start: Duration,
    pub(super) event: Duration,
    pub(super) tool: Duration,
    pub(super) command: Duration,
    pub(super) shutdown: Duration,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct DeclaredTimeouts {
    start_ms: u64,
    event_ms: u64,
    tool_ms: u64,
    command_ms: u64,
    shutdown_ms: u64,
}

impl Default for DeclaredTimeouts {
    fn default() -> Self {
        Self { start_ms: 10_000, event_ms: 10_000, tool_ms: 600_000, command_ms: 600_000, shutdown_ms: 2_000 }
    }
}

/// Whether a program that crashed is started again.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Restart {
    pub(super) policy: RestartPolicy,
    /// How often within the window.
    pub(super) max: u32,
    pub(super) window_ms: u64,
    /// How long the first restart waits; each further one within the window twice as long.
    pub(super) back_off_ms: u64,
}

impl Default for Restart {
    fn default() -> Self {
        Self { policy: RestartPolicy::OnCrash, max: 3, window_ms: 60_000, back_off_ms: 250 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RestartPolicy {
    Never,
    OnCrash,
}

impl Manifest {
    /// Reads a manifest: a file, or the folder that has one.
    ///
    /// # Errors
    /// When it is missing or wrong; the problem names file and line.
    pub fn read(path: &Path) -> Result<Self, InvalidManifest> {
        let file = if path.is_dir() { path.join(MANIFEST_FILE) } else { path.to_owned() };
        let problem = |text: String| InvalidManifest::from(Diagnostic::error(text).in_file(&file));
        let mut text = String::new();
        let opened = regular_file::open(&file, OpenOptions::new().read(true)).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => problem("there is no manifest of an extension here".to_owned()),
            _ => problem(format!("the manifest cannot be read: {error}")),
        })?;
        let read = opened.take(limits::MAX_MANIFEST + 1).read_to_string(&mut text);
        read.map_err(|error| problem(format!("the manifest cannot be read: {error}")))?;
        if text.len() as u64 > limits::MAX_MANIFEST {
            return Err(problem(format!("the manifest has more than {} bytes", limits::MAX_MANIFEST)));
        }
        Self::parse(&file, &text)
    }

    /// Reads the text of a manifest.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(file: &Path, text: &str) -> Result<Self, InvalidManifest> {
        let document = document::parse(text)
            .map_err(|problem| Diagnostic::error(problem.message).in_file(file).on_line(problem.line))
            .map_err(InvalidManifest::from)?;
        if let Some((key, line)) = document::repeated_key(text) {
            let text = format!("`{key}` stands twice in one object; only one of them would count");
            return Err(Diagnostic::error(text).in_file(file).on_line(line).into());
        }
        Reading { file, text, document }.manifest()
    }

    /// The extension's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is for, for people.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// The file that it was read from.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The folder that it lies in, where its program runs.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("."))
    }

    /// Whether it handles an event.
    pub fn handles(&self, kind: EventKind) -> bool {
        self.events.iter().any(|(other, _)| *other == kind)
    }

    /// The providers that it brings.
    pub fn providers(&self) -> impl Iterator<Item = Provider> {
        self.providers.iter().cloned()
    }

    /// The names of the tools that it brings.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// The flags of the command line that it brings: name, what it takes, what it is for.
    pub fn flags(&self) -> impl Iterator<Item = (&str, FlagKind, Option<&str>)> {
        self.flags.iter().map(|(name, flag)| (name.as_str(), flag.kind, flag.description.as_deref()))
    }
}

/// A manifest that is being read.
struct Reading<'a> {
    file: &'a Path,
    text: &'a str,
    document: Map<String, Value>,
}

impl Reading<'_> {
    fn manifest(mut self) -> Result<Manifest, InvalidManifest> {
        let protocol = self.take::<u64>("protocol")?.unwrap_or(PROTOCOL);
        if protocol != PROTOCOL {
            let text = format!("it speaks version {protocol} of the protocol; this pi speaks {PROTOCOL}");
            return Err(self.problem(&["protocol"], text));
        }
        let name = self.required::<String>("name", "the extension's name")?;
        self.check("name", &name, 64, is_word, "letters, digits, `.`, `_` and `-`")?;
        let command = self.required::<Vec<String>>("command", "a list: the program and its arguments")?;
        if command.first().is_none_or(String::is_empty) {
            return Err(self.problem(&["command"], "expected the program and its arguments, found nothing".to_owned()));
        }
        let environment = self.take::<IndexMap<String, String>>("environment")?.unwrap_or_default();
        let nul = |text: &String| text.contains('\0');
        if command.iter().any(nul) {
            return Err(self.problem(&["command"], "no program can be given a NUL character".to_owned()));
        }
        if let Some((name, _)) =
            environment.iter().find(|(name, value)| name.is_empty() || name.contains('=') || nul(name) || nul(value))
        {
            let text = format!(
                "the variable `{}` cannot be set: its name must not be empty or have a `=`, and neither it nor its value \
                 may have a NUL character",
                name.escape_debug()
            );
            return Err(self.problem(&["environment", name], text));
        }
        let timeouts = self.timeouts()?;
        let restart = self.take::<Restart>("restart")?.unwrap_or_default();
        let manifest = Manifest {
            file: self.file.to_owned(),
            name,
            description: self.take("description")?,
            command,
            environment: environment.into_iter().collect(),
            events: self.events()?,
            tools: self.tools()?,
            commands: self.named("commands", |name| !name.contains(char::is_whitespace) && !name.contains('/'))?,
            flags: self.flags()?,
            shortcuts: self.named("shortcuts", |key| !key.contains(char::is_whitespace))?,
            providers: self.providers()?,
            entry_renderers: self.take("entryRenderers")?.unwrap_or_default(),
            message_renderers: self.take("messageRenderers")?.unwrap_or_default(),
            bus: self.take("bus")?.unwrap_or_default(),
            timeouts,
            restart,
        };
        // A misspelt key would leave out what was meant, and be it a gate.
        if let Some(unknown) = self.document.keys().next() {
            return Err(self.problem(&[unknown], format!("`{unknown}` is no part of a manifest")));
        }
        Ok(manifest)
    }

    fn problem(&self, path: &[&str], message: String) -> InvalidManifest {
        let line = (1..=path.len()).rev().find_map(|depth| document::line_of(self.text, &path[..depth]));
        Diagnostic::error(message).in_file(self.file).on_line(line.unwrap_or(1)).into()
    }

    fn read<T: DeserializeOwned>(&self, path: &[&str], value: Value) -> Result<T, InvalidManifest> {
        serde_json::from_value(value).map_err(|error| self.problem(path, format!("`{}`: {error}", path.join("."))))
    }

    fn take<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>, InvalidManifest> {
        self.document.shift_remove(key).map(|value| self.read(&[key], value)).transpose()
    }

    fn required<T: DeserializeOwned>(&mut self, key: &str, what: &str) -> Result<T, InvalidManifest> {
        self.take(key)?.ok_or_else(|| self.problem(&[], format!("`{key}` is missing: {what}")))
    }

    fn check(
        &self,
        at: &str,
        name: &str,
        longest: usize,
        fits: fn(&str) -> bool,
        of: &str,
    ) -> Result<(), InvalidManifest> {
        match !name.is_empty() && name.len() <= longest && fits(name) {
            true => Ok(()),
            false => Err(self.problem(&[at, name], format!("`{name}` is no name: expected 1 to {longest} of {of}"))),
        }
    }

    fn time(
        &self,
        path: &[&str],
        time: u64,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Duration, InvalidManifest> {
        match range.contains(&time) {
            true => Ok(Duration::from_millis(time)),
            false => Err(self.problem(
                path,
                format!("`{}` is {time} ms; expected {} to {}", path.join("."), range.start(), range.end()),
            )),
        }
    }

    fn timeouts(&mut self) -> Result<Timeouts, InvalidManifest> {
        let given = self.take::<DeclaredTimeouts>("timeouts")?.unwrap_or_default();
        Ok(Timeouts {
            start: self.time(&["timeouts", "startMs"], given.start_ms, limits::TIMES)?,
            event: self.time(&["timeouts", "eventMs"], given.event_ms, limits::TIMES)?,
            tool: self.time(&["timeouts", "toolMs"], given.tool_ms, limits::TIMES)?,
            command: self.time(&["timeouts", "commandMs"], given.command_ms, limits::TIMES)?,
            shutdown: self.time(&["timeouts", "shutdownMs"], given.shutdown_ms, limits::SHUTDOWN_TIMES)?,
        })
    }

    /// An object whose keys are names.
    fn named<T: DeserializeOwned>(
        &mut self,
        section: &str,
        fits: fn(&str) -> bool,
    ) -> Result<IndexMap<String, T>, InvalidManifest> {
        let fields = match self.document.shift_remove(section) {
            None => return Ok(IndexMap::new()),
            Some(Value::Object(fields)) => fields,
            Some(other) => {
                let found = kind_of(&other);
                return Err(
                    self.problem(&[section], format!("`{section}`: expected an object of names, found {found}"))
                );
            }
        };
        let mut read = IndexMap::with_capacity(fields.len());
        for (name, value) in fields {
            self.check(section, &name, 128, fits, "a name's letters, without blanks")?;
            let value = self.read(&[section, &name], value)?;
            read.insert(name, value);
        }
        Ok(read)
    }

    fn events(&mut self) -> Result<Vec<(EventKind, Subscription)>, InvalidManifest> {
        let named = self.named::<Subscription>("events", |_| true)?;
        let mut events = Vec::with_capacity(named.len());
        for (name, subscription) in named {
            let path = ["events", name.as_str()];
            let Some(kind) = EventKind::from_name(&name) else {
                return Err(self.problem(&path, format!("there is no event `{name}`")));
            };
            if subscription.messages.is_some() && !has_messages(kind) {
                return Err(self.problem(&path, format!("`messages`: {name} has no messages of a request")));
            }
            if let Some(time) = subscription.timeout_ms {
                self.time(&path, time, limits::TIMES)?;
            }
            events.push((kind, subscription));
        }
        Ok(events)
    }

    fn tools(&mut self) -> Result<IndexMap<String, DeclaredTool>, InvalidManifest> {
        let tools = self.named::<DeclaredTool>("tools", |_| true)?;
        for (name, tool) in &tools {
            let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            let path = ["tools", name.as_str()];
            if name.len() > 64 || !name.chars().all(is_letter) {
                let text = format!("`{name}` is no name of a tool: expected 1 to 64 letters, digits, `_` or `-`");
                return Err(self.problem(&path, text));
            }
            if !tool.parameters.is_object() {
                let found = kind_of(&tool.parameters);
                return Err(self.problem(&path, format!("`parameters`: expected a JSON Schema, found {found}")));
            }
            if let Some(time) = tool.timeout_ms {
                self.time(&path, time, limits::TIMES)?;
            }
        }
        Ok(tools)
    }

    fn flags(&mut self) -> Result<IndexMap<String, DeclaredFlag>, InvalidManifest> {
        let flags = self.named::<DeclaredFlag>("flags", |name| is_word(name) && !name.starts_with('-'))?;
        for (name, flag) in &flags {
            let fits = match (&flag.default, flag.kind) {
                (None, _) => true,
                (Some(FlagValue::Switch(_)), kind) => kind == FlagKind::Switch,
                (Some(FlagValue::Text(_)), kind) => kind == FlagKind::Text,
            };
            if !fits {
                let text = format!("the default of the flag `{name}` is not of its type");
                return Err(self.problem(&["flags", name], text));
            }
        }
        Ok(flags)
    }

    fn providers(&mut self) -> Result<Vec<Provider>, InvalidManifest> {
        let declared = self.named::<DeclaredProvider>("providers", is_word)?;
        Ok(declared.into_iter().map(|(id, declared)| declared.provider(&id)).collect())
    }
}

fn is_word(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// Whether an event tells what a request is made from.
pub(super) fn has_messages(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Context | EventKind::ContextWithSystem | EventKind::TurnEnd | EventKind::AgentBeforeSettle
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Manifest, String> {
        Manifest::parse(Path::new("/x/extension.json"), text).map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_manifest_says_everything_before_anything_runs() {
        let manifest = parse(
            r#"{
            // comments are welcome
            "name": "audit", "command": ["python3", "main.py"], "environment": {"LEVEL": "2"},
            "events": {"tool_call": {"timeoutMs": 500}, "context": {"messages": "whole"}},
            "flags": {"plan": {"description": "Plan first"}, "depth": {"type": "string", "default": "2"}},
            "tools": {"look": {"description": "Looks."}}, "commands": {"audit": {}},
            "shortcuts": {"ctrl+k": {}}, "entryRenderers": ["note"], "bus": ["build"],
            "providers": {"mine": {"baseUrl": "http://localhost:1/v1", "api": "openai-completions",
                                   "models": [{"id": "m"}]}},
            "timeouts": {"eventMs": 1000}, "restart": {"policy": "never"}
        }"#,
        )
        .unwrap();
        assert_eq!(manifest.name(), "audit");
        assert!(manifest.handles(EventKind::ToolCall) && !manifest.handles(EventKind::Input));
        assert_eq!(manifest.timeouts.event, Duration::from_secs(1));
        assert_eq!(manifest.timeouts.start, Duration::from_secs(10));
        assert_eq!(manifest.restart.policy, RestartPolicy::Never);
        assert_eq!(manifest.flags().map(|(name, ..)| name).collect::<Vec<_>>(), ["plan", "depth"]);
        assert_eq!(manifest.folder(), Path::new("/x"));
        assert_eq!(manifest.providers.len(), 1);
    }

    #[test]
    fn a_mistake_is_named_with_its_file_and_line() {
        let cases = [
            ("{\"name\": \"a\"}", "/x/extension.json:1: `command` is missing"),
            ("{\"name\": \"a\",\n\"command\": [\"x\"],\n}", "/x/extension.json:2: "),
            ("{\"name\": \"a\",\n\"command\": []}", "/x/extension.json:2: expected the program"),
            ("{\"name\": \"a b\", \"command\": [\"x\"]}", "`a b` is no name"),
            ("{\"name\": \"a\", \"command\": [\"x\"],\n\"event\": {}}", "/x/extension.json:2: `event` is no part"),
            (
                "{\"name\": \"a\", \"command\": [\"x\"], \"events\": {\n\"tool_cal\": {}}}",
                "/x/extension.json:2: there is no event `tool_cal`",
            ),
            (
                "{\"name\": \"a\", \"command\": [\"x\"], \"events\": {\n\"tool_call\": {\"messages\": \"whole\"}}}",
                "has no messages",
            ),
            ("{\"name\": \"a\", \"command\": [\"x\"], \"tools\": {\n\"t\": {}}}", ":2: `tools.t`: missing field"),
            ("{\"name\": \"a\", \"command\": [\"x\"], \"tools\": [\n]}", "expected an object of names, found a list"),
            (
                "{\"name\": \"a\", \"command\": [\"x\"],\n\"timeouts\": {\"eventMs\": 1}}",
                ":2: `timeouts.eventMs` is 1 ms",
            ),
            ("{\"name\": \"a\", \"command\": [\"x\"], \"protocol\": 2}", "version 2 of the protocol"),
            (
                "{\"name\": \"a\", \"command\": [\"x\"], \"events\": {\"tool_call\": {},\n\"tool_call\": {\"timeoutMs\": 9}}}",
                ":2: `tool_call` stands twice",
            ),
            ("{\"name\": \"a\",\n\"command\": [\"x\", \"\\u0000\"]}", ":2: no program can be given a NUL"),
            (
                "{\"name\": \"a\", \"command\": [\"x\"], \"environment\": {\n\"A=B\": \"c\"}}",
                ":2: the variable `A=B` cannot be set",
            ),
            (
                "{\"name\": \"a\", \"command\": [\"x\"], \"flags\": {\n\"f\": {\"default\": \"x\"}}}",
                ":2: the default of the flag",
            ),
        ];
        for (text, expected) in cases {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(expected), "{problem} does not have {expected}");
        }
    }
}
