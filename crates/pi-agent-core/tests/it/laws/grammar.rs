//! What may follow what in a run, as a machine that takes events.

use std::{collections::VecDeque, sync::Arc};

use pi_agent_core::{AgentEvent, AgentMessage};
use pi_ai::{AssistantEvent, AssistantMessage, ToolCall, ToolResultMessage, stream::MessageFold};

/// Where a run is.
enum At {
    Outside,
    /// In a run, between turns.
    BetweenTurns,
    /// In a turn, before its answer: messages may join.
    Joining,
    /// A message has begun that is not an answer.
    InMessage(AgentMessage),
    /// An answer has begun. The fold is what its updates come to.
    InAnswer(Box<MessageFold>),
    /// The answer is complete: its calls run, and results join.
    Answered(Answered),
    /// The last event has come.
    Ended,
}

/// What became of an answer's calls.
struct Answered {
    answer: Arc<AssistantMessage>,
    /// Calls whose execution has not begun, in order.
    to_start: VecDeque<ToolCall>,
    executing: Vec<Arc<ToolCall>>,
    /// Calls that are over, in any order.
    over: Vec<Arc<ToolCall>>,
    /// Calls without a result, in order.
    to_answer: VecDeque<ToolCall>,
    results: Vec<Arc<ToolResultMessage>>,
    in_result: Option<AgentMessage>,
}

pub(super) struct Grammar {
    at: At,
    transcript: Vec<AgentMessage>,
    /// Messages of this run.
    produced: Vec<AgentMessage>,
    turns: usize,
}

impl Grammar {
    pub(super) fn new(transcript: Vec<AgentMessage>) -> Self {
        Self { at: At::Outside, transcript, produced: Vec::new(), turns: 0 }
    }

    /// The transcript, when the sequence is complete.
    pub(super) fn finish(self) -> Result<Vec<AgentMessage>, String> {
        match self.at {
            At::Ended | At::Outside => Ok(self.transcript),
            _ => Err("the sequence is not complete".into()),
        }
    }

    pub(super) fn take(&mut self, event: &AgentEvent) -> Result<(), String> {
        let at = std::mem::replace(&mut self.at, At::Outside);
        self.at = self.step(at, event).map_err(|why| format!("{}: {why}", event.name()))?;
        Ok(())
    }

    fn step(&mut self, at: At, event: &AgentEvent) -> Result<At, String> {
        Ok(match (at, event) {
            (At::Outside | At::Ended, AgentEvent::AgentStart) => {
                (self.produced, self.turns) = (Vec::new(), 0);
                At::BetweenTurns
            }
            (At::BetweenTurns, AgentEvent::TurnStart) => {
                self.turns += 1;
                At::Joining
            }
            (At::BetweenTurns, AgentEvent::AgentEnd { messages }) => {
                self.check_end(messages)?;
                At::Ended
            }
            (At::Joining, AgentEvent::MessageStart { message }) => match message.as_assistant() {
                Some(begun) => {
                    let mut fold = MessageFold::new(&Default::default(), Default::default());
                    if begun.is_failed() {
                        // It failed before it began: the whole message at once.
                        fold.apply(&AssistantEvent::Start);
                    }
                    At::InAnswer(Box::new(fold))
                }
                None if message.as_tool_result().is_some() => return Err("a result before an answer".into()),
                None => At::InMessage(message.clone()),
            },
            (At::InMessage(begun), AgentEvent::MessageEnd { message }) => {
                same(&begun, message)?;
                self.add(message);
                At::Joining
            }
            (At::InAnswer(mut fold), AgentEvent::MessageUpdate { event }) => {
                if matches!(**event, AssistantEvent::Start) || event.is_terminal() {
                    return Err("the start or end of an answer is no update".into());
                }
                fold.apply(event);
                At::InAnswer(fold)
            }
            (At::InAnswer(fold), AgentEvent::MessageEnd { message }) => {
                let Some(pi_ai::Message::Assistant(answer)) = message.as_llm() else {
                    return Err("an answer ends as something else".into());
                };
                if !answer.is_failed() && fold.message().content != answer.content {
                    return Err("the updates do not come to the answer".into());
                }
                self.add(message);
                let calls: VecDeque<ToolCall> = match answer.is_failed() {
                    true => VecDeque::new(),
                    false => answer.tool_calls().cloned().collect(),
                };
                At::Answered(Answered {
                    answer: answer.clone(),
                    to_start: calls.clone(),
                    executing: Vec::new(),
                    over: Vec::new(),
                    to_answer: calls,
                    results: Vec::new(),
                    in_result: None,
                })
            }
            (At::Answered(mut answered), event) => {
                if let AgentEvent::TurnEnd { message, tool_results } = event {
                    answered.check_end(message, tool_results)?;
                    At::BetweenTurns
                } else if self.is_failure_after(&answered, event) {
                    // A hook failed after the answer: the turn ends with an answer that says so.
                    At::InAnswer(Box::new(MessageFold::new(&Default::default(), Default::default())))
                } else {
                    if let Some(message) = answered.step(event)? {
                        self.add(&message);
                    }
                    At::Answered(answered)
                }
            }
            _ => return Err("not here".into()),
        })
    }

