//! What a session does by itself when a turn fails.

use std::{sync::Arc, time::Duration};

use pi_ai::{
    ErrorKind, Model, ProviderError,
    faux::{FauxProvider, FauxReply},
};
use pi_coding_agent::{
    agent_session::{AgentSession, ListenerContext, SessionEvent},
    compaction::SummaryInstructions,
    resources::SettingsManager,
    sdk::create_agent_session,
    session::EntryKind,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{Heard, Place, open_for_writing, said};

async fn session(place: &Place, provider: &FauxProvider, window: u64, settings: Value) -> (AgentSession, Heard) {
    let model = Arc::new(Model { context_window: window, ..(*FauxProvider::model()).clone() });
    let options = place.options(provider).model(model).settings(SettingsManager::in_memory(settings));
    let session = create_agent_session(options).await.unwrap();
    let heard = Heard::default();
    heard.listen(&session);
    (session, heard)
}

fn overflow() -> FauxReply {
    FauxReply::error(ProviderError::new(ErrorKind::ContextOverflow, "prompt is too long: 9000 tokens > 8000 maximum"))
}

fn little() -> Value {
    json!({"compaction": {"reserveTokens": 100, "keepRecentTokens": 30}})
}

#[tokio::test]
async fn an_overflow_is_recovered_from_once_and_then_the_biggest_parts_are_named() {
    let place = Place::new();
    let provider = FauxProvider::new(["fine", "good"].map(FauxReply::text));
    let (session, heard) = session(&place, &provider, 100_000, little()).await;
    session.prompt(format!("begin {}", "x".repeat(600))).await.unwrap();
    session.prompt(format!("more {}", "y".repeat(200))).await.unwrap();
    provider.append([overflow(), FauxReply::text("notes of it")]);
    provider.append(["now it fits", "fine"].map(FauxReply::text));
    assert_eq!(session.prompt("go on").await.unwrap().text(), "now it fits");
    assert_eq!(heard.all().iter().filter(|name| *name == "CompactionEnd").count(), 1);

    session.prompt(format!("again {}", "z".repeat(200))).await.unwrap();
    provider.append([overflow(), FauxReply::text("notes"), overflow()]);
    let reply = session.prompt("and more").await.unwrap();
    let advice = reply.advice.unwrap();
    assert!(advice.contains("not tried again") && advice.contains("largest parts"), "{advice}");
    // The third request was the last: it is neither compacted nor tried without end.
    assert_eq!(provider.pending(), 0);
    session.dispose().await.unwrap();
}

#[tokio::test]
async fn a_first_prompt_that_is_larger_than_the_model_is_summarised_by_its_ends() {
    let place = Place::new();
    let provider = FauxProvider::new([overflow(), FauxReply::text("notes of it"), FauxReply::text("I see")]);
    let (session, _) = session(&place, &provider, 8_000, little()).await;
    let huge = format!("begin {} end", "x".repeat(120_000));
    assert_eq!(session.prompt(&*huge).await.unwrap().text(), "I see");
    let text = |at: usize| {
        let sent = &provider.requests()[at].context;
        sent.messages().iter().rev().find_map(|message| Some(message.as_user()?.content.text().into_owned())).unwrap()
    };
    let (summarised, asked) = (text(1), text(2));
    assert!(summarised.len() < 4 * 8_000 && summarised.contains("begin xxx") && summarised.contains("xxx end"));
    assert!(asked.len() < 8_000 && asked.contains("notes of it"), "{asked}");
    // The record keeps all of it.
    let kept = std::fs::read_to_string(session.session_manager().path().unwrap()).unwrap();
    assert!(kept.contains(&huge));
    session.dispose().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_failure_in_passing_is_tried_again_and_not_sent_as_history() {
    let place = Place::new();
    let overloaded = || FauxReply::error(ProviderError::new(ErrorKind::Overloaded, "529 overloaded"));
    let provider = FauxProvider::new([overloaded(), overloaded(), FauxReply::text("there you are")]);
    let (session, heard) = session(&place, &provider, 100_000, json!({})).await;
    assert_eq!(session.prompt("hi").await.unwrap().text(), "there you are");
    let retries = heard.all().into_iter().filter(|name| name.starts_with("AutoRetry")).collect::<Vec<_>>();
    assert_eq!(retries, ["AutoRetryStart", "AutoRetryStart", "AutoRetryEnd"]);
    assert_eq!(said(&session), ["hi", "there you are"]);
    session.dispose().await.unwrap();
}

#[tokio::test]
async fn a_wait_before_the_next_attempt_can_be_aborted() {
    let place = Place::new();
    let provider = FauxProvider::new([FauxReply::error(ProviderError::new(ErrorKind::Overloaded, "529 overloaded"))]);
    let settings = json!({"retry": {"baseDelayMs": 3_600_000, "maxAgentDelayMs": 3_600_000}});
    let (session, heard) = session(&place, &provider, 100_000, settings).await;
    let aborting = session.downgrade();
    session
        .subscribe(async move |event: SessionEvent, _: ListenerContext| {
            if matches!(event, SessionEvent::AutoRetryStart { .. }) {
                let session = aborting.upgrade().unwrap();
                tokio::spawn(async move { session.abort() });
            }
        })
        .detach();
    tokio::time::timeout(super::DEADLINE, session.prompt("hi")).await.unwrap().unwrap();
    assert!(heard.all().contains(&"AutoRetryEnd".to_owned()));
    session.dispose().await.unwrap();
}

#[tokio::test]
async fn a_compaction_that_is_aborted_leaves_nothing_that_a_resume_could_trip_over() {
    let place = Place::new();
    let provider = FauxProvider::new([FauxReply::text("fine"), FauxReply::text("fine")]);
    let (session, heard) = session(&place, &provider, 100_000, little()).await;
    session.prompt("x".repeat(400)).await.unwrap();
    session.prompt("y".repeat(400)).await.unwrap();
    let before = said(&session);
    provider.append([FauxReply::text("half of the no").hang()]);
    let compacting = session.clone();
    let task = tokio::spawn(async move { compacting.compact(SummaryInstructions::Usual).await });
    while provider.pending() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    session.abort();
    assert!(task.await.unwrap().is_err());
    assert!(heard.all().contains(&"CompactionEnd".to_owned()));
    let path = session.session_manager().path().unwrap();
    session.dispose().await.unwrap();

    let resumed = open_for_writing(&path).await;
    assert!(resumed.with(|session| session.entries().all(|entry| entry.kind != EntryKind::Compaction)));
    let options = place.options(&provider).session_manager(resumed);
    let session = create_agent_session(options).await.unwrap();
    assert_eq!(said(&session), before);
    session.dispose().await.unwrap();
}
