//! The file operations that sessions need, behind a trait, so that tests can make each of them fail.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use crate::regular_file;

/// A file system, as far as sessions need one.
pub trait Disk: Send + Sync + 'static {
    /// Opens an existing file.
    ///
    /// # Errors
    /// Those of the file system.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;

    /// Makes a file that only its owner can read, and opens it for appending.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when there is one, and those of the file system.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file its final name, unless that is taken.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when the name is taken, and those of the file system.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Keeps a file's content under a second name as well, unless that is taken.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when the name is taken, and those of the file system.
    fn copy_new(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file another name; what had that name is gone.
    ///
    /// # Errors
    /// Those of the file system.
    fn replace(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// Those of the file system.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes a folder and those above it, for its owner only.
    ///
    /// # Errors
    /// Those of the file system.
    fn create_folder(&self, path: &Path) -> io::Result<()>;

    /// The names in a folder.
    ///
    /// # Errors
    /// Those of the file system.
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>>;

    /// Size, time and identity of the file that has this name now.
    ///
    /// # Errors
    /// Those of the file system.
    fn facts(&self, path: &Path) -> io::Result<FileFacts>;

    /// Makes new names in a folder survive a loss of power, where the platform can.
    ///
    /// # Errors
    /// Those of the file system.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// An open file.
pub trait DiskFile: Send + Sync + 'static {
    /// Reads at a position; 0 at the end.
    ///
    /// # Errors
    /// Those of the file system.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Writes at the end, perhaps not everything; gives how much.
    ///
    /// # Errors
    /// Those of the file system.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Size, time and identity now.
    ///
    /// # Errors
    /// Those of the file system.
    fn facts(&self) -> io::Result<FileFacts>;

    /// Forces the content to the disk.
    ///
    /// # Errors
    /// Those of the file system.
    fn sync(&self) -> io::Result<()>;
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading.
    Read,
    /// Reading, and writing at the end.
    Append,
}

/// Size, time and identity of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// In bytes.
    pub size: u64,
    /// When it was last written.
    pub modified: SystemTime,
    /// Which file it is, whatever its name; `None` where the platform does not tell.
    pub identity: Option<(u64, u64)>,
    /// Another one after each change of the file, its names included; `None` where the platform does not tell.
    pub change: Option<ChangeMark>,
}

/// When a file or one of its names changed last, and how many names it had then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeMark {
    /// Seconds and nanoseconds since 1970.
    pub at: (i64, i64),
    /// 0 for a file that was removed while it was open.
    pub names: u64,
}

impl From<fs::Metadata> for FileFacts {
    fn from(metadata: fs::Metadata) -> Self {
        #[cfg(unix)]
        let (identity, change) = {
            use std::os::unix::fs::MetadataExt;
            let change = ChangeMark { at: (metadata.ctime(), metadata.ctime_nsec()), names: metadata.nlink() };
            (Some((metadata.dev(), metadata.ino())), Some(change))
        };
        #[cfg(not(unix))]
        let (identity, change) = (None, None);
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Self { size: metadata.len(), modified, identity, change }
    }
}

/// The operating system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let file = regular_file::open(path, OpenOptions::new().read(true).append(mode == OpenMode::Append))?;
        Ok(Arc::new(SystemFile(file)))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = for_owner_only().read(true).append(true).create_new(true).open(path)?;
        Ok(Arc::new(SystemFile(file)))
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        match fs::hard_link(from, to) {
            // It has its name: that the other one stays as well is no reason to say that it has not.
            Ok(()) => {
                let _ = fs::remove_file(from);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // No links here: take the name with an empty file of our own, and replace that.
            Err(_) => {
                for_owner_only().write(true).create_new(true).open(to)?;
                fs::rename(from, to)
            }
        }
    }

    fn copy_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        match fs::hard_link(from, to) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            Err(_) => {
                let mut copy = for_owner_only().write(true).create_new(true).open(to)?;
                io::copy(&mut File::open(from)?, &mut copy)?;
                copy.sync_all()
            }
        }
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect()
    }

    fn facts(&self, path: &Path) -> io::Result<FileFacts> {
        Ok(fs::metadata(path)?.into())
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        // Elsewhere a folder cannot be opened as a file.
        if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
    }
}

/// Options for files that only their owner can read, where the platform has that.
fn for_owner_only() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only there is a mode to set"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

struct SystemFile(File);

impl DiskFile for SystemFile {
    #[cfg(unix)]
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.0, into, at)
    }

    #[cfg(windows)]
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(&self.0, into, at)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn facts(&self) -> io::Result<FileFacts> {
        Ok(self.0.metadata()?.into())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Reads until the buffer is full or the file ends; gives how much.
///
/// # Errors
/// Those of the file system.
pub(crate) fn read_full(file: &dyn DiskFile, at: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match file.read_at(at + filled as u64, &mut into[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Writes everything at the end.
///
/// # Errors
/// Those of the file system; a part may have been written.
pub(crate) fn append_all(file: &dyn DiskFile, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match file.append(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Hands a file's content from a position on to `sink`, in pieces; gives where it ended.
///
/// # Errors
/// Those of the file system.
pub(crate) fn read_pieces(file: &dyn DiskFile, from: u64, sink: impl FnMut(&[u8])) -> io::Result<u64> {
    read_pieces_through(&mut Vec::new(), file, from, sink)
}

/// As [`read_pieces`], through a buffer that serves for several files.
///
/// # Errors
/// Those of the file system.
pub(crate) fn read_pieces_through(
    buffer: &mut Vec<u8>,
    file: &dyn DiskFile,
    from: u64,
    mut sink: impl FnMut(&[u8]),
) -> io::Result<u64> {
    /// Fits a second-level cache, and is large enough that system calls do not count.
    const PIECE: usize = 256 << 10;
    buffer.resize(PIECE, 0);
    let mut at = from;
    loop {
        let count = read_full(file, at, buffer)?;
        sink(&buffer[..count]);
        at += count as u64;
        if count < PIECE {
            return Ok(at);
        }
    }
}
