//! The handle that a running agent holds: reads the session, and appends to it.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use pi_ai::{ModelId, ProviderId, SessionId, SystemMessage, ThinkingLevel, Timestamp};
use serde_json::Value;
use tokio::task::coop;

use crate::{
    messages::{CodingMessage, SessionMessage},
    session::{
        entry::{
            BranchSummary, Compaction, ContextEdit, CustomEntry, CustomMessageEntry, Entry, EntryBody, EntryKind,
            Label, MessageEntry, MessageRole, ModelChange, Replacement, ReplacementContent, SessionInfo,
            ThinkingLevelChange, UsageEntry,
        },
        environment::{SessionEnvironment, SyncPolicy},
        error::SessionError,
        id::EntryId,
        line::write_line,
        projection::SessionContext,
        session::{EntrySummary, Session},
        writer::{Durability, WriteError, Writer},
    },
};

/// A session that is open: reads its tree and its context, and appends entries.
///
/// Clones are handles to one session. Appends happen one after another, in the order of the calls; each becomes a
/// child of the entry that the session stands on, and the session then stands on it. When an append returns, the
/// entry is on disk; [`Appended::durability`] says what that means. A failed one changes nothing.
///
/// Until the first user or assistant message a new session is only held in memory, so that starting the program and
/// leaving it again makes no file.
///
/// Must be used inside a tokio runtime. Appending writes from the calling thread as long as the line is short (less
/// than 64 KiB); longer lines, reading a file and forcing it to the disk happen on another thread.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use pi_ai::Message;
/// use pi_coding_agent::session::SessionManager;
/// let session = SessionManager::in_memory();
/// let first = session.append_message(Message::user("one")).await?;
/// session.append_message(Message::user("two")).await?;
/// session.branch(&first.id).await?;
/// session.append_message(Message::user("another two")).await?;
/// assert_eq!(session.context().messages.len(), 2);
/// assert_eq!(session.with(|session| session.len()), 3);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct SessionManager {
    shared: Arc<Shared>,
}

struct Shared {
    session: Mutex<Session>,
    persistence: Mutex<Persistence>,
    /// Held across a write, so that writes happen one after another.
    writer: tokio::sync::Mutex<Writer>,
    environment: SessionEnvironment,
    cwd: PathBuf,
}

/// Where a session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// In memory, for good.
    Memory,
    /// In memory until somebody says something; then it gets this file.
    Buffered {
        /// The file that it will have.
        path: PathBuf,
    },
    /// In a file, open for writing.
    File {
        /// The file.
        path: PathBuf,
    },
    /// In a file, open for reading only.
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// In a store that the application brought.
    Store,
}

impl Persistence {
    /// The session's file, which need not exist yet.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Buffered { path } | Self::File { path } | Self::ReadOnly { path } => Some(path),
            Self::Memory | Self::Store => None,
        }
    }
}

/// An entry that was appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Its id.
    pub id: EntryId,
    /// When it was made.
    pub timestamp: Timestamp,
    /// How well it is kept.
    pub durability: Durability,
}

