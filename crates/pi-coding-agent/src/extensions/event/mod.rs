//! The events of a session: what handlers get and what they may answer.
//!
//! | Pattern | What happens with the answers |
//! |---|---|
//! | notify | There are none. |
//! | chain | Each handler gets what the one before made of it. |
//! | gate | The first one that stops it counts; a handler that fails stops it where going on could do harm. |
//! | last wins | Of several answers the last one counts. |
//! | collect | All of them count. |
//! | boundary | Handlers agree on entries to append and on whether the run goes on. |
//!
//! Handlers run in the order in which extensions were loaded, and of one extension in the order in which they were
//! registered. Each is awaited before the next.

mod boundary;
mod context;
mod input;
mod model;
mod provider;
mod run;
mod session;
mod tool;
mod ui;

pub use boundary::{
    ActivityOutcome, AgentBeforeSettleEvent, Boundary, BoundaryContext, BoundaryOutcome, EntryDraft, TurnEndEvent,
};
pub use context::{ContextEvent, ContextOperation, ContextOutcome, ContextWithSystemOutcome, MessageRange};
pub use input::{
    BeforeAgentStartEvent, BeforeAgentStartOutcome, InputDecision, InputEvent, InputSource, RunTrigger,
    UserBashDecision, UserBashEvent,
};
pub use model::{ModelSelectEvent, SelectSource, ThinkingLevelSelectEvent};
pub use pi_agent_core::hooks::AfterBlock;
pub use provider::{
    AfterProviderResponseEvent, BeforeProviderHeadersEvent, BeforeProviderRequestEvent, HeaderChanges, PayloadOutcome,
    ProviderStreamEventEvent,
};
pub use run::{
    AgentEndEvent, AgentSettledEvent, AgentStartEvent, MessageEndEvent, MessageOutcome, MessageStartEvent,
    MessageUpdateEvent, TurnStartEvent,
};
pub use session::{
    CompactDecision, CompactionDraft, DiscoverReason, ForkDecision, ForkPosition, ProjectTrustEvent, Remember,
    ResourcesDiscoverEvent, SessionBeforeCompactEvent, SessionBeforeForkEvent, SessionBeforeSwitchEvent,
    SessionBeforeTreeEvent, SessionCompactEvent, SessionCompactFailedEvent, SessionInfoChangedEvent,
    SessionShutdownEvent, SessionStartEvent, SessionTreeEvent, ShutdownReason, StartReason, SwitchDecision,
    SwitchReason, TreeAdjustment, TreeDecision, TreePreparation, TreeSummary, TrustDecision,
};
pub use tool::{
    ToolCallDecision, ToolCallEvent, ToolExecutionEndEvent, ToolExecutionStartEvent, ToolExecutionUpdateEvent,
    ToolResultEvent, ToolResultOutcome,
};
pub use ui::{PromptKind, UiPromptEvent};

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

use super::{ExtensionApi, ExtensionContext, ExtensionError, HandlerId, outcome::Outcome};
use crate::resources::DiscoveredPaths;

/// An event that handlers can be registered for: a key, what its handlers get, and what they answer.
pub trait Event: Copy + Send + Sync + 'static {
    /// What handlers get. As JSON it has the fields of the event, without its `type`.
    type Payload: Clone + Serialize + Send + 'static;
    /// What they answer.
    type Outcome: Outcome;
    /// Which event it is.
    const KIND: EventKind;
}

macro_rules! events {
    ($($(#[$doc:meta])* $key:ident = $name:literal, $payload:ty => $outcome:ty;)+) => {
        /// Which event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum EventKind { $($(#[$doc])* $key),+ }

        impl EventKind {
            /// Every event.
            pub const ALL: &'static [Self] = &[$(Self::$key),+];

            /// Its name, as programs write it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$key => $name),+ }
            }

            /// The event of a name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$key),)+ _ => None }
            }
        }

        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $key;

            impl Event for $key {
                type Payload = $payload;
                type Outcome = $outcome;
                const KIND: EventKind = EventKind::$key;
            }
        )+

        impl ExtensionApi {
            /// Handles an event whose name is only known at run time: the payload comes as JSON with its `type`, the
            /// answer goes back as JSON. For extensions that stand for something outside this program.
            ///
            /// An answer that does not have the event's shape counts as a failure of the handler.
            pub fn on_json<H>(&mut self, kind: EventKind, handler: H) -> HandlerId
            where
                H: Fn(Value, ExtensionContext) -> BoxFuture<'static, Result<Value, ExtensionError>>
                    + Clone + Send + Sync + 'static,
            {
                match kind { $(EventKind::$key => self.on_json_of($key, handler)),+ }
            }
        }
    };
}

