//! A session's events as JSON lines, for the JSON mode and for programs that drive a session.

use pi_agent_core::AgentEvent;
use pi_ai::{AssistantBlock, AssistantEvent, AssistantMessage, ToolCallId, Usage};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::agent_session::{CompactionOutcome, RetryOutcome, SessionEvent, Settled, SummarySource, WillRetry};

/// One event as one line, without the line break. `partial` is the message so far, for updates.
///
/// Updates carry what is new and the latest usage, never the whole message again.
///
/// # Errors
/// When a payload cannot be written as JSON, which a custom role of an application may bring about.
pub fn line(event: &SessionEvent, partial: Option<&AssistantMessage>) -> serde_json::Result<String> {
    match event {
        SessionEvent::Agent(AgentEvent::MessageUpdate { event }) => update_line(event, partial),
        SessionEvent::Agent(event) => serde_json::to_string(&event.to_json(partial)?),
        other => serde_json::to_string(&value(other)?),
    }
}

/// The hot path: a line for each delta, written without a tree of values.
fn update_line(event: &AssistantEvent, partial: Option<&AssistantMessage>) -> serde_json::Result<String> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Line<'a> {
        r#type: &'static str,
        usage: &'a Usage,
        assistant_message_event: Update<'a>,
    }
    let none = Usage::default();
    serde_json::to_string(&Line {
        r#type: "message_update",
        usage: partial.map_or(&none, |message| &message.usage),
        assistant_message_event: Update::of(event, partial),
    })
}

/// An [`AssistantEvent`] on the wire.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Update<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a ToolCallId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call: Option<AssistantBlock>,
}

impl<'a> Update<'a> {
    pub(crate) fn of(event: &'a AssistantEvent, partial: Option<&'a AssistantMessage>) -> Self {
        let block = event.index().and_then(|index| partial?.content.get(index));
        let mut update = Self {
            r#type: update_type(event),
            content_index: event.index(),
            delta: None,
            content: None,
            id: None,
            tool_name: None,
            tool_call: None,
        };
        match event {
            AssistantEvent::TextDelta { delta, .. }
            | AssistantEvent::ThinkingDelta { delta, .. }
            | AssistantEvent::ToolCallDelta { delta, .. } => update.delta = Some(delta),
            AssistantEvent::TextEnd { end, .. } | AssistantEvent::ThinkingEnd { end, .. } => {
                let text = match block {
                    Some(AssistantBlock::Text(text)) => Some(text.text.as_str()),
                    Some(AssistantBlock::Thinking(thinking)) => Some(thinking.thinking.as_str()),
                    _ => end.text.as_deref(),
                };
                update.content = Some(text.unwrap_or_default());
            }
            AssistantEvent::ToolCallStart { call, .. } => {
                update.id = Some(&call.id);
                update.tool_name = Some(&call.name);
            }
            AssistantEvent::ToolCallEnd { call, .. } => {
                update.tool_call = Some(AssistantBlock::ToolCall((**call).clone()));
            }
            _ => {}
        }
        update
    }
}

fn update_type(event: &AssistantEvent) -> &'static str {
    match event {
        AssistantEvent::Start => "start",
        AssistantEvent::TextStart { .. } => "text_start",
        AssistantEvent::TextDelta { .. } => "text_delta",
        AssistantEvent::TextEnd { .. } => "text_end",
        AssistantEvent::ThinkingStart { .. } => "thinking_start",
        AssistantEvent::ThinkingDelta { .. } => "thinking_delta",
        AssistantEvent::ThinkingEnd { .. } => "thinking_end",
        AssistantEvent::ToolCallStart { .. } => "toolcall_start",
        AssistantEvent::ToolCallDelta { .. } => "toolcall_delta",
        AssistantEvent::ToolCallEnd { .. } => "toolcall_end",
        AssistantEvent::Done { .. } => "done",
        AssistantEvent::Error { .. } => "error",
        _ => "unknown",
    }
}

