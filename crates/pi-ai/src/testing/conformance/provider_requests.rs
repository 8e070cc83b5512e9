//! The area `provider_requests`.

use serde_json::{Map, Value, json};

use super::exchange::{Call, context, context_from, options};
use crate::api::HttpRequest;

/// What this crate makes of `input`, a case of the file `file_stem`; `None` when the wire is not built in.
pub fn run(_file_stem: &str, input: &Value) -> Option<Value> {
    let context = match input["context_json"].as_str() {
        Some(json) => context_from(json)?,
        None => context(&input["context"])?,
    };
    let call = Call::new(&input["model"], context, options(&input["options"])?)?;
    Some(match call.wire.encode(&call.request()) {
        Ok(request) => json!({ "request": shown(&call.wire.prepare(&call.request(), request)) }),
        Err(_) => json!({ "request": null, "error": true }),
    })
}

/// A request as the vectors show it: without what names the client.
pub fn shown(request: &HttpRequest) -> Value {
    let mut headers = Map::new();
    for (name, value) in &request.headers {
        if name != "user-agent" {
            headers.insert(name.clone(), value.as_str().into());
        }
    }
    #[cfg(feature = "codex")]
    let unpacked =
        headers.contains_key("content-encoding").then(|| zstd::decode_all(&request.body[..]).unwrap_or_default());
    #[cfg(not(feature = "codex"))]
    let unpacked: Option<Vec<u8>> = None;
    let body: Value = serde_json::from_slice(unpacked.as_deref().unwrap_or(&request.body)).unwrap_or_default();
    json!({ "method": "POST", "url": request.url, "headers": headers, "body": body })
}
