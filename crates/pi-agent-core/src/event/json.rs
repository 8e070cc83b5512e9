//! Events as JSON, for programs that watch a run from outside.

use pi_ai::{AssistantBlock, AssistantEvent, AssistantMessage, stream::BlockEnd};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::AgentEvent;

impl<C: Serialize> AgentEvent<C> {
    /// The event as one JSON object with its `type` first. `partial` is the answer so far; with it an update also says
    /// the whole text of a block that ends.
    ///
    /// # Errors
    /// When a custom message cannot be written as JSON.
    pub fn to_json(&self, partial: Option<&AssistantMessage>) -> Result<Value, serde_json::Error> {
        let mut fields = Map::new();
        fields.insert("type".to_owned(), self.name().into());
        let mut put = |name: &str, value: Value| {
            fields.insert(name.to_owned(), value);
        };
        match self {
            Self::AgentStart | Self::TurnStart => {}
            Self::MessageStart { message } | Self::MessageEnd { message } => {
                put("message", serde_json::to_value(message)?);
            }
            Self::MessageUpdate { event } => put("assistantMessageEvent", update_to_json(event, partial)),
            Self::ToolExecutionStart { call } => {
                put("toolCallId", json!(call.id));
                put("toolName", json!(call.name));
                put("args", json!(call.arguments));
            }
            Self::ToolExecutionUpdate { call, partial } => {
                put("toolCallId", json!(call.id));
                put("toolName", json!(call.name));
                put("args", json!(call.arguments));
                put("partialResult", serde_json::to_value(partial)?);
            }
            Self::ToolExecutionEnd { call, output, is_error, duration } => {
                put("toolCallId", json!(call.id));
                put("toolName", json!(call.name));
                put("result", serde_json::to_value(output)?);
                put("isError", json!(is_error));
                if let Some(duration) = duration {
                    put("durationMs", json!(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)));
                }
            }
            Self::TurnEnd { message, tool_results } => {
                put("message", serde_json::to_value(pi_ai::Message::Assistant(message.clone()))?);
                let results = tool_results.iter().map(|result| pi_ai::Message::ToolResult(result.clone()));
                put("toolResults", serde_json::to_value(results.collect::<Vec<_>>())?);
            }
            Self::AgentEnd { messages } => put("messages", serde_json::to_value(messages)?),
        }
        Ok(Value::Object(fields))
    }
}

fn update_to_json(event: &AssistantEvent, partial: Option<&AssistantMessage>) -> Value {
    let (name, index, rest): (_, _, Option<(&str, Value)>) = match event {
        AssistantEvent::TextStart { index } => ("text_start", *index, None),
        AssistantEvent::TextDelta { index, delta } => ("text_delta", *index, Some(("delta", json!(delta)))),
        AssistantEvent::TextEnd { index, end } => ("text_end", *index, whole_text(*index, end, partial)),
        AssistantEvent::ThinkingStart { index, .. } => ("thinking_start", *index, None),
        AssistantEvent::ThinkingDelta { index, delta } => ("thinking_delta", *index, Some(("delta", json!(delta)))),
        AssistantEvent::ThinkingEnd { index, end } => ("thinking_end", *index, whole_text(*index, end, partial)),
        AssistantEvent::ToolCallStart { index, .. } => ("toolcall_start", *index, None),
        AssistantEvent::ToolCallDelta { index, delta } => ("toolcall_delta", *index, Some(("delta", json!(delta)))),
        AssistantEvent::ToolCallEnd { index, call } => {
            let call = AssistantBlock::ToolCall((**call).clone());
            ("toolcall_end", *index, Some(("toolCall", json!(call))))
        }
        // The loop translates the ends of a whole answer; the enum may grow.
        _ => return Value::Null,
    };
    let mut fields = Map::new();
    fields.insert("type".to_owned(), name.into());
    fields.insert("contentIndex".to_owned(), index.into());
    if let Some((name, value)) = rest {
        fields.insert(name.to_owned(), value);
    }
    Value::Object(fields)
}

fn whole_text(index: usize, end: &BlockEnd, partial: Option<&AssistantMessage>) -> Option<(&'static str, Value)> {
    let so_far = || match partial?.content.get(index)? {
        AssistantBlock::Text(block) => Some(&block.text),
        AssistantBlock::Thinking(block) => Some(&block.thinking),
        AssistantBlock::ToolCall(_) | AssistantBlock::Unknown(_) => None,
    };
    Some(("content", json!(end.text.as_ref().or_else(so_far)?)))
}
