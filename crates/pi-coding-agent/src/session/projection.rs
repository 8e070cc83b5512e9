//! What of a branch counts for the next request: compaction, context edits and the settings that hold.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::Arc,
};

use pi_ai::{
    AssistantBlock, AssistantMessage, Content, InputBlock, Message, ModelId, ProviderId, TextContent, ThinkingLevel,
    Timestamp, ToolCallId,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    messages::{BranchSummaryMessage, CodingMessage, CompactionSummaryMessage, CustomContent, SessionMessage},
    session::{
        bytes::{ReadRange, read_line_at, read_lines},
        entry::{Compaction, ContextEdit, Entry, EntryBody, EntryKind, MessageRole, Replacement, ReplacementContent},
        id::EntryId,
        tree::{EntryIndex, Tree},
    },
};

/// What the next request is made from.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionContext {
    /// The messages, with compaction and context edits applied.
    pub messages: Vec<SessionMessage>,
    /// The thinking level that was chosen last.
    pub thinking_level: ThinkingLevel,
    /// The model that was chosen or that answered last.
    pub model: Option<ModelChoice>,
}

/// A model by its names.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelChoice {
    /// Its provider.
    pub provider: ProviderId,
    /// Its name at the provider, or a virtual model's.
    pub model_id: ModelId,
}

/// What one entry contributes to the context.
#[derive(Clone, Debug)]
pub struct ProjectedEntry {
    /// The entry.
    pub id: EntryId,
    /// Its kind.
    pub kind: EntryKind,
    /// What the entry does to another one, when it is a context edit.
    pub edit: Option<EditEffect>,
    shown: Shown,
    is_omitted: bool,
}

/// What a context edit does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditEffect {
    /// It leaves the entry out.
    Omits(EntryId),
    /// It gives the entry other content.
    Replaces(EntryId),
}

#[derive(Clone, Debug, Default)]
enum Shown {
    #[default]
    Nothing,
    One([SessionMessage; 1]),
    Two([SessionMessage; 2]),
}

impl Shown {
    fn as_slice(&self) -> &[SessionMessage] {
        match self {
            Self::Nothing => &[],
            Self::One(messages) => messages,
            Self::Two(messages) => messages,
        }
    }
}

impl From<SessionMessage> for Shown {
    fn from(message: SessionMessage) -> Self {
        Self::One([message])
    }
}

impl ProjectedEntry {
    /// The messages, edits applied. Only a compaction with a checkpoint has two.
    pub fn messages(&self) -> &[SessionMessage] {
        self.shown.as_slice()
    }

    /// Whether the entry would say something to the model, but is left out: by an edit, or because it is the result of
    /// a tool call that was compacted away.
    pub fn is_omitted(&self) -> bool {
        self.is_omitted
    }

    fn new(id: EntryId, kind: EntryKind, shown: Shown) -> Self {
        Self { id, kind, edit: None, shown, is_omitted: false }
    }

    /// What an entry contributes when nothing edits it, and no compaction takes the place of others.
    pub(crate) fn unedited(entry: &Entry) -> Self {
        let shown = match &entry.body {
            EntryBody::Compaction(compaction) => shown_compaction(compaction, entry.timestamp),
            body => shown_of(entry.timestamp, body),
        };
        Self::new(entry.id.clone(), entry.body.kind(), shown)
    }

    /// What it contributes when an edit counts for it.
    pub(crate) fn edited_by(mut self, edit: Option<&ContextEdit>) -> Self {
        match edit {
            None => {}
            Some(ContextEdit { replacement: None, .. }) => self.omit(),
            Some(ContextEdit { replacement, .. }) => self.shown = edited(self.shown, replacement.as_ref()),
        }
        self
    }

    fn omit(&mut self) {
        self.is_omitted |= !self.messages().is_empty();
        self.shown = Shown::Nothing;
    }
}

fn is_visible(kind: EntryKind) -> bool {
    matches!(kind, EntryKind::Message(_) | EntryKind::CustomMessage | EntryKind::BranchSummary | EntryKind::Compaction)
}

/// The entries of a branch that count, and what each contributes: the latest compaction first, then what it kept, then
/// what came after it. Without a compaction it is the whole branch.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    entries: Vec<ProjectedEntry>,
    indexes: Vec<EntryIndex>,
    /// How many of the entries are the compaction and what it kept.
    kept: usize,
    compaction: Option<Arc<Compaction>>,
    compacted_at: Option<Timestamp>,
    messages: Arc<Vec<SessionMessage>>,
    thinking_level: Option<ThinkingLevel>,
    model: Option<ModelChoice>,
    /// The tool calls that are in the context; only after a compaction, which may have taken a result's call away.
    calls: HashSet<ToolCallId>,
}

