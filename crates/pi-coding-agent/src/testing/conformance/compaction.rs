//! The area `compaction`.

use pi_agent_core::AgentMessage;
use pi_ai::{AssistantBlock, Content, InputBlock, Message, ToolResultMessage, api::budget};
use serde_json::{Value, json};

use super::sessions::session_of;
use crate::{
    compaction::{
        CompactionPreparation, ContextEstimate, FileOperations, estimate_context, estimate_tokens, find_cut_point,
        left_branch, prepare_branch, prepare_compaction, serialize_conversation, should_compact,
    },
    messages::{CodingConverter, CodingMessage, SessionMessage, message_text},
    resources::CompactionSettings,
    session::{Entry, ProjectedEntry, Session},
};

/// What this crate makes of `input`, a case of the file `file_stem`; `None` when there is no runner for that file.
pub fn run(file_stem: &str, input: &Value) -> Option<Value> {
    match file_stem {
        "branch_entries" => branch_entries(input),
        "branch_messages" => branch_messages(input),
        "cut_point" => cut_point(input),
        "estimate_context" => estimates(input),
        "estimate_tokens" => estimate_one(input),
        "file_operations" => file_operations(input),
        "prepare_compaction" => prepare(input),
        "serialize_conversation" => serialize(input),
        "should_compact" => compact_or_not(input),
        _ => None,
    }
}

fn settings(input: &Value) -> Option<CompactionSettings> {
    Some(CompactionSettings {
        enabled: input["enabled"].as_bool()?,
        reserve_tokens: input["reserveTokens"].as_u64()?,
        keep_recent_tokens: input["keepRecentTokens"].as_u64().unwrap_or(20_000),
    })
}

fn entries(session: &Session) -> Option<Vec<Entry>> {
    session.entries().map(|entry| session.entry(entry.id.as_str()).ok()).collect()
}

fn branch_entries(input: &Value) -> Option<Value> {
    let session = session_of(&input["entries"])?;
    let left = left_branch(&session, input["old_leaf"].as_str(), input["target"].as_str()?).ok()?;
    Some(json!({"entries": left.entries, "common_ancestor": left.common_ancestor}))
}

fn branch_messages(input: &Value) -> Option<Value> {
    let entries = entries(&session_of(&input["entries"])?)?;
    let prepared = prepare_branch(&entries, input["token_budget"].as_u64()?);
    let messages: Vec<Value> = prepared
        .messages
        .iter()
        .map(|message| json!({"role": message.role(), "text": message_text(message)}))
        .collect();
    Some(json!({
        "messages": messages,
        "totalTokens": prepared.total_tokens,
        "files": prepared.files.lists(),
    }))
}

fn cut_point(input: &Value) -> Option<Value> {
    let entries = entries(&session_of(&input["entries"])?)?;
    let entries: Vec<ProjectedEntry> = entries.iter().map(ProjectedEntry::unedited).collect();
    let place = |key: &str| usize::try_from(input[key].as_u64()?).ok();
    let (start, end) = (place("start")?, place("end")?);
    let cut = find_cut_point(entries.get(start..end)?, input["keep_recent_tokens"].as_u64()?);
    Some(json!({
        "firstKeptEntryIndex": start + cut.first_kept,
        "turnStartIndex": cut.turn_start.map_or(-1, |turn| (start + turn) as i64),
        "isSplitTurn": cut.is_split_turn(),
    }))
}

fn estimate_value(estimate: ContextEstimate) -> Value {
    json!({
        "tokens": estimate.tokens,
        "usageTokens": estimate.counted,
        "trailingTokens": estimate.estimated,
        "lastUsageIndex": estimate.counted_up_to,
    })
}

fn estimates(input: &Value) -> Option<Value> {
    let messages: Vec<SessionMessage> = serde_json::from_value(input["messages"].clone()).ok()?;
    let request = CodingConverter.convert_all(&messages);
    Some(json!({
        "request": estimate_value(budget::estimate_context(&request)),
        "compaction": estimate_value(estimate_context(&messages)),
    }))
}

fn estimate_one(input: &Value) -> Option<Value> {
    let message: SessionMessage = serde_json::from_value(input["message"].clone()).ok()?;
    let mut output = json!({"compaction_estimate": estimate_tokens(&message)});
    if let AgentMessage::Llm(message) = &message {
        output["request_estimate"] = budget::estimate_message_tokens(message).into();
    }
    Some(output)
}

