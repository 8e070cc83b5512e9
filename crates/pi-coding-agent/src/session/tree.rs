//! The entries of a session as a tree, known by the beginnings of their lines.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use pi_ai::Timestamp;

use crate::session::{
    entry::{EntryBody, EntryKind, Label, SessionInfo},
    id::EntryId,
    line::Head,
};

/// An entry's place in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct EntryIndex(u32);

impl EntryIndex {
    fn as_usize(self) -> usize {
        self.0 as usize
    }
}

/// Where a line lies in the session's bytes, without its LF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) at: u64,
    pub(crate) len: u64,
}

/// An entry as far as the beginning of its line tells.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) id: EntryId,
    pub(crate) kind: EntryKind,
    pub(crate) timestamp: Option<Timestamp>,
    pub(crate) place: Place,
    /// The number of the line, from 1; 0 for an entry that was appended since.
    pub(crate) line: u64,
    /// The parent that the line names, which need not exist.
    named_parent: Option<EntryId>,
    parent: Option<EntryIndex>,
}

impl Node {
    /// The parent that the line names, which need not exist.
    pub(crate) fn named_parent(&self) -> Option<&EntryId> {
        self.named_parent.as_ref()
    }

    pub(crate) fn is_unreadable(&self) -> bool {
        self.kind == EntryKind::Unreadable
    }
}

/// A mark on an entry, and when it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelMark {
    /// The mark.
    pub text: String,
    /// When it was made.
    pub since: Timestamp,
}

/// A line between two entries that is lost with its ids.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// The entry before it.
    after: Option<EntryIndex>,
    /// The place that the next entry has.
    next: EntryIndex,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    by_id: HashMap<EntryId, EntryIndex, foldhash::fast::RandomState>,
    labels: IndexMap<EntryId, LabelMark>,
    name: Option<String>,
    gaps: Vec<Gap>,
    /// Entries up to here have their parents.
    resolved: usize,
    has_conversation: bool,
    has_repeated_ids: bool,
}

impl Tree {
    /// Takes the next entry of a file. Its parent is known after [`resolve`](Self::resolve), because a line may name a
    /// parent that comes later. `line` is the whole line, and `number` its number.
    pub(crate) fn push_line(&mut self, head: Head<'_>, place: Place, number: u64, line: &[u8]) -> EntryIndex {
        let mut kind = head.kind;
        let id = EntryId::from(&*head.id);
        let timestamp = head.timestamp;
        // These two count wherever they stand, so they are read whole.
        if matches!(kind, EntryKind::Label | EntryKind::SessionInfo) {
            match EntryBody::read(kind, line) {
                Some(body) => {
                    kind = body.kind();
                    self.note(&body, timestamp);
                }
                None => kind = EntryKind::Unreadable,
            }
        }
        // An entry nearly always follows the one before it, so that there is nothing to look up.
        let before = self.nodes.last().map(|node| &node.id);
        let named_parent = head.parent.map(|parent| match before.filter(|before| **before == *parent) {
            Some(before) => before.clone(),
            None => match self.by_id.get_key_value(&*parent) {
                Some((known, _)) => known.clone(),
                None => EntryId::from(&*parent),
            },
        });
        self.insert(Node { id, kind, timestamp, place, line: number, named_parent, parent: None })
    }

    /// Takes a new entry below `parent`.
    pub(crate) fn push_new(
        &mut self,
        id: EntryId,
        parent: Option<EntryIndex>,
        timestamp: Timestamp,
        body: &EntryBody,
        place: Place,
    ) -> EntryIndex {
        self.note(body, Some(timestamp));
        let named_parent = parent.map(|parent| self[parent].id.clone());
        let kind = body.kind();
        let node = Node { id, kind, timestamp: Some(timestamp), place, line: 0, named_parent, parent };
        let index = self.insert(node);
        self.resolved = self.nodes.len();
        index
    }

    /// Takes note of a damaged line without ids.
    pub(crate) fn push_gap(&mut self) {
        self.gaps.push(Gap { after: self.last(), next: self.next_index() });
    }