/// What building a projection found out about entries that were not read before.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) damaged: Vec<EntryIndex>,
    pub(crate) unfit: Vec<EntryIndex>,
}

impl Projection {
    /// The entries that count.
    pub fn entries(&self) -> &[ProjectedEntry] {
        &self.entries
    }

    /// The entries after the latest compaction; all of them without one.
    pub fn entries_since_compaction(&self) -> &[ProjectedEntry] {
        &self.entries[self.kept..]
    }

    /// When the latest compaction was made.
    pub fn compacted_at(&self) -> Option<Timestamp> {
        self.compacted_at
    }

    /// The latest compaction, which the entries begin with.
    pub fn compaction(&self) -> Option<&Compaction> {
        self.compaction.as_deref()
    }

    /// The messages, edits applied.
    pub fn messages(&self) -> &[SessionMessage] {
        &self.messages
    }

    /// The thinking level that was chosen last.
    pub fn thinking_level(&self) -> ThinkingLevel {
        self.thinking_level.unwrap_or_default()
    }

    /// The same, when an entry of the branch says it.
    pub(crate) fn recorded_thinking_level(&self) -> Option<ThinkingLevel> {
        self.thinking_level
    }

    /// The thinking level that was chosen last; `None` when none ever was.
    pub fn chosen_thinking_level(&self) -> Option<ThinkingLevel> {
        self.thinking_level
    }

    /// The model that was chosen or that answered last.
    pub fn model(&self) -> Option<&ModelChoice> {
        self.model.as_ref()
    }

    /// What the next request is made from.
    pub fn context(&self) -> SessionContext {
        SessionContext {
            messages: self.messages.to_vec(),
            thinking_level: self.thinking_level(),
            model: self.model.clone(),
        }
    }

    /// Reads the branch that ends in `leaf`, as far as it counts.
    pub(crate) fn build(tree: &Tree, leaf: Option<EntryIndex>, source: &dyn ReadRange) -> io::Result<(Self, Findings)> {
        let mut builder = Builder { tree, source, findings: Findings::default() };
        let projection = builder.build(leaf)?;
        Ok((projection, builder.findings))
    }

    /// Takes the entry that was appended to the branch. `false` when the projection has to be built anew.
    pub(crate) fn push(&mut self, tree: &Tree, index: EntryIndex, body: &EntryBody, source: &dyn ReadRange) -> bool {
        let node = &tree[index];
        let timestamp = node.timestamp.unwrap_or_default();
        let mut shown = Shown::Nothing;
        let mut edit = None;
        match body {
            EntryBody::ModelChange(change) => {
                self.model = Some(ModelChoice { provider: change.provider.clone(), model_id: change.model_id.clone() });
            }
            EntryBody::ThinkingLevelChange(change) => self.thinking_level = Some(change.thinking_level),
            EntryBody::ContextEdit(change) => {
                if !self.apply_edit(tree, change, source) {
                    return false;
                }
                edit = Some(effect(change));
            }
            EntryBody::Compaction(compaction) => return self.compact(tree, index, compaction),
            body => {
                shown = shown_of(timestamp, body);
                if let EntryBody::Message(entry) = body
                    && let Some(assistant) = entry.message.as_assistant()
                {
                    self.model = Some(model_of(assistant));
                }
            }
        }
        let entry = ProjectedEntry { edit, ..ProjectedEntry::new(node.id.clone(), node.kind, shown) };
        self.extend(entry, index);
        true
    }

    /// Adds an entry at the end, unless it is the result of a call that a compaction took away: no model accepts one.
    fn extend(&mut self, mut entry: ProjectedEntry, index: EntryIndex) {
        if self.compaction.is_some() {
            if let [message] = entry.messages()
                && let Some(result) = message.as_tool_result()
                && !self.calls.contains(&result.tool_call_id)
            {
                entry.omit();
            }
            let calls = entry.messages().iter().filter_map(SessionMessage::as_assistant);
            self.calls.extend(calls.flat_map(AssistantMessage::tool_calls).map(|call| call.id.clone()));
        }
        Arc::make_mut(&mut self.messages).extend_from_slice(entry.messages());
        self.entries.push(entry);
        self.indexes.push(index);
    }

