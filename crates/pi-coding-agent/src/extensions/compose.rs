//! How the answers of an event's handlers become one.

use pi_agent_core::hooks::ToolResultPatch;
use pi_ai::{CancellationToken, options::Headers, transcript::current_system_message};
use serde_json::Value;

use super::{
    Event, EventKind, ExtensionError, ExtensionFailure, ExtensionRunner, FailurePlace,
    event::{
        self, BeforeAgentStartEvent, BeforeAgentStartOutcome, BeforeProviderHeadersEvent, BeforeProviderRequestEvent,
        Boundary, BoundaryContext, BoundaryOutcome, CompactDecision, ContextEvent, ContextOperation, ContextOutcome,
        ContextWithSystemOutcome, EntryDraft, ForkDecision, InputDecision, InputEvent, MessageEndEvent, MessageOutcome,
        PayloadOutcome, ProjectTrustEvent, Remember, ResourcesDiscoverEvent, SessionBeforeCompactEvent,
        SessionBeforeForkEvent, SessionBeforeSwitchEvent, SessionBeforeTreeEvent, SwitchDecision, ToolCallDecision,
        ToolCallEvent, ToolResultEvent, TreeDecision, TrustDecision, UserBashDecision, UserBashEvent,
    },
    runner::failure,
};
use crate::{
    agent_session::CustomMessage,
    messages::SessionMessage,
    resources::{DiscoveredPaths, SystemPromptOptions},
};

/// What `before_agent_start` came to.
#[derive(Debug)]
pub(crate) struct RunStart {
    /// Messages to say after the one that the run begins with.
    pub(crate) messages: Vec<CustomMessage>,
    /// What the prompt is made of, for this run.
    pub(crate) options: SystemPromptOptions,
}

/// What a boundary came to.
#[derive(Debug, Default)]
pub(crate) struct AtBoundary {
    pub(crate) entries: Vec<EntryDraft>,
    pub(crate) goes_on: bool,
}

impl ExtensionRunner {
    /// Whether a project may be trusted, as far as extensions decide it. One that fails does not trust it.
    pub async fn project_trust(&self, event: ProjectTrustEvent) -> TrustDecision {
        let signal = CancellationToken::new();
        for handler in self.handlers(EventKind::ProjectTrust).iter() {
            match self.try_ask::<event::ProjectTrust>(handler, event.clone(), &signal).await {
                Ok(TrustDecision::Undecided) => {}
                Ok(decided) => return decided,
                Err(failure) => {
                    self.report(failure).await;
                    return TrustDecision::Distrust(Remember::Once);
                }
            }
        }
        TrustDecision::Undecided
    }

    pub(crate) async fn resources_discover(&self, event: ResourcesDiscoverEvent) -> DiscoveredPaths {
        let signal = CancellationToken::new();
        let mut all = DiscoveredPaths::default();
        for handler in self.handlers(EventKind::ResourcesDiscover).iter() {
            let found = self.ask::<event::ResourcesDiscover>(handler, event.clone(), &signal).await;
            let DiscoveredPaths { skills, prompts, themes } = found.unwrap_or_default();
            all.skills.extend(skills);
            all.prompts.extend(prompts);
            all.themes.extend(themes);
        }
        all
    }

    /// Asks a gate that stops at the first answer that `stops`; else the last one that `counts` is the answer. A
    /// handler that fails stops it.
    async fn gate<E: Event>(
        &self,
        payload: impl FnOnce() -> E::Payload,
        signal: &CancellationToken,
        proceed: E::Outcome,
        stopped: impl Fn() -> E::Outcome,
        stops: impl Fn(&E::Outcome) -> bool,
        counts: impl Fn(&E::Outcome) -> bool,
    ) -> E::Outcome {
        if !self.has_handlers(E::KIND) {
            return proceed;
        }
        let payload = payload();
        let mut decision = proceed;
        for handler in self.handlers(E::KIND).iter() {
            match self.ask::<E>(handler, payload.clone(), signal).await {
                None => return stopped(),
                Some(outcome) if stops(&outcome) => return outcome,
                Some(outcome) if counts(&outcome) => decision = outcome,
                Some(_) => {}
            }
        }
        decision
    }

    /// Whether another session may take this one's place.
    pub async fn session_before_switch(&self, event: SessionBeforeSwitchEvent) -> SwitchDecision {
        self.gate::<event::SessionBeforeSwitch>(
            || event,
            &CancellationToken::new(),
            SwitchDecision::Proceed,
            || SwitchDecision::Cancel,
            |decision| *decision == SwitchDecision::Cancel,
            |_| true,
        )
        .await
    }

