//! The prompt and the tools, replayed from a transcript's system messages.
//!
//! A transcript owns its prompt. Its system messages, in order, say what holds at any point: the content of each one
//! is appended, named sections are set or removed, tools are added or taken away. The functions here replay a whole
//! list; [`TranscriptState`] does the same as an incremental fold. They take any list of [`TranscriptItem`]s, so that
//! a list with an application's own roles needs no copy.
//!
//! ```
//! use pi_ai::{Message, SystemMessage, transcript::current_system_message};
//! let transcript = [
//!     Message::from(SystemMessage::new("You help.").section("tone", "formal")),
//!     Message::user("hi"),
//!     SystemMessage::default().section("tone", "relaxed").into(),
//! ];
//! let head = current_system_message(&transcript).expect("the transcript has a prompt");
//! assert_eq!(head.sections["tone"].as_deref(), Some("relaxed"));
//! ```

mod render;
mod state;

use std::collections::HashSet;

use indexmap::IndexMap;

pub use render::{render_full, render_update};
pub use state::TranscriptState;

use crate::{
    message::{Message, SystemMessage},
    tool::{ToolDeclaration, ToolReference},
};

/// An element of a transcript: it may be a system message, and the replayed head can be put in its place.
pub trait TranscriptItem {
    /// The system message, when it is one.
    fn as_system(&self) -> Option<&SystemMessage>;
}

impl TranscriptItem for Message {
    fn as_system(&self) -> Option<&SystemMessage> {
        match self {
            Self::System(message) => Some(message),
            Self::User(_) | Self::Assistant(_) | Self::ToolResult(_) => None,
        }
    }
}

/// The one system message that says what holds at the end of the list, or `None` when the list has none.
///
/// Its content is that of all system messages joined by blank lines, its sections and tools are those that are left,
/// in the order in which they were (last) introduced. Its time is that of the first.
pub fn current_system_message<T: TranscriptItem>(messages: &[T]) -> Option<SystemMessage> {
    state_of(messages).system_message()
}

/// The text of the prompt that holds at the end of the list, sections included.
pub fn current_system_prompt<T: TranscriptItem>(messages: &[T]) -> String {
    current_system_message(messages).map(|head| render_full(&head)).unwrap_or_default()
}

/// The tools that hold at the end of the list.
pub fn current_tools<T: TranscriptItem>(messages: &[T]) -> Vec<ToolDeclaration> {
    state_of(messages).tools().cloned().collect()
}

/// The leading system message, when the list begins with one.
pub fn initial_system_message<T: TranscriptItem>(messages: &[T]) -> Option<&SystemMessage> {
    messages.first()?.as_system()
}

/// The system message that a prompt and tools make, or `None` when both are empty. Its time is 0.
pub fn create_initial_system_message(prompt: &str, tools: Vec<ToolDeclaration>) -> Option<SystemMessage> {
    (!prompt.is_empty() || !tools.is_empty()).then(|| SystemMessage::new(prompt).with_tools(tools))
}

/// The list without its leading system message.
pub fn without_initial_system_message<T: TranscriptItem>(messages: &[T]) -> &[T] {
    match initial_system_message(messages) {
        Some(_) => &messages[1..],
        None => messages,
    }
}

/// Every tool that was declared anywhere in the list, with its last declaration, in the order of first appearance.
pub fn declared_tools<T: TranscriptItem>(messages: &[T]) -> Vec<ToolDeclaration> {
    let mut declared = IndexMap::<&str, &ToolDeclaration>::new();
    for tool in systems(messages).flat_map(|message| &message.tools_added) {
        declared.insert(&tool.name, tool);
    }
    declared.into_values().cloned().collect()
}

/// Whether tools were ever taken away or declared again after the leading system message: such a history cannot be
/// told by additions alone.
pub fn has_non_additive_tool_changes<T: TranscriptItem>(messages: &[T]) -> bool {
    systems_up_to_last_non_additive_change(messages) > 0
}

/// What has to be announced for one tool set to become another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolStateChanges {
    /// New tools, and those whose declaration changed.
    pub tools_added: Vec<ToolDeclaration>,
    /// Tools that are gone, and those whose declaration changed.
    pub tools_removed: Vec<ToolReference>,
}

impl ToolStateChanges {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.tools_added.is_empty() && self.tools_removed.is_empty()
    }
}

