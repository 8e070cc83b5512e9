//! The vectors of the area `extension_context`.

use std::path::Path;

use pi_ai::testing::{expect::Comparer, vectors};
use pi_coding_agent::testing::conformance::extension_context;

#[tokio::test]
async fn requests_are_made_from_what_handlers_leave() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/extension_context/emit_context.json");
    let mut failures = Vec::new();
    for case in vectors::load(&path).expect("the vectors can be read") {
        let actual = extension_context::run("emit_context", &case.input).await.expect("there is a runner");
        if let Some(difference) = Comparer::for_area("extension_context").mismatch(&case.expected, &actual) {
            failures.push(format!("{}: {difference}", case.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
