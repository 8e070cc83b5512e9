//! The vectors of the areas `provider_requests`, `provider_responses` and `provider_sequences`.

use std::path::{Path, PathBuf};

use pi_ai::testing::{
    conformance::{provider_requests, provider_responses, provider_sequences},
    vectors,
};
use serde_json::Value;

fn path(area: &str, file_stem: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/vectors/{area}/{file_stem}.json"))
}

#[track_caller]
fn check(area: &str, file_stem: &str, run: fn(&str, &Value) -> Option<Value>) {
    let failures = vectors::failures(&path(area, file_stem), area, |input| run(file_stem, input)).unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[track_caller]
fn requests(wire: &str, groups: &[&str]) {
    for group in groups {
        check("provider_requests", &format!("{wire}.{group}"), provider_requests::run);
    }
}

#[track_caller]
fn responses(wire: &str) {
    check("provider_responses", wire, provider_responses::run);
}

#[test]
fn openai_completions_requests() {
    requests("openai-completions", &["common", "extra", "native", "surrogates"]);
}

#[test]
fn openai_completions_responses() {
    responses("openai-completions");
}

#[test]
fn anthropic_messages_requests() {
    requests("anthropic-messages", &["common", "extra", "native", "surrogates"]);
}

#[test]
fn anthropic_messages_responses() {
    responses("anthropic-messages");
}

#[test]
fn openai_responses_requests() {
    requests("openai-responses", &["common", "extra", "native", "surrogates"]);
}

#[test]
fn openai_responses_responses() {
    responses("openai-responses");
}

#[test]
fn azure_openai_responses_requests() {
    requests("azure-openai-responses", &["common", "extra", "native"]);
}

#[test]
fn azure_openai_responses_responses() {
    responses("azure-openai-responses");
}

#[test]
#[cfg(feature = "codex")]
fn openai_codex_responses_requests() {
    requests("openai-codex-responses", &["common", "native"]);
}

#[test]
#[cfg(feature = "codex")]
fn openai_codex_responses_responses() {
    responses("openai-codex-responses");
}

#[cfg(feature = "bedrock")]
#[test]
fn bedrock_converse_stream_requests() {
    requests("bedrock-converse-stream", &["common", "extra"]);
}

#[cfg(feature = "bedrock")]
#[test]
fn bedrock_converse_stream_responses() {
    responses("bedrock-converse-stream");
}

#[test]
fn google_generative_ai_requests() {
    requests("google-generative-ai", &["common", "extra", "surrogates"]);
}

#[test]
fn google_generative_ai_responses() {
    responses("google-generative-ai");
}

#[test]
fn mistral_conversations_requests() {
    requests("mistral-conversations", &["common", "extra", "native", "surrogates"]);
}

#[test]
fn mistral_conversations_responses() {
    responses("mistral-conversations");
}

#[test]
fn a_request_that_failed_is_sent_again_as_the_policy_says() {
    check("provider_sequences", "http_retry", provider_sequences::run);
}

#[test]
fn anthropic_threads_send_only_what_is_new() {
    check("provider_sequences", "anthropic_threads", provider_sequences::run);
}

#[test]
fn an_answer_does_not_depend_on_where_its_bytes_are_cut() {
    for wire in [
        "openai-completions",
        "anthropic-messages",
        "openai-responses",
        "google-generative-ai",
        "mistral-conversations",
        #[cfg(feature = "bedrock")]
        "bedrock-converse-stream",
        #[cfg(feature = "codex")]
        "openai-codex-responses",
        "azure-openai-responses",
    ] {
        for case in vectors::load(&path("provider_responses", wire)).unwrap() {
            let cut = provider_responses::cut_that_matters(&case.input);
            assert_eq!(cut, None, "{wire}: {}", case.name);
        }
    }
}
