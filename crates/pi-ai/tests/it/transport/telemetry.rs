//! What a listener learns of a request.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use fake_llm::{Answer as Said, Reply, Usage};
use pi_ai::StreamOptions;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    instrument::WithSubscriber as _,
    span::{Attributes, Id, Record},
};

use super::Setup;

type Fields = BTreeMap<String, String>;

/// Keeps the fields of the spans that this crate makes.
#[derive(Clone, Default)]
struct Listener {
    spans: Arc<Mutex<BTreeMap<u64, Fields>>>,
    count: Arc<AtomicU64>,
}

struct Visitor<'a>(&'a mut Fields);

impl Visit for Visitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().into(), format!("{value:?}"));
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "pi_ai"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fields = Fields::new();
        span.record(&mut Visitor(&mut fields));
        self.spans.lock().unwrap().insert(id, fields);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        if let Some(fields) = self.spans.lock().unwrap().get_mut(&span.into_u64()) {
            values.record(&mut Visitor(fields));
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

async fn span_of(reply: impl Into<Reply>) -> Fields {
    let setup = Setup::replying(reply);
    let listener = Listener::default();
    let ask = async { setup.ask(StreamOptions { max_tokens: Some(7), ..StreamOptions::default() }).await };
    ask.with_subscriber(listener.clone()).await;
    let spans = listener.spans.lock().unwrap();
    assert_eq!(spans.len(), 1);
    let fields = spans.values().next().unwrap().clone();
    assert!(!format!("{fields:?}").contains("sk-test"));
    fields
}

#[tokio::test]
async fn a_request_is_a_span_with_the_names_of_the_genai_conventions() {
    let usage = Usage { input: 12, output: 3, ..Usage::default() };
    let fields = span_of(Said::new().text("hi").id("r-9").usage(usage)).await;
    for (name, value) in [
        ("otel.name", "chat m"),
        ("otel.kind", "client"),
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "local"),
        ("gen_ai.request.model", "m"),
        ("gen_ai.request.max_tokens", "7"),
        ("server.address", "127.0.0.1"),
        ("gen_ai.response.id", "r-9"),
        ("gen_ai.usage.input_tokens", "12"),
        ("gen_ai.usage.output_tokens", "3"),
        ("gen_ai.response.finish_reasons", "[\"stop\"]"),
    ] {
        assert_eq!(fields.get(name).map(String::as_str), Some(value), "{name}: {fields:?}");
    }
    assert!(!fields.contains_key("error.type"));
}

#[tokio::test]
async fn a_failed_request_is_marked_as_such() {
    let fields = span_of(Reply::error(429, "slow down")).await;
    assert_eq!((fields["error.type"].as_str(), fields["otel.status_code"].as_str()), ("429", "ERROR"));
}
