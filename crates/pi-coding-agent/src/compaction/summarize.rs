//! Asking a model for a summary.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use pi_ai::{
    AssistantMessage, CacheRetention, CancellationToken, Clock, Context, IdSource, InputBlock, Message, Model,
    SessionId, StopReason, StreamFn, StreamOptions, ThinkingLevel, Timestamp, Usage, UserMessage,
    id::RandomIds,
    recovery::{RetryEvent, RetryPolicy, retry_assistant_call},
    time::SystemClock,
};

use super::{
    prompts,
    serialize::{head_and_tail, parts},
};

/// Told what happens while a request is repeated; awaited.
pub type RetryObserver = Arc<dyn Fn(RetryEvent) -> BoxFuture<'static, ()> + Send + Sync>;

/// How a summary is asked for.
#[derive(Clone)]
pub struct SummaryOptions {
    /// Options of the request: keys, headers, timeouts, hooks. What a summary needs otherwise is set over them.
    pub request: StreamOptions,
    /// How hard to think, when the model can.
    pub thinking_level: ThinkingLevel,
    /// What the user wants to be kept above all.
    pub instructions: SummaryInstructions,
    /// Names the conversation to the provider, for routing only: nothing is cached.
    pub session_id: Option<SessionId>,
    /// How often a failed request is repeated. `None`: not at all.
    pub retry: Option<RetryPolicy>,
    /// Told about repetitions.
    pub observer: Option<RetryObserver>,
    /// Tells the time of the request.
    pub clock: Arc<dyn Clock>,
    /// Makes the routing id, when there is no session id.
    pub ids: Arc<dyn IdSource>,
}

/// What the user says about the summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SummaryInstructions {
    /// Nothing.
    #[default]
    Usual,
    /// Something to keep above all, besides the usual.
    Focus(String),
    /// Something to do instead of the usual. (Compactions take it as a focus: what comes after them relies on their
    /// sections.)
    Instead(String),
}

impl SummaryInstructions {
    pub(super) fn apply(&self, usual: String) -> String {
        match self {
            Self::Usual => usual,
            Self::Focus(focus) | Self::Instead(focus) => prompts::with_focus(usual, Some(focus)),
        }
    }
}

impl Default for SummaryOptions {
    fn default() -> Self {
        Self {
            request: StreamOptions::default(),
            thinking_level: ThinkingLevel::Off,
            instructions: SummaryInstructions::default(),
            session_id: None,
            retry: None,
            observer: None,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
        }
    }
}

impl fmt::Debug for SummaryOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SummaryOptions")
            .field("thinking_level", &self.thinking_level)
            .field("instructions", &self.instructions)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

/// Why there is no summary. Nothing has been changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// It was aborted.
    #[error("the summary was aborted")]
    Aborted,
    /// The request failed.
    #[error("the model could not summarise {what}: {message}")]
    Failed {
        /// What was to be summarised.
        what: &'static str,
        /// Why.
        message: String,
    },
    /// The answer reached its length limit. Half a summary would lose the other half of the conversation.
    #[error("the summary of {what} reached the model's output limit and is incomplete")]
    Incomplete {
        /// What was to be summarised.
        what: &'static str,
    },
    /// The model called a tool instead.
    #[error("the model called a tool instead of summarising {what}")]
    CalledTool {
        /// What was to be summarised.
        what: &'static str,
    },
    /// The model said nothing.
    #[error("the model's summary of {what} is empty")]
    Empty {
        /// What was to be summarised.
        what: &'static str,
    },
}

/// A summary and what it cost.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Summary {
    pub(super) text: String,
    pub(super) usage: Usage,
}

/// Asks for summaries.
pub(super) struct Summarizer<'a> {
    pub(super) stream: &'a dyn StreamFn,
    pub(super) model: &'a Arc<Model>,
    pub(super) options: &'a SummaryOptions,
    pub(super) signal: &'a CancellationToken,
}

/// What is asked for.
pub(super) struct Task<'a> {
    /// What is summarised, for errors.
    pub(super) what: &'static str,
    /// What the summariser is told when nothing was summarised before.
    pub(super) instructions: &'a str,
    /// What it is told when there is a summary already.
    pub(super) update_instructions: &'a str,
    /// The summary of what came before.
    pub(super) previous: Option<&'a str>,
    /// Tokens to keep free for instructions and answer.
    pub(super) reserve_tokens: u64,
}

