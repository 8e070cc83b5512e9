//! A gate that is a program blocks when it says so, and when it fails in any way.

use serde_json::json;

use super::{Folder, deploys, result, until};

fn gate(arms: &str) -> Folder {
    Folder::new(json!({"events": {"tool_call": {"timeoutMs": 700}}, "restart": {"policy": "never"}}), arms)
}

#[tokio::test]
async fn a_call_is_blocked_with_the_programs_reason_and_others_run() {
    let folder = gate(
        r#"event/tool_call) if [ -e open ]; then reply "$id" '{}'; else reply "$id" '{"block":true,"reason":"Not on a Friday."}'; fi;;"#,
    );
    let fixture = folder.session(deploys(2)).await;
    fixture.session.prompt("deploy it").await.unwrap();
    assert_eq!(result(&fixture, 1), "toolResult: Not on a Friday.");
    std::fs::write(folder.file("open"), "").unwrap();
    fixture.session.prompt("deploy it").await.unwrap();
    assert_eq!(result(&fixture, 3), "toolResult: deploy done");
    assert!(fixture.failures().is_empty(), "{:?}", fixture.failures());
    assert_eq!(folder.starts(), 1);
    fixture.session.dispose().await.unwrap();
}

#[tokio::test]
async fn a_gate_blocks_however_its_program_fails() {
    let cases = [
        ("it crashes", "event/tool_call) echo 'out of ideas' >&2; exit 3;;", "exit code 3"),
        ("it is killed", "event/tool_call) kill -9 $$;;", "signal 9"),
        ("it hangs", "event/tool_call) sleep 60;;", "did not answer within 700 ms"),
        ("it says nothing", "event/tool_call) ;;", "did not answer within 700 ms"),
        ("it closes its output", "event/tool_call) exec 1>&-; sleep 60;;", "closed its standard output"),
        ("it answers nonsense", r#"event/tool_call) reply "$id" '{"block":"perhaps"}';;"#, "`block` cannot be used"),
        ("it misspells the block", r#"event/tool_call) reply "$id" '{"blocked":true}';;"#, "`blocked` is no part"),
        ("it answers with a text", r#"event/tool_call) reply "$id" '"no"';;"#, "not an object"),
        (
            "it refuses",
            r#"event/tool_call) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"no mood"}}\n' "$id";;"#,
            "no mood",
        ),
        ("it does not start", "initialize) exit 1;;", "exit code 1"),
        ("it refuses to begin", r#"initialize) reply "$id" '{"protocol":9}';;"#, "version 9 of the protocol"),
    ];
    for (how, arms, expected) in cases {
        let folder = gate(arms);
        let fixture = folder.session(deploys(1)).await;
        fixture.session.prompt("deploy it").await.unwrap();
        let result = result(&fixture, 1);
        assert!(result.contains("`helper`") && result.contains(expected), "{how}: {result}");
        assert!(!result.contains("deploy done"), "{how}: {result}");
        let failures = fixture.failures();
        assert!(failures.iter().any(|failure| failure.starts_with("helper, ")), "{how}: {failures:?}");
        fixture.session.dispose().await.unwrap();
    }
}

#[tokio::test]
async fn a_gate_that_cannot_be_found_blocks_and_says_what_is_missing() {
    for (command, expected) in
        [(json!(["no-such-program"]), "`no-such-program` is in no directory of PATH"), (json!(["./gone"]), "gone")]
    {
        let folder = Folder::new(json!({"command": command, "events": {"tool_call": {}}}), "");
        let fixture = folder.session(deploys(1)).await;
        fixture.session.prompt("deploy it").await.unwrap();
        let result = result(&fixture, 1);
        assert!(result.contains(expected), "{result}");
    }
}

#[tokio::test]
async fn a_gate_that_was_given_up_keeps_blocking_and_observers_fall_silent() {
    let events = json!({"tool_call": {}, "turn_start": {}, "tool_result": {}});
    let folder = Folder::new(json!({"events": events, "restart": {"policy": "never"}}), "event/turn_start) exit 4;;");
    let fixture = folder.session(deploys(2)).await;
    fixture.session.prompt("deploy it").await.unwrap();
    fixture.session.prompt("deploy it").await.unwrap();
    for request in [1, 3] {
        assert!(result(&fixture, request).contains("not started any more"), "{}", result(&fixture, request));
    }
    until("the notice", || fixture.failures().iter().any(|failure| failure.contains("helper, program: "))).await;
    let failures = fixture.failures();
    let notices: Vec<_> = failures.iter().filter(|failure| failure.starts_with("helper, program: ")).collect();
    assert_eq!(notices.len(), 1, "{failures:?}");
    assert!(notices[0].contains("exit code 4") && notices[0].contains("never started again"), "{notices:?}");
    assert_eq!(failures.iter().filter(|failure| failure.contains("turn_start")).count(), 1, "{failures:?}");
    assert_eq!(folder.starts(), 1);
}

#[tokio::test]
async fn the_clock_of_a_gate_stands_while_its_program_waits_for_pi() {
    let folder = gate(
        r#"event/tool_call) call=$id; ask q exec '{"program":"sleep","args":["1"]}';;
           answer) reply "$call" '{}';;"#,
    );
    let fixture = folder.session(deploys(1)).await;
    fixture.session.prompt("deploy it").await.unwrap();
    assert_eq!(result(&fixture, 1), "toolResult: deploy done");
    assert!(fixture.failures().is_empty(), "{:?}", fixture.failures());
}

#[tokio::test]
async fn a_gate_whose_program_asks_on_and_on_runs_out_of_time_all_the_same() {
    let folder = gate(
        r#"event/tool_call) while :; do ask q exec '{"program":"sleep","args":["0.2"]}'; sleep 0.4; done;;
           answer) ;;"#,
    );
    let fixture = folder.session(deploys(1)).await;
    let prompted = tokio::time::timeout(std::time::Duration::from_secs(10), fixture.session.prompt("deploy it")).await;
    prompted.expect("the gate ends").unwrap();
    assert!(result(&fixture, 1).contains("did not answer within 700 ms"), "{}", result(&fixture, 1));
}

#[tokio::test]
async fn a_program_that_cannot_decide_about_trust_does_not_trust() {
    use pi_coding_agent::extensions::{
        ExtensionRunner,
        event::{ProjectTrustEvent, Remember, TrustDecision},
    };
    for (arms, expected) in [
        (
            r#"event/project_trust) reply "$id" '{"trusted":"yes","remember":true}';;"#,
            TrustDecision::Trust(Remember::Always),
        ),
        ("event/project_trust) exit 1;;", TrustDecision::Distrust(Remember::Once)),
        ("event/project_trust) ;;", TrustDecision::Distrust(Remember::Once)),
    ] {
        let folder = Folder::new(json!({"events": {"project_trust": {"timeoutMs": 200}}}), arms);
        let runner = ExtensionRunner::new(vec![std::sync::Arc::new(folder.extension())], Default::default());
        runner.load().await;
        assert_eq!(runner.project_trust(ProjectTrustEvent::new("/somewhere")).await, expected, "{arms}");
        runner.close().await;
        super::until("its end", || !super::runs(&folder.file("pid"))).await;
    }
}
