//! The vectors of the area `coding_session`.

use std::path::Path;

use pi_ai::testing::{expect::Comparer, vectors};
use pi_coding_agent::testing::conformance::coding_session;

#[tokio::test]
async fn whole_sessions_go_as_recorded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/coding_session/flow.json");
    let mut failures = Vec::new();
    for case in vectors::load(&path).expect("the vectors can be read") {
        let actual = coding_session::run("flow", &case.input).await.expect("there is a runner");
        if let Some(difference) = Comparer::for_area("coding_session").mismatch(&case.expected, &actual) {
            failures.push(format!("{}: {difference}", case.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
