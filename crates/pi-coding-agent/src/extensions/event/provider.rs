//! What goes to a provider and what comes back.

use indexmap::IndexMap;
use pi_ai::{ApiId, ModelId, ProviderId, options::Headers};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

use crate::extensions::{
    ExtensionError,
    outcome::{Outcome, answers, part},
};

/// The headers of a request, before it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BeforeProviderHeadersEvent {
    /// Names in lower case and values, in order. Keys are among them: do not store or show them.
    #[serde(serialize_with = "headers")]
    pub headers: Headers,
}

impl BeforeProviderHeadersEvent {
    pub(crate) fn new(headers: Headers) -> Self {
        Self { headers }
    }
}

fn headers<S: Serializer>(headers: &Headers, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(headers.len()))?;
    for (name, value) in headers {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

/// Headers to set (`Some`) or to leave out (`None`). Names are case-insensitive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderChanges(pub IndexMap<String, Option<String>>);

impl HeaderChanges {
    /// Sets a header.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.insert(name.into(), Some(value.into()));
        self
    }

    /// Leaves a header out.
    #[must_use]
    pub fn remove(mut self, name: impl Into<String>) -> Self {
        self.0.insert(name.into(), None);
        self
    }

    pub(crate) fn apply(self, headers: &mut Headers) {
        for (name, value) in self.0 {
            let name = name.to_ascii_lowercase();
            let known = headers.iter().position(|(other, _)| *other == name);
            match (known, value) {
                (Some(at), Some(value)) => headers[at].1 = value,
                (Some(at), None) => drop(headers.remove(at)),
                (None, Some(value)) => headers.push((name, value)),
                (None, None) => {}
            }
        }
    }
}

impl Outcome for HeaderChanges {
    fn from_json(mut answer: Value) -> Result<Self, ExtensionError> {
        let Some(Value::Object(fields)) = part::<Value>(&mut answer, "headers")? else { return Ok(Self::default()) };
        let mut changes = IndexMap::new();
        for (name, value) in fields {
            let value = match value {
                Value::Null => None,
                Value::String(value) => Some(value),
                other => return Err(ExtensionError::new(format!("the header `{name}` is no text: {other}"))),
            };
            changes.insert(name, value);
        }
        Ok(Self(changes))
    }
}

/// The body of a request, before it is sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BeforeProviderRequestEvent {
    /// The body, in the provider's format.
    pub payload: Value,
}

impl BeforeProviderRequestEvent {
    pub(crate) fn new(payload: Value) -> Self {
        Self { payload }
    }
}

/// What is sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PayloadOutcome {
    /// The body as it is.
    #[default]
    Unchanged,
    /// This body instead.
    Replaced(Value),
}

impl From<Value> for PayloadOutcome {
    fn from(payload: Value) -> Self {
        Self::Replaced(payload)
    }
}

impl Outcome for PayloadOutcome {
    fn from_json(mut answer: Value) -> Result<Self, ExtensionError> {
        Ok(part(&mut answer, "payload")?.map_or(Self::Unchanged, Self::Replaced))
    }
}

/// A provider answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AfterProviderResponseEvent {
    /// The HTTP status.
    pub status: u16,
    /// The headers; names are in lower case.
    #[serde(serialize_with = "headers")]
    pub headers: Headers,
}

impl AfterProviderResponseEvent {
    pub(crate) fn new(status: u16, headers: Headers) -> Self {
        Self { status, headers }
    }
}

/// A provider sent an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProviderStreamEventEvent {
    /// The provider.
    pub provider: ProviderId,
    /// Its wire.
    pub api: ApiId,
    /// The model.
    pub model: ModelId,
    /// The event's name, where the wire has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its data, as the provider sent it.
    pub data: String,
}

impl ProviderStreamEventEvent {
    pub(crate) fn new(
        (provider, api, model): (ProviderId, ApiId, ModelId),
        name: Option<String>,
        data: String,
    ) -> Self {
        Self { provider, api, model, name, data }
    }
}

answers! {
    HeaderChanges;
    PayloadOutcome, from Value;
}
