//! How many tokens a request may ask for: estimates of its input, room in the context, budgets for thinking.

use std::io;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    message::{AssistantBlock, AssistantMessage, Content, InputBlock, Message, SystemMessage},
    model::{Model, ThinkingLevel},
    options::StreamOptions,
    transcript::render_full,
};

/// Tokens are estimated as this many UTF-16 units each.
const UNITS_PER_TOKEN: f64 = 3.5;
/// What a picture counts for, in UTF-16 units.
const IMAGE_UNITS: u64 = 4800;

/// Tokens that are always left between input and window, because the input is only estimated.
const SAFETY_TOKENS: u64 = 4096;
/// The same as a part of the input: some gateways count up to an eighth more than the provider does.
const SAFETY_RATIO: f64 = 0.15;
/// The ratio is kept only while it leaves this much for the answer; else the answer is capped at this.
const COMFORTABLE_OUTPUT: u64 = 32_768;

/// Tokens that are always left for the answer when thinking counts against the same limit.
pub const MIN_ANSWER_TOKENS: u64 = 1024;

/// An estimate of the tokens that a transcript takes, and what it rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextEstimate {
    /// All tokens.
    pub tokens: u64,
    /// The part that a provider counted.
    pub counted: u64,
    /// The part that was estimated from characters: what came after the answer that was counted.
    pub estimated: u64,
    /// The answer whose counts were used; `None` when everything was estimated.
    pub counted_up_to: Option<usize>,
}

impl ContextEstimate {
    /// What a provider counted up to the answer at an index, and an estimate of what came after it.
    pub fn new(counted: Option<(usize, u64)>, estimated: u64) -> Self {
        let (counted_up_to, counted) = (counted.map(|(index, _)| index), counted.map_or(0, |(_, tokens)| tokens));
        Self { tokens: counted.saturating_add(estimated), counted, estimated, counted_up_to }
    }
}

/// An estimate of the tokens that a transcript takes: the counts of the last answer that describe what is before it,
/// and the characters of what came later.
pub fn estimate_context(messages: &[Message]) -> ContextEstimate {
    let mut latest = None;
    let mut counted = None;
    for (index, message) in messages.iter().enumerate() {
        if let Message::Assistant(answer) = message {
            // When something newer was put before the answer (a summary), its counts tell nothing about it.
            let describes_prefix = latest.is_none_or(|latest| answer.timestamp >= latest);
            if describes_prefix && !answer.is_failed() && used_tokens(answer) > 0 {
                counted = Some((index, used_tokens(answer)));
            }
        }
        latest = latest.max(Some(message.timestamp()));
    }
    let start = counted.map_or(0, |(index, _)| index + 1);
    ContextEstimate::new(counted, messages[start..].iter().map(estimate_message_tokens).fold(0, u64::saturating_add))
}

/// The tokens of [`estimate_context`].
pub fn estimate_context_tokens(messages: &[Message]) -> u64 {
    estimate_context(messages).tokens
}

/// An estimate of the tokens that one message takes.
pub fn estimate_message_tokens(message: &Message) -> u64 {
    match message {
        Message::System(message) => estimate_system(message),
        Message::User(message) => tokens(match &message.content {
            Content::Text(text) => units(text),
            Content::Blocks(blocks) => input_units(blocks),
        }),
        Message::ToolResult(message) => tokens(input_units(&message.content)),
        Message::Assistant(message) => tokens(message.content.iter().map(assistant_units).sum()),
    }
}

/// The tokens of a request and its answer, as the provider counted them.
pub fn used_tokens(answer: &AssistantMessage) -> u64 {
    match answer.usage.total_tokens {
        0 => answer.usage.all_input().saturating_add(answer.usage.output),
        total => total,
    }
}

fn estimate_system(message: &SystemMessage) -> u64 {
    let mut estimate = tokens(units(&render_full(message)));
    if !message.tools_added.is_empty() {
        estimate += tokens(json_units(&message.tools_added));
    }
    if !message.tools_removed.is_empty() {
        estimate += tokens(json_units(&message.tools_removed));
    }
    estimate
}

fn input_units(blocks: &[InputBlock]) -> u64 {
    let count = |block: &InputBlock| match block {
        InputBlock::Text(text) => units(&text.text),
        InputBlock::Image(_) => IMAGE_UNITS,
        InputBlock::Unknown(_) => 0,
    };
    blocks.iter().map(count).sum()
}

fn assistant_units(block: &AssistantBlock) -> u64 {
    match block {
        AssistantBlock::Text(text) => units(&text.text),
        AssistantBlock::Thinking(thinking) => units(&thinking.thinking),
        AssistantBlock::ToolCall(call) => units(&call.name) + object_units(&call.arguments),
        AssistantBlock::Unknown(_) => 0,
    }
}

