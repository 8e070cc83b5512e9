//! Answers as they come, and connections as they go.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use fake_llm::{Answer as Said, End, Framing, Gate, Outcome, Pieces, Reply, Script};
use futures::StreamExt;
use pi_ai::{
    AssistantEvent, CancellationToken, StopReason, StreamOptions,
    api::{Decoder, EncodeRequest, Flow, Frame, HttpRequest, Note, Wire},
    faux::{FauxProvider, FauxReply},
    models::{Models, Provider},
    stream::{BlockEnd, MessageBuilder, StreamFn},
    transport::Transport,
};

use super::{Setup, chat, finish, provider, question};

#[tokio::test]
async fn an_answer_streams_and_is_whole_at_the_end() {
    let setup = Setup::replying(Said::new().text("Hel").text("lo").id("r-1"));
    let answer = setup.ask(StreamOptions::default()).await;
    assert_eq!((answer.message.text().as_str(), answer.message.stop_reason), ("Hello", StopReason::Stop));
    assert_eq!(answer.message.response_id.as_deref(), Some("r-1"));
    assert!(answer.message.duration_ms.is_some() && answer.error.is_none());
    let deltas = answer.events.iter().filter(|event| matches!(event, AssistantEvent::TextDelta { .. })).count();
    assert_eq!((answer.starts(), deltas), (1, 2));
    assert!(matches!(answer.events.last(), Some(AssistantEvent::Done { .. })));

    let request = setup.server.request(0).await;
    assert_eq!((request.method(), request.path()), ("POST", "/v1/chat/completions"));
    assert_eq!(request.header("authorization"), Some("Bearer sk-test"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert!(request.header("user-agent").unwrap().starts_with("pi/"));
    assert_eq!(request.last_text(), "hi");
}

#[tokio::test]
async fn the_answer_does_not_depend_on_how_its_bytes_are_cut() {
    for pieces in [Pieces::Every(1), Pieces::Every(7), Pieces::Events, Pieces::Bulk] {
        let setup = Setup::replying(Reply::from(Said::new().text("Grüße, 🦀 ").text("你好")).pieces(pieces));
        assert_eq!(setup.ask(StreamOptions::default()).await.message.text(), "Grüße, 🦀 你好");
    }
}

#[tokio::test]
async fn nothing_is_sent_before_the_stream_is_polled() {
    let setup = Setup::new(chat());
    drop(setup.stream(StreamOptions::default()));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(setup.server.requests().is_empty());
}

#[tokio::test]
async fn the_turn_ends_at_the_terminator_even_if_the_server_stays_on_the_line() {
    let setup = Setup::replying(Reply::from("done").end(End::StayOpen));
    let begun = Instant::now();
    let answer = setup.ask(StreamOptions::default()).await;
    assert_eq!((answer.message.text().as_str(), answer.message.stop_reason), ("done", StopReason::Stop));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(setup.server.finished(0).await.outcome, Outcome::ClientLeft, "the socket is dropped");
}

#[tokio::test]
async fn one_connection_serves_one_request_after_another() {
    // The end of a body with a length is known with its last byte.
    let setup = Setup::new(chat().otherwise(Reply::from("again").framing(Framing::ContentLength)));
    for _ in 0..3 {
        setup.ask(StreamOptions::default()).await;
    }
    let connections: Vec<_> = setup.server.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 0, 0]);
}

#[tokio::test]
async fn aborting_ends_the_answer_and_closes_the_socket_at_once() {
    let gate = Gate::new();
    let setup = Setup::replying(Said::new().text("begun").wait_for(&gate).text("never"));
    let signal = CancellationToken::new();
    let mut stream = setup.stream(StreamOptions { signal: signal.clone(), ..StreamOptions::default() });
    while !matches!(stream.next().await, Some(AssistantEvent::TextDelta { .. })) {}
    signal.cancel();
    let answer = finish(stream).await;
    assert_eq!((answer.message.text().as_str(), answer.message.stop_reason), ("begun", StopReason::Aborted));
    assert_eq!(setup.server.finished(0).await.outcome, Outcome::ClientLeft);
}

#[tokio::test]
async fn aborting_works_while_the_server_has_not_answered_yet() {
    let setup = Setup::replying(Reply::from("late").hold(&Gate::new()));
    let signal = CancellationToken::new();
    let asking =
        tokio::spawn(finish(setup.stream(StreamOptions { signal: signal.clone(), ..StreamOptions::default() })));
    setup.server.request(0).await;
    signal.cancel();
    assert_eq!(asking.await.unwrap().message.stop_reason, StopReason::Aborted);
    assert_eq!(setup.server.finished(0).await.outcome, Outcome::ClientLeft);
}

#[tokio::test]
async fn dropping_the_stream_closes_the_socket() {
    let setup = Setup::replying(Said::new().text("begun").wait_for(&Gate::new()));
    let mut stream = setup.stream(StreamOptions::default());
    while !matches!(stream.next().await, Some(AssistantEvent::TextDelta { .. })) {}
    drop(stream);
    assert_eq!(setup.server.finished(0).await.outcome, Outcome::ClientLeft);
}

