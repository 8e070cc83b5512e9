//! The area `provider_sequences`.

use serde_json::{Value, json};

use super::{
    exchange::{Call, NOW, context, options, read_body},
    provider_requests::shown,
    provider_responses::Response,
};
use crate::{
    api::{BuiltinWires, Exchange, Next},
    context::Context,
    error::{ErrorKind, ProviderError},
    message::{AssistantMessage, Message},
    stream::MessageBuilder,
};

/// What this crate makes of `input`, a case of the file `file_stem`; `None` when there is no runner for that file.
pub fn run(file_stem: &str, input: &Value) -> Option<Value> {
    match file_stem {
        "http_retry" => http_retry(input),
        "anthropic_threads" => anthropic_threads(input),
        _ => None,
    }
}

fn http_retry(input: &Value) -> Option<Value> {
    let context = Context::from(vec![Message::user("go")]).normalize();
    let mut call = Call::new(&input["model"], context, options(&input["options"])?)?;
    call.options.api_key = Some("test-key".into());
    let mut server = Server::new(input)?;
    let message = server.answer(&call);
    Some(json!({ "requests": server.requests.len(), "stopReason": message.stop_reason }))
}

fn anthropic_threads(input: &Value) -> Option<Value> {
    let wires = BuiltinWires::default();
    let mut server = Server::new(input)?;
    let (mut stop_reasons, mut diagnostics) = (Vec::new(), Vec::new());
    for step in input["steps"].as_array()? {
        let mut call = Call::new(&input["model"], context(&step["context"])?, options(&step["options"])?)?;
        call.wire = wires.get(&call.model.api).ok()?;
        call.options.api_key = Some("test-key".into());
        let message = server.answer(&call);
        stop_reasons.push(json!(message.stop_reason));
        let told = message.diagnostics.as_ref().and_then(Value::as_array).into_iter().flatten();
        diagnostics.push(told.map(|diagnostic| diagnostic["type"].clone()).collect::<Value>());
    }
    let requests: Vec<Value> = server
        .requests
        .iter()
        .map(|request| {
            let body = &request["body"];
            json!({ "thread": body["thread"], "has_system": body.get("system").is_some(), "messages": body["messages"] })
        })
        .collect();
    Some(json!({ "requests": requests, "stop_reasons": stop_reasons, "diagnostics": diagnostics }))
}

/// A provider that gives recorded responses in order.
struct Server {
    replies: std::vec::IntoIter<Response>,
    requests: Vec<Value>,
}

impl Server {
    fn new(input: &Value) -> Option<Self> {
        let replies: Vec<Response> = input["replies"].as_array()?.iter().map(Response::read).collect::<Option<_>>()?;
        Some(Self { replies: replies.into_iter(), requests: Vec::new() })
    }

    /// Drives one call to its end, as a transport does, without waiting.
    fn answer(&mut self, call: &Call) -> AssistantMessage {
        let mut answer = MessageBuilder::new(&call.model, NOW);
        let (wire, model, options) = (call.wire.clone(), call.model.clone(), call.options.clone());
        let mut exchange = Exchange::new(wire, model, call.context.clone(), options);
        let mut sent = None;
        loop {
            let http = match sent.take() {
                Some(http) => http,
                None => match exchange.encode() {
                    Ok(http) => exchange.prepare(http),
                    Err(error) => {
                        exchange.fail(error, &mut answer);
                        break;
                    }
                },
            };
            self.requests.push(shown(&http));
            let error = match self.replies.next() {
                Some(reply) if reply.is_success() => {
                    let mut reader = exchange.begin(&http, &mut answer);
                    read_body(&mut reader, &reply.pieces(), &mut answer);
                    break;
                }
                Some(reply) => reply.error(call),
                None => ProviderError::new(ErrorKind::Other, "The script ended."),
            };
            match exchange.failed(&http, &error, 0.5) {
                Next::EncodeAgain => {}
                Next::SendAgainAfter(_) => sent = Some(http),
                Next::Fail(error) => {
                    exchange.fail(error, &mut answer);
                    break;
                }
            }
        }
        answer.into_message()
    }
}
