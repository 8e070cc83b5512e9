//! What is kept between the requests of a conversation.

use std::sync::{Mutex, PoisonError};

use indexmap::IndexMap;

use crate::id::SessionId;

/// How many conversations are kept. One that is dropped only pays for one more refusal.
const CAPACITY: usize = 10_000;

/// What is kept, by conversation, the one that changed last at the end.
#[derive(Default)]
pub(super) struct Sessions(Mutex<IndexMap<SessionId, Session>>);

/// What is kept for one conversation.
#[derive(Clone, Debug, Default)]
struct Session {
    /// The server knows no threads.
    refuses_threads: bool,
    /// Where the next request can go on.
    thread: Option<Thread>,
}

/// A conversation that the provider keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    /// How many messages it holds.
    pub(super) messages: usize,
    /// The hash of its settings and messages.
    pub(super) hash: [u8; 32],
    /// The id of the reply that it ends with.
    pub(super) reply: String,
}

impl Sessions {
    pub(super) fn refuses_threads(&self, session: &SessionId) -> bool {
        self.read(session, |session| session.refuses_threads)
    }

    pub(super) fn refuse_threads(&self, session: &SessionId) {
        self.change(session, |session| session.refuses_threads = true);
    }

    pub(super) fn keep_thread(&self, session: &SessionId, thread: Thread) {
        self.change(session, |session| session.thread = Some(thread));
    }

    /// Each reply can be continued once: whoever comes next begins a new thread.
    pub(super) fn take_thread(&self, session: &SessionId) -> Option<Thread> {
        self.lock().get_mut(session)?.thread.take()
    }

    pub(super) fn forget(&self, session: &SessionId) {
        self.lock().shift_remove(session);
    }

    fn read<R: Default>(&self, session: &SessionId, read: impl FnOnce(&Session) -> R) -> R {
        self.lock().get(session).map(read).unwrap_or_default()
    }

    fn change<R>(&self, id: &SessionId, change: impl FnOnce(&mut Session) -> R) -> R {
        let mut sessions = self.lock();
        let mut session = sessions.shift_remove(id).unwrap_or_default();
        let result = change(&mut session);
        sessions.insert(id.clone(), session);
        if sessions.len() > CAPACITY {
            sessions.shift_remove_index(0);
        }
        result
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, IndexMap<SessionId, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
