//! [`Files`] of this machine. The work is done by `system`, on threads where it may block.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::io::AsyncReadExt;

use super::log_writer::LogWriter;
use super::{Access, system};
use crate::workspace::{Entry, FileIdentity, Files, Metadata, OpenedFile, TemporaryFile};

/// Bytes that one trip to a blocking thread may carry.
const READ_BUFFER: usize = 256 * 1024;

/// The files of this machine, as far as the access goes.
#[derive(Clone, Debug)]
pub struct LocalFiles {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    access: Access,
    temp_dir: PathBuf,
}

impl LocalFiles {
    /// Files within `access`; files for large outputs are made in `temp_dir`.
    #[must_use]
    pub fn new(access: Access, temp_dir: PathBuf) -> Self {
        Self { inner: Arc::new(Inner { access: system::with_real_roots(access), temp_dir }) }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        path: &Path,
        work: impl FnOnce(&Access, &Path) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let inner = Arc::clone(&self.inner);
        let path = path.to_owned();
        tokio::task::spawn_blocking(move || work(&inner.access, &path))
            .await
            .unwrap_or_else(|panicked| Err(io::Error::other(panicked)))
    }
}

#[async_trait]
impl Files for LocalFiles {
    async fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.blocking(path, system::metadata).await
    }

    async fn entries(&self, path: &Path) -> io::Result<Vec<Entry>> {
        self.blocking(path, system::entries).await
    }

    async fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.blocking(path, system::real_path).await
    }

    async fn identity(&self, path: &Path) -> io::Result<FileIdentity> {
        self.blocking(path, system::identity).await
    }

    async fn open(&self, path: &Path) -> io::Result<OpenedFile> {
        let (file, len) = self.blocking(path, system::open).await?;
        let mut file = tokio::fs::File::from_std(file);
        file.set_max_buf_size(READ_BUFFER);
        // A regular file is read up to its size when opened; one that tells no size to its end.
        let end = if len == 0 { u64::MAX } else { len };
        Ok(OpenedFile { len, reader: Box::pin(file.take(end)) })
    }

    async fn replace(&self, path: &Path, content: Vec<Bytes>) -> io::Result<()> {
        self.blocking(path, move |access, path| system::replace(access, path, &content)).await
    }

    async fn check_writable(&self, path: &Path) -> io::Result<()> {
        self.blocking(path, system::check_writable).await
    }

    async fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.blocking(path, system::create_dir_all).await
    }

    async fn create_temporary(&self, prefix: &str) -> io::Result<TemporaryFile> {
        let name = format!("{prefix}-{}.log", uuid::Uuid::new_v4().simple());
        let path = self.inner.temp_dir.join(name);
        let file = self.blocking(&path, |_, path| system::create_private(path)).await?;
        Ok(TemporaryFile { path, writer: Box::pin(LogWriter::new(file)) })
    }
}
