//! The area `ai_data`.

use serde_json::{Map, Value, json};

use crate::json::{StreamingJson, from_str_lenient, from_str_repaired, parse_arguments};
use crate::schema::validate_arguments;

/// What this crate makes of `input`, a case of the file `file_stem`; `None` when there is no runner for that file.
pub fn run(file_stem: &str, input: &Value) -> Option<Value> {
    match file_stem {
        "json_repair" => json_repair(input),
        "streaming_json" => streaming_json(input),
        "surrogates" => surrogates(input),
        "validate_arguments" => validate(input),
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