    /// `false` when the target's original could not be read.
    fn apply_edit(&mut self, tree: &Tree, edit: &ContextEdit, source: &dyn ReadRange) -> bool {
        let Some(at) = self.entries.iter().rposition(|entry| entry.id == edit.target_id) else { return true };
        let shown = match &edit.replacement {
            None => Shown::Nothing,
            Some(replacement) => {
                let node = &tree[self.indexes[at]];
                let body = read_line_at(source, node.place).ok().and_then(|line| EntryBody::read(node.kind, &line));
                match body {
                    Some(_) if node.kind == EntryKind::Compaction => return true,
                    Some(body) => edited(shown_of(node.timestamp.unwrap_or_default(), &body), Some(replacement)),
                    None => return false,
                }
            }
        };
        let after: usize = self.entries[at + 1..].iter().map(|entry| entry.messages().len()).sum();
        let end = self.messages.len() - after;
        let start = end - self.entries[at].messages().len();
        Arc::make_mut(&mut self.messages).splice(start..end, shown.as_slice().iter().cloned());
        let entry = &mut self.entries[at];
        match edit.replacement {
            None => entry.omit(),
            Some(_) => (entry.shown, entry.is_omitted) = (shown, false),
        }
        true
    }

    /// Takes a compaction without reading anything: what it keeps is here already.
    fn compact(&mut self, tree: &Tree, index: EntryIndex, compaction: &Compaction) -> bool {
        let node = &tree[index];
        let kept = match &compaction.first_kept_entry_id {
            None => Vec::new(),
            Some(first) if *first == node.id => Vec::new(),
            Some(first) => match self.entries.iter().position(|entry| entry.id == *first) {
                // The compaction before leads the list, but on the branch it stands further down.
                Some(0) if self.compaction.is_some() => return false,
                Some(at) => self.entries.drain(..).zip(self.indexes.drain(..)).skip(at).collect(),
                None => return false,
            },
        };
        let mut next = Self {
            kept: 0,
            compaction: Some(Arc::new(compaction.clone())),
            compacted_at: node.timestamp,
            thinking_level: self.thinking_level,
            model: self.model.take(),
            ..Self::default()
        };
        let shown = shown_compaction(compaction, node.timestamp.unwrap_or_default());
        next.extend(ProjectedEntry::new(node.id.clone(), node.kind, shown), index);
        for (mut entry, index) in kept {
            match entry.kind {
                EntryKind::Message(MessageRole::System) => continue,
                EntryKind::Compaction => entry.shown = Shown::Nothing,
                _ => {}
            }
            next.extend(entry, index);
        }
        next.kept = next.entries.len();
        *self = next;
        true
    }
}

struct Builder<'a> {
    tree: &'a Tree,
    source: &'a dyn ReadRange,
    findings: Findings,
}

