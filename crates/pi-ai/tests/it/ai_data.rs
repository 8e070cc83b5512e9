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

#[test]
fn overflow_is_told_by_words_and_counts() {
    check("overflow");
    check("recoverable_length");
}

#[test]
fn failures_that_may_pass_are_tried_again() {
    check("retryable");
    check("retry_delay");
    check("retry_call");
}

#[test]
fn thinking_levels_are_clamped_to_what_a_model_supports() {
    check("thinking_levels");
}

#[test]
fn limits_leave_room_for_the_answer() {
    check("max_tokens_clamp");
    check("thinking_budget");
}

#[test]
fn usage_is_priced() {
    check("cost");
}

#[test]
fn references_and_patterns_find_the_models_that_people_mean() {
    check("model_catalog");
    check("model_reference");
    check("model_scope");
}