    /// Whether the session may be forked.
    pub async fn session_before_fork(&self, event: SessionBeforeForkEvent) -> ForkDecision {
        self.gate::<event::SessionBeforeFork>(
            || event,
            &CancellationToken::new(),
            ForkDecision::Proceed,
            || ForkDecision::Cancel,
            |decision| *decision == ForkDecision::Cancel,
            |decision| *decision != ForkDecision::Proceed,
        )
        .await
    }

    pub(crate) async fn session_before_compact(
        &self,
        signal: &CancellationToken,
        event: impl FnOnce() -> SessionBeforeCompactEvent,
    ) -> CompactDecision {
        self.gate::<event::SessionBeforeCompact>(
            event,
            signal,
            CompactDecision::Proceed,
            || CompactDecision::Cancel,
            |decision| *decision == CompactDecision::Cancel,
            |decision| *decision != CompactDecision::Proceed,
        )
        .await
    }

    pub(crate) async fn session_before_tree(
        &self,
        signal: &CancellationToken,
        event: impl FnOnce() -> SessionBeforeTreeEvent,
    ) -> TreeDecision {
        self.gate::<event::SessionBeforeTree>(
            event,
            signal,
            TreeDecision::Proceed,
            || TreeDecision::Cancel,
            |decision| *decision == TreeDecision::Cancel,
            |decision| *decision != TreeDecision::Proceed,
        )
        .await
    }

    /// What becomes of what somebody said. A handler that fails is left out: what was said must not get lost.
    pub(crate) async fn input(&self, mut event: InputEvent) -> InputDecision {
        let signal = CancellationToken::new();
        let mut transformed = false;
        for handler in self.handlers(EventKind::Input).iter() {
            match self.ask::<event::Input>(handler, event.clone(), &signal).await {
                Some(InputDecision::Handled) => return InputDecision::Handled,
                Some(InputDecision::Transform { text, images }) => {
                    transformed = true;
                    event.text = text;
                    event.images = images.unwrap_or(event.images);
                }
                Some(InputDecision::Continue) | None => {}
            }
        }
        match transformed {
            true => InputDecision::Transform { text: event.text, images: Some(event.images) },
            false => InputDecision::Continue,
        }
    }

    /// The beginning of a run. `render` gives the prompt that options make.
    pub(crate) async fn before_agent_start(
        &self,
        signal: &CancellationToken,
        mut event: BeforeAgentStartEvent,
        render: impl Fn(&SystemPromptOptions) -> String,
    ) -> RunStart {
        let mut messages = Vec::new();
        for handler in self.handlers(EventKind::BeforeAgentStart).iter() {
            let Some(answer) = self.ask::<event::BeforeAgentStart>(handler, event.clone(), signal).await else {
                continue;
            };
            let BeforeAgentStartOutcome { message, system_prompt, system_prompt_options } = answer;
            messages.extend(message);
            let changed = system_prompt.is_some() || system_prompt_options.is_some();
            if let Some(options) = system_prompt_options {
                event.system_prompt_options = options;
            }
            if let Some(prompt) = system_prompt {
                event.system_prompt_options.force_system_prompt = Some(prompt);
            }
            if changed {
                event.system_prompt = render(&event.system_prompt_options);
            }
        }
        RunStart { messages, options: event.system_prompt_options }
    }

    /// Whether a call may run, and with which arguments. A handler that fails blocks it.
    pub(crate) async fn tool_call(&self, signal: &CancellationToken, mut event: ToolCallEvent) -> ToolCallDecision {
        let mut changed = false;
        for handler in self.handlers(EventKind::ToolCall).iter() {
            match self.try_ask::<event::ToolCall>(handler, event.clone(), signal).await {
                Ok(ToolCallDecision::Allow) => {}
                Ok(ToolCallDecision::AllowWith(input)) => {
                    changed = true;
                    event.input = input;
                }
                Ok(blocked @ ToolCallDecision::Block { .. }) => return blocked,
                Err(failure) => {
                    let reason = format!(
                        "The call was blocked: the extension `{}`, which decides about it, failed: {}",
                        failure.extension, failure.message
                    );
                    self.report(failure).await;
                    return ToolCallDecision::block(reason);
                }
            }
        }
        if changed { ToolCallDecision::AllowWith(event.input) } else { ToolCallDecision::Allow }
    }

