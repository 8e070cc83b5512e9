//! A program begins with what is used of it, and never outlives its session.

use pi_ai::faux::FauxReply;
use serde_json::json;

use super::{Folder, deploys, result, runs, until};

fn listening(arms: &str) -> Folder {
    Folder::new(json!({"events": {"session_start": {}}, "timeouts": {"shutdownMs": 300}}), arms)
}

#[tokio::test]
async fn a_program_is_told_that_its_session_ends_and_ends_itself() {
    let folder = listening("");
    let fixture = folder.session([]).await;
    assert!(runs(&folder.file("pid")));
    fixture.session.clone().dispose().await.unwrap();
    assert_eq!(folder.methods(), ["initialize", "event/session_start", "shutdown", "closed"]);
    until("its end", || !runs(&folder.file("pid"))).await;
    assert!(fixture.failures().is_empty(), "{:?}", fixture.failures());
}

#[tokio::test]
async fn one_that_will_not_end_is_ended_with_all_that_it_started() {
    for stubborn in [
        "shutdown) ;;",
        "shutdown) reply \"$id\" null; sleep 300;;",
        "initialize) trap '' TERM HUP INT; sleep 300 & echo $! > child; reply \"$id\" '{}';; shutdown) exec 0</dev/null; while :; do sleep 1; done;;",
    ] {
        let folder = listening(stubborn);
        let fixture = folder.session([]).await;
        fixture.session.dispose().await.unwrap();
        until("its end", || !runs(&folder.file("pid"))).await;
        if folder.file("child").exists() {
            until("the child's end", || !runs(&folder.file("child"))).await;
        }
    }
}

#[tokio::test]
async fn a_session_that_is_only_dropped_leaves_no_program_behind() {
    let folder = listening("initialize) sleep 300 & echo $! > child; reply \"$id\" '{}';;");
    let fixture = folder.session([]).await;
    assert!(runs(&folder.file("pid")));
    drop(fixture);
    until("the end of both", || !runs(&folder.file("pid")) && !runs(&folder.file("child"))).await;
}

#[tokio::test]
async fn a_dropped_session_does_not_wait_for_what_its_program_asked() {
    let folder =
        listening("event/session_start) ask 1 exec '{\"program\":\"sleep\",\"args\":[\"300\"]}'; reply \"$id\" null;;");
    let fixture = folder.session([]).await;
    drop(fixture);
    until("its end", || !runs(&folder.file("pid"))).await;
}

#[tokio::test]
async fn loading_again_reads_the_manifest_and_starts_the_program_anew() {
    let folder = listening("event/tool_call) reply \"$id\" '{\"block\":true,\"reason\":\"not now\"}';;");
    let fixture = folder.session(deploys(2)).await;
    fixture.session.prompt("deploy it").await.unwrap();
    assert_eq!(result(&fixture, 1), "toolResult: deploy done");
    folder.manifest(json!({"events": {"session_start": {}, "tool_call": {}}}));
    let first = folder.text("pid");
    fixture.session.reload().await;
    assert_ne!(folder.text("pid"), first);
    fixture.session.prompt("deploy it").await.unwrap();
    assert_eq!(result(&fixture, 3), "toolResult: not now");
    assert_eq!(folder.starts(), 2);
    // A manifest that is wrong by now is reported, and the extension left out.
    std::fs::write(folder.file("extension.json"), "{\n\"name\": }").unwrap();
    fixture.session.reload().await;
    let failures = fixture.failures();
    assert!(failures.iter().any(|failure| failure.contains("extension.json:2")), "{failures:?}");
    until("its end", || !runs(&folder.file("pid"))).await;
}

#[tokio::test]
async fn a_program_may_have_the_extensions_loaded_again_from_its_command() {
    let folder = Folder::new(json!({"commands": {"again": {}}}), "command/run) ask 1 session/reload '{}';;");
    let fixture = folder.session([FauxReply::text("Hello.")]).await;
    fixture.session.prompt("/again").await.unwrap();
    assert!(fixture.failures().is_empty(), "{:?}", fixture.failures());
    fixture.session.prompt("hello").await.unwrap();
    assert_eq!(folder.starts(), 1);
    until("its end", || !runs(&folder.file("pid"))).await;
}

#[tokio::test]
async fn one_that_quits_at_once_leaves_no_program_behind() {
    let folder = listening("initialize) trap '' TERM HUP INT; sleep 300 & echo $! > child; reply \"$id\" '{}';;");
    let fixture = folder.session([]).await;
    // As a program does that is signalled twice.
    fixture.session.kill_commands();
    until("the end of both", || !runs(&folder.file("pid")) && !runs(&folder.file("child"))).await;
}

#[tokio::test]
async fn two_sessions_have_a_program_each() {
    let folder = listening("");
    let one = folder.session([]).await;
    let first = folder.text("pid");
    let two = folder.session([]).await;
    assert_ne!(folder.text("pid"), first);
    two.session.dispose().await.unwrap();
    std::fs::write(folder.file("pid"), first).unwrap();
    assert!(runs(&folder.file("pid")));
    one.session.dispose().await.unwrap();
    until("its end", || !runs(&folder.file("pid"))).await;
}
