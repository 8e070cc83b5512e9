//! How the parts of a configuration come together.

use serde_json::{Map, Value};

use crate::model::{Model, ThinkingLevel};

/// Compat switches whose value is an object that is merged, not replaced.
const MERGED_SWITCHES: [&str; 4] =
    ["openRouterRouting", "vercelGatewayRouting", "chatTemplateKwargs", "chatTemplateArgs"];

/// Defaults of a model that is declared without them.
const CONTEXT_WINDOW: u64 = 128_000;
const MAX_TOKENS: u64 = 16_384;

/// Puts switches over others: each one replaces, but those that are objects themselves merge.
pub(crate) fn merge_compat(base: &mut Option<Map<String, Value>>, top: Option<&Map<String, Value>>) {
    let Some(top) = top else { return };
    let base = base.get_or_insert_default();
    for (key, value) in top {
        match (base.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(above)) if MERGED_SWITCHES.contains(&key.as_str()) => {
                below.extend(above.clone());
            }
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

/// A model from its checked definition. Headers are not in it: their values are resolved for each request.
///
/// # Errors
/// When a field does not fit after all.
pub(crate) fn read_model(definition: &Map<String, Value>) -> Result<Model, serde_json::Error> {
    let mut fields = definition.clone();
    fields.shift_remove("headers");
    tidy(&mut fields);
    let id = fields.get("id").cloned().unwrap_or_default();
    for (key, default) in [
        ("name", id),
        ("input", Value::from(vec!["text"])),
        ("contextWindow", CONTEXT_WINDOW.into()),
        ("maxTokens", MAX_TOKENS.into()),
    ] {
        fields.entry(key).or_insert(default);
    }
    serde_json::from_value(Value::Object(fields))
}

/// Changes a model: object fields merge, everything else replaces.
///
/// # Errors
/// When a field does not fit after all.
pub(crate) fn apply_override(model: &Model, change: &Map<String, Value>) -> Result<Model, serde_json::Error> {
    let mut fields = match serde_json::to_value(model)? {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let mut compat = match fields.shift_remove("compat") {
        Some(Value::Object(compat)) => Some(compat),
        _ => None,
    };
    let mut change = change.clone();
    change.shift_remove("headers");
    tidy(&mut change);
    for (key, value) in change {
        let depth = match key.as_str() {
            "compat" => {
                merge_compat(&mut compat, value.as_object());
                continue;
            }
            "thinkingLevelMap" | "cost" | "promptCache" | "samplingParams" => 1,
            "samplingParamsByThinkingLevel" => 2,
            "inputLimits" => 3,
            _ => 0,
        };
        merge(fields.entry(key).or_insert(Value::Null), value, depth);
    }
    fields.extend(compat.map(|compat| ("compat".to_owned(), Value::Object(compat))));
    serde_json::from_value(Value::Object(fields))
}

fn merge(base: &mut Value, top: Value, depth: u8) {
    match (base, top) {
        (Value::Object(base), Value::Object(top)) if depth > 0 => {
            for (key, value) in top {
                merge(base.entry(key).or_insert(Value::Null), value, depth - 1);
            }
        }
        (base, top) => *base = top,
    }
}

/// Makes checked values fit the types: counts are whole, and levels that this version does not know are left out.
fn tidy(fields: &mut Map<String, Value>) {
    for key in ["contextWindow", "maxTokens"] {
        round(fields.get_mut(key));
    }
    if let Some(Value::Object(seconds)) = fields.get_mut("promptCache") {
        seconds.values_mut().for_each(|value| round(Some(value)));
    }
    if let Some(Value::Array(tiers)) = fields.get_mut("cost").and_then(|cost| cost.get_mut("tiers")) {
        tiers.iter_mut().for_each(|tier| round(tier.get_mut("inputTokensAbove")));
    }
    if let Some(limits) = fields.get_mut("inputLimits") {
        round_all(limits);
    }
    for key in ["thinkingLevelMap", "samplingParamsByThinkingLevel"] {
        if let Some(Value::Object(levels)) = fields.get_mut(key) {
            levels.retain(|level, _| level.parse::<ThinkingLevel>().is_ok());
        }
    }
}

fn round_all(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(round_all),
        value => round(Some(value)),
    }
}

fn round(value: Option<&mut Value>) {
    if let Some(value) = value
        && let Some(number) = value.as_f64().filter(|_| !value.is_u64())
    {
        *value = Value::from(number.round() as u64);
    }
}
