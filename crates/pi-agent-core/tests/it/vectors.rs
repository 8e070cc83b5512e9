//! The vectors of this crate, through the same runners as `cargo xtask conformance`.

use std::path::PathBuf;

use pi_agent_core::testing::conformance;
use pi_ai::testing::vectors;
use serde_json::Value;

fn check(area: &str, stem: &str, run: impl AsyncFn(&str, &Value) -> Option<Value>) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/vectors/{area}/{stem}.json"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let failures = vectors::failures(&path, area, |input| runtime.block_on(run(stem, input))).unwrap();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn runs_go_as_the_reference_says() {
    check("agent_loop", "agent", conformance::agent_loop::run);
}

#[test]
fn the_default_converter_keeps_what_the_reference_keeps() {
    check("convert_to_llm", "agent_core_default", conformance::convert_to_llm::run);
}
