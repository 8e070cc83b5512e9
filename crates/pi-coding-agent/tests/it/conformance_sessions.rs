//! The vectors of the areas `sessions`, `compaction` and `convert_to_llm`.

use std::path::{Path, PathBuf};

use pi_ai::testing::{expect::Comparer, vectors};
use pi_coding_agent::testing::conformance::{compaction, convert_to_llm, sessions};

fn path(area: &str, file_stem: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/vectors/{area}/{file_stem}.json"))
}

async fn check(file_stem: &str) {
    let mut failures = Vec::new();
    for case in vectors::load(&path("sessions", file_stem)).expect("the vectors can be read") {
        let actual = sessions::run(file_stem, &case.input).await.expect("there is a runner");
        if let Some(difference) = Comparer::for_area("sessions").mismatch(&case.expected, &actual) {
            failures.push(format!("{}: {difference}", case.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test]
async fn files_are_loaded() {
    check("load").await;
}

#[tokio::test]
async fn any_leaf_has_its_context() {
    check("context_of_leaf").await;
}

#[tokio::test]
async fn operations_write_lines() {
    check("operations").await;
}

#[tokio::test]
async fn sessions_have_folders_and_ids() {
    check("names").await;
}

#[tokio::test]
async fn sessions_are_listed() {
    check("list").await;
}

#[tokio::test]
async fn sessions_are_found() {
    check("find").await;
}

#[test]
fn the_model_sees_the_coding_agents_roles() {
    let run = |input: &_| convert_to_llm::run("coding_agent", input);
    let failures = vectors::failures(&path("convert_to_llm", "coding_agent"), "convert_to_llm", run);
    let failures = failures.expect("the vectors can be read");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[track_caller]
fn check_compaction(file_stem: &str) {
    let failures =
        vectors::failures(&path("compaction", file_stem), "compaction", |input| compaction::run(file_stem, input));
    let failures = failures.expect("the vectors can be read");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_size_of_a_context_is_estimated() {
    check_compaction("estimate_tokens");
    check_compaction("estimate_context");
    check_compaction("should_compact");
}

#[test]
fn a_conversation_is_cut_where_a_request_may_begin() {
    check_compaction("cut_point");
    check_compaction("prepare_compaction");
}

#[test]
fn the_summariser_gets_a_record_and_the_files() {
    check_compaction("serialize_conversation");
    check_compaction("file_operations");
}

#[test]
fn a_branch_that_is_left_is_collected() {
    check_compaction("branch_entries");
    check_compaction("branch_messages");
}
