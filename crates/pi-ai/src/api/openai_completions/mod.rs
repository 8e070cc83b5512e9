//! The wire `openai-completions`: OpenAI's Chat Completions, which most servers speak in a dialect of their own.

mod body;
mod compat;
mod request;
mod response;

use std::borrow::Cow;

use serde_json::Value;

use super::{Decoder, EncodeRequest, HttpRequest, Wire};
use crate::{error::ProviderError, id::ApiId, model::Model};

/// Chat Completions. What differs between servers is in the model's compat switches.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiCompletions;

impl OpenAiCompletions {
    /// The name that models refer to.
    pub const ID: &'static str = "openai-completions";
}

impl Wire for OpenAiCompletions {
    fn id(&self) -> ApiId {
        Self::ID.into()
    }

    fn encode(&self, request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
        request::encode(request)
    }

    fn decoder(&self, request: &EncodeRequest<'_>, _sent: &HttpRequest) -> Box<dyn Decoder> {
        Box::new(response::ChatDecoder::new(request))
    }
}

/// The longest tool-call id that OpenAI takes.
const MAX_ID_LENGTH: usize = 40;

/// The id of a call that another model made. Ids of the Responses wire have two parts, of which the second may be
/// hundreds of characters long; calls of one turn may share the first.
fn tool_call_id<'a>(id: &'a str, model: &Model) -> Cow<'a, str> {
    let Some((call, item)) = id.split_once('|') else {
        return match model.provider == "openai" {
            true => Cow::Borrowed(super::ids::clipped(id, MAX_ID_LENGTH)),
            false => Cow::Borrowed(id),
        };
    };
    let (call, item) = (super::ids::plain(call), super::ids::plain(item));
    let joined = if item.is_empty() { call.to_string() } else { format!("{call}_{item}") };
    if joined.len() <= MAX_ID_LENGTH {
        return Cow::Owned(joined);
    }
    let hash = super::ids::short_hash(id);
    let hash = super::ids::clipped(&hash, 8);
    let room = MAX_ID_LENGTH - hash.len() - 1;
    Cow::Owned(format!("{}_{hash}", super::ids::clipped(&call, room)))
}

/// Whether this is an entry of `reasoning_details` that can be given back.
fn is_reasoning_detail(detail: &Value) -> bool {
    let Value::Object(detail) = detail else { return false };
    let text = |name: &str| matches!(detail.get(name), Some(Value::String(_)));
    let optional = |name: &str, test: fn(&Value) -> bool| detail.get(name).is_none_or(test);
    let common = optional("id", |id| id.is_null() || id.is_string())
        && optional("format", Value::is_string)
        && optional("index", Value::is_number);
    common
        && match detail.get("type").and_then(Value::as_str) {
            Some("reasoning.summary") => text("summary"),
            Some("reasoning.encrypted") => text("data"),
            Some("reasoning.text") => text("text") && optional("signature", |s| s.is_null() || s.is_string()),
            _ => false,
        }
}
