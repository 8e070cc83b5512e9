//! What happens to a session as a whole.

use std::{path::PathBuf, sync::Arc};

use pi_ai::{CancellationToken, Usage};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};
use serde_json::Value;

use crate::{
    agent_session::LeaveBehind,
    compaction::{CompactionPreparation, CompactionReason, SummaryInstructions},
    extensions::{
        ExtensionError,
        outcome::{Outcome, answers, nothing_left, part},
    },
    resources::DiscoveredPaths,
    sdk::{self, SessionStart},
    session::{Entry, EntryId},
};

/// A project asks to be trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProjectTrustEvent {
    /// The project's folder.
    pub cwd: PathBuf,
}

impl ProjectTrustEvent {
    /// Whether the project in a folder may be trusted.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self { cwd: cwd.into() }
    }
}

/// Whether a project may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a gate has to hand its decision on"]
pub enum TrustDecision {
    /// It may.
    Trust(Remember),
    /// It may not.
    Distrust(Remember),
    /// Somebody else has to say.
    Undecided,
}

/// Whether a decision counts for later sessions too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remember {
    /// It does.
    Always,
    /// For this session only.
    Once,
}

impl Outcome for TrustDecision {
    fn from_json(mut answer: Value) -> Result<Self, ExtensionError> {
        let trusted: Option<String> = part(&mut answer, "trusted")?;
        let remember = match part(&mut answer, "remember")? {
            Some(true) => Remember::Always,
            Some(false) | None => Remember::Once,
        };
        nothing_left(&answer)?;
        match trusted.as_deref() {
            Some("yes") => Ok(Self::Trust(remember)),
            Some("no") => Ok(Self::Distrust(remember)),
            Some("undecided") | None => Ok(Self::Undecided),
            Some(other) => Err(ExtensionError::new(format!("`trusted` is `{other}`; expected yes, no or undecided"))),
        }
    }
}

/// Resources are looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourcesDiscoverEvent {
    /// The session's folder.
    pub cwd: PathBuf,
    /// Why.
    pub reason: DiscoverReason,
}

impl ResourcesDiscoverEvent {
    pub(crate) fn new(cwd: impl Into<PathBuf>, reason: DiscoverReason) -> Self {
        Self { cwd: cwd.into(), reason }
    }
}

/// Why resources are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DiscoverReason {
    /// The session begins.
    Startup,
    /// They are loaded again.
    Reload,
}

impl Outcome for DiscoveredPaths {
    fn from_json(mut answer: Value) -> Result<Self, ExtensionError> {
        let mut paths = |name| Ok::<_, ExtensionError>(part(&mut answer, name)?.unwrap_or_default());
        Ok(Self { skills: paths("skillPaths")?, prompts: paths("promptPaths")?, themes: paths("themePaths")? })
    }
}

/// A session begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionStartEvent {
    /// Why.
    pub reason: StartReason,
    /// The file of the session that it took the place of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_session_file: Option<PathBuf>,
}

impl SessionStartEvent {
    /// A session that takes no other one's place.
    pub fn new(reason: StartReason) -> Self {
        Self { reason, previous_session_file: None }
    }
}

impl From<SessionStart> for SessionStartEvent {
    fn from(start: SessionStart) -> Self {
        let reason = match start.reason {
            sdk::StartReason::Startup => StartReason::Startup,
            sdk::StartReason::New => StartReason::New,
            sdk::StartReason::Resume => StartReason::Resume,
            sdk::StartReason::Fork => StartReason::Fork,
        };
        Self { reason, previous_session_file: start.previous_file }
    }
}

/// Why a session begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StartReason {
    /// The program started.
    #[default]
    Startup,
    /// Its extensions were loaded again.
    Reload,
    /// The user began a new one.
    New,
    /// The user opened an old one.
    Resume,
    /// It was forked from another one.
    Fork,
}

/// A session's name changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionInfoChangedEvent {
    /// The new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl SessionInfoChangedEvent {
    pub(crate) fn new(name: Option<String>) -> Self {
        Self { name }
    }
}

