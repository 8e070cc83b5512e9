//! What users and projects bring along, through the real program.

use std::fs;

use serde_json::Value;

use super::program::Place;

/// The sections of the prompt that the session begins with.
fn sections(place: &Place) -> Value {
    let lines = place.session_lines();
    let head = lines.iter().find(|line| line["message"]["role"] == "system").expect("the session has a prompt");
    head["message"]["sections"].clone()
}

fn user_text(place: &Place) -> String {
    let lines = place.session_lines();
    let message = lines.iter().find(|line| line["message"]["role"] == "user").expect("somebody asked something");
    message["message"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

const SKILL: &str = "---\ndescription: tells tides\n---\nLook at the moon.\n";

#[test]
fn a_project_is_used_only_after_it_is_trusted_and_nobody_is_asked() {
    let place = Place::new();
    place.agent_file("SYSTEM.md", "The user's words.");
    place.write(".pi/SYSTEM.md", "The project's words.");
    place.write(".pi/skills/tides/SKILL.md", SKILL);
    place.write("AGENTS.md", "Use tabs.");

    let untrusted = place.run(&["-p", "--no-session", "hello"]);
    assert_eq!(untrusted.code, Some(0), "{untrusted:?}");
    assert!(untrusted.stderr.contains("not trusted"), "{untrusted:?}");
    // Instructions reach the model all the same, and nobody has to ask which.
    let instructions = format!("Instructions: {}", place.cwd().join("AGENTS.md").display());
    assert!(untrusted.stderr.contains(&instructions), "{untrusted:?}");

    let ran = place.run(&["-p", "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = sections(&place);
    assert_eq!(said["preamble"], "The user's words.");
    assert!(said["project_context"].as_str().is_some_and(|text| text.contains("Use tabs.")), "{said}");
    assert!(said.get("skills").is_none(), "{said}");

    // The next prompt of the session says what changed, and nothing else.
    let ran = place.run(&["-p", "--approve", "--continue", "hello"]);
    assert!(!ran.stderr.contains("not trusted"), "{ran:?}");
    let lines = place.session_lines();
    let patch = lines.iter().rev().find(|line| line["message"]["role"] == "system").expect("the prompt is patched");
    let patch = &patch["message"]["sections"];
    assert_eq!(patch["preamble"], "The project's words.");
    assert!(patch["skills"].as_str().is_some_and(|text| text.contains("tells tides")), "{patch}");
    assert!(patch.get("project_context").is_none() && patch.get("cwd").is_none(), "{patch}");
}

#[test]
fn instructions_are_listed_cut_and_looked_through_and_links_lead_out_only_of_a_trusted_project() {
    let place = Place::new();
    place.write(".pi/settings.json", "{}");
    let file = place.cwd().join("AGENTS.md");
    place.write("AGENTS.md", format!("Use tabs.\nhidden: \u{e0041}\n{}", "rule\n".repeat(1_000_000)));
    let ran = place.run(&["-p", "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let path = file.display();
    for said in [
        format!("Instructions: {path}"),
        format!("{path}: is longer than 128 KiB"),
        format!("{path}:2: has 1 invisible character (the first is U+E0041)"),
    ] {
        assert!(ran.stderr.contains(&said), "{said} in {ran:?}");
    }
    assert!(sections(&place)["project_context"].as_str().unwrap().len() < 140 * 1024);
    place.write("AGENTS.md", b"caf\xe9\n");
    let ran = place.run(&["-p", "--no-session", "hello"]);
    assert!(ran.stderr.contains(&format!("{path}:1: is not all UTF-8")), "{ran:?}");
    // The setting silences the list, never what is wrong.
    place.agent_file("settings.json", r#"{"quietStartup": true}"#);
    let ran = place.run(&["-p", "--no-session", "hello"]);
    assert!(ran.stderr.contains("is not all UTF-8") && !ran.stderr.contains("Instructions:"), "{ran:?}");

    #[cfg(unix)]
    {
        place.agent_file("outside.md", "Secret words.");
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(place.agent_dir().join("outside.md"), &file).unwrap();
        let ran = place.run(&["-p", "--no-session", "--verbose", "hello"]);
        assert!(ran.stderr.contains("outside of the project") && !ran.stderr.contains("Instructions:"), "{ran:?}");
        let ran = place.run(&["-p", "--no-session", "--verbose", "--approve", "hello"]);
        assert!(ran.stderr.contains(&format!("Instructions: {path}")), "{ran:?}");
    }
}

#[test]
fn a_stored_decision_counts_for_everything_below_its_folder() {
    let place = Place::new();
    place.write(".pi/SYSTEM.md", "The project's words.");
    let parent = fs::canonicalize(place.cwd()).unwrap().parent().unwrap().to_owned();
    place.agent_file("trust.json", &serde_json::json!({parent.to_str().unwrap(): true}).to_string());
    let ran = place.run(&["-p", "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(sections(&place)["preamble"], "The project's words.");
}

#[test]
fn a_damaged_file_of_decisions_trusts_nothing_and_stays_as_it_is() {
    let place = Place::new();
    place.write(".pi/SYSTEM.md", "The project's words.");
    place.agent_file("trust.json", "{\"/\": yes}");
    let ran = place.run(&["-p", "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("trust.json"), "{ran:?}");
    assert_ne!(sections(&place)["preamble"], "The project's words.");
    assert_eq!(fs::read_to_string(place.agent_dir().join("trust.json")).unwrap(), "{\"/\": yes}");
}

#[test]
fn nothing_of_an_untrusted_project_is_executed() {
    let place = Place::new();
    let marker = place.cwd().join("marker");
    let prefix = format!("touch {}", marker.display());
    place.write(".pi/settings.json", serde_json::json!({"shellCommandPrefix": prefix}).to_string());
    let ran = place.run(&["-p", "run `echo ran`"]);
    assert!(ran.stdout.contains("ran"), "{ran:?}");
    assert!(!marker.exists());
    let ran = place.run(&["-p", "--approve", "run `echo ran`"]);
    assert!(ran.stdout.contains("ran"), "{ran:?}");
    assert!(marker.exists());
}

#[test]
fn a_prompt_template_stands_for_its_text() {
    let place = Place::new();
    fs::create_dir_all(place.agent_dir().join("prompts")).unwrap();
    place.agent_file("prompts/count.md", "---\ndescription: counts\n---\nHow many lines does $1 have?\n");
    place.write("a.txt", "1\n2\n3\n");
    let ran = place.run(&["-p", "/count a.txt"]);
    assert!(ran.stdout.contains("3 lines"), "{ran:?}");
    assert_eq!(user_text(&place), "How many lines does a.txt have?");
}

#[test]
fn a_skill_is_called_up_by_name_and_must_be_there_when_the_command_line_names_it() {
    let place = Place::new();
    place.write("given/tides/SKILL.md", SKILL);
    let ran = place.run(&["-p", "--skill", "given", "/skill:tides what is in this folder?"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = user_text(&place);
    assert!(text.starts_with("<skill name=\"tides\"") && text.contains("Look at the moon."), "{text}");
    assert!(ran.stdout.contains("`given/`"), "{ran:?}");

    let ran = place.run(&["-p", "--skill", "missing", "hello"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("missing"), "{ran:?}");
}

#[test]
fn settings_with_a_trailing_comma_are_named_with_their_line_and_left_alone() {
    let place = Place::new();
    let text = "{\n  \"theme\": \"dark\",\n}\n";
    place.agent_file("settings.json", text);
    let ran = place.run(&["-p", "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("settings.json:2"), "{ran:?}");
    assert_eq!(fs::read_to_string(place.agent_dir().join("settings.json")).unwrap(), text);
}
