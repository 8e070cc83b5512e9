//! Messages, events and lines as the vectors write them.

use std::collections::HashMap;

use pi_agent_core::{AgentEvent, AgentMessage};
use pi_ai::{AssistantBlock, Message, SystemMessage};
use serde_json::{Map, Value, json};

use crate::{
    agent_session::{CompactionOutcome, RetryOutcome, SessionEvent, WillRetry},
    messages::{CodingMessage, SessionMessage},
    session::{EntryId, Persistence, SessionManager},
};

/// A message; wording is left out where it is the program's own.
pub(super) fn message(message: &SessionMessage) -> Value {
    let blocks_text =
        |blocks: &[pi_ai::InputBlock]| -> String { blocks.iter().filter_map(|block| block.as_text()).collect() };
    match message {
        AgentMessage::Llm(Message::System(system)) => system_message(system),
        AgentMessage::Llm(Message::User(user)) => json!({"role": "user", "text": user.content.text()}),
        AgentMessage::Llm(Message::Assistant(answer)) => {
            let blocks: Vec<Value> = answer
                .content
                .iter()
                .filter_map(|block| match block {
                    AssistantBlock::Text(text) => Some(json!({"type": "text", "text": text.text})),
                    AssistantBlock::ToolCall(call) => {
                        Some(json!({"type": "toolCall", "id": call.id, "name": call.name}))
                    }
                    _ => None,
                })
                .collect();
            json!({"role": "assistant", "content": blocks, "stopReason": answer.stop_reason})
        }
        AgentMessage::Llm(Message::ToolResult(result)) => json!({
            "role": "toolResult", "toolCallId": result.tool_call_id, "text": blocks_text(&result.content),
            "isError": result.is_error,
        }),
        AgentMessage::Custom(custom) => match &**custom {
            CodingMessage::Custom(custom) => json!({"role": "custom", "text": custom.content.text()}),
            CodingMessage::BashExecution(bash) => {
                let mut shown = json!({"role": "bashExecution", "command": bash.command});
                if let Some(code) = bash.exit_code {
                    shown["exitCode"] = code.into();
                }
                if let Some(excluded) = bash.exclude_from_context {
                    shown["excludeFromContext"] = excluded.into();
                }
                shown
            }
            CodingMessage::BranchSummary(summary) => json!({"role": "branchSummary", "summary": summary.summary}),
            CodingMessage::CompactionSummary(summary) => {
                json!({"role": "compactionSummary", "summary": summary.summary})
            }
        },
        AgentMessage::Unknown(unknown) => json!({"role": unknown.role}),
    }
}

fn system_message(system: &SystemMessage) -> Value {
    let mut shown = json!({"role": "system", "has_content": !system.content.text().is_empty()});
    if !system.sections.is_empty() {
        let sections: Map<String, Value> = system
            .sections
            .iter()
            .map(|(name, text)| (name.clone(), text.as_ref().map_or(Value::Null, |_| json!("set"))))
            .collect();
        shown["sections"] = sections.into();
    }
    if !system.tools_added.is_empty() {
        shown["toolsAdded"] = system.tools_added.iter().map(|tool| tool.name.clone()).collect();
    }
    if !system.tools_removed.is_empty() {
        shown["toolsRemoved"] = system.tools_removed.iter().map(|tool| tool.name.clone()).collect();
    }
    shown
}

