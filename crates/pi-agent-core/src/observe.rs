//! Watching what becomes of each message on its way to the model.

use std::collections::{HashMap, VecDeque};

use pi_ai::{Message, MessageIdentity, TranscriptContext};

use crate::message::AgentMessage;

/// Sees each stage of each request, borrowed. Without an observer nothing is computed or cloned.
///
/// It is called on the run's own task: look, note down, return. One that panics is left out for the rest of the run.
pub trait RequestObserver<C>: Send + Sync + 'static {
    /// A stage is done.
    fn stage(&self, request: RequestId, stage: Stage<'_, C>);
}

impl<C, T: RequestObserver<C> + ?Sized> RequestObserver<C> for std::sync::Arc<T> {
    fn stage(&self, request: RequestId, stage: Stage<'_, C>) {
        (**self).stage(request, stage);
    }
}

/// A request of an agent, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A stage of a request, with what went in and what came out. All lists are alive at the same time, so that
/// [`provenance`] can tell messages by pointer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Stage<'a, C> {
    /// After `transform_context`; without that hook both lists are the same.
    Transformed {
        /// The transcript.
        before: &'a [AgentMessage<C>],
        /// What the hook made of it.
        after: &'a [AgentMessage<C>],
    },
    /// After `convert_to_llm`.
    Converted {
        /// What went in.
        before: &'a [AgentMessage<C>],
        /// What the model is to see.
        after: &'a [Message],
        /// `origins[i]` is the index in `before` that `after[i]` came from; `None` for a list converter, which does
        /// not say.
        origins: Option<&'a [usize]>,
    },
    /// After prompt and tools were folded in: what the stream function gets.
    Normalized(&'a TranscriptContext),
}

/// Something that can be told from others by pointer.
pub trait Identified {
    /// Which one it is.
    fn identity(&self) -> MessageIdentity;
}

impl Identified for Message {
    fn identity(&self) -> MessageIdentity {
        Message::identity(self)
    }
}

impl<C> Identified for AgentMessage<C> {
    fn identity(&self) -> MessageIdentity {
        AgentMessage::identity(self)
    }
}

/// What became of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is in both lists.
    Kept {
        /// Its place before.
        from: usize,
        /// Its place after.
        to: usize,
    },
    /// It is no longer there.
    Gone {
        /// Its place before.
        from: usize,
    },
    /// It was not there before.
    New {
        /// Its place after.
        to: usize,
    },
}

/// What became of each message from one list to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// So many messages from the start are the same in both lists.
    kept_head: usize,
    middle: Vec<Fate>,
    tail_from: usize,
    tail_to: usize,
    kept_tail: usize,
}

impl Provenance {
    /// Whether both lists are the same.
    pub fn is_unchanged(&self) -> bool {
        self.middle.is_empty()
    }

    /// What became of each message: in the order of the later list, and a message that is gone where it was.
    ///
    /// A message that was edited shows as gone and new in the same gap.
    pub fn fates(&self) -> impl Iterator<Item = Fate> {
        let head = (0..self.kept_head).map(|at| Fate::Kept { from: at, to: at });
        let tail = (0..self.kept_tail).map(|at| Fate::Kept { from: self.tail_from + at, to: self.tail_to + at });
        head.chain(self.middle.iter().copied()).chain(tail)
    }
}

