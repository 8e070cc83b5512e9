#![cfg(unix)]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pi_agent_core::{Agent, AgentEvent};
use pi_ai::CancellationToken;
use pi_ai::faux::{FauxProvider, FauxReply};
use pi_coding_agent::tools::builtin::BuiltinTool::Bash;
use pi_coding_agent::tools::session_facts::{FactsSource, ModelFacts, ModelImages, SessionFacts};
use pi_coding_agent::tools::user_bash::run_user_command;
use pi_coding_agent::workspace::{ProcessOutcome, ShellCommand};
use serde_json::json;

use super::Project;

/// Whether a process that a command named by its id still runs.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Waits until the processes are gone: the kernel takes a moment.
fn gone(pid: &str) -> bool {
    (0..100).any(|_| {
        let gone = !runs(pid);
        if !gone {
            std::thread::sleep(Duration::from_millis(20));
        }
        gone
    })
}

#[tokio::test]
async fn a_background_process_does_not_keep_the_call_and_lives_on() {
    let project = Project::new();
    let started = Instant::now();
    let text = project.text(Bash, json!({"command": "sleep 60 & echo $! > pid; echo done"})).await;
    assert_eq!(text, "done\n");
    assert!(started.elapsed() < Duration::from_secs(5));
    let pid = String::from_utf8(project.content("pid")).unwrap();
    assert!(runs(&pid));
    std::process::Command::new("kill").arg(pid.trim()).status().unwrap();
}

