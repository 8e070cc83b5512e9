//! What a transcript says to the guide: the tools, the working folder, the request to answer, what is known already.

use std::collections::HashMap;

use pi_ai::{Message, StopReason, ToolCallId, transcript::TranscriptState};
use serde_json::{Map, Value};

use super::{
    intent::{Earlier, Intent, PIPED, Piped, understand},
    utterance::{Attachment, Utterance},
};

/// Earlier exchanges that are looked at; older ones are out of mind.
const REMEMBERED: usize = 30;

/// A call of a tool and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fact {
    pub(super) tool: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) outcome: Outcome,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// The tool's text.
    Done(String),
    /// The tool's error text.
    Failed(String),
    /// There is no result: the call was never carried out.
    Lost,
}

/// The transcript as the guide sees it. Everything here is derived from the messages and nothing else, so that a
/// resumed session goes on as if it had never stopped.
#[derive(Debug)]
pub(super) struct Conversation {
    /// Names of the tools that may be called.
    pub(super) tools: Vec<String>,
    /// The working folder, where the prompt says it.
    pub(super) cwd: Option<String>,
    /// What is asked now.
    pub(super) request: String,
    pub(super) intent: Option<Intent>,
    pub(super) attachments: Vec<Attachment>,
    pub(super) has_pictures: bool,
    /// What was found out since it was asked.
    pub(super) facts: Vec<Fact>,
    /// How often tools were called since then.
    pub(super) rounds: usize,
    /// Answers in the whole transcript, for ids that occur once.
    pub(super) answers: usize,
}

impl Conversation {
    pub(super) fn read(messages: &[Message]) -> Self {
        let state: TranscriptState = messages.iter().collect();
        let request_at = current_request(messages);
        let past = exchanges(&messages[..request_at.unwrap_or(messages.len())]);
        let earlier =
            past.iter().rev().take(REMEMBERED).rev().fold(None, |earlier: Option<Earlier>, (asked, answer)| {
                match understand(asked, earlier.as_ref()) {
                    Some(Intent::Greet | Intent::Thanks | Intent::Help) | None => earlier,
                    Some(intent) => Some(Earlier::new(intent, answer)),
                }
            });
        let request =
            request_at.and_then(|at| Some(messages[at].as_user()?.content.text().into_owned())).unwrap_or_default();
        let since = &messages[request_at.map_or(messages.len(), |at| at + 1)..];
        Self {
            tools: state.tools().map(|tool| tool.name.clone()).collect(),
            cwd: state.sections().get("cwd").and_then(|section| inside_tag(section, "cwd")).map(str::to_owned),
            intent: understand(&request, earlier.as_ref()),
            attachments: attachments(&request),
            has_pictures: request_at
                .and_then(|at| messages[at].as_user())
                .is_some_and(|user| has_pictures(&user.content)),
            request,
            facts: facts(since),
            rounds: since
                .iter()
                .filter_map(Message::as_assistant)
                .filter(|answer| answer.tool_calls().next().is_some())
                .count(),
            answers: messages.iter().filter(|message| message.as_assistant().is_some()).count(),
        }
    }
}

/// The message to answer: the last one of a person since the last complete answer that the rules understand; other
/// messages in a person's role (notes of an extension, the output of a command) ask for nothing. When none is
/// understood, the last one.
fn current_request(messages: &[Message]) -> Option<usize> {
    let last = messages.iter().rposition(|message| message.as_user().is_some())?;
    let answered = messages[..last].iter().rposition(is_complete_answer).map_or(0, |at| at + 1);
    let understood = (answered..last)
        .rev()
        .find(|at| messages[*at].as_user().is_some_and(|user| understand(&user.content.text(), None).is_some()));
    let text = messages[last].as_user()?.content.text();
    // A short remark after a request that is understood still counts as the request, unless it is understood itself
    // or leans on what was said before.
    match understood {
        Some(at)
            if understand(&text, None).is_none()
                && messages[at + 1..last].iter().any(|m| m.as_assistant().is_some()) =>
        {
            Some(at)
        }
        _ => Some(last),
    }
}

fn is_complete_answer(message: &Message) -> bool {
    message
        .as_assistant()
        .is_some_and(|answer| answer.tool_calls().next().is_none() && answer.stop_reason != StopReason::Aborted)
}

fn exchanges(messages: &[Message]) -> Vec<(String, String)> {
    let mut exchanges: Vec<(String, String)> = Vec::new();
    for message in messages {
        match message {
            Message::User(user) => exchanges.push((user.content.text().into_owned(), String::new())),
            Message::Assistant(answer) => {
                if let Some((_, text)) = exchanges.last_mut() {
                    *text = answer.text();
                }
            }
            Message::System(_) | Message::ToolResult(_) => {}
        }
    }
    exchanges
}

fn facts(messages: &[Message]) -> Vec<Fact> {
    let mut results: HashMap<&ToolCallId, Outcome> = HashMap::new();
    for result in messages.iter().filter_map(Message::as_tool_result) {
        let text = result.content.iter().filter_map(|block| block.as_text()).collect::<Vec<_>>().join("\n");
        results.insert(&result.tool_call_id, if result.is_error { Outcome::Failed(text) } else { Outcome::Done(text) });
    }
    let calls = messages.iter().filter_map(Message::as_assistant).flat_map(|answer| answer.tool_calls());
    calls
        .map(|call| Fact {
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            outcome: results.get(&call.id).cloned().unwrap_or(Outcome::Lost),
        })
        .collect()
}

/// The files and the piped text that came along with a request.
fn attachments(request: &str) -> Vec<Attachment> {
    match Piped::split(request) {
        Some(piped) => vec![Attachment { name: PIPED.to_owned(), content: piped.material.to_owned() }],
        None => Utterance::parse(request).attachments,
    }
}

fn has_pictures(content: &pi_ai::Content) -> bool {
    matches!(content, pi_ai::Content::Blocks(blocks) if blocks.iter().any(|block| matches!(block, pi_ai::InputBlock::Image(_))))
}

fn inside_tag<'t>(text: &'t str, tag: &str) -> Option<&'t str> {
    let text = text.trim();
    let inner = text.strip_prefix(&format!("<{tag}>"))?.strip_suffix(&format!("</{tag}>"))?.trim();
    (!inner.is_empty()).then_some(inner)
}
