//! pi-ai alone: a wire of one's own. It needs two pure functions, and then has what the built-in ones have: transport,
//! timeouts, retry, proxies, hooks, keys, replay.
//!
//! ```text
//! cargo run -p example-ai-own-wire
//! ```
//!
//! The wire is that of a made-up server, which this program plays itself on a loopback port: it takes
//! `{"model", "say": [{"who", "text"}]}` and streams `{"word": …}` and at last `{"end": …}`.

use std::{error::Error, sync::Arc};

use futures::StreamExt;
use pi_ai::{
    ApiId, AssistantEvent, Context, ErrorKind, Message, Model, Models, ProviderError, StopReason, StreamOptions,
    api::{Decoder, EncodeRequest, Flow, Frame, HttpRequest, Note, Wire, errors},
    models::Provider,
    replay::{AssistantPart, ReplayTarget, Turn, UserContent, replay},
    stream::{BlockEnd, MessageBuilder},
    transcript::{LaterSystemMessages, render_full},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// The wire.
struct Parlour;

impl Wire for Parlour {
    fn id(&self) -> ApiId {
        "parlour".into()
    }

    fn encode(&self, request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
        let key = request.options.api_key.as_ref().map_or("", |key| key.expose());
        let body = json!({ "model": request.model.id, "say": said(request) });
        Ok(HttpRequest {
            url: format!("{}/talk", request.model.base_url),
            headers: vec![
                ("content-type".into(), "application/json".into()),
                ("authorization".into(), format!("Bearer {key}")),
            ],
            body: body.to_string().into_bytes(),
            note: Note::default(),
        })
    }

    fn decoder(&self, request: &EncodeRequest<'_>, _sent: &HttpRequest) -> Box<dyn Decoder> {
        Box::new(Words { provider: request.model.provider.clone(), text: None, end: None })
    }
}

/// The conversation as this wire has it: texts only. Replay has put right what other models wrote.
fn said(request: &EncodeRequest<'_>) -> Vec<Value> {
    let target = ReplayTarget {
        model: request.model,
        later_system_messages: LaterSystemMessages::Unsupported,
        tool_call_id: &|id, _| id.into(),
        max_id_length: 64,
    };
    let line = |who: &str, text: String| json!({ "who": who, "text": text });
    let turns = replay(request.context.messages(), &target);
    let lines = turns.into_iter().map(|turn| match turn {
        Turn::System(message) => line("rules", render_full(&message)),
        Turn::User(UserContent::Text(text)) => line("guest", text.to_owned()),
        Turn::User(UserContent::Parts(_)) => line("guest", "(something that cannot be said)".to_owned()),
        Turn::Assistant(turn) => {
            let texts = turn.parts.iter().filter_map(|part| match part {
                AssistantPart::Text { text, .. } => Some(*text),
                _ => None,
            });
            line("host", texts.collect())
        }
        Turn::ToolResult(turn) => line("butler", turn.text().into_owned()),
    });
    lines.collect()
}

/// An event of the server. Every field may be missing, so that a new kind of event is no error.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Event {
    word: Option<String>,
    end: Option<String>,
    error: Option<Value>,
}

/// Events → the answer.
struct Words {
    provider: pi_ai::ProviderId,
    text: Option<usize>,
    end: Option<StopReason>,
}

impl Decoder for Words {
    fn frame(&mut self, frame: Frame<'_>, answer: &mut MessageBuilder) -> Result<Flow, ProviderError> {
        let event: Event = serde_json::from_str(frame.data)
            .map_err(|error| ProviderError::new(ErrorKind::Protocol, format!("no event of a parlour: {error}")))?;
        if event.error.is_some() {
            return Err(errors::from_event(&self.provider, frame.data));
        }
        if let Some(word) = event.word {
            let text = *self.text.get_or_insert_with(|| answer.start_text());
            answer.push_text(text, word);
        }
        self.end = match event.end.as_deref() {
            Some("breathless") => Some(StopReason::Length),
            Some(_) => Some(StopReason::Stop),
            None => return Ok(Flow::More),
        };
        Ok(Flow::Complete)
    }