fn tokens(units: u64) -> u64 {
    (units as f64 / UNITS_PER_TOKEN).ceil() as u64
}

/// The length of a text in UTF-16 units.
pub fn units(text: &str) -> u64 {
    units_of(text.as_bytes())
}

fn units_of(utf8: &[u8]) -> u64 {
    // Every byte that begins a character is a unit; characters of four bytes are two.
    let units = |byte: &u8| u8::from((*byte as i8) >= -0x40) + u8::from(*byte >= 0xF0);
    // Sums that fit a byte are added up sixteen and more at a time.
    utf8.chunks(96).map(|piece| u64::from(piece.iter().map(units).sum::<u8>())).sum()
}

/// The length of an object's JSON in UTF-16 units: what [`json_units`] says, without writing the JSON.
pub fn object_units(object: &Map<String, Value>) -> u64 {
    let members = object.iter().map(|(name, value)| string_units(name) + 1 + value_units(value));
    list_units(object.len(), members)
}

fn value_units(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::String(text) => string_units(text),
        Value::Array(items) => list_units(items.len(), items.iter().map(value_units)),
        Value::Object(object) => object_units(object),
        // What else there is of a number is ASCII.
        Value::Number(number) => number.to_string().len() as u64,
    }
}

/// Brackets, commas, and what is between them.
fn list_units(length: usize, items: impl Iterator<Item = u64>) -> u64 {
    2 + length.saturating_sub(1) as u64 + items.sum::<u64>()
}

/// The length of a text as a JSON string, in UTF-16 units.
fn string_units(text: &str) -> u64 {
    let units = |byte: &u8| {
        let begins = u8::from((*byte as i8) >= -0x40) + u8::from(*byte >= 0xF0);
        let is_control = u8::from(*byte < 0x20);
        let has_short_escape = u8::from(matches!(*byte, 8..=10 | 12 | 13));
        // `\n` is one more than the character, `\u0001` five more.
        begins + u8::from(matches!(*byte, b'"' | b'\\')) + 5 * is_control - 4 * has_short_escape
    };
    // At most six of a byte, so that the sum of so many fits a byte.
    2 + text.as_bytes().chunks(32).map(|piece| u64::from(piece.iter().map(units).sum::<u8>())).sum::<u64>()
}

