//! The schedule of a run: turns, and what comes between them.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use pi_ai::{
    AssistantBlock, AssistantMessage, CancellationToken, Message, MessageIdentity, ProviderError, Timestamp, ToolCall,
    ToolResultMessage, transcript::TranscriptState,
};

use super::{AgentContext, Host, LoopConfig, announce::announce, failure::Failure};
use crate::{
    contain::{Patience, contain, contain_async},
    event::{AgentEvent, ListenerContext, Streaming},
    hooks::{NextTurn, PrepareRequest, RequestUpdate, Turn, TurnDecision},
    message::{AgentMessage, CustomMessage},
    observe::{RequestId, RequestObserver, Stage},
    tool::{ToolCallOutcome, ToolSet},
};

/// A message that is about to join the transcript.
pub(crate) struct Pending<C> {
    pub(crate) message: AgentMessage<C>,
    /// Which queued message this is: the loop may have to say something more in a copy of it.
    pub(crate) queued: Option<MessageIdentity>,
}

impl<C> Pending<C> {
    pub(crate) fn new(message: AgentMessage<C>) -> Self {
        Self { message, queued: None }
    }

    pub(crate) fn queued(message: AgentMessage<C>) -> Self {
        Self { queued: Some(message.identity()), message }
    }
}

/// Whether a run looks for steering messages before its first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstPoll {
    Steering,
    /// Its prompt was taken from that queue.
    Skip,
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Outcome<C> {
    /// Everything it added to the transcript.
    pub(crate) messages: Vec<AgentMessage<C>>,
    /// Why it failed.
    pub(crate) cause: Option<ProviderError>,
}

/// The state of a run.
pub(crate) struct LoopRun<'a, C: CustomMessage, H> {
    pub(super) host: &'a H,
    pub(super) config: LoopConfig<C>,
    pub(super) patience: Patience,
    pub(super) watch: Watch<C>,
    /// What requests are made from.
    pub(super) messages: Vec<AgentMessage<C>>,
    /// What those messages declare.
    declared: TranscriptState,
    pub(super) tools: ToolSet,
    /// What the run added to the transcript.
    produced: Vec<AgentMessage<C>>,
    /// What is about to join the transcript. It is kept here, so that a failure on the way does not lose it.
    joining: VecDeque<Pending<C>>,
    pub(super) requests: u64,
    /// Whether the run was aborted when the request that is being made was begun.
    pub(super) aborted_before_request: bool,
    /// Why the last answer failed.
    pub(super) cause: Option<ProviderError>,
    /// What listeners get besides an event.
    surroundings: ListenerContext,
    /// What has begun and not ended.
    open: Mutex<Open>,
}

/// What has begun and not ended, so that it can be ended whatever happens.
#[derive(Default)]
struct Open {
    turn: bool,
    message: bool,
    executing: Vec<Arc<ToolCall>>,
    /// Calls whose results are not in the transcript.
    unanswered: Vec<Arc<ToolCall>>,
}

/// A turn that is over.
struct FinishedTurn {
    message: Arc<AssistantMessage>,
    results: Arc<[Arc<ToolResultMessage>]>,
}

/// Whether the run goes on by itself after a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Momentum {
    /// There are tool results to answer to.
    Results,
    None,
}

impl<'a, C: CustomMessage, H: Host<C>> LoopRun<'a, C, H> {
    pub(crate) fn new(host: &'a H, context: AgentContext<C>, config: LoopConfig<C>, signal: CancellationToken) -> Self {
        Self {
            host,
            surroundings: ListenerContext::outside(signal.clone()),
            patience: Patience { signal, grace: config.abort_grace },
            watch: Watch { observer: config.observer.clone(), broken: AtomicBool::new(false) },
            declared: context.messages.iter().collect(),
            messages: context.messages,
            tools: context.tools,
            produced: Vec::new(),
            joining: VecDeque::new(),
            requests: 0,
            aborted_before_request: false,
            cause: None,
            open: Mutex::default(),
            config,
        }
    }

