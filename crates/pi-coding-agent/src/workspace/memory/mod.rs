//! A workspace in memory: for tests, and for hosts that show a model files which are nowhere on disk.

mod processes;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

pub use processes::{NoProcesses, ScriptedProcesses};

use super::{Entry, EntryKind, FileKind, Files, Metadata, OpenedFile, TemporaryFile, Workspace, search_over_files};

/// A workspace whose files live in memory, with the given ones in it. It searches them and runs no commands.
///
/// ```
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use pi_coding_agent::workspace::{memory::memory_workspace, read_to_end};
///
/// let workspace = memory_workspace("/p", [("/p/a.txt", "hello")]);
/// let text = read_to_end(workspace.files().as_ref(), "/p/a.txt".as_ref()).await?;
/// assert_eq!(text, "hello");
/// # std::io::Result::Ok(()) })?;
/// # std::io::Result::Ok(())
/// ```
#[must_use]
pub fn memory_workspace<P: Into<PathBuf>, C: Into<Bytes>>(
    cwd: impl Into<PathBuf>,
    files: impl IntoIterator<Item = (P, C)>,
) -> Workspace {
    let cwd = cwd.into();
    let memory = MemoryFiles::new(files);
    memory.add_directory(&cwd);
    let files: Arc<dyn Files> = Arc::new(memory);
    let search = search_over_files(Arc::clone(&files));
    Workspace::new(cwd, files, search, Arc::new(NoProcesses))
}

#[derive(Clone, Debug)]
enum Node {
    Directory,
    File(Bytes),
}

/// Files in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles {
    nodes: Arc<Mutex<BTreeMap<PathBuf, Node>>>,
    temporary: Arc<std::sync::atomic::AtomicU64>,
}

impl MemoryFiles {
    /// Files with these paths (absolute) and contents; directories above them are made.
    pub fn new<P: Into<PathBuf>, C: Into<Bytes>>(files: impl IntoIterator<Item = (P, C)>) -> Self {
        let memory = Self::default();
        memory.add_directory(Path::new("/"));
        for (path, content) in files {
            let path = path.into();
            memory.add_directory(path.parent().unwrap_or(Path::new("/")));
            memory.nodes().insert(path, Node::File(content.into()));
        }
        memory
    }

    /// Makes a directory and those above it.
    pub fn add_directory(&self, path: &Path) {
        let mut nodes = self.nodes();
        for directory in path.ancestors() {
            nodes.entry(directory.to_owned()).or_insert(Node::Directory);
        }
    }

    /// The content of a file, when there is one.
    #[must_use]
    pub fn content(&self, path: &Path) -> Option<Bytes> {
        match self.nodes().get(path) {
            Some(Node::File(content)) => Some(content.clone()),
            _ => None,
        }
    }

    /// The map is whole after every statement that changes it, so a panic elsewhere does not spoil it.
    fn nodes(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        let nodes = self.nodes();
        if let Some(node) = nodes.get(path) {
            return Ok(node.clone());
        }
        let below_file = path.ancestors().any(|above| matches!(nodes.get(above), Some(Node::File(_))));
        Err(if below_file { io::ErrorKind::NotADirectory.into() } else { io::ErrorKind::NotFound.into() })
    }
}

#[async_trait]
impl Files for MemoryFiles {
    async fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        Ok(match self.node(path)? {
            Node::Directory => Metadata { kind: FileKind::Directory, len: 0 },
            Node::File(content) => Metadata { kind: FileKind::File, len: content.len() as u64 },
        })
    }

    async fn entries(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let Node::Directory = self.node(path)? else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        Ok(self
            .nodes()
            .iter()
            .filter(|(inner, _)| inner.parent() == Some(path))
            .map(|(inner, node)| Entry {
                name: inner.file_name().unwrap_or(OsStr::new("")).to_owned(),
                kind: match node {
                    Node::Directory => EntryKind::Directory,
                    Node::File(_) => EntryKind::File,
                },
            })
            .collect())
    }

    async fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.node(path).map(|_| path.to_owned())
    }

    async fn open(&self, path: &Path) -> io::Result<OpenedFile> {
        let Node::File(content) = self.node(path)? else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        Ok(OpenedFile { len: content.len() as u64, reader: Box::pin(io::Cursor::new(content)) })
    }

    async fn replace(&self, path: &Path, content: Vec<Bytes>) -> io::Result<()> {
        self.check_writable(path).await.or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        let Node::Directory = self.node(path.parent().unwrap_or(Path::new("/")))? else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        self.nodes().insert(path.to_owned(), Node::File(content.concat().into()));
        Ok(())
    }

    async fn check_writable(&self, path: &Path) -> io::Result<()> {
        match self.node(path)? {
            Node::File(_) => Ok(()),
            Node::Directory => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    async fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        match self.node(path) {
            Ok(Node::Directory) => Ok(()),
            Ok(Node::File(_)) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.add_directory(path);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn create_temporary(&self, prefix: &str) -> io::Result<TemporaryFile> {
        let number = self.temporary.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = PathBuf::from(format!("/tmp/{prefix}-{number}.log"));
        self.add_directory(Path::new("/tmp"));
        self.nodes().insert(path.clone(), Node::File(Bytes::new()));
        let writer = MemoryWriter { files: self.clone(), path: path.clone() };
        Ok(TemporaryFile { path, writer: Box::pin(writer) })
    }
}

/// Appends to a file in memory.
struct MemoryWriter {
    files: MemoryFiles,
    path: PathBuf,
}

impl tokio::io::AsyncWrite for MemoryWriter {
    fn poll_write(
        self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        let mut nodes = self.files.nodes();
        if let Some(Node::File(content)) = nodes.get_mut(&self.path) {
            *content = [content.as_ref(), bytes].concat().into();
        }
        std::task::Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(
        self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn poll_shutdown(
        self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
}
