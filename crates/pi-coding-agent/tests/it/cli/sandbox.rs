//! `--sandbox` and the `sandbox` setting.

use fake_llm::{Answer, Script, Server, Wire};
use pi_coding_agent::workspace::local::Sandbox;
use serde_json::json;

use super::program::{Place, Ran};

/// Runs a prompt whose answer writes inside and outside of the working folder; whether each was written.
fn run(place: &Place, words: &[&str]) -> (Ran, bool, bool) {
    let (inside, outside) = (place.cwd().join("inside"), place.cwd().with_file_name("outside"));
    let ran = place.run(&[words, &["-p", "--model", "local/m", "go"]].concat());
    (ran, inside.exists(), outside.exists())
}

fn server() -> Server {
    let command = "echo x > inside; echo x > ../outside";
    Server::start(
        Script::new(Wire::OpenAiCompletions)
            .reply(Answer::new().tool_call("bash", json!({"command": command})))
            .reply("done"),
    )
}

fn place(server: &Server) -> Place {
    let place = Place::with_server(server, Wire::OpenAiCompletions);
    // The usual folder for temporary files would be around all of this.
    let temporary = place.cwd().with_file_name("tmp");
    std::fs::create_dir(&temporary).unwrap();
    place.variable("TMPDIR", &temporary.display().to_string())
}

#[test]
fn without_it_commands_write_where_the_user_may() {
    let server = server();
    let (ran, inside, outside) = run(&place(&server), &[]);
    assert_eq!((ran.code, inside, outside), (Some(0), true, true), "{ran:?}");
}

#[test]
fn with_it_commands_write_only_below_the_working_folder() {
    for (words, settings) in
        [(&["--sandbox"][..], "{}"), (&["--sandbox-network"][..], "{}"), (&[][..], r#"{"sandbox": "on"}"#)]
    {
        let server = server();
        let place = place(&server);
        place.agent_file("settings.json", settings);
        let (ran, inside, outside) = run(&place, words);
        if let Err(unavailable) = Sandbox::check() {
            eprintln!("only the refusal is tested, there is no sandbox here: {unavailable}");
            assert_ne!(ran.code, Some(0), "{ran:?}");
            assert!(ran.stderr.contains("sandbox"), "{ran:?}");
            assert_eq!((inside, outside), (false, false));
            continue;
        }
        assert_eq!((ran.code, inside, outside), (Some(0), true, false), "{words:?} {ran:?}");
    }
}