impl Builder<'_> {
    fn build(&mut self, leaf: Option<EntryIndex>) -> io::Result<Projection> {
        let path = self.tree.path(leaf);
        let mut projection = Projection::default();
        (projection.thinking_level, projection.model) = self.settings(&path)?;

        let (indexes, kept, compaction) = self.select(&path)?;
        let edits = self.edits(&indexes)?;
        let mut shown = self.shown(&indexes, &edits, compaction.as_deref())?;
        projection.compacted_at = compaction.as_ref().and_then(|_| self.tree[*indexes.first()?].timestamp);
        projection.compaction = compaction;
        projection.entries.reserve_exact(indexes.len());
        let messages = shown.iter().map(|shown| shown.as_slice().len()).sum();
        projection.messages = Arc::new(Vec::with_capacity(messages));
        for (index, shown) in indexes.iter().zip(&mut shown) {
            let node = &self.tree[*index];
            let mut entry = ProjectedEntry::new(node.id.clone(), node.kind, std::mem::take(shown));
            entry.edit = edits.effects.get(index).cloned();
            entry.is_omitted = is_visible(node.kind) && edits.omits(&node.id);
            projection.extend(entry, *index);
        }
        projection.kept = kept;
        Ok(projection)
    }

    /// Reads an entry whole; `None` when it is damaged.
    fn read(&mut self, index: EntryIndex) -> io::Result<Option<EntryBody>> {
        let node = &self.tree[index];
        let line = read_line_at(self.source, node.place)?;
        Ok(self.parse(index, &line))
    }

    fn parse(&mut self, index: EntryIndex, line: &[u8]) -> Option<EntryBody> {
        let kind = self.tree[index].kind;
        let body = EntryBody::read(kind, line);
        match &body {
            None => self.findings.damaged.push(index),
            Some(EntryBody::Unknown(_)) if kind != EntryKind::Unknown => self.findings.unfit.push(index),
            Some(_) => {}
        }
        body
    }

    fn settings(&mut self, path: &[EntryIndex]) -> io::Result<(Option<ThinkingLevel>, Option<ModelChoice>)> {
        let mut level = None;
        let mut model = None;
        for index in path.iter().rev() {
            match self.tree[*index].kind {
                EntryKind::ThinkingLevelChange if level.is_none() => {
                    if let Some(EntryBody::ThinkingLevelChange(change)) = self.read(*index)? {
                        level = Some(change.thinking_level);
                    }
                }
                EntryKind::ModelChange | EntryKind::Message(MessageRole::Assistant) if model.is_none() => {
                    model = match self.read(*index)? {
                        Some(EntryBody::ModelChange(change)) => {
                            Some(ModelChoice { provider: change.provider, model_id: change.model_id })
                        }
                        Some(EntryBody::Message(entry)) => entry.message.as_assistant().map(model_of),
                        _ => None,
                    };
                }
                _ => {}
            }
            if level.is_some() && model.is_some() {
                break;
            }
        }
        Ok((level, model))
    }

    /// The entries of the path that count, and how many of them are the compaction and what it kept.
    fn select(&mut self, path: &[EntryIndex]) -> io::Result<(Vec<EntryIndex>, usize, Option<Arc<Compaction>>)> {
        let candidates =
            path.iter().enumerate().rev().filter(|(_, index)| self.tree[**index].kind == EntryKind::Compaction);
        for (at, index) in candidates.collect::<Vec<_>>() {
            let Some(EntryBody::Compaction(compaction)) = self.read(*index)? else { continue };
            let mut selected = vec![*index];
            if let Some(first) = &compaction.first_kept_entry_id
                && let Some(first) = path[..at].iter().position(|index| self.tree[*index].id == *first)
            {
                let is_prompt =
                    |index: &&EntryIndex| self.tree[**index].kind == EntryKind::Message(MessageRole::System);
                selected.extend(path[first..at].iter().filter(|index| !is_prompt(index)));
            }
            let kept = selected.len();
            selected.extend_from_slice(&path[at + 1..]);
            return Ok((selected, kept, Some(Arc::new(compaction))));
        }
        Ok((path.to_vec(), 0, None))
    }

    fn edits(&mut self, indexes: &[EntryIndex]) -> io::Result<Edits> {
        let mut edits = Edits::default();
        for index in indexes.iter().filter(|index| self.tree[**index].kind == EntryKind::ContextEdit) {
            if let Some(EntryBody::ContextEdit(edit)) = self.read(*index)? {
                edits.effects.insert(*index, effect(&edit));
                edits.by_target.insert(edit.target_id.clone(), edit);
            }
        }
        Ok(edits)
    }

    fn shown(
        &mut self,
        indexes: &[EntryIndex],
        edits: &Edits,
        compaction: Option<&Compaction>,
    ) -> io::Result<Vec<Shown>> {
        let mut shown: Vec<Shown> = Vec::with_capacity(indexes.len());
        shown.resize_with(indexes.len(), Shown::default);
        let mut places = Vec::with_capacity(indexes.len());
        for (slot, index) in indexes.iter().enumerate() {
            let node = &self.tree[*index];
            match node.kind {
                _ if edits.omits(&node.id) => {}
                EntryKind::Compaction if slot == 0 => {
                    if let Some(compaction) = compaction {
                        shown[slot] = shown_compaction(compaction, node.timestamp.unwrap_or_default());
                    }
                }
                EntryKind::Message(_) | EntryKind::CustomMessage | EntryKind::BranchSummary => {
                    places.push(((slot, *index), node.place));
                }
                _ => {}
            }
        }
        let source = self.source;
        read_lines(source, &places, |(slot, index), line| {
            let Some(body) = self.parse(*index, line) else { return };
            let node = &self.tree[*index];
            let replacement = edits.by_target.get(&node.id).and_then(|edit| edit.replacement.as_ref());
            let original = shown_of(node.timestamp.unwrap_or_default(), &body);
            shown[*slot] = edited(original, replacement);
        })?;
        Ok(shown)
    }
}