impl Summarizer<'_> {
    /// Summarises a conversation. One that is too long for the model is summarised in pieces, each summary going into
    /// the next; a single message that is too long is cut in its middle.
    pub(super) async fn summarize(&self, messages: &[Message], task: &Task<'_>) -> Result<Summary, SummaryError> {
        let mut previous = task.previous.map(str::to_owned);
        let mut usage: Option<Usage> = None;
        for piece in pieces(messages, input_units(self.model, task)) {
            let summary = self.ask(&piece, previous.as_deref(), task).await?;
            match &mut usage {
                None => usage = Some(summary.usage),
                Some(usage) => usage.add(&summary.usage),
            }
            previous = Some(summary.text);
        }
        match (previous, usage) {
            (Some(text), Some(usage)) => Ok(Summary { text, usage }),
            _ => Err(SummaryError::Empty { what: task.what }),
        }
    }

    async fn ask(&self, conversation: &str, previous: Option<&str>, task: &Task<'_>) -> Result<Summary, SummaryError> {
        let mut prompt = format!("<conversation>\n{conversation}\n</conversation>\n\n");
        if let Some(previous) = previous {
            prompt += &format!("<previous-summary>\n{previous}\n</previous-summary>\n\n");
        }
        prompt += if previous.is_some() { task.update_instructions } else { task.instructions };
        judge(self.request(prompt).await, task.what)
    }

    async fn request(&self, prompt: String) -> AssistantMessage {
        let options = self.options;
        let mut request = options.request.clone();
        request.signal = self.signal.clone();
        request.cache_retention = CacheRetention::None;
        request.session_id = Some(options.session_id.clone().unwrap_or_else(|| options.ids.uuid_v7().into()));
        let thinks = self.model.reasoning && options.thinking_level != ThinkingLevel::Off;
        request.reasoning = thinks.then_some(options.thinking_level);
        let now: Timestamp = options.clock.now();
        let ask = || {
            let content = [InputBlock::text(prompt.clone())].into();
            let context = Context {
                system_prompt: Some(prompts::SUMMARIZER.to_owned()),
                messages: vec![UserMessage { content, timestamp: now }.into()],
                tools: Vec::new(),
            };
            self.stream.stream(self.model, context.normalize(), request.clone()).result()
        };
        let observe = |event| {
            let observer = options.observer.clone();
            async move {
                if let Some(observer) = observer {
                    observer(event).await;
                }
            }
        };
        retry_assistant_call(ask, options.retry.as_ref(), self.signal, observe).await
    }
}

fn judge(answer: AssistantMessage, what: &'static str) -> Result<Summary, SummaryError> {
    match answer.stop_reason {
        StopReason::Aborted => return Err(SummaryError::Aborted),
        StopReason::Error => {
            let message = answer.error_message.unwrap_or_else(|| "the provider did not say why".into());
            return Err(SummaryError::Failed { what, message });
        }
        StopReason::Length => return Err(SummaryError::Incomplete { what }),
        _ => {}
    }
    if answer.tool_calls().next().is_some() {
        return Err(SummaryError::CalledTool { what });
    }
    let texts: Vec<&str> = answer.content.iter().filter_map(pi_ai::AssistantBlock::as_text).collect();
    let text = texts.join("\n");
    if text.trim().is_empty() { Err(SummaryError::Empty { what }) } else { Ok(Summary { text, usage: answer.usage }) }
}

/// The window that is assumed of a model that does not say.
pub(super) const USUAL_WINDOW: u64 = 128_000;

pub(super) fn window_of(model: &Model) -> u64 {
    if model.context_window == 0 { USUAL_WINDOW } else { model.context_window }
}

/// How many UTF-16 units of a conversation fit into one request, next to instructions, an earlier summary and the
/// answer. Three units are counted as a token: more than most models make of them.
fn input_units(model: &Model, task: &Task<'_>) -> usize {
    const UNITS_PER_TOKEN: u64 = 3;
    const LEAST: u64 = 2000;
    let window = window_of(model);
    // A small window must not be reserved away.
    let answer = task.reserve_tokens.min(window / 2);
    let units = |text: &str| pi_ai::api::budget::units(text);
    let beside = units(prompts::SUMMARIZER)
        + units(task.instructions).max(units(task.update_instructions))
        + task.previous.map_or(0, units);
    let room = ((window - answer) * UNITS_PER_TOKEN).saturating_sub(beside).max(LEAST);
    usize::try_from(room).unwrap_or(usize::MAX)
}

/// The conversation as text, in pieces of at most so many UTF-16 units.
fn pieces(messages: &[Message], limit: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut current = String::new();
    let mut current_units = 0;
    for part in messages.iter().flat_map(parts) {
        let part = head_and_tail(&part, limit);
        let part_units = part.encode_utf16().count() + 2;
        if !current.is_empty() && current_units + part_units > limit {
            pieces.push(std::mem::take(&mut current));
            current_units = 0;
        }
        if !current.is_empty() {
            current.push_str("\n\n");
        }
        current.push_str(&part);
        current_units += part_units;
    }
    if !current.is_empty() || pieces.is_empty() {
        pieces.push(current);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_that_fits_is_one_piece() {
        let messages = [Message::user("one"), Message::user("two")];
        assert_eq!(pieces(&messages, 100), [super::super::serialize_conversation(&messages)]);
        assert_eq!(pieces(&[], 100), [""]);
    }

    #[test]
    fn a_long_conversation_is_cut_between_messages_and_a_long_message_inside() {
        let messages = [Message::user("a".repeat(40)), Message::user("b".repeat(40)), Message::user("c".repeat(400))];
        let pieces = pieces(&messages, 90);
        assert_eq!(pieces.len(), 3);
        assert!(pieces[0].contains(&"a".repeat(40)) && pieces[1].contains(&"b".repeat(40)));
        assert!(pieces[2].starts_with("[User] ccc") && pieces[2].ends_with("ccc") && pieces[2].len() < 200);
    }
}
