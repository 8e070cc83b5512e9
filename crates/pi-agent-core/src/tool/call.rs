//! The steps of one tool call: look up, prepare, check, ask, run, revise.

use std::{collections::VecDeque, sync::Arc, task::Poll, time::Duration};

use futures::{Stream, stream};
use pi_ai::{AssistantMessage, CancellationToken, Clock, ToolCall};

use super::{AgentTool, ToolArguments, ToolContext, ToolOutput, ToolSet, context::PartialResults};
use crate::{
    contain::{Fault, Panicked, Patience, contain},
    hooks::{AfterBlock, AfterToolCall, AgentHooks, BeforeToolCall, HookError, Permission},
    message::AgentMessage,
};

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCallOutcome {
    /// What it gave; of a failed call the text that the model is told.
    pub output: ToolOutput,
    /// Whether it failed.
    pub is_error: bool,
    /// How long the tool ran; `None` when it did not.
    pub duration: Option<Duration>,
}

impl ToolCallOutcome {
    /// A call that did not run, or did not end.
    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self { output: ToolOutput::error(text), is_error: true, duration: None }
    }

    pub(crate) fn aborted_before() -> Self {
        Self::failed("The run was aborted before this call started.")
    }
}

/// What the calls of one answer have in common.
pub(crate) struct CallSurroundings<'a, C> {
    pub(crate) assistant_message: &'a AssistantMessage,
    pub(crate) messages: &'a [AgentMessage<C>],
    pub(crate) tools: &'a ToolSet,
    pub(crate) hooks: Option<&'a dyn AgentHooks<C>>,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) patience: &'a Patience,
}

/// A call that is ready to run, or what it came to without running.
pub(crate) enum Prepared {
    Ready { tool: Arc<dyn AgentTool>, arguments: ToolArguments },
    Over(Box<ToolCallOutcome>),
}

impl Prepared {
    fn over(outcome: ToolCallOutcome) -> Self {
        Self::Over(Box::new(outcome))
    }
}

/// What a running call does next.
pub(crate) enum Progress {
    Update(ToolOutput),
    Over(ToolCallOutcome),
}

impl<C: Send + Sync + 'static> CallSurroundings<'_, C> {
    /// Everything before the tool runs.
    pub(crate) async fn prepare(&self, call: &ToolCall) -> Prepared {
        self.try_prepare(call).await.unwrap_or_else(|text| Prepared::over(ToolCallOutcome::failed(text)))
    }

    /// Gives what the model is told when the call cannot run.
    async fn try_prepare(&self, call: &ToolCall) -> Result<Prepared, String> {
        let signal = &self.patience.signal;
        if signal.is_cancelled() {
            return Ok(Prepared::over(ToolCallOutcome::aborted_before()));
        }
        let (tool, schema) = contain(|| self.tools.callable(&call.name))
            .map_err(|panic| unexpected("While it was looked up, the tool", &panic))?
            .ok_or_else(|| self.unknown(&call.name))?;
        if let Some(error) = &call.arguments_error {
            return Err(format!("The arguments for the tool \"{}\" could not be read: {error}", call.name));
        }
        let arguments = contain(|| tool.prepare_arguments(call.arguments.clone()))
            .map_err(|panic| unexpected("While its arguments were prepared, the tool", &panic))?;
        let arguments = contain(|| schema.validate(&call.name, &arguments))
            .map_err(|panic| unexpected("While its arguments were checked, the tool", &panic))?
            .map_err(|error| error.to_string())?;
        let tool = tool.clone();
        let Some(hooks) = self.hooks else { return Ok(Prepared::Ready { tool, arguments }) };

        let mut before = BeforeToolCall {
            assistant_message: self.assistant_message,
            call,
            arguments,
            messages: self.messages,
            tools: self.tools,
            signal,
        };
        let permission = self.patience.run(|| hooks.before_tool_call(&mut before)).await;
        let permission = decided(permission, "before_tool_call")?;
        let arguments = before.arguments;
        if signal.is_cancelled() {
            return Ok(Prepared::over(ToolCallOutcome::aborted_before()));
        }
        match permission {
            Permission::Allow => Ok(Prepared::Ready { tool, arguments }),
            Permission::Block { reason, then } => {
                let reason = reason.filter(|reason| !reason.is_empty());
                let reason = reason.unwrap_or_else(|| format!("The call of `{}` was blocked.", call.name));
                let mut outcome = ToolCallOutcome::failed(reason);
                outcome.output.terminate = (then == AfterBlock::Terminate).then_some(true);
                Ok(Prepared::over(outcome))
            }
        }
    }

