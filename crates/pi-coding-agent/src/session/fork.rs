//! Sessions made from sessions: forks, clones, copies, imports.

use std::{
    collections::{HashMap, HashSet},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use pi_ai::SessionId;

use crate::{
    messages::message_text,
    session::{
        bytes::{MemoryBytes, ReadRange, read_lines},
        entry::{EntryBody, EntryKind, Label, MessageRole},
        environment::SessionEnvironment,
        error::SessionError,
        folder::SessionFolder,
        header::{CURRENT_VERSION, SessionHeader},
        id::EntryId,
        line::{Line, LineSplitter, read_line, rechained, write_line},
        load::Loaded,
        manager::{Persistence, SessionManager, in_background},
        migrate::Migration,
        open::{Access, NewSession, checked_header, file_name, scan},
        session::Session,
        store::{
            MemoryStore, StoreError, create_beside,
            disk::{DiskFile, OpenMode, read_pieces},
        },
        tree::{EntryIndex, LabelMark, Place, Tree},
        writer::Writer,
    },
};

/// A fork that goes back to before a message of the user.
#[derive(Debug)]
pub struct Fork {
    /// The new session.
    pub session: SessionManager,
    /// The message's text, for the editor.
    pub text: String,
}

impl SessionManager {
    /// A new session of the branch that ends in `leaf`, without those that go off it. Labels of its entries come along,
    /// at its end; damaged entries do not. This session stays as it is.
    ///
    /// Its file is there at once when somebody has said something on the branch; else it gets one with its first
    /// message, like any session.
    ///
    /// # Errors
    /// When there is no such entry, this session cannot be read, or the new file cannot be written.
    pub async fn branched(&self, leaf: &EntryId) -> Result<Self, SessionError> {
        let leaf = leaf.clone();
        self.with_copy(move |session| session.plan_copy(Some(leaf.as_str()))).await
    }

    /// A new session that ends before a message of the user. Forking before the first message gives an empty session.
    ///
    /// # Errors
    /// When this session has no file yet, there is no such message of the user, or the new file cannot be written.
    pub async fn fork_before(&self, message: &EntryId) -> Result<Fork, SessionError> {
        if matches!(self.persistence(), Persistence::Buffered { .. }) {
            return Err(SessionError::NotSaved);
        }
        let entry = self.entry(message.as_str())?;
        let text = match &entry.body {
            EntryBody::Message(body) if is_user(&entry.body) => message_text(&body.message),
            _ => return Err(SessionError::NotAUserMessage { id: message.clone() }),
        };
        let parent = entry.parent_id;
        let session = self.with_copy(move |session| session.plan_copy(parent.as_ref().map(EntryId::as_str))).await?;
        Ok(Fork { session, text })
    }

    /// A new session of the branch that this one stands on.
    ///
    /// # Errors
    /// When this session has no file yet, or the new one cannot be written.
    pub async fn clone_branch(&self) -> Result<Self, SessionError> {
        if matches!(self.persistence(), Persistence::Buffered { .. }) {
            return Err(SessionError::NotSaved);
        }
        let leaf = self.leaf_id();
        self.with_copy(move |session| session.plan_copy(leaf.as_ref().map(EntryId::as_str))).await
    }

    async fn with_copy(
        &self,
        plan: impl FnOnce(&Session) -> Result<BranchCopy, SessionError> + Send + 'static,
    ) -> Result<Self, SessionError> {
        let copy = self.with(plan)?;
        let persistence = self.persistence();
        let environment = self.environment().clone();
        let cwd = self.cwd().to_owned();
        in_background(move || copy.make_session(&persistence, cwd, environment)).await
    }

    /// Copies a whole session file into a folder, as a new session that works in the folder's working directory.
    /// Lines are copied as they are, damaged ones too.
    ///
    /// # Errors
    /// When the source is no session, or the new file cannot be written.
    pub async fn fork_from(
        source: &Path,
        folder: &SessionFolder,
        id: Option<SessionId>,
        environment: SessionEnvironment,
    ) -> Result<Self, SessionError> {
        let new = NewSession { cwd: folder.cwd().to_owned(), id, parent_session: Some(source.to_owned()) };
        let (source, target, copying) = (source.to_owned(), folder.path().to_owned(), environment.clone());
        let path = in_background(move || copy_all(&source, &target, &new, &copying)).await?;
        Self::open(&path, Access::Write, folder.cwd(), environment).await
    }

    /// Copies a session file into a folder as it is, with its id and its working directory. When the name is taken it
    /// gets a number.
    ///
    /// # Errors
    /// When the source is no session, or the copy cannot be written.
    pub async fn import(
        source: &Path,
        folder: &SessionFolder,
        environment: SessionEnvironment,
    ) -> Result<PathBuf, SessionError> {
        let (source, target) = (source.to_owned(), folder.path().to_owned());
        in_background(move || import(&source, &target, &environment)).await
    }
}

fn is_user(body: &EntryBody) -> bool {
    body.kind() == EntryKind::Message(MessageRole::User)
}

/// A branch that is to be copied: which lines, and what changes in them.
pub(crate) struct BranchCopy {
    tree: Arc<Tree>,
    source: Arc<dyn ReadRange>,
    lines: Vec<CopiedLine>,
    labels: Vec<(EntryId, LabelMark)>,
    has_conversation: bool,
}

/// Where the labels of a copy go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Labels {
    /// They are made anew, as they are now, after everything else.
    AtTheEnd,
    /// They stay where they are.
    InPlace,
}