    /// What a call gave, as handlers change it.
    pub(crate) async fn tool_result(&self, signal: &CancellationToken, mut event: ToolResultEvent) -> ToolResultPatch {
        let mut all = ToolResultPatch::default();
        for handler in self.handlers(EventKind::ToolResult).iter() {
            let Some(patch) = self.ask::<event::ToolResult>(handler, event.clone(), signal).await else { continue };
            event.apply(&patch);
            if patch.content.is_some() {
                all.structured_content = None;
            }
            all = ToolResultPatch {
                content: patch.content.or(all.content),
                details: patch.details.or(all.details),
                structured_content: patch.structured_content.or(all.structured_content),
                is_error: patch.is_error.or(all.is_error),
                usage: patch.usage.or(all.usage),
                terminate: patch.terminate.or(all.terminate),
            };
        }
        all
    }

    /// A message before it is stored, as handlers change it. `None`: it is as it was.
    pub(crate) async fn message_end(
        &self,
        signal: &CancellationToken,
        message: &SessionMessage,
    ) -> Option<SessionMessage> {
        if !self.has_handlers(EventKind::MessageEnd) {
            return None;
        }
        let mut current = None;
        for handler in self.handlers(EventKind::MessageEnd).iter() {
            let so_far = current.as_ref().unwrap_or(message);
            let asked = self.ask::<event::MessageEnd>(handler, MessageEndEvent::new(so_far.clone()), signal).await;
            let Some(MessageOutcome::Replaced(replaced)) = asked else { continue };
            match refusal(so_far, &replaced) {
                None => current = Some(replaced),
                Some(error) => {
                    let place = FailurePlace::Event(EventKind::MessageEnd);
                    self.report(failure(&handler.extension.name, place, &error)).await;
                }
            }
        }
        current
    }

    /// Who runs the user's command. A handler that fails keeps it from being run.
    pub(crate) async fn user_bash(&self, event: UserBashEvent) -> Result<UserBashDecision, ExtensionFailure> {
        let signal = CancellationToken::new();
        for handler in self.handlers(EventKind::UserBash).iter() {
            match self.try_ask::<event::UserBash>(handler, event.clone(), &signal).await {
                Ok(UserBashDecision::RunHere) => {}
                Ok(taken) => return Ok(taken),
                Err(failure) => {
                    self.report(failure.clone()).await;
                    return Err(failure);
                }
            }
        }
        Ok(UserBashDecision::RunHere)
    }

    /// The messages of a request, as handlers prune and add to them: those of `context` first, which see no system
    /// messages and cannot lose prompt and tools, then those of `context_with_system`, which own what they return.
    pub(crate) async fn context(
        &self,
        mut messages: Vec<SessionMessage>,
        signal: &CancellationToken,
    ) -> Vec<SessionMessage> {
        if self.has_handlers(EventKind::Context) {
            for handler in self.handlers(EventKind::Context).iter() {
                let seen: Vec<_> = messages.iter().filter(|message| !message.is_system()).cloned().collect();
                let event = ContextEvent::new(seen.clone(), signal.clone());
                let Some(outcome) = self.ask::<event::Context>(handler, event, signal).await else { continue };
                match with_head(&messages, &seen, outcome) {
                    Ok(changed) => messages = changed.unwrap_or(messages),
                    Err(error) => {
                        self.report(failure(&handler.extension.name, FailurePlace::Event(EventKind::Context), &error))
                            .await;
                    }
                }
            }
        }
        if self.has_handlers(EventKind::ContextWithSystem) {
            for handler in self.handlers(EventKind::ContextWithSystem).iter() {
                let event = ContextEvent::new(messages.clone(), signal.clone());
                let Some(outcome) = self.ask::<event::ContextWithSystem>(handler, event, signal).await else {
                    continue;
                };
                let changed = match outcome {
                    ContextWithSystemOutcome::Unchanged => continue,
                    ContextWithSystemOutcome::Replaced(changed) => Ok(changed),
                    ContextWithSystemOutcome::Operations(operations) => ContextOperation::apply(operations, &messages),
                };
                let place = FailurePlace::Event(EventKind::ContextWithSystem);
                match changed {
                    Err(error) => self.report(failure(&handler.extension.name, place, &error)).await,
                    Ok(changed) => {
                        if leads_with_system(&messages) && !leads_with_system(&changed) {
                            let error = ExtensionError::new(
                                "the list has lost its leading system message, so that the request goes out without \
                                 prompt and tools; keep it in front, or put what `current_system_message` gives there",
                            );
                            self.report(failure(&handler.extension.name, place, &error)).await;
                        }
                        messages = changed;
                    }
                }
            }
        }
        messages
    }