events! {
    /// Gate: whether a project may be trusted. The first handler that decides counts.
    ProjectTrust = "project_trust", ProjectTrustEvent => TrustDecision;
    /// Collect: where further skills, prompt templates and themes lie.
    ResourcesDiscover = "resources_discover", ResourcesDiscoverEvent => DiscoveredPaths;
    /// Notify: the session begins.
    SessionStart = "session_start", SessionStartEvent => ();
    /// Notify: the session's name changed.
    SessionInfoChanged = "session_info_changed", SessionInfoChangedEvent => ();
    /// Gate: another session is about to take this one's place.
    SessionBeforeSwitch = "session_before_switch", SessionBeforeSwitchEvent => SwitchDecision;
    /// Gate: the session is about to be forked.
    SessionBeforeFork = "session_before_fork", SessionBeforeForkEvent => ForkDecision;
    /// Gate, else last wins: the conversation is about to be compacted.
    SessionBeforeCompact = "session_before_compact", SessionBeforeCompactEvent => CompactDecision;
    /// Notify: the conversation was compacted.
    SessionCompact = "session_compact", SessionCompactEvent => ();
    /// Notify: a compaction came to nothing.
    SessionCompactFailed = "session_compact_failed", SessionCompactFailedEvent => ();
    /// Gate, else last wins: the session is about to go to another place of its tree.
    SessionBeforeTree = "session_before_tree", SessionBeforeTreeEvent => TreeDecision;
    /// Notify: the session went to another place of its tree.
    SessionTree = "session_tree", SessionTreeEvent => ();
    /// Notify: the session ends.
    SessionShutdown = "session_shutdown", SessionShutdownEvent => ();
    /// Chain and gate: somebody said something. It comes before skills and templates are put in.
    Input = "input", InputEvent => InputDecision;
    /// Chain: a run is about to begin. The prompt and its options are chained, messages are collected.
    BeforeAgentStart = "before_agent_start", BeforeAgentStartEvent => BeforeAgentStartOutcome;
    /// Notify: a run of the loop begins.
    AgentStart = "agent_start", AgentStartEvent => ();
    /// Notify: a run of the loop is over.
    AgentEnd = "agent_end", AgentEndEvent => ();
    /// Boundary: nothing automatic remains.
    AgentBeforeSettle = "agent_before_settle", AgentBeforeSettleEvent => BoundaryOutcome;
    /// Notify: it is over.
    AgentSettled = "agent_settled", AgentSettledEvent => ();
    /// Notify: a turn begins.
    TurnStart = "turn_start", TurnStartEvent => ();
    /// Boundary: a turn is over, and everything of it is stored.
    TurnEnd = "turn_end", TurnEndEvent => BoundaryOutcome;
    /// Notify: a message begins.
    MessageStart = "message_start", MessageStartEvent => ();
    /// Notify: an answer grows.
    MessageUpdate = "message_update", MessageUpdateEvent => ();
    /// Chain: a message is complete and about to be stored.
    MessageEnd = "message_end", MessageEndEvent => MessageOutcome;
    /// Notify: a tool call begins.
    ToolExecutionStart = "tool_execution_start", ToolExecutionStartEvent => ();
    /// Notify: a tool shows what it has so far.
    ToolExecutionUpdate = "tool_execution_update", ToolExecutionUpdateEvent => ();
    /// Notify: a tool call is over.
    ToolExecutionEnd = "tool_execution_end", ToolExecutionEndEvent => ();
    /// Gate: whether a call may run, and with which arguments.
    ToolCall = "tool_call", ToolCallEvent => ToolCallDecision;
    /// Chain: what a call gave.
    ToolResult = "tool_result", ToolResultEvent => ToolResultOutcome;
    /// Gate: the user runs a command. The first handler that takes it over counts.
    UserBash = "user_bash", UserBashEvent => UserBashDecision;
    /// Chain: the conversation that a request is made from, without system messages.
    Context = "context", ContextEvent => ContextOutcome;
    /// Chain: everything that a request is made from. The handler owns prompt and tools.
    ContextWithSystem = "context_with_system", ContextEvent => ContextWithSystemOutcome;
    /// Chain: the headers of a request.
    BeforeProviderHeaders = "before_provider_headers", BeforeProviderHeadersEvent => HeaderChanges;
    /// Chain: the body of a request.
    BeforeProviderRequest = "before_provider_request", BeforeProviderRequestEvent => PayloadOutcome;
    /// Notify: a provider answered.
    AfterProviderResponse = "after_provider_response", AfterProviderResponseEvent => ();
    /// Notify: a provider sent an event.
    ProviderStreamEvent = "provider_stream_event", ProviderStreamEventEvent => ();
    /// Notify: another model answers from now on.
    ModelSelect = "model_select", ModelSelectEvent => ();
    /// Notify: the model thinks harder or less from now on.
    ThinkingLevelSelect = "thinking_level_select", ThinkingLevelSelectEvent => ();
    /// Notify: the user is asked something.
    UiPromptStart = "ui_prompt_start", UiPromptEvent => ();
    /// Notify: nothing is asked any more.
    UiPromptEnd = "ui_prompt_end", UiPromptEvent => ();
}