    /// Runs to the end. Whatever fails, the sequence of events is complete.
    pub(crate) async fn run(mut self, prompts: Vec<Pending<C>>, first_poll: FirstPoll) -> Outcome<C> {
        let ended = contain_async(|| self.turns(prompts, first_poll)).await;
        let failure = match ended {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(failure),
            Err(panic) => Some(Failure::panicked("the agent loop, or a type of the application that it uses,", panic)),
        };
        let messages = match failure {
            None => self.produced.iter().cloned().collect(),
            Some(failure) => self.close(failure).await,
        };
        self.emit(AgentEvent::AgentEnd { messages }).await;
        Outcome { messages: self.produced, cause: self.cause }
    }

    async fn turns(&mut self, prompts: Vec<Pending<C>>, first_poll: FirstPoll) -> Result<(), Failure> {
        self.joining = prompts.into();
        self.emit(AgentEvent::AgentStart).await;
        self.emit(AgentEvent::TurnStart).await;
        self.join().await;
        match first_poll {
            FirstPoll::Steering => self.take_steering(),
            FirstPoll::Skip => {}
        }
        let mut last: Option<FinishedTurn> = None;
        loop {
            if let Some(last) = &last {
                let next = self.prepare_next_turn(last).await?;
                self.update(next.update);
                // Preparing may take long. In one-at-a-time mode a second batch would be one message too many.
                if self.joining.is_empty() {
                    self.take_steering();
                }
                self.emit(AgentEvent::TurnStart).await;
                next.add_messages.into_iter().rev().for_each(|added| self.joining.push_front(Pending::new(added)));
            }
            self.join().await;
            self.aborted_before_request = self.patience.signal.is_cancelled();
            self.prepare_request().await?;

            let message = self.answer().await?;
            let failed = message.is_failed();
            let (results, momentum) = match failed {
                true => (Vec::new(), Momentum::None),
                false => self.run_calls(&message).await,
            };
            let turn = FinishedTurn { message, results: results.into() };
            let decision = self.finish_turn(&turn).await?;
            let (message, tool_results) = (turn.message.clone(), turn.results.clone());
            self.emit(AgentEvent::TurnEnd { message, tool_results }).await;
            if failed || decision == TurnDecision::End {
                return Ok(());
            }
            last = Some(turn);

            self.take_steering();
            if momentum == Momentum::Results || !self.joining.is_empty() {
                continue;
            }
            self.take_follow_up();
            if self.joining.is_empty() && decision != TurnDecision::Continue {
                return Ok(());
            }
        }
    }

    async fn run_calls(&mut self, message: &Arc<AssistantMessage>) -> (Vec<Arc<ToolResultMessage>>, Momentum) {
        let calls: Vec<Arc<ToolCall>> = message.tool_calls().cloned().map(Arc::new).collect();
        if calls.is_empty() {
            return (Vec::new(), Momentum::None);
        }
        self.open().unanswered.clone_from(&calls);
        self.run_tool_calls(message, &calls).await
    }

    /// Nothing is taken in after an abort: what is queued stays queued.
    fn take_steering(&mut self) {
        if !self.patience.signal.is_cancelled() {
            self.joining.extend(self.host.steering());
        }
    }

    fn take_follow_up(&mut self) {
        if !self.patience.signal.is_cancelled() {
            self.joining.extend(self.host.follow_up());
        }
    }

    /// Takes what waits into the transcript, with what has to be said about tools.
    async fn join(&mut self) {
        self.joining.retain(|pending| self.host.still_wants(pending));
        announce(&self.declared, &self.tools, &mut self.joining, &*self.config.clock);
        self.join_as_they_are().await;
    }

    async fn join_as_they_are(&mut self) {
        while let Some(pending) = self.joining.pop_front() {
            self.emit(AgentEvent::MessageStart { message: pending.message.clone() }).await;
            self.finish_message(pending.message.clone(), Some(&pending)).await;
        }
    }

    /// A message that has begun becomes part of the transcript, as the hooks leave it. Gives that one.
    pub(super) async fn finish_message(
        &mut self,
        message: AgentMessage<C>,
        origin: Option<&Pending<C>>,
    ) -> AgentMessage<C> {
        let message = match self.replacement(&message).await {
            Some(replacement) => replacement,
            None => message,
        };
        self.declared.push(&message);
        self.messages.push(message.clone());
        self.produced.push(message.clone());
        self.host.record(&message, origin);
        self.emit(AgentEvent::MessageEnd { message: message.clone() }).await;
        message
    }

