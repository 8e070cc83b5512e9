//! Flags of the command line that extensions bring.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A flag of the command line: `--name`, or `--name value`.
///
/// ```
/// # use pi_coding_agent::extensions::{ExtensionApi, Flag, event};
/// fn plan_mode(pi: &mut ExtensionApi) {
///     pi.register_flag(Flag::switch("plan").description("Begin with a plan"));
///     pi.on(event::SessionStart, async |_event, ctx| {
///         if ctx.flag_is_set("plan") {
///             ctx.ui().notify("Plan first.");
///         }
///     });
/// }
/// # let _ = plan_mode;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) kind: FlagKind,
    pub(super) default: Option<FlagValue>,
}

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FlagKind {
    /// Nothing: it is there or not.
    #[serde(rename = "boolean")]
    Switch,
    /// A text.
    #[serde(rename = "string")]
    Text,
}

/// The value of a flag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FlagValue {
    /// It is there or not.
    Switch(bool),
    /// A text.
    Text(String),
}

impl Flag {
    /// A flag without a value. Its name has no dashes.
    pub fn switch(name: impl Into<String>) -> Self {
        Self { name: name.into(), description: None, kind: FlagKind::Switch, default: None }
    }

    /// A flag with a value. Its name has no dashes.
    pub fn text(name: impl Into<String>) -> Self {
        Self { kind: FlagKind::Text, ..Self::switch(name) }
    }

    /// What it does, for people.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The value of one that is not given.
    #[must_use]
    pub fn default_value(mut self, value: FlagValue) -> Self {
        self.default = Some(value);
        self
    }
}

/// A flag as it can be given.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlagInfo {
    /// Its name, without dashes.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// What it takes.
    pub kind: FlagKind,
    /// The extension that brings it.
    pub extension: String,
}

/// What was given on the command line, by name.
pub type FlagValues = BTreeMap<String, Option<String>>;

/// What a flag is set to. One that takes nothing may still be given a value of its own.
pub(super) fn value_of(flag: &Flag, given: Option<&Option<String>>) -> Option<FlagValue> {
    match (flag.kind, given) {
        (_, None) => flag.default.clone(),
        (FlagKind::Switch, Some(text)) => Some(FlagValue::Switch(text.as_deref() != Some("false"))),
        (FlagKind::Text, Some(text)) => Some(FlagValue::Text(text.clone().unwrap_or_default())),
    }
}
