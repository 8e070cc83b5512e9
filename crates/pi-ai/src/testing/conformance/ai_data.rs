//! The area `ai_data`.

use std::{collections::VecDeque, time::Duration};

use indexmap::IndexMap;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    api::budget,
    context::Context,
    json::{StreamingJson, from_str_lenient, from_str_repaired, parse_arguments},
    message::{AssistantMessage, Message},
    model::{Model, ModelCost, ThinkingLevel},
    recovery::{self, RetryEvent, RetryPolicy},
    schema::validate_arguments,
    usage::Usage,
};

/// What this crate makes of `input`, a case of the file `file_stem`; `None` when there is no runner for that file.
pub fn run(file_stem: &str, input: &Value) -> Option<Value> {
    match file_stem {
        "json_repair" => json_repair(input),
        "streaming_json" => streaming_json(input),
        "surrogates" => surrogates(input),
        "validate_arguments" => validate(input),
        "overflow" => overflow(input),
        "recoverable_length" => recoverable_length(input),
        "retryable" => retryable(input),
        "retry_delay" => retry_delay(input),
        "retry_call" => retry_call(input),
        "thinking_levels" => thinking_levels(input),
        "cost" => cost(input),
        "max_tokens_clamp" => max_tokens_clamp(input),
        "thinking_budget" => thinking_budget(input),
        #[cfg(feature = "http")]
        "model_catalog" | "model_reference" | "model_scope" => super::models::run(file_stem, input),
        _ => None,
    }
}

fn json_repair(input: &Value) -> Option<Value> {
    Some(match from_str_repaired::<Value>(input["text"].as_str()?) {
        Ok(value) => json!({ "value": value }),
        Err(_) => json!({ "error": true }),
    })
}

fn streaming_json(input: &Value) -> Option<Value> {
    let pieces: Vec<&str> = input["pieces"].as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?;
    let shown = |json: &StreamingJson| match json.value() {
        Some(value) => json!({ "value": value }),
        None => json!({ "none": true }),
    };
    let mut json = StreamingJson::default();
    let snapshots: Vec<Value> = pieces
        .iter()
        .map(|piece| {
            json.push(piece);
            shown(&json)
        })
        .collect();
    let text = pieces.concat();
    let mut whole = StreamingJson::default();
    whole.push(&text);
    let (arguments, error) = match parse_arguments(&text) {
        Ok(arguments) => (arguments, false),
        Err(_) => (Map::new(), true),
    };
    Some(json!({
        "snapshots": snapshots,
        "one_piece": shown(&whole),
        "final": { "arguments": arguments, "error": error },
    }))
}

/// The units arrive as JavaScript writes them: each as an escape in JSON text.
fn surrogates(input: &Value) -> Option<Value> {
    let units = input["utf16"].as_array()?.iter();
    let escapes: String = units.map(|unit| Some(format!("\\u{:04x}", unit.as_u64()?))).collect::<Option<_>>()?;
    let text: String = from_str_lenient(&format!("\"{escapes}\"")).ok()?;
    Some(json!({ "text": text }))
}

fn validate(input: &Value) -> Option<Value> {
    Some(match validate_arguments(&input["parameters"], "tool", input["arguments"].as_object()?) {
        Ok(value) => json!({ "value": value }),
        Err(error) => {
            let paths: Vec<String> = error.issues().iter().map(|issue| issue.path.to_string()).collect();
            json!({ "error_paths": paths })
        }
    })
}

fn overflow(input: &Value) -> Option<Value> {
    let message = assistant(&input["message"])?;
    Some(json!({ "overflow": recovery::is_context_overflow(&message, input["context_window"].as_u64()) }))
}

fn recoverable_length(input: &Value) -> Option<Value> {
    let mut message = assistant(input)?;
    message.usage.output = input["output"].as_u64()?;
    let desired = input["desired_max_output"].as_u64()?;
    Some(json!({ "recoverable": recovery::is_recoverable_length(&message, desired) }))
}