    /// What takes the place of a message that is complete.
    async fn replacement(&self, message: &AgentMessage<C>) -> Option<AgentMessage<C>> {
        let hooks = self.config.hooks.clone()?;
        let replacement = self.patience.run(|| hooks.complete_message(message, &self.patience.signal)).await;
        match replacement {
            Ok(replacement) => {
                let replacement = replacement?;
                let fits = contain(|| can_replace(message, &replacement)).unwrap_or(false);
                if !fits {
                    tracing::error!(
                        "the hook `complete_message` gave a message of another role, or a result of another call; the \
                         message stays as it is"
                    );
                }
                Some(replacement).filter(|_| fits)
            }
            Err(fault) => {
                // The log says what happened; the run goes on with the message as it is.
                let _ = Failure::fault("the hook `complete_message`", fault);
                None
            }
        }
    }

    /// A call is answered in the transcript.
    pub(super) async fn answer_call(&mut self, call: &ToolCall, outcome: ToolCallOutcome) -> Arc<ToolResultMessage> {
        let result = Arc::new(ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: outcome.output.content,
            details: outcome.output.details,
            usage: outcome.output.usage,
            nested_calls: None,
            is_error: outcome.is_error,
            duration_ms: outcome.duration.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
            timestamp: self.now(),
        });
        let message = AgentMessage::Llm(Message::ToolResult(result.clone()));
        self.emit(AgentEvent::MessageStart { message: message.clone() }).await;
        match self.finish_message(message, None).await {
            AgentMessage::Llm(Message::ToolResult(result)) => result,
            _ => result,
        }
    }

    async fn prepare_request(&mut self) -> Result<(), Failure> {
        let Some(hooks) = self.config.hooks.clone() else { return Ok(()) };
        let request = PrepareRequest {
            messages: &self.messages,
            tools: &self.tools,
            model: &self.config.model,
            thinking_level: self.config.thinking_level,
            signal: &self.patience.signal,
        };
        let update = self.patience.run(|| hooks.prepare_request(&request)).await;
        let update = Failure::decided("the hook `prepare_request`", update)?;
        let may_differ = update.messages.is_some() || update.tools.is_some();
        self.update(update);
        if may_differ {
            self.join().await;
        }
        Ok(())
    }

    async fn prepare_next_turn(&mut self, last: &FinishedTurn) -> Result<NextTurn<C>, Failure> {
        let Some(hooks) = self.config.hooks.clone() else { return Ok(NextTurn::default()) };
        let turn = self.turn(last);
        let next = self.patience.run(|| hooks.prepare_next_turn(&turn)).await;
        Failure::decided("the hook `prepare_next_turn`", next)
    }

    async fn finish_turn(&mut self, turn: &FinishedTurn) -> Result<TurnDecision, Failure> {
        let Some(hooks) = self.config.hooks.clone() else { return Ok(TurnDecision::Natural) };
        let turn = self.turn(turn);
        let decision = self.patience.run(|| hooks.finish_turn(&turn)).await;
        Failure::decided("the hook `finish_turn`", decision)
    }

    fn turn<'b>(&'b self, turn: &'b FinishedTurn) -> Turn<'b, C> {
        Turn {
            message: &turn.message,
            tool_results: &turn.results,
            messages: &self.messages,
            tools: &self.tools,
            new_messages: &self.produced,
            signal: &self.patience.signal,
        }
    }

    fn update(&mut self, update: RequestUpdate<C>) {
        if let Some(messages) = update.messages {
            self.declared = messages.iter().collect();
            self.messages = messages;
        }
        if let Some(tools) = update.tools {
            self.tools = tools;
        }
        if let Some(model) = update.model {
            self.config.model = model;
        }
        if let Some(level) = update.thinking_level {
            self.config.thinking_level = level;
        }
    }

    pub(super) async fn emit(&self, event: AgentEvent<C>) {
        if !matches!(event, AgentEvent::MessageUpdate { .. }) {
            self.open().note(&event);
        }
        self.host.emit(event, &self.surroundings).await;
    }

    /// An answer is being streamed from now on, or none any more.
    pub(super) fn set_streaming(&mut self, streaming: Option<Streaming>) {
        let signal = self.patience.signal.clone();
        self.surroundings = match &streaming {
            Some(streaming) => ListenerContext::during(signal, streaming.clone()),
            None => ListenerContext::outside(signal),
        };
        self.host.set_streaming(streaming);
    }

    /// The time. What ends a run must not fail, so a clock that does counts as standing at zero.
    fn now(&self) -> Timestamp {
        contain(|| self.config.clock.now()).unwrap_or_default()
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what has begun, and says why in an answer of its own. Gives what the run's last event tells.
    async fn close(&mut self, failure: Failure) -> Arc<[AgentMessage<C>]> {
        self.set_streaming(None);
        let executing = std::mem::take(&mut self.open().executing);
        for call in executing {
            let output = Arc::new(ToolCallOutcome::failed("The run failed while this call was running.").output);
            self.emit(AgentEvent::ToolExecutionEnd { call, output, is_error: true, duration: None }).await;
        }
        let mut results = Vec::new();
        let unanswered = std::mem::take(&mut self.open().unanswered);
        for call in unanswered {
            let outcome = ToolCallOutcome::failed("The run failed before this call was done.");
            results.push(self.answer_call(&call, outcome).await);
        }
        let in_a_turn = self.open().turn;
        if !in_a_turn {
            self.emit(AgentEvent::TurnStart).await;
        }
        if !self.open().message {
            // What no queue has any more would be lost.
            self.joining.retain(|pending| !self.host.keeps(pending));
            self.join_as_they_are().await;
        }
        let model = &self.config.model;
        let message = Arc::new(AssistantMessage {
            content: vec![AssistantBlock::text("")],
            api: model.api.clone(),
            provider: model.provider.clone(),
            model: model.id.clone(),
            stop_reason: failure.stop_reason(&self.patience.signal),
            error_message: Some(failure.0.message().to_owned()),
            timestamp: self.now(),
            ..AssistantMessage::default()
        });
        let answer = AgentMessage::Llm(Message::Assistant(message.clone()));
        let in_a_message = self.open().message;
        if !in_a_message {
            self.emit(AgentEvent::MessageStart { message: answer.clone() }).await;
        }
        let answer = self.finish_message(answer, None).await;
        let message = match &answer {
            AgentMessage::Llm(Message::Assistant(message)) => message.clone(),
            _ => message,
        };
        self.emit(AgentEvent::TurnEnd { message, tool_results: results.into() }).await;
        self.cause = Some(failure.0);
        [answer].into()
    }
}