/// Compares two tool sets; their order does not matter. Of several tools with one name the last one counts.
pub fn tool_state_changes<'a>(
    previous: impl IntoIterator<Item = &'a ToolDeclaration>,
    current: impl IntoIterator<Item = &'a ToolDeclaration>,
) -> ToolStateChanges {
    let by_name = |tools: &mut dyn Iterator<Item = &'a ToolDeclaration>| {
        let mut named = IndexMap::<&'a str, &'a ToolDeclaration>::new();
        for tool in tools {
            named.insert(&tool.name, tool);
        }
        named
    };
    let previous = by_name(&mut previous.into_iter());
    let current = by_name(&mut current.into_iter());
    let added = current.values().filter(|tool| previous.get(tool.name.as_str()) != Some(tool));
    let removed = previous.values().filter(|tool| current.get(tool.name.as_str()) != Some(tool));
    ToolStateChanges {
        tools_added: added.map(|tool| (*tool).clone()).collect(),
        tools_removed: removed.map(|tool| ToolReference { name: tool.name.clone() }).collect(),
    }
}

/// Folds every system message into one that leads: what a wire without later system messages sends.
pub fn collapse<T: TranscriptItem + Clone + From<SystemMessage>>(messages: &[T]) -> Vec<T> {
    let head = current_system_message(messages).map(T::from);
    let rest = messages.iter().filter(|message| message.as_system().is_none()).cloned();
    head.into_iter().chain(rest).collect()
}

/// Whether a wire can say something in the middle of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaterSystemMessages {
    /// It takes system messages anywhere.
    Supported,
    /// It takes one at the start.
    #[default]
    Unsupported,
}

/// The list as a wire can send it: unchanged, or [collapsed](collapse).
pub fn resolve<T: TranscriptItem + Clone + From<SystemMessage>>(
    messages: &[T],
    support: LaterSystemMessages,
) -> Vec<T> {
    match support {
        LaterSystemMessages::Supported => messages.to_vec(),
        LaterSystemMessages::Unsupported => collapse(messages),
    }
}

/// What a wire can say about tools in the middle of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolChangeSupport {
    /// Nothing: a request has one list of tools.
    #[default]
    None,
    /// That tools were added.
    Additions,
    /// That tools were added or taken away.
    Changes,
}

/// Where a request says its tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResolvedTools {
    /// What stands in the request's own list of tools.
    pub request_tools: Vec<ToolDeclaration>,
    /// The tool changes of this many system messages, from the first, are in that list; those of later ones are said
    /// in place.
    pub folded_system_messages: usize,
}

/// Decides where a request says its tools.
///
/// A wire that can express all changes says everything in place. One that can express additions lists what held after
/// the last change that is no addition, and says what came later in place: so the list (and a prompt cached behind it)
/// changes once per removal, not with every later addition. All others list the current tools.
pub fn resolve_tools<T: TranscriptItem>(messages: &[T], support: ToolChangeSupport) -> ResolvedTools {
    match support {
        ToolChangeSupport::Changes => ResolvedTools::default(),
        ToolChangeSupport::Additions => {
            let leading = usize::from(initial_system_message(messages).is_some());
            let folded = systems_up_to_last_non_additive_change(messages).max(leading);
            let mut state = TranscriptState::default();
            for message in systems(messages).take(folded) {
                state.push_system(message);
            }
            ResolvedTools { request_tools: state.tools().cloned().collect(), folded_system_messages: folded }
        }
        ToolChangeSupport::None => {
            ResolvedTools { request_tools: current_tools(messages), folded_system_messages: systems(messages).count() }
        }
    }
}

/// How many system messages there are up to and with the last one that takes a tool away or declares one again.
fn systems_up_to_last_non_additive_change<T: TranscriptItem>(messages: &[T]) -> usize {
    let mut known = HashSet::new();
    let mut last = 0;
    for (index, message) in systems(messages).enumerate() {
        // Every name counts, also after a repetition: later messages may repeat it again.
        let repeats = message.tools_added.iter().filter(|tool| !known.insert(&tool.name)).count();
        if repeats > 0 || !message.tools_removed.is_empty() {
            last = index + 1;
        }
    }
    last
}

fn systems<T: TranscriptItem>(messages: &[T]) -> impl Iterator<Item = &SystemMessage> {
    messages.iter().filter_map(T::as_system)
}

fn state_of<T: TranscriptItem>(messages: &[T]) -> TranscriptState {
    let mut state = TranscriptState::default();
    for message in systems(messages) {
        state.push_system(message);
    }
    state
}