/// An event; `None` for those that the vectors leave out.
pub(super) fn event(event: &SessionEvent) -> Option<Value> {
    let retry = |will_retry: &WillRetry| *will_retry == WillRetry::Yes;
    Some(match event {
        SessionEvent::Agent(AgentEvent::MessageUpdate { .. } | AgentEvent::ToolExecutionUpdate { .. })
        | SessionEvent::BashExecutionUpdate { .. } => return None,
        SessionEvent::Agent(AgentEvent::MessageStart { message: started }) => {
            json!({"type": "message_start", "message": message(started)})
        }
        SessionEvent::Agent(AgentEvent::MessageEnd { message: ended }) => {
            json!({"type": "message_end", "message": message(ended)})
        }
        SessionEvent::Agent(AgentEvent::ToolExecutionStart { call }) => {
            json!({"type": "tool_execution_start", "toolCallId": call.id})
        }
        SessionEvent::Agent(AgentEvent::ToolExecutionEnd { call, is_error, .. }) => {
            json!({"type": "tool_execution_end", "toolCallId": call.id, "isError": is_error})
        }
        SessionEvent::Agent(AgentEvent::TurnEnd { message, tool_results }) => json!({
            "type": "turn_end", "stopReason": message.stop_reason, "toolResults": tool_results.len(),
        }),
        SessionEvent::Agent(other) => json!({"type": other.name()}),
        SessionEvent::AgentEnd { messages, will_retry } => {
            let roles: Vec<String> = messages.iter().map(|message| message.role().into_owned()).collect();
            json!({"type": "agent_end", "willRetry": retry(will_retry), "roles": roles})
        }
        SessionEvent::AgentSettled { .. } => json!({"type": "agent_settled"}),
        SessionEvent::QueueUpdate { steering, follow_up } => {
            json!({"type": "queue_update", "steering": steering, "followUp": follow_up})
        }
        SessionEvent::EntryAppended { entry } => json!({"type": "entry_appended", "entry": entry.body.type_name()}),
        SessionEvent::SessionInfoChanged { .. } => json!({"type": "session_info_changed"}),
        SessionEvent::ThinkingLevelChanged { .. } => json!({"type": "thinking_level_changed"}),
        SessionEvent::CompactionStart { reason } => json!({"type": "compaction_start", "reason": reason}),
        SessionEvent::CompactionEnd { reason, outcome, will_retry } => json!({
            "type": "compaction_end", "reason": reason,
            "aborted": matches!(outcome, CompactionOutcome::Aborted), "willRetry": retry(will_retry),
            "has_result": matches!(outcome, CompactionOutcome::Done(_)),
            "failed": matches!(outcome, CompactionOutcome::Failed { .. }),
        }),
        SessionEvent::AutoRetryStart { attempt, max_attempts, delay, .. } => json!({
            "type": "auto_retry_start", "attempt": attempt, "maxAttempts": max_attempts,
            "delayMs": u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
        }),
        SessionEvent::AutoRetryEnd { attempt, outcome } => json!({
            "type": "auto_retry_end", "success": *outcome == RetryOutcome::Succeeded, "attempt": attempt,
        }),
        SessionEvent::SummarizationRetryScheduled { .. } => json!({"type": "summarization_retry_scheduled"}),
        SessionEvent::SummarizationRetryAttemptStart { .. } => json!({"type": "summarization_retry_attempt_start"}),
        SessionEvent::SummarizationRetryFinished => json!({"type": "summarization_retry_finished"}),
        SessionEvent::ExtensionError { .. } => json!({"type": "extension_error"}),
    })
}

/// The session file: the header, then every entry, with the places of lines instead of ids.
pub(super) fn lines(manager: &SessionManager) -> Vec<Value> {
    if !matches!(manager.persistence(), Persistence::File { .. }) {
        return Vec::new();
    }
    manager.with(|session| {
        let header = session.header();
        let mut lines = vec![json!({"type": "session", "version": header.version, "cwd": header.cwd})];
        let entries: Vec<_> = session.entries().collect();
        let places: HashMap<EntryId, usize> =
            entries.iter().enumerate().map(|(at, entry)| (entry.id.clone(), at + 1)).collect();
        let place = |id: &Value| id.as_str().and_then(|id| places.get(id)).map_or(Value::Null, |at| json!(at));
        for entry in entries {
            let Ok(stored) = session.entry(entry.id.as_str()) else { continue };
            let written = serde_json::to_value(&stored).unwrap_or_default();
            let mut line = json!({"type": written["type"], "parent": place(&written["parentId"])});
            match written["type"].as_str() {
                Some("message") => {
                    let stored: Option<SessionMessage> = serde_json::from_value(written["message"].clone()).ok();
                    line["message"] = stored.as_ref().map(message).unwrap_or_default();
                }
                Some("model_change") => {
                    line["provider"] = written["provider"].clone();
                    line["modelId"] = written["modelId"].clone();
                }
                Some("thinking_level_change") => line["thinkingLevel"] = written["thinkingLevel"].clone(),
                Some("session_info") => line["name"] = written["name"].clone(),
                Some("custom_message") => line["customType"] = written["customType"].clone(),
                Some("context_edit") => {
                    line["target"] = place(&written["targetId"]);
                    line["removes"] = written["replacement"].is_null().into();
                }
                Some("compaction") => {
                    line["first_kept"] = place(&written["firstKeptEntryId"]);
                    line["has_system_message"] = written["systemMessage"].is_object().into();
                }
                _ => {}
            }
            lines.push(line);
        }
        lines
    })
}
