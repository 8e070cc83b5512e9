//! Laws of JSON that streams in.

use pi_ai::json::{ArgumentsBuilder, MAX_DEPTH, Replaced, StreamingJson, parse_arguments};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[\"\\\\\\x00-\\x1f😀é]*".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("[ab]{0,2}|.*", inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// JSON text as different writers write it.
fn any_json_text() -> impl Strategy<Value = String> {
    (any_json(), 0..3).prop_map(|(value, style)| match style {
        0 => value.to_string(),
        1 => format!(" {value:#}\n"),
        // All that is not ASCII escaped, pairs of surrogates included.
        _ => value.to_string().chars().fold(String::new(), |mut text, c| {
            match c {
                ' '..='~' => text.push(c),
                _ => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04X}"))),
            }
            text
        }),
    })
}

fn read(pieces: &[&str]) -> Option<Value> {
    let mut json = StreamingJson::default();
    for piece in pieces {
        json.push(piece);
    }
    json.into_value()
}

proptest! {
    #[test]
    fn a_valid_text_ends_in_its_value_wherever_it_is_cut(text in any_json_text(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
        let value: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read(&pieces), Some(value.clone()));
        let chars: Vec<String> = text.chars().map(String::from).collect();
        prop_assert_eq!(read(&chars.iter().map(String::as_str).collect::<Vec<_>>()), Some(value));
    }

    #[test]
    fn a_finished_text_gives_the_arguments_it_showed(value in any_json()) {
        let text = value.to_string();
        let mut shown = Map::new();
        let mut builder = ArgumentsBuilder::default();
        for character in text.chars() {
            builder.push(&mut shown, character.encode_utf8(&mut [0; 4]));
        }
        match value {
            Value::Object(arguments) => {
                prop_assert_eq!(&shown, &arguments);
                prop_assert_eq!(builder.finish(), Ok(arguments));
            }
            _ => {
                prop_assert!(shown.is_empty());
                prop_assert!(builder.finish().is_err());
            }
        }
    }
}

#[test]
fn a_number_that_turns_out_to_be_none_gives_back_what_it_hid() {
    let mut json = StreamingJson::default();
    let shown = |json: &mut StreamingJson, piece: &str| {
        json.push(piece);
        json.value().cloned().unwrap_or_default()
    };
    assert_eq!(shown(&mut json, r#"{"a": "old", "b": 1, "a": 1"#), json!({"a": 1, "b": 1}));
    assert_eq!(shown(&mut json, "2"), json!({"a": 12, "b": 1}));
    assert_eq!(shown(&mut json, "x"), json!({"a": "old", "b": 1}));
    assert_eq!(shown(&mut json, r#", "c": [7, 8"#), json!({"a": "old", "b": 1, "c": [7, 8]}));
    assert_eq!(shown(&mut json, "."), json!({"a": "old", "b": 1, "c": [7]}));
    assert_eq!(shown(&mut json, "5e"), json!({"a": "old", "b": 1, "c": [7, 8.5]}));
    assert_eq!(shown(&mut json, "1]}"), json!({"a": "old", "b": 1, "c": [7, 85.0]}));
}

#[test]
fn hostile_nesting_is_refused_and_costs_no_stack() {
    let deep = |levels: usize| format!("{}{}{}", "{\"a\":".repeat(levels), 1, "}".repeat(levels));
    assert!(parse_arguments(&deep(MAX_DEPTH)).is_ok());
    let error = parse_arguments(&deep(MAX_DEPTH + 1)).unwrap_err().to_string();
    assert!(error.contains("nested deeper than 100 levels"), "{error}");

    let mut arguments = Map::new();
    let mut builder = ArgumentsBuilder::default();
    builder.push(&mut arguments, r#"{"before": 1, "deep": "#);
    for _ in 0..100_000 {
        builder.push(&mut arguments, "[{\"x\":");
    }
    builder.push(&mut arguments, &"}]".repeat(100_000));
    builder.push(&mut arguments, r#", "after": 2}"#);
    assert_eq!(arguments["before"], 1);
    assert_eq!(arguments["after"], 2);
    assert!(builder.finish().is_err());
}

#[test]
fn the_complete_text_may_come_again_or_be_another() {
    let mut arguments = Map::new();
    let mut builder = ArgumentsBuilder::default();
    builder.push(&mut arguments, r#"{"a": "#);
    assert_eq!(builder.replace(&mut arguments, r#"{"a": 1}"#), Replaced::Extended("1}"));
    assert_eq!(builder.replace(&mut arguments, r#"{"a": 1}"#), Replaced::Extended(""));
    assert_eq!(json!(arguments), json!({"a": 1}));
    assert_eq!(builder.replace(&mut arguments, "[]"), Replaced::Restarted);
    assert!(arguments.is_empty());
    assert_eq!(builder.replace(&mut arguments, r#"{"b": 2}"#), Replaced::Restarted);
    assert_eq!(json!(arguments), json!({"b": 2}));
    assert_eq!(builder.text(), r#"{"b": 2}"#);
}

#[test]
fn an_arguments_object_that_was_changed_meanwhile_is_no_fault() {
    let changes: [fn(&mut Map<String, Value>); 2] = [Map::clear, |arguments| arguments["a"] = json!("text")];
    for change in changes {
        let mut arguments = Map::new();
        let mut builder = ArgumentsBuilder::default();
        builder.push(&mut arguments, r#"{"a": {"b": [1, "x"#);
        change(&mut arguments);
        builder.push(&mut arguments, r#"y", {"c": 3}, 4]}, "d": 5}"#);
        assert_eq!(arguments["d"], 5);
        assert_eq!(builder.finish().map(Value::from), Ok(json!({"a": {"b": [1, "xy", {"c": 3}, 4]}, "d": 5})));
    }
}

#[test]
fn the_error_says_what_is_wrong_and_shows_what_came() {
    let error = |text: &str| parse_arguments(text).unwrap_err().to_string();
    assert!(error("[1]").contains("found a list"));
    assert!(error("[1]").ends_with("Received arguments:\n[1]"));
    assert!(error(r#"{"a": "b"#).contains("ends too early"));
    assert!(error(r#"{"a": 1,}"#).contains("trailing comma at line 1 column 9"));
    assert!(error(r#"{"a": 1e999}"#).contains("number out of range"));

    let long = error(&format!("{{\"start\": \"{}", "ü".repeat(100_000)));
    assert!(long.len() < 9_000 && long.contains("{\"start\"") && long.contains("bytes left out"));

    for blank in ["", " \n\t", "\u{feff}"] {
        assert_eq!(parse_arguments(blank), Ok(Map::new()));
    }
}
