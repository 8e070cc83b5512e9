//! What waits to be said, as people see it.

use std::collections::VecDeque;

use pi_ai::{Content, Message, MessageIdentity};

use crate::messages::SessionMessage;

/// Mirrors the agent's queues with the texts that are shown.
#[derive(Debug, Default)]
pub(super) struct QueuedTexts {
    steering: VecDeque<Waiting>,
    follow_up: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    /// Kept alive, so that its identity stays its own.
    message: SessionMessage,
    text: String,
}

/// When a queued message is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// After the current turn and all its tool calls.
    Steer,
    /// When the run would end.
    FollowUp,
}

/// What became of something that was to be queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// It waits.
    Waits,
    /// An extension dealt with it.
    Handled,
}

impl QueuedTexts {
    pub(super) fn push(&mut self, delivery: Delivery, message: SessionMessage) {
        let queued = Waiting { text: text_of(&message), message };
        match delivery {
            Delivery::Steer => self.steering.push_back(queued),
            Delivery::FollowUp => self.follow_up.push_back(queued),
        }
    }

    /// Forgets a message that is being said. Whether it was queued.
    pub(super) fn said(&mut self, identity: MessageIdentity) -> bool {
        let before = self.len();
        for queue in [&mut self.steering, &mut self.follow_up] {
            queue.retain(|queued| queued.message.identity() != identity);
        }
        self.len() != before
    }

    /// Empties both and gives the texts, steering first.
    pub(super) fn clear(&mut self) -> (Vec<String>, Vec<String>) {
        let texts = self.texts();
        *self = Self::default();
        texts
    }

    /// The texts that wait, steering first.
    pub(super) fn texts(&self) -> (Vec<String>, Vec<String>) {
        let texts = |queue: &VecDeque<Waiting>| queue.iter().map(|queued| queued.text.clone()).collect();
        (texts(&self.steering), texts(&self.follow_up))
    }

    pub(super) fn len(&self) -> usize {
        self.steering.len() + self.follow_up.len()
    }
}

fn text_of(message: &SessionMessage) -> String {
    let content: Option<&Content> = match message.as_llm() {
        Some(Message::User(user)) => Some(&user.content),
        _ => None,
    };
    content.map(|content| content.text().into_owned()).unwrap_or_default()
}
