//! Requests that are sent again.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use fake_llm::{Answer as Said, End, Reply, Script, Server, Wire};
use pi_ai::{
    CancellationToken, ErrorKind, Model, StopReason, StreamOptions,
    models::Models,
    options::{ProviderHooks, RetryNotice, RetryPolicy, provider_hook},
    testing::vectors,
    transport::Transport,
};
use serde_json::json;

use super::{Setup, chat, finish, provider, question, retrying};

/// Waits of a few milliseconds.
fn failing(status: u16) -> Reply {
    Reply::error(status, "not now").header("retry-after-ms", "5")
}

fn noticing(options: StreamOptions) -> (StreamOptions, Arc<Mutex<Vec<RetryNotice>>>) {
    let notices = Arc::new(Mutex::new(Vec::new()));
    let seen = notices.clone();
    let on_retry = provider_hook(async move |notice: RetryNotice| {
        seen.lock().unwrap().push(notice);
        Ok(())
    });
    let hooks = ProviderHooks { on_retry: Some(on_retry), ..ProviderHooks::default() };
    (StreamOptions { hooks, ..options }, notices)
}

#[tokio::test]
async fn what_passes_is_tried_again_and_leaves_nothing_behind() {
    let setup = Setup::new(chat().reply(failing(529)).reply(failing(500)).reply("at last"));
    let (options, notices) = noticing(retrying(3));
    let answer = setup.ask(options).await;
    assert_eq!((answer.message.text().as_str(), answer.message.stop_reason), ("at last", StopReason::Stop));
    assert_eq!((answer.starts(), answer.error.is_none()), (1, true));
    let notices = notices.lock().unwrap();
    let told: Vec<_> = notices.iter().map(|n| (n.attempt, n.delay.as_millis(), n.error.status())).collect();
    assert_eq!(told, [(1, 5, Some(529)), (2, 5, Some(500))]);
    let bodies: Vec<_> = setup.server.requests().iter().map(|request| request.body().to_vec()).collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]), "each attempt sends the same");
}

#[tokio::test]
async fn without_retries_the_first_failure_is_the_answer() {
    let setup = Setup::new(chat().reply(failing(529)));
    let answer = setup.ask(StreamOptions::default()).await;
    assert_eq!(answer.error().kind(), ErrorKind::Overloaded);
}

#[tokio::test]
async fn what_does_not_pass_is_not_tried_again() {
    let quota = Reply::json(429, json!({"error": {"code": "insufficient_quota", "message": "used up"}}));
    let asked_not_to = failing(500).header("x-should-retry", "false");
    for reply in [failing(400), failing(401), failing(403), quota, asked_not_to] {
        let setup = Setup::replying(reply);
        let answer = setup.ask(retrying(3)).await;
        assert_eq!(answer.message.stop_reason, StopReason::Error);
        assert_eq!(setup.server.requests().len(), 1);
    }
    let setup = Setup::new(chat().reply(failing(400).header("x-should-retry", "true")).reply("well"));
    assert_eq!(setup.ask(retrying(1)).await.message.text(), "well");
}

#[tokio::test]
async fn a_wait_beyond_the_cap_fails_at_once() {
    let setup = Setup::replying(Reply::error(429, "later").header("retry-after", "120"));
    let answer = setup.ask(retrying(3)).await;
    assert!(answer.said().contains("120 s") && answer.said().contains("60 s"), "{}", answer.said());
    assert_eq!(answer.error().retry_after(), Some(Duration::from_secs(120)));
}

#[tokio::test]
async fn without_a_word_of_the_provider_waits_grow_and_chance_shortens_them() {
    let setup = Setup::new(chat().reply(Reply::error(500, "once")).reply("fine"));
    let transport = Transport::builder().chance(|| 1.0).build();
    let models = Models::builder().transport(transport).provider(provider(&setup.server.base_url())).build();
    let (options, notices) = noticing(retrying(1));
    finish(models.ask(&setup.model, question(), options)).await;
    assert_eq!(notices.lock().unwrap()[0].delay, Duration::from_millis(375));
}

