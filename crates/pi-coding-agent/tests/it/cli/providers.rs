//! Answers of a model behind HTTP, over both kinds of wire.

use fake_llm::{Answer, Script, Server, Wire};
use serde_json::json;

use super::program::Place;

fn edits_a_file_over(wire: Wire) {
    let server = Server::start(
        Script::new(wire)
            .reply(Answer::new().text("Let me look.").tool_call("read", json!({"path": "notes.txt"})))
            .reply(
                Answer::new()
                    .tool_call("edit", json!({"path": "notes.txt", "edits": [{"oldText": "two", "newText": "three"}]}))
                    .tool_call("bash", json!({"command": "wc -l < notes.txt"})),
            )
            .reply("Done: it says three now."),
    );
    let place = Place::with_server(&server, wire);
    place.write("notes.txt", "one\ntwo\n");

    let ran = place.run(&["-p", "--model", "local/m", "Change two to three in notes.txt"]);

    assert_eq!((ran.stdout.as_str(), ran.code), ("Done: it says three now.\n", Some(0)), "{ran:?}");
    assert_eq!(std::fs::read_to_string(place.cwd().join("notes.txt")).unwrap(), "one\nthree\n");
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0].tool_names(), ["read", "bash", "edit", "write"]);
    assert!(requests[0].system_text().contains(&place.cwd().display().to_string()));
    let roles: Vec<_> =
        place.session_lines().iter().filter_map(|line| line["message"]["role"].as_str().map(str::to_owned)).collect();
    let expected = ["system", "user", "assistant", "toolResult", "assistant", "toolResult", "toolResult", "assistant"];
    assert_eq!(roles, expected);
}

#[test]
fn a_model_behind_chat_completions_reads_edits_and_runs() {
    edits_a_file_over(Wire::OpenAiCompletions);
}

#[test]
fn a_model_behind_anthropic_messages_reads_edits_and_runs() {
    edits_a_file_over(Wire::AnthropicMessages);
}

#[test]
fn going_on_sends_what_was_said_before() {
    let server = Server::start(Script::new(Wire::OpenAiCompletions).reply("Blue.").reply("Because of the air."));
    let place = Place::with_server(&server, Wire::OpenAiCompletions);
    assert_eq!(place.run(&["-p", "--model", "local/m", "Which colour has the sky?"]).code, Some(0));

    let ran = place.run(&["-p", "--continue", "Why?"]);

    assert_eq!((ran.stdout.as_str(), ran.code), ("Because of the air.\n", Some(0)), "{ran:?}");
    let requests = server.requests();
    let roles: Vec<&str> = requests[1].roles().into_iter().filter(|role| *role != "system").collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(place.session_files().len(), 1);
}

#[test]
fn several_words_are_said_one_after_another() {
    let server = Server::start(Script::new(Wire::OpenAiCompletions).reply("One.").reply("Two."));
    let place = Place::with_server(&server, Wire::OpenAiCompletions);

    let ran = place.run(&["-p", "--model", "local/m", "first", "second"]);

    assert_eq!((ran.stdout.as_str(), ran.code), ("Two.\n", Some(0)), "{ran:?}");
    assert_eq!(server.requests()[1].last_text(), "second");
}

#[test]
fn a_failed_turn_is_tried_again_and_left_out_of_what_is_sent() {
    let server = Server::start(
        Script::new(Wire::OpenAiCompletions).reply(fake_llm::Reply::error(503, "overloaded")).reply("Here I am."),
    );
    let place = Place::with_server(&server, Wire::OpenAiCompletions);
    place.agent_file("settings.json", r#"{"retry": {"baseDelayMs": 1}}"#);

    let ran = place.run(&["-p", "--model", "local/m", "hello"]);

    assert_eq!((ran.stdout.as_str(), ran.code), ("Here I am.\n", Some(0)), "{ran:?}");
    assert_eq!(server.requests()[1].roles(), server.requests()[0].roles());
    let kinds: Vec<_> = place.session_lines().iter().map(|line| line["type"].clone()).collect();
    assert!(kinds.contains(&json!("context_edit")), "{kinds:?}");
}