    fn next_index(&self) -> EntryIndex {
        EntryIndex(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX))
    }

    fn insert(&mut self, node: Node) -> EntryIndex {
        let index = self.next_index();
        self.has_conversation |= node.kind.begins_conversation();
        if node.kind == EntryKind::Unreadable {
            // A damaged copy does not hide the entry itself.
            let counts = *self.by_id.entry(node.id.clone()).or_insert(index);
            self.has_repeated_ids |= counts != index;
        } else if self.by_id.insert(node.id.clone(), index).is_some() {
            // The last of several entries with one id counts, also as the parent of those that were read before.
            self.resolved = 0;
            self.has_repeated_ids = true;
        }
        self.nodes.push(node);
        index
    }

    fn note(&mut self, body: &EntryBody, timestamp: Option<Timestamp>) {
        match body {
            EntryBody::Label(Label { target_id, label }) => match label.as_deref().filter(|label| !label.is_empty()) {
                Some(label) => {
                    let mark = LabelMark { text: label.to_owned(), since: timestamp.unwrap_or_default() };
                    self.labels.insert(target_id.clone(), mark);
                }
                None => drop(self.labels.shift_remove(target_id)),
            },
            EntryBody::SessionInfo(info) => self.name = SessionInfo::shown(info).map(str::to_owned),
            _ => {}
        }
    }

    /// Finds the parents of the entries that were pushed since the last time.
    ///
    /// A parent that does not exist makes a root, with one exception: when exactly one unknown parent is named after a
    /// damaged line, that line must have been it, and its children hang on the entry before the line.
    pub(crate) fn resolve(&mut self) {
        let from = self.resolved;
        self.resolved = self.nodes.len();
        let mut may_cycle = false;
        let mut orphans = Vec::new();
        for at in 0..self.nodes.len() {
            let node = &self.nodes[at];
            let Some(named) = &node.named_parent else { continue };
            if at < from && node.parent.is_some() {
                continue;
            }
            let before = at.checked_sub(1).filter(|before| self.nodes[*before].id == *named);
            let parent = match before.filter(|_| !self.has_repeated_ids) {
                Some(before) => u32::try_from(before).ok().map(EntryIndex),
                None => self.by_id.get(named).copied(),
            };
            match parent {
                Some(parent) => may_cycle |= parent.as_usize() >= at,
                None => orphans.push(at),
            }
            self.nodes[at].parent = parent;
        }
        self.adopt(&orphans);
        if may_cycle {
            self.cut_cycles();
        }
    }

    fn adopt(&mut self, orphans: &[usize]) {
        if self.gaps.is_empty() || orphans.is_empty() {
            return;
        }
        let mut known = HashSet::new();
        let mut adopted = HashMap::new();
        let mut rest = orphans.iter().copied().peekable();
        let next_gaps = self.gaps.iter().skip(1).map(|gap| gap.next.as_usize()).chain([usize::MAX]);
        while let Some(at) = rest.next_if(|at| *at < self.gaps[0].next.as_usize()) {
            known.extend(self.nodes[at].named_parent.clone());
        }
        for (gap, end) in self.gaps.iter().zip(next_gaps) {
            let mut new = Vec::new();
            while let Some(at) = rest.next_if(|at| *at < end) {
                if let Some(parent) = self.nodes[at].named_parent.clone()
                    && known.insert(parent.clone())
                {
                    new.push(parent);
                }
            }
            if let [only] = &new[..] {
                adopted.insert(only.clone(), gap.after);
            }
        }
        for at in orphans {
            let named = self.nodes[*at].named_parent.as_ref();
            if let Some(parent) = named.and_then(|named| adopted.get(named)) {
                self.nodes[*at].parent = *parent;
            }
        }
    }

    /// Makes roots so that every way up ends. Only entries that name a later entry can lead in a circle.
    fn cut_cycles(&mut self) {
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            No,
            OnThisWay,
            Before,
        }
        let mut seen = vec![Seen::No; self.nodes.len()];
        for start in 0..self.nodes.len() {
            let mut way = Vec::new();
            let mut current = Some(start);
            while let Some(at) = current.filter(|at| seen[*at] == Seen::No) {
                seen[at] = Seen::OnThisWay;
                way.push(at);
                current = self.nodes[at].parent.map(EntryIndex::as_usize);
                if current.is_some_and(|parent| seen[parent] == Seen::OnThisWay) {
                    self.nodes[at].parent = None;
                    current = None;
                }
            }
            for at in way {
                seen[at] = Seen::Before;
            }
        }
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn find(&self, id: &str) -> Option<EntryIndex> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn parent(&self, index: EntryIndex) -> Option<EntryIndex> {
        self[index].parent
    }

    pub(crate) fn indexes(&self) -> impl DoubleEndedIterator<Item = EntryIndex> + ExactSizeIterator + use<> {
        (0..self.next_index().0).map(EntryIndex)
    }

    /// All entries, in the order of the file.
    pub(crate) fn nodes(&self) -> impl DoubleEndedIterator<Item = (EntryIndex, &Node)> {
        self.indexes().zip(&self.nodes)
    }

    /// The last entry of the file that can be read: where a session goes on when it is opened.
    pub(crate) fn last(&self) -> Option<EntryIndex> {
        self.nodes().rev().find(|(_, node)| node.kind != EntryKind::Unreadable).map(|(index, _)| index)
    }

    /// The way from an entry up to its root.
    pub(crate) fn upwards(&self, from: Option<EntryIndex>) -> impl Iterator<Item = EntryIndex> {
        std::iter::successors(from, |index| self.parent(*index))
    }

    /// The way from the root down to an entry.
    pub(crate) fn path(&self, to: Option<EntryIndex>) -> Vec<EntryIndex> {
        let mut path: Vec<_> = self.upwards(to).collect();
        path.reverse();
        path
    }

    pub(crate) fn labels(&self) -> &IndexMap<EntryId, LabelMark> {
        &self.labels
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether anybody has said anything.
    pub(crate) fn has_conversation(&self) -> bool {
        self.has_conversation
    }

    /// An entry turned out to be damaged when its line was read whole.
    pub(crate) fn mark_unreadable(&mut self, index: EntryIndex) {
        self.nodes[index.as_usize()].kind = EntryKind::Unreadable;
    }
}

