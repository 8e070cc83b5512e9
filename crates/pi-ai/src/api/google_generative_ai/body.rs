//! The JSON of a request. Texts and pictures are borrowed from the transcript.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::message::ImageContent;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct Body<'a> {
    pub(super) contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system_instruction: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_config: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) generation_config: Map<String, Value>,
}

#[derive(Serialize)]
pub(super) struct Content<'a> {
    pub(super) role: Role,
    pub(super) parts: Vec<Part<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    User,
    Model,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Part<'a> {
    Text(TextPart<'a>),
    Image(ImagePart<'a>),
    #[serde(rename_all = "camelCase")]
    Call {
        function_call: FunctionCall<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    #[serde(rename_all = "camelCase")]
    Response {
        function_response: FunctionResponse<'a>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TextPart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought: Option<bool>,
    pub(super) text: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImagePart<'a> {
    inline_data: InlineData<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
pub(super) struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) name: &'a str,
    pub(super) args: &'a Map<String, Value>,
}

#[derive(Serialize)]
pub(super) struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) name: &'a str,
    pub(super) response: Outcome<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<ImagePart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

impl<'a> Part<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(TextPart { thought: None, text: text.into(), thought_signature: None })
    }

    pub(super) fn is_response(&self) -> bool {
        matches!(self, Self::Response { .. })
    }
}

impl<'a> ImagePart<'a> {
    pub(super) fn new(image: &'a ImageContent) -> Self {
        Self { inline_data: InlineData { mime_type: &image.mime_type, data: &image.data } }
    }
}
