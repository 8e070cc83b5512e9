//! Finding the place that a path leads to.
//!
//! Without a confinement the kernel does it. With one, the path is walked from the root directory, one name
//! at a time, each directory opened without following links and held; links are read and walked in the same
//! way. So the real place is known before anything is done there, a link swapped in meanwhile is an error
//! and not a way out, and links of /proc lead where their text says.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::workspace::local::{Access, Confinement, ReadScope};

/// Links followed before a path counts as a loop, as in the kernel.
const MAX_LINKS: usize = 40;

/// What the place is wanted for; the confinement may allow one and not the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// Looking at what is there.
    Read,
    /// Changing what is there, or making something.
    Write,
    /// Making a directory there, and the missing ones above it.
    CreateAbove,
}

/// Where a path leads: a directory and a name in it that is no link. There may be nothing of that name.
#[derive(Debug)]
pub(super) struct Place {
    at: At,
    name: PathBuf,
}

#[derive(Debug)]
enum At {
    /// `name` is a whole path; the kernel follows its links.
    Root,
    /// `name` is in this directory, whose real path is known; links are not followed.
    Directory { directory: OwnedFd, real: PathBuf },
}

impl Place {
    /// The place of an absolute path, when the access lets it through.
    pub(super) fn find(access: &Access, path: &Path, intent: Intent) -> io::Result<Self> {
        match access {
            Access::Unrestricted => Ok(Self {
                at: At::Root,
                name: if intent == Intent::Write { without_last_link(path)? } else { path.to_owned() },
            }),
            Access::Confined(confinement) => Walk::new(confinement, path, intent)?.run(),
        }
    }

    /// The directory that operations are relative to.
    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        match &self.at {
            At::Root => CWD,
            At::Directory { directory, .. } => directory.as_fd(),
        }
    }

    /// The name in [`Self::directory`].
    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// Another name in the same directory.
    pub(super) fn sibling(&self, name: &str) -> PathBuf {
        self.name.with_file_name(name)
    }

    pub(super) fn is_confined(&self) -> bool {
        matches!(self.at, At::Directory { .. })
    }

    pub(super) fn stat(&self) -> io::Result<Stat> {
        let flags = match self.at {
            At::Root => AtFlags::empty(),
            At::Directory { .. } => AtFlags::SYMLINK_NOFOLLOW,
        };
        Ok(rustix::fs::statat(self.directory(), &self.name, flags)?)
    }

    pub(super) fn open(&self, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let follow = match self.at {
            At::Root => OFlags::empty(),
            At::Directory { .. } => OFlags::NOFOLLOW,
        };
        Ok(rustix::fs::openat(self.directory(), &self.name, flags | follow | OFlags::CLOEXEC, mode)?)
    }

    pub(super) fn make_directory(&self) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(self.directory(), &self.name, Mode::from(0o777))?)
    }

    pub(super) fn real_path(&self) -> io::Result<PathBuf> {
        match &self.at {
            At::Root => std::fs::canonicalize(&self.name),
            At::Directory { real, .. } if self.name == Path::new(".") => Ok(real.clone()),
            At::Directory { real, .. } => Ok(real.join(&self.name)),
        }
    }
}

/// The confinement with links in its roots resolved, since places are compared by their real paths. A root
/// that does not exist stays as it is and lets nothing through until it does.
pub(in crate::workspace::local) fn with_real_roots(access: Access) -> Access {
    match access {
        Access::Unrestricted => Access::Unrestricted,
        Access::Confined(confinement) => Access::Confined(Confinement {
            roots: confinement.roots.into_iter().map(|root| std::fs::canonicalize(&root).unwrap_or(root)).collect(),
            ..confinement
        }),
    }
}

/// The path with the links of its last name followed, also where they lead to nothing yet.
fn without_last_link(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match std::fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            // Not a link, or nothing there.
            Err(_) => return Ok(path),
        }
    }
    Err(Errno::LOOP.into())
}

struct Walk<'a> {
    confinement: &'a Confinement,
    intent: Intent,
    root: OwnedFd,
    /// Directories below the root, each open, with their names.
    above: Vec<(OwnedFd, OsString)>,
    /// Names still to go.
    ahead: VecDeque<OsString>,
    links: usize,
}

impl<'a> Walk<'a> {
    fn new(confinement: &'a Confinement, path: &Path, intent: Intent) -> io::Result<Self> {
        let mut walk = Self {
            confinement,
            intent,
            root: rustix::fs::open("/", DIRECTORY, Mode::empty())?,
            above: Vec::new(),
            ahead: VecDeque::new(),
            links: 0,
        };
        walk.go(path);
        Ok(walk)
    }

    /// Puts the names of a path in front of those still to go.
    fn go(&mut self, path: &Path) {
        if path.is_absolute() {
            self.above.clear();
        }
        for component in path.components().rev() {
            match component {
                Component::Normal(name) => self.ahead.push_front(name.to_owned()),
                Component::ParentDir => self.ahead.push_front("..".into()),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
    }

    fn run(mut self) -> io::Result<Place> {
        while let Some(name) = self.ahead.pop_front() {
            if name == ".." {
                self.above.pop();
                continue;
            }
            if let Some(target) = self.read_link(&name)? {
                self.links += 1;
                if self.links > MAX_LINKS {
                    return Err(Errno::LOOP.into());
                }
                self.go(&target);
                continue;
            }
            if self.ahead.is_empty() {
                return self.arrive(&name);
            }
            self.enter(name)?;
        }
        // The path names a directory that is already open: the root, or one reached by `..`.
        self.arrive(OsStr::new("."))
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.above.last().map_or(self.root.as_fd(), |(directory, _)| directory.as_fd())
    }

    fn real(&self) -> PathBuf {
        let mut real = PathBuf::from("/");
        real.extend(self.above.iter().map(|(_, name)| name));
        real
    }

    fn read_link(&self, name: &OsStr) -> io::Result<Option<PathBuf>> {
        match rustix::fs::readlinkat(self.here(), name, Vec::new()) {
            Ok(target) => Ok(Some(OsString::from_vec(target.into_bytes()).into())),
            Err(Errno::INVAL | Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn enter(&mut self, name: OsString) -> io::Result<()> {
        let opened = rustix::fs::openat(self.here(), &name, DIRECTORY, Mode::empty());
        let directory = match opened {
            Err(Errno::NOENT) if self.intent == Intent::CreateAbove => {
                self.check(&self.real().join(&name))?;
                match rustix::fs::mkdirat(self.here(), &name, Mode::from(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                rustix::fs::openat(self.here(), &name, DIRECTORY, Mode::empty())?
            }
            opened => opened?,
        };
        self.above.push((directory, name));
        Ok(())
    }

    fn arrive(mut self, name: &OsStr) -> io::Result<Place> {
        let real = self.real();
        self.check(&if name == "." { real.clone() } else { real.join(name) })?;
        let directory = self.above.pop().map_or(self.root, |(directory, _)| directory);
        Ok(Place { at: At::Directory { directory, real }, name: name.into() })
    }

    /// Whether the confinement lets the intent through at this real path.
    fn check(&self, real: &Path) -> io::Result<()> {
        let in_roots = self.confinement.roots.iter().any(|root| real.starts_with(root));
        if in_roots || (self.intent == Intent::Read && self.confinement.read == ReadScope::Anywhere) {
            return Ok(());
        }
        let what = match self.intent {
            Intent::Read => "reading",
            Intent::Write | Intent::CreateAbove => "writing",
        };
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{what} outside the allowed directories is not permitted here"),
        ))
    }
}

/// For holding a directory, which needs no right to list it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
