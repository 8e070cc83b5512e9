//! The JSON of a request. Texts and pictures are borrowed from the transcript.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use crate::{
    api::{cache::CacheControl, write_body},
    error::ProviderError,
    message::ImageContent,
};

pub(super) struct Body<'a> {
    pub(super) system: Vec<Block<'a>>,
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
        if !self.system.is_empty() {
            map.serialize_entry("system", &self.system)?;
        }
        if let Some(tools) = &self.tools {
            map.serialize_entry("tools", tools)?;
        }
        map.serialize_entry("messages", &self.messages)?;
        map.end()
    }
}

impl Body<'_> {
    pub(super) fn into_bytes(self) -> Result<Vec<u8>, ProviderError> {
        write_body(&self)
    }
}

#[derive(Debug, Serialize)]
pub(super) struct WireMessage<'a> {
    pub(super) role: Role,
    pub(super) content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    System,
    User,
    Assistant,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct OutputConfig<'a> {
    effort: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: ImageSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: &'a Map<String, Value>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Content<'a>,
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolRemoval {
        tool: ToolReference<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolAddition {
        tool: ToolDefinition,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

impl<'a> Block<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into(), cache_control: None }
    }

    pub(super) fn image(image: &'a ImageContent) -> Self {
        let source = ImageSource { media_type: &image.mime_type, data: &image.data };
        Self::Image { source, cache_control: None }
    }

    pub(super) fn tool_removal(name: Cow<'a, str>) -> Self {
        Self::ToolRemoval { tool: ToolReference { name }, cache_control: None }
    }

    pub(super) fn tool_addition(definition: Value) -> Self {
        Self::ToolAddition { tool: ToolDefinition { definition }, cache_control: None }
    }

    fn mark_cached(&mut self, mark: CacheControl) {
        match self {
            Self::Text { cache_control, .. }
            | Self::Image { cache_control, .. }
            | Self::ToolResult { cache_control, .. }
            | Self::ToolRemoval { cache_control, .. }
            | Self::ToolAddition { cache_control, .. } => *cache_control = Some(mark),
            Self::Thinking { .. } | Self::RedactedThinking { .. } | Self::ToolUse { .. } => {}
        }
    }
}

impl<'a> WireMessage<'a> {
    pub(super) fn new(role: Role, content: Content<'a>) -> Self {
        Self { role, content, output_config: None }
    }

    /// Says how hard the next reply thinks.
    pub(super) fn effort(effort: &'a str) -> Self {
        let output_config = Some(OutputConfig { effort });
        Self { role: Role::System, content: Content::Blocks(Vec::new()), output_config }
    }

    /// Marks that everything up to this message is to be cached.
    pub(super) fn mark_cached(&mut self, mark: CacheControl) {
        if self.role == Role::Assistant {
            return;
        }
        if let Content::Text(text) = &mut self.content {
            self.content = Content::Blocks(vec![Block::text(std::mem::take(text))]);
        }
        if let Content::Blocks(blocks) = &mut self.content
            && let Some(last) = blocks.last_mut()
        {
            last.mark_cached(mark);
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "base64")]
pub(super) struct ImageSource<'a> {
    media_type: &'a str,
    data: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "tool_reference")]
pub(super) struct ToolReference<'a> {
    name: Cow<'a, str>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "tool_definition")]
pub(super) struct ToolDefinition {
    definition: Value,
}