    /// The headers of a request, as handlers change them.
    pub(crate) async fn provider_headers(&self, signal: &CancellationToken, mut headers: Headers) -> Headers {
        for handler in self.handlers(EventKind::BeforeProviderHeaders).iter() {
            let event = BeforeProviderHeadersEvent::new(headers.clone());
            if let Some(changes) = self.ask::<event::BeforeProviderHeaders>(handler, event, signal).await {
                changes.apply(&mut headers);
            }
        }
        headers
    }

    /// The body of a request, as handlers change it. `None`: it is as it was.
    pub(crate) async fn provider_request(&self, signal: &CancellationToken, payload: Value) -> Option<Value> {
        let mut current = payload;
        let mut changed = false;
        for handler in self.handlers(EventKind::BeforeProviderRequest).iter() {
            let event = BeforeProviderRequestEvent::new(current.clone());
            if let Some(PayloadOutcome::Replaced(payload)) =
                self.ask::<event::BeforeProviderRequest>(handler, event, signal).await
            {
                changed = true;
                current = payload;
            }
        }
        changed.then_some(current)
    }

    /// What handlers of a boundary agree on. `context` says what the next request would be made from with some
    /// entries appended, or why they cannot be.
    pub(crate) async fn boundary<E: Event<Outcome = BoundaryOutcome>>(
        &self,
        signal: &CancellationToken,
        outcome: event::ActivityOutcome,
        payload: impl Fn(Boundary) -> E::Payload,
        context: impl Fn(&[EntryDraft]) -> Result<BoundaryContext, ExtensionError>,
    ) -> AtBoundary {
        let mut agreed = AtBoundary::default();
        let mut seen = match context(&[]) {
            Ok(context) => std::sync::Arc::new(context),
            Err(_) => return agreed,
        };
        let mut is_valid = true;
        for handler in self.handlers(E::KIND).iter() {
            let boundary =
                Boundary { entries: agreed.entries.clone(), goes_on: agreed.goes_on, context: seen.clone(), outcome };
            let Some(BoundaryOutcome { entries, goes_on }) = self.ask::<E>(handler, payload(boundary), signal).await
            else {
                continue;
            };
            agreed.goes_on = goes_on.unwrap_or(agreed.goes_on);
            let Some(entries) = entries else { continue };
            agreed.entries = entries;
            match context(&agreed.entries) {
                Ok(context) => {
                    is_valid = true;
                    seen = std::sync::Arc::new(context);
                }
                Err(error) => {
                    is_valid = false;
                    let error = ExtensionError::new(format!("its entries cannot be appended: {error}"));
                    self.report(failure(&handler.extension.name, FailurePlace::Event(E::KIND), &error)).await;
                }
            }
        }
        if is_valid { agreed } else { AtBoundary::default() }
    }
}

/// The list after a `context` handler. `None`: it is as it was.
fn with_head(
    messages: &[SessionMessage],
    seen: &[SessionMessage],
    outcome: ContextOutcome,
) -> Result<Option<Vec<SessionMessage>>, ExtensionError> {
    let after = match outcome {
        ContextOutcome::Unchanged => return Ok(None),
        ContextOutcome::Edited(after) if after.len() == seen.len() => {
            let mut after = after.into_iter();
            let edited = messages.iter().map(|message| match message.is_system() {
                true => message.clone(),
                false => after.next().unwrap_or_else(|| message.clone()),
            });
            return Ok(Some(edited.collect()));
        }
        ContextOutcome::Edited(after) | ContextOutcome::Replaced(after) => after,
        ContextOutcome::Operations(operations) => ContextOperation::apply(operations, seen)?,
    };
    let is_same =
        after.len() == seen.len() && after.iter().zip(seen).all(|(after, seen)| after.identity() == seen.identity());
    if is_same {
        return Ok(None);
    }
    let head = current_system_message(messages).map(SessionMessage::from);
    Ok(Some(head.into_iter().chain(after).collect()))
}

/// Why a message may not take the place of another.
fn refusal(message: &SessionMessage, replacement: &SessionMessage) -> Option<ExtensionError> {
    let call = |message: &SessionMessage| message.as_tool_result().map(|result| result.tool_call_id.clone());
    if message.role() != replacement.role() {
        return Some(ExtensionError::new(format!(
            "a message of the role {} cannot take the place of one of the role {}",
            replacement.role(),
            message.role()
        )));
    }
    (call(message) != call(replacement)).then(|| {
        ExtensionError::new("a tool's result can only be replaced by one of the same call: keep its `toolCallId`")
    })
}

fn leads_with_system(messages: &[SessionMessage]) -> bool {
    messages.first().is_some_and(SessionMessage::is_system)
}