/// Another session is about to take this one's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionBeforeSwitchEvent {
    /// Why.
    pub reason: SwitchReason,
    /// Its file, when it has one already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_session_file: Option<PathBuf>,
}

impl SessionBeforeSwitchEvent {
    /// A switch, to the session of a file when there is one.
    pub fn new(reason: SwitchReason, target_session_file: Option<PathBuf>) -> Self {
        Self { reason, target_session_file }
    }
}

/// Why another session takes this one's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SwitchReason {
    /// A new one begins.
    New,
    /// An old one is opened.
    Resume,
}

/// Whether another session may take this one's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a gate has to hand its decision on"]
pub enum SwitchDecision {
    /// It may.
    Proceed,
    /// The session stays.
    Cancel,
}

impl Outcome for SwitchDecision {
    fn from_json(mut answer: Value) -> Result<Self, ExtensionError> {
        let cancelled = is_cancelled(&mut answer)?;
        nothing_left(&answer)?;
        Ok(if cancelled { Self::Cancel } else { Self::Proceed })
    }
}

pub use crate::sdk::ForkPosition;

/// The session is about to be forked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionBeforeForkEvent {
    /// Where.
    pub entry_id: EntryId,
    /// Whether the entry is part of the fork.
    pub position: ForkPosition,
}

impl SessionBeforeForkEvent {
    /// A fork before or at an entry.
    pub fn new(entry_id: EntryId, position: ForkPosition) -> Self {
        Self { entry_id, position }
    }
}

/// Whether the session may be forked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a gate has to hand its decision on"]
pub enum ForkDecision {
    /// It may.
    Proceed,
    /// It may, but the fork begins without the conversation.
    WithoutConversation,
    /// It may not.
    Cancel,
}

impl Outcome for ForkDecision {
    fn from_json(mut answer: Value) -> Result<Self, ExtensionError> {
        if is_cancelled(&mut answer)? {
            return Ok(Self::Cancel);
        }
        let skip = part(&mut answer, "skipConversationRestore")?.unwrap_or(false);
        nothing_left(&answer)?;
        Ok(if skip { Self::WithoutConversation } else { Self::Proceed })
    }
}

/// The conversation is about to be compacted.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionBeforeCompactEvent {
    /// What would be summarised, and what would stay.
    #[serde(serialize_with = "preparation")]
    pub preparation: Arc<CompactionPreparation>,
    /// The entries of the branch.
    pub branch_entries: Arc<[Entry]>,
    /// What the user said about the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    /// Why.
    pub reason: CompactionReason,
    /// Whether the request that asked for it will be sent again.
    pub will_retry: bool,
    /// Cancelled when the compaction is aborted.
    #[serde(skip)]
    pub signal: CancellationToken,
}

impl SessionBeforeCompactEvent {
    pub(crate) fn new(
        preparation: CompactionPreparation,
        branch_entries: Vec<Entry>,
        custom_instructions: Option<String>,
        reason: CompactionReason,
        will_retry: bool,
        signal: CancellationToken,
    ) -> Self {
        Self {
            preparation: Arc::new(preparation),
            branch_entries: branch_entries.into(),
            custom_instructions,
            reason,
            will_retry,
            signal,
        }
    }
}

fn preparation<S: Serializer>(preparation: &Arc<CompactionPreparation>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_struct("preparation", 7)?;
    fields.serialize_field("firstKeptEntryId", &preparation.first_kept_entry_id)?;
    fields.serialize_field("messagesToSummarize", &preparation.messages_to_summarize)?;
    fields.serialize_field("turnPrefixMessages", &preparation.turn_prefix_messages)?;
    fields.serialize_field("isSplitTurn", &preparation.is_split_turn())?;
    fields.serialize_field("tokensBefore", &preparation.tokens_before)?;
    fields.serialize_field("previousSummary", &preparation.previous_summary)?;
    fields.serialize_field("files", &preparation.files.lists())?;
    fields.end()
}

