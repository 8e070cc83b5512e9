//! What a wire's decoder writes an answer with.

use std::{collections::VecDeque, time::Instant};

use crate::{
    error::{ErrorKind, ProviderError},
    message::{AssistantBlock, AssistantMessage, StopReason, ThinkingContent, ToolCall},
    model::Model,
    stream::{
        event::{AssistantEvent, BlockEnd, Completion},
        fold::MessageFold,
    },
    time::Timestamp,
    usage::Usage,
};

/// Writes an answer: each method makes an event, folds it into the message and queues it.
///
/// Decoders of the built-in wires, the faux provider and wires that an application adds all write through it, so that
/// events and message cannot disagree.
///
/// ```
/// use pi_ai::{Model, StopReason, Timestamp, stream::{BlockEnd, MessageBuilder}};
/// let mut answer = MessageBuilder::new(&Model::default(), Timestamp::default());
/// answer.start();
/// let text = answer.start_text();
/// answer.push_text(text, "hello");
/// answer.end_text(text, BlockEnd::default());
/// answer.done(StopReason::Stop);
/// assert_eq!(answer.message().text(), "hello");
/// ```
#[derive(Debug)]
pub struct MessageBuilder {
    fold: MessageFold,
    events: VecDeque<AssistantEvent>,
    started: bool,
    since: Option<Instant>,
    late_signatures: Vec<(usize, String)>,
}

impl MessageBuilder {
    /// An empty answer from this model.
    pub fn new(model: &Model, timestamp: Timestamp) -> Self {
        Self {
            fold: MessageFold::new(model, timestamp),
            events: VecDeque::new(),
            started: false,
            since: None,
            late_signatures: Vec::new(),
        }
    }

    /// Says in the message how long it took from now until its end.
    #[must_use]
    pub fn timed(mut self) -> Self {
        self.since = Some(Instant::now());
        self
    }

    /// The message so far.
    pub fn message(&self) -> &AssistantMessage {
        self.fold.message()
    }

    /// The message, owned.
    pub fn into_message(self) -> AssistantMessage {
        self.fold.into_message()
    }

    /// Why the answer ended in error.
    pub fn error(&self) -> Option<&ProviderError> {
        self.fold.error()
    }

    /// Whether [`start`](Self::start) was called.
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// Whether the last event was written.
    pub fn has_ended(&self) -> bool {
        self.fold.has_ended()
    }

    /// The next event that nobody has taken yet.
    pub fn pop_event(&mut self) -> Option<AssistantEvent> {
        self.events.pop_front()
    }

    /// The provider began to answer. Later calls do nothing.
    pub fn start(&mut self) {
        if !self.started {
            self.started = true;
            self.write(AssistantEvent::Start);
        }
    }

    /// Begins a text block and gives its index.
    pub fn start_text(&mut self) -> usize {
        let index = self.next_index();
        self.write(AssistantEvent::TextStart { index });
        index
    }

    /// Grows a text block.
    pub fn push_text(&mut self, index: usize, delta: impl Into<String>) {
        self.write(AssistantEvent::TextDelta { index, delta: delta.into() });
    }

    /// Completes a text block.
    pub fn end_text(&mut self, index: usize, end: BlockEnd) {
        self.write(AssistantEvent::TextEnd { index, end });
    }

    /// Begins a reasoning block and gives its index.
    pub fn start_thinking(&mut self, block: ThinkingContent) -> usize {
        let index = self.next_index();
        self.write(AssistantEvent::ThinkingStart { index, block: Box::new(block) });
        index
    }

    /// Grows a reasoning block.
    pub fn push_thinking(&mut self, index: usize, delta: impl Into<String>) {
        self.write(AssistantEvent::ThinkingDelta { index, delta: delta.into() });
    }

    /// Completes a reasoning block.
    pub fn end_thinking(&mut self, index: usize, end: BlockEnd) {
        self.write(AssistantEvent::ThinkingEnd { index, end });
    }

    /// Begins a tool call and gives its index.
    pub fn start_tool_call(&mut self, call: ToolCall) -> usize {
        let index = self.next_index();
        self.write(AssistantEvent::ToolCallStart { index, call: Box::new(call) });
        index
    }

    /// Grows the text of a call's arguments.
    pub fn push_arguments(&mut self, index: usize, delta: impl Into<String>) {
        self.write(AssistantEvent::ToolCallDelta { index, delta: delta.into() });
    }