    /// Runs a call that is ready. What it shows while it runs comes first, then what it came to.
    pub(crate) fn execute<'a>(
        &'a self,
        call: &'a ToolCall,
        tool: Arc<dyn AgentTool>,
        arguments: ToolArguments,
    ) -> RunningCall<impl Future<Output = ToolCallOutcome> + Send + 'a> {
        let updates = PartialResults::default();
        let signal = self.patience.signal.clone();
        let context = ToolContext::reporting(call.id.clone(), signal, updates.clone());
        let has_hooks = self.hooks.is_some();
        let for_hooks = if has_hooks { arguments.clone() } else { ToolArguments::new() };
        let started = self.clock.now();
        // A task of its own: a tool that computes, or blocks its thread, holds up neither the loop nor other calls.
        let running = OwnedTask(tokio::spawn(async move { tool.execute(arguments, context).await }));
        let outcome = async move {
            let mut outcome = self.wait_for(running, call).await;
            let took = self.clock.now().as_millis().saturating_sub(started.as_millis());
            outcome.duration = Some(Duration::from_millis(took));
            if has_hooks {
                self.revise(call, &for_hooks, &mut outcome).await;
            }
            outcome
        };
        RunningCall { updates, outcome, left: VecDeque::new() }
    }

    async fn wait_for(&self, mut running: OwnedTask, call: &ToolCall) -> ToolCallOutcome {
        let joined = self.patience.wait(&mut running.0).await;
        match joined {
            Some(Ok(Ok(output))) => {
                let is_error = output.is_error == Some(true);
                ToolCallOutcome { output, is_error, duration: None }
            }
            Some(Ok(Err(error))) => ToolCallOutcome::failed(error.to_string()),
            Some(Err(join)) => match join.try_into_panic() {
                Ok(payload) => ToolCallOutcome::failed(unexpected("The tool", &Panicked::from_payload(&*payload))),
                Err(_) => ToolCallOutcome::failed("The tool was stopped: the program is shutting down."),
            },
            None => {
                tracing::warn!(tool = call.name, "the tool did not stop when the run was aborted; it was dropped");
                ToolCallOutcome::failed("The run was aborted while this call was running. What it did is not known.")
            }
        }
    }

    async fn revise(&self, call: &ToolCall, arguments: &ToolArguments, outcome: &mut ToolCallOutcome) {
        let Some(hooks) = self.hooks else { return };
        let after = AfterToolCall {
            assistant_message: self.assistant_message,
            call,
            arguments,
            output: &outcome.output,
            is_error: outcome.is_error,
            messages: self.messages,
            tools: self.tools,
            signal: &self.patience.signal,
        };
        let patch = self.patience.run(|| hooks.after_tool_call(&after)).await;
        match decided(patch, "after_tool_call") {
            Ok(patch) => patch.apply(&mut outcome.output, &mut outcome.is_error),
            Err(text) => *outcome = ToolCallOutcome { duration: outcome.duration, ..ToolCallOutcome::failed(text) },
        }
    }

    fn unknown(&self, name: &str) -> String {
        let known: Vec<&str> = self.tools.names().collect();
        match known.is_empty() {
            true => format!("There is no tool named `{name}`; there are no tools at all. Answer without calling one."),
            false => format!("There is no tool named `{name}`. The tools are: {}.", known.join(", ")),
        }
    }
}