/// Whether the conversation may be compacted, and by whom.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a gate has to hand its decision on"]
pub enum CompactDecision {
    /// It may.
    Proceed,
    /// It may, with this summary instead of the model's.
    Replace(Box<CompactionDraft>),
    /// It may not.
    Cancel,
}

/// A compaction that an extension made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionDraft {
    /// What stands for the conversation before.
    pub summary: String,
    /// The first entry that stays; `None` when nothing does.
    #[serde(default)]
    pub first_kept_entry_id: Option<EntryId>,
    /// The context's size before, in tokens. `None`: as the session estimates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<u64>,
    /// What the extension keeps with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// What the summary cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl Outcome for CompactDecision {
    fn from_json(mut answer: Value) -> Result<Self, ExtensionError> {
        if is_cancelled(&mut answer)? {
            return Ok(Self::Cancel);
        }
        let draft = part(&mut answer, "compaction")?;
        nothing_left(&answer)?;
        Ok(draft.map_or(Self::Proceed, |draft| Self::Replace(Box::new(draft))))
    }
}

/// The conversation was compacted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionCompactEvent {
    /// The compaction.
    pub compaction_entry: Arc<Entry>,
    /// Whether an extension made it.
    pub from_extension: bool,
    /// Why it was made.
    pub reason: CompactionReason,
    /// Whether the request that asked for it will be sent again.
    pub will_retry: bool,
}

impl SessionCompactEvent {
    pub(crate) fn new(entry: Entry, from_extension: bool, reason: CompactionReason, will_retry: bool) -> Self {
        Self { compaction_entry: Arc::new(entry), from_extension, reason, will_retry }
    }
}

/// A compaction came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionCompactFailedEvent {
    /// Why it was to be made.
    pub reason: CompactionReason,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Whether it was aborted, or cancelled by an extension.
    pub aborted: bool,
    /// Whether the request that asked for it will be sent again.
    pub will_retry: bool,
    /// Whether the summary came from an extension.
    pub from_extension: bool,
}

impl SessionCompactFailedEvent {
    pub(crate) fn new(
        reason: CompactionReason,
        error_message: Option<String>,
        aborted: bool,
        from_extension: bool,
    ) -> Self {
        Self { reason, error_message, aborted, will_retry: false, from_extension }
    }
}

/// The session is about to go to another place of its tree.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionBeforeTreeEvent {
    /// Where to, and what is left behind.
    pub preparation: Arc<TreePreparation>,
    /// Cancelled when it is aborted.
    #[serde(skip)]
    pub signal: CancellationToken,
}

impl SessionBeforeTreeEvent {
    pub(crate) fn new(preparation: TreePreparation, signal: CancellationToken) -> Self {
        Self { preparation: Arc::new(preparation), signal }
    }
}

/// Where a session goes in its tree, and what it leaves behind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TreePreparation {
    /// The entry that it goes to.
    pub target_id: EntryId,
    /// The entry that it stands on.
    pub old_leaf_id: Option<EntryId>,
    /// The last entry that both have in common.
    pub common_ancestor_id: Option<EntryId>,
    /// The entries that are left behind.
    pub entries_to_summarize: Vec<Entry>,
    /// Whether the user wants a summary of them.
    pub user_wants_summary: bool,
    /// What the user said about the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    /// Whether that takes the place of the usual instructions.
    pub replace_instructions: bool,
}

impl TreePreparation {
    pub(crate) fn new(
        target_id: EntryId,
        old_leaf_id: Option<EntryId>,
        common_ancestor_id: Option<EntryId>,
        entries_to_summarize: Vec<Entry>,
        leave: &LeaveBehind,
    ) -> Self {
        let (user_wants_summary, custom_instructions, replace_instructions) = match leave {
            LeaveBehind::Silently => (false, None, false),
            LeaveBehind::Summarized(SummaryInstructions::Usual) => (true, None, false),
            LeaveBehind::Summarized(SummaryInstructions::Focus(text)) => (true, Some(text.clone()), false),
            LeaveBehind::Summarized(SummaryInstructions::Instead(text)) => (true, Some(text.clone()), true),
        };
        Self {
            target_id,
            old_leaf_id,
            common_ancestor_id,
            entries_to_summarize,
            user_wants_summary,
            custom_instructions,
            replace_instructions,
        }
    }
}

