//! Keeping requests short.

use std::collections::HashMap;

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
    /// Requests have at most so many messages, the leading one included. The last message is always among them, and
    /// when that is a tool's result, the answer that called the tool is, too, however many results there are.
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
        let cut = match after_orphans(&messages, cut.min(messages.len() - 1)) {
            cut if cut < messages.len() => cut,
            // The last results alone are more than there is room for.
            _ => from_the_last_call(&messages),
        };
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

/// The first place at or after `cut` from which no result lacks a call that the transcript has.
fn after_orphans<C>(messages: &[AgentMessage<C>], mut cut: usize) -> usize {
    while let Some(orphan) = orphans_of(messages, cut).last() {
        cut = orphan.result + 1;
    }
    // A result whose call is nowhere does not begin a request either.
    cut + messages[cut..].iter().take_while(|message| message.as_tool_result().is_some()).count()
}

/// The last place from which the results at the end have their calls.
fn from_the_last_call<C>(messages: &[AgentMessage<C>]) -> usize {
    let results = messages.iter().rev().take_while(|message| message.as_tool_result().is_some()).count();
    let mut cut = (messages.len() - results).saturating_sub(1);
    while let Some(call) = orphans_of(messages, cut).iter().map(|orphan| orphan.call).min() {
        cut = call;
    }
    cut
}

/// A result whose call is left out.
struct Orphan {
    result: usize,
    /// Where its call is.
    call: usize,
}

/// The results from `cut` on whose calls are all before it, in order.
fn orphans_of<C>(messages: &[AgentMessage<C>], cut: usize) -> Vec<Orphan> {
    let mut calls: HashMap<&ToolCallId, usize> = HashMap::new();
    let mut orphans = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        match message.as_llm() {
            Some(Message::Assistant(answer)) => calls.extend(answer.tool_calls().map(|call| (&call.id, at))),
            Some(Message::ToolResult(answered)) if at >= cut => match calls.get(&answered.tool_call_id) {
                Some(call) if *call < cut => orphans.push(Orphan { result: at, call: *call }),
                _ => {}
            },
            _ => {}
        }
    }
    orphans
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
    fn more_results_than_there_is_room_for_stay_with_their_calls() {
        let messages = vec![AgentMessage::user("a"), answer(&["1", "2", "3"]), result("1"), result("2"), result("3")];
        let pruned = KeepRecent::at_most(3).prune(messages);
        assert_eq!(roles(&pruned), ["assistant", "toolResult", "toolResult", "toolResult"]);
    }

    #[test]
    fn a_late_result_of_no_call_does_not_cost_what_came_before_it() {
        let messages = vec![
            AgentMessage::user("a"),
            AgentMessage::user("b"),
            AgentMessage::user("c"),
            result("of nothing"),
            AgentMessage::user("d"),
        ];
        assert_eq!(roles(&KeepRecent::at_most(4).prune(messages)), ["user", "toolResult", "user"]);
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
            let ends_with_results = messages.last().is_some_and(|last| last.as_tool_result().is_some());
            prop_assert!(pruned.len() <= most.max(2) || ends_with_results);
            if !ends_with_results {
                prop_assert_eq!(pruned.last().map(AgentMessage::identity), messages.last().map(AgentMessage::identity));
            }
            prop_assert_eq!(current_system_prompt(&pruned), current_system_prompt(&messages));
            prop_assert_eq!(current_tools(&pruned), current_tools(&messages));
            if messages.len() > most {
                let body = usize::from(pruned.first().is_some_and(AgentMessage::is_system));
                let cut = messages.len() - (pruned.len() - body);
                prop_assert!(orphans_of(&messages, cut).is_empty());
            }
        }
    }
}
