//! Finding out what is wrong with a session file, and writing a sound one in its place.

use std::{
    collections::HashSet,
    fmt,
    io::{self, Write},
    path::{Path, PathBuf},
};

use pi_ai::SessionId;
use serde::Serialize;

use crate::session::{
    bytes::read_lines,
    environment::SessionEnvironment,
    error::SessionError,
    fork::write_new_file,
    header::{CURRENT_VERSION, NewHeader, SessionHeader},
    id::{EntryId, session_id},
    line::{Line, Members, Step, is_json, read_line, rechained},
    load::{LastLine, Loaded, LoadedSession, Loader},
    notice::Notice,
    rewrite::{ATTEMPTS, Draft, Taken},
    store::{
        FileReader, StoreError,
        disk::{DiskFile, OpenMode, read_full, read_pieces},
        without_link,
    },
    tree::{EntryIndex, Place, Tree},
    writer::lock,
};

/// What is wrong with a session file, and what repairing it would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// How many entries a repaired file would have.
    pub entries: usize,
    /// How many lines it would not have.
    pub lost_lines: usize,
}

impl Diagnosis {
    /// Whether there is nothing to repair.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// Whether a repair would do something. An older version is not repaired but rewritten when the session is opened,
    /// a header that says no version stays as it is, and what several entries with one id say is kept.
    pub fn needs_repair(&self) -> bool {
        let is_repaired = |problem: &Problem| {
            !matches!(problem, Problem::OldVersion { .. } | Problem::OddVersion { .. } | Problem::RepeatedId { .. })
        };
        self.problems.iter().any(is_repaired)
    }
}

/// Something that is wrong with a session file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
#[non_exhaustive]
pub enum Problem {
    /// The first line is no session header, so that the file is not opened. A new header is made.
    NoHeader,
    /// A line is damaged; what it said is lost.
    DamagedLine {
        /// The line, from 1.
        line: u64,
        /// The entry, when its id can still be read.
        entry: Option<EntryId>,
    },
    /// A session header where an entry should be, as when two files were joined. It is taken out, and stays in the old
    /// file.
    StrayHeader {
        /// The line, from 1.
        line: u64,
    },
    /// The last line breaks off.
    TornEnd {
        /// The line, from 1.
        line: u64,
    },
    /// The last line has no line break.
    OpenEnd,
    /// An entry names a parent that it does not follow, because that one is damaged or not there. Its parent is set to
    /// the one that it follows.
    LostParent {
        /// The entry.
        entry: EntryId,
        /// The parent that it follows; `None` makes it a root.
        parent: Option<EntryId>,
    },
    /// Several entries have one id; the last one counts. They stay.
    RepeatedId {
        /// The id.
        entry: EntryId,
    },
    /// The file has an older version of the format. Opening it for writing rewrites it.
    OldVersion {
        /// The version.
        version: u64,
    },
    /// What the header says in place of a version is none. The file is read as one of the current version.
    OddVersion {
        /// What it says, as JSON; of something long only the beginning.
        stated: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHeader => f.write_str("the first line is not a session header; a new one is made"),
            Self::DamagedLine { line, entry: Some(entry) } => {
                write!(f, "line {line} is damaged: what entry {entry} said is lost; the line is taken out")
            }
            Self::DamagedLine { line, entry: None } => write!(f, "line {line} is damaged and is taken out"),
            Self::StrayHeader { line } => write!(f, "line {line} is another session header and is taken out"),
            Self::TornEnd { line } => write!(f, "line {line}, the last one, breaks off and is taken out"),
            Self::OpenEnd => f.write_str("the last line has no line break; it gets one"),
            Self::LostParent { entry, parent: Some(parent) } => {
                write!(f, "entry {entry} has lost its parent; it follows {parent}")
            }
            Self::LostParent { entry, parent: None } => {
                write!(f, "entry {entry} has lost its parent; it becomes the beginning of a branch of its own")
            }
            Self::RepeatedId { entry } => {
                write!(f, "several entries have the id {entry}; they stay, the last one counts")
            }
            Self::OldVersion { version } => {
                write!(f, "the file has version {version} of the format; opening it for writing rewrites it")
            }
            Self::OddVersion { stated } => {
                write!(
                    f,
                    "the version in the header is not a whole number: {stated}; the file is read as one of version {CURRENT_VERSION}"
                )
            }
        }
    }
}

/// A session file that was repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// What was wrong.
    pub diagnosis: Diagnosis,
    /// Where the old file lies, unchanged; `None` when there was nothing to repair.
    pub old_file: Option<PathBuf>,
    /// How many bytes another program wrote to the old file in the very moment in which the new one took its name. They
    /// are at its end, and not in the new one.
    pub left_in_old_file: u64,
}

/// Finds out what is wrong with a session file. Reads all of it, and changes nothing.
///
/// # Errors
/// When the file cannot be read.
pub fn diagnose_session(path: &Path, environment: &SessionEnvironment) -> Result<Diagnosis, SessionError> {
    Ok(Examined::read(path, environment)?.diagnosis())
}