#[tokio::test]
async fn a_body_without_a_length_lasts_until_the_connection_closes() {
    let setup = Setup::replying(Reply::from("all of it").framing(Framing::UntilClose));
    assert_eq!(setup.ask(StreamOptions::default()).await.message.text(), "all of it");
}

#[tokio::test]
async fn a_long_answer_leaves_other_tasks_their_turns() {
    let setup = Setup::replying(Said::new().text_deltas(vec!["word "; 20_000]));
    let turns = Arc::new(AtomicU32::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let other = tokio::spawn({
        let (turns, over) = (turns.clone(), over.clone());
        async move {
            while !over.load(Ordering::Relaxed) {
                turns.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        }
    });
    let answer = setup.ask(StreamOptions::default()).await;
    over.store(true, Ordering::Relaxed);
    other.await.unwrap();
    assert_eq!(answer.message.text().len(), 100_000);
    assert!(turns.load(Ordering::Relaxed) > 100, "{turns:?}");
}

/// A protocol of an application's own: the body is the question, each event a piece of text.
struct Parrot;

impl Wire for Parrot {
    fn id(&self) -> pi_ai::ApiId {
        "parrot".into()
    }

    fn encode(&self, request: &EncodeRequest<'_>) -> Result<HttpRequest, pi_ai::ProviderError> {
        let key = request.options.api_key.as_ref().map_or("none", |key| key.expose());
        Ok(HttpRequest {
            url: request.model.base_url.clone(),
            headers: vec![("x-key".into(), key.into())],
            body: b"{}".to_vec(),
            note: Note::default(),
        })
    }

    fn decoder(&self, _: &EncodeRequest<'_>, _: &HttpRequest) -> Box<dyn Decoder> {
        struct Echo;
        impl Decoder for Echo {
            fn frame(&mut self, frame: Frame<'_>, answer: &mut MessageBuilder) -> Result<Flow, pi_ai::ProviderError> {
                let text = answer.start_text();
                answer.push_text(text, frame.data);
                answer.end_text(text, BlockEnd::default());
                Ok(Flow::More)
            }

            fn finish(&mut self, answer: &mut MessageBuilder) -> Result<(), pi_ai::ProviderError> {
                answer.done(StopReason::Stop);
                Ok(())
            }
        }
        Box::new(Echo)
    }
}

#[tokio::test]
async fn a_wire_of_ones_own_has_transport_and_keys_like_a_built_in_one() {
    let script = Script::any_wire().when(|request| request.path() == "/parrot", Reply::data_events(["squawk"]));
    let setup = Setup::new(script);
    let models = Models::builder().wire(Parrot).provider(provider(&setup.server.url("/parrot"))).build();
    let mut model = (*models.find("local", "m").unwrap()).clone();
    model.api = "parrot".into();
    let answer = finish(models.ask(&Arc::new(model.clone()), question(), StreamOptions::default())).await;
    assert_eq!(answer.message.text(), "squawk");
    assert_eq!(setup.server.request(0).await.header("x-key"), Some("sk-test"));

    // The same without a registry.
    let options = StreamOptions { api_key: Some("own".into()), ..StreamOptions::default() };
    let stream = Transport::new().stream(Arc::new(Parrot), &Arc::new(model), question().normalize(), options);
    assert_eq!(finish(stream).await.message.text(), "squawk");
    assert_eq!(setup.server.request(1).await.header("x-key"), Some("own"));
}

/// An API that is not HTTP at all.
struct Scripted(FauxProvider);

impl pi_ai::api::Api for Scripted {
    fn id(&self) -> pi_ai::ApiId {
        "scripted".into()
    }

    fn stream(
        &self,
        model: &Arc<pi_ai::Model>,
        context: pi_ai::TranscriptContext,
        options: StreamOptions,
    ) -> pi_ai::AssistantStream {
        self.0.stream(model, context, options)
    }
}

#[tokio::test]
async fn an_api_of_ones_own_gets_what_a_built_in_one_gets() {
    let faux = FauxProvider::new([FauxReply::text("from within")]);
    let provider = Provider::new("mine", "")
        .api("scripted")
        .api_key("k-1")
        .header("x-team", "red")
        .model(pi_ai::Model { id: "m".into(), ..pi_ai::Model::default() });
    let models = Models::builder().api(Scripted(faux.clone())).provider(provider).build();
    let model = models.find("mine", "m").unwrap();
    let answer = finish(models.ask(&model, question(), StreamOptions::default())).await;
    assert_eq!((answer.message.text().as_str(), answer.starts()), ("from within", 1));
    let options = &faux.requests()[0].options;
    assert_eq!(options.api_key.as_ref().unwrap().expose(), "k-1");
    assert_eq!(options.headers["x-team"].as_deref(), Some("red"));
}
