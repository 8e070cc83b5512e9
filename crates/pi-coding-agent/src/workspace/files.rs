//! The file half of a workspace.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// What a path leads to, links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else: a pipe, a socket, a device.
    Other,
}

/// Facts about what a path leads to, links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// What it is.
    pub kind: FileKind,
    /// Its size in bytes; 0 where that has no meaning.
    pub len: u64,
}

/// What stands in a directory, links not followed but told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A link to a directory.
    LinkToDirectory,
    /// A link to anything else, or to nothing.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// Anything else.
    Other,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: std::ffi::OsString,
    /// What it is.
    pub kind: EntryKind,
}

/// What tells a file from all others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileIdentity {
    /// Its real path: for a file with one name, and for one that does not exist yet.
    Path(PathBuf),
    /// The device and its number there: for a file with several names (hard links). A file with one name is not told by
    /// its number, since giving it new content gives it a new one.
    Number {
        /// The device.
        device: u64,
        /// The number of the file on the device.
        inode: u64,
    },
}

/// The bytes of an opened file, in order.
pub type FileReader = Pin<Box<dyn AsyncRead + Send>>;

/// A file opened for reading.
pub struct OpenedFile {
    /// Its size when it was opened; 0 for files that do not tell (such as those of /proc).
    pub len: u64,
    /// Its bytes. A regular file ends at its size when opened, so that a file that grows still ends.
    pub reader: FileReader,
}

impl fmt::Debug for OpenedFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OpenedFile").field("len", &self.len).finish_non_exhaustive()
    }
}

/// A new file that only its owner can read, for output that does not fit into a result.
pub struct TemporaryFile {
    /// Where it is; tools and commands of the same workspace can read it there.
    pub path: PathBuf,
    /// Writes to it. The file stays when this is dropped.
    pub writer: Pin<Box<dyn AsyncWrite + Send>>,
}

impl fmt::Debug for TemporaryFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TemporaryFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Reading and writing files. Paths are absolute.
///
/// Errors are [`io::Error`]s whose [`kind`](io::Error::kind) tells a missing file from a forbidden one; a
/// path outside what the workspace allows is [`PermissionDenied`](io::ErrorKind::PermissionDenied).
#[async_trait]
pub trait Files: fmt::Debug + Send + Sync + 'static {
    /// What a path leads to, links followed.
    async fn metadata(&self, path: &Path) -> io::Result<Metadata>;

    /// The entries of a directory, in no order, without `.` and `..`.
    async fn entries(&self, path: &Path) -> io::Result<Vec<Entry>>;

    /// The path without links. What stands for one file has one real path.
    async fn real_path(&self, path: &Path) -> io::Result<PathBuf>;

    /// Which file a path leads to, links followed: the same for all names of one file, as far as the place can tell.
    /// Without more knowledge that is the real path.
    async fn identity(&self, path: &Path) -> io::Result<FileIdentity> {
        self.real_path(path).await.map(FileIdentity::Path)
    }

    /// Opens a regular file for reading; anything else is an error.
    async fn open(&self, path: &Path) -> io::Result<OpenedFile>;

    /// Gives a file new content, all of it or none where the file system can do that; creates the file when
    /// there is none. An existing file keeps its mode, its owner and its links; links are followed.
    async fn replace(&self, path: &Path, content: Vec<Bytes>) -> io::Result<()>;

    /// Fails when the file cannot be written to; the file is not touched.
    async fn check_writable(&self, path: &Path) -> io::Result<()>;

    /// Creates a directory and the missing ones above it.
    async fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Creates a file of its own for output that is too large for a result; `prefix` begins its name, which
    /// ends with `.log`.
    async fn create_temporary(&self, prefix: &str) -> io::Result<TemporaryFile>;
}

/// All bytes of a file.
///
/// # Errors
///
/// What [`Files::open`] and reading report.
pub async fn read_to_end(files: &dyn Files, path: &Path) -> io::Result<Bytes> {
    let mut opened = files.open(path).await?;
    let mut bytes = Vec::with_capacity(usize::try_from(opened.len).unwrap_or_default());
    opened.reader.read_to_end(&mut bytes).await?;
    Ok(bytes.into())
}