    fn is_failure_after(&self, answered: &Answered, event: &AgentEvent) -> bool {
        let is_done = answered.to_answer.is_empty() && answered.in_result.is_none();
        match event {
            AgentEvent::MessageStart { message } => {
                is_done && message.as_assistant().is_some_and(AssistantMessage::is_failed)
            }
            _ => false,
        }
    }

    fn add(&mut self, message: &AgentMessage) {
        self.transcript.push(message.clone());
        self.produced.push(message.clone());
    }

    /// The last event tells everything that the run produced, or the failure that it ended with.
    fn check_end(&self, told: &[AgentMessage]) -> Result<(), String> {
        let identities = |messages: &[AgentMessage]| messages.iter().map(AgentMessage::identity).collect::<Vec<_>>();
        let (told, produced) = (identities(told), identities(&self.produced));
        let last_failed = self.produced.last().and_then(AgentMessage::as_assistant);
        let tells_the_failure =
            last_failed.is_some_and(AssistantMessage::is_failed) && told[..] == produced[produced.len() - 1..];
        match (self.turns, told == produced || tells_the_failure) {
            (0, _) => Err("a run without a turn".into()),
            (_, true) => Ok(()),
            (_, false) => Err("it does not tell what the run produced".into()),
        }
    }
}

impl Answered {
    /// Gives the message that joins the transcript.
    fn step(&mut self, event: &AgentEvent) -> Result<Option<AgentMessage>, String> {
        if self.in_result.is_some() && !matches!(event, AgentEvent::MessageEnd { .. }) {
            return Err("a result has begun and not ended".into());
        }
        match event {
            AgentEvent::ToolExecutionStart { call } => {
                let next = self.to_start.pop_front().ok_or("no call is left")?;
                if next != **call {
                    return Err(format!("{} begins, but it is the turn of {}", call.id, next.id));
                }
                self.executing.push(call.clone());
            }
            AgentEvent::ToolExecutionUpdate { call, .. } => {
                self.executing.iter().find(|open| Arc::ptr_eq(open, call)).ok_or("the call is not running")?;
            }
            AgentEvent::ToolExecutionEnd { call, output, is_error, .. } => {
                let at = self.executing.iter().position(|open| Arc::ptr_eq(open, call));
                self.over.push(self.executing.remove(at.ok_or("the call is not running")?));
                if *is_error && output.to_text().is_empty() {
                    return Err("an error says nothing".into());
                }
            }
            AgentEvent::MessageStart { message } => {
                let result = message.as_tool_result().ok_or("only results follow an answer")?;
                let next = self.to_answer.pop_front().ok_or("more results than calls")?;
                if next.id != result.tool_call_id || next.name != result.tool_name {
                    return Err("results are not in the order of the calls".into());
                }
                if !self.over.iter().any(|over| over.id == next.id) {
                    return Err("a result of a call that is not over".into());
                }
                self.in_result = Some(message.clone());
            }
            AgentEvent::MessageEnd { message } => {
                same(&self.in_result.take().ok_or("no message has begun")?, message)?;
                if let Some(pi_ai::Message::ToolResult(result)) = message.as_llm() {
                    self.results.push(result.clone());
                }
                return Ok(Some(message.clone()));
            }
            _ => return Err("not after an answer".into()),
        }
        Ok(None)
    }

    fn check_end(&self, message: &Arc<AssistantMessage>, results: &[Arc<ToolResultMessage>]) -> Result<(), String> {
        if !Arc::ptr_eq(message, &self.answer) {
            return Err("it tells another answer".into());
        }
        if !self.to_start.is_empty() || !self.executing.is_empty() || !self.to_answer.is_empty() {
            return Err("a call has no result".into());
        }
        let told = results.iter().map(Arc::as_ptr);
        if self.in_result.is_some() || !told.eq(self.results.iter().map(Arc::as_ptr)) {
            return Err("it does not tell the results".into());
        }
        Ok(())
    }
}

fn same(begun: &AgentMessage, ended: &AgentMessage) -> Result<(), String> {
    match begun.identity() == ended.identity() {
        true => Ok(()),
        false => Err("another message ends than has begun".into()),
    }
}
