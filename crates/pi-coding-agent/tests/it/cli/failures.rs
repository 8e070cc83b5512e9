//! What goes wrong is said in one line: what, where, what to do.

use std::{fs, process::Stdio};

use fake_llm::{Answer, Reply, Script, Server, Stop, Wire};
use serde_json::json;

use super::program::{Place, Ran};

fn says(ran: &Ran, code: i32, parts: &[&str]) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    for part in parts {
        assert!(ran.stderr.contains(part), "`{part}` is missing: {ran:?}");
    }
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
}

#[test]
fn a_missing_key_names_the_variable_to_set() {
    let ran = Place::new().run(&["-p", "--model", "anthropic/claude-sonnet-4-5", "hi"]);
    says(&ran, 1, &["ANTHROPIC_API_KEY"]);
}

#[test]
fn a_setting_that_names_a_model_without_a_key_is_not_answered_by_the_guide() {
    let place = Place::new();
    place.agent_file("settings.json", r#"{"defaultProvider": "groq", "defaultModel": "openai/gpt-oss-120b"}"#);
    says(&place.run(&["-p", "hi"]), 1, &["groq", "GROQ_API_KEY"]);
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let place = Place::new();
    let local = json!({"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "models": [{"id": "m"}]});
    place.models(&json!({"providers": {"local": local}}));
    place.agent_file("settings.json", r#"{"retry": {"enabled": false}}"#);
    says(&place.run(&["-p", "--model", "local/m", "hi"]), 1, &["127.0.0.1:9", "start the server", "base URL"]);
}

#[test]
fn a_server_whose_name_is_not_known_is_named_with_what_to_check() {
    let place = Place::new();
    let local = json!({"baseUrl": "http://no-such-host.invalid/v1", "api": "openai-completions", "apiKey": "k",
        "models": [{"id": "m"}]});
    place.models(&json!({"providers": {"local": local}}));
    place.agent_file("settings.json", r#"{"retry": {"enabled": false}}"#);
    let ran = place.run(&["-p", "--model", "local/m", "hi"]);
    says(&ran, 1, &["http://no-such-host.invalid", "No server of that name", "base URL"]);
}

#[test]
fn an_address_that_the_server_does_not_know_points_at_the_base_url() {
    let server = Server::start(Script::new(Wire::OpenAiCompletions).reply(Reply::error(404, "no such page")));
    let place = Place::with_server(&server, Wire::OpenAiCompletions);
    let ran = place.run(&["-p", "--model", "local/m", "hi"]);
    says(&ran, 1, &["404", "no such page", "base URL of local", "models.json", "127.0.0.1", "`m`"]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn what_a_provider_says_reaches_the_person() {
    for (status, text) in [(401, "invalid api key given"), (400, "unknown field `frob`"), (500, "the disk is on fire")]
    {
        let server = Server::start(Script::new(Wire::OpenAiCompletions).reply(Reply::error(status, text)));
        let place = Place::with_server(&server, Wire::OpenAiCompletions);
        place.agent_file("settings.json", r#"{"retry": {"enabled": false}}"#);
        let ran = place.run(&["-p", "--model", "local/m", "hi"]);
        says(&ran, 1, &[text, "pi --continue"]);
        assert_eq!(ran.stdout, "");
        // The question is kept.
        assert!(place.session_lines().iter().any(|line| line["message"]["role"] == "user"));
    }
}

/// Some servers repeat the key that they refuse. It stays where it was put, and appears nowhere else.
#[test]
fn a_key_that_a_server_repeats_is_not_shown_and_not_stored() {
    let said = "Incorrect API key provided: SECRET123. Ask for another one.";
    let server = Server::start(Script::new(Wire::OpenAiCompletions).otherwise(Reply::error(401, said)));
    let place = Place::new().variable("MY_KEY", "SECRET123");
    place.models(&json!({"providers": {"local": {
        "baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "$MY_KEY", "models": [{"id": "m"}],
    }}}));
    for mode in [&["-p"] as &[&str], &["--mode", "json"]] {
        let words = [mode, &["--verbose", "--model", "local/m", "hi"]].concat();
        let ran = place.run(&words);
        let shown = ran.stdout + &ran.stderr;
        assert!(!shown.contains("SECRET123"), "{shown}");
        assert!(shown.contains("Incorrect API key provided: [secret]."), "{shown}");
    }
    let mut ahead = vec![place.cwd().parent().unwrap().to_owned()];
    let mut files = 0;
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                ahead.push(path);
                continue;
            }
            files += 1;
            let content = fs::read(&path).unwrap();
            assert!(!String::from_utf8_lossy(&content).contains("SECRET123"), "{}", path.display());
        }
    }
    assert!(files >= 2, "sessions were stored");
}

#[test]
fn a_stream_that_breaks_off_keeps_its_text_and_fails() {
    let reply = Reply::from(Answer::new().text_deltas(["The answer ", "is ", "forty"])).cut_after_events(3);
    let server = Server::start(Script::new(Wire::OpenAiCompletions).reply(reply));
    let place = Place::with_server(&server, Wire::OpenAiCompletions);
    place.agent_file("settings.json", r#"{"retry": {"enabled": false}}"#);

    let ran = place.run(&["-p", "--model", "local/m", "hi"]);

    says(&ran, 1, &["Connection lost", "pi --continue"]);
    assert!(ran.stdout.starts_with("The answer"), "{ran:?}");
    let lines = place.session_lines();
    let stored = lines.iter().rev().find(|line| line["message"]["role"] == "assistant").unwrap();
    assert_eq!(stored["message"]["stopReason"], "error");
}

#[test]
fn an_answer_that_was_cut_off_is_printed_and_fails_the_command() {
    let server = Server::start(
        Script::new(Wire::OpenAiCompletions).otherwise(Answer::new().text("half an ans").stop(Stop::Length)),
    );
    let place = Place::with_server(&server, Wire::OpenAiCompletions);
    let ran = place.run(&["-p", "--model", "local/m", "hi"]);
    says(&ran, 1, &["cut off"]);
    assert_eq!(ran.stdout, "half an ans\n", "{ran:?}");
}

#[test]
fn a_request_that_is_too_large_keeps_the_providers_words_and_fails_the_command() {
    let reply = Reply::error(413, "the request is too big");
    let server = Server::start(Script::new(Wire::OpenAiCompletions).otherwise(reply));
    let place = Place::with_server(&server, Wire::OpenAiCompletions);
    says(&place.run(&["-p", "--model", "local/m", "hi"]), 1, &["the request is too big"]);
}

#[test]
fn each_attempt_to_ask_again_is_announced() {
    let script =
        Script::new(Wire::OpenAiCompletions).reply(Reply::error(503, "come back later")).otherwise("here I am");
    let server = Server::start(script);
    let place = Place::with_server(&server, Wire::OpenAiCompletions);
    place.agent_file("settings.json", r#"{"retry": {"baseDelayMs": 1}}"#);
    let ran = place.run(&["-p", "--model", "local/m", "hi"]);
    says(&ran, 0, &["come back later", "Trying again", "1 of 3"]);
    assert_eq!(ran.stdout, "here I am\n");
}

#[test]
fn a_key_that_is_named_and_has_no_value_is_missed_instead_of_answered_by_the_guide() {
    let place = Place::new();
    place.models(&json!({"providers": {"local": {
        "baseUrl": "https://models.example/v1", "api": "openai-completions", "apiKey": "$MY_MISSING_KEY",
        "models": [{"id": "m"}],
    }}}));
    says(&place.run(&["-p", "hi"]), 1, &["MY_MISSING_KEY"]);

    let place = Place::new();
    place.agent_file("settings.json", r#"{"defaultProvider": "groq"}"#);
    says(&place.run(&["-p", "hi"]), 1, &["GROQ_API_KEY"]);
    let ran = Place::new().variable("GROQ_API_KEY", "  ").run(&["-p", "What can you do?"]);
    says(&ran, 0, &["offline"]);
}

#[test]
fn a_models_file_with_an_unknown_api_is_reported_and_the_rest_goes_on() {
    let place = Place::new();
    place.models(&json!({"providers": {"odd": {
        "baseUrl": "http://127.0.0.1:9/v1", "api": "no-such-api", "apiKey": "k", "models": [{"id": "m"}],
    }}}));
    says(&place.run(&["-p", "What can you do?"]), 0, &["models.json", "line 1", "providers.odd.api", "`no-such-api`"]);
}

#[test]
fn a_mistake_in_a_file_is_told_before_what_it_leads_to() {
    let place = Place::new();
    place.agent_file("models.json", "{\n  \"providers\": {\n    \"local\": 7\n  }\n}\n");
    says(&place.run(&["-p", "--model", "local/zzz", "hi"]), 1, &["models.json", "line 3", "local/zzz"]);
}

#[test]
#[cfg(target_os = "linux")]
fn help_that_cannot_be_written_fails_the_command() {
    for word in ["--help", "--version"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let child = Place::new().command(&[word]).stdout(full).spawn().unwrap();
        says(&super::program::wait(child), 1, &["standard output"]);
    }
}

#[test]
fn a_broken_models_file_is_reported_with_its_line() {
    let place = Place::new();
    place.agent_file("models.json", "{\n  \"providers\": {\n    \"local\": 7\n  }\n}\n");
    let ran = place.run(&["-p", "What can you do?"]);
    says(&ran, 0, &["models.json", "line 3"]);
}

#[test]
fn broken_settings_are_reported_with_their_line_and_left_alone() {
    let place = Place::new();
    let text = "{\n  \"defaultModel\": \"m\",\n}\n";
    place.agent_file("settings.json", text);
    let ran = place.run(&["-p", "What can you do?"]);
    says(&ran, 0, &["settings.json"]);
    assert_eq!(fs::read_to_string(place.agent_dir().join("settings.json")).unwrap(), text);
}

#[test]
fn a_file_that_is_not_a_session_is_left_as_it_is() {
    let place = Place::new();
    place.write("notes.jsonl", "this is no session\n");
    let ran = place.run(&["-p", "--session", "./notes.jsonl", "hi"]);
    says(&ran, 1, &["notes.jsonl"]);
    assert_eq!(fs::read_to_string(place.cwd().join("notes.jsonl")).unwrap(), "this is no session\n");
}

#[test]
fn a_session_that_is_not_there_is_told_with_a_way_to_find_others() {
    let place = Place::new();
    place.write("folder/file", "");
    let missing = place.cwd().join("missing.jsonl");
    let parts = [missing.to_str().unwrap(), "no such file", "pi sessions list"];
    says(&place.run(&["-p", "--session", "./missing.jsonl", "hi"]), 1, &parts);
    says(&place.run(&["-p", "--fork", "./missing.jsonl", "hi"]), 1, &parts);
    says(&place.run(&["-p", "--session", "./folder", "hi"]), 1, &["work/folder", "a folder", "pi sessions list"]);
    says(&place.run(&["-p", "--session", "abc", "hi"]), 1, &["no session abc", "pi sessions list"]);
    for flag in ["--session", "--fork", "--session-id", "--session-dir"] {
        says(&place.run(&["-p", flag, "", "hi"]), 1, &[flag, "expected", "``"]);
    }
    assert!(place.session_files().is_empty());
}

#[test]
fn a_folder_that_cannot_hold_sessions_is_told_before_anything_is_asked() {
    let server = Server::start(Script::new(Wire::OpenAiCompletions).otherwise("hi"));
    let place = Place::with_server(&server, Wire::OpenAiCompletions);
    place.write("file", "content\n");
    let parts = ["work/file", "not a folder", "--session-dir", "--no-session"];
    for words in [
        &["-p", "--model", "local/m", "--session-dir", "file", "hi"] as &[&str],
        &["-p", "--model", "local/m", "--session-dir", "file", "-c", "hi"],
        &["-p", "--model", "local/m", "--session-dir", "file", "--session-id", "x", "hi"],
    ] {
        says(&place.run(words), 1, &parts);
    }
    let below = place.run(&["-p", "--model", "local/m", "--session-dir", "file/below", "hi"]);
    says(&below, 1, &["work/file/below", "--session-dir"]);
    let place = place.variable("PI_CODING_AGENT_SESSION_DIR", "file");
    says(&place.run(&["-p", "--model", "local/m", "hi"]), 1, &["PI_CODING_AGENT_SESSION_DIR", "not a folder"]);
    assert!(server.requests().is_empty());
    assert_eq!(fs::read_to_string(place.cwd().join("file")).unwrap(), "content\n");
}

/// As on a full disk, but for everybody who runs the tests: no file of this program may grow.
#[test]
#[cfg(unix)]
fn a_session_that_cannot_be_written_is_told_with_the_file_and_what_to_do() {
    let place = Place::new();
    assert_eq!(place.run(&["-p", "What can you do?"]).code, Some(0));
    let file = place.session_files().remove(0);
    let before = fs::read(&file).unwrap();
    let pi = place.command(&[]);
    let mut limited = std::process::Command::new("sh");
    limited
        .args(["-c", r#"trap '' XFSZ; ulimit -f 0; exec "$0" "$@""#])
        .arg(pi.get_program())
        .args(["-p", "--continue", "What is in this folder?"])
        .current_dir(place.cwd())
        .env_clear()
        .envs(pi.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ran = super::program::wait(limited.spawn().unwrap());

    says(&ran, 1, &[file.parent().unwrap().to_str().unwrap(), "make room there"]);
    assert!(!ran.stderr.contains("aborted"), "{ran:?}");
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn damage_of_a_session_is_a_warning_that_names_the_file() {
    let place = Place::new();
    assert_eq!(place.run(&["-p", "What can you do?"]).code, Some(0));
    let file = place.session_files().remove(0);
    let mut text = fs::read_to_string(&file).unwrap();
    text.push_str("{\"type\":\"message\",\"id\":\n{\"torn");
    fs::write(&file, text).unwrap();

    let ran = place.run(&["-p", "--continue", "What can you do?"]);

    says(&ran, 0, &["is damaged", "breaks off", "pi sessions repair"]);
    let warning = format!("Warning: {}: ", file.display());
    assert_eq!(ran.stderr.lines().filter(|line| line.starts_with(&warning)).count(), 2, "{ran:?}");
}

#[test]
fn nothing_that_a_terminal_obeys_comes_to_standard_error() {
    let place = Place::new();
    place.write("odd\u{1b}]0;x\u{7}\u{1b}[31m.jsonl", "no session\n{\"type\":\"other\"}\n");

    let ran = place.run(&["-p", "--session", "./odd\u{1b}]0;x\u{7}\u{1b}[31m.jsonl", "hi"]);

    says(&ran, 1, &["odd.jsonl"]);
    assert!(!ran.stderr.contains(['\u{1b}', '\u{7}']), "{ran:?}");
}

#[test]
fn a_file_argument_that_cannot_be_used_is_named() {
    let place = Place::new();
    place.write("latin1.txt", b"caf\xe9");
    says(&place.run(&["-p", "@latin1.txt", "hi"]), 1, &["@latin1.txt", "UTF-8"]);
    says(&place.run(&["-p", "@missing.txt", "hi"]), 1, &["@missing.txt", "names a file"]);
    says(&place.run(&["-p", "@.", "hi"]), 1, &["@.", "it is a folder"]);
}

#[test]
#[cfg(unix)]
fn what_is_no_regular_file_is_refused_at_once() {
    let place = Place::new();
    let at = |name: &str| place.cwd().join(name);
    assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    std::os::unix::fs::symlink(at("pipe"), at("link")).unwrap();
    for (name, what) in
        [("pipe", "a named pipe"), ("link", "a named pipe"), ("socket", "a socket"), ("/dev/zero", "a device")]
    {
        let parts = [name, what, "standard input"];
        says(&place.run(&["-p", &format!("@{name}"), "hi"]), 1, &parts);
    }
    // Nor does a pipe in the place of a file that is looked for make the program wait.
    says(&place.run(&["-p", "--session", "./pipe", "hi"]), 1, &["work/pipe", "not a regular file"]);
    for name in [".pi/settings.json", "AGENTS.md"] {
        fs::create_dir_all(at(".pi")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at(name)).status().unwrap().success());
    }
    let sessions = place.cwd().join("sessions");
    fs::create_dir(&sessions).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(sessions.join("a.jsonl")).status().unwrap().success());
    let ran = place.run(&["-p", "--approve", "--session-dir", "sessions", "-c", "What can you do?"]);
    says(&ran, 0, &["Warning: ", "settings.json", "a named pipe"]);
}

#[test]
fn wrong_usage_is_explained() {
    let place = Place::new();
    says(&place.run(&["--frobnicate"]), 1, &["--frobnicate", "--help"]);
    says(&place.run(&["-zz"]), 1, &["-zz"]);
    says(&place.run(&["--model", "nobody/nothing", "-p", "hi"]), 1, &["nobody/nothing"]);
    says(&place.run(&["-p", "--continue", "--fork", "x", "hi"]), 1, &["--fork", "--continue"]);
    says(&place.run(&["--tools", "read,+bash", "-p", "hi"]), 1, &["read", "+bash"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_behind_standard_output_fails_the_command() {
    let place = Place::new();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = place.command(&["-p", "What can you do?"]).stdout(full).spawn().unwrap();
    let ran = super::program::wait(child);
    says(&ran, 1, &["standard output"]);
}

#[test]
#[cfg(unix)]
fn a_termination_signal_ends_the_run_in_order() {
    let gate = fake_llm::Gate::new();
    let answer = Answer::new().text("thinking").wait_for(&gate).text(" done");
    let server = Server::start(Script::new(Wire::OpenAiCompletions).reply(answer));
    let place = Place::with_server(&server, Wire::OpenAiCompletions);
    let child = place.command(&["-p", "--model", "local/m", "hi"]).spawn().unwrap();
    while server.requests().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let ran = super::program::wait(child);
    assert_eq!(ran.code, Some(143), "{ran:?}");
    assert!(place.session_lines().iter().any(|line| line["message"]["role"] == "user"));
}