#[tokio::test]
async fn a_background_process_that_writes_does_not_die_of_a_closed_pipe() {
    let project = Project::new();
    let command = "(sleep 1; echo late; echo alive > survived) & echo done";
    assert_eq!(project.text(Bash, json!({"command": command})).await, "done\n");
    let survived = project.path().join("survived");
    for _ in 0..250 {
        if survived.exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the background process ended early");
}

#[tokio::test]
async fn output_that_follows_the_end_of_the_shell_closely_is_not_lost() {
    let project = Project::new();
    let text = project.text(Bash, json!({"command": "(sleep 0.05; seq 1 500; echo end) & echo done"})).await;
    assert!(text.starts_with("done\n1\n") && text.ends_with("500\nend\n"), "{text}");
}

#[tokio::test]
async fn a_busy_background_process_does_not_keep_the_call_for_ever() {
    let project = Project::new();
    let command = "(while :; do echo x; sleep 0.02; done) & echo $! > pid; echo done";
    let text = project.text(Bash, json!({"command": command})).await;
    // The first lines of both may come in either order.
    assert!(text.contains("done\n"), "{text}");
    let pid = String::from_utf8(project.content("pid")).unwrap();
    std::process::Command::new("kill").arg(pid.trim()).status().unwrap();
}

#[tokio::test]
async fn there_is_nothing_to_read_and_no_terminal() {
    let project = Project::new();
    let command = "cat; read x || echo none; (: < /dev/tty) 2>/dev/null || echo no terminal; echo end";
    assert_eq!(project.text(Bash, json!({"command": command})).await, "none\nno terminal\nend\n");
}

#[tokio::test]
async fn a_command_that_ignores_the_polite_signal_is_ended_all_the_same() {
    let project = Project::new();
    let command = "trap '' TERM; echo $$ > pid; echo start; sleep 60; sleep 60";
    let error = project.error(Bash, json!({"command": command, "timeout": 1})).await;
    assert_eq!(error, "start\n\n\nCommand timed out after 1 seconds");
    assert!(gone(&String::from_utf8(project.content("pid")).unwrap()));
}

#[tokio::test]
async fn a_command_can_clean_up_when_its_time_is_over() {
    let project = Project::new();
    let command = "trap 'echo cleaned; exit' TERM; echo start; sleep 60 & wait";
    let error = project.error(Bash, json!({"command": command, "timeout": 1})).await;
    assert_eq!(error, "start\ncleaned\n\n\nCommand timed out after 1 seconds");
}

#[tokio::test]
async fn output_before_the_timeout_is_kept_and_orphans_are_ended() {
    let project = Project::new();
    let command = "echo before; (sleep 61 & echo $! > pid); sleep 62";
    let error = project.error(Bash, json!({"command": command, "timeout": 1})).await;
    assert_eq!(error, "before\n\n\nCommand timed out after 1 seconds");
    assert!(gone(&String::from_utf8(project.content("pid")).unwrap()));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn jobs_in_groups_of_their_own_are_ended_with_the_command() {
    let project = Project::new();
    let command = "set -m; (trap '' TERM; sleep 63; sleep 63) > /dev/null 2>&1 & echo $! > pid; wait";
    let error = project.error(Bash, json!({"command": command, "timeout": 1})).await;
    assert_eq!(error, "Command timed out after 1 seconds");
    assert!(gone(&String::from_utf8(project.content("pid")).unwrap()));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_left_the_session_is_named() {
    let project = Project::new();
    let command = "setsid sh -c 'echo $$ > pid; sleep 64; true' & sleep 65";
    let started = Instant::now();
    let error = project.error(Bash, json!({"command": command, "timeout": 1})).await;
    let pid = String::from_utf8(project.content("pid")).unwrap();
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(error.starts_with("Command timed out after 1 seconds. Still running"), "{error}");
    assert!(error.contains(&format!("sh (pid {})", pid.trim())), "{error}");
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", pid.trim())).unwrap_or_default();
    std::process::Command::new("kill").arg("-KILL").arg(pid.trim()).args(children.split_whitespace()).status().unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_left_the_session_and_writes_elsewhere_is_named_too() {
    let project = Project::new();
    let command = r#"setsid bash -c "trap '' HUP; echo \$\$ > pid; exec sleep 69" >/dev/null 2>&1 & sleep 70"#;
    let error = project.error(Bash, json!({"command": command, "timeout": 1})).await;
    let pid = String::from_utf8(project.content("pid")).unwrap();
    assert!(runs(&pid));
    assert!(error.contains(&format!("sleep (pid {})", pid.trim())), "{error}");
    assert_eq!(error.matches("(pid ").count(), 1, "{error}");
    std::process::Command::new("kill").arg("-KILL").arg(pid.trim()).status().unwrap();
}

#[tokio::test]
async fn an_abort_ends_everything_and_keeps_the_output() {
    let project = Project::new();
    let signal = CancellationToken::new();
    let abort = signal.clone();
    let path = project.path().join("pid");
    tokio::spawn(async move {
        while !path.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        abort.cancel();
    });
    let command = "echo so far; echo $$ > pid; sleep 66";
    let error = project.call_with(Bash, json!({"command": command}), signal).await.unwrap_err();
    assert_eq!(error, "so far\n\n\nCommand aborted");
    assert!(gone(&String::from_utf8(project.content("pid")).unwrap()));
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_its_command() {
    let project = Project::new();
    let call = project.call(Bash, json!({"command": "echo $$ > pid; sleep 67"}));
    let path = project.path().join("pid");
    let started = async {
        while std::fs::read(&path).unwrap_or_default().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        _ = call => panic!("it does not end by itself"),
        () = started => {}
    }
    assert!(gone(&String::from_utf8(project.content("pid")).unwrap()));
}

#[tokio::test]
async fn control_sequences_and_odd_bytes_do_not_reach_the_model() {
    let project = Project::new();
    let command = r"printf 'ok \377\376 \033[31mred\033[0m \r50%%\r100%%\n'";
    let text = project.text(Bash, json!({"command": command})).await;
    assert_eq!(text, "ok \u{fffd}\u{fffd} red 50%100%\n");
    let text = project.text(Bash, json!({"command": r"printf 'a\0b\n'"})).await;
    assert!(text.starts_with("ab\n\n\n[") && text.contains("NUL"), "{text}");
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/control-sequences.txt");
    let text = project.text(Bash, json!({"command": format!("cat '{sample}'")})).await;
    assert!(!text.chars().any(|character| character.is_control() && character != '\n'), "{text:?}");
    assert!(text.contains("clip") && text.contains("link") && text.contains("dcs"), "{text:?}");
}

#[tokio::test]
async fn a_folder_that_is_gone_is_named_and_can_be_made_again() {
    let project = Project::new();
    let text = project.call(Bash, json!({"command": "rm -r \"$PWD\"; echo removed"})).await.unwrap().to_text();
    assert!(text.contains("removed"));
    let error = project.error(Bash, json!({"command": "echo hi"})).await;
    assert!(error.contains(&project.path().display().to_string()), "{error}");
    std::fs::create_dir(project.path()).unwrap();
    assert_eq!(project.text(Bash, json!({"command": "echo hi"})).await, "hi\n");
}

#[tokio::test]
async fn signals_are_named() {
    let project = Project::new();
    let killed = project.call(Bash, json!({"command": "kill -9 $$"})).await.unwrap();
    assert_eq!(killed.is_error, Some(true));
    assert!(killed.to_text().contains("137") && killed.to_text().contains("SIGKILL"), "{}", killed.to_text());
    let child = project.text(Bash, json!({"command": "sh -c 'kill -SEGV $$'; exit $?"})).await;
    assert!(child.contains("139") && child.contains("SIGSEGV"), "{child}");
}

#[tokio::test]
async fn a_control_string_that_never_ends_does_not_swallow_the_output() {
    let project = Project::new();
    let text = project.text(Bash, json!({"command": r"printf '\033Pnever ends\n'; seq 2; echo after"})).await;
    assert_eq!(text, "never ends\n1\n2\nafter\n");
}

/// What listeners of a run see while the command runs, each time the output so far.
#[tokio::test]
async fn what_a_command_writes_is_shown_while_it_runs() {
    let project = Project::new();
    let command = "echo one; until [ -e go ]; do sleep 0.02; done; echo two; sleep 0.3; echo three";
    let call = FauxReply::tool_call("bash", json!({"command": command}));
    let model = FauxProvider::new([call, FauxReply::text("done")]);
    let agent = Agent::builder(model).tools([Bash.build(&project.setup)]).build();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let (log, go) = (seen.clone(), project.path().join("go"));
    agent
        .subscribe(async move |event: AgentEvent, _| {
            if let AgentEvent::ToolExecutionUpdate { partial, .. } = event {
                let text = partial.to_text();
                if text == "one\n" {
                    // It goes on only when its first line was seen: the update came while it ran.
                    std::fs::write(&go, "").unwrap();
                }
                log.lock().unwrap().push(text);
            }
        })
        .detach();
    let reply = tokio::time::timeout(super::DEADLINE, agent.prompt("go")).await.expect("it ends").unwrap();
    assert_eq!(reply.messages()[2].as_tool_result().map(|result| result.is_error), Some(false));
    let mut seen = seen.lock().unwrap().clone();
    seen.dedup();
    assert_eq!(seen, ["", "one\n", "one\ntwo\n", "one\ntwo\nthree\n"]);
}

/// Whoever does not take the output does not keep a command from meeting its deadline, or an abort.
#[tokio::test]
async fn output_that_nobody_takes_does_not_hold_up_the_end() {
    let project = Project::new();
    let processes = project.workspace().processes();
    let run = |timeout: Option<u64>, cancel: CancellationToken| {
        let command = ShellCommand {
            script: "yes".to_owned(),
            cwd: project.path().to_owned(),
            variables: Vec::new(),
            timeout: timeout.map(Duration::from_millis),
        };
        // The receiver is there, and full.
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        async move {
            let end = tokio::time::timeout(super::DEADLINE, processes.run(command, sender, cancel)).await;
            drop(receiver);
            end.expect("it returns").unwrap().outcome
        }
    };
    assert_eq!(run(Some(300), CancellationToken::new()).await, ProcessOutcome::TimedOut);
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        later.cancel();
    });
    assert_eq!(run(None, cancel).await, ProcessOutcome::Aborted);
}

#[tokio::test]
async fn a_program_that_quits_at_once_can_end_every_command() {
    let project = Project::new();
    let processes = project.workspace().processes().clone();
    let path = project.path().join("pid");
    let kill = async move {
        while std::fs::read(&path).unwrap_or_default().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        processes.kill_all();
    };
    let command = json!({"command": "trap '' TERM; echo $$ > pid; sleep 71; sleep 72"});
    let (ended, ()) = tokio::join!(project.call(Bash, command), kill);
    assert!(ended.unwrap().to_text().contains("SIGKILL"));
    assert!(gone(&String::from_utf8(project.content("pid")).unwrap()));
    // What is begun afterwards does not run on either.
    let late = project.call(Bash, json!({"command": "sleep 73; echo late > late"})).await.unwrap();
    assert!(late.to_text().contains("SIGKILL"), "{}", late.to_text());
    assert!(!project.path().join("late").exists());
}

#[tokio::test]
async fn timeouts_out_of_range_are_refused() {
    let project = Project::new();
    for timeout in [json!(0), json!(-1), json!(2_147_483.648), json!(1e300)] {
        let error = project.error(Bash, json!({"command": "true", "timeout": timeout})).await;
        assert!(error.contains("2147483.647"), "{error}");
    }
}

#[tokio::test]
async fn one_huge_line_shows_its_end_and_its_size() {
    let project = Project::new();
    let output = project.call(Bash, json!({"command": "head -c 300000 /dev/zero | tr '\\0' y; echo"})).await.unwrap();
    let text = output.to_text();
    let (body, note) = text.split_once("\n\n").unwrap();
    assert_eq!(body.len(), 51_200);
    assert!(note.contains("50.0KB of line 1") && note.contains("293.0KB"), "{note}");
    let details = output.details.unwrap();
    assert_eq!(details["truncation"]["lastLinePartial"], true);
    let path = details["fullOutputPath"].as_str().unwrap();
    assert_eq!(std::fs::metadata(path).unwrap().len(), 300_001);
}

#[tokio::test]
async fn the_full_output_is_private_and_raw() {
    use std::os::unix::fs::PermissionsExt as _;

    let project = Project::new();
    let command = r"for i in $(seq 3000); do printf '\033[1m%d\033[0m\r\n' $i; done";
    let output = project.call(Bash, json!({"command": command})).await.unwrap();
    let details = output.details.unwrap();
    let path = std::path::Path::new(details["fullOutputPath"].as_str().unwrap());
    assert!(path.starts_with(project.temporary.path()));
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read(path).unwrap().starts_with(b"\x1b[1m1\x1b[0m\r\n"));
    assert!(output.structured_content.unwrap()["output"].as_str().unwrap().starts_with("1\n2\n"));
}

#[tokio::test]
async fn a_command_learns_about_its_session_and_runs_behind_its_prefix() {
    let mut project = Project::new();
    project.setup.bash.command_prefix = Some("greeting=hello".to_owned());
    project.setup.bash.facts = FactsSource::new(|| SessionFacts {
        session_id: Some("s1".to_owned()),
        model: Some(ModelFacts { provider: "p".to_owned(), id: "m".to_owned(), images: ModelImages::NotTaken }),
        ..SessionFacts::default()
    });
    let command = "echo $greeting $PI_SESSION_ID $PI_PROVIDER $PI_MODEL ${PI_SESSION_FILE-none}";
    assert_eq!(project.text(Bash, json!({"command": command})).await, "hello s1 p m none\n");
}

#[tokio::test]
async fn a_persons_command_keeps_what_it_wrote_when_it_is_aborted() {
    let project = Project::new();
    let signal = CancellationToken::new();
    let mut seen = String::new();
    let abort = signal.clone();
    let result =
        run_user_command(project.workspace(), "printf '\\033[1mone\\r\\n'; sleep 68", None, signal, &mut |text| {
            seen.push_str(text);
            abort.cancel();
        })
        .await
        .unwrap();
    assert_eq!(seen, "one\n");
    assert_eq!(
        serde_json::to_value(result).unwrap(),
        json!({"output": "one\n", "cancelled": true, "truncated": false})
    );
    let result = run_user_command(project.workspace(), "exit 3", None, CancellationToken::new(), &mut |_| {}).await;
    assert_eq!(result.unwrap().exit_code, Some(3));
}
