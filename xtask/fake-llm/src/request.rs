//! What the server saw of a request.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use crate::wire::Wire;

/// A request as it came in. Cloning copies pointers.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its number, counted from 0 in order of arrival.
    pub index: usize,
    /// The connection it came on, counted from 0.
    pub connection: usize,
    /// The wire it speaks, when its path is one of a wire.
    pub wire: Option<Wire>,
    /// When the first byte of the request was there.
    pub first_byte_at: Instant,
    /// When the last byte of the request was there.
    pub received_at: Instant,
    /// What became of the response.
    pub outcome: Outcome,
    pub(crate) head: Arc<Head>,
    pub(crate) body: Arc<Vec<u8>>,
    pub(crate) json: Option<Arc<Value>>,
}

/// The request line and the headers.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }
}

/// What became of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is being sent, or held open.
    Pending,
    /// All that was scripted was handed to the kernel.
    Sent,
    /// The client closed the connection before that.
    ClientLeft,
}

impl Request {
    /// `GET`, `POST`, ….
    pub fn method(&self) -> &str {
        &self.head.method
    }

    /// The path without the query.
    pub fn path(&self) -> &str {
        self.target().split('?').next().unwrap_or_default()
    }

    /// The path with the query, as it was sent.
    pub fn target(&self) -> &str {
        &self.head.target
    }

    /// The headers in the order they were sent, names in lower case.
    pub fn headers(&self) -> &[(String, String)] {
        &self.head.headers
    }

    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    /// The body as it was sent.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The body as JSON; `null` when it is not JSON.
    pub fn json(&self) -> &Value {
        self.json.as_deref().unwrap_or(&Value::Null)
    }

    /// The roles of the messages in order.
    pub fn roles(&self) -> Vec<&str> {
        self.messages().iter().map(|message| message["role"].as_str().unwrap_or_default()).collect()
    }

    /// The messages; empty when the wire calls them otherwise.
    pub fn messages(&self) -> &[Value] {
        self.json()["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The names of the declared tools in order.
    pub fn tool_names(&self) -> Vec<&str> {
        let tools = self.json()["tools"].as_array().map_or(&[][..], Vec::as_slice);
        tools.iter().filter_map(|tool| tool["name"].as_str().or_else(|| tool["function"]["name"].as_str())).collect()
    }

    /// The text of the last message, its text blocks joined by newlines.
    pub fn last_text(&self) -> String {
        self.messages().last().map(text_of).unwrap_or_default()
    }

    /// The texts of the system prompt (a leading system or developer message, or the `system` field).
    pub fn system_text(&self) -> String {
        let body = self.json();
        if !body["system"].is_null() {
            return text_of_content(&body["system"]);
        }
        let first = self.messages().first();
        let leading = first.filter(|message| matches!(message["role"].as_str(), Some("system" | "developer")));
        leading.map(text_of).unwrap_or_default()
    }
}

fn text_of(message: &Value) -> String {
    text_of_content(&message["content"])
}

fn text_of_content(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<String> = blocks
                .iter()
                .filter_map(|block| match block["text"].as_str() {
                    Some(text) => Some(text.to_owned()),
                    None if !block["content"].is_null() => Some(text_of_content(&block["content"])),
                    None => None,
                })
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}
