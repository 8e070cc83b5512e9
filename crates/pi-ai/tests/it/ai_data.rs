//! The vectors of the area `ai_data`.

use std::path::Path;

use pi_ai::testing::{conformance::ai_data::run, vectors};

#[track_caller]
fn check(file_stem: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/vectors/ai_data/{file_stem}.json"));
    let failures = vectors::failures(&path, "ai_data", |input| run(file_stem, input)).unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn arguments_show_while_they_stream() {
    check("streaming_json");
}

#[test]
fn broken_string_literals_are_repaired() {
    check("json_repair");
}

#[test]
fn halves_of_surrogate_pairs_are_dropped() {
    check("surrogates");
}

#[test]
fn arguments_are_coerced_or_refused() {
    check("validate_arguments");
}
