//! How the loop asks the session.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use async_trait::async_trait;
use pi_agent_core::{
    Agent, ConvertToLlm, KeepModelRoles, UnknownMessage,
    hooks::{
        AfterToolCall, AgentHooks, BeforeToolCall, HookError, NextTurn, Permission, PrepareRequest, RequestUpdate,
        ToolResultPatch, Turn, TurnDecision,
    },
};
use pi_ai::{
    CancellationToken, Clock, Message, SessionId, StreamFn, StreamOptions,
    options::{Limit, RetryPolicy},
};

use super::{Inner, model::Selection, tools::ToolRegistry, transform::SessionTransform};
use crate::{
    extensions::{
        EventKind,
        event::{ToolCallDecision, ToolCallEvent, ToolResultEvent},
    },
    messages::{CodingConverter, CodingMessage, SessionMessage},
    resources::SettingsManager,
    session::SessionManager,
};

/// Makes the agent of a session. Its transcript is that of the session; everything that the loop has to ask is asked
/// of the session through `inner`.
pub(super) fn build_agent(
    inner: Weak<Inner>,
    manager: &SessionManager,
    stream: &Arc<dyn StreamFn>,
    settings: &SettingsManager,
    clock: &Arc<dyn Clock>,
    selection: &Selection,
    tools: &ToolRegistry,
) -> Agent<CodingMessage> {
    let mut builder = Agent::with_roles::<CodingMessage>(stream.clone())
        .messages(manager.context().messages)
        .tools(tools.active_tools().map(|tool| tool.tool.clone()))
        .thinking_level(selection.level)
        .transform_context_with(SessionTransform(inner.clone()))
        .convert_to_llm_with(SessionConverter::default())
        .hooks(SessionHooks(inner))
        .clock(clock.clone())
        .stream_options(stream_options(manager.id(), settings));
    if let Some(model) = &selection.model {
        builder = builder.model(model.clone());
    }
    builder.build()
}

/// What every request of a session has in common.
fn stream_options(session: SessionId, settings: &SettingsManager) -> StreamOptions {
    let settings = settings.settings();
    let mut options = StreamOptions {
        session_id: Some(session),
        thinking_budgets: settings.thinking_budgets.clone(),
        retry: RetryPolicy {
            max_retries: settings.retry.provider_max_retries,
            max_delay: Some(settings.retry.provider_max_delay).filter(|delay| !delay.is_zero()),
        },
        ..StreamOptions::default()
    };
    options.timeouts.idle = limit(settings.http_idle_timeout);
    options.timeouts.first_byte = match settings.retry.provider_timeout {
        Some(timeout) => Limit::After(timeout),
        None => options.timeouts.idle,
    };
    options
}

/// What a setting says about waiting. Its default leaves it to what is usual for the server, because a local one may
/// think for longer.
fn limit(setting: Option<Duration>) -> Limit {
    const DEFAULT: Duration = Duration::from_secs(300);
    match setting {
        None => Limit::Off,
        Some(DEFAULT) => Limit::Usual,
        Some(limit) => Limit::After(limit),
    }
}

/// The coding agent's converter. A role that nobody knows stays out of the request, which is said once per role.
#[derive(Default)]
struct SessionConverter {
    unknown: KeepModelRoles,
}

impl ConvertToLlm<CodingMessage> for SessionConverter {
    fn convert(&self, message: &CodingMessage) -> Vec<Message> {
        CodingConverter.convert(message)
    }

    fn convert_unknown(&self, message: &UnknownMessage) -> Vec<Message> {
        ConvertToLlm::<CodingMessage>::convert_unknown(&self.unknown, message)
    }
}

struct SessionHooks(Weak<Inner>);

#[async_trait]
impl AgentHooks<CodingMessage> for SessionHooks {
    async fn before_tool_call(&self, call: &mut BeforeToolCall<'_, CodingMessage>) -> Result<Permission, HookError> {
        let Some(inner) = self.0.upgrade() else { return Ok(Permission::Allow) };
        if !inner.extensions.has_handlers(EventKind::ToolCall) {
            return Ok(Permission::Allow);
        }
        let event = ToolCallEvent::new(call.call, call.arguments.clone());
        Ok(match inner.extensions.tool_call(call.signal, event).await {
            ToolCallDecision::Allow => Permission::Allow,
            ToolCallDecision::AllowWith(arguments) => {
                call.arguments = arguments;
                Permission::Allow
            }
            ToolCallDecision::Block { reason, then } => Permission::Block { reason, then },
        })
    }

    async fn after_tool_call(&self, call: &AfterToolCall<'_, CodingMessage>) -> Result<ToolResultPatch, HookError> {
        let Some(inner) = self.0.upgrade() else { return Ok(ToolResultPatch::default()) };
        if !inner.extensions.has_handlers(EventKind::ToolResult) {
            return Ok(ToolResultPatch::default());
        }
        let event = ToolResultEvent::new(call.call, call.arguments, call.output, call.is_error);
        Ok(inner.extensions.tool_result(call.signal, event).await)
    }

    /// Extensions may change what was said before it counts.
    async fn complete_message(&self, message: &SessionMessage, signal: &CancellationToken) -> Option<SessionMessage> {
        self.0.upgrade()?.extensions.message_end(signal, message).await
    }

    async fn finish_turn(&self, turn: &Turn<'_, CodingMessage>) -> Result<TurnDecision, HookError> {
        let Some(inner) = self.0.upgrade() else { return Ok(TurnDecision::Natural) };
        Ok(match inner.end_turn_for_extensions(turn.message, turn.tool_results, turn.signal).await {
            true => TurnDecision::Continue,
            false => TurnDecision::Natural,
        })
    }

    /// The session is the authority: each request is built from its projection.
    async fn prepare_request(
        &self,
        _request: &PrepareRequest<'_, CodingMessage>,
    ) -> Result<RequestUpdate<CodingMessage>, HookError> {
        let Some(inner) = self.0.upgrade() else { return Ok(RequestUpdate::default()) };
        let messages = inner.manager.with(|session| session.projection().messages().to_vec());
        let state = inner.state();
        Ok(RequestUpdate {
            messages: Some(messages),
            model: state.selection.model.clone(),
            thinking_level: Some(state.selection.level),
            tools: None,
        })
    }

    async fn prepare_next_turn(&self, _last: &Turn<'_, CodingMessage>) -> Result<NextTurn<CodingMessage>, HookError> {
        let Some(inner) = self.0.upgrade() else { return Ok(NextTurn::default()) };
        inner.make_room_for_next_turn().await?;
        let update = inner.prompt_update()?;
        Ok(NextTurn { add_messages: update.map(Into::into).into_iter().collect(), ..NextTurn::default() })
    }
}
