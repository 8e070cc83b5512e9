//! Claude's limits on strict tools: how many there may be in a request, and how large together.

use std::sync::{Mutex, PoisonError};

use indexmap::IndexSet;

use crate::{error::ProviderError, id::SessionId};

/// How many conversations are kept. One that is dropped only pays for one more refusal.
const CAPACITY: usize = 10_000;

/// How the limits are named when a request exceeds them.
const EXCEEDED: [&str; 3] = [
    "The compiled grammar is too large",
    "Too many strict tools (",
    "Schemas contains too many parameters with union types (",
];

/// The conversations whose tools exceed the limits: trying again would repeat the refusal, and switching back would
/// cost the cache.
#[derive(Debug, Default)]
pub(crate) struct StrictLimits(Mutex<IndexSet<SessionId>>);

impl StrictLimits {
    /// Whether a refusal is about the limits.
    pub(crate) fn are_named_by(refusal: &ProviderError) -> bool {
        let body = refusal.body().unwrap_or_default();
        refusal.status() == Some(400) && EXCEEDED.iter().any(|limit| body.contains(limit))
    }

    pub(crate) fn are_exceeded(&self, session: &SessionId) -> bool {
        self.lock().contains(session)
    }

    pub(crate) fn exceed(&self, session: &SessionId) {
        let mut sessions = self.lock();
        sessions.insert(session.clone());
        if sessions.len() > CAPACITY {
            sessions.shift_remove_index(0);
        }
    }

    pub(crate) fn forget(&self, session: &SessionId) {
        self.lock().shift_remove(session);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, IndexSet<SessionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
