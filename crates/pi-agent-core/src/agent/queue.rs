//! Messages that wait for a run to take them in.

use std::collections::VecDeque;

use pi_ai::MessageIdentity;

use crate::message::AgentMessage;

/// How many waiting messages are taken in at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueMode {
    /// The oldest.
    #[default]
    OneAtATime,
    /// All of them.
    All,
}

/// Messages in order. One leaves only when it is part of the transcript, or when it is cleared.
#[derive(Debug)]
pub(super) struct Queue<C> {
    pub(super) mode: QueueMode,
    messages: VecDeque<AgentMessage<C>>,
}

impl<C> Queue<C> {
    pub(super) fn new(mode: QueueMode) -> Self {
        Self { mode, messages: VecDeque::new() }
    }

    pub(super) fn push(&mut self, messages: Vec<AgentMessage<C>>) {
        self.messages.extend(messages);
    }

    /// The batch that is next. It stays.
    pub(super) fn next_batch(&self) -> Vec<AgentMessage<C>> {
        let count = match self.mode {
            QueueMode::OneAtATime => 1,
            QueueMode::All => self.messages.len(),
        };
        self.messages.iter().take(count).cloned().collect()
    }

    pub(super) fn contains(&self, message: MessageIdentity) -> bool {
        self.messages.iter().any(|queued| queued.identity() == message)
    }

    /// Takes one occurrence of a message out.
    pub(super) fn remove(&mut self, message: MessageIdentity) {
        let at = self.messages.iter().position(|queued| queued.identity() == message);
        at.map(|at| self.messages.remove(at));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &AgentMessage<C>> {
        self.messages.iter()
    }

    pub(super) fn clear(&mut self) -> Vec<AgentMessage<C>> {
        std::mem::take(&mut self.messages).into()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}
