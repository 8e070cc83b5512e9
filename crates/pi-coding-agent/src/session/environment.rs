//! What sessions need of the world around them.

use std::{fmt, sync::Arc};

use pi_ai::{Clock, IdSource, id::RandomIds, time::SystemClock};

use crate::session::store::{
    LockOwner,
    disk::{Disk, SystemDisk},
};

/// What sessions need of the world around them. The default is the real one.
#[derive(Clone)]
pub struct SessionEnvironment {
    /// Tells the time of new entries.
    pub clock: Arc<dyn Clock>,
    /// Makes the ids of sessions and entries.
    pub ids: Arc<dyn IdSource>,
    /// Where session files lie.
    pub disk: Arc<dyn Disk>,
    /// Who holds the locks.
    pub owner: LockOwner,
    /// When writes are forced to the disk.
    pub sync: SyncPolicy,
}

/// When writes are forced to the disk, so that they survive a loss of power. Whatever is chosen, an entry that was
/// acknowledged survives the death of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SyncPolicy {
    /// When the operating system sees fit.
    Never,
    /// At the end of each turn.
    #[default]
    PerTurn,
    /// After each entry.
    PerEntry,
}

impl Default for SessionEnvironment {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            disk: Arc::new(SystemDisk),
            owner: LockOwner::current(),
            sync: SyncPolicy::default(),
        }
    }
}

impl fmt::Debug for SessionEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionEnvironment")
            .field("now", &self.clock.now())
            .field("owner", &self.owner)
            .field("sync", &self.sync)
            .finish_non_exhaustive()
    }
}
