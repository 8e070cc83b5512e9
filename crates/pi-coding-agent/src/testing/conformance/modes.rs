//! What programs read from a session, and how what they send is cut into lines: area `modes`.

use std::{sync::Arc, time::Duration};

use pi_agent_core::{AgentEvent, ToolOutput};
use pi_ai::{
    AssistantBlock, AssistantEvent, AssistantMessage, Message, ThinkingContent, ThinkingLevel, ToolCall, ToolCallId,
    ToolResultMessage, stream::BlockEnd,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::{
    agent_session::{CompactionOutcome, RetryOutcome, SessionEvent, Settled, SummarySource, WillRetry},
    compaction::{CompactionReason, CompactionResult},
    messages::SessionMessage,
    modes::{json, jsonl},
    session::{Entry, EntryBody, EntryKind, MessageRole, parse_time},
};

/// What this crate makes of `input`; `None` for a file that is not known, or a case that cannot be read.
pub fn run(file_stem: &str, input: &Value) -> Option<Value> {
    match file_stem {
        "json_event" => json_event(input.get("event")?),
        "jsonl_lines" => jsonl_lines(read(input)?),
        _ => None,
    }
}

fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

#[derive(Deserialize)]
struct Stream {
    chunks: Vec<String>,
    #[serde(default)]
    byte_by_byte: bool,
}

fn jsonl_lines(stream: Stream) -> Option<Value> {
    let mut reader = jsonl::Lines::default();
    let mut lines = Vec::new();
    for chunk in &stream.chunks {
        let size = if stream.byte_by_byte { 1 } else { chunk.len().max(1) };
        lines.extend(chunk.as_bytes().chunks(size).flat_map(|piece| reader.push(piece)));
    }
    lines.extend(reader.finish());
    Some(json!({ "lines": lines }))
}

fn json_event(event: &Value) -> Option<Value> {
    let (event, partial) = session_event(event)?;
    let line = json::line(&event, partial.as_ref()).ok()?;
    serde_json::from_str(&line).ok()
}

/// An event as a program would describe it, and the answer so far of an update.
fn session_event(event: &Value) -> Option<(SessionEvent, Option<AssistantMessage>)> {
    let event = match read(event)? {
        Described::MessageUpdate { message: Message::Assistant(message), assistant_message_event } => {
            let event = Arc::new(assistant_message_event.event(&message)?);
            let event = SessionEvent::Agent(AgentEvent::MessageUpdate { event });
            return Some((event, Some(Arc::unwrap_or_clone(message))));
        }
        other => other.event()?,
    };
    Some((event, None))
}

/// The events by the names and fields that they are written with.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Described {
    AgentStart,
    TurnStart,
    MessageStart {
        message: SessionMessage,
    },
    MessageUpdate {
        message: Message,
        assistant_message_event: Update,
    },
    MessageEnd {
        message: SessionMessage,
    },
    ToolExecutionStart {
        tool_call_id: ToolCallId,
        tool_name: String,
        args: Map<String, Value>,
    },
    ToolExecutionUpdate {
        tool_call_id: ToolCallId,
        tool_name: String,
        args: Map<String, Value>,
        partial_result: ToolOutput,
    },
    ToolExecutionEnd {
        tool_call_id: ToolCallId,
        tool_name: String,
        result: ToolOutput,
        is_error: bool,
        duration_ms: Option<u64>,
    },
    TurnEnd {
        message: Message,
        tool_results: Vec<Message>,
    },
    AgentEnd {
        messages: Vec<SessionMessage>,
        will_retry: Option<bool>,
    },
    AgentSettled {
        aborted: bool,
    },
    QueueUpdate {
        steering: Vec<String>,
        follow_up: Vec<String>,
    },
    EntryAppended {
        entry: Value,
    },
    SessionInfoChanged {
        name: Option<String>,
    },
    ThinkingLevelChanged {
        level: ThinkingLevel,
    },
    CompactionStart {
        reason: CompactionReason,
    },
    CompactionEnd {
        reason: CompactionReason,
        aborted: bool,
        will_retry: bool,
        result: Option<CompactionResult>,
        error_message: Option<String>,
    },
    AutoRetryStart {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: String,
    },
    AutoRetryEnd {
        success: bool,
        attempt: u32,
        final_error: Option<String>,
    },
    SummarizationRetryScheduled {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: String,
    },
    SummarizationRetryAttemptStart {
        source: String,
        reason: Option<CompactionReason>,
    },
    SummarizationRetryFinished,
    BashExecutionUpdate {
        delta: String,
    },
    ExtensionError {
        extension_path: String,
        event: String,
        error: String,
    },
}