#[derive(Default)]
struct Edits {
    /// The latest one of each target.
    by_target: HashMap<EntryId, ContextEdit>,
    effects: HashMap<EntryIndex, EditEffect>,
}

impl Edits {
    fn omits(&self, id: &EntryId) -> bool {
        self.by_target.get(id).is_some_and(|edit| edit.replacement.is_none())
    }
}

fn effect(edit: &ContextEdit) -> EditEffect {
    match edit.replacement {
        None => EditEffect::Omits(edit.target_id.clone()),
        Some(_) => EditEffect::Replaces(edit.target_id.clone()),
    }
}

fn model_of(assistant: &AssistantMessage) -> ModelChoice {
    ModelChoice { provider: assistant.provider.clone(), model_id: assistant.model.clone() }
}

/// What an entry other than a compaction says to the model.
fn shown_of(timestamp: Timestamp, body: &EntryBody) -> Shown {
    let message = match body {
        EntryBody::Message(entry) => entry.message.clone(),
        EntryBody::CustomMessage(entry) => CodingMessage::Custom(CustomContent {
            custom_type: entry.custom_type.clone(),
            content: entry.content.clone(),
            display: entry.display,
            details: entry.details.clone(),
            timestamp,
        })
        .into(),
        EntryBody::BranchSummary(entry) if !entry.summary.is_empty() => {
            CodingMessage::BranchSummary(BranchSummaryMessage {
                summary: entry.summary.clone(),
                from_id: entry.from_id.clone(),
                timestamp,
            })
            .into()
        }
        _ => return Shown::Nothing,
    };
    message.into()
}

/// The checkpoint, when there is one, and the summary.
fn shown_compaction(compaction: &Compaction, timestamp: Timestamp) -> Shown {
    let summary = CodingMessage::CompactionSummary(CompactionSummaryMessage {
        summary: compaction.summary.clone(),
        tokens_before: compaction.tokens_before,
        timestamp,
    });
    match &compaction.system_message {
        Some(system) => Shown::Two([Message::System(system.clone()).into(), summary.into()]),
        None => Shown::One([summary.into()]),
    }
}

/// Gives a message other content. Roles that cannot be edited stay as they are, and so does a message whose role does
/// not have the replacement's blocks.
fn edited(shown: Shown, replacement: Option<&Replacement>) -> Shown {
    match (shown, replacement) {
        (Shown::One([message]), Some(replacement)) => {
            Shown::One([with_content(&message, &replacement.content).unwrap_or(message)])
        }
        (shown, _) => shown,
    }
}

fn with_content(message: &SessionMessage, content: &ReplacementContent) -> Option<SessionMessage> {
    let input = || {
        Some(match content {
            ReplacementContent::Text(text) => Content::from(text.as_str()),
            ReplacementContent::Blocks(blocks) => Content::Blocks(read_blocks(blocks)?),
        })
    };
    Some(match message {
        SessionMessage::Llm(Message::User(user)) => {
            let mut user = (**user).clone();
            user.content = input()?;
            user.into()
        }
        SessionMessage::Llm(Message::Assistant(assistant)) => {
            let mut assistant = (**assistant).clone();
            assistant.content = blocks_of::<AssistantBlock>(content)?;
            assistant.into()
        }
        SessionMessage::Llm(Message::ToolResult(result)) => {
            let mut result = (**result).clone();
            result.content = blocks_of::<InputBlock>(content)?;
            result.into()
        }
        SessionMessage::Custom(custom) => match &**custom {
            CodingMessage::Custom(custom) => {
                CodingMessage::Custom(CustomContent { content: input()?, ..custom.clone() }).into()
            }
            _ => return None,
        },
        SessionMessage::Llm(Message::System(_)) | SessionMessage::Unknown(_) => return None,
    })
}

fn blocks_of<B: DeserializeOwned + From<TextContent>>(content: &ReplacementContent) -> Option<Vec<B>> {
    match content {
        ReplacementContent::Text(text) => Some(vec![TextContent { text: text.clone(), text_signature: None }.into()]),
        ReplacementContent::Blocks(blocks) => read_blocks(blocks),
    }
}

fn read_blocks<B: DeserializeOwned>(blocks: &[Value]) -> Option<Vec<B>> {
    serde_json::from_value(Value::Array(blocks.to_vec())).ok()
}
