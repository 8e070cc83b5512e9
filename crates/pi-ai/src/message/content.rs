//! Content blocks: what messages are made of.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use crate::{
    id::ToolCallId,
    json::tagged::{Tagged, deserialize_tagged},
};

/// Text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextContent {
    /// The text.
    #[serde(default)]
    pub text: String,
    /// Opaque to all but the provider that minted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_signature: Option<String>,
}

/// The model's reasoning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingContent {
    /// The visible part; a placeholder when redacted.
    #[serde(default)]
    pub thinking: String,
    /// Opaque to all but the provider that minted it; holds the encrypted payload of redacted thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_signature: Option<String>,
    /// Whether the provider hid the reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<bool>,
}

/// A picture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageContent {
    /// The bytes in base64, without a `data:` prefix.
    #[serde(default)]
    pub data: String,
    /// For example `image/png`.
    #[serde(default)]
    pub mime_type: String,
}

/// The model asks for a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Pairs the call with its result.
    pub id: ToolCallId,
    /// The tool's name.
    pub name: String,
    /// The arguments, as the model wrote them; not checked against the schema.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Opaque to all but the provider that minted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
    /// The namespace that the provider placed the tool in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Set when the finished argument text was not a JSON object: why. Then `arguments` is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_error: Option<String>,
}

/// A block of a type that this version does not know, kept as it was. It never goes to a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnknownBlock(pub Map<String, Value>);

/// A block of a system message, a user message or a tool result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum InputBlock {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(ImageContent),
    /// Kept verbatim, never sent.
    #[serde(untagged)]
    Unknown(UnknownBlock),
}

/// A block of an assistant message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum AssistantBlock {
    /// Text.
    Text(TextContent),
    /// Reasoning.
    Thinking(ThinkingContent),
    /// A tool call.
    ToolCall(ToolCall),
    /// Kept verbatim, never sent.
    #[serde(untagged)]
    Unknown(UnknownBlock),
}

/// A string, or a list of blocks: what system and user messages hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Text and pictures.
    Blocks(Vec<InputBlock>),
}

impl InputBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent { text: text.into(), text_signature: None })
    }

    /// A picture from base64 data and its MIME type.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent { data: data.into(), mime_type: mime_type.into() })
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            Self::Image(_) | Self::Unknown(_) => None,
        }
    }
}

impl AssistantBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent { text: text.into(), text_signature: None })
    }

    /// A reasoning block without a signature.
    pub fn thinking(thinking: impl Into<String>) -> Self {
        Self::Thinking(ThinkingContent { thinking: thinking.into(), ..ThinkingContent::default() })
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// The reasoning of a reasoning block.
    pub fn as_thinking(&self) -> Option<&ThinkingContent> {
        match self {
            Self::Thinking(thinking) => Some(thinking),
            _ => None,
        }
    }

    /// The call of a tool-call block.
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            _ => None,
        }
    }
}

impl ToolCall {
    /// A call with the given arguments; anything but an object counts as no arguments.
    pub fn new(id: impl Into<ToolCallId>, name: impl Into<String>, arguments: Value) -> Self {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        Self { id: id.into(), name: name.into(), arguments, ..Self::default() }
    }
}

impl From<ToolCall> for AssistantBlock {
    fn from(call: ToolCall) -> Self {
        Self::ToolCall(call)
    }
}

impl Content {
    /// The text of all text blocks, a line break between two. Borrowed when there is nothing to join.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Blocks(blocks) => {
                let mut texts = blocks.iter().filter_map(InputBlock::as_text);
                let first = texts.next().unwrap_or_default();
                texts.fold(Cow::Borrowed(first), |joined, text| Cow::Owned(format!("{joined}\n{text}")))
            }
        }
    }

    /// Whether there is neither text nor a block.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<InputBlock>> for Content {
    fn from(blocks: Vec<InputBlock>) -> Self {
        Self::Blocks(blocks)
    }
}

impl<const N: usize> From<[InputBlock; N]> for Content {
    fn from(blocks: [InputBlock; N]) -> Self {
        Self::Blocks(blocks.into())
    }
}

