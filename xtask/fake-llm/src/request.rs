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

    /// The messages, under the name that the wire has for them.
    pub fn messages(&self) -> &[Value] {
        let body = self.json();
        let mut lists = ["messages", "input", "contents"].iter().filter_map(|name| body[name].as_array());
        lists.next().map_or(&[], Vec::as_slice)
    }

    /// The names of the declared tools in order.
    pub fn tool_names(&self) -> Vec<&str> {
        let tools = self.json()["tools"].as_array().map_or(&[][..], Vec::as_slice);
        let declarations = tools.iter().flat_map(|tool| match tool["functionDeclarations"].as_array() {
            Some(declarations) => declarations.as_slice(),
            None => std::slice::from_ref(tool),
        });
        declarations.filter_map(|tool| tool["name"].as_str().or_else(|| tool["function"]["name"].as_str())).collect()
    }

    /// The text of the last message or result, its text blocks joined by newlines.
    pub fn last_text(&self) -> String {
        self.messages().last().map(text_of).unwrap_or_default()
    }

    /// The text of the system prompt: a leading system or developer message, or the body's own field for it.
    pub fn system_text(&self) -> String {
        let body = self.json();
        let fields = ["system", "instructions", "systemInstruction"];
        if let Some(field) = fields.into_iter().find(|field| !body[*field].is_null()) {
            return text_of(&body[field]);
        }
        let first = self.messages().first();
        let leading = first.filter(|message| matches!(message["role"].as_str(), Some("system" | "developer")));
        leading.map(text_of).unwrap_or_default()
    }
}

/// The texts in a message or a part of one, whatever its wire calls them, joined by newlines.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(text_of).filter(|text| !text.is_empty()).collect();
            texts.join("\n")
        }
        Value::Object(fields) => {
            let names = ["text", "content", "parts", "output", "functionResponse", "response", "error"];
            names.into_iter().find_map(|name| fields.get(name)).map(text_of).unwrap_or_default()
        }
        _ => String::new(),
    }
}