    fn finish(&mut self, answer: &mut MessageBuilder) -> Result<(), ProviderError> {
        let reason = self
            .end
            .take()
            .ok_or_else(|| ProviderError::new(ErrorKind::Protocol, "The host left in the middle of a sentence."))?;
        if let Some(text) = self.text.take() {
            answer.end_text(text, BlockEnd::default());
        }
        answer.done(reason);
        Ok(())
    }
}

/// A registry that knows the wire and a server that speaks it.
fn registry(base_url: &str) -> (Models, Arc<Model>) {
    let provider = Provider::new("manor", base_url)
        .api("parlour")
        .api_key("please")
        .model(Model { id: "host".into(), ..Model::default() });
    let models = Models::builder().wire(Parlour).provider(provider).build();
    let model = models.find("manor", "host").unwrap_or_default();
    (models, model)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let events = ["{\"word\":\"Good \"}", "{\"word\":\"evening.\"}", "{\"end\":\"done\"}"];
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (models, model) = registry(&format!("http://{}", listener.local_addr()?));
    let server = tokio::spawn(serve_one(listener, events.map(|event| format!("data: {event}\n\n")).concat()));
    let context = Context { system_prompt: Some("Be polite.".into()), ..Context::from(vec![Message::user("Hello!")]) };
    let mut answer = models.ask(&model, context, StreamOptions::default());
    while let Some(event) = answer.next().await {
        match event {
            AssistantEvent::TextDelta { delta, .. } => print!("{delta}"),
            AssistantEvent::Error { error, .. } => return Err(error.into()),
            _ => {}
        }
    }
    println!();
    println!("The server was told: {}", server.await??);
    Ok(())
}

/// Answers one request with this body, and gives that of the request.
async fn serve_one(listener: TcpListener, answer: String) -> std::io::Result<String> {
    let (mut socket, _) = listener.accept().await?;
    let mut request = Vec::new();
    let body = loop {
        socket.read_buf(&mut request).await?;
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            break body.to_owned();
        }
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    socket.write_all(format!("{head}{answer}").as_bytes()).await?;
    Ok(body)
}

#[cfg(test)]
mod tests {
    use pi_ai::{AssistantMessage, ThinkingContent};

    use super::*;

    async fn answered(events: &[&str], context: Context) -> (AssistantMessage, Value) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (models, model) = registry(&format!("http://{}", listener.local_addr().unwrap()));
        let body = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let server = tokio::spawn(serve_one(listener, body));
        let message = models.ask(&model, context, StreamOptions::default()).result().await;
        (message, serde_json::from_str(&server.await.unwrap().unwrap()).unwrap())
    }

    #[tokio::test]
    async fn words_become_an_answer_and_a_conversation_with_another_model_goes_on() {
        let thinking = ThinkingContent { thinking: "secret".into(), ..ThinkingContent::default() };
        let before = AssistantMessage {
            content: vec![thinking.into(), pi_ai::AssistantBlock::text("Hi.")],
            provider: "elsewhere".into(),
            ..AssistantMessage::default()
        };
        let messages = vec![Message::user("Hello!"), before.into(), Message::user("And now?")];
        let (message, sent) =
            answered(&["{\"word\":\"Tea\"}", "{\"new\":1}", "{\"word\":\"?\"}", "{\"end\":\"\"}"], messages.into())
                .await;
        assert_eq!((message.text().as_str(), message.stop_reason), ("Tea?", StopReason::Stop));
        assert_eq!(sent["say"][1], json!({"who": "host", "text": "Hi."}));
        assert!(!sent.to_string().contains("secret"));
    }

    #[tokio::test]
    async fn failures_are_told_and_keep_what_came() {
        for (events, kind) in [
            (vec!["{\"word\":\"Te\"}"], "left in the middle"),
            (vec!["{\"word\":\"Te\"}", "{\"error\":{\"message\":\"the cook is ill\"}}"], "the cook is ill"),
        ] {
            let (message, _) = answered(&events, Context::from(vec![Message::user("Tea?")])).await;
            assert_eq!((message.text().as_str(), message.stop_reason), ("Te", StopReason::Error));
            assert!(message.error_message.as_deref().unwrap_or_default().contains(kind), "{message:?}");
        }
    }
}
