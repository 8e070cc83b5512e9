//! What the model is told about a tool.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool as the model sees it: a name, what it does, and the JSON Schema of its arguments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDeclaration {
    /// The name that calls use.
    pub name: String,
    /// What the tool does, for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments object.
    #[serde(default)]
    pub parameters: Value,
    /// Whether the provider should force the arguments into shape while it samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constrained_sampling: Option<ConstrainedSampling>,
}

impl ToolDeclaration {
    /// A declaration from its parts; `parameters` is a JSON Schema.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self { name: name.into(), description: description.into(), parameters, constrained_sampling: None }
    }

    /// A declaration whose schema is derived from a Rust type.
    #[cfg(feature = "schemars")]
    pub fn typed<A: schemars::JsonSchema>(name: impl Into<String>, description: impl Into<String>) -> Self {
        let mut schema = schemars::schema_for!(A);
        // Both name the Rust side of things and only cost the model tokens.
        schema.remove("$schema");
        schema.remove("title");
        Self::new(name, description, schema.to_value())
    }
}

/// The name of a tool that is taken away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReference {
    /// The name it was declared with.
    pub name: String,
}

/// How strictly a provider should hold a tool's arguments to their schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ConstrainedSampling {
    /// `false`: never constrain this tool.
    Off(False),
    /// One of the tagged forms.
    On(Constraint),
    /// A form that this version does not know, kept as it was; treated as none.
    Unknown(Value),
}

/// The JSON value `false`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct False;

impl Serialize for False {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(false)
    }
}

impl<'de> Deserialize<'de> for False {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match bool::deserialize(deserializer)? {
            false => Ok(Self),
            true => Err(serde::de::Error::custom("expected `false` or an object with a `type`")),
        }
    }
}

/// A way of constraining what the model samples for a tool's arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Constraint {
    /// The arguments' own JSON Schema, in the provider's strict mode.
    JsonSchema {
        /// What to do where the provider has no strict mode.
        strict: Strictness,
    },
    /// A grammar for free text.
    Grammar {
        /// The grammar by syntax: `openai_lark`, `openai_regex`.
        variants: indexmap::IndexMap<String, String>,
    },
}

/// What to do where a provider or a schema does not allow strict sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strictness {
    /// Go on without.
    Prefer,
    /// Fail the request.
    Require,
}
