//! What an extension registers.

use std::sync::{Arc, atomic::Ordering};

use futures::future::BoxFuture;
use indexmap::IndexMap;
use pi_agent_core::{AgentTool, AsyncHook};
use pi_ai::models::Provider;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Command, Event, ExtensionContext, ExtensionError, Flag, HandlerId, IntoOutcome, RenderOptions, RenderedEntry,
    Shortcut,
    context::WeakContext,
    handlers::{Handler, HandlerFn},
    outcome::Outcome,
    renderer::{self, EntryRenderer, Later, MessageRenderer},
};
use crate::{agent_session::SessionTool, messages::CustomContent, resources::Theme, styled_text::StyledText};

/// Where an extension registers what it brings.
///
/// An extension gets one when it is loaded; later on [`ExtensionContext::register`] gives it another one. What is
/// registered counts as a whole or, when registering fails, not at all.
#[derive(Default)]
pub struct ExtensionApi {
    pub(super) brings: Registrations,
    /// The extension that registers, as its handlers will reach it.
    context: WeakContext,
}

/// What an extension brings.
#[derive(Clone, Default)]
pub(super) struct Registrations {
    pub(super) handlers: Vec<Handler>,
    pub(super) tools: IndexMap<String, SessionTool>,
    pub(super) commands: IndexMap<String, Command>,
    pub(super) flags: IndexMap<String, Flag>,
    pub(super) shortcuts: IndexMap<String, Shortcut>,
    pub(super) providers: Vec<ProviderChange>,
    pub(super) entry_renderers: IndexMap<String, EntryRenderer>,
    pub(super) message_renderers: IndexMap<String, MessageRenderer>,
    pub(super) bus: Vec<BusHandler>,
    pub(super) kept_running: Vec<Arc<dyn KeptRunning>>,
}

/// Something that an extension keeps running, for whoever ends it.
pub(super) trait KeptRunning: Send + Sync {
    /// Ends it in order, within bounds.
    fn close(self: Arc<Self>) -> BoxFuture<'static, ()>;

    /// Ends it at once, without waiting.
    fn kill(&self);
}

/// A change of the providers.
#[derive(Clone)]
pub(super) enum ProviderChange {
    Register(Box<Provider>),
    Unregister(String),
}

type BusFn = Arc<dyn Fn(Value, ExtensionContext) -> Running + Send + Sync>;
type Running = BoxFuture<'static, Result<(), ExtensionError>>;

/// Who listens to a channel of the bus.
#[derive(Clone)]
pub(super) struct BusHandler {
    pub(super) channel: String,
    pub(super) run: BusFn,
}

impl ExtensionApi {
    pub(super) fn of(context: WeakContext) -> Self {
        Self { context, ..Self::default() }
    }

    /// What the extension's handlers will reach, for what runs beside them.
    pub(super) fn weak_context(&self) -> WeakContext {
        self.context.clone()
    }

    /// Something that the extension keeps running: it is ended after every handler of `session_shutdown` was told.
    pub(super) fn keep_running(&mut self, kept: Arc<dyn KeptRunning>) {
        self.brings.kept_running.push(kept);
    }

