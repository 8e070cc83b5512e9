//! What a program is told of the messages of a request: which they are and how large, not what they say.

use std::collections::HashMap;

use pi_ai::{AssistantBlock, Message, MessageIdentity};
use serde_json::{Map, Value, json};

use crate::{
    compaction::estimate_tokens,
    messages::{CodingMessage, SessionMessage},
};

/// The messages that a program was told of last. A message keeps its key for as long as it is the same one, so that a
/// program can remember what it made of it.
#[derive(Debug, Default)]
pub(super) struct Described {
    /// Held, so that no other message can get the place of one of them in memory.
    last: Vec<(SessionMessage, u64)>,
    next: u64,
}

impl Described {
    /// A description of each message.
    pub(super) fn describe(&mut self, messages: &[SessionMessage]) -> Vec<Value> {
        let known: HashMap<MessageIdentity, u64> =
            self.last.iter().map(|(message, key)| (message.identity(), *key)).collect();
        let mut now = Vec::with_capacity(messages.len());
        let mut described = Vec::with_capacity(messages.len());
        for (index, message) in messages.iter().enumerate() {
            let key = known.get(&message.identity()).copied().unwrap_or_else(|| {
                self.next += 1;
                self.next
            });
            described.push(description(index, key, message));
            now.push((message.clone(), key));
        }
        self.last = now;
        described
    }
}

fn description(index: usize, key: u64, message: &SessionMessage) -> Value {
    let mut fields = Map::new();
    fields.insert("index".to_owned(), index.into());
    fields.insert("key".to_owned(), key.into());
    fields.insert("role".to_owned(), message.role().into());
    fields.insert("tokens".to_owned(), estimate_tokens(message).into());
    if let Some(timestamp) = message.timestamp() {
        fields.insert("timestamp".to_owned(), timestamp.as_millis().into());
    }
    match message {
        SessionMessage::Llm(Message::Assistant(message)) => {
            let calls: Vec<Value> = message
                .content
                .iter()
                .filter_map(|block| match block {
                    AssistantBlock::ToolCall(call) => Some(json!({"id": call.id, "name": call.name})),
                    _ => None,
                })
                .collect();
            if !calls.is_empty() {
                fields.insert("toolCalls".to_owned(), calls.into());
            }
        }
        SessionMessage::Llm(Message::ToolResult(result)) => {
            fields.insert("toolCallId".to_owned(), json!(result.tool_call_id));
            fields.insert("toolName".to_owned(), json!(result.tool_name));
            fields.insert("isError".to_owned(), result.is_error.into());
        }
        SessionMessage::Custom(custom) => {
            if let CodingMessage::Custom(content) = &**custom {
                fields.insert("customType".to_owned(), content.custom_type.as_str().into());
            }
        }
        _ => {}
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_its_key_while_it_is_the_same() {
        let mut described = Described::default();
        let messages: Vec<_> = ["a", "b", "c"].map(SessionMessage::user).into();
        let keys = |list: Vec<Value>| list.iter().map(|one| one["key"].as_u64().unwrap_or(0)).collect::<Vec<_>>();
        assert_eq!(keys(described.describe(&messages)), [1, 2, 3]);
        let pruned = vec![messages[2].clone(), SessionMessage::user("c"), messages[0].clone()];
        assert_eq!(keys(described.describe(&pruned)), [3, 4, 1]);
        let first = described.describe(&messages)[0].clone();
        assert_eq!(first, json!({"index": 0, "key": 1, "role": "user", "tokens": 1, "timestamp": 0}));
    }
}