/// What is new in an answer. The message so far stands beside it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Update {
    r#type: String,
    content_index: usize,
    #[serde(default)]
    delta: String,
    tool_call: Option<AssistantBlock>,
}

impl Update {
    fn event(self, partial: &AssistantMessage) -> Option<AssistantEvent> {
        let Self { r#type, content_index: index, delta, tool_call } = self;
        let end = BlockEnd::default();
        Some(match r#type.as_str() {
            "text_start" => AssistantEvent::TextStart { index },
            "text_delta" => AssistantEvent::TextDelta { index, delta },
            "text_end" => AssistantEvent::TextEnd { index, end },
            "thinking_start" => AssistantEvent::ThinkingStart { index, block: Box::new(ThinkingContent::default()) },
            "thinking_delta" => AssistantEvent::ThinkingDelta { index, delta },
            "thinking_end" => AssistantEvent::ThinkingEnd { index, end },
            "toolcall_start" => AssistantEvent::ToolCallStart { index, call: call_of(partial.content.get(index)?)? },
            "toolcall_delta" => AssistantEvent::ToolCallDelta { index, delta },
            "toolcall_end" => AssistantEvent::ToolCallEnd { index, call: call_of(&tool_call?)? },
            _ => return None,
        })
    }
}

fn call_of(block: &AssistantBlock) -> Option<Box<ToolCall>> {
    match block {
        AssistantBlock::ToolCall(call) => Some(Box::new(call.clone())),
        _ => None,
    }
}