/// Compares two lists by pointer. Both have to be alive; a message that is in a list twice counts twice.
///
/// The common start and end are walked, only what lies between is hashed: for a pruned list the cost is about a
/// comparison per message.
///
/// ```
/// use pi_agent_core::{AgentMessage, observe::{Fate, provenance}};
/// let before: Vec<AgentMessage> = ["a", "b", "c"].map(AgentMessage::user).into();
/// let after = vec![before[0].clone(), AgentMessage::user("new"), before[2].clone()];
/// let fates: Vec<_> = provenance(&before, &after).fates().collect();
/// assert_eq!(fates, [
///     Fate::Kept { from: 0, to: 0 },
///     Fate::New { to: 1 },
///     Fate::Gone { from: 1 },
///     Fate::Kept { from: 2, to: 2 },
/// ]);
/// ```
pub fn provenance<T: Identified, U: Identified>(before: &[T], after: &[U]) -> Provenance {
    let same = |(a, b): &(&T, &U)| a.identity() == b.identity();
    let kept_head = before.iter().zip(after).take_while(same).count();
    let (rest_before, rest_after) = (&before[kept_head..], &after[kept_head..]);
    let kept_tail = rest_before.iter().rev().zip(rest_after.iter().rev()).take_while(same).count();
    let tail_from = before.len() - kept_tail;
    let tail_to = after.len() - kept_tail;
    let middle = fates_between(&before[kept_head..tail_from], &after[kept_head..tail_to], kept_head);
    Provenance { kept_head, middle, tail_from, tail_to, kept_tail }
}

fn fates_between<T: Identified, U: Identified>(before: &[T], after: &[U], offset: usize) -> Vec<Fate> {
    let mut places: HashMap<MessageIdentity, VecDeque<usize>> = HashMap::with_capacity(before.len());
    for (at, message) in before.iter().enumerate() {
        places.entry(message.identity()).or_default().push_back(at);
    }
    let sources: Vec<Option<usize>> =
        after.iter().map(|message| places.get_mut(&message.identity())?.pop_front()).collect();
    let mut is_kept = vec![false; before.len()];
    sources.iter().flatten().for_each(|from| is_kept[*from] = true);
    let mut fates = Vec::with_capacity(before.len().max(after.len()));
    let mut next = 0;
    let gone_before = |next: &mut usize, end: usize, fates: &mut Vec<Fate>| {
        for (at, kept) in is_kept.iter().enumerate().take(end).skip(*next) {
            if !kept {
                fates.push(Fate::Gone { from: offset + at });
            }
        }
        *next = (*next).max(end);
    };
    for (to, from) in sources.iter().enumerate() {
        match from {
            Some(from) => {
                gone_before(&mut next, *from, &mut fates);
                fates.push(Fate::Kept { from: offset + from, to: offset + to });
            }
            None => fates.push(Fate::New { to: offset + to }),
        }
    }
    gone_before(&mut next, before.len(), &mut fates);
    fates
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn messages(count: usize) -> Vec<AgentMessage> {
        (0..count).map(|at| AgentMessage::user(at.to_string())).collect()
    }

    #[test]
    fn a_message_that_is_there_twice_counts_twice() {
        let one = messages(1);
        let twice = vec![one[0].clone(), one[0].clone()];
        let fates: Vec<_> = provenance(&one, &twice).fates().collect();
        assert_eq!(fates, [Fate::Kept { from: 0, to: 0 }, Fate::New { to: 1 }]);
    }

    proptest! {
        #[test]
        fn every_message_of_both_lists_has_one_fate(picks in prop::collection::vec(0..12usize, 0..16)) {
            let before = messages(8);
            // Picks beyond the list are new messages.
            let pick = |at: &usize| before.get(*at).cloned().unwrap_or_else(|| AgentMessage::user("new"));
            let after: Vec<_> = picks.iter().map(pick).collect();
            let fates: Vec<_> = provenance(&before, &after).fates().collect();
            let mut from: Vec<_> = fates.iter().filter_map(|fate| match fate {
                Fate::Kept { from, .. } | Fate::Gone { from } => Some(*from),
                Fate::New { .. } => None,
            }).collect();
            from.sort_unstable();
            prop_assert_eq!(from, (0..before.len()).collect::<Vec<_>>());
            let to: Vec<_> = fates.iter().filter_map(|fate| match fate {
                Fate::Kept { to, .. } | Fate::New { to } => Some(*to),
                Fate::Gone { .. } => None,
            }).collect();
            prop_assert_eq!(to, (0..after.len()).collect::<Vec<_>>());
            for fate in fates {
                if let Fate::Kept { from, to } = fate {
                    prop_assert_eq!(before[from].identity(), after[to].identity());
                }
            }
        }
    }
}
