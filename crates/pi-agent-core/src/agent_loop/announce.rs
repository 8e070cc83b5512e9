//! Telling the model which tools there are.
//!
//! What can be run is one thing, what the transcript declares another. Before each request the difference is said as
//! one system message, so that replaying the transcript always gives exactly the tools that can be run.

use std::{collections::VecDeque, sync::Arc};

use pi_ai::{
    Clock, Message, SystemMessage,
    transcript::{ToolStateChanges, TranscriptItem, TranscriptState, tool_state_changes},
};

use super::Pending;
use crate::{message::AgentMessage, tool::ToolSet};

/// Puts the difference into the messages that are about to join the transcript: into the last system message among
/// them (whose own tool fields say what was meant, and are replaced), else into one of its own before the first
/// message that is no system message.
pub(super) fn announce<C>(
    declared: &TranscriptState,
    tools: &ToolSet,
    joining: &mut VecDeque<Pending<C>>,
    clock: &dyn Clock,
) {
    let last_system = joining.iter().rposition(|pending| pending.message.is_system());
    let Some(at) = last_system else {
        let changes = tool_state_changes(declared.tools(), tools.declarations());
        if !changes.is_empty() {
            let update = with_changes(SystemMessage { timestamp: clock.now(), ..SystemMessage::default() }, changes);
            joining.push_front(Pending::new(update.into()));
        }
        return;
    };
    let mut baseline = declared.clone();
    for (index, pending) in joining.iter().enumerate() {
        if index != at {
            baseline.push(&pending.message);
        }
    }
    let changes = tool_state_changes(baseline.tools(), tools.declarations());
    let pending = &mut joining[at].message;
    let Some(message) = pending.as_system() else { return };
    // A message that says nothing about tools, when there is nothing to say, stays the caller's own.
    if changes.is_empty() && message.tools_added.is_empty() && message.tools_removed.is_empty() {
        return;
    }
    *pending = AgentMessage::Llm(Message::System(Arc::new(with_changes(message.clone(), changes))));
}

fn with_changes(mut message: SystemMessage, changes: ToolStateChanges) -> SystemMessage {
    message.tools_added = changes.tools_added;
    message.tools_removed = changes.tools_removed;
    message
}

#[cfg(test)]
mod tests {
    use pi_ai::{Timestamp, ToolDeclaration, time::FixedClock, transcript::current_tools};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::tool::{AgentTool, Tool, ToolArguments};

    const CLOCK: FixedClock = FixedClock(Timestamp::from_millis(7));

    fn declaration((name, version): &(u8, u8)) -> ToolDeclaration {
        ToolDeclaration::new(format!("tool{name}"), format!("version {version}"), json!({"type": "object"}))
    }

    fn tool_set(tools: &[(u8, u8)]) -> ToolSet {
        let tool = |tool| -> Arc<dyn AgentTool> {
            Arc::new(Tool::from_declaration(declaration(tool), async |_: ToolArguments, _| Ok("")))
        };
        tools.iter().map(tool).collect()
    }

    fn system(tools: &[(u8, u8)]) -> AgentMessage {
        SystemMessage::new("said").with_tools(tools.iter().map(declaration)).into()
    }

    fn tools() -> impl Strategy<Value = Vec<(u8, u8)>> {
        prop::collection::vec((0..4u8, 0..2u8), 0..4)
    }

    proptest! {
        /// Whatever the transcript and the joining messages declare: afterwards it is what can be run.
        #[test]
        fn replay_gives_exactly_the_executable_tools(
            history in prop::collection::vec(tools(), 0..3),
            joining in prop::collection::vec(prop::option::of(tools()), 0..4),
            executable in tools(),
        ) {
            let history: Vec<AgentMessage> = history.iter().map(|tools| system(tools)).collect();
            let declared: TranscriptState = history.iter().collect();
            let mut pending: VecDeque<Pending<_>> = joining
                .iter()
                .map(|tools| tools.as_ref().map_or_else(|| AgentMessage::user("x"), |tools| system(tools)))
                .map(Pending::new)
                .collect();
            let before = pending.len();
            let executable = tool_set(&executable);
            announce(&declared, &executable, &mut pending, &CLOCK);
            let replayed: Vec<_> = history.into_iter().chain(pending.iter().map(|p| p.message.clone())).collect();
            let replayed = current_tools(&replayed);
            prop_assert!(tool_state_changes(&replayed, executable.declarations()).is_empty());
            let had_system = joining.iter().any(Option::is_some);
            prop_assert!(pending.len() == before || (pending.len() == before + 1 && !had_system));
        }
    }

    #[test]
    fn a_message_of_the_caller_stays_the_same_when_there_is_nothing_to_say() {
        let message: AgentMessage = SystemMessage::new("Also.").into();
        let mut joining = VecDeque::from([Pending::new(message.clone())]);
        announce(&TranscriptState::default(), &ToolSet::default(), &mut joining, &CLOCK);
        assert_eq!(joining[0].message.identity(), message.identity());
    }
}
