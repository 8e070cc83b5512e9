//! Keeping requests short.

use std::collections::HashSet;

use futures::future::BoxFuture;
use pi_ai::{CancellationToken, Message, ToolCallId, transcript::current_system_message};

use crate::{hooks::TransformContext, message::AgentMessage};

/// A [`TransformContext`] that gives the model the most recent messages only. The transcript keeps everything.
///
/// What the messages that are left out said about the prompt and the tools is kept: their system messages become one
/// that leads. A request never begins with the result of a call that it does not have.
///
/// A prompt that changes at its start is not read from the provider's cache. [`in_steps_of`](Self::in_steps_of) leaves
/// out several messages at a time, so that the start moves seldom.
///
/// ```
/// use pi_agent_core::{Agent, KeepRecent};
/// use pi_ai::faux::FauxProvider;
/// let agent = Agent::builder(FauxProvider::new([]))
///     .transform_context_with(KeepRecent::at_most(40).in_steps_of(10))
///     .build();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepRecent {
    most: usize,
    step: usize,
}

impl KeepRecent {
    /// Requests have at most so many messages, the leading one included (and at least the last message).
    pub fn at_most(messages: usize) -> Self {
        Self { most: messages.max(1), step: 1 }
    }

    /// Messages are left out so many at a time. Requests are then between this and the limit shorter than they could
    /// be.
    #[must_use]
    pub fn in_steps_of(mut self, messages: usize) -> Self {
        self.step = messages.clamp(1, self.most);
        self
    }

    /// The list that a request is made from.
    pub fn prune<C>(&self, messages: Vec<AgentMessage<C>>) -> Vec<AgentMessage<C>> {
        if messages.len() <= self.most {
            return messages;
        }
        // One place is for the head.
        let surplus = messages.len() + 1 - self.most;
        let cut = surplus.div_ceil(self.step).saturating_mul(self.step);
        let cut = after_orphans(&messages, cut.min(messages.len() - 1));
        let head = leading_message(&messages[..cut]);
        head.into_iter().chain(messages.into_iter().skip(cut)).collect()
    }
}

impl<C: Send + Sync + 'static> TransformContext<C> for KeepRecent {
    fn transform_context<'a>(
        &'a self,
        messages: Vec<AgentMessage<C>>,
        _signal: &'a CancellationToken,
    ) -> BoxFuture<'a, Vec<AgentMessage<C>>> {
        Box::pin(std::future::ready(self.prune(messages)))
    }
}

/// What the messages that are left out add up to. A lone leading message stays the same one.
fn leading_message<C>(left_out: &[AgentMessage<C>]) -> Option<AgentMessage<C>> {
    match left_out.split_first() {
        Some((first, rest)) if first.is_system() && !rest.iter().any(AgentMessage::is_system) => Some(first.clone()),
        _ => current_system_message(left_out).map(AgentMessage::from),
    }
}

/// The first place at or after `cut` from which no result lacks its call.
fn after_orphans<C>(messages: &[AgentMessage<C>], mut cut: usize) -> usize {
    loop {
        let mut called: HashSet<&ToolCallId> = HashSet::new();
        let mut last_orphan = None;
        for (at, message) in messages.iter().enumerate().skip(cut) {
            match message.as_llm() {
                Some(Message::Assistant(answer)) => called.extend(answer.tool_calls().map(|call| &call.id)),
                Some(Message::ToolResult(result)) if !called.contains(&result.tool_call_id) => last_orphan = Some(at),
                _ => {}
            }
        }
        match last_orphan {
            Some(at) => cut = at + 1,
            None => return cut,
        }
    }
}

#[cfg(test)]
mod tests {
    use pi_ai::{
        AssistantMessage, SystemMessage, ToolCall, ToolResultMessage,
        transcript::{current_system_prompt, current_tools},
    };
    use proptest::prelude::*;

    use super::*;

    fn answer(calls: &[&str]) -> AgentMessage {
        let content = calls.iter().map(|id| ToolCall::new(*id, "t", serde_json::json!({})).into()).collect();
        AssistantMessage { content, ..AssistantMessage::default() }.into()
    }

