//! What goes in besides the prompt, and in which form the answer comes out.

use std::process::Stdio;

use fake_llm::{Answer, Script, Server, Wire};
use serde_json::json;

use super::program::{Place, lines, wait};

#[test]
fn standard_input_files_and_the_prompt_are_said_in_this_order_without_gaps() {
    let server = Server::start(Script::new(Wire::OpenAiCompletions).reply("ok"));
    let place = Place::with_server(&server, Wire::OpenAiCompletions);
    place.write("a.txt", "\u{feff}content");

    let ran = place.run_with_stdin(&["-p", "--model", "local/m", "@a.txt", "explain"], "  piped \n");

    assert_eq!(ran.code, Some(0), "{ran:?}");
    let file = place.cwd().join("a.txt");
    let expected = format!("piped<file name=\"{}\">\ncontent\n</file>\nexplain", file.display());
    assert_eq!(server.requests()[0].last_text(), expected);
}

#[test]
fn piped_text_alone_is_a_prompt() {
    let server = Server::start(Script::new(Wire::OpenAiCompletions).reply("hello back"));
    let place = Place::with_server(&server, Wire::OpenAiCompletions);
    let ran = place.run_with_stdin(&["--model", "local/m"], "hello\n");
    assert_eq!((ran.stdout.as_str(), ran.code), ("hello back\n", Some(0)), "{ran:?}");
}

#[test]
fn the_json_mode_prints_the_header_and_every_event_as_a_line() {
    let server = Server::start(
        Script::new(Wire::OpenAiCompletions)
            .reply(Answer::new().tool_call("bash", json!({"command": "echo hi"})))
            .reply(Answer::new().text_deltas(["He", "llo\u{2028}!"])),
    );
    let place = Place::with_server(&server, Wire::OpenAiCompletions);

    let ran = place.run(&["--mode", "json", "--model", "local/m", "say hi"]);

    assert_eq!(ran.code, Some(0), "{ran:?}");
    let events = lines(&ran.stdout);
    assert_eq!((&events[0]["type"], &events[0]["version"]), (&json!("session"), &json!(3)));
    let kinds: Vec<&str> = events[1..].iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("agent_start", "agent_settled"));
    for (begin, end) in [
        ("turn_start", "turn_end"),
        ("message_start", "message_end"),
        ("tool_execution_start", "tool_execution_end"),
        ("agent_start", "agent_end"),
    ] {
        let count = |kind: &str| kinds.iter().filter(|other| **other == kind).count();
        assert!(count(begin) > 0 && count(begin) == count(end), "{begin} {end} {kinds:?}");
    }
    let update = |kind: &str| {
        let found = events.iter().find(|event| event["assistantMessageEvent"]["type"] == *kind);
        found.map(|event| event["assistantMessageEvent"].clone()).unwrap_or_default()
    };
    assert_eq!(update("toolcall_start")["toolName"], "bash");
    assert_eq!(update("text_end")["content"], "Hello\u{2028}!");
    assert!(events.iter().all(|event| event["assistantMessageEvent"].get("partial").is_none()));
}

#[test]
fn the_json_mode_succeeds_even_when_the_model_fails() {
    let server =
        Server::start(Script::new(Wire::OpenAiCompletions).reply(fake_llm::Reply::error(400, "no such thing")));
    let place = Place::with_server(&server, Wire::OpenAiCompletions);
    let ran = place.run(&["--mode", "json", "--model", "local/m", "hi"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("no such thing"));
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    let deltas = (0..20_000).map(|n| format!("{n} "));
    let server = Server::start(Script::new(Wire::OpenAiCompletions).reply(Answer::new().text_deltas(deltas)));
    let place = Place::with_server(&server, Wire::OpenAiCompletions);
    let mut child = place.command(&["--mode", "json", "--model", "local/m", "count"]).spawn().unwrap();
    drop(child.stdout.take());
    let ran = wait(child);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(141), ""));
}

#[test]
fn models_are_listed_when_they_have_a_key() {
    let place = Place::new().variable("GROQ_API_KEY", "gsk-test");
    let ran = place.run(&["--list-models"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let providers: Vec<&str> = ran.stdout.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(!providers.is_empty() && providers.iter().all(|provider| *provider == "groq"), "{}", ran.stdout);
}

#[test]
fn a_prompt_does_not_wait_for_a_silent_pipe_that_it_is_told_to_leave() {
    let server = Server::start(Script::new(Wire::OpenAiCompletions).reply("ok"));
    let place = Place::with_server(&server, Wire::OpenAiCompletions);
    let mut command = place.command(&["-p", "--no-stdin", "--model", "local/m", "hi"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let open = child.stdin.take();
    let ran = wait(child);
    drop(open);
    assert_eq!((ran.stdout.as_str(), ran.code), ("ok\n", Some(0)), "{ran:?}");
}