/// Whether the session may go to another place of its tree.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a gate has to hand its decision on"]
pub enum TreeDecision {
    /// It may.
    Proceed,
    /// It may, with these changes.
    Adjust(Box<TreeAdjustment>),
    /// It may not.
    Cancel,
}

/// What an extension changes about the way to another place of the tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TreeAdjustment {
    /// The summary, instead of the model's.
    pub summary: Option<TreeSummary>,
    /// What to say about the summary, instead of what the user said.
    pub instructions: Option<SummaryInstructions>,
    /// A mark for the entry that the session then stands on.
    pub label: Option<String>,
}

/// A summary of what is left behind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeSummary {
    /// The text.
    pub summary: String,
    /// What the extension keeps with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl Outcome for TreeDecision {
    fn from_json(mut answer: Value) -> Result<Self, ExtensionError> {
        if is_cancelled(&mut answer)? {
            return Ok(Self::Cancel);
        }
        let replace = part(&mut answer, "replaceInstructions")?.unwrap_or(false);
        let adjustment = TreeAdjustment {
            summary: part(&mut answer, "summary")?,
            instructions: part(&mut answer, "customInstructions")?.map(|text| match replace {
                true => SummaryInstructions::Instead(text),
                false => SummaryInstructions::Focus(text),
            }),
            label: part(&mut answer, "label")?,
        };
        nothing_left(&answer)?;
        Ok(if adjustment == TreeAdjustment::default() { Self::Proceed } else { Self::Adjust(Box::new(adjustment)) })
    }
}

/// The session went to another place of its tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionTreeEvent {
    /// Where it stands.
    pub new_leaf_id: Option<EntryId>,
    /// Where it stood.
    pub old_leaf_id: Option<EntryId>,
    /// The summary of what was left behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_entry: Option<Arc<Entry>>,
    /// Whether an extension wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_extension: Option<bool>,
}

impl SessionTreeEvent {
    pub(crate) fn new(
        new_leaf_id: Option<EntryId>,
        old_leaf_id: Option<EntryId>,
        summary_entry: Option<Entry>,
        from_extension: bool,
    ) -> Self {
        let from_extension = summary_entry.as_ref().map(|_| from_extension);
        Self { new_leaf_id, old_leaf_id, summary_entry: summary_entry.map(Arc::new), from_extension }
    }
}

/// The session ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionShutdownEvent {
    /// Why.
    pub reason: ShutdownReason,
    /// The file of the session that takes its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_session_file: Option<PathBuf>,
}

impl SessionShutdownEvent {
    /// The end of a session, for that of a file when there is one.
    pub fn new(reason: ShutdownReason, target_session_file: Option<PathBuf>) -> Self {
        Self { reason, target_session_file }
    }
}

/// Why a session ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ShutdownReason {
    /// The program ends, or the application is done with it.
    #[default]
    Quit,
    /// Its extensions are loaded again.
    Reload,
    /// A new one takes its place.
    New,
    /// An old one takes its place.
    Resume,
    /// A fork takes its place.
    Fork,
}

fn is_cancelled(answer: &mut Value) -> Result<bool, ExtensionError> {
    Ok(part(answer, "cancel")?.unwrap_or(false))
}

answers! {
    TrustDecision;
    DiscoveredPaths;
    SwitchDecision;
    ForkDecision;
    CompactDecision, from CompactionDraft;
    TreeDecision, from TreeAdjustment;
}

impl From<CompactionDraft> for CompactDecision {
    fn from(draft: CompactionDraft) -> Self {
        Self::Replace(Box::new(draft))
    }
}

impl From<TreeAdjustment> for TreeDecision {
    fn from(adjustment: TreeAdjustment) -> Self {
        Self::Adjust(Box::new(adjustment))
    }
}