/// Whether one message may stand where the other one was said.
fn can_replace<C: CustomMessage>(message: &AgentMessage<C>, replacement: &AgentMessage<C>) -> bool {
    let call = |message: &AgentMessage<C>| message.as_tool_result().map(|result| result.tool_call_id.clone());
    message.role() == replacement.role() && call(message) == call(replacement)
}

impl Open {
    fn note<C>(&mut self, event: &AgentEvent<C>) {
        match event {
            AgentEvent::TurnStart => self.turn = true,
            AgentEvent::TurnEnd { .. } => self.turn = false,
            AgentEvent::MessageStart { .. } => self.message = true,
            AgentEvent::MessageEnd { message } => {
                self.message = false;
                if let Some(result) = message.as_tool_result() {
                    let answered = self.unanswered.iter().position(|call| call.id == result.tool_call_id);
                    answered.map(|at| self.unanswered.remove(at));
                }
            }
            AgentEvent::ToolExecutionStart { call } => self.executing.push(call.clone()),
            AgentEvent::ToolExecutionEnd { call, .. } => self.executing.retain(|open| !Arc::ptr_eq(open, call)),
            _ => {}
        }
    }
}

/// The observer of requests, contained.
pub(super) struct Watch<C> {
    observer: Option<Arc<dyn RequestObserver<C>>>,
    broken: AtomicBool,
}

impl<C: 'static> Watch<C> {
    pub(super) fn is_on(&self) -> bool {
        self.observer.is_some() && !self.broken.load(Ordering::Relaxed)
    }

    pub(super) fn see(&self, request: RequestId, stage: Stage<'_, C>) {
        let Some(observer) = self.observer.as_ref().filter(|_| self.is_on()) else { return };
        if let Err(panic) = contain(|| observer.stage(request, stage)) {
            self.broken.store(true, Ordering::Relaxed);
            tracing::error!(
                panic = panic.0,
                "the observer of requests panicked and is left out for the rest of the run"
            );
        }
    }
}
