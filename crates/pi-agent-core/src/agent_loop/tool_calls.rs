//! The calls of one answer: one after the other, or beside one another.

use std::sync::Arc;

use futures::{StreamExt, stream::SelectAll};
use pi_ai::{AssistantMessage, StopReason, ToolCall, ToolResultMessage};

use super::{
    Host,
    run::{LoopRun, Momentum},
};
use crate::{
    contain::contain,
    event::AgentEvent,
    message::CustomMessage,
    tool::{CallSurroundings, ExecutionMode, Prepared, Progress, ToolCallOutcome, ToolOutput},
};

impl<C: CustomMessage, H: Host<C>> LoopRun<'_, C, H> {
    /// Runs the calls of an answer. However they end, each has one result, in the order of the calls.
    pub(super) async fn run_tool_calls(
        &mut self,
        message: &AssistantMessage,
        calls: &[Arc<ToolCall>],
    ) -> (Vec<Arc<ToolResultMessage>>, Momentum) {
        if message.stop_reason == StopReason::Length {
            return (self.refuse_cut_off(calls).await, Momentum::Results);
        }
        let (results, may_end) = match self.execution_mode(calls) {
            ExecutionMode::Sequential => self.one_by_one(message, calls).await,
            ExecutionMode::Parallel => self.side_by_side(message, calls).await,
        };
        let may_end = may_end && !results.is_empty();
        (results, if may_end { Momentum::None } else { Momentum::Results })
    }

    fn execution_mode(&self, calls: &[Arc<ToolCall>]) -> ExecutionMode {
        let mode = |call: &Arc<ToolCall>| {
            let tool = self.tools.get(&call.name)?;
            // A tool that cannot even say this is not run beside others.
            Some(contain(|| tool.execution_mode()).unwrap_or(ExecutionMode::Sequential))
        };
        match calls.iter().any(|call| mode(call) == Some(ExecutionMode::Sequential)) {
            true => ExecutionMode::Sequential,
            false => self.config.tool_execution,
        }
    }

    /// The answer hit the token limit: any of its calls may have lost arguments that nobody misses. None runs.
    async fn refuse_cut_off(&mut self, calls: &[Arc<ToolCall>]) -> Vec<Arc<ToolResultMessage>> {
        let mut results = Vec::with_capacity(calls.len());
        for call in calls {
            self.start(call).await;
            let outcome = ToolCallOutcome::failed(format!(
                "The call of `{}` did not run: the answer reached its token limit, so the arguments may be cut off. \
                 Make the call again, with less in one answer.",
                call.name
            ));
            self.end(call, &outcome).await;
            results.push(self.answer_call(call, outcome).await);
        }
        results
    }

    async fn one_by_one(
        &mut self,
        message: &AssistantMessage,
        calls: &[Arc<ToolCall>],
    ) -> (Vec<Arc<ToolResultMessage>>, bool) {
        let mut results = Vec::with_capacity(calls.len());
        let mut may_end = true;
        for call in calls {
            self.start(call).await;
            let outcome = self.run_alone(message, call).await;
            self.end(call, &outcome).await;
            may_end &= outcome.output.terminate == Some(true);
            results.push(self.answer_call(call, outcome).await);
        }
        (results, may_end)
    }

    async fn run_alone(&self, message: &AssistantMessage, call: &Arc<ToolCall>) -> ToolCallOutcome {
        let around = self.surroundings(message);
        match around.prepare(call).await {
            Prepared::Over(outcome) => *outcome,
            Prepared::Ready { tool, arguments } => {
                let mut progress = std::pin::pin!(around.execute(call, tool, arguments).progress());
                loop {
                    match progress.next().await {
                        Some(Progress::Update(partial)) => self.show(call, partial).await,
                        Some(Progress::Over(outcome)) => return outcome,
                        None => return without_a_result(),
                    }
                }
            }
        }
    }

    async fn side_by_side(
        &mut self,
        message: &AssistantMessage,
        calls: &[Arc<ToolCall>],
    ) -> (Vec<Arc<ToolResultMessage>>, bool) {
        let outcomes = self.run_side_by_side(message, calls).await;
        let may_end = outcomes.iter().all(|outcome| outcome.output.terminate == Some(true));
        let mut results = Vec::with_capacity(calls.len());
        for (call, outcome) in calls.iter().zip(outcomes) {
            results.push(self.answer_call(call, outcome).await);
        }
        (results, may_end)
    }

    /// Asks about the calls one after the other, then runs them together. Each ends when it ends.
    async fn run_side_by_side(&self, message: &AssistantMessage, calls: &[Arc<ToolCall>]) -> Vec<ToolCallOutcome> {
        let around = self.surroundings(message);
        let mut outcomes = vec![None; calls.len()];
        let mut ready = Vec::with_capacity(calls.len());
        for (index, call) in calls.iter().enumerate() {
            self.start(call).await;
            match around.prepare(call).await {
                Prepared::Ready { tool, arguments } => ready.push((index, call, tool, arguments)),
                Prepared::Over(outcome) => {
                    self.end(call, &outcome).await;
                    outcomes[index] = Some(*outcome);
                }
            }
        }

        let several = ready.len() > 1;
        let mut running = SelectAll::new();
        for (index, call, tool, arguments) in ready {
            if self.patience.signal.is_cancelled() {
                let outcome = ToolCallOutcome::aborted_before();
                self.end(call, &outcome).await;
                outcomes[index] = Some(outcome);
                continue;
            }
            let started = around.execute(call, tool, arguments);
            if several {
                // Lets it begin before the next one does: what it shows at once may be a reason to abort the rest.
                tokio::task::yield_now().await;
                for partial in started.shown() {
                    self.show(call, partial).await;
                }
            }
            running.push(started.progress().map(move |progress| (index, progress)).boxed());
        }
        while let Some((index, progress)) = running.next().await {
            match progress {
                Progress::Update(partial) => self.show(&calls[index], partial).await,
                Progress::Over(outcome) => {
                    self.end(&calls[index], &outcome).await;
                    outcomes[index] = Some(outcome);
                }
            }
        }
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(without_a_result)).collect()
    }

    fn surroundings<'b>(&'b self, assistant_message: &'b AssistantMessage) -> CallSurroundings<'b, C> {
        CallSurroundings {
            assistant_message,
            messages: &self.messages,
            tools: &self.tools,
            hooks: self.config.hooks.as_deref(),
            clock: &*self.config.clock,
            patience: &self.patience,
        }
    }

    async fn start(&self, call: &Arc<ToolCall>) {
        self.emit(AgentEvent::ToolExecutionStart { call: call.clone() }).await;
    }

    async fn show(&self, call: &Arc<ToolCall>, partial: ToolOutput) {
        self.emit(AgentEvent::ToolExecutionUpdate { call: call.clone(), partial: Arc::new(partial) }).await;
    }

    async fn end(&self, call: &Arc<ToolCall>, outcome: &ToolCallOutcome) {
        self.emit(AgentEvent::ToolExecutionEnd {
            call: call.clone(),
            output: Arc::new(outcome.output.clone()),
            is_error: outcome.is_error,
            duration: outcome.duration,
        })
        .await;
    }
}

fn without_a_result() -> ToolCallOutcome {
    ToolCallOutcome::failed("The call ended without a result.")
}