fn retryable(input: &Value) -> Option<Value> {
    Some(json!({ "retryable": recovery::is_retryable_assistant_error(&assistant(input)?) }))
}

fn assistant(fields: &Value) -> Option<AssistantMessage> {
    serde_json::from_value(fields.clone()).ok()
}

fn retry_delay(input: &Value) -> Option<Value> {
    let base = Duration::from_millis(input["baseDelayMs"].as_u64()?);
    let attempt = u32::try_from(input["attempt"].as_u64()?).ok()?;
    let cap = input["maxAgentDelayMs"].as_u64().map_or(recovery::MAX_RETRY_DELAY, Duration::from_millis);
    Some(json!({ "delay_ms": recovery::retry_delay(base, attempt, cap).as_millis() as u64 }))
}

fn retry_call(input: &Value) -> Option<Value> {
    let mut responses: VecDeque<AssistantMessage> = serde_json::from_value(input["responses"].clone()).ok()?;
    let policy = match &input["policy"] {
        policy if policy["enabled"] == true => Some(RetryPolicy {
            max_retries: u32::try_from(policy["maxRetries"].as_u64()?).ok()?,
            base_delay: Duration::from_millis(policy["baseDelayMs"].as_u64()?),
            ..RetryPolicy::default()
        }),
        _ => None,
    };
    let (mut calls, mut callbacks) = (0, Vec::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().ok()?;
    let message = runtime.block_on(recovery::retry_assistant_call(
        || {
            calls += 1;
            std::future::ready(responses.pop_front().unwrap_or_default())
        },
        policy.as_ref(),
        &CancellationToken::new(),
        |event| {
            callbacks.push(match event {
                RetryEvent::Scheduled { attempt, max_attempts, delay, .. } => {
                    json!(["scheduled", attempt, max_attempts, delay.as_millis() as u64])
                }
                RetryEvent::AttemptStart => json!(["attempt_start"]),
                RetryEvent::Finished { success, attempt, .. } => json!(["finished", success, attempt]),
            });
            std::future::ready(())
        },
    ));
    Some(json!({ "calls": calls, "stopReason": message.stop_reason, "callbacks": callbacks }))
}

fn thinking_levels(input: &Value) -> Option<Value> {
    let mut fields = input["model"].as_object()?.clone();
    fields.insert("id".into(), json!("m"));
    let model: Model = serde_json::from_value(Value::Object(fields)).ok()?;
    let clamped: IndexMap<_, _> = ThinkingLevel::ALL.iter().map(|level| (level, model.clamp(*level))).collect();
    Some(json!({ "supported": model.thinking_levels().collect::<Vec<_>>(), "clamped": clamped }))
}

fn cost(input: &Value) -> Option<Value> {
    let prices: ModelCost = serde_json::from_value(input["cost"].clone()).ok()?;
    let mut usage: Usage = serde_json::from_value(input["usage"].clone()).ok()?;
    usage.price(&prices);
    Some(json!(usage.cost))
}

fn max_tokens_clamp(input: &Value) -> Option<Value> {
    let model = Model { context_window: input["context_window"].as_u64()?, ..Model::default() };
    let characters = usize::try_from(input["user_characters"].as_u64()?).ok()?;
    let context = Context::from(vec![Message::user("x".repeat(characters))]).normalize();
    Some(json!({ "max_tokens": budget::fit_max_tokens(&model, context.messages(), input["max_tokens"].as_u64()?) }))
}

fn thinking_budget(input: &Value) -> Option<Value> {
    let level: ThinkingLevel = serde_json::from_value(input["level"].clone()).ok()?;
    let model = Model { max_tokens: input["model_max_tokens"].as_u64()?, ..Model::default() };
    let budgets = serde_json::from_value(input["budgets"].clone()).unwrap_or_default();
    let shared = budget::share_max_tokens(&model, input["base_max_tokens"].as_u64(), level, &budgets);
    Some(json!({ "maxTokens": shared.max_tokens, "thinkingBudget": shared.thinking }))
}
