//! A store without a disk.

use std::sync::Arc;

use async_trait::async_trait;

use super::{AppendError, ReadRange, SessionStore, StoreError};
use crate::session::bytes::MemoryBytes;

/// Keeps a session in memory. Clones are handles to the same session.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    bytes: MemoryBytes,
}

impl MemoryStore {
    /// A store that holds these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: MemoryBytes::from(bytes.into()) }
    }

    /// A copy of all bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        self.bytes.copy_from(0)
    }

    pub(crate) fn bytes(&self) -> &MemoryBytes {
        &self.bytes
    }
}

impl From<MemoryBytes> for MemoryStore {
    fn from(bytes: MemoryBytes) -> Self {
        Self { bytes }
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn read(&mut self, from: u64, sink: &mut (dyn for<'a> FnMut(&'a [u8]) + Send)) -> Result<u64, StoreError> {
        let end = self.bytes.len();
        if from > end {
            return Err(StoreError::new("reading the session", format!("it ends at {end}, before {from}")));
        }
        sink(&self.bytes.copy_from(from));
        Ok(end)
    }

    async fn append(&mut self, at: u64, bytes: &[u8]) -> Result<(), AppendError> {
        self.bytes
            .append_at(at, bytes)
            .map_err(|end| if end > at { AppendError::Moved { end } } else { AppendError::Replaced })
    }

    async fn sync(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn reader(&self) -> Option<Arc<dyn ReadRange>> {
        Some(Arc::new(self.bytes.clone()))
    }
}
