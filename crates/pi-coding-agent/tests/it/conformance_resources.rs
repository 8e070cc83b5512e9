//! The vectors of the area `resources`.

use std::path::Path;

use pi_ai::testing::vectors;
use pi_coding_agent::testing::conformance::resources::run;

#[track_caller]
fn check(file_stem: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/vectors/resources/{file_stem}.json"));
    let failures =
        vectors::failures(&path, "resources", |input| run(file_stem, input)).expect("the vectors can be read");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn facts_at_the_head_of_a_file() {
    check("frontmatter");
}

#[test]
fn skills_in_the_prompt() {
    check("skills_prompt");
}

#[test]
fn sections_of_the_prompt() {
    check("system_prompt");
}

#[test]
fn changes_between_two_prompts() {
    check("system_prompt_diff");
}

#[test]
fn arguments_of_commands() {
    check("command_args");
}

#[test]
fn arguments_in_templates() {
    check("substitute_args");
}

#[test]
fn templates_that_commands_stand_for() {
    check("expand_template");
}

#[test]
fn templates_in_a_folder() {
    check("load_templates");
}

#[test]
fn skills_in_a_folder() {
    check("skills");
}
