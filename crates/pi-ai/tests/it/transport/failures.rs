//! What goes wrong at the server, and what is said about it.

use std::sync::Arc;

use fake_llm::{Answer as Said, End, Reply};
use pi_ai::{Content, Context, ErrorKind, InputBlock, Message, Model, StopReason, StreamOptions, model::InputKind};
use serde_json::json;

use super::{Setup, chat, finish, models_with, question};

#[tokio::test]
async fn a_failing_status_keeps_what_the_provider_said() {
    for (status, kind) in [
        (400, ErrorKind::InvalidRequest),
        (401, ErrorKind::Auth),
        (402, ErrorKind::Quota),
        (403, ErrorKind::Auth),
        (404, ErrorKind::InvalidRequest),
        (429, ErrorKind::RateLimit),
        (500, ErrorKind::Overloaded),
        (529, ErrorKind::Overloaded),
    ] {
        let setup = Setup::replying(Reply::error(status, "it is so").header("X-Request-Id", "req-7"));
        let answer = setup.ask(StreamOptions::default()).await;
        let error = answer.error();
        assert_eq!((error.kind(), error.status(), error.header("x-request-id")), (kind, Some(status), Some("req-7")));
        assert!(error.body().unwrap().contains("it is so"), "{error:?}");
        assert!(answer.said().contains("it is so") && answer.said().contains(&status.to_string()), "{error}");
        assert_eq!((answer.message.stop_reason, answer.events.len()), (StopReason::Error, 1), "a lone error");
    }
}

#[tokio::test]
async fn a_huge_error_is_cut() {
    let setup = Setup::replying(Reply::raw(400, "text/plain", "x".repeat(3_000_000)));
    let answer = setup.ask(StreamOptions::default()).await;
    assert!(answer.said().len() < 5000, "{}", answer.said().len());
    assert_eq!(answer.error().body().unwrap().len(), 64 * 1024);
}