    fn result(id: &str) -> AgentMessage {
        ToolResultMessage { tool_call_id: id.into(), ..ToolResultMessage::default() }.into()
    }

    fn roles(messages: &[AgentMessage]) -> Vec<String> {
        messages.iter().map(|message| message.role().into_owned()).collect()
    }

    #[test]
    fn a_short_transcript_stays_as_it_is() {
        let messages: Vec<AgentMessage> = vec![AgentMessage::user("a"), AgentMessage::user("b")];
        assert_eq!(KeepRecent::at_most(2).prune(messages.clone()), messages);
    }

    #[test]
    fn the_head_that_was_left_out_is_replayed() {
        let messages = vec![
            SystemMessage::new("You help.").section("tone", "formal").into(),
            AgentMessage::user("a"),
            SystemMessage::default().section("tone", "relaxed").into(),
            AgentMessage::user("b"),
            AgentMessage::user("c"),
        ];
        let pruned = KeepRecent::at_most(2).prune(messages.clone());
        assert_eq!(roles(&pruned), ["system", "user"]);
        assert_eq!(current_system_prompt(&pruned), current_system_prompt(&messages));
    }

    #[test]
    fn a_lone_head_stays_the_same_message() {
        let head: AgentMessage = SystemMessage::new("You help.").into();
        let mut messages = vec![head.clone()];
        messages.extend((0..9).map(|n| AgentMessage::user(n.to_string())));
        let pruned = KeepRecent::at_most(4).prune(messages);
        assert_eq!(pruned.len(), 4);
        assert_eq!(pruned[0].identity(), head.identity());
    }

    #[test]
    fn it_never_begins_with_a_result_without_its_call() {
        let messages =
            vec![AgentMessage::user("a"), answer(&["1", "2"]), result("1"), result("2"), AgentMessage::user("b")];
        assert_eq!(roles(&KeepRecent::at_most(4).prune(messages)), ["user"]);
    }

    #[test]
    fn in_steps_the_start_moves_seldom() {
        let keep = KeepRecent::at_most(40).in_steps_of(10);
        let begins_with = |length: usize| {
            let messages: Vec<_> = (0..length).map(|n| AgentMessage::<crate::NoCustom>::user(n.to_string())).collect();
            keep.prune(messages)[0].as_llm().unwrap().as_user().unwrap().content.text().into_owned()
        };
        assert_eq!([40, 41, 49, 50].map(begins_with), ["0", "10", "10", "20"]);
    }

    fn message() -> impl Strategy<Value = AgentMessage> {
        let id = || prop::sample::select(vec!["1", "2", "3"]);
        prop_oneof![
            3 => Just(AgentMessage::user("x")),
            2 => prop::collection::vec(id(), 0..3).prop_map(|calls| answer(&calls)),
            3 => id().prop_map(result),
            1 => prop::sample::select(vec!["a", "b"]).prop_map(|name| {
                SystemMessage::default().section(name, "text").into()
            }),
        ]
    }

    proptest! {
        #[test]
        fn whatever_is_pruned_says_the_same_and_is_answerable(
            messages in prop::collection::vec(message(), 0..40),
            most in 1..20usize,
            step in 1..8usize,
        ) {
            let pruned = KeepRecent::at_most(most).in_steps_of(step).prune(messages.clone());
            prop_assert!(pruned.len() <= most.max(2));
            prop_assert_eq!(current_system_prompt(&pruned), current_system_prompt(&messages));
            prop_assert_eq!(current_tools(&pruned), current_tools(&messages));
            if messages.len() > most {
                let mut called = HashSet::new();
                for message in &pruned {
                    if let Some(answer) = message.as_assistant() {
                        called.extend(answer.tool_calls().map(|call| call.id.clone()));
                    }
                    if let Some(result) = message.as_tool_result() {
                        prop_assert!(called.contains(&result.tool_call_id));
                    }
                }
            }
        }
    }
}