/// Writes a sound file in the place of a damaged one. The old file is kept beside it, under a name that is no
/// session's. `cwd` is where the session works when its header is lost.
///
/// # Errors
/// When somebody is writing to the session, or a file cannot be read or written. Then the file is as it was.
pub fn repair_session(path: &Path, cwd: &Path, environment: &SessionEnvironment) -> Result<Repaired, SessionError> {
    // What is rewritten is the file, not a link to it.
    let path = &*without_link(path);
    let _lock = lock(environment, path)?;
    let disk = &*environment.disk;
    for _ in 0..ATTEMPTS {
        let examined = Examined::read(path, environment)?;
        let diagnosis = examined.diagnosis();
        if !diagnosis.needs_repair() {
            return Ok(Repaired { diagnosis, old_file: None, left_in_old_file: 0 });
        }
        let file = free_name(path, "repaired.tmp", environment);
        write_new_file(environment, &file, |sink| examined.write(path, cwd, environment, sink))?;
        let draft = Draft { file, source: &*examined.source.0, read_to: examined.end };
        let keep = || {
            let old_file = free_name(path, "damaged", environment);
            disk.copy_new(path, &old_file).map(|()| old_file)
        };
        if let Some(Taken { old_file, late }) = draft.take_place(disk, path, keep)? {
            return Ok(Repaired { diagnosis, old_file: Some(old_file), left_in_old_file: late });
        }
    }
    Err(SessionError::KeepsGrowing { path: path.to_owned() })
}

/// A name beside the file that is not taken.
fn free_name(path: &Path, suffix: &str, environment: &SessionEnvironment) -> PathBuf {
    let name = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(if number == 0 { format!(".{suffix}") } else { format!(".{number}.{suffix}") });
        PathBuf::from(name)
    };
    (0..10_000).map(name).find(|name| environment.disk.facts(name).is_err()).unwrap_or_else(|| name(10_000))
}

fn failed(action: &str, path: &Path, error: io::Error) -> SessionError {
    SessionError::Store(StoreError::new(format_args!("{action} {}", path.display()), error))
}

/// A session file whose every line was read.
struct Examined {
    source: FileReader,
    header: Option<SessionHeader>,
    tree: Tree,
    notices: Vec<Notice>,
    last_line: LastLine,
    /// Where its bytes ended.
    end: u64,
}

impl Examined {
    fn read(path: &Path, environment: &SessionEnvironment) -> Result<Self, SessionError> {
        let file = environment.disk.open(path, OpenMode::Read).map_err(|error| failed("opening", path, error))?;
        let load = |loader: Loader| load(&*file, loader).map_err(|error| failed("reading", path, error));
        let (header, loaded) = match load(Loader::default())? {
            Loaded::Session(loaded) => (Some(loaded.header.clone()), loaded),
            Loaded::Empty | Loaded::NotASession => match load(Loader::without_header())? {
                Loaded::Session(loaded) => (None, loaded),
                Loaded::Empty | Loaded::NotASession => {
                    return Err(SessionError::NotASession { path: Some(path.to_owned()) });
                }
            },
        };
        let LoadedSession { mut tree, notices, last_line, end, .. } = *loaded;
        let source = FileReader(file);
        let lines: Vec<(EntryIndex, Place)> =
            tree.nodes().filter(|(_, node)| !node.is_unreadable()).map(|(index, node)| (index, node.place)).collect();
        let mut damaged = Vec::new();
        let read = read_lines(&source, &lines, |index, line| {
            if !is_json(line.trim_ascii()) {
                damaged.push(*index);
            }
        });
        let read_failed = |error| failed("reading", path, error);
        read.map_err(read_failed)?;
        damaged.into_iter().for_each(|index| tree.mark_unreadable(index));
        let has_entries = tree.nodes().any(|(_, node)| !node.is_unreadable());
        if header.is_none() && !has_entries && !Remains::at_start(&source).map_err(read_failed)?.is_of_session {
            // Whatever it is, a session made of it would have nothing of it.
            return Err(SessionError::NoSessionLeft { path: path.to_owned() });
        }
        Ok(Self { source, header, tree, notices, last_line, end })
    }

