//! The JSON of a request. Texts and pictures are borrowed from the transcript.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, value::RawValue};

use crate::{
    api::{
        json_text::{DataUrl, JsonText},
        write_body,
    },
    error::ProviderError,
    message::ImageContent,
};

/// The body. A field replaces what else has its name.
pub(in crate::api) struct Body<'a> {
    pub(in crate::api) input: Vec<Item<'a>>,
    pub(in crate::api) tools: Vec<Value>,
    pub(in crate::api) fields: Map<String, Value>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        if !self.fields.contains_key("input") {
            map.serialize_entry("input", &self.input)?;
        }
        if !self.tools.is_empty() && !self.fields.contains_key("tools") {
            map.serialize_entry("tools", &self.tools)?;
        }
        map.end()
    }
}

impl Body<'_> {
    pub(in crate::api) fn into_bytes(self) -> Result<Vec<u8>, ProviderError> {
        write_body(&self)
    }
}

/// An item of the input.
#[derive(Serialize)]
#[serde(untagged)]
pub(in crate::api) enum Item<'a> {
    Instruction {
        role: &'static str,
        content: Cow<'a, str>,
    },
    User {
        role: UserRole,
        content: Vec<InputPart<'a>>,
    },
    Typed(TypedItem<'a>),
    /// An item that the provider made, as it made it.
    Raw(&'a RawValue),
    Other(Value),
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::api) enum UserRole {
    User,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in crate::api) enum TypedItem<'a> {
    Message {
        role: &'static str,
        content: [OutputText<'a>; 1],
        status: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        call_id: String,
        name: &'a str,
        arguments: JsonText<'a, Map<String, Value>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a str>,
    },
    CustomToolCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        call_id: String,
        name: &'a str,
        input: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a str>,
    },
    FunctionCallOutput {
        call_id: String,
        output: Output<'a>,
    },
    CustomToolCallOutput {
        call_id: String,
        output: Output<'a>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "output_text")]
pub(in crate::api) struct OutputText<'a> {
    text: &'a str,
    annotations: [(); 0],
}

impl<'a> OutputText<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, annotations: [] }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
pub(in crate::api) enum Output<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<InputPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in crate::api) enum InputPart<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { detail: &'static str, image_url: DataUrl<'a> },
}

impl<'a> InputPart<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::InputText { text: text.into() }
    }

    pub(super) fn image(image: &'a ImageContent) -> Self {
        Self::InputImage { detail: "auto", image_url: DataUrl(image) }
    }
}