struct CopiedLine {
    index: EntryIndex,
    parent: Option<EntryId>,
    /// Another entry to keep from, when the one that a compaction names is not copied.
    first_kept: Option<EntryId>,
}

impl BranchCopy {
    /// Plans a copy of the way to `leaf`. Labels may be left out of the way, damaged entries always are: what followed
    /// them follows what they followed.
    pub(crate) fn plan(
        tree: Arc<Tree>,
        source: Arc<dyn ReadRange>,
        leaf: Option<EntryIndex>,
        labels: Labels,
    ) -> Result<Self, SessionError> {
        let mut lines: Vec<CopiedLine> = Vec::new();
        // Entries that are not copied, and the next one that is.
        let mut replaced = HashMap::<EntryId, EntryId>::new();
        let mut left_out = Vec::new();
        let mut has_conversation = false;
        for index in tree.path(leaf) {
            let node = &tree[index];
            let is_moved_label = node.kind == EntryKind::Label && labels == Labels::AtTheEnd;
            if is_moved_label || node.is_unreadable() {
                left_out.push(node.id.clone());
                continue;
            }
            replaced.extend(left_out.drain(..).map(|id| (id, node.id.clone())));
            has_conversation |= node.kind.begins_conversation();
            let parent = lines.last().map(|line| tree[line.index].id.clone());
            lines.push(CopiedLine { index, parent, first_kept: None });
        }
        for line in &mut lines {
            if tree[line.index].kind == EntryKind::Compaction && !replaced.is_empty() {
                let bytes = super::bytes::read_line_at(&*source, tree[line.index].place).map_err(SessionError::read)?;
                if let Some(EntryBody::Compaction(compaction)) = EntryBody::read(EntryKind::Compaction, &bytes) {
                    line.first_kept = compaction.first_kept_entry_id.and_then(|id| replaced.get(&id).cloned());
                }
            }
        }
        let copied: HashSet<&EntryId> = lines.iter().map(|line| &tree[line.index].id).collect();
        let labels = tree.labels().iter().filter(|(target, _)| labels == Labels::AtTheEnd && copied.contains(target));
        let labels = labels.map(|(target, mark)| (target.clone(), mark.clone())).collect();
        Ok(Self { tree, source, lines, labels, has_conversation })
    }

    /// Writes the branch's lines.
    pub(crate) fn write(&self, sink: &mut dyn Write) -> io::Result<()> {
        let places: Vec<(&CopiedLine, Place)> =
            self.lines.iter().map(|line| (line, self.tree[line.index].place)).collect();
        let mut result = Ok(());
        read_lines(&*self.source, &places, |line, bytes| {
            if result.is_ok() {
                result = self.write_one(line, bytes.trim_ascii(), sink);
            }
        })?;
        result
    }

