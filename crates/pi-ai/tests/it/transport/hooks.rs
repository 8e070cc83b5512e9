//! Callbacks along a request.

use std::sync::{Arc, Mutex};

use fake_llm::{Answer as Said, Reply};
use pi_ai::{
    ErrorKind, ProviderError, StopReason, StreamOptions,
    options::{Headers, ProviderHooks, RawStreamEvent, ResponseHead, provider_hook},
};
use serde_json::{Value, json};

use super::{Setup, chat, retrying};

fn hooked(hooks: ProviderHooks) -> StreamOptions {
    StreamOptions { hooks, ..StreamOptions::default() }
}

fn refusal() -> ProviderError {
    ProviderError::new(ErrorKind::Other, "the hook says no")
}

#[tokio::test]
async fn each_hook_sees_its_part_in_order() {
    let setup = Setup::replying(Reply::from(Said::new().text("a").text("b")).header("x-served-by", "nine"));
    let log = Arc::new(Mutex::new(Vec::<String>::new()));
    let writer = || {
        let log = log.clone();
        move |entry: String| log.lock().unwrap().push(entry)
    };
    let (payload, headers, response, event) = (writer(), writer(), writer(), writer());
    let hooks = ProviderHooks {
        on_payload: Some(provider_hook(async move |mut body: Value| {
            payload(format!("payload {}", body["model"]));
            body["temperature"] = json!(0.25);
            Ok(Some(body))
        })),
        on_headers: Some(provider_hook(async move |mut sent: Headers| {
            headers("headers".into());
            sent.push(("x-added".into(), "by hook".into()));
            Ok(sent)
        })),
        on_response: Some(provider_hook(async move |head: ResponseHead| {
            let served = head.headers.iter().find(|(name, _)| name == "x-served-by").map(|(_, value)| value.clone());
            response(format!("response {} {}", head.status, served.unwrap_or_default()));
            Ok(())
        })),
        on_stream_event: Some(provider_hook(async move |raw: RawStreamEvent| {
            tokio::task::yield_now().await;
            event(format!("event {}", raw.data.contains("\"content\"") || raw.data == "[DONE]"));
            Ok(())
        })),
        on_retry: None,
    };
    let answer = setup.ask(hooked(hooks)).await;
    assert_eq!(answer.message.text(), "ab");
    let request = setup.server.request(0).await;
    assert_eq!((&request.json()["temperature"], request.header("x-added")), (&json!(0.25), Some("by hook")));
    let log = log.lock().unwrap();
    assert_eq!(log[..3], ["payload \"m\"", "headers", "response 200 nine"]);
    assert!(log.len() >= 6 && log.last().unwrap() == "event true", "{log:?}");
}

#[tokio::test]
async fn a_payload_that_is_only_looked_at_goes_out_as_it_was() {
    let setup = Setup::new(chat().reply("a").reply("b"));
    setup.ask(StreamOptions::default()).await;
    let on_payload = provider_hook(async |_: Value| Ok(None));
    setup.ask(hooked(ProviderHooks { on_payload: Some(on_payload), ..ProviderHooks::default() })).await;
    let requests = setup.server.requests();
    assert_eq!(requests[0].body(), requests[1].body());
}

#[tokio::test]
async fn a_hook_that_fails_fails_the_request_and_nothing_is_repeated() {
    let cases = [
        ProviderHooks { on_payload: Some(provider_hook(async |_: Value| Err(refusal()))), ..ProviderHooks::default() },
        ProviderHooks {
            on_headers: Some(provider_hook(async |_: Headers| Err(refusal()))),
            ..ProviderHooks::default()
        },
        ProviderHooks {
            on_response: Some(provider_hook(async |_: ResponseHead| Err(refusal()))),
            ..ProviderHooks::default()
        },
        ProviderHooks {
            on_stream_event: Some(provider_hook(async |_: RawStreamEvent| Err(refusal()))),
            ..ProviderHooks::default()
        },
    ];
    for (hooks, requests) in cases.into_iter().zip([0, 0, 1, 1]) {
        let setup = Setup::new(chat().otherwise("fine"));
        let answer = setup.ask(StreamOptions { hooks, ..retrying(2) }).await;
        assert_eq!((answer.said(), answer.message.stop_reason), ("the hook says no", StopReason::Error));
        assert_eq!(setup.server.requests().len(), requests);
    }
}