    /// Handles an event. The handler may answer nothing (where the event has an answer that decides nothing), the
    /// event's outcome, what converts into it, or a [`Result`] of these.
    ///
    /// ```
    /// # use pi_coding_agent::extensions::{ExtensionApi, event};
    /// fn count_turns(pi: &mut ExtensionApi) {
    ///     pi.on(event::TurnStart, async |event, ctx| {
    ///         ctx.append_entry("turn", event.turn_index).await?;
    ///         Ok(())
    ///     });
    /// }
    /// # let _ = count_turns;
    /// ```
    ///
    /// A gate does not take a handler that decides nothing:
    ///
    /// ```compile_fail
    /// # use pi_coding_agent::extensions::{ExtensionApi, event};
    /// fn forgetful(pi: &mut ExtensionApi) {
    ///     pi.on(event::ToolCall, async |_event, _ctx| {});
    /// }
    /// ```
    pub fn on<E: Event, R: IntoOutcome<E::Outcome> + 'static>(
        &mut self,
        _event: E,
        handler: impl AsyncHook<E::Payload, ExtensionContext, R>,
    ) -> HandlerId {
        let run: Arc<HandlerFn<E>> = Arc::new(move |payload, context| {
            let running = handler.run(payload, context);
            Box::pin(async move { running.await.into_outcome() })
        });
        self.add_handler::<E>(run)
    }

    pub(super) fn on_json_of<E, H>(&mut self, _event: E, handler: H) -> HandlerId
    where
        E: Event,
        H: Fn(Value, ExtensionContext) -> BoxFuture<'static, Result<Value, ExtensionError>>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        let run: Arc<HandlerFn<E>> = Arc::new(move |payload, context| {
            let running = with_type(E::KIND.as_str(), &payload).map(|event| handler(event, context));
            Box::pin(async move { E::Outcome::from_json(running?.await?) })
        });
        self.add_handler::<E>(run)
    }

    fn add_handler<E: Event>(&mut self, run: Arc<HandlerFn<E>>) -> HandlerId {
        let handler = Handler::new::<E>(run);
        let id = handler.id;
        self.brings.handlers.push(handler);
        id
    }

    /// Takes back a handler that was registered here. One that is in use is taken away by [`ExtensionContext::off`].
    pub fn off(&mut self, handler: HandlerId) {
        self.brings.handlers.retain(|other| {
            let stays = other.id != handler;
            if !stays {
                other.is_removed.store(true, Ordering::Release);
            }
            stays
        });
    }

    /// Brings a tool, which the model is offered. One with a known name takes that tool's place, also a built-in one's.
    pub fn register_tool(&mut self, tool: impl AgentTool) -> &mut Self {
        self.register_session_tool(SessionTool::custom(tool))
    }

    /// Brings a tool with what the system prompt says of it.
    pub fn register_session_tool(&mut self, tool: SessionTool) -> &mut Self {
        self.brings.tools.insert(tool.name().to_owned(), tool);
        self
    }

    /// Brings a command.
    pub fn register_command(&mut self, command: Command) -> &mut Self {
        self.brings.commands.insert(command.name.clone(), command);
        self
    }

    /// Brings a flag of the command line.
    pub fn register_flag(&mut self, flag: Flag) -> &mut Self {
        self.brings.flags.insert(flag.name.clone(), flag);
        self
    }

    /// Brings a shortcut of the interactive mode.
    pub fn register_shortcut(&mut self, shortcut: Shortcut) -> &mut Self {
        self.brings.shortcuts.insert(shortcut.key.clone(), shortcut);
        self
    }

    /// Brings a provider with its models, or replaces one. It can be chosen as soon as the session is made.
    pub fn register_provider(&mut self, provider: Provider) -> &mut Self {
        self.brings.providers.push(ProviderChange::Register(Box::new(provider)));
        self
    }

    /// Takes a provider away.
    pub fn unregister_provider(&mut self, id: impl Into<String>) -> &mut Self {
        self.brings.providers.push(ProviderChange::Unregister(id.into()));
        self
    }

    /// Says how entries of a type look; `T` is what [`append_entry`](ExtensionContext::append_entry) was given.
    ///
    /// ```
    /// # use pi_coding_agent::{extensions::ExtensionApi, resources::ThemeToken, styled_text::{Span, StyledText}};
    /// # use serde::Deserialize;
    /// #[derive(Deserialize)]
    /// struct Note { tool: String, took_ms: u64 }
    ///
    /// fn notes(pi: &mut ExtensionApi) {
    ///     pi.register_entry_renderer::<Note>("audit-note", |entry, options, _theme| {
    ///         let mut text = StyledText::line([Span::token("[audit] ", ThemeToken::Accent), Span::plain(&entry.data.tool)]);
    ///         if options.is_expanded() {
    ///             text.push_line([Span::token(format!("{} ms", entry.data.took_ms), ThemeToken::Dim)]);
    ///         }
    ///         text
    ///     });
    /// }
    /// # let _ = notes;
    /// ```
    pub fn register_entry_renderer<T: DeserializeOwned + 'static>(
        &mut self,
        custom_type: impl Into<String>,
        render: impl Fn(&RenderedEntry<T>, RenderOptions, &Theme) -> StyledText + Send + Sync + 'static,
    ) -> &mut Self {
        self.brings.entry_renderers.insert(custom_type.into(), renderer::typed(render));
        self
    }

    /// Says how entries of a type look, where that takes time: something outside draws them. What is shown without
    /// waiting is the last drawing, or the data as it is while there is none.
    pub fn register_async_entry_renderer(
        &mut self,
        custom_type: impl Into<String>,
        render: impl AsyncHook<RenderedEntry<Value>, RenderOptions, Result<StyledText, ExtensionError>>,
    ) -> &mut Self {
        self.brings.entry_renderers.insert(custom_type.into(), EntryRenderer::Later(Later::new(render)));
        self
    }

    /// Says how messages of a type look, where that takes time.
    pub fn register_async_message_renderer(
        &mut self,
        custom_type: impl Into<String>,
        render: impl AsyncHook<CustomContent, RenderOptions, Result<StyledText, ExtensionError>>,
    ) -> &mut Self {
        self.brings.message_renderers.insert(custom_type.into(), MessageRenderer::Later(Later::new(render)));
        self
    }

    /// Says how messages of a type look that were sent with [`send_message`](ExtensionContext::send_message).
    pub fn register_message_renderer(
        &mut self,
        custom_type: impl Into<String>,
        render: impl Fn(&CustomContent, RenderOptions, &Theme) -> StyledText + Send + Sync + 'static,
    ) -> &mut Self {
        let draw = move |message: &CustomContent, options, theme: &Theme| Ok(render(message, options, theme));
        self.brings.message_renderers.insert(custom_type.into(), MessageRenderer::Now(Arc::new(draw)));
        self
    }

    /// Listens to what extensions say to one another with [`emit`](ExtensionContext::emit).
    pub fn on_bus<R: IntoOutcome<()> + 'static>(
        &mut self,
        channel: impl Into<String>,
        handler: impl AsyncHook<Value, ExtensionContext, R>,
    ) -> &mut Self {
        let run: BusFn = Arc::new(move |value, context| {
            let running = handler.run(value, context);
            Box::pin(async move { running.await.into_outcome() })
        });
        self.brings.bus.push(BusHandler { channel: channel.into(), run });
        self
    }
}

impl std::fmt::Debug for ExtensionApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExtensionApi")
            .field("handlers", &self.brings.handlers.len())
            .field("tools", &self.brings.tools.keys())
            .field("commands", &self.brings.commands.keys())
            .finish_non_exhaustive()
    }
}

/// A payload as JSON, its `type` first.
fn with_type(name: &str, payload: &impl Serialize) -> Result<Value, ExtensionError> {
    let mut event = json!({"type": name});
    if let (Value::Object(event), Value::Object(fields)) = (&mut event, serde_json::to_value(payload)?) {
        event.extend(fields);
    }
    Ok(event)
}
