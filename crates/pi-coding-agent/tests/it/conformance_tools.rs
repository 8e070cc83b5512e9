//! The vectors of the area `tools`.

use std::path::Path;

use pi_ai::testing::vectors;
use pi_coding_agent::testing::conformance::tools::run;

#[track_caller]
fn check(file_stem: &str) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/vectors/tools/{file_stem}.json"));
    let failures = vectors::failures(&path, "tools", |input| runtime.block_on(run(file_stem, input)))
        .expect("the vectors can be read");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn cutting_at_the_limits() {
    check("truncate");
    check("truncate_line");
}

#[test]
fn what_a_path_means() {
    check("paths");
}

#[test]
fn editing_a_file() {
    check("edit");
    check("edit_prepare_arguments");
    check("fuzzy_normalize");
}

#[test]
fn reading_lines() {
    check("read");
}

#[test]
fn writing_a_file() {
    check("write");
}

#[test]
fn listing_a_folder() {
    check("ls");
}

#[cfg(unix)]
#[test]
fn running_commands() {
    check("bash");
}
