//! What a request is made from.

use pi_ai::CancellationToken;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    extensions::{
        ExtensionError,
        outcome::{Outcome, answers, part},
    },
    messages::SessionMessage,
};

/// The messages that a request is about to be made from. The list is the handler's own; the transcript never changes.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContextEvent {
    /// The messages. Handlers of `context` see no system messages.
    pub messages: Vec<SessionMessage>,
    /// Cancelled when the run is aborted.
    #[serde(skip)]
    pub signal: CancellationToken,
}

impl ContextEvent {
    pub(crate) fn new(messages: Vec<SessionMessage>, signal: CancellationToken) -> Self {
        Self { messages, signal }
    }
}

/// What a `context` handler did with the messages. Prompt and tools are none of its business: they stay, whatever it
/// answers.
#[derive(Clone, Debug, Default)]
pub enum ContextOutcome {
    /// Nothing.
    #[default]
    Unchanged,
    /// The same messages in the same places, some of them with other content. System messages stay where they are.
    Edited(Vec<SessionMessage>),
    /// Another list. It gets the prompt and the tools that hold as its leading system message, unless it is the list
    /// that was there (the same messages, by pointer): then nothing has changed.
    Replaced(Vec<SessionMessage>),
    /// Changes of the list that was there, without a copy of it. Counts as [`Replaced`](Self::Replaced).
    Operations(Vec<ContextOperation>),
}

impl From<Vec<SessionMessage>> for ContextOutcome {
    fn from(messages: Vec<SessionMessage>) -> Self {
        Self::Replaced(messages)
    }
}

impl From<Vec<ContextOperation>> for ContextOutcome {
    fn from(operations: Vec<ContextOperation>) -> Self {
        Self::Operations(operations)
    }
}

/// One change of a list of messages. Places count in the list that the handler saw, from 0; the order of operations
/// counts only among messages that are inserted at one place.
///
/// As JSON: `{"keep":{"from":2,"to":9}}`, `{"drop":{"from":0,"to":4}}`, `{"insert":{"at":0,"messages":[…]}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ContextOperation {
    /// Only these stay. With several, what any of them names.
    Keep(MessageRange),
    /// These go.
    Drop(MessageRange),
    /// Puts messages before the one at a place; at the length of the list, behind all of them.
    Insert {
        /// The place.
        at: usize,
        /// The messages.
        messages: Vec<SessionMessage>,
    },
}

/// A range of messages, without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRange {
    /// The first one.
    pub from: usize,
    /// The one behind the last.
    pub to: usize,
}

impl MessageRange {
    fn holds(self, index: usize) -> bool {
        (self.from..self.to).contains(&index)
    }
}

impl From<std::ops::Range<usize>> for MessageRange {
    fn from(range: std::ops::Range<usize>) -> Self {
        Self { from: range.start, to: range.end }
    }
}

impl ContextOperation {
    /// Carries operations out.
    ///
    /// # Errors
    /// When one of them reaches outside the list; nothing is carried out then.
    pub fn apply(operations: Vec<Self>, messages: &[SessionMessage]) -> Result<Vec<SessionMessage>, ExtensionError> {
        let (mut kept, mut dropped, mut inserted) = (Vec::new(), Vec::new(), Vec::new());
        let count = messages.len();
        for operation in operations {
            let (from, to) = match &operation {
                Self::Keep(range) | Self::Drop(range) => (range.from, range.to),
                Self::Insert { at, .. } => (*at, *at),
            };
            if from > to || to > count {
                return Err(ExtensionError::new(format!(
                    "an operation reaches from {from} to {to}, but there are {count} messages"
                )));
            }
            match operation {
                Self::Keep(range) => kept.push(range),
                Self::Drop(range) => dropped.push(range),
                Self::Insert { at, messages } => inserted.push((at, messages)),
            }
        }
        // A stable sort, so that what is inserted at one place keeps its order.
        inserted.sort_by_key(|(at, _)| *at);
        let mut inserted = inserted.into_iter().peekable();
        let mut result = Vec::with_capacity(count);
        for index in 0..=count {
            while let Some((_, messages)) = inserted.next_if(|(at, _)| *at == index) {
                result.extend(messages);
            }
            let Some(message) = messages.get(index) else { break };
            let stays = kept.is_empty() || kept.iter().any(|range| range.holds(index));
            if stays && !dropped.iter().any(|range| range.holds(index)) {
                result.push(message.clone());
            }
        }
        Ok(result)
    }
}