macro_rules! tagged_block {
    ($block:ident { $($tag:literal => $variant:ident($payload:ty)),* $(,)? }) => {
        impl<'de> Tagged<'de> for $block {
            const TAG: &'static str = "type";
            const EXPECTING: &'static str = "a content block with a `type`";

            fn from_tag<D: Deserializer<'de>>(tag: &str, rest: D) -> Result<Self, D::Error> {
                match tag {
                    $($tag => <$payload>::deserialize(rest).map(Self::$variant),)*
                    _ => {
                        let fields = Map::deserialize(rest)?;
                        let tag = (Self::TAG.to_owned(), Value::from(tag));
                        Ok(Self::Unknown(UnknownBlock(std::iter::once(tag).chain(fields).collect())))
                    }
                }
            }
        }

        impl<'de> Deserialize<'de> for $block {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserialize_tagged(deserializer)
            }
        }
    };
}

tagged_block!(InputBlock { "text" => Text(TextContent), "image" => Image(ImageContent) });
tagged_block!(AssistantBlock {
    "text" => Text(TextContent),
    "thinking" => Thinking(ThinkingContent),
    "toolCall" => ToolCall(ToolCall),
});

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrBlocks;
        impl<'de> Visitor<'de> for TextOrBlocks {
            type Value = Content;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of content blocks")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }
            fn visit_string<E: de::Error>(self, text: String) -> Result<Content, E> {
                Ok(Content::Text(text))
            }
            /// Older writers stored nothing as null.
            fn visit_unit<E: de::Error>(self) -> Result<Content, E> {
                Ok(Content::Blocks(Vec::new()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(Content::Blocks(blocks))
            }
        }
        deserializer.deserialize_any(TextOrBlocks)
    }
}

/// Reads a list of blocks where older writers stored null or a plain string.
pub(super) fn blocks_or_text<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + From<TextContent>,
{
    struct Lenient<T>(std::marker::PhantomData<T>);
    impl<'de, T: Deserialize<'de> + From<TextContent>> Visitor<'de> for Lenient<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of content blocks")
        }
        fn visit_unit<E: de::Error>(self) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<T>, E> {
            Ok(vec![TextContent { text: text.to_owned(), text_signature: None }.into()])
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
            let mut blocks = Vec::new();
            while let Some(block) = seq.next_element()? {
                blocks.push(block);
            }
            Ok(blocks)
        }
    }
    deserializer.deserialize_any(Lenient(std::marker::PhantomData))
}

impl From<TextContent> for InputBlock {
    fn from(text: TextContent) -> Self {
        Self::Text(text)
    }
}

impl From<TextContent> for AssistantBlock {
    fn from(text: TextContent) -> Self {
        Self::Text(text)
    }
}

impl From<ThinkingContent> for AssistantBlock {
    fn from(thinking: ThinkingContent) -> Self {
        Self::Thinking(thinking)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_block_type_of_the_future_is_kept_verbatim() {
        let stored = json!({"type": "hologram", "data": [1, 2], "deep": {"a": null}});
        let block: AssistantBlock = serde_json::from_value(stored.clone()).unwrap();
        assert!(matches!(block, AssistantBlock::Unknown(_)));
        assert_eq!(serde_json::to_value(&block).unwrap(), stored);
    }

    #[test]
    fn a_block_reads_wherever_its_tag_stands() {
        let block: InputBlock = serde_json::from_str(r#"{"text":"hi","type":"text"}"#).unwrap();
        assert_eq!(block, InputBlock::text("hi"));
    }

    #[test]
    fn null_content_of_older_writers_reads_as_nothing() {
        assert_eq!(serde_json::from_str::<Content>("null").unwrap(), Content::Blocks(vec![]));
    }

    #[test]
    fn a_block_writes_its_tag_first() {
        let call = AssistantBlock::from(ToolCall::new("c1", "read", json!({"path": "a"})));
        assert_eq!(
            serde_json::to_string(&call).unwrap(),
            r#"{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a"}}"#
        );
    }
}
