//! The checks hold requests that real clients sent to real services, so they must not refuse one of those.

use std::path::{Path, PathBuf};

use fake_llm::{LaterSystem, Rules, Signatures, Wire};
use serde_json::Value;

#[test]
fn the_checks_accept_every_recorded_request() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/pi-ai/tests/vectors/provider_requests");
    let mut checked = 0;
    for wire in Wire::ALL {
        for group in ["common", "extra", "native", "surrogates"] {
            checked += check_file(*wire, group, &folder.join(format!("{}.{group}.json", wire.name())));
        }
    }
    assert!(checked > 50, "only {checked} recorded requests in {}", folder.display());
}

/// How many requests of this file were checked.
fn check_file(wire: Wire, group: &str, path: &PathBuf) -> usize {
    let Ok(text) = std::fs::read_to_string(path) else { return 0 };
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let requests = cases.iter().filter(|case| case["expected"]["request"]["body"].is_object());
    let checked = requests.map(|case| {
        let name = case["name"].as_str().unwrap();
        let mut body = case["expected"]["request"]["body"].clone();
        fill_placeholders(&mut body);
        let violations = wire.check_body(&body, &rules(wire, group, name));
        let found: Vec<String> =
            violations.iter().map(|violation| format!("{}: {}", violation.at, violation.what)).collect();
        assert_eq!(found, expected(wire, name), "{} / {name}", path.display());
    });
    checked.count()
}

/// Models that declare support for something are tested with it switched on.
fn rules(wire: Wire, group: &str, name: &str) -> Rules {
    let later = group == "native" || (wire, name) == (Wire::AnthropicMessages, "managed effort");
    let unsigned = (wire, name) == (Wire::AnthropicMessages, "empty signature allowed");
    Rules {
        later_system: if later { LaterSystem::Allowed } else { LaterSystem::Refused },
        signatures: if unsigned { Signatures::MayBeEmpty } else { Signatures::Required },
        ..Rules::default()
    }
}

/// What the checks rightly refuse: the recorded client dropped a blank message and then ended with the model's turn.
fn expected(wire: Wire, name: &str) -> Vec<&'static str> {
    match (wire, name) {
        (Wire::AnthropicMessages, "empty user string") => vec!["the end of messages: the last turn is not the user's"],
        _ => Vec::new(),
    }
}

/// Puts something in the place of wording and ids that are ours to choose.
fn fill_placeholders(value: &mut Value) {
    let replacement = value.as_object().and_then(|object| {
        let wording = ["$any_text", "$contains", "$contains_all", "$unpaired"];
        if object.len() == 1 && wording.iter().any(|name| object.contains_key(*name)) {
            return Some("some text".to_owned());
        }
        let number = object.get("$id")?.as_u64()?;
        let prefix = object.get("prefix").and_then(Value::as_str).unwrap_or_default();
        Some(format!("{prefix}{number:0width$}", width = 9 - prefix.len()))
    });
    match (replacement, value) {
        (Some(text), value) => *value = Value::String(text),
        (None, Value::Array(items)) => items.iter_mut().for_each(fill_placeholders),
        (None, Value::Object(fields)) => fields.values_mut().for_each(fill_placeholders),
        (None, _) => {}
    }
}