    fn write_one(&self, line: &CopiedLine, bytes: &[u8], sink: &mut dyn Write) -> io::Result<()> {
        let parent = line.parent.as_ref().map(EntryId::as_str);
        let names_parent = match read_line(bytes) {
            Line::Entry(head) => head.parent.as_deref() == parent,
            _ => false,
        };
        if names_parent && line.first_kept.is_none() {
            sink.write_all(bytes)?;
        } else {
            let first_kept = line.first_kept.as_ref().map(EntryId::as_str);
            match rechained(bytes, parent, first_kept) {
                Some(changed) => sink.write_all(&changed)?,
                None => sink.write_all(bytes)?,
            }
        }
        sink.write_all(b"\n")
    }

    /// Writes the labels, each below the one before.
    fn write_labels(&self, environment: &SessionEnvironment, sink: &mut dyn Write) -> io::Result<()> {
        let mut parent = self.lines.last().map(|line| self.tree[line.index].id.clone());
        let mut new_ids: Vec<EntryId> = Vec::new();
        for (target_id, mark) in &self.labels {
            let is_taken = |id: &str| self.tree.find(id).is_some() || new_ids.iter().any(|new| *new == *id);
            let id = EntryId::generate(&*environment.ids, is_taken);
            let label = Label { target_id: target_id.clone(), label: Some(mark.text.clone()) };
            sink.write_all(&write_line("label", &id, parent.as_ref(), mark.since, &label)?)?;
            new_ids.push(id.clone());
            parent = Some(id);
        }
        Ok(())
    }

    fn make_session(
        self,
        persistence: &Persistence,
        cwd: PathBuf,
        environment: SessionEnvironment,
    ) -> Result<SessionManager, SessionError> {
        let source_file = persistence.path().map(Path::to_owned);
        let new = NewSession { cwd: cwd.clone(), id: None, parent_session: source_file.clone() };
        let (header, header_line) = checked_header(&new, &environment)?;
        let write = |sink: &mut dyn Write| {
            sink.write_all(&header_line)?;
            self.write(sink)?;
            self.write_labels(&environment, sink)
        };
        let folder = source_file.as_deref().and_then(Path::parent);
        match folder {
            Some(folder) if self.has_conversation => {
                let path = folder.join(file_name(&header));
                write_new_file(&environment, &path, write)?;
                super::open::open_for_writing(path, cwd, environment)
            }
            folder => {
                let mut bytes = Vec::new();
                write(&mut bytes).map_err(SessionError::read)?;
                let path = folder.map(|folder| folder.join(file_name(&header)));
                in_memory(bytes, path, cwd, environment)
            }
        }
    }
}

/// A session from its bytes; with a path it gets its file with its first message.
fn in_memory(
    bytes: Vec<u8>,
    path: Option<PathBuf>,
    cwd: PathBuf,
    environment: SessionEnvironment,
) -> Result<SessionManager, SessionError> {
    let bytes = MemoryBytes::from(bytes);
    let session = Session::from_memory(&bytes)?;
    Ok(match path {
        None => {
            let writer = Writer::memory(MemoryStore::from(bytes));
            SessionManager::new(session, Persistence::Memory, writer, cwd, environment)
        }
        Some(path) => {
            let writer = Writer::Buffered { bytes, path: path.clone() };
            SessionManager::new(session, Persistence::Buffered { path }, writer, cwd, environment)
        }
    })
}

/// Makes a file that appears whole or not at all.
pub(crate) fn write_new_file(
    environment: &SessionEnvironment,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), SessionError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => SessionError::Exists { path: path.to_owned() },
        _ => SessionError::Store(StoreError::new(format_args!("creating {}", path.display()), error)),
    };
    if let Some(folder) = path.parent() {
        environment.disk.create_folder(folder).map_err(failed)?;
    }
    create_beside(&*environment.disk, path, |file| {
        let mut buffered = BufWriter::with_capacity(256 << 10, Appending(file));
        write(&mut buffered)?;
        buffered.flush()?;
        file.sync()
    })
    .map(drop)
    .map_err(failed)
}

