//! The area `provider_responses`.

use serde_json::Value;

use super::exchange::{Call, NOW, options, outcome, read_body};
use crate::{
    api::{Progress, errors},
    context::Context,
    error::ProviderError,
    message::Message,
    options::StreamOptions,
    stream::MessageBuilder,
};

/// What this crate makes of `input`, a case of the file `file_stem`; `None` when the wire is not built in.
///
/// The body is also read in one piece, which must come to the same.
pub fn run(_file_stem: &str, input: &Value) -> Option<Value> {
    let response = Response::read(&input["response"])?;
    let call = call(input)?;
    let result = response.decode(&call, &response.pieces());
    if response.abort_after.is_none() {
        let whole = response.decode(&call, &[&response.body]);
        assert_eq!(whole, result, "the answer depends on how the bytes arrive");
    }
    Some(result)
}

/// The cut that changes the answer, if there is one. Bytes arrive one by one, and the body of a short response also in
/// every two pieces.
pub fn cut_that_matters(input: &Value) -> Option<usize> {
    const SHORT: usize = 600;
    let response = Response::read(&input["response"])?;
    if response.abort_after.is_some() {
        return None;
    }
    let call = call(input)?;
    let body = &response.body;
    let whole = response.decode(&call, &[body]);
    if response.decode(&call, &body.chunks(1).collect::<Vec<_>>()) != whole {
        return Some(0);
    }
    let message = response.answer(&call, &[body]).into_message();
    (1..body.len()).filter(|_| body.len() <= SHORT).find(|cut| {
        let (before, after) = body.split_at(*cut);
        response.answer(&call, &[before, after]).into_message() != message
    })
}

fn call(input: &Value) -> Option<Call> {
    let context = Context::from(vec![Message::user("go")]).normalize();
    let options = StreamOptions { api_key: Some("test-key".into()), ..options(&input["options"])? };
    Call::new(&input["model"], context, options)
}

/// A recorded response.
pub(super) struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    cuts: Vec<usize>,
    abort_after: Option<usize>,
}

impl Response {
    pub(super) fn read(value: &Value) -> Option<Self> {
        let headers = value["headers"].as_object().into_iter().flatten();
        let cuts = value["cuts"].as_array().into_iter().flatten();
        Some(Self {
            status: u16::try_from(value["status"].as_u64().unwrap_or(200)).ok()?,
            headers: headers
                .map(|(name, value)| Some((name.to_ascii_lowercase(), value.as_str()?.to_owned())))
                .collect::<Option<_>>()?,
            body: match value["event_stream"].as_array() {
                Some(events) => event_stream(events)?,
                None => value["body"].as_str()?.as_bytes().to_vec(),
            },
            cuts: cuts.map(|cut| usize::try_from(cut.as_u64()?).ok()).collect::<Option<_>>()?,
            abort_after: value["abort_after_chunks"].as_u64().and_then(|pieces| usize::try_from(pieces).ok()),
        })
    }

    /// Whether the provider began to answer.
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The error that a refusal stands for.
    pub(super) fn error(&self, call: &Call) -> ProviderError {
        errors::from_response(&call.model.provider, self.status, self.headers.clone(), &self.body)
    }

    /// The pieces in which the body arrives.
    pub(super) fn pieces(&self) -> Vec<&[u8]> {
        let mut ends: Vec<usize> = self.cuts.iter().copied().filter(|cut| *cut < self.body.len()).collect();
        ends.push(self.body.len());
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(ends.iter()).map(|(start, end)| &self.body[start..*end]).collect()
    }

    fn decode(&self, call: &Call, pieces: &[&[u8]]) -> Value {
        outcome(&call.model, self.answer(call, pieces))
    }

    fn answer(&self, call: &Call, pieces: &[&[u8]]) -> MessageBuilder {
        let mut answer = MessageBuilder::new(&call.model, NOW);
        if self.is_success() {
            if call.wire.framing().begins_with_status() {
                answer.start();
            }
            let mut reader = call.reader();
            match self.abort_after {
                None => read_body(&mut reader, pieces, &mut answer),
                Some(count) => {
                    for piece in pieces.iter().take(count) {
                        reader.push(piece);
                        while reader.advance(&mut answer) == Progress::Decoded {}
                    }
                    answer.fail(ProviderError::aborted());
                }
            }
        } else {
            answer.fail(self.error(call));
        }
        answer
    }
}

/// Events and exceptions as AWS frames them.
fn event_stream(events: &[Value]) -> Option<Vec<u8>> {
    #[cfg(feature = "bedrock")]
    {
        let mut body = Vec::new();
        for event in events {
            let (kind, name) = match (event["event"].as_str(), event["exception"].as_str()) {
                (Some(name), _) => ("event", name),
                (None, name) => ("exception", name?),
            };
            body.extend(crate::testing::aws_frame(kind, name, event["payload"].to_string().as_bytes()));
        }
        Some(body)
    }
    #[cfg(not(feature = "bedrock"))]
    {
        let _ = events;
        None
    }
}
