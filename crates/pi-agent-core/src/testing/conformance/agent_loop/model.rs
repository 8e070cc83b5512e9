//! The scripted model.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, ready},
};

use pi_ai::{
    AssistantBlock, AssistantEvent, AssistantStream, CancellationToken, ErrorKind, Model, ProviderError, StopReason,
    StreamFn, StreamOptions, Timestamp, TranscriptContext,
    stream::{Advance, BlockEnd, MessageBuilder, Source},
    transcript::{current_system_prompt, current_tools},
};
use serde_json::{Value, json};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::{
    lock, record,
    script::{Case, Response},
};

/// Answers as the case says and notes what it was asked.
#[derive(Clone)]
pub(super) struct ScriptedModel(Arc<Mutex<State>>);

struct State {
    responses: VecDeque<Response>,
    requests: Vec<Value>,
    current: Response,
}

impl ScriptedModel {
    pub(super) fn new(case: &Case) -> Self {
        let responses = case.responses.iter().cloned().collect();
        Self(Arc::new(Mutex::new(State { responses, requests: Vec::new(), current: Response::default() })))
    }

    pub(super) fn requests(&self) -> Vec<Value> {
        lock(&self.0).requests.clone()
    }

    /// The blocks with which the answer that is being streamed began. The reference's scripted model fills its partial
    /// message before it says anything: texts are empty, calls are whole.
    pub(super) fn opening_blocks(&self) -> Vec<AssistantBlock> {
        let current = lock(&self.0).current.clone();
        let opening = |block| match block {
            AssistantBlock::Text(_) => AssistantBlock::text(""),
            other => other,
        };
        current.content.into_iter().map(opening).collect()
    }
}

impl StreamFn for ScriptedModel {
    fn stream(&self, model: &Arc<Model>, context: TranscriptContext, options: StreamOptions) -> AssistantStream {
        let messages = context.messages();
        let response = {
            let mut state = lock(&self.0);
            state.requests.push(json!({
                "messages": messages.iter().map(pi_ai::Message::role).collect::<Vec<_>>(),
                "system_prompt": current_system_prompt(messages),
                "tools": current_tools(messages).iter().map(|tool| tool.name.clone()).collect::<Vec<_>>(),
                "last": messages.last().map(record::model_message),
                "model": model.id,
                "reasoning": options.reasoning,
            }));
            let script_ended =
                || Response { content: vec![AssistantBlock::text("(script ended)")], ..Response::default() };
            state.current = state.responses.pop_front().unwrap_or_else(script_ended);
            state.current.clone()
        };
        if let Some(text) = response.throws {
            // The panic is what the case is about; without the hook it does not clutter the output.
            std::panic::resume_unwind(Box::new(text));
        }
        let now = Timestamp::from_millis(1);
        let error = |kind| {
            ProviderError::new(kind, response.error_message.clone().unwrap_or_else(|| "the script says so".to_owned()))
        };
        if response.fail_before_start {
            return AssistantStream::failed(model, now, error(ErrorKind::Other));
        }
        let mut answer = MessageBuilder::new(model, now);
        answer.start();
        let mut hangs = false;
        for block in &response.content {
            write(&mut answer, block, response.hang);
            if response.hang && matches!(block, AssistantBlock::Text(_)) {
                hangs = true;
                break;
            }
        }
        if !hangs {
            match response.stop_reason {
                Some(StopReason::Error) => answer.fail(error(ErrorKind::Other)),
                Some(StopReason::Aborted) => answer.fail(error(ErrorKind::Aborted)),
                Some(reason) => answer.done(reason),
                None if answer.message().tool_calls().next().is_some() => answer.done(StopReason::ToolUse),
                None => answer.done(StopReason::Stop),
            }
        }
        let playback = Playback {
            events: std::iter::from_fn(|| answer.pop_event()).collect(),
            aborted: Box::pin(options.signal.cancelled_owned()),
        };
        // It notices an abort when its script says so, and not before: the stream itself gets a token of its own.
        AssistantStream::from_source(MessageBuilder::new(model, now), CancellationToken::new(), playback)
    }
}

fn write(answer: &mut MessageBuilder, block: &AssistantBlock, hang: bool) {
    match block {
        AssistantBlock::Text(text) => {
            let index = answer.start_text();
            answer.push_text(index, text.text.as_str());
            if !hang {
                answer.end_text(index, BlockEnd::default());
            }
        }
        AssistantBlock::Thinking(thinking) => {
            let index = answer.start_thinking(Default::default());
            answer.push_thinking(index, thinking.thinking.as_str());
            answer.end_thinking(index, BlockEnd::default());
        }
        AssistantBlock::ToolCall(call) => {
            let index = answer.start_tool_call(call.clone());
            answer.end_tool_call_with(index, call.clone());
        }
        AssistantBlock::Unknown(_) => {}
    }
}

struct Playback {
    events: VecDeque<AssistantEvent>,
    aborted: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Source for Playback {
    fn poll_advance(&mut self, cx: &mut Context<'_>, answer: &mut MessageBuilder) -> Poll<Advance> {
        match self.events.pop_front() {
            Some(AssistantEvent::Start) => answer.start(),
            Some(event) => answer.write(event),
            None => {
                ready!(self.aborted.as_mut().poll(cx));
                answer.fail(ProviderError::new(ErrorKind::Aborted, "aborted by test"));
            }
        }
        Poll::Ready(Advance::More)
    }
}
