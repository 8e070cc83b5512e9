//! How sessions end.

use std::{path::Path, sync::Arc};

use pi_ai::{
    CancellationToken,
    faux::{FauxProvider, FauxReply},
};
use pi_coding_agent::{
    agent_session::{AgentSessionError, CustomMessage, ForModel, ListenerContext, SessionEvent},
    sdk::create_agent_session,
    session::SessionManager,
};
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio::time::timeout;

use super::{DEADLINE, Heard, Place, open_for_writing, said, waiting_tool};

/// Waits until no task is left.
async fn no_task_is_left() {
    let metrics = tokio::runtime::Handle::current().metrics();
    timeout(DEADLINE, async {
        while metrics.num_alive_tasks() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    })
    .await
    .expect("a task is left");
}

/// The record of a session that was ended in the middle of a tool call: nothing is torn, every call has its result.
async fn is_complete(path: &Path) {
    let session = open_for_writing(path).await;
    let messages = session.context().messages;
    let roles: Vec<String> = messages.iter().map(|message| message.role().to_string()).collect();
    // The last one is the answer that was not given any more.
    assert_eq!(roles, ["system", "user", "assistant", "toolResult", "assistant"]);
    assert!(session.with(|session| session.notices().is_empty()));
}

#[tokio::test]
async fn dispose_aborts_waits_and_lets_go_of_the_file() {
    let place = Place::new();
    let provider = FauxProvider::new([FauxReply::tool_call("wait", json!({}))]);
    let (tool, begun, aborted) = waiting_tool();
    let session = create_agent_session(place.options(&provider).tool(tool)).await.unwrap();
    let heard = Heard::default();
    heard.listen(&session);
    let run = session.prompt("wait for it");
    begun.notified().await;
    let path = session.session_manager().path().unwrap();
    let handle = session.clone();
    timeout(DEADLINE, session.dispose()).await.unwrap().unwrap();

    timeout(DEADLINE, aborted.notified()).await.unwrap();
    assert_eq!(heard.all().last().unwrap(), "AgentSettled");
    run.await.unwrap();
    is_complete(&path).await;
    no_task_is_left().await;
    // The other handle can be read, and no more.
    assert_eq!(said(&handle)[0], "wait for it");
    assert!(matches!(handle.prompt("again").await, Err(AgentSessionError::Ended)));
    handle.dispose().await.unwrap();
}

#[tokio::test]
async fn a_mere_drop_aborts_completes_the_record_and_leaves_no_task() {
    let place = Place::new();
    let provider = FauxProvider::new([FauxReply::tool_call("wait", json!({}))]);
    let (tool, begun, aborted) = waiting_tool();
    let session = create_agent_session(place.options(&provider).tool(tool)).await.unwrap();
    let heard = Heard::default();
    heard.listen(&session);
    session.prompt("wait for it").detach();
    begun.notified().await;
    let path = session.session_manager().path().unwrap();
    drop(session);

    timeout(DEADLINE, aborted.notified()).await.unwrap();
    no_task_is_left().await;
    let heard = heard.all();
    for (start, end) in [("AgentStart", "AgentEnd"), ("MessageStart", "MessageEnd"), ("TurnStart", "TurnEnd")] {
        let count = |name: &str| heard.iter().filter(|heard| *heard == name).count();
        assert_eq!(count(start), count(end), "{heard:?}");
    }
    is_complete(&path).await;
}

#[tokio::test]
async fn a_run_that_is_dropped_is_aborted_and_the_session_goes_on() {
    let place = Place::new();
    let session = place.session([FauxReply::text("a part").hang(), FauxReply::text("done")]).await;
    assert!(timeout(std::time::Duration::from_millis(50), session.prompt("one")).await.is_err());
    session.wait_for_idle().await;
    assert_eq!(session.prompt("two").await.unwrap().text(), "done");
    session.dispose().await.unwrap();
    no_task_is_left().await;
}

#[tokio::test]
async fn a_listener_that_holds_the_session_does_not_keep_it_for_ever() {
    let place = Place::new();
    let session = place.session([FauxReply::text("done")]).await;
    let held = session.clone();
    let listener = async move |_: SessionEvent, _: ListenerContext| drop(held.clone());
    session.subscribe(listener).detach();
    session.prompt("one").await.unwrap();
    let weak = session.downgrade();
    session.dispose().await.unwrap();
    assert!(weak.upgrade().is_none());
}

#[tokio::test]
async fn a_session_whose_manager_the_application_keeps_can_go_on_with_it() {
    let place = Place::new();
    let manager = SessionManager::in_memory();
    let provider = FauxProvider::new([FauxReply::text("one"), FauxReply::text("two")]);
    for prompt in ["first", "second"] {
        let options = place.options(&provider).session_manager(manager.clone());
        let session = create_agent_session(options).await.unwrap();
        session.prompt(prompt).await.unwrap();
        session.dispose().await.unwrap();
    }
    assert_eq!(manager.context().messages.len(), 5);
}

#[tokio::test]
async fn what_comes_while_a_tool_runs_does_not_stand_between_call_and_result() {
    let place = Place::new();
    let (tool, begun, _) = waiting_tool();
    let provider = FauxProvider::new([FauxReply::tool_call("wait", json!({})), FauxReply::text("done")]);
    let session = create_agent_session(place.options(&provider).tool(tool)).await.unwrap();
    let run = session.prompt("wait for it");
    begun.notified().await;
    let note = CustomMessage { custom_type: "note".into(), content: "by the way".into(), ..CustomMessage::default() };
    session.add_message(note).await.unwrap();
    session.execute_bash("echo hi", ForModel::Shown, CancellationToken::new()).await.unwrap();
    assert_eq!(said(&session).len(), 2);
    session.abort();
    run.await.unwrap();
    let kinds: Vec<String> =
        session.session_manager().context().messages.iter().skip(1).map(|message| message.role().to_string()).collect();
    assert_eq!(kinds, ["user", "assistant", "toolResult", "custom", "assistant", "bashExecution"]);
    session.dispose().await.unwrap();
}

#[tokio::test]
async fn dispose_ends_commands_of_the_user_and_records_them() {
    let place = Place::new();
    let session = place.session([FauxReply::text("hello")]).await;
    session.prompt("hi").await.unwrap();
    let running = session.clone();
    let started = Arc::new(tokio::sync::Notify::new());
    let tell = started.clone();
    session
        .subscribe(async move |event: SessionEvent, _: ListenerContext| {
            if matches!(event, SessionEvent::BashExecutionUpdate { .. }) {
                tell.notify_one();
            }
        })
        .detach();
    let command = tokio::spawn(async move {
        running.execute_bash("echo begun; sleep 100", ForModel::Shown, CancellationToken::new()).await
    });
    timeout(DEADLINE, started.notified()).await.unwrap();
    let path = session.session_manager().path().unwrap();
    timeout(DEADLINE, session.dispose()).await.unwrap().unwrap();
    assert!(command.await.unwrap().unwrap().cancelled);
    let session = open_for_writing(&path).await;
    let last = session.context().messages.last().unwrap().clone();
    assert_eq!(last.role(), "bashExecution");
}
