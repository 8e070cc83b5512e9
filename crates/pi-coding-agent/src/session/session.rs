//! A session in memory: its tree, where it stands, and what counts for the next request.

use std::{io, sync::Arc};

use pi_ai::{SessionId, Timestamp};

use crate::session::{
    bytes::{MemoryBytes, ReadRange, read_line_at},
    entry::{Entry, EntryBody, EntryKind},
    error::SessionError,
    fork::{BranchCopy, Labels},
    header::SessionHeader,
    id::EntryId,
    load::{Growth, LastLine, Loaded, LoadedSession, Loader},
    notice::Notice,
    projection::{Findings, Projection, SessionContext},
    tree::{EntryIndex, LabelMark, Node, Place, Tree},
};

/// A session as it can be read: the tree of its entries, where it stands, and the context of the next request.
///
/// Of most entries it knows only what the beginning of their line says; [`entry`](Self::entry) reads one whole. It
/// writes nothing: that is [`SessionManager`](super::SessionManager)'s part.
pub struct Session {
    header: SessionHeader,
    tree: Arc<Tree>,
    leaf: Option<EntryIndex>,
    source: Arc<dyn ReadRange>,
    projection: Projection,
    notices: Vec<Notice>,
    end: u64,
    lines: u64,
    last_line: LastLine,
}

/// An entry as far as the beginning of its line tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntrySummary {
    /// Its id.
    pub id: EntryId,
    /// The entry that it follows; `None` for a root.
    pub parent_id: Option<EntryId>,
    /// What kind of entry it is.
    pub kind: EntryKind,
    /// When it was made.
    pub timestamp: Option<Timestamp>,
}

/// An entry with the entries that follow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeNode {
    /// The entry.
    pub entry: EntrySummary,
    /// The mark on it.
    pub label: Option<LabelMark>,
    /// The places of its children in [`SessionTree::nodes`], oldest first.
    pub children: Vec<usize>,
}

/// All entries of a session and what follows what. A list with places instead of nested nodes: a conversation is
/// tens of thousands of levels deep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionTree {
    /// The entries, in the order of the file.
    pub nodes: Vec<TreeNode>,
    /// The places of the entries that follow nothing.
    pub roots: Vec<usize>,
}

