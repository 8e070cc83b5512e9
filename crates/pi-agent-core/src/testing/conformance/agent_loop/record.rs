//! Events and messages as the vectors show them.

use std::{collections::HashMap, sync::Mutex};

use pi_ai::{AssistantMessage, Message, StopReason};
use serde_json::{Map, Value, json};

use super::{fields, lock, model::ScriptedModel};
use crate::{AgentEvent, AgentMessage};

/// Writes events down.
pub(super) struct Recorder {
    model: ScriptedModel,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: Vec<Value>,
    counts: HashMap<&'static str, usize>,
    /// What ended blocks of the current answer said, to tell their whole text.
    texts: HashMap<usize, String>,
}

impl Recorder {
    pub(super) fn new(model: ScriptedModel) -> Self {
        Self { model, state: Mutex::default() }
    }

    /// Gives the how-manieth event of its kind this is.
    pub(super) fn write(&self, event: &AgentEvent) -> usize {
        let mut state = lock(&self.state);
        let shown = self.show(event, &mut state.texts);
        state.events.push(shown);
        let count = state.counts.entry(event.name()).or_default();
        *count += 1;
        *count
    }

    pub(super) fn take_events(&self) -> Vec<Value> {
        std::mem::take(&mut lock(&self.state).events)
    }

    fn show(&self, event: &AgentEvent, texts: &mut HashMap<usize, String>) -> Value {
        let name = event.name();
        match event {
            AgentEvent::MessageStart { message: started } => {
                texts.clear();
                json!({"type": name, "message": self.started(started)})
            }
            AgentEvent::MessageEnd { message: ended } => json!({"type": name, "message": message(ended)}),
            AgentEvent::MessageUpdate { event: update } => {
                let mut shown = fields(event.to_json(None).unwrap_or_default());
                if let Some(Value::Object(update_fields)) = shown.get_mut("assistantMessageEvent") {
                    whole_text(update, texts, update_fields);
                }
                Value::Object(shown)
            }
            AgentEvent::TurnEnd { message, tool_results } => json!({
                "type": name,
                "message": {"role": "assistant", "stopReason": message.stop_reason},
                "toolResults": tool_results.iter().map(|result| &result.tool_call_id).collect::<Vec<_>>(),
            }),
            AgentEvent::AgentEnd { messages } => {
                json!({"type": name, "messages": messages.iter().map(AgentMessage::role).collect::<Vec<_>>()})
            }
            _ => {
                let mut shown = fields(event.to_json(None).unwrap_or_default());
                shown.shift_remove("durationMs");
                Value::Object(shown)
            }
        }
    }

    fn started(&self, started: &AgentMessage) -> Value {
        match started.as_assistant() {
            Some(partial) if partial.stop_reason == StopReason::Pending => {
                let partial = AssistantMessage { content: self.model.opening_blocks(), ..partial.clone() };
                model_message(&partial.into())
            }
            _ => message(started),
        }
    }
}

/// Says the whole text of a text block that ends.
fn whole_text(update: &pi_ai::AssistantEvent, texts: &mut HashMap<usize, String>, shown: &mut Map<String, Value>) {
    use pi_ai::AssistantEvent::{TextDelta, TextEnd, ThinkingDelta, ThinkingEnd};
    match update {
        TextDelta { index, delta } | ThinkingDelta { index, delta } => {
            texts.entry(*index).or_default().push_str(delta);
        }
        TextEnd { index, .. } | ThinkingEnd { index, .. } => {
            shown.insert("content".to_owned(), texts.remove(index).unwrap_or_default().into());
        }
        _ => {}
    }
}

/// A message without what differs from run to run.
pub(super) fn message(message: &AgentMessage) -> Value {
    shorten(serde_json::to_value(message).unwrap_or_default())
}

/// A message of the model without what differs from run to run.
pub(super) fn model_message(message: &Message) -> Value {
    shorten(serde_json::to_value(message).unwrap_or_default())
}

fn shorten(message: Value) -> Value {
    let mut shown = fields(message);
    for name in ["timestamp", "usage", "api", "provider", "durationMs"] {
        shown.shift_remove(name);
    }
    if let Some(Value::Array(tools)) = shown.get_mut("toolsAdded") {
        *tools = tools.iter().filter_map(|tool| tool.get("name").cloned()).collect();
    }
    Value::Object(shown)
}