impl std::ops::Index<EntryIndex> for Tree {
    type Output = Node;

    fn index(&self, index: EntryIndex) -> &Node {
        &self.nodes[index.as_usize()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::line::{Line, read_line};

    /// A tree of lines `id` or `id>parent`; `?` is a line that is lost with its ids.
    fn tree(lines: &str) -> Tree {
        let mut tree = Tree::default();
        for line in lines.split_whitespace() {
            let json = match line.split_once('>') {
                _ if line == "?" => String::from("{"),
                Some((id, parent)) => format!(r#"{{"type":"custom","id":"{id}","parentId":"{parent}"}}"#),
                None => format!(r#"{{"type":"custom","id":"{line}","parentId":null}}"#),
            };
            match read_line(json.as_bytes()) {
                Line::Entry(head) => {
                    tree.push_line(head, Place { at: 0, len: 0 }, 1, json.as_bytes());
                }
                _ => tree.push_gap(),
            }
        }
        tree.resolve();
        tree
    }

    fn shape(lines: &str) -> String {
        let tree = tree(lines);
        let shown = tree.nodes().map(|(_, node)| match node.parent {
            Some(parent) => format!("{}>{}", node.id, tree[parent].id),
            None => node.id.to_string(),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn children_of_the_one_lost_entry_hang_on_the_entry_before_it() {
        assert_eq!(shape("a ? c>b d>c e>b"), "a c>a d>c e>a");
        assert_eq!(shape("? c>b"), "c");
        assert_eq!(shape("a b>a ? ? d>c"), "a b>a d>b");
        assert_eq!(shape("a ? c>b ? e>d f>b"), "a c>a e>c f>a");
    }

    #[test]
    fn where_it_is_not_clear_who_was_lost_an_unknown_parent_makes_a_root() {
        assert_eq!(shape("a b>gone c>b"), "a b c>b");
        assert_eq!(shape("a ? c>b d>x"), "a c d");
        assert_eq!(shape("a z>gone ? c>gone d>z"), "a z c d>z");
    }

    #[test]
    fn a_parent_may_come_later_and_circles_are_cut() {
        assert_eq!(shape("b>a a"), "b>a a");
        for lines in ["a>a", "a>b b>a", "a b>c c>d d>b e>d"] {
            let tree = tree(lines);
            for index in tree.indexes() {
                assert!(tree.upwards(Some(index)).take(10).count() < 10, "{lines}");
            }
        }
    }

    #[test]
    fn the_last_of_several_entries_with_one_id_counts() {
        let tree = tree("a x>a c>x x");
        let c = tree.find("c").unwrap();
        assert_eq!(tree.parent(c), tree.find("x"));
        assert_eq!(tree.path(Some(c)).len(), 2);
    }
}