impl SessionManager {
    pub(crate) fn new(
        session: Session,
        persistence: Persistence,
        writer: Writer,
        cwd: PathBuf,
        environment: SessionEnvironment,
    ) -> Self {
        let shared = Shared {
            session: Mutex::new(session),
            persistence: Mutex::new(persistence),
            writer: tokio::sync::Mutex::new(writer),
            environment,
            cwd,
        };
        Self { shared: Arc::new(shared) }
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.shared.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the session. Nothing is appended while `read` runs, so it should be short.
    pub fn with<T>(&self, read: impl FnOnce(&Session) -> T) -> T {
        read(&self.session())
    }

    /// The session's id.
    pub fn id(&self) -> SessionId {
        self.session().id().clone()
    }

    /// The session's name.
    pub fn name(&self) -> Option<String> {
        self.session().name().map(str::to_owned)
    }

    /// The folder that the session works in.
    pub fn cwd(&self) -> &Path {
        &self.shared.cwd
    }

    /// The same session, working in another folder than its file says. It must be the only handle.
    pub(crate) fn in_folder(mut self, cwd: &Path) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            cwd.clone_into(&mut shared.cwd);
        }
        self
    }

    /// Where the session is.
    pub fn persistence(&self) -> Persistence {
        self.shared.persistence.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The session's file, which need not exist yet.
    pub fn path(&self) -> Option<PathBuf> {
        self.persistence().path().map(Path::to_owned)
    }

    /// What the session was opened with.
    pub fn environment(&self) -> &SessionEnvironment {
        &self.shared.environment
    }

    /// The entry that the next one will follow.
    pub fn leaf_id(&self) -> Option<EntryId> {
        self.session().leaf_id().cloned()
    }

    /// What the next request is made from.
    pub fn context(&self) -> SessionContext {
        self.session().context()
    }

    /// The branch that the session stands on: the way from its root to the leaf.
    pub fn branch_entries(&self) -> Vec<EntrySummary> {
        self.session().branch()
    }

    /// Reads an entry whole.
    ///
    /// # Errors
    /// As [`Session::entry`].
    pub fn entry(&self, id: &str) -> Result<Entry, SessionError> {
        self.session().entry(id)
    }

    /// Appends a message. One of an extension becomes the entry that is made for it.
    ///
    /// # Errors
    /// When it cannot be written. Summaries are refused: they have entries of their own, [`append_compaction`] and
    /// [`branch_with_summary`].
    ///
    /// [`append_compaction`]: Self::append_compaction
    /// [`branch_with_summary`]: Self::branch_with_summary
    pub async fn append_message(&self, message: impl Into<SessionMessage>) -> Result<Appended, SessionError> {
        let message = message.into();
        match message.as_custom() {
            Some(CodingMessage::Custom(custom)) => {
                let custom = custom.clone();
                let entry = CustomMessageEntry {
                    custom_type: custom.custom_type,
                    content: custom.content,
                    display: custom.display,
                    details: custom.details,
                };
                self.append(EntryBody::CustomMessage(entry)).await
            }
            Some(CodingMessage::BranchSummary(_) | CodingMessage::CompactionSummary(_)) => {
                Err(SessionError::SummaryMessage)
            }
            Some(CodingMessage::BashExecution(_)) | None => {
                self.append(EntryBody::Message(MessageEntry { message })).await
            }
        }
    }

    /// Appends the user's choice of a model.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn append_model_change(
        &self,
        provider: impl Into<ProviderId>,
        model: impl Into<ModelId>,
    ) -> Result<Appended, SessionError> {
        let change = ModelChange { provider: provider.into(), model_id: model.into() };
        self.append(EntryBody::ModelChange(change)).await
    }

    /// Appends the user's choice of a thinking level.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn append_thinking_level_change(&self, level: ThinkingLevel) -> Result<Appended, SessionError> {
        self.append(EntryBody::ThinkingLevelChange(ThinkingLevelChange { thinking_level: level })).await
    }

    /// Appends what a request outside the conversation cost.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn append_usage(&self, usage: UsageEntry) -> Result<Appended, SessionError> {
        self.append(EntryBody::Usage(usage)).await
    }

    /// Appends a compaction. The prompt and the tools that hold are added to it; without a
    /// [`first_kept_entry_id`](Compaction::first_kept_entry_id) nothing before it is kept.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn append_compaction(&self, compaction: Compaction) -> Result<Appended, SessionError> {
        self.append_with(move |session, id, timestamp| {
            let mut compaction = compaction.clone();
            compaction.first_kept_entry_id.get_or_insert_with(|| id.clone());
            let replayed = pi_ai::transcript::current_system_message(session.projection().messages());
            compaction.system_message = replayed.map(|message| Arc::new(SystemMessage { timestamp, ..message }));
            Ok(EntryBody::Compaction(compaction))
        })
        .await
    }

    /// Appends state of an extension.
    ///
    /// # Errors
    /// When it nests deeper than 100 levels, or cannot be written.
    pub async fn append_custom(
        &self,
        custom_type: impl Into<String>,
        data: Option<Value>,
    ) -> Result<Appended, SessionError> {
        self.append(EntryBody::Custom(CustomEntry { custom_type: custom_type.into(), data })).await
    }

    /// Appends what an extension says to the model.
    ///
    /// # Errors
    /// When its details nest deeper than 100 levels, or it cannot be written.
    pub async fn append_custom_message(&self, message: CustomMessageEntry) -> Result<Appended, SessionError> {
        self.append(EntryBody::CustomMessage(message)).await
    }

    /// Gives the session a name; an empty one takes it away.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn append_session_info(&self, name: &str) -> Result<Appended, SessionError> {
        self.append(EntryBody::SessionInfo(SessionInfo::new(name))).await
    }

    /// Marks an entry; without a label the mark is taken away.
    ///
    /// # Errors
    /// When there is no such entry, or it cannot be written.
    pub async fn append_label_change(&self, target: &EntryId, label: Option<&str>) -> Result<Appended, SessionError> {
        let label = Label { target_id: target.clone(), label: label.map(str::to_owned) };
        self.append_with(move |session, _, _| {
            if !session.contains(label.target_id.as_str()) {
                return Err(SessionError::UnknownEntry { id: label.target_id.clone() });
            }
            Ok(EntryBody::Label(label.clone()))
        })
        .await
    }

    /// Gives an entry of the branch other content from here on, or leaves it out (`None`).
    ///
    /// # Errors
    /// When there is no such entry on the branch, its content cannot be changed, or it cannot be written.
    pub async fn append_context_edit(
        &self,
        target: &EntryId,
        replacement: Option<Replacement>,
    ) -> Result<Appended, SessionError> {
        let target = target.clone();
        self.append_with(move |session, _, _| {
            let id = target.clone();
            let Some(summary) = session.summary(id.as_str()) else { return Err(SessionError::UnknownEntry { id }) };
            if !session.is_on_branch(id.as_str()) {
                return Err(SessionError::NotOnBranch { id });
            }
            let mut replacement = replacement.clone();
            match summary.kind {
                EntryKind::CustomMessage | EntryKind::Message(MessageRole::User) => {}
                EntryKind::Message(MessageRole::Assistant | MessageRole::ToolResult) => {
                    replacement = replacement.map(as_blocks);
                }
                _ => return Err(SessionError::NotEditable { id }),
            }
            Ok(EntryBody::ContextEdit(ContextEdit { target_id: id, replacement }))
        })
        .await
    }

    /// Goes back to an entry, so that the next one starts a new branch there. Nothing is written.
    ///
    /// # Errors
    /// When there is no such entry, or its branch cannot be read.
    pub async fn branch(&self, id: &EntryId) -> Result<(), SessionError> {
        self.move_to(Some(id.clone())).await
    }

    /// Goes back to before all entries, so that the next one becomes another root. Nothing is written.
    ///
    /// # Errors
    /// None in practice; the signature is that of [`branch`](Self::branch).
    pub async fn reset_leaf(&self) -> Result<(), SessionError> {
        self.move_to(None).await
    }

    /// Goes back to an entry (or to before all) and appends a summary of the branch that is left. The summary's
    /// [`from_id`](BranchSummary::from_id) is set here.
    ///
    /// # Errors
    /// When there is no such entry, or the summary cannot be written; then the session stands where it stood.
    pub async fn branch_with_summary(
        &self,
        id: Option<&EntryId>,
        summary: BranchSummary,
    ) -> Result<Appended, SessionError> {
        let target = id.cloned();
        let this = self.clone();
        uncancelled(async move {
            let mut writer = this.shared.writer.lock().await;
            let left = this.leaf_id();
            let from_id = left.clone().unwrap_or_else(|| EntryId::from("root"));
            this.read_branch(target).await?;
            let summary = BranchSummary { from_id, ..summary };
            let appended = this.write(&mut writer, &move |_, _, _| Ok(EntryBody::BranchSummary(summary.clone()))).await;
            if matches!(&appended, Err(error) if !matches!(error, SessionError::NotSynced { .. })) {
                this.read_branch(left).await?;
            }
            appended
        })
        .await
    }

    async fn move_to(&self, leaf: Option<EntryId>) -> Result<(), SessionError> {
        let this = self.clone();
        uncancelled(async move {
            let _writer = this.shared.writer.lock().await;
            this.read_branch(leaf).await
        })
        .await
    }

    /// Moves the leaf. The caller holds the writer.
    async fn read_branch(&self, leaf: Option<EntryId>) -> Result<(), SessionError> {
        /// A branch of at most so many bytes is read at once.
        const FEW: u64 = 64 << 10;
        if self.with(|session| session.branch_has_at_most(leaf.as_ref().map(EntryId::as_str), FEW)) {
            return self.session().move_to(leaf.as_ref().map(EntryId::as_str));
        }
        let this = self.clone();
        let moving = move || {
            let leaf = leaf.as_ref().map(EntryId::as_str);
            // Built without the lock, because it may take a while; the writer is held, so nothing changes meanwhile.
            let plan = this.with(|session| session.plan_move(leaf))?;
            let moved = plan.read()?;
            this.session().finish_move(moved);
            Ok(())
        };
        in_background(moving).await
    }

    /// Appends an entry whose content does not depend on the session.
    async fn append(&self, body: EntryBody) -> Result<Appended, SessionError> {
        match &body {
            EntryBody::Custom(entry) => refuse_too_deep("the data", entry.data.as_ref())?,
            EntryBody::CustomMessage(entry) => refuse_too_deep("the details", entry.details.as_ref())?,
            _ => {}
        }
        self.append_with(move |_, _, _| Ok(body.clone())).await
    }

    async fn append_with<F>(&self, make: F) -> Result<Appended, SessionError>
    where
        F: Fn(&Session, &EntryId, Timestamp) -> Result<EntryBody, SessionError> + Send + Sync + 'static,
    {
        let this = self.clone();
        uncancelled(async move {
            let mut writer = this.shared.writer.lock().await;
            this.write(&mut writer, &make).await
        })
        .await
    }

    async fn write<F>(&self, writer: &mut Writer, make: &F) -> Result<Appended, SessionError>
    where
        F: Fn(&Session, &EntryId, Timestamp) -> Result<EntryBody, SessionError> + Send + Sync,
    {
        let environment = &self.shared.environment;
        let timestamp = environment.clock.now();
        loop {
            let (id, body, line, end, last_line) = {
                let session = self.session();
                let id = EntryId::generate(&*environment.ids, |id| session.contains(id));
                let body = make(&session, &id, timestamp)?;
                let line = write_line(body.type_name(), &id, session.leaf_id(), timestamp, &body)?;
                (id, body, line, session.end(), session.last_line())
            };
            match writer.append(environment, end, last_line, &line, body.kind()).await {
                Ok(written) => {
                    let mut session = self.session();
                    if let Some(source) = written.new_source {
                        session.set_source(source);
                    }
                    match written.among {
                        None => session.commit(id.clone(), timestamp, &body, line.len() as u64),
                        Some(bytes) => {
                            if !session.commit_among(&id, &body, end, &bytes)? {
                                // Somebody wrote into the middle of the line: it is damaged, and is written again.
                                continue;
                            }
                        }
                    }
                    drop(session);
                    if let Some(path) = written.new_file {
                        let persistence = Persistence::File { path };
                        *self.shared.persistence.lock().unwrap_or_else(PoisonError::into_inner) = persistence;
                    }
                    return match written.sync_error {
                        Some(source) => Err(SessionError::NotSynced { id, source }),
                        None => Ok(Appended { id, timestamp, durability: written.durability }),
                    };
                }
                Err(WriteError::Grown(bytes)) => self.session().grow_from(end, &bytes),
                Err(WriteError::ClosedLastLine) => self.session().close_last_line(),
                Err(WriteError::Failed(error)) => return Err(error),
            }
        }
    }

    /// A turn has ended: what was written is forced to the disk, if the [`SyncPolicy`] says so.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub async fn end_turn(&self) -> Result<(), SessionError> {
        match self.shared.environment.sync {
            SyncPolicy::Never => Ok(()),
            SyncPolicy::PerTurn | SyncPolicy::PerEntry => self.sync().await,
        }
    }

    /// Forces everything that was written to the disk.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub async fn sync(&self) -> Result<(), SessionError> {
        let this = self.clone();
        uncancelled(async move { this.shared.writer.lock().await.sync().await.map_err(SessionError::Store) }).await
    }

    /// Ends as [`close`](Self::close) does, unless there are other handles; then only a turn is ended.
    pub(crate) async fn close_if_last(&self) -> Result<(), SessionError> {
        if Arc::strong_count(&self.shared) > 1 { self.end_turn().await } else { self.close().await }
    }

    /// Forces everything to the disk, if the [`SyncPolicy`] ever does, and lets go of the file, so that it can be opened
    /// for writing again. Reading goes on.
    pub(crate) async fn close(&self) -> Result<(), SessionError> {
        let this = self.clone();
        uncancelled(async move {
            let mut writer = this.shared.writer.lock().await;
            let synced = match this.shared.environment.sync {
                SyncPolicy::Never => Ok(()),
                SyncPolicy::PerTurn | SyncPolicy::PerEntry => writer.sync().await,
            };
            let mut persistence = this.shared.persistence.lock().unwrap_or_else(PoisonError::into_inner);
            if let Persistence::File { path } = &*persistence {
                *persistence = Persistence::ReadOnly { path: path.clone() };
                *writer = Writer::ReadOnly { store: None };
            }
            synced.map_err(SessionError::Store)
        })
        .await
    }

    /// Reads in what other programs have appended since, without appending anything. Gives how many entries came in.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn refresh(&self) -> Result<usize, SessionError> {
        let this = self.clone();
        uncancelled(async move {
            let mut writer = this.shared.writer.lock().await;
            let (before, from) = this.with(|session| (session.len(), session.growth_from()));
            let bytes = writer.read_growth(from).await?;
            if !bytes.is_empty() {
                this.session().grow_from(from, &bytes);
            }
            Ok(this.with(Session::len) - before)
        })
        .await
    }
}