#[tokio::test]
async fn an_error_without_a_body_or_with_an_endless_one_is_told_all_the_same() {
    let setup = Setup::replying(Reply::raw(503, "text/plain", ""));
    assert!(setup.ask(StreamOptions::default()).await.said().contains("503"));
    let setup = Setup::replying(Reply::error(500, "cut").cut_after_bytes(20).end(End::Reset));
    assert!(setup.ask(StreamOptions::default()).await.said().contains("500"));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error_that_keeps_the_text() {
    for end in [End::Close, End::Reset] {
        let reply = Reply::from(Said::new().text("par").text("tial").text("never")).cut_after_events(3).end(end);
        let setup = Setup::replying(reply);
        let answer = setup.ask(StreamOptions::default()).await;
        assert_eq!((answer.message.text().as_str(), answer.message.stop_reason), ("partial", StopReason::Error));
        let error = answer.error();
        assert!(error.kind().is_transient(), "{error:?}");
        assert!(answer.said().contains("Connection lost"), "{error}");
        assert!(std::error::Error::source(error).is_some(), "the causes are kept");
        assert!(pi_ai::recovery::is_retryable_assistant_error(&answer.message), "{error}");
    }
}

#[tokio::test]
async fn an_answer_that_is_complete_but_for_the_ends_of_the_body_is_complete() {
    // The server dies after the last event.
    let setup = Setup::replying(Reply::from("whole").end(End::Reset));
    let answer = setup.ask(StreamOptions::default()).await;
    assert_eq!((answer.message.text().as_str(), answer.message.stop_reason), ("whole", StopReason::Stop));
}

#[tokio::test]
async fn an_error_within_the_stream_keeps_the_text() {
    let events = [
        json!({"choices": [{"index": 0, "delta": {"content": "begun"}}]}).to_string(),
        json!({"error": {"message": "worker died", "code": 500}}).to_string(),
    ];
    let setup = Setup::replying(Reply::data_events(events));
    let answer = setup.ask(StreamOptions::default()).await;
    assert_eq!(answer.message.text(), "begun");
    assert_eq!(answer.error().kind(), ErrorKind::Overloaded);
    assert!(answer.said().contains("worker died"));
}

#[tokio::test]
async fn a_page_or_a_document_in_place_of_the_stream_is_told() {
    let setup = Setup::replying(Reply::raw(200, "text/html", "\n<html><h1>Please log in</h1></html>"));
    let answer = setup.ask(StreamOptions::default()).await;
    assert_eq!(answer.error().kind(), ErrorKind::Protocol);
    assert!(answer.said().contains("not an event stream") && answer.said().contains("Please log in"));

    let error = json!({"error": {"message": "no such deployment", "type": "invalid_request_error"}});
    let setup = Setup::replying(Reply::json(200, error));
    let answer = setup.ask(StreamOptions::default()).await;
    assert_eq!(answer.error().kind(), ErrorKind::InvalidRequest);
    assert!(answer.said().contains("no such deployment"));

    let setup = Setup::replying(Reply::raw(200, "text/html", format!("<{}", "x".repeat(1_000_000))));
    assert!(setup.ask(StreamOptions::default()).await.said().len() < 1000);
}

#[tokio::test]
async fn another_server_is_not_followed_with_the_key() {
    let setup =
        Setup::replying(Reply::raw(307, "text/plain", "").header("location", "http://elsewhere.example.com/v2?k=1"));
    let answer = setup.ask(StreamOptions::default()).await;
    let said = answer.said();
    assert!(said.contains("redirects to http://elsewhere.example.com") && !said.contains("k=1"), "{said}");
}

#[tokio::test]
async fn what_cannot_be_asked_is_told_before_anything_is_sent() {
    let (models, model) = models_with([], "not a url");
    let said = finish(models.ask(&model, question(), StreamOptions::default())).await;
    assert!(said.said().contains("base URL of the model m"), "{}", said.said());

    let unknown = Arc::new(Model { api: "smoke-signals".into(), ..(*model).clone() });
    let answer = finish(models.ask(&unknown, question(), StreamOptions::default())).await;
    assert!(answer.said().contains("smoke-signals"));

    let (models, model) = models_with([], "http://127.0.0.1:9");
    let headers = [("x-odd".to_owned(), Some("two\nlines sk-secret".to_owned()))].into_iter().collect();
    let answer = finish(models.ask(&model, question(), StreamOptions { headers, ..StreamOptions::default() })).await;
    assert!(answer.said().contains("x-odd") && !answer.said().contains("sk-secret"), "{}", answer.said());
}

#[tokio::test]
async fn a_missing_key_is_told_before_anything_is_sent() {
    let models = pi_ai::Models::builder().build();
    let model = models.find("groq", "openai/gpt-oss-20b").unwrap();
    let answer = finish(models.ask(&model, question(), StreamOptions::default())).await;
    assert_eq!(answer.error().kind(), ErrorKind::Auth);
    assert!(answer.said().contains("GROQ_API_KEY"));
}

#[tokio::test]
async fn a_picture_that_is_refused_is_replaced_so_that_the_conversation_goes_on() {
    let refusal = "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes";
    let setup = Setup::new(chat().reply(Reply::error(400, refusal)).reply("I cannot see it."));
    let seeing =
        |setup: &Setup| Arc::new(Model { input: vec![InputKind::Text, InputKind::Image], ..(*setup.model).clone() });
    let picture = Content::from(vec![InputBlock::text("look"), InputBlock::image("aGk=", "image/png")]);
    let context = Context::from(vec![Message::user(picture)]);
    let answer = finish(setup.models.ask(&seeing(&setup), context.clone(), StreamOptions::default())).await;
    assert_eq!((answer.message.text().as_str(), answer.starts()), ("I cannot see it.", 1));
    let told = answer.message.diagnostics.unwrap().to_string();
    assert!(told.contains("refused_images_fallback") && told.contains("image exceeds 5 MB"), "{told}");
    let sent = setup.server.requests();
    assert!(sent[0].json().to_string().contains("aGk=") && !sent[1].json().to_string().contains("aGk="));
    assert!(sent[1].last_text().starts_with("look\n["), "a note stands in its place: {}", sent[1].last_text());

    // Nothing is tried again for a refusal of another kind, or where there is no picture.
    for (context, reason) in [(context, "bad tool schema"), (question(), refusal)] {
        let setup = Setup::replying(Reply::error(400, reason));
        let answer = finish(setup.models.ask(&seeing(&setup), context, StreamOptions::default())).await;
        assert_eq!((answer.error().status(), setup.server.requests().len()), (Some(400), 1), "{reason}");
    }
}