fn decided<T>(answer: Result<Result<T, HookError>, Fault>, hook: &str) -> Result<T, String> {
    match answer {
        Ok(decision) => decision.map_err(|error| error.to_string()),
        Err(Fault::Panicked(panic)) => Err(unexpected(&format!("The hook `{hook}`"), &panic)),
        Err(Fault::Overdue) => {
            Err(format!("The run was aborted while the hook `{hook}` was deciding about this call."))
        }
    }
}

fn unexpected(who: &str, panic: &Panicked) -> String {
    tracing::error!(panic = panic.0, "{who} panicked");
    format!("{who} failed in a way that it should not: {}", panic.0)
}

/// A task that does not outlive whoever waits for it.
struct OwnedTask(tokio::task::JoinHandle<Result<ToolOutput, super::ToolError>>);

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A call that runs.
pub(crate) struct RunningCall<F> {
    updates: PartialResults,
    outcome: F,
    left: VecDeque<ToolOutput>,
}

impl<F: Future<Output = ToolCallOutcome>> RunningCall<F> {
    /// What the call has shown already.
    pub(crate) fn shown(&self) -> Vec<ToolOutput> {
        self.updates.take()
    }

    /// What it shows from now on, and then what it came to.
    pub(crate) fn progress(self) -> impl Stream<Item = Progress> + use<F> {
        let Self { updates, outcome, mut left } = self;
        let mut outcome = Some(Box::pin(outcome));
        let mut over = None;
        stream::poll_fn(move |cx| {
            if let Some(running) = &mut outcome {
                if let Poll::Ready(partial) = updates.poll_next(cx) {
                    return Poll::Ready(Some(Progress::Update(partial)));
                }
                let Poll::Ready(came_to) = running.as_mut().poll(cx) else { return Poll::Pending };
                outcome = None;
                over = Some(came_to);
                left = updates.close();
            }
            // What it showed last, before it is over.
            match left.pop_front() {
                Some(partial) => Poll::Ready(Some(Progress::Update(partial))),
                None => Poll::Ready(over.take().map(Progress::Over)),
            }
        })
    }
}

/// What [`run_tool_call`] needs to know beside the call.
pub struct RunToolCall<'a, C> {
    /// The answer that the call belongs to.
    pub assistant_message: &'a AssistantMessage,
    /// The transcript, for hooks.
    pub messages: &'a [AgentMessage<C>],
    /// The tools that may be called.
    pub tools: &'a ToolSet,
    /// The hooks that are asked.
    pub hooks: Option<&'a dyn AgentHooks<C>>,
    /// Measures how long the tool runs.
    pub clock: &'a dyn Clock,
    /// Aborts the call.
    pub signal: CancellationToken,
    /// How long a tool or hook may take after an abort.
    pub abort_grace: Duration,
}

impl<C> std::fmt::Debug for RunToolCall<'_, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunToolCall").field("tools", self.tools).finish_non_exhaustive()
    }
}

/// Runs one call through the same steps as a call of the model, hooks included, without events and without a message
/// in the transcript. For tools that call other tools, so that permission checks apply to those calls too.
///
/// It never fails: an abort, an unknown tool, wrong arguments, a blocked call and a failure of the tool are outcomes.
pub async fn run_tool_call<C: Send + Sync + 'static>(
    call: &ToolCall,
    options: RunToolCall<'_, C>,
    mut on_update: impl FnMut(ToolOutput),
) -> ToolCallOutcome {
    let patience = Patience { signal: options.signal, grace: options.abort_grace };
    let surroundings = CallSurroundings {
        assistant_message: options.assistant_message,
        messages: options.messages,
        tools: options.tools,
        hooks: options.hooks,
        clock: options.clock,
        patience: &patience,
    };
    match surroundings.prepare(call).await {
        Prepared::Over(outcome) => *outcome,
        Prepared::Ready { tool, arguments } => {
            let mut progress = Box::pin(surroundings.execute(call, tool, arguments).progress());
            loop {
                match futures::StreamExt::next(&mut progress).await {
                    Some(Progress::Update(partial)) => on_update(partial),
                    Some(Progress::Over(outcome)) => return outcome,
                    None => return ToolCallOutcome::failed("The call ended without a result."),
                }
            }
        }
    }
}
