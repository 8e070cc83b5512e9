//! How long is waited for what.

use std::time::Duration;

use fake_llm::{Answer as Said, End, Gate, Reply};
use pi_ai::{ErrorKind, StopReason, StreamOptions, options::Limit};

use super::{Setup, limited};

const SHORT: Limit = Limit::After(Duration::from_millis(150));
const LONG: Limit = Limit::After(Duration::from_secs(600));

#[tokio::test]
async fn a_server_that_falls_silent_is_given_up_and_the_text_stays() {
    let setup =
        Setup::replying(Reply::from(Said::new().text("a").text("b").text("c")).cut_after_events(3).end(End::StayOpen));
    let answer = setup.ask(limited(LONG, SHORT)).await;
    assert_eq!((answer.message.text().as_str(), answer.message.stop_reason), ("ab", StopReason::Error));
    assert_eq!(answer.error().kind(), ErrorKind::Timeout);
    assert!(answer.said().contains("150 ms") && answer.said().contains("timed out"), "{}", answer.said());
    assert!(pi_ai::recovery::is_retryable_assistant_error(&answer.message));
}

#[tokio::test]
async fn a_server_that_never_begins_is_given_up() {
    for reply in [
        Reply::from("late").hold(&Gate::new()),
        // The head comes, the body does not.
        Reply::from(Said::new().wait_for(&Gate::new())).cut_after_bytes(0).end(End::StayOpen),
    ] {
        let setup = Setup::replying(reply);
        let answer = setup.ask(limited(SHORT, LONG)).await;
        assert_eq!(answer.error().kind(), ErrorKind::Timeout);
        assert!(answer.said().contains("sent no answer within 150 ms"), "{}", answer.said());
    }
}

#[tokio::test]
async fn every_byte_counts_as_a_sign_of_life() {
    let pause = Duration::from_millis(100);
    let alive = Said::new().text("a").wait(pause).text("b").wait(pause).text("c").wait(pause).text("d");
    let setup = Setup::replying(alive);
    let answer = setup.ask(limited(LONG, Limit::After(Duration::from_millis(250)))).await;
    assert_eq!((answer.message.text().as_str(), answer.error.is_none()), ("abcd", true));
}

#[tokio::test]
async fn comments_alone_keep_an_answer_alive() {
    let (pause, event) = (Duration::from_millis(100), "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n");
    let begun = Reply::raw(200, "text/event-stream", event);
    let alive = (0..5).fold(begun, |reply, _| reply.then(pause, ": keep-alive\n\n"));
    let setup =
        Setup::replying(alive.then(pause, "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"));
    let answer = setup.ask(limited(LONG, Limit::After(Duration::from_millis(300)))).await;
    assert_eq!((answer.message.text().as_str(), answer.error.is_none()), ("a", true));
}

#[tokio::test]
async fn a_slow_start_on_this_machine_is_waited_for_by_default() {
    let gate = Gate::new();
    let setup = Setup::replying(Reply::from("at last").hold(&gate));
    let asking = tokio::spawn(super::finish(setup.stream(StreamOptions::default())));
    setup.server.request(0).await;
    gate.open();
    assert_eq!(asking.await.unwrap().message.text(), "at last");
}