impl Outcome for ContextOutcome {
    fn from_json(mut answer: Value) -> Result<Self, ExtensionError> {
        if let Some(operations) = part(&mut answer, "operations")? {
            return Ok(Self::Operations(operations));
        }
        Ok(part(&mut answer, "messages")?.map_or(Self::Unchanged, Self::Replaced))
    }
}

/// What a `context_with_system` handler did with the messages. It is used as it is: whoever loses the leading system
/// message sends a request without prompt and tools, which is reported.
#[derive(Clone, Debug, Default)]
pub enum ContextWithSystemOutcome {
    /// Nothing.
    #[default]
    Unchanged,
    /// Another list.
    Replaced(Vec<SessionMessage>),
    /// Changes of the list that was there, without a copy of it.
    Operations(Vec<ContextOperation>),
}

impl From<Vec<SessionMessage>> for ContextWithSystemOutcome {
    fn from(messages: Vec<SessionMessage>) -> Self {
        Self::Replaced(messages)
    }
}

impl From<Vec<ContextOperation>> for ContextWithSystemOutcome {
    fn from(operations: Vec<ContextOperation>) -> Self {
        Self::Operations(operations)
    }
}

impl From<Option<Vec<SessionMessage>>> for ContextWithSystemOutcome {
    fn from(messages: Option<Vec<SessionMessage>>) -> Self {
        messages.map_or(Self::Unchanged, Self::Replaced)
    }
}

impl Outcome for ContextWithSystemOutcome {
    fn from_json(answer: Value) -> Result<Self, ExtensionError> {
        Ok(match ContextOutcome::from_json(answer)? {
            ContextOutcome::Unchanged => Self::Unchanged,
            ContextOutcome::Edited(messages) | ContextOutcome::Replaced(messages) => Self::Replaced(messages),
            ContextOutcome::Operations(operations) => Self::Operations(operations),
        })
    }
}

answers! {
    ContextOutcome, from Vec<SessionMessage>, Vec<ContextOperation>;
    ContextWithSystemOutcome, from Vec<SessionMessage>, Vec<ContextOperation>, Option<Vec<SessionMessage>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> Vec<SessionMessage> {
        texts.iter().map(|text| SessionMessage::user(*text)).collect()
    }

    fn applied(operations: Vec<ContextOperation>) -> Vec<String> {
        let messages = ContextOperation::apply(operations, &list(&["a", "b", "c", "d"])).unwrap();
        messages.iter().map(crate::messages::message_text).collect()
    }

    fn insert(at: usize, texts: &[&str]) -> ContextOperation {
        ContextOperation::Insert { at, messages: list(texts) }
    }

    #[test]
    fn ranges_are_kept_and_dropped_and_messages_inserted() {
        assert_eq!(applied(Vec::new()), ["a", "b", "c", "d"]);
        assert_eq!(applied(vec![ContextOperation::Keep((2..4).into())]), ["c", "d"]);
        let both = vec![ContextOperation::Keep((0..1).into()), ContextOperation::Keep((3..4).into())];
        assert_eq!(applied(both), ["a", "d"]);
        assert_eq!(applied(vec![ContextOperation::Drop((1..3).into())]), ["a", "d"]);
        assert_eq!(applied(vec![insert(4, &["z"]), insert(0, &["x", "y"])]), ["x", "y", "a", "b", "c", "d", "z"]);
        let replaced = vec![ContextOperation::Drop((0..4).into()), insert(2, &["sum"])];
        assert_eq!(applied(replaced), ["sum"]);
    }

    #[test]
    fn an_operation_outside_of_the_list_is_refused() {
        #[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
        for operation in [ContextOperation::Keep((0..5).into()), ContextOperation::Drop((3..1).into()), insert(5, &[])]
        {
            let error = ContextOperation::apply(vec![operation], &list(&["a", "b", "c", "d"])).unwrap_err();
            assert!(error.to_string().contains("there are 4 messages"), "{error}");
        }
    }

    #[test]
    fn operations_are_read_from_json() {
        let answer = serde_json::json!({"operations": [
            {"keep": {"from": 1, "to": 2}}, {"drop": {"from": 0, "to": 1}},
            {"insert": {"at": 0, "messages": [{"role": "user", "content": "x", "timestamp": 1}]}},
        ]});
        let ContextOutcome::Operations(operations) = ContextOutcome::from_json(answer).unwrap() else { panic!() };
        assert_eq!(operations.len(), 3);
        assert!(ContextOutcome::from_json(serde_json::json!({"operations": [{"shuffle": {}}]})).is_err());
    }
}