/// Whoever lets go of a session without waiting for it does not want to lose it in a loss of power either.
impl Drop for Shared {
    fn drop(&mut self) {
        if self.environment.sync != SyncPolicy::Never {
            self.writer.get_mut().sync_when_dropped();
        }
    }
}

impl std::fmt::Debug for SessionManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionManager").field("session", &*self.session()).field("at", &self.persistence()).finish()
    }
}

/// Text for a message that has only blocks.
fn as_blocks(replacement: Replacement) -> Replacement {
    match replacement.content {
        ReplacementContent::Text(text) => {
            let block = serde_json::json!({"type": "text", "text": text});
            Replacement { content: ReplacementContent::Blocks(vec![block]) }
        }
        ReplacementContent::Blocks(_) => replacement,
    }
}

/// Runs an operation to its end, whatever becomes of the caller: one that has to wait goes on in a task of its own, so
/// that a caller that gives up does not leave it half done. One that need not wait costs no task.
async fn uncancelled<T: Send + 'static>(
    operation: impl Future<Output = Result<T, SessionError>> + Send + 'static,
) -> Result<T, SessionError> {
    let mut operation = Box::pin(operation);
    // An operation that need not wait is not put off for being one of many: it would go to a task of its own.
    match futures::poll!(coop::unconstrained(&mut operation)) {
        Poll::Ready(result) => {
            coop::consume_budget().await;
            result
        }
        Poll::Pending => joined(tokio::spawn(operation).await),
    }
}

/// What readers of JSON would not read back is not written.
fn refuse_too_deep(what: &'static str, value: Option<&Value>) -> Result<(), SessionError> {
    /// Readers take 127, and an entry is some levels deep itself.
    const LEVELS: usize = 100;
    fn fits(value: &Value, levels: usize) -> bool {
        match value {
            Value::Array(items) => levels > 0 && items.iter().all(|item| fits(item, levels - 1)),
            Value::Object(members) => levels > 0 && members.values().all(|member| fits(member, levels - 1)),
            _ => true,
        }
    }
    match value {
        Some(value) if !fits(value, LEVELS) => Err(SessionError::TooDeep { what, levels: LEVELS }),
        _ => Ok(()),
    }
}

pub(crate) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SessionError> + Send + 'static,
) -> Result<T, SessionError> {
    joined(tokio::task::spawn_blocking(work).await)
}

fn joined<T>(outcome: Result<Result<T, SessionError>, tokio::task::JoinError>) -> Result<T, SessionError> {
    match outcome {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(SessionError::read(std::io::Error::other(error))),
        },
    }
}
