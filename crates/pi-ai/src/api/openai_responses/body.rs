//! The JSON of a request. Texts and pictures are borrowed from the transcript.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, value::RawValue};

use super::input::{InputSettings, input};
use crate::{
    api::{
        EncodeRequest,
        json_text::{DataUrl, JsonText},
        write_body,
    },
    error::ProviderError,
    message::ImageContent,
};

/// The body of a request in any dialect of this wire: the conversation, its tools, and the dialect's own fields.
pub(in crate::api) fn body(
    request: &EncodeRequest<'_>,
    settings: InputSettings<'_>,
    fields: Map<String, Value>,
) -> Result<Vec<u8>, ProviderError> {
    // What the settings borrow lives as long as this call, not as long as the transcript.
    let request = &EncodeRequest { ..*request };
    let (input, declared) = input(request, settings)?;
    let tools = settings.tools.convert(&declared.request_tools)?;
    write_body(&Body { input, tools, fields })
}

/// The body. A field replaces what else has its name.
struct Body<'a> {
    input: Vec<Item<'a>>,
    tools: Vec<Value>,
    fields: Map<String, Value>,
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