    /// The whole text of a call's arguments came: what goes beyond the pieces so far is one more piece. A text that
    /// does not go on from them [replaces](Self::replace_arguments) them.
    pub fn complete_arguments(&mut self, index: usize, text: &str) {
        match text.strip_prefix(self.fold.arguments_text(index)) {
            Some("") => {}
            Some(rest) => self.push_arguments(index, rest),
            None => self.fold.replace_arguments(index, text),
        }
    }

    /// Sets the whole text of a call's arguments. No event tells of it before the call ends.
    pub fn replace_arguments(&mut self, index: usize, text: &str) {
        self.fold.replace_arguments(index, text);
    }

    /// Sets the signature of a reasoning block that has ended. The last event tells of it.
    pub fn sign_late(&mut self, index: usize, signature: impl Into<String>) {
        let signature = signature.into();
        if let Some(AssistantBlock::Thinking(block)) = self.fold.message_mut().content.get_mut(index) {
            block.thinking_signature = Some(signature.clone());
            self.late_signatures.push((index, signature));
        }
    }

    /// Completes a tool call whose arguments came as text. Text that is not a JSON object makes an
    /// [`arguments_error`](ToolCall::arguments_error); no text at all means no arguments.
    pub fn end_tool_call(&mut self, index: usize) {
        let finished = self.fold.take_arguments(index).map(|text| text.finish());
        let Some(AssistantBlock::ToolCall(call)) = self.fold.message().content.get(index) else { return };
        let mut call = ToolCall { arguments: Default::default(), ..call.clone() };
        match finished {
            None => {}
            Some(Ok(arguments)) => call.arguments = arguments,
            Some(Err(error)) => call.arguments_error = Some(error.to_string()),
        }
        self.end_tool_call_with(index, call);
    }

    /// Completes a tool call whose last word is known.
    pub fn end_tool_call_with(&mut self, index: usize, call: ToolCall) {
        self.write(AssistantEvent::ToolCallEnd { index, call: Box::new(call) });
    }

    /// A block, to set what no event says before the block ends (a signature, an id that comes late).
    pub fn block_mut(&mut self, index: usize) -> Option<&mut AssistantBlock> {
        self.fold.message_mut().content.get_mut(index)
    }

    /// Token counts, which may be corrected until the end.
    pub fn usage_mut(&mut self) -> &mut Usage {
        &mut self.fold.message_mut().usage
    }

    /// Changes what is known of the message besides its content.
    pub fn complete(&mut self, change: impl FnOnce(&mut Completion)) {
        let mut completion = Completion::of(self.fold.message());
        change(&mut completion);
        completion.apply_to(self.fold.message_mut());
    }

    /// Adds something that the wire wants to be known about the request, for people.
    pub fn diagnose(&mut self, diagnostic: serde_json::Value) {
        self.complete(|message| match &mut message.diagnostics {
            Some(serde_json::Value::Array(known)) => known.push(diagnostic),
            diagnostics => *diagnostics = Some(serde_json::Value::Array(vec![diagnostic])),
        });
    }

    /// Ends the answer.
    pub fn done(&mut self, reason: StopReason) {
        self.take_time();
        let completion = self.last_word();
        self.write(AssistantEvent::Done { reason, completion });
    }

    /// Ends the answer in error; what had come stays. An [`ErrorKind::Aborted`] makes it aborted.
    pub fn fail(&mut self, error: ProviderError) {
        let reason = match error.kind() {
            ErrorKind::Aborted => StopReason::Aborted,
            _ => StopReason::Error,
        };
        self.take_time();
        let completion = self.last_word();
        self.write(AssistantEvent::Error { reason, error, completion });
    }

    /// Writes an event that was made elsewhere.
    pub fn write(&mut self, event: AssistantEvent) {
        if self.fold.has_ended() {
            return;
        }
        self.fold.apply(&event);
        self.events.push_back(event);
    }

    fn take_time(&mut self) {
        if let Some(since) = self.since
            && !self.has_ended()
        {
            let millis = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.fold.message_mut().duration_ms.get_or_insert(millis);
        }
    }

    fn last_word(&mut self) -> Box<Completion> {
        let late_signatures = std::mem::take(&mut self.late_signatures);
        Box::new(Completion { late_signatures, ..Completion::of(self.fold.message()) })
    }

    fn next_index(&self) -> usize {
        self.fold.message().content.len()
    }
}
