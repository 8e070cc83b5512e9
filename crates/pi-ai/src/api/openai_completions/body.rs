//! The JSON of a request. Texts and pictures are borrowed from the transcript.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use crate::{
    api::{
        cache::CacheControl,
        json_text::{DataUrl, JsonText},
        write_body,
    },
    error::ProviderError,
    message::{ImageContent, ThinkingContent},
    model::Model,
};

/// The body. A field replaces what else has its name.
pub(super) struct Body<'a> {
    pub(super) messages: Vec<WireMessage<'a>>,
    pub(super) tools: Option<Vec<Value>>,
    pub(super) fields: Map<String, Value>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        if !self.fields.contains_key("messages") {
            map.serialize_entry("messages", &self.messages)?;
        }
        if let (Some(tools), false) = (&self.tools, self.fields.contains_key("tools")) {
            map.serialize_entry("tools", tools)?;
        }
        map.end()
    }
}

impl Body<'_> {
    pub(super) fn into_bytes(self) -> Result<Vec<u8>, ProviderError> {
        write_body(&self)
    }

    /// Marks the prompt, the last tool and the last message as what is to be cached up to.
    pub(super) fn mark_cached(&mut self, cache_control: CacheControl) {
        let is_prompt = |message: &&mut WireMessage<'_>| {
            matches!(
                message,
                WireMessage::System { .. } | WireMessage::Developer { .. } | WireMessage::SystemTools { .. }
            )
        };
        if let Some(content) = self.messages.iter_mut().find(is_prompt).and_then(WireMessage::content_mut) {
            content.mark_cached(cache_control);
        }
        if let Some(Value::Object(tool)) = self.tools.as_mut().and_then(|tools| tools.last_mut()) {
            tool.insert("cache_control".into(), cache_control.to_value());
        }
        for message in self.messages.iter_mut().rev() {
            let spoken =
                matches!(message, WireMessage::User { .. } | WireMessage::Assistant(_) | WireMessage::Tool { .. });
            if spoken && message.content_mut().is_some_and(|content| content.mark_cached(cache_control)) {
                break;
            }
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum WireMessage<'a> {
    System {
        content: Content<'a>,
    },
    Developer {
        content: Content<'a>,
    },
    /// Tools that are added in the middle of a conversation.
    #[serde(rename = "system")]
    SystemTools {
        tools: Vec<Value>,
    },
    User {
        content: Content<'a>,
    },
    Assistant(AssistantMessage<'a>),
    Tool {
        content: Content<'a>,
        tool_call_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
}

#[derive(Default, Serialize)]
pub(super) struct AssistantMessage<'a> {
    /// Null when there is none.
    pub(super) content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_details: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<ToolCall<'a>>,
}

impl<'a> AssistantMessage<'a> {
    /// Gives reasoning back in the field that it came in.
    pub(super) fn set_reasoning(&mut self, model: &Model, blocks: &[&'a ThinkingContent]) {
        let Some(field) = blocks.first().and_then(|block| block.thinking_signature.as_deref()) else { return };
        let field = match field {
            "reasoning" if model.provider == "opencode-go" => &mut self.reasoning_content,
            "reasoning_content" => &mut self.reasoning_content,
            "reasoning" => &mut self.reasoning,
            "reasoning_text" => &mut self.reasoning_text,
            _ => return,
        };
        *field = Some(match blocks {
            [block] => Cow::Borrowed(block.thinking.as_str()),
            _ => blocks.iter().map(|block| block.thinking.as_str()).collect::<Vec<_>>().join("\n").into(),
        });
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum ToolCall<'a> {
    Function { id: Cow<'a, str>, function: FunctionCall<'a> },
    Custom { id: Cow<'a, str>, custom: CustomCall<'a> },
}

#[derive(Serialize)]
pub(super) struct FunctionCall<'a> {
    name: &'a str,
    arguments: JsonText<'a, Map<String, Value>>,
}

#[derive(Serialize)]
pub(super) struct CustomCall<'a> {
    name: &'a str,
    input: &'a str,
}

impl<'a> ToolCall<'a> {
    pub(super) fn function(id: Cow<'a, str>, name: &'a str, arguments: JsonText<'a, Map<String, Value>>) -> Self {
        Self::Function { id, function: FunctionCall { name, arguments } }
    }

    pub(super) fn custom(id: Cow<'a, str>, name: &'a str, input: &'a str) -> Self {
        Self::Custom { id, custom: CustomCall { name, input } }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

impl<'a> Content<'a> {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Parts(parts) => parts.is_empty(),
        }
    }

    /// Adds what another message says, a blank line between two texts.
    pub(super) fn append(&mut self, more: Content<'a>) {
        match (&mut *self, more) {
            (Self::Text(text), Content::Text(more)) => {
                let text = text.to_mut();
                if !text.is_empty() && !more.is_empty() {
                    text.push_str("\n\n");
                }
                text.push_str(&more);
            }
            (_, more) => {
                let mut parts = std::mem::replace(self, Self::Parts(Vec::new())).into_parts();
                parts.extend(more.into_parts());
                *self = Self::Parts(parts);
            }
        }
    }

    fn into_parts(self) -> Vec<Part<'a>> {
        match self {
            Self::Text(text) if text.is_empty() => Vec::new(),
            Self::Text(text) => vec![Part::text(text)],
            Self::Parts(parts) => parts,
        }
    }

    /// Whether there was a text to mark.
    fn mark_cached(&mut self, mark: CacheControl) -> bool {
        if let Self::Text(text) = self {
            if text.is_empty() {
                return false;
            }
            *self = Self::Parts(vec![Part::text(std::mem::take(text))]);
        }
        let Self::Parts(parts) = self else { return false };
        for part in parts.iter_mut().rev() {
            if let Part::Text { cache_control, .. } = part {
                *cache_control = Some(mark);
                return true;
            }
        }
        false
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl<'a>,
    },
}

#[derive(Serialize)]
pub(super) struct ImageUrl<'a> {
    url: DataUrl<'a>,
}

impl<'a> Part<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into(), cache_control: None }
    }

    pub(super) fn image(image: &'a ImageContent) -> Self {
        Self::ImageUrl { image_url: ImageUrl { url: DataUrl(image) } }
    }
}

impl<'a> WireMessage<'a> {
    fn content_mut(&mut self) -> Option<&mut Content<'a>> {
        match self {
            Self::System { content }
            | Self::Developer { content }
            | Self::User { content }
            | Self::Tool { content, .. } => Some(content),
            Self::Assistant(message) => message.content.as_mut(),
            Self::SystemTools { .. } => None,
        }
    }
}
