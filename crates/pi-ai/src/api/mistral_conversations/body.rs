//! The JSON of a request. Texts and pictures are borrowed from the transcript.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use crate::api::json_text::{DataUrl, JsonText};

pub(super) struct Body<'a> {
    pub(super) messages: Vec<Message<'a>>,
    pub(super) fields: Map<String, Value>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("messages", &self.messages)?;
        map.end()
    }
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum Message<'a> {
    System {
        content: String,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        /// Whether the model goes on with this message.
        prefix: bool,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Part<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        name: &'a str,
        content: Vec<Part<'a>>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: DataUrl<'a> },
    Thinking { thinking: [ThinkingText<'a>; 1] },
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "text")]
pub(super) struct ThinkingText<'a> {
    pub(super) text: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
pub(super) struct ToolCall<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) index: u64,
    pub(super) function: Function<'a>,
}

#[derive(Serialize)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: JsonText<'a, Map<String, Value>>,
}

impl<'a> Part<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into() }
    }
}
