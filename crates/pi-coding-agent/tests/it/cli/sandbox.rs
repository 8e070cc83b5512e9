//! `--sandbox` and the `sandbox` setting.

#![cfg(target_os = "linux")]

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

/// On a kernel without Landlock or without seccomp: here one whose system calls for them are refused, as an old one's
/// would be.
#[test]
fn where_the_kernel_cannot_do_it_nothing_runs_without_it() {
    if let Err(unavailable) = Sandbox::check() {
        eprintln!("nothing to take away, there is no sandbox here: {unavailable}");
        return;
    }
    for (missing, name) in [(libc::SYS_landlock_create_ruleset, "Landlock"), (libc::SYS_seccomp, "seccomp")] {
        let server = server();
        let place = place(&server);
        let child = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                refuse(missing);
                // What this thread starts has no more than it has itself.
                place.command(&["--sandbox", "-p", "--model", "local/m", "go"]).spawn().unwrap()
            });
            thread.join().unwrap()
        });
        let ran = super::program::wait(child);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("The sandbox is not available") && ran.stderr.contains(name), "{ran:?}");
        assert!(!place.cwd().join("inside").exists());
        assert!(server.requests().is_empty(), "a model was asked although nothing can run");
    }
}

/// Makes a system call one that the kernel does not have, for this thread and what it starts.
fn refuse(call: i64) {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    let missing = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new([(call, Vec::new())].into(), SeccompAction::Allow, missing, architecture).unwrap();
    let program = BpfProgram::try_from(filter).unwrap();
    seccompiler::apply_filter(&program).unwrap();
}