/// Copies a session file with another header. Gives the new file.
fn copy_all(
    source: &Path,
    folder: &Path,
    new: &NewSession,
    environment: &SessionEnvironment,
) -> Result<PathBuf, SessionError> {
    let (file, old_header) = open_source(source, environment)?;
    let (header, line) = checked_header(new, environment)?;
    let path = folder.join(file_name(&header));
    write_new_file(environment, &path, |sink| {
        sink.write_all(&line)?;
        let mut entries = Entries::default();
        if old_header.version < CURRENT_VERSION {
            let mut migration = Migration::new(old_header.version, &*environment.ids);
            let mut migrated = Vec::new();
            let mut result = Ok(());
            read_pieces(&*file, 0, |piece| {
                migration.push(piece, &mut migrated);
                if result.is_ok() {
                    result = entries.copy(&migrated, sink);
                }
                migrated.clear();
            })?;
            result?;
            migration.finish(&mut migrated);
            entries.copy(&migrated, sink)?;
        } else {
            let mut result = Ok(());
            read_pieces(&*file, 0, |piece| {
                if result.is_ok() {
                    result = entries.copy(piece, sink);
                }
            })?;
            result?;
        }
        entries.finish(sink)
    })?;
    Ok(path)
}

/// Copies everything of a session but its header lines.
#[derive(Default)]
struct Entries {
    splitter: LineSplitter,
}

impl Entries {
    fn copy(&mut self, piece: &[u8], sink: &mut dyn Write) -> io::Result<()> {
        let mut result = Ok(());
        self.splitter.push(piece, |_, line| {
            if result.is_ok() {
                result = copy_entry(line, sink);
            }
        });
        result
    }

    fn finish(self, sink: &mut dyn Write) -> io::Result<()> {
        self.splitter.rest().map_or(Ok(()), |(_, line)| copy_entry(line, sink))
    }
}

fn copy_entry(line: &[u8], sink: &mut dyn Write) -> io::Result<()> {
    if read_line(line) == Line::Header {
        return Ok(());
    }
    sink.write_all(line)?;
    sink.write_all(b"\n")
}

fn import(source: &Path, folder: &Path, environment: &SessionEnvironment) -> Result<PathBuf, SessionError> {
    let (file, header) = open_source(source, environment)?;
    let name = source.file_name().map_or_else(|| file_name(&header), |name| name.to_string_lossy().into_owned());
    let stem = name.strip_suffix(".jsonl").unwrap_or(&name);
    let mut number = 0u32;
    loop {
        let path = folder.join(match number {
            0 => format!("{stem}.jsonl"),
            _ => format!("{stem}-{number}.jsonl"),
        });
        let written = write_new_file(environment, &path, |sink| {
            let mut result = Ok(());
            read_pieces(&*file, 0, |piece| {
                if result.is_ok() {
                    result = sink.write_all(piece);
                }
            })?;
            result
        });
        match written {
            Err(SessionError::Exists { .. }) if number < 10_000 => number += 1,
            Err(error) => return Err(error),
            Ok(()) => return Ok(path),
        }
    }
}

fn open_source(
    source: &Path,
    environment: &SessionEnvironment,
) -> Result<(Arc<dyn DiskFile>, SessionHeader), SessionError> {
    let failed = |error| SessionError::Store(StoreError::new(format_args!("opening {}", source.display()), error));
    let file = environment.disk.open(source, OpenMode::Read).map_err(failed)?;
    match scan(&*file, source)? {
        Loaded::Session(loaded) => Ok((file, loaded.header)),
        Loaded::Empty | Loaded::NotASession => Err(SessionError::NotASession { path: Some(source.to_owned()) }),
    }
}

/// Writes to the end of a file.
struct Appending<'a>(&'a dyn DiskFile);

impl Write for Appending<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
