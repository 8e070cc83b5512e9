//! The wire formats: how an answer is encoded and what a request must hold.
//!
//! A wire is one file with one [`Dialect`]; adding one is that file, a variant of [`Wire`] and its row
//! in [`Wire::ALL`] and [`Wire::dialect`].

mod anthropic_messages;
mod bedrock;
mod check;
mod google;
mod mistral;
mod openai_completions;
mod openai_responses;
mod pairing;
mod pi_messages;

use serde_json::Value;

use crate::answer::Answer;
use crate::reply::Step;
use crate::request::Request;
use crate::rules::{Rules, Violation};

pub(crate) use check::Check;
pub(crate) use pairing::Pairing;

/// A wire format that the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wire {
    /// OpenAI chat completions, `POST …/chat/completions`.
    OpenAiCompletions,
    /// Anthropic messages, `POST …/messages`.
    AnthropicMessages,
    /// OpenAI Responses, `POST …/responses`.
    OpenAiResponses,
    /// Google generative language, `POST …:streamGenerateContent`.
    GoogleGenerativeAi,
    /// Mistral chat, `POST …/chat/completions`. It shares its path with [`Wire::OpenAiCompletions`], so a server speaks
    /// it only when its script names it.
    MistralConversations,
    /// Amazon Bedrock, `POST /model/…/converse-stream`.
    BedrockConverseStream,
    /// The messages of pi itself, `POST …/messages` or `POST …/api/stream`. It shares a path with
    /// [`Wire::AnthropicMessages`], so a server speaks it only when its script names it.
    PiMessages,
}

impl Wire {
    /// All wires, in the order in which a path is tried on them.
    pub const ALL: &[Wire] = &[
        Wire::OpenAiCompletions,
        Wire::AnthropicMessages,
        Wire::OpenAiResponses,
        Wire::GoogleGenerativeAi,
        Wire::MistralConversations,
        Wire::BedrockConverseStream,
        Wire::PiMessages,
    ];

    /// The wire whose requests go to this path.
    pub fn of_path(path: &str) -> Option<Wire> {
        Self::ALL.iter().copied().find(|wire| wire.owns(path))
    }

    /// Whether requests of this wire go to this path.
    pub(crate) fn owns(self, path: &str) -> bool {
        self.dialect().owns(path)
    }

    /// The name that configuration files use, e.g. `openai-completions`.
    pub fn name(self) -> &'static str {
        self.dialect().name()
    }

    /// The path under the server's address that a client is configured with, e.g. `/v1`.
    pub fn base_path(self) -> &'static str {
        self.dialect().base_path()
    }

    pub(crate) fn dialect(self) -> &'static dyn Dialect {
        match self {
            Self::OpenAiCompletions => &openai_completions::OpenAiCompletions,
            Self::AnthropicMessages => &anthropic_messages::AnthropicMessages,
            Self::OpenAiResponses => &openai_responses::OpenAiResponses,
            Self::GoogleGenerativeAi => &google::Google,
            Self::MistralConversations => &mistral::Mistral,
            Self::BedrockConverseStream => &bedrock::Bedrock,
            Self::PiMessages => &pi_messages::PiMessages,
        }
    }

    /// What is wrong with a request of this wire: head and body, under these rules.
    ///
    /// The server does this for each request; the function is public so that recorded requests can be
    /// held against the same rules.
    pub fn check_body(self, body: &Value, rules: &Rules) -> Vec<Violation> {
        let mut check = Check::new(0, *rules);
        self.dialect().check(body, &mut check);
        check.into_violations()
    }
}

/// What the encoder may know of the request.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) model: &'a str,
    /// The request's number, for ids.
    pub(crate) serial: usize,
}

/// One wire format.
pub(crate) trait Dialect: Sync {
    fn name(&self) -> &'static str;
    fn base_path(&self) -> &'static str;
    fn owns(&self, path: &str) -> bool;
    /// The type of a streamed answer's body.
    fn content_type(&self) -> &'static str {
        "text/event-stream"
    }
    /// The model that a request asks for.
    fn model<'r>(&self, request: &'r Request) -> &'r str {
        request.json()["model"].as_str().unwrap_or("fake-model")
    }
    /// The events of a streamed answer, each with the blank line that ends it.
    fn steps(&self, answer: &Answer, asked: &Asked<'_>) -> Vec<Step>;
    fn error_body(&self, status: u16, message: &str) -> Value;
    /// The headers that the service insists on.
    fn check_head(&self, request: &Request, check: &mut Check);
    fn check(&self, body: &Value, check: &mut Check);
}
