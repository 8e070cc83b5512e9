//! What a program does wrong costs itself, and nothing else.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Folder, deploys, result, runs, until};

#[tokio::test]
async fn a_program_that_crashed_is_started_again_when_it_is_needed() {
    let restart = json!({"backOffMs": 50});
    let folder = Folder::new(
        json!({"events": {"tool_call": {}}, "restart": restart}),
        "event/tool_call) if [ ! -e crashed ]; then touch crashed; echo 'lost my head' >&2; exit 7; fi; reply \"$id\" '{}';;",
    );
    let fixture = folder.session(deploys(2)).await;
    fixture.session.prompt("deploy it").await.unwrap();
    assert!(result(&fixture, 1).contains("exit code 7"), "{}", result(&fixture, 1));
    fixture.session.prompt("deploy it").await.unwrap();
    assert_eq!(result(&fixture, 3), "toolResult: deploy done");
    assert_eq!(folder.starts(), 2);
    assert!(folder.text("initialize").contains("\"restarted\":true"), "{}", folder.text("initialize"));
    let notice = fixture.failures().into_iter().find(|failure| failure.starts_with("helper, program: ")).unwrap();
    assert!(notice.contains("lost my head") && notice.contains("started again when it is needed (1 of 3)"), "{notice}");
    fixture.session.dispose().await.unwrap();
}

#[tokio::test]
async fn one_that_crashes_too_often_is_given_up() {
    let restart = json!({"max": 2, "backOffMs": 0});
    let folder = Folder::new(json!({"events": {"tool_call": {}}, "restart": restart}), "event/tool_call) exit 1;;");
    let fixture = folder.session(deploys(5)).await;
    for _ in 0..5 {
        fixture.session.prompt("deploy it").await.unwrap();
    }
    // The first start and two more.
    assert_eq!(folder.starts(), 3);
    assert!(result(&fixture, 9).contains("not started any more"), "{}", result(&fixture, 9));
}

#[tokio::test]
async fn one_that_ends_by_itself_in_peace_is_started_again_without_a_word() {
    let folder = Folder::new(json!({"events": {"tool_call": {}}}), "event/tool_call) reply \"$id\" '{}'; exit 0;;");
    let fixture = folder.session(deploys(2)).await;
    for request in [1, 3] {
        fixture.session.prompt("deploy it").await.unwrap();
        assert_eq!(result(&fixture, request), "toolResult: deploy done");
        until("the end", || !runs(&folder.file("pid"))).await;
    }
    assert!(fixture.failures().is_empty(), "{:?}", fixture.failures());
    assert_eq!(folder.starts(), 2);
}

#[tokio::test]
async fn lines_that_are_no_messages_are_passed_over_and_said_once() {
    let folder = Folder::new(
        json!({"events": {"tool_call": {}}}),
        r#"event/tool_call) echo 'checking …'; echo 'still checking'; printf '\377\376\n'; echo '[1]'; echo '{"id":3}';
           reply 999 '{}'; reply '"x"' '{}'; reply "$id" '{}';;"#,
    );
    let fixture = folder.session(deploys(1)).await;
    fixture.session.prompt("deploy it").await.unwrap();
    assert_eq!(result(&fixture, 1), "toolResult: deploy done");
    until("the notice", || !fixture.failures().is_empty()).await;
    let failures = fixture.failures();
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].contains("helper, program: ") && failures[0].contains("checking …"), "{failures:?}");
    assert_eq!(folder.starts(), 1);
}

#[tokio::test]
async fn a_program_that_only_writes_nonsense_is_ended() {
    let folder = Folder::new(
        json!({"events": {"tool_call": {}}, "restart": {"policy": "never"}}),
        "event/tool_call) while :; do echo nonsense; done;;",
    );
    let fixture = folder.session(deploys(1)).await;
    fixture.session.prompt("deploy it").await.unwrap();
    assert!(result(&fixture, 1).contains("100 lines that are no messages"), "{}", result(&fixture, 1));
    until("its end", || !runs(&folder.file("pid"))).await;
}

#[tokio::test]
async fn a_line_without_an_end_ends_the_program_before_it_fills_the_memory() {
    let folder = Folder::new(
        json!({"events": {"tool_call": {}}, "restart": {"policy": "never"}}),
        "event/tool_call) exec tr '\\0' x < /dev/zero;;",
    );
    let fixture = folder.session(deploys(1)).await;
    fixture.session.prompt("deploy it").await.unwrap();
    assert!(result(&fixture, 1).contains("a line of more than 16777216 bytes"), "{}", result(&fixture, 1));
    until("its end", || !runs(&folder.file("pid"))).await;
}

#[tokio::test]
async fn a_flood_of_notifications_is_read_slowly_and_what_follows_it_arrives() {
    let folder = Folder::new(
        json!({"events": {"tool_call": {}}}),
        r#"event/tool_call) i=0; while [ $i -lt 1500 ]; do tell log '{"message":"again"}'; i=$((i+1)); done; reply "$id" '{}';;"#,
    );
    let fixture = folder.session(deploys(1)).await;
    fixture.session.prompt("deploy it").await.unwrap();
    assert_eq!(result(&fixture, 1), "toolResult: deploy done");
    assert!(fixture.failures().is_empty(), "{:?}", fixture.failures());
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused_and_nothing_else_happens() {
    let folder = Folder::new(
        json!({"events": {"tool_call": {}}}),
        r#"event/tool_call) ask a no/such '{}'; ask b session/append_entry '[]'; ask c session/compact '{}';
             ask d context/read '{"list":1,"from":0,"to":9}'; ask e session/entry '{"id":"nowhere"}'; reply "$id" '{}';;"#,
    );
    let fixture = folder.session(deploys(1)).await;
    fixture.session.prompt("deploy it").await.unwrap();
    until("five answers", || folder.text("answers").lines().count() == 5).await;
    let answers = folder.text("answers");
    for expected in ["there is no method `no/such`", "-32602", "is for commands", "no `context` handler", "nowhere"] {
        assert!(answers.contains(expected), "{expected} is not in {answers}");
    }
    assert_eq!(result(&fixture, 1), "toolResult: deploy done");
}

#[tokio::test]
async fn a_child_that_holds_the_pipes_neither_holds_the_session_nor_lives_on() {
    let folder = Folder::new(
        json!({"events": {"tool_call": {}}, "restart": {"policy": "never"}}),
        "event/tool_call) sleep 300 & echo $! > child; exit 5;;",
    );
    let fixture = folder.session(deploys(1)).await;
    let begun = Instant::now();
    fixture.session.prompt("deploy it").await.unwrap();
    assert!(result(&fixture, 1).contains("exit code 5"), "{}", result(&fixture, 1));
    fixture.session.dispose().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(60));
    until("the child's end", || !runs(&folder.file("child"))).await;
}

#[tokio::test]
async fn a_program_that_does_not_read_is_ended() {
    let folder = Folder::new(
        json!({"events": {"message_update": {"timeoutMs": 300}}, "restart": {"policy": "never"}}),
        "initialize) reply \"$id\" '{}'; sleep 60;;",
    );
    // Each word is told; the pipe and the queue are full soon.
    let text = "word ".repeat(20_000);
    let fixture = folder.session([pi_ai::faux::FauxReply::text(text)]).await;
    fixture.session.prompt("talk").await.unwrap();
    until("the notice", || fixture.failures().iter().any(|failure| failure.contains("did not read its input"))).await;
    until("its end", || !runs(&folder.file("pid"))).await;
}