fn file_operations(input: &Value) -> Option<Value> {
    let mut files = FileOperations::default();
    for call in input["calls"].as_array()? {
        files.add_call(call[0].as_str()?, Some(&call[1]));
    }
    let lists = files.lists();
    let mut output = json!(lists);
    output["text"] = lists.text().into();
    Some(output)
}

fn prepare(input: &Value) -> Option<Value> {
    let session = session_of(&input["entries"])?;
    let Ok(preparation) = prepare_compaction(session.projection(), &settings(&input["settings"])?) else {
        return Some(Value::Null);
    };
    let CompactionPreparation {
        first_kept_entry_id,
        messages_to_summarize,
        turn_prefix_messages,
        tokens_before,
        previous_summary,
        files,
        ..
    } = &preparation;
    let shown = |messages: &[SessionMessage]| -> Vec<Value> {
        messages.iter().map(|message| json!({"role": message.role(), "length": length(message)})).collect()
    };
    Some(json!({
        "firstKeptEntryId": first_kept_entry_id,
        "isSplitTurn": preparation.is_split_turn(),
        "tokensBefore": tokens_before,
        "previousSummary": previous_summary,
        "messagesToSummarize": shown(messages_to_summarize),
        "turnPrefixMessages": shown(turn_prefix_messages),
        "fileLists": files.lists(),
    }))
}

/// The length of a message's text; a tool call counts with its name.
fn length(message: &SessionMessage) -> u64 {
    let blocks = |blocks: &[InputBlock]| blocks.iter().filter_map(InputBlock::as_text).map(budget::units).sum();
    match message {
        AgentMessage::Llm(Message::Assistant(assistant)) => {
            let one = |block: &AssistantBlock| match block {
                AssistantBlock::Text(text) => budget::units(&text.text),
                AssistantBlock::ToolCall(call) => budget::units(&call.name),
                _ => 0,
            };
            assistant.content.iter().map(one).sum()
        }
        AgentMessage::Llm(Message::ToolResult(result)) => blocks(&result.content),
        AgentMessage::Custom(custom) => match &**custom {
            CodingMessage::Custom(custom) => match &custom.content {
                Content::Text(text) => budget::units(text),
                Content::Blocks(content) => blocks(content),
            },
            _ => budget::units(&message_text(message)),
        },
        other => budget::units(&message_text(other)),
    }
}

fn serialize(input: &Value) -> Option<Value> {
    if let Some(length) = input.get("tool_result_length") {
        let length = usize::try_from(length.as_u64()?).ok()?;
        let content = vec![InputBlock::text("\u{2588}".repeat(length))];
        let result = ToolResultMessage { content, ..ToolResultMessage::default() };
        let text = serialize_conversation(&[result.into()]);
        let kept = text.chars().filter(|character| *character == '\u{2588}').count();
        // The note says how much is missing.
        let missing = length - kept;
        return Some(json!({"kept_characters": kept, "cut": missing > 0 && text.contains(&missing.to_string())}));
    }
    let messages: Vec<SessionMessage> = serde_json::from_value(input["messages"].clone()).ok()?;
    let text = serialize_conversation(&CodingConverter.convert_all(&messages));
    let contains = |wanted: &dyn Fn(&SessionMessage) -> Vec<String>| {
        messages.iter().flat_map(wanted).any(|part| !part.is_empty() && text.contains(&part))
    };
    let thinking = |message: &SessionMessage| match message.as_assistant() {
        Some(assistant) => assistant
            .content
            .iter()
            .filter_map(|block| match block {
                AssistantBlock::Thinking(thinking) => Some(thinking.thinking.clone()),
                _ => None,
            })
            .collect(),
        None => Vec::new(),
    };
    let system = |message: &SessionMessage| match message {
        AgentMessage::Llm(Message::System(_)) => vec![message_text(message)],
        _ => Vec::new(),
    };
    Some(json!({
        "empty": text.is_empty(),
        "text": text,
        "contains_thinking": contains(&thinking),
        "contains_system": contains(&system),
    }))
}

fn compact_or_not(input: &Value) -> Option<Value> {
    let (tokens, window) = (input["context_tokens"].as_u64()?, input["context_window"].as_u64()?);
    Some(json!({"compact": should_compact(tokens, window, &settings(&input["settings"])?)}))
}
