//! How many tokens a context takes, estimated.

use pi_ai::{
    AssistantBlock, Content, InputBlock, Message, Usage,
    api::budget::{ContextEstimate, json_units, object_units, units, used_tokens},
    transcript::current_system_message,
};

use crate::{
    messages::{CodingMessage, SessionMessage},
    session::{EntryKind, Projection},
};

/// Tokens are estimated as this many UTF-16 units each; that is more tokens than most models count.
const UNITS_PER_TOKEN: u64 = 4;
/// What a picture counts for, in UTF-16 units.
const IMAGE_UNITS: u64 = 4800;

/// All tokens of a request and its answer, as the provider counted them.
pub fn context_tokens(usage: &Usage) -> u64 {
    match usage.total_tokens {
        0 => usage.all_input().saturating_add(usage.output),
        total => total,
    }
}

/// An estimate of the tokens that one message takes.
pub fn estimate_tokens(message: &SessionMessage) -> u64 {
    units_of(message).div_ceil(UNITS_PER_TOKEN)
}

/// An estimate of the tokens that messages take, each for itself: nothing that a provider counted is used.
pub fn estimate_messages(messages: &[SessionMessage]) -> u64 {
    messages.iter().map(estimate_tokens).fold(0, u64::saturating_add)
}

/// An estimate of the tokens that messages take: what the provider counted for the last answer that did not fail, and
/// an estimate of what came later.
pub fn estimate_context(messages: &[SessionMessage]) -> ContextEstimate {
    let counted = messages.iter().enumerate().rev().find_map(|(index, message)| Some((index, counted(message)?)));
    let start = counted.map_or(0, |(index, _)| index + 1);
    ContextEstimate::new(counted, estimate_messages(&messages[start..]))
}

/// An estimate of the tokens that the next request of a session takes.
///
/// What a provider counted is used only when nothing has changed what is before it since: no compaction and no context
/// edit.
pub fn estimate_projection(projection: &Projection) -> ContextEstimate {
    let mut later = 0;
    for entry in projection.entries_since_compaction().iter().rev() {
        if entry.kind == EntryKind::ContextEdit {
            break;
        }
        for message in entry.messages().iter().rev() {
            if let Some(tokens) = counted(message) {
                let messages = projection.messages();
                let after = messages.len() - later;
                return ContextEstimate::new(Some((after - 1, tokens)), estimate_messages(&messages[after..]));
            }
            later += 1;
        }
    }
    let prompt = current_system_message(projection.messages());
    let prompt = prompt.map_or(0, |prompt| estimate_tokens(&prompt.into()));
    let rest = projection.messages().iter().filter(|message| !message.is_system()).map(estimate_tokens);
    ContextEstimate::new(None, rest.fold(prompt, u64::saturating_add))
}

/// What the provider counted for an answer that did not fail.
fn counted(message: &SessionMessage) -> Option<u64> {
    let answer = message.as_assistant().filter(|answer| !answer.is_failed())?;
    Some(used_tokens(answer)).filter(|tokens| *tokens > 0)
}

fn units_of(message: &SessionMessage) -> u64 {
    match message {
        SessionMessage::Llm(Message::System(system)) => {
            let sections: u64 = system.sections.values().flatten().map(|text| units(text)).sum();
            let tools = if system.tools_added.is_empty() { 0 } else { json_units(&system.tools_added) };
            content_units(&system.content) + sections + tools
        }
        SessionMessage::Llm(Message::User(user)) => content_units(&user.content),
        SessionMessage::Llm(Message::ToolResult(result)) => blocks_units(&result.content),
        SessionMessage::Llm(Message::Assistant(assistant)) => assistant.content.iter().map(answer_units).sum(),
        SessionMessage::Custom(custom) => match &**custom {
            CodingMessage::BashExecution(bash) => units(&bash.command) + units(&bash.output),
            CodingMessage::Custom(custom) => content_units(&custom.content),
            CodingMessage::BranchSummary(summary) => units(&summary.summary),
            CodingMessage::CompactionSummary(summary) => units(&summary.summary),
        },
        SessionMessage::Unknown(_) => 0,
    }
}

fn content_units(content: &Content) -> u64 {
    match content {
        Content::Text(text) => units(text),
        Content::Blocks(blocks) => blocks_units(blocks),
    }
}

fn blocks_units(blocks: &[InputBlock]) -> u64 {
    let one = |block: &InputBlock| match block {
        InputBlock::Text(text) => units(&text.text),
        InputBlock::Image(_) => IMAGE_UNITS,
        InputBlock::Unknown(_) => 0,
    };
    blocks.iter().map(one).sum()
}

fn answer_units(block: &AssistantBlock) -> u64 {
    match block {
        AssistantBlock::Text(text) => units(&text.text),
        AssistantBlock::Thinking(thinking) => units(&thinking.thinking),
        AssistantBlock::ToolCall(call) => units(&call.name) + object_units(&call.arguments),
        AssistantBlock::Unknown(_) => 0,
    }
}
