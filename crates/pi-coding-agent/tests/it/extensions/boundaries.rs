//! Handlers at the end of a turn and of a run.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use pi_ai::faux::FauxReply;
use pi_coding_agent::{
    extensions::{
        ExtensionApi,
        event::{self, BoundaryOutcome, EntryDraft},
        named,
    },
    session::{EntryBody, Replacement},
};

use super::support::Fixture;

fn note(text: &str) -> EntryDraft {
    EntryDraft::CustomMessage { custom_type: "check".into(), content: text.into(), display: true, details: None }
}

#[tokio::test]
async fn a_run_goes_on_until_an_extension_is_content() {
    let rounds = Arc::new(AtomicUsize::new(0));
    let fixture = Fixture::new(
        (0..3).map(|n| FauxReply::text(format!("answer {n}"))),
        named("checker", move |pi: &mut ExtensionApi| {
            let rounds = rounds.clone();
            pi.on(event::AgentBeforeSettle, async move |_event, _ctx| match rounds.fetch_add(1, Ordering::SeqCst) {
                0 | 1 => BoundaryOutcome { entries: Some(vec![note("The checks still fail.")]), goes_on: Some(true) },
                _ => BoundaryOutcome::default(),
            });
        }),
    )
    .await;
    let reply = fixture.session.prompt("fix it").await.unwrap();
    assert_eq!(reply.into_text().unwrap(), "answer 2");
    assert_eq!(fixture.model.said(2).len(), 5);
    assert_eq!(fixture.model.said(2).last().unwrap(), "user: The checks still fail.");
    assert_eq!(fixture.failures(), Vec::<String>::new());
}

#[tokio::test]
async fn a_turn_that_went_wrong_is_edited_out_of_the_context() {
    let first = Arc::new(AtomicUsize::new(0));
    let fixture = Fixture::new(
        [FauxReply::text("rambling"), FauxReply::text("short")],
        named("editor", move |pi: &mut ExtensionApi| {
            let first = first.clone();
            pi.on(event::TurnEnd, async move |event, _ctx| {
                if first.fetch_add(1, Ordering::SeqCst) > 0 {
                    return BoundaryOutcome::default();
                }
                let edit = EntryDraft::ContextEdit { target_id: event.message_entry_id.unwrap(), replacement: None };
                BoundaryOutcome { entries: Some(vec![edit, note("Be brief.")]), goes_on: Some(true) }
            });
        }),
    )
    .await;
    let reply = fixture.session.prompt("explain").await.unwrap();
    assert_eq!(reply.into_text().unwrap(), "short");
    assert_eq!(fixture.model.said(1), ["user: explain", "user: Be brief."]);
}

#[tokio::test]
async fn entries_that_cannot_be_appended_are_reported_and_none_of_them_is() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let look = seen.clone();
    let fixture = Fixture::with([FauxReply::text("ok")], |options| {
        options
            .extension(named("confused", |pi: &mut ExtensionApi| {
                pi.on(event::TurnEnd, async |_event, _ctx| BoundaryOutcome {
                    entries: Some(vec![
                        note("good"),
                        EntryDraft::ContextEdit {
                            target_id: "nowhere".into(),
                            replacement: Some(Replacement::text("x")),
                        },
                    ]),
                    goes_on: Some(true),
                });
            }))
            .extension(named("looker", move |pi: &mut ExtensionApi| {
                let look = look.clone();
                pi.on(event::TurnEnd, async move |event, _ctx| {
                    look.lock().unwrap().push((event.boundary.entries.len(), event.boundary.goes_on));
                });
            }))
    })
    .await;
    fixture.session.prompt("hi").await.unwrap();
    assert_eq!(fixture.model.requests(), 1, "it does not go on either");
    assert!(!fixture.entries().iter().any(|body| matches!(body, EntryBody::CustomMessage(_))));
    let failures = fixture.failures();
    assert!(failures[0].starts_with("confused, turn_end: ") && failures[0].contains("nowhere"), "{failures:?}");
    assert_eq!(*seen.lock().unwrap(), [(2, true)], "later handlers see what was agreed on");
}

#[tokio::test]
async fn a_run_that_has_nothing_left_to_answer_does_not_go_on() {
    let fixture = Fixture::new(
        [FauxReply::text("done"), FauxReply::text("never")],
        named("eager", |pi: &mut ExtensionApi| {
            pi.on(event::AgentBeforeSettle, async |event, _ctx| {
                assert!(!event.boundary.context.can_continue);
                BoundaryOutcome { entries: None, goes_on: Some(true) }
            });
        }),
    )
    .await;
    fixture.session.prompt("hi").await.unwrap();
    assert_eq!(fixture.model.requests(), 1);
    assert!(fixture.failures()[0].contains("agent_before_settle"), "{:?}", fixture.failures());
}