#[tokio::test]
async fn a_connection_that_breaks_before_anything_came_is_tried_again() {
    let broken = Reply::from("x").cut_after_bytes(0).end(End::Reset);
    let setup = Setup::new(chat().reply(broken).reply("fine"));
    let (options, notices) = noticing(retrying(1));
    let answer = setup.ask(options).await;
    assert_eq!((answer.message.text().as_str(), answer.starts()), ("fine", 1));
    assert_eq!(notices.lock().unwrap()[0].error.kind(), ErrorKind::Network);
}

#[tokio::test]
async fn overload_within_the_stream_is_tried_again_unless_text_has_come() {
    let overloaded = json!({"error": {"type": "overloaded_error", "message": "busy"}}).to_string();
    let early = Reply::data_events([json!({"id": "lost", "choices": []}).to_string(), overloaded.clone()]);
    let setup = Setup::new(chat().reply(early).reply(Said::new().text("fine").id("kept")));
    let answer = setup.ask(retrying(1)).await;
    assert_eq!((answer.message.text().as_str(), answer.starts()), ("fine", 1));
    assert_eq!(answer.message.response_id.as_deref(), Some("kept"));

    let text = json!({"choices": [{"index": 0, "delta": {"content": "begun"}}]}).to_string();
    let setup = Setup::replying(Reply::data_events([text, overloaded]));
    let answer = setup.ask(retrying(1)).await;
    assert_eq!((answer.message.text().as_str(), answer.message.stop_reason), ("begun", StopReason::Error));
}

#[tokio::test]
async fn a_wait_can_be_aborted() {
    let setup = Setup::replying(Reply::error(503, "later").header("retry-after", "50"));
    let signal = CancellationToken::new();
    let (options, notices) = noticing(StreamOptions { signal: signal.clone(), ..retrying(1) });
    let asking = tokio::spawn(finish(setup.stream(options)));
    while notices.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    signal.cancel();
    assert_eq!(asking.await.unwrap().message.stop_reason, StopReason::Aborted);
}

#[tokio::test]
async fn the_cap_can_be_lifted() {
    let setup = Setup::new(chat().reply(failing(429)).reply("fine"));
    let retry = RetryPolicy { max_retries: 1, max_delay: None };
    assert_eq!(setup.ask(StreamOptions { retry, ..StreamOptions::default() }).await.message.text(), "fine");
}

#[tokio::test]
async fn the_reference_counts_the_same_requests_over_a_socket() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/provider_sequences/http_retry.json");
    for case in vectors::load(&path).unwrap() {
        let replies = case.input["replies"].as_array().unwrap().iter().map(|reply| {
            let status = u16::try_from(reply["status"].as_u64().unwrap()).unwrap();
            let raw = Reply::raw(status, "text/event-stream", reply["body"].as_str().unwrap());
            let headers = reply["headers"].as_object().into_iter().flatten();
            headers.fold(raw, |reply, (name, value)| reply.header(name, value.as_str().unwrap()))
        });
        let server = Server::start(Script::any_wire().replies(replies));
        let mut model: Model = serde_json::from_value(case.input["model"].clone()).unwrap();
        let wire = if &*model.api == "anthropic-messages" { Wire::AnthropicMessages } else { Wire::OpenAiCompletions };
        model.base_url = server.base_url_of(wire);
        let options = &case.input["options"];
        let retry = RetryPolicy {
            max_retries: options["maxRetries"].as_u64().unwrap_or(0) as u32,
            max_delay: match options["maxRetryDelayMs"].as_u64() {
                Some(0) => None,
                millis => Some(millis.map_or(Duration::from_secs(60), Duration::from_millis)),
            },
        };
        let options = StreamOptions { api_key: Some("k".into()), retry, ..StreamOptions::default() };
        let answer = finish(Models::builder().build().ask(&Arc::new(model), question(), options)).await;
        let outcome = json!({"requests": server.requests().len(), "stopReason": answer.message.stop_reason});
        assert_eq!(outcome, case.expected, "{}", case.name);
    }
}