impl Described {
    /// `None` for updates, which need the answer beside them, and for what cannot be read.
    fn event(self) -> Option<SessionEvent> {
        let call = |id, name, arguments| Arc::new(ToolCall { id, name, arguments, ..ToolCall::default() });
        let agent = |event| Some(SessionEvent::Agent(event));
        let retry = |will_retry| if will_retry { WillRetry::Yes } else { WillRetry::No };
        Some(match self {
            Self::MessageUpdate { .. } => return None,
            Self::AgentStart => return agent(AgentEvent::AgentStart),
            Self::TurnStart => return agent(AgentEvent::TurnStart),
            Self::MessageStart { message } => return agent(AgentEvent::MessageStart { message }),
            Self::MessageEnd { message } => return agent(AgentEvent::MessageEnd { message }),
            Self::ToolExecutionStart { tool_call_id, tool_name, args } => {
                return agent(AgentEvent::ToolExecutionStart { call: call(tool_call_id, tool_name, args) });
            }
            Self::ToolExecutionUpdate { tool_call_id, tool_name, args, partial_result } => {
                let call = call(tool_call_id, tool_name, args);
                return agent(AgentEvent::ToolExecutionUpdate { call, partial: Arc::new(partial_result) });
            }
            Self::ToolExecutionEnd { tool_call_id, tool_name, result, is_error, duration_ms } => {
                let call = call(tool_call_id, tool_name, Map::new());
                let duration = duration_ms.map(Duration::from_millis);
                return agent(AgentEvent::ToolExecutionEnd { call, output: Arc::new(result), is_error, duration });
            }
            Self::TurnEnd { message, tool_results } => {
                let Message::Assistant(message) = message else { return None };
                let tool_results = tool_results.into_iter().map(result_of).collect::<Option<_>>()?;
                return agent(AgentEvent::TurnEnd { message, tool_results });
            }
            Self::AgentEnd { messages, will_retry: None } => {
                return agent(AgentEvent::AgentEnd { messages: messages.into() });
            }
            Self::AgentEnd { messages, will_retry: Some(will_retry) } => {
                SessionEvent::AgentEnd { messages: messages.into(), will_retry: retry(will_retry) }
            }
            Self::AgentSettled { aborted } => {
                SessionEvent::AgentSettled { outcome: if aborted { Settled::Aborted } else { Settled::Finished } }
            }
            Self::QueueUpdate { steering, follow_up } => SessionEvent::QueueUpdate { steering, follow_up },
            Self::EntryAppended { entry } => SessionEvent::EntryAppended { entry: Box::new(entry_of(&entry)?) },
            Self::SessionInfoChanged { name } => SessionEvent::SessionInfoChanged { name },
            Self::ThinkingLevelChanged { level } => SessionEvent::ThinkingLevelChanged { level },
            Self::CompactionStart { reason } => SessionEvent::CompactionStart { reason },
            Self::CompactionEnd { reason, aborted, will_retry, result, error_message } => {
                let outcome = match (aborted, result) {
                    (true, _) => CompactionOutcome::Aborted,
                    (false, Some(result)) => CompactionOutcome::Done(Box::new(result)),
                    (false, None) => CompactionOutcome::Failed { error_message: error_message? },
                };
                SessionEvent::CompactionEnd { reason, outcome, will_retry: retry(will_retry) }
            }
            Self::AutoRetryStart { attempt, max_attempts, delay_ms, error_message } => SessionEvent::AutoRetryStart {
                attempt,
                max_attempts,
                delay: Duration::from_millis(delay_ms),
                error_message,
            },
            Self::AutoRetryEnd { success, attempt, final_error } => SessionEvent::AutoRetryEnd {
                attempt,
                outcome: if success { RetryOutcome::Succeeded } else { RetryOutcome::GaveUp { final_error } },
            },
            Self::SummarizationRetryScheduled { attempt, max_attempts, delay_ms, error_message } => {
                let delay = Duration::from_millis(delay_ms);
                SessionEvent::SummarizationRetryScheduled { attempt, max_attempts, delay, error_message }
            }
            Self::SummarizationRetryAttemptStart { source, reason } => {
                let source = match (source.as_str(), reason) {
                    ("compaction", Some(reason)) => SummarySource::Compaction(reason),
                    ("branchSummary", _) => SummarySource::BranchSummary,
                    _ => return None,
                };
                SessionEvent::SummarizationRetryAttemptStart { source }
            }
            Self::SummarizationRetryFinished => SessionEvent::SummarizationRetryFinished,
            Self::BashExecutionUpdate { delta } => SessionEvent::BashExecutionUpdate { delta },
            Self::ExtensionError { extension_path, event, error } => {
                SessionEvent::ExtensionError { extension: extension_path, event, error }
            }
        })
    }
}

fn result_of(message: Message) -> Option<Arc<ToolResultMessage>> {
    match message {
        Message::ToolResult(result) => Some(result),
        _ => None,
    }
}

fn entry_of(line: &Value) -> Option<Entry> {
    let kind = match line.get("type")?.as_str()? {
        "message" => EntryKind::Message(MessageRole::of(line.pointer("/message/role")?.as_str()?)),
        other => EntryKind::of_type(other),
    };
    Some(Entry {
        id: read(line.get("id")?)?,
        parent_id: line.get("parentId").and_then(read),
        timestamp: parse_time(line.get("timestamp")?.as_str()?)?,
        body: EntryBody::read(kind, line.to_string().as_bytes())?,
    })
}