/// The length of a value's JSON in UTF-16 units.
pub fn json_units(value: &impl Serialize) -> u64 {
    struct Counter(u64);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += units_of(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Neither the counter nor a JSON value can fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

/// The most tokens that an answer may have so that it fits the model's context after these messages: at most
/// `max_tokens`, at least 1. A model whose window is unknown (0) takes any number.
pub fn fit_max_tokens(model: &Model, messages: &[Message], max_tokens: u64) -> u64 {
    if model.context_window == 0 {
        return max_tokens.max(1);
    }
    let input = estimate_context_tokens(messages);
    let left = |margin: u64| model.context_window.saturating_sub(input).saturating_sub(margin);
    let ratio = (input as f64 * SAFETY_RATIO).ceil() as u64;
    let comfortable = left(ratio.max(SAFETY_TOKENS));
    let room = match comfortable {
        0..COMFORTABLE_OUTPUT => left(SAFETY_TOKENS).min(COMFORTABLE_OUTPUT),
        _ => comfortable,
    };
    max_tokens.min(room.max(1))
}

/// What a request asks for as its longest answer: the caller's or the model's limit, fitted to the context. `None`
/// when neither is known.
pub fn max_tokens(model: &Model, messages: &[Message], options: &StreamOptions) -> Option<u64> {
    let limit = options.max_tokens.or((model.max_tokens > 0).then_some(model.max_tokens))?;
    Some(fit_max_tokens(model, messages, limit))
}

/// The tokens of one limit, where thinking and the answer share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedTokens {
    /// The limit.
    pub max_tokens: u64,
    /// The part of it that thinking may use.
    pub thinking: u64,
}

/// Splits a limit between thinking and the answer. A limit that the caller set (`base`) is for the answer, and thinking
/// comes on top; without one the model's limit holds both.
pub fn share_max_tokens(
    model: &Model,
    base: Option<u64>,
    level: ThinkingLevel,
    budgets: &IndexMap<ThinkingLevel, u64>,
) -> SharedTokens {
    let thinking = thinking_budget(level, budgets);
    let max_tokens = match base {
        Some(base) => base.saturating_add(thinking).min(model.max_tokens),
        None => model.max_tokens,
    };
    let thinking = match max_tokens <= thinking {
        true => leave_room_to_answer(thinking, max_tokens),
        false => thinking,
    };
    SharedTokens { max_tokens, thinking }
}

/// The tokens that a level may think with; levels above `high` count as `high`.
pub fn thinking_budget(level: ThinkingLevel, budgets: &IndexMap<ThinkingLevel, u64>) -> u64 {
    let level = level.clamp(ThinkingLevel::Minimal, ThinkingLevel::High);
    budgets.get(&level).copied().unwrap_or(match level {
        ThinkingLevel::Minimal | ThinkingLevel::Off => 1024,
        ThinkingLevel::Low => 2048,
        ThinkingLevel::Medium => 8192,
        ThinkingLevel::High | ThinkingLevel::XHigh | ThinkingLevel::Max => 16_384,
    })
}

/// A thinking budget that leaves [`MIN_ANSWER_TOKENS`] below the limit that it shares with the answer.
pub fn leave_room_to_answer(budget: u64, limit: u64) -> u64 {
    budget.min(limit.saturating_sub(MIN_ANSWER_TOKENS))
}

/// The level to think at, as far as the model supports it; `None` is off.
pub fn effort(model: &Model, options: &StreamOptions) -> Option<ThinkingLevel> {
    let level = model.clamp(options.reasoning.filter(|level| *level != ThinkingLevel::Off)?);
    (level != ThinkingLevel::Off).then_some(level)
}

/// The sampling parameters of a request: the model's, those of the level, the request's; later ones win.
pub fn sampling_params(model: &Model, options: &StreamOptions) -> Map<String, Value> {
    let level = model.clamp(options.reasoning.unwrap_or_default());
    let of_level = model.sampling_params_by_thinking_level.as_ref().and_then(|levels| levels.get(&level));
    let all = [model.sampling_params.as_ref(), of_level, options.sampling_params.as_ref()];
    let mut merged = Map::new();
    for (name, value) in all.into_iter().flatten().flatten() {
        merged.insert(name.clone(), value.clone());
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{
        message::{StopReason, ToolCall},
        time::Timestamp,
        tool::ToolDeclaration,
        usage::Usage,
    };

    #[test]
    fn text_is_counted_as_javascript_counts_it() {
        for text in ["", "abc", "é", "漢字", "😀x", "a\u{301}"] {
            assert_eq!(units(text), text.encode_utf16().count() as u64, "{text}");
        }
        let tool = ToolDeclaration::new("é", "\"", json!({"a": 1}));
        assert_eq!(json_units(&tool), serde_json::to_string(&tool).unwrap().encode_utf16().count() as u64);
    }

    fn answer(time: u64, total_tokens: u64, stop_reason: StopReason) -> Message {
        let usage = Usage { total_tokens, ..Usage::default() };
        let timestamp = Timestamp::from_millis(time);
        AssistantMessage { usage, stop_reason, timestamp, ..AssistantMessage::default() }.into()
    }

    fn asked(time: u64, text: &str) -> Message {
        crate::UserMessage { content: text.into(), timestamp: Timestamp::from_millis(time) }.into()
    }

    #[test]
    fn an_estimate_builds_on_the_last_counts_that_describe_what_is_before_them() {
        let seven = "1234567";
        let with = |messages: &[Message]| estimate_context_tokens(messages);
        assert_eq!(with(&[asked(1, seven)]), 2);
        assert_eq!(with(&[asked(1, seven), answer(2, 100, StopReason::Stop), asked(3, seven)]), 102);
        assert_eq!(with(&[asked(1, seven), answer(2, 100, StopReason::Error), asked(3, seven)]), 4);
        // The first message is a summary that was made after the answer.
        assert_eq!(with(&[asked(9, seven), answer(2, 100, StopReason::Stop), asked(10, seven)]), 4);
        let call = ToolCall::new("id", "read", json!({"path": "x"}));
        let reply = AssistantMessage { content: vec![call.into()], ..AssistantMessage::default() };
        assert_eq!(estimate_message_tokens(&reply.into()), 5);
    }

    #[test]
    fn a_request_for_an_unknown_model_names_no_limit() {
        let options = StreamOptions::default();
        assert_eq!(max_tokens(&Model::default(), &[], &options), None);
        let model = Model { max_tokens: 10, ..Model::default() };
        assert_eq!(max_tokens(&model, &[], &options), Some(10));
        assert_eq!(max_tokens(&model, &[], &StreamOptions { max_tokens: Some(7), ..options }), Some(7));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-z\"\\\\\u{0}-\u{1f}\u{7f}é漢😀]{0,80}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-z\"é]{0,4}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_length_of_json_is_that_of_the_json(value in value()) {
            let object = Map::from_iter([("value".to_owned(), value)]);
            let text = serde_json::to_string(&object).unwrap();
            prop_assert_eq!(object_units(&object), text.encode_utf16().count() as u64);
            prop_assert_eq!(json_units(&object), text.encode_utf16().count() as u64);
        }
    }
}