impl Session {
    /// Reads a session from the bytes of its file.
    ///
    /// # Errors
    /// When they do not begin with a session header.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self, SessionError> {
        let bytes = MemoryBytes::from(bytes.into());
        Self::from_memory(&bytes)
    }

    pub(crate) fn from_memory(bytes: &MemoryBytes) -> Result<Self, SessionError> {
        let mut loader = Loader::default();
        bytes.read_all(|bytes| loader.push(bytes));
        match loader.finish() {
            Loaded::Session(loaded) => Self::from_loaded(*loaded, Arc::new(bytes.clone())).map_err(SessionError::read),
            Loaded::Empty | Loaded::NotASession => Err(SessionError::NotASession { path: None }),
        }
    }

    /// A session without entries. `end` is where its header ends.
    pub(crate) fn new(header: SessionHeader, end: u64, source: Arc<dyn ReadRange>) -> Self {
        Self {
            header,
            tree: Arc::default(),
            leaf: None,
            source,
            projection: Projection::default(),
            notices: Vec::new(),
            end,
            lines: 1,
            last_line: LastLine::Closed,
        }
    }

    /// Goes on where the file ends: at its last entry that can be read.
    pub(crate) fn from_loaded(loaded: LoadedSession, source: Arc<dyn ReadRange>) -> io::Result<Self> {
        let LoadedSession { header, tree, notices, end, last_line, lines } = loaded;
        let mut session = Self {
            header,
            tree: Arc::new(tree),
            leaf: None,
            source,
            projection: Projection::default(),
            notices,
            end,
            lines,
            last_line,
        };
        session.leaf = session.last_readable()?;
        session.project()?;
        Ok(session)
    }

    /// The last entry that can be read whole. A line that lost its end may look right at its beginning.
    fn last_readable(&mut self) -> io::Result<Option<EntryIndex>> {
        while let Some(last) = self.tree.last() {
            if self.read(last)?.is_some() {
                return Ok(Some(last));
            }
            self.damaged(last);
        }
        Ok(None)
    }

    fn damaged(&mut self, index: EntryIndex) {
        Arc::make_mut(&mut self.tree).mark_unreadable(index);
        self.notices.push(Notice::DamagedEntry { entry: self.tree[index].id.clone() });
    }

    /// Builds the context of the branch that the session stands on.
    fn project(&mut self) -> io::Result<()> {
        let (projection, findings) = Projection::build(&self.tree, self.leaf, &*self.source)?;
        self.take_projection(projection, findings);
        Ok(())
    }

    fn take_projection(&mut self, projection: Projection, findings: Findings) {
        self.projection = projection;
        for index in findings.damaged {
            if !self.tree[index].is_unreadable() {
                self.damaged(index);
            }
        }
        for index in findings.unfit {
            let notice = Notice::UnfitEntry { entry: self.tree[index].id.clone() };
            if !self.notices.contains(&notice) {
                self.notices.push(notice);
            }
        }
    }

    /// What the first line says.
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// The session's id.
    pub fn id(&self) -> &SessionId {
        &self.header.id
    }

    /// The session's name: the one that was given last, on whatever branch.
    pub fn name(&self) -> Option<&str> {
        self.tree.name()
    }

    /// The entry that the next one will follow; `None` before the first.
    pub fn leaf_id(&self) -> Option<&EntryId> {
        self.leaf.map(|leaf| &self.tree[leaf].id)
    }

    /// How many entries there are, on all branches.
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.tree.len() == 0
    }

    /// What people should know about the session's file.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Whether there is an entry of this id.
    pub fn contains(&self, id: &str) -> bool {
        self.tree.find(id).is_some()
    }

    /// What is known of an entry without reading it whole.
    pub fn summary(&self, id: &str) -> Option<EntrySummary> {
        self.tree.find(id).map(|index| self.summary_of(index))
    }

    fn summary_of(&self, index: EntryIndex) -> EntrySummary {
        let node = &self.tree[index];
        EntrySummary {
            id: node.id.clone(),
            parent_id: self.tree.parent(index).map(|parent| self.tree[parent].id.clone()),
            kind: node.kind,
            timestamp: node.timestamp,
        }
    }

    /// All entries, in the order of the file.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = EntrySummary> {
        self.tree.indexes().map(|index| self.summary_of(index))
    }

    /// Reads an entry whole. A damaged one is [`EntryBody::Unreadable`].
    ///
    /// It reads one line of the file, in the calling thread.
    ///
    /// # Errors
    /// When there is no such entry, or the file cannot be read.
    pub fn entry(&self, id: &str) -> Result<Entry, SessionError> {
        let index = self.index(id)?;
        let summary = self.summary_of(index);
        let body = self.read(index).map_err(SessionError::read)?.unwrap_or(EntryBody::Unreadable);
        Ok(Entry {
            id: summary.id,
            parent_id: summary.parent_id,
            timestamp: summary.timestamp.unwrap_or_default(),
            body,
        })
    }

    /// The line of an entry as it lies in the file, without its line break.
    ///
    /// # Errors
    /// When there is no such entry, or the file cannot be read.
    pub fn line(&self, id: &str) -> Result<Vec<u8>, SessionError> {
        let place = self.tree[self.index(id)?].place;
        read_line_at(&*self.source, place).map_err(SessionError::read)
    }

    fn read(&self, index: EntryIndex) -> io::Result<Option<EntryBody>> {
        let node = &self.tree[index];
        if node.is_unreadable() {
            return Ok(None);
        }
        let line = read_line_at(&*self.source, node.place)?;
        Ok(EntryBody::read(node.kind, &line))
    }

    fn index(&self, id: &str) -> Result<EntryIndex, SessionError> {
        self.tree.find(id).ok_or_else(|| SessionError::UnknownEntry { id: id.into() })
    }

    /// The branch that the session stands on: the way from its root to the leaf.
    pub fn branch(&self) -> Vec<EntrySummary> {
        self.tree.path(self.leaf).into_iter().map(|index| self.summary_of(index)).collect()
    }

    /// The way from a root to an entry.
    ///
    /// # Errors
    /// When there is no such entry.
    pub fn branch_to(&self, id: &str) -> Result<Vec<EntrySummary>, SessionError> {
        let index = self.index(id)?;
        Ok(self.tree.path(Some(index)).into_iter().map(|index| self.summary_of(index)).collect())
    }

    /// Whether an entry is on the branch that the session stands on.
    pub fn is_on_branch(&self, id: &str) -> bool {
        self.tree.find(id).is_some_and(|wanted| self.tree.upwards(self.leaf).any(|index| index == wanted))
    }

    /// The entries that follow an entry directly, in the order of the file; those that follow nothing for `None`.
    pub fn children(&self, parent: Option<&str>) -> Vec<EntrySummary> {
        let parent = match parent {
            None => None,
            Some(id) => match self.tree.find(id) {
                Some(index) => Some(index),
                None => return Vec::new(),
            },
        };
        let children = self.tree.indexes().filter(|index| self.tree.parent(*index) == parent);
        children.map(|index| self.summary_of(index)).collect()
    }

    /// The mark on an entry: the one that was made last, on whatever branch.
    pub fn label(&self, id: &str) -> Option<&LabelMark> {
        self.tree.labels().get(id)
    }

    /// All marks, with the entries that they are on.
    pub fn labels(&self) -> impl Iterator<Item = (&EntryId, &LabelMark)> {
        self.tree.labels().iter()
    }

    /// All entries and what follows what.
    pub fn tree(&self) -> SessionTree {
        let mut tree = SessionTree::default();
        let mut place_of = std::collections::HashMap::new();
        for (place, index) in self.tree.indexes().enumerate() {
            place_of.insert(index, place);
            let entry = self.summary_of(index);
            let label = self.tree.labels().get(&entry.id).cloned();
            tree.nodes.push(TreeNode { entry, label, children: Vec::new() });
        }
        for (place, index) in self.tree.indexes().enumerate() {
            match self.tree.parent(index).and_then(|parent| place_of.get(&parent)) {
                Some(parent) => tree.nodes[*parent].children.push(place),
                None => tree.roots.push(place),
            }
        }
        let times: Vec<_> = tree.nodes.iter().map(|node| node.entry.timestamp).collect();
        for node in &mut tree.nodes {
            node.children.sort_by_key(|child| times[*child]);
        }
        tree
    }

    /// What of the branch counts for the next request, entry by entry.
    pub fn projection(&self) -> &Projection {
        &self.projection
    }

    /// What the next request is made from.
    pub fn context(&self) -> SessionContext {
        self.projection.context()
    }

    /// What the next request would be made from if the session stood at another entry, or before all entries.
    ///
    /// It reads that branch from the file, in the calling thread.
    ///
    /// # Errors
    /// When there is no such entry, or the file cannot be read.
    pub fn projection_at(&self, leaf: Option<&str>) -> Result<Projection, SessionError> {
        let leaf = leaf.map(|id| self.index(id)).transpose()?;
        let (projection, _) = Projection::build(&self.tree, leaf, &*self.source).map_err(SessionError::read)?;
        Ok(projection)
    }

    /// Moves to another entry, or before all entries.
    pub(crate) fn move_to(&mut self, leaf: Option<&str>) -> Result<(), SessionError> {
        let leaf = leaf.map(|id| self.index(id)).transpose()?;
        if leaf == self.leaf {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.leaf, leaf);
        if let Err(error) = self.project() {
            self.leaf = before;
            return Err(SessionError::read(error));
        }
        Ok(())
    }

    /// Moves to another entry in two steps, the first of which needs time but not the session.
    pub(crate) fn plan_move(&self, leaf: Option<&str>) -> Result<MovePlan, SessionError> {
        let leaf = leaf.map(|id| self.index(id)).transpose()?;
        Ok(MovePlan { tree: self.tree.clone(), source: self.source.clone(), leaf })
    }

    pub(crate) fn finish_move(&mut self, moved: Moved) {
        self.leaf = moved.leaf;
        self.take_projection(moved.projection, moved.findings);
    }

    /// Plans a copy of the branch that ends in an entry; of nothing for `None`.
    pub(crate) fn plan_copy(&self, leaf: Option<&str>) -> Result<BranchCopy, SessionError> {
        let leaf = leaf.map(|id| self.index(id)).transpose()?;
        BranchCopy::plan(self.tree.clone(), self.source.clone(), leaf, Labels::AtTheEnd)
    }

    /// Plans a copy of the branch that the session stands on with everything on it, labels too.
    pub(crate) fn plan_export(&self) -> Result<BranchCopy, SessionError> {
        BranchCopy::plan(self.tree.clone(), self.source.clone(), self.leaf, Labels::InPlace)
    }

    /// Whether the lines of a branch have at most so many bytes together.
    pub(crate) fn branch_has_at_most(&self, leaf: Option<&str>, limit: u64) -> bool {
        let leaf = leaf.and_then(|id| self.tree.find(id));
        let mut lengths = self.tree.upwards(leaf).map(|index| self.tree[index].place.len);
        lengths.try_fold(0u64, |sum, len| Some(sum + len).filter(|sum| *sum <= limit)).is_some()
    }

    /// Takes an entry whose line has been written at the end.
    pub(crate) fn commit(&mut self, id: EntryId, timestamp: Timestamp, body: &EntryBody, line_len: u64) {
        let place = Place { at: self.end, len: line_len - 1 };
        self.end += line_len;
        self.lines += 1;
        let index = Arc::make_mut(&mut self.tree).push_new(id, self.leaf, timestamp, body, place);
        self.leaf = Some(index);
        if !self.projection.push(&self.tree, index, body, &*self.source)
            && let Err(error) = self.project()
        {
            // The line is written; only its effect on the context could not be read back.
            tracing::error!(%error, "the session's context could not be rebuilt after an entry was appended");
        }
    }

    /// Takes an entry whose line was written while another program appended, from all bytes after the end. Gives whether
    /// the line is among them, and whole; if not, only what the other program wrote was taken in.
    pub(crate) fn commit_among(
        &mut self,
        id: &EntryId,
        body: &EntryBody,
        from: u64,
        bytes: &[u8],
    ) -> Result<bool, SessionError> {
        let foreign = self.take_growth(from, bytes);
        let index = match self.tree.find(id.as_str()) {
            Some(index) if self.read(index).map_err(SessionError::read)?.is_some() => index,
            _ => {
                self.tell_foreign(foreign);
                return Ok(false);
            }
        };
        self.tell_foreign(foreign - 1);
        let follows_leaf = self.tree.parent(index) == self.leaf;
        self.leaf = Some(index);
        if !(follows_leaf && self.projection.push(&self.tree, index, body, &*self.source))
            && let Err(error) = self.project()
        {
            tracing::error!(%error, "the session's context could not be rebuilt after an entry was appended");
        }
        Ok(true)
    }

    /// The last line was closed by a line break.
    pub(crate) fn close_last_line(&mut self) {
        self.end += 1;
        self.last_line = LastLine::Closed;
    }

    /// Where what others append has to be read from: a last line that broke off is read again, it may go on now.
    pub(crate) fn growth_from(&self) -> u64 {
        match self.last_line {
            LastLine::Torn { at } => at,
            LastLine::Closed | LastLine::Open => self.end,
        }
    }

    /// Reads in what another program appended: all bytes from a position on.
    pub(crate) fn grow_from(&mut self, from: u64, bytes: &[u8]) {
        let count = self.take_growth(from, bytes);
        self.tell_foreign(count);
    }

    /// Gives how many entries came in.
    fn take_growth(&mut self, from: u64, bytes: &[u8]) -> usize {
        let before = self.tree.len();
        let lines = self.lines - u64::from(from < self.end);
        let mut growth = Growth::new(Arc::make_mut(&mut self.tree), from, lines);
        growth.push(bytes);
        let (end, last_line, lines, notices) = growth.finish();
        (self.end, self.last_line, self.lines) = (end, last_line, lines);
        self.notices.extend(notices);
        self.tree.len() - before
    }

    fn tell_foreign(&mut self, count: usize) {
        if count > 0 {
            self.notices.push(Notice::ForeignEntries { count });
        }
    }

    /// From here on the same bytes are read from somewhere else.
    pub(crate) fn set_source(&mut self, source: Arc<dyn ReadRange>) {
        self.source = source;
    }

    pub(crate) fn source(&self) -> Arc<dyn ReadRange> {
        self.source.clone()
    }

    /// All entries, in the order of the file.
    pub(crate) fn nodes(&self) -> impl DoubleEndedIterator<Item = (EntryIndex, &Node)> {
        self.tree.nodes()
    }

    pub(crate) fn add_notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    /// Where the bytes end.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn last_line(&self) -> LastLine {
        self.last_line
    }

    /// Whether anybody has said anything.
    pub fn has_conversation(&self) -> bool {
        self.tree.has_conversation()
    }
}

/// A move to another entry that is yet to be read.
pub(crate) struct MovePlan {
    tree: Arc<Tree>,
    source: Arc<dyn ReadRange>,
    leaf: Option<EntryIndex>,
}

/// A move to another entry that has been read.
pub(crate) struct Moved {
    leaf: Option<EntryIndex>,
    projection: Projection,
    findings: Findings,
}

impl MovePlan {
    pub(crate) fn read(self) -> Result<Moved, SessionError> {
        let (projection, findings) =
            Projection::build(&self.tree, self.leaf, &*self.source).map_err(SessionError::read)?;
        Ok(Moved { leaf: self.leaf, projection, findings })
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("id", self.id())
            .field("entries", &self.len())
            .field("leaf", &self.leaf_id())
            .finish_non_exhaustive()
    }
}