    fn diagnosis(&self) -> Diagnosis {
        let mut problems = Vec::new();
        match &self.header {
            None => problems.push(Problem::NoHeader),
            Some(header) if header.version < CURRENT_VERSION => {
                problems.push(Problem::OldVersion { version: header.version });
                return Diagnosis { problems, entries: 0, lost_lines: 0 };
            }
            Some(_) => {}
        }
        let mut named = HashSet::new();
        for notice in &self.notices {
            match notice {
                Notice::DamagedLine { line, entry } => {
                    named.extend(entry.clone());
                    problems.push(Problem::DamagedLine { line: *line, entry: entry.clone() });
                }
                Notice::StrayHeader { line } => problems.push(Problem::StrayHeader { line: *line }),
                Notice::OddVersion { stated } => problems.push(Problem::OddVersion { stated: stated.clone() }),
                Notice::TornEnd { line } => problems.push(Problem::TornEnd { line: *line }),
                _ => {}
            }
        }
        if self.last_line == LastLine::Open {
            problems.push(Problem::OpenEnd);
        }
        let mut ids = HashSet::new();
        for (index, node) in self.tree.nodes() {
            if node.is_unreadable() {
                if !named.contains(&node.id) {
                    // Its beginning is right, so the line was not noticed before.
                    let entry = Some(node.id.clone());
                    problems.push(Problem::DamagedLine { line: node.line, entry });
                }
                continue;
            }
            if !ids.insert(&node.id) {
                problems.push(Problem::RepeatedId { entry: node.id.clone() });
            }
            let parent = self.readable_parent(index);
            if parent != node.named_parent() {
                problems.push(Problem::LostParent { entry: node.id.clone(), parent: parent.cloned() });
            }
        }
        let entries = ids.len();
        let is_lost = |problem: &&Problem| {
            matches!(problem, Problem::DamagedLine { .. } | Problem::StrayHeader { .. } | Problem::TornEnd { .. })
        };
        let lost_lines = problems.iter().filter(is_lost).count();
        Diagnosis { problems, entries, lost_lines }
    }

    /// The next entry up that is not damaged.
    fn readable_parent(&self, index: EntryIndex) -> Option<&EntryId> {
        let mut above = self.tree.upwards(self.tree.parent(index));
        above.find(|index| !self.tree[*index].is_unreadable()).map(|index| &self.tree[index].id)
    }

    fn write(&self, path: &Path, cwd: &Path, environment: &SessionEnvironment, sink: &mut dyn Write) -> io::Result<()> {
        match &self.header {
            Some(header) => {
                serde_json::to_writer(&mut *sink, &header.fields)?;
                sink.write_all(b"\n")?;
            }
            None => sink.write_all(&self.rebuilt_header(path, cwd, environment)?)?,
        }
        let readable = self.tree.nodes().filter(|(_, node)| !node.is_unreadable());
        let lines: Vec<(EntryIndex, Place)> = readable.map(|(index, node)| (index, node.place)).collect();
        let mut result = Ok(());
        read_lines(&self.source, &lines, |index, line| {
            if result.is_ok() {
                result = self.write_line(*index, line.trim_ascii(), sink);
            }
        })?;
        result
    }

    fn write_line(&self, index: EntryIndex, line: &[u8], sink: &mut dyn Write) -> io::Result<()> {
        let parent = self.readable_parent(index).map(EntryId::as_str);
        let names_parent = matches!(read_line(line), Line::Entry(head) if head.parent.as_deref() == parent);
        match (names_parent, rechained(line, parent, None)) {
            (false, Some(changed)) => sink.write_all(&changed)?,
            _ => sink.write_all(line)?,
        }
        sink.write_all(b"\n")
    }

    /// A header from what is left of the damaged one, the file's name and the entries.
    fn rebuilt_header(&self, path: &Path, cwd: &Path, environment: &SessionEnvironment) -> io::Result<Vec<u8>> {
        let left = Remains::at_start(&self.source)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let of_name = || session_id(stem.rsplit_once('_')?.1).ok();
        let id: SessionId = left.id.or_else(of_name).unwrap_or_else(|| environment.ids.uuid_v7().into());
        let first_time = self.tree.nodes().find_map(|(_, node)| node.timestamp);
        let cwd = left.cwd.unwrap_or_else(|| cwd.to_string_lossy().into_owned());
        let timestamp = first_time.unwrap_or_else(|| environment.clock.now());
        Ok(NewHeader { id: &id, timestamp, cwd: &cwd, parent_session: left.parent_session.as_deref() }.line())
    }
}

/// What a damaged header still says.
#[derive(Default)]
struct Remains {
    is_of_session: bool,
    id: Option<SessionId>,
    cwd: Option<String>,
    parent_session: Option<String>,
}

impl Remains {
    fn at_start(source: &FileReader) -> io::Result<Self> {
        let mut start = vec![0; 4096];
        let count = read_full(&*source.0, 0, &mut start)?;
        Ok(Self::of(start[..count].split(|byte| *byte == b'\n').next().unwrap_or_default()))
    }

    fn of(line: &[u8]) -> Self {
        let mut remains = Self::default();
        let Some(mut members) = Members::of(line) else { return remains };
        while let Step::Member { key } = members.next() {
            let Some(value) = members.string_value() else { break };
            let text = value.map(|value| value.into_owned());
            match key {
                b"type" => remains.is_of_session = text.as_deref() == Some("session"),
                b"id" => remains.id = text.and_then(|id| session_id(&id).ok()),
                b"cwd" => remains.cwd = text,
                b"parentSession" => remains.parent_session = text,
                _ => {}
            }
        }
        if remains.is_of_session { remains } else { Self::default() }
    }
}

fn load(file: &dyn DiskFile, mut loader: Loader) -> io::Result<Loaded> {
    read_pieces(file, 0, |piece| loader.push(piece))?;
    Ok(loader.finish())
}
