//! How a run ends that is told to end.

#![cfg(unix)]

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::Command,
    time::{Duration, Instant},
};

use fake_llm::{Answer, Script, Server, Wire};
use serde_json::json;

use super::program::Place;

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

fn runs(pid: &str) -> bool {
    let stat = Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap();
    let stat = String::from_utf8(stat.stdout).unwrap();
    !stat.trim().is_empty() && !stat.trim().starts_with('Z')
}

#[test]
fn a_second_signal_ends_commands_that_do_not_want_to_end() {
    let command = "trap '' TERM INT HUP; sleep 90 & echo $! > child; echo $$ > pid; wait; sleep 91; sleep 92";
    let call = Answer::new().tool_call("bash", json!({"command": command}));
    let server = Server::start(Script::new(Wire::OpenAiCompletions).reply(call));
    let place = Place::with_server(&server, Wire::OpenAiCompletions);
    let mut child = place.command(&["-p", "--model", "local/m", "hi"]).spawn().unwrap();
    let begun = Instant::now();
    let written = |name: &str| std::fs::read_to_string(place.cwd().join(name)).unwrap_or_default().trim().to_owned();
    while written("pid").is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the command does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }

    signal("-INT", child.id());
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("second signal"), "{line}");
    signal("-TERM", child.id());

    let code = child.wait().unwrap().code();
    // Had the second one come after the end that the first one asked for, it would be 130.
    assert!(matches!(code, Some(143 | 130)), "{code:?}");
    let gone = |name: &str| {
        (0..250).any(|_| {
            let pid = written(name);
            std::thread::sleep(Duration::from_millis(20));
            !runs(&pid)
        })
    };
    assert!(gone("pid") && gone("child"));
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("panicked"), "{rest}");
}