fn value(event: &SessionEvent) -> serde_json::Result<Value> {
    let retry = |will_retry: &WillRetry| *will_retry == WillRetry::Yes;
    Ok(match event {
        SessionEvent::Agent(event) => event.to_json(None)?,
        SessionEvent::AgentEnd { messages, will_retry } => {
            let messages = messages.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
            json!({"type": "agent_end", "messages": messages, "willRetry": retry(will_retry)})
        }
        SessionEvent::AgentSettled { outcome } => {
            json!({"type": "agent_settled", "aborted": *outcome == Settled::Aborted})
        }
        SessionEvent::QueueUpdate { steering, follow_up } => {
            json!({"type": "queue_update", "steering": steering, "followUp": follow_up})
        }
        SessionEvent::EntryAppended { entry } => {
            json!({"type": "entry_appended", "entry": serde_json::to_value(entry)?})
        }
        SessionEvent::SessionInfoChanged { name } => {
            let mut line = json!({"type": "session_info_changed"});
            optional(&mut line, "name", name.clone().map(Value::String));
            line
        }
        SessionEvent::ThinkingLevelChanged { level } => json!({"type": "thinking_level_changed", "level": level}),
        SessionEvent::CompactionStart { reason } => json!({"type": "compaction_start", "reason": reason}),
        SessionEvent::CompactionEnd { reason, outcome, will_retry } => {
            let mut line = json!({
                "type": "compaction_end", "reason": reason,
                "aborted": matches!(outcome, CompactionOutcome::Aborted), "willRetry": retry(will_retry),
            });
            match outcome {
                CompactionOutcome::Done(result) => optional(&mut line, "result", Some(serde_json::to_value(result)?)),
                CompactionOutcome::Failed { error_message } => {
                    optional(&mut line, "errorMessage", Some(error_message.as_str().into()));
                }
                CompactionOutcome::Aborted => {}
            }
            line
        }
        SessionEvent::AutoRetryStart { attempt, max_attempts, delay, error_message } => json!({
            "type": "auto_retry_start", "attempt": attempt, "maxAttempts": max_attempts,
            "delayMs": millis(*delay), "errorMessage": error_message,
        }),
        SessionEvent::AutoRetryEnd { attempt, outcome } => {
            let success = *outcome == RetryOutcome::Succeeded;
            let mut line = json!({"type": "auto_retry_end", "success": success, "attempt": attempt});
            if let RetryOutcome::GaveUp { final_error: Some(error) } = outcome {
                optional(&mut line, "finalError", Some(error.as_str().into()));
            }
            line
        }
        SessionEvent::SummarizationRetryScheduled { attempt, max_attempts, delay, error_message } => json!({
            "type": "summarization_retry_scheduled", "attempt": attempt, "maxAttempts": max_attempts,
            "delayMs": millis(*delay), "errorMessage": error_message,
        }),
        SessionEvent::SummarizationRetryAttemptStart { source } => match source {
            SummarySource::Compaction(reason) => json!({
                "type": "summarization_retry_attempt_start", "source": "compaction", "reason": reason,
            }),
            SummarySource::BranchSummary => {
                json!({"type": "summarization_retry_attempt_start", "source": "branchSummary"})
            }
        },
        SessionEvent::SummarizationRetryFinished => json!({"type": "summarization_retry_finished"}),
        SessionEvent::BashExecutionUpdate { delta } => json!({"type": "bash_execution_update", "delta": delta}),
        SessionEvent::ExtensionError { extension, event, error } => {
            json!({"type": "extension_error", "extensionPath": extension, "event": event, "error": error})
        }
    })
}

fn optional(line: &mut Value, key: &str, value: Option<Value>) {
    if let (Value::Object(fields), Some(value)) = (line, value) {
        let fields: &mut Map<String, Value> = fields;
        fields.insert(key.to_owned(), value);
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
