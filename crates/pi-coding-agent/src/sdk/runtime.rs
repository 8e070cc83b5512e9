//! A host's session that is replaced by another one now and then.

mod host;

use std::{
    fmt,
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use futures::{FutureExt, future::BoxFuture};
use pi_agent_core::{AsyncHook, ListenerContext};
use pi_ai::CancellationToken;

use self::host::RuntimeHost;
use super::{
    CreateSessionError,
    fork::{ForkPosition, ForkedRecord, empty_beside, folder_of},
};
use crate::{
    agent_session::{AgentSession, AgentSessionError, SessionEvent, Subscription},
    extensions::{
        ExtensionHost,
        event::{SessionBeforeSwitchEvent, SessionShutdownEvent, ShutdownReason, SwitchDecision, SwitchReason},
    },
    session::{Access, EntryId, SessionEnvironment, SessionError, SessionFolder, SessionManager},
};

/// How a session came to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionStart {
    /// Why it was made.
    pub reason: StartReason,
    /// The file of the session that it takes the place of.
    pub previous_file: Option<PathBuf>,
}

/// Why a session was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartReason {
    /// It is the first one of the host.
    #[default]
    Startup,
    /// The user wanted to begin anew.
    New,
    /// The user wanted to go on with an earlier one.
    Resume,
    /// The user wanted to go on from an earlier place, in a session of its own.
    Fork,
}

/// A fork.
#[derive(Clone, Debug)]
pub struct Forked {
    /// The session that goes on.
    pub session: AgentSession,
    /// The text of the user's message that it goes back to before.
    pub text: Option<String>,
}

/// Why a session could not be replaced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The runtime was disposed of, or lost its session.
    #[error("there is no session any more")]
    Ended,
    /// The folder that the session worked in is gone.
    #[error(
        "the session {} worked in {}, which does not exist any more: name another folder for it", .path.display(),
        .cwd.display()
    )]
    FolderGone {
        /// Its folder.
        cwd: PathBuf,
        /// Its file.
        path: PathBuf,
    },
    /// Sessions that are kept neither in files nor in memory are made by the application.
    #[error("the session is in a store of the application's own, which has to make the other one: use replace()")]
    NoFolder,
    /// An extension did not want the session to be replaced or forked.
    #[error("an extension cancelled it")]
    Cancelled,
    /// A session cannot be read or written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The session that was there could not be ended in order.
    #[error(transparent)]
    Ending(#[from] AgentSessionError),
    /// The new session could not be made.
    #[error(transparent)]
    Creating(#[from] CreateSessionError),
}

type Factory =
    dyn Fn(SessionManager, SessionStart) -> BoxFuture<'static, Result<AgentSession, CreateSessionError>> + Send + Sync;
type Bind = Arc<dyn Fn(AgentSession, SessionStart) -> BoxFuture<'static, Option<Subscription>> + Send + Sync>;

/// A session that can be replaced: by a new one, by an earlier one, by a fork. Clones are handles of one runtime.
///
/// Each session is made by the host's own factory, so that it has the host's tools, models and settings. Listeners of
/// the runtime hear every session in turn. An operation first finds the record of the next session, then ends the one
/// that is there in order, then makes the next; when that fails, the one before is made again.
///
/// It is the [`ExtensionHost`] of its sessions, unless the factory gives them another one: commands of extensions can
/// put another session in the place of theirs, and ask the program to [end](Self::shutdown_requested).
///
/// ```
/// use pi_ai::faux::{FauxProvider, FauxReply};
/// use pi_coding_agent::{
///     sdk::{AgentSessionRuntime, SessionOptions, SessionStart, create_agent_session},
///     session::SessionManager,
/// };
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = FauxProvider::new([FauxReply::text("one"), FauxReply::text("two")]);
/// let runtime = AgentSessionRuntime::new(SessionManager::in_memory(), async move |manager: SessionManager, start: SessionStart| {
///     let options = SessionOptions::default()
///         .stream_fn(model.clone())
///         .model(FauxProvider::model())
///         .session_manager(manager)
///         .session_start(start);
///     create_agent_session(options).await
/// })
/// .await?;
/// runtime.session()?.prompt("first").await?;
/// runtime.new_session(None).await?;
/// assert_eq!(runtime.session()?.prompt("second").await?.text(), "two");
/// assert_eq!(runtime.session()?.messages().len(), 3);
/// runtime.dispose().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct AgentSessionRuntime {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    factory: Box<Factory>,
    current: Mutex<Option<AgentSession>>,
    /// Held while a session is replaced, so that replacements happen one after another.
    replacing: tokio::sync::Mutex<()>,
    bound: Arc<Mutex<Bound>>,
    /// Cancelled when an extension wants the program to end.
    end_requested: CancellationToken,
}

/// Who wants to know of each session.
#[derive(Default)]
struct Bound {
    next: u64,
    list: Vec<(u64, Bind)>,
    /// The subscriptions to the session that is there.
    subscriptions: Vec<(u64, Subscription)>,
}

/// A place in a runtime; dropping it ends the subscription.
#[must_use = "dropping a subscription ends it"]
pub struct RuntimeSubscription {
    bound: Weak<Mutex<Bound>>,
    number: u64,
}

impl RuntimeSubscription {
    /// Keeps listening as long as the runtime lives.
    pub fn detach(mut self) {
        self.bound = Weak::new();
    }
}

impl Drop for RuntimeSubscription {
    fn drop(&mut self) {
        let Some(bound) = self.bound.upgrade() else { return };
        let mut bound = lock(&bound);
        bound.list.retain(|(number, _)| *number != self.number);
        bound.subscriptions.retain(|(number, _)| *number != self.number);
    }
}

impl fmt::Debug for RuntimeSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RuntimeSubscription").field(&self.number).finish()
    }
}

impl AgentSessionRuntime {
    /// Makes the first session of this record, and later ones of others. The factory usually calls
    /// [`create_agent_session`](super::create_agent_session) with the manager that it is given; a session works in the
    /// folder that its manager says.
    ///
    /// # Errors
    /// When the session cannot be made.
    pub async fn new(
        manager: SessionManager,
        factory: impl AsyncHook<SessionManager, SessionStart, Result<AgentSession, CreateSessionError>>,
    ) -> Result<Self, RuntimeError> {
        let factory: Box<Factory> = Box::new(move |manager, start| factory.run(manager, start));
        let session = factory(manager, SessionStart::default()).await?;
        let shared = Shared {
            factory,
            current: Mutex::new(Some(session)),
            replacing: tokio::sync::Mutex::default(),
            bound: Arc::default(),
            end_requested: CancellationToken::new(),
        };
        let runtime = Self { shared: Arc::new(shared) };
        if let Ok(session) = runtime.session() {
            runtime.host_extensions_of(&session);
        }
        Ok(runtime)
    }

    /// Waits until an extension asks the program to end and the session is idle. The program then ends, and
    /// [disposes](Self::dispose) of the runtime first.
    pub async fn shutdown_requested(&self) {
        self.shared.end_requested.cancelled().await;
        if let Ok(session) = self.session() {
            session.wait_for_idle().await;
        }
    }

    /// Whether an extension has asked the program to end.
    pub fn is_shutdown_requested(&self) -> bool {
        self.shared.end_requested.is_cancelled()
    }

    /// What commands of extensions reach of this runtime: for a host of the program's own that does more.
    pub fn extension_host(&self) -> impl ExtensionHost + use<> {
        RuntimeHost::of(&self.shared)
    }

    fn host_extensions_of(&self, session: &AgentSession) {
        if session.extensions().host().is_none() {
            session.extensions().set_host(RuntimeHost::of(&self.shared));
        }
    }

    /// The session that is there now. It ends when it is replaced, so a host asks anew instead of keeping it.
    ///
    /// # Errors
    /// After [`dispose`](Self::dispose), and when neither the next session nor the one before could be made.
    pub fn session(&self) -> Result<AgentSession, RuntimeError> {
        lock(&self.shared.current).clone().ok_or(RuntimeError::Ended)
    }

    /// As [`session`](Self::session), after the replacement that is under way, if there is one: a command may return
    /// before the session that it asked for is there.
    ///
    /// # Errors
    /// As [`session`](Self::session).
    pub async fn settled_session(&self) -> Result<AgentSession, RuntimeError> {
        let _replacing = self.shared.replacing.lock().await;
        self.session()
    }

    /// Is told what happens in every session, as [`AgentSession::subscribe`] does for one.
    pub fn subscribe(&self, listener: impl AsyncHook<SessionEvent, ListenerContext, ()>) -> RuntimeSubscription {
        let listen = {
            let listener = listener.clone();
            move |session: AgentSession| session.subscribe(listener.clone())
        };
        let now = self.session().ok().map(&listen);
        let bind: Bind = Arc::new(move |session, _| {
            let subscription = listen(session);
            Box::pin(async move { Some(subscription) })
        });
        self.bind(bind, now)
    }

    /// Is told of every session that takes the place of another, after the listeners are bound to it and before its
    /// operation returns.
    pub fn on_session(&self, hook: impl AsyncHook<AgentSession, SessionStart, ()>) -> RuntimeSubscription {
        let bind: Bind = Arc::new(move |session, start| {
            let told = hook.run(session, start);
            Box::pin(async move {
                told.await;
                None
            })
        });
        self.bind(bind, None)
    }

    fn bind(&self, bind: Bind, now: Option<Subscription>) -> RuntimeSubscription {
        let mut bound = lock(&self.shared.bound);
        let number = bound.next;
        bound.next += 1;
        bound.list.push((number, bind));
        bound.subscriptions.extend(now.map(|subscription| (number, subscription)));
        RuntimeSubscription { bound: Arc::downgrade(&self.shared.bound), number }
    }

    /// Begins anew, where the sessions of the one that is there are kept. Its header can name the session that it comes
    /// from.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn new_session(&self, parent_session: Option<PathBuf>) -> Result<AgentSession, RuntimeError> {
        let replacing = self.shared.replacing.lock().await;
        let session = self.session()?;
        may_switch(&session, SwitchReason::New, None).await?;
        let next = empty_beside(session.session_manager(), parent_session)?;
        drop(session);
        self.replace_locked(next, StartReason::New, &replacing).await
    }

    /// Goes on with a session file, in the folder that it worked in, or in `cwd`. The session that is there already is
    /// left as it is.
    ///
    /// # Errors
    /// When it cannot be read, somebody else is writing to it, or its folder is gone. Then the session that is there goes
    /// on.
    pub async fn switch_to(&self, path: &Path, cwd: Option<&Path>) -> Result<AgentSession, RuntimeError> {
        let replacing = self.shared.replacing.lock().await;
        self.switch_locked(path, cwd, &replacing).await
    }

    async fn switch_locked(
        &self,
        path: &Path,
        cwd: Option<&Path>,
        replacing: &tokio::sync::MutexGuard<'_, ()>,
    ) -> Result<AgentSession, RuntimeError> {
        let session = self.session()?;
        if session.session_manager().path().is_some_and(|current| is_same_file(&current, path)) {
            return Ok(session);
        }
        may_switch(&session, SwitchReason::Resume, Some(path)).await?;
        self.resume_locked(session, path, cwd, replacing).await
    }

    async fn resume_locked(
        &self,
        session: AgentSession,
        path: &Path,
        cwd: Option<&Path>,
        replacing: &tokio::sync::MutexGuard<'_, ()>,
    ) -> Result<AgentSession, RuntimeError> {
        let environment = session.session_manager().environment().clone();
        let usual = session.session_manager().cwd().to_owned();
        drop(session);
        let next = open(path, Access::Write, cwd, &usual, environment).await?;
        self.replace_locked(next, StartReason::Resume, replacing).await
    }

    /// Goes on from an earlier place, in a session of its own; the one that is there stays as it is.
    ///
    /// # Errors
    /// When there is no such entry, it is no message of the user (for [`ForkPosition::Before`]), nothing was said yet, or
    /// the fork cannot be written.
    pub async fn fork(&self, entry: &EntryId, position: ForkPosition) -> Result<Forked, RuntimeError> {
        let replacing = self.shared.replacing.lock().await;
        let session = self.session()?;
        let ForkedRecord { record, text } = session.fork(entry, position).await?;
        drop(session);
        let session = self.replace_locked(record, StartReason::Fork, &replacing).await?;
        Ok(Forked { session, text })
    }

    /// Copies a session file to the sessions of the one that is there, and goes on with the copy; it keeps its id, and
    /// its folder unless another is named. A file that lies there already is not copied.
    ///
    /// # Errors
    /// As [`switch_to`](Self::switch_to); nothing is copied then.
    pub async fn import(&self, path: &Path, cwd: Option<&Path>) -> Result<AgentSession, RuntimeError> {
        let replacing = self.shared.replacing.lock().await;
        let session = self.session()?;
        let manager = session.session_manager().clone();
        let folder = folder_of(&manager.persistence())?;
        let (usual, environment) = (manager.cwd().to_owned(), manager.environment().clone());
        drop(manager);
        if path.parent().is_some_and(|parent| is_same_file(parent, &folder)) {
            return self.switch_locked(path, cwd, &replacing).await;
        }
        open(path, Access::ReadOnly, cwd, &usual, environment.clone()).await?;
        may_switch(&session, SwitchReason::Resume, Some(path)).await?;
        let folder = SessionFolder::chosen(&folder, &folder, &usual);
        let copy = SessionManager::import(path, &folder, environment).await?;
        self.resume_locked(session, &copy, cwd, &replacing).await
    }

    /// Goes on with another record, which the application opened or made itself.
    ///
    /// # Errors
    /// When the session cannot be made.
    pub async fn replace(&self, manager: SessionManager, reason: StartReason) -> Result<AgentSession, RuntimeError> {
        let replacing = self.shared.replacing.lock().await;
        self.replace_locked(manager, reason, &replacing).await
    }

    async fn replace_locked(
        &self,
        next: SessionManager,
        reason: StartReason,
        _replacing: &tokio::sync::MutexGuard<'_, ()>,
    ) -> Result<AgentSession, RuntimeError> {
        let before = self.session()?;
        let record = before.session_manager().clone();
        let start = SessionStart { reason, previous_file: record.path() };
        let ended = before.end(SessionShutdownEvent::new(reason.into(), next.path())).await;
        lock(&self.shared.bound).subscriptions.clear();
        match (self.shared.factory)(next, start.clone()).await {
            Ok(session) => {
                // Whoever still holds the old session can read it, and somebody else may write to it.
                let closed = record.close().await;
                self.settle(Some(session.clone()), start).await;
                ended?;
                closed?;
                Ok(session)
            }
            Err(error) => {
                let again = SessionStart { reason: StartReason::Resume, previous_file: record.path() };
                let session = (self.shared.factory)(record, again.clone()).await.ok();
                self.settle(session, again).await;
                Err(error.into())
            }
        }
    }

    /// Makes a session the one that is there, and binds everybody to it.
    async fn settle(&self, session: Option<AgentSession>, start: SessionStart) {
        lock(&self.shared.current).clone_from(&session);
        let Some(session) = session else { return };
        self.host_extensions_of(&session);
        let list = lock(&self.shared.bound).list.clone();
        for (number, bind) in list {
            let (session, start) = (session.clone(), start.clone());
            // The call builds the future inside the guarded block, because that may panic too.
            let binding = AssertUnwindSafe(async move { bind(session, start).await }).catch_unwind().await;
            let Ok(subscription) = binding else {
                tracing::error!("a listener of the runtime panicked when it was bound to another session");
                continue;
            };
            let mut bound = lock(&self.shared.bound);
            // It may have ended meanwhile.
            if bound.list.iter().any(|(other, _)| *other == number) {
                bound.subscriptions.extend(subscription.map(|subscription| (number, subscription)));
            }
        }
    }

    /// Ends the session that is there in order, see [`AgentSession::dispose`]. Nothing takes its place.
    ///
    /// # Errors
    /// When its record cannot be completed.
    pub async fn dispose(self) -> Result<(), RuntimeError> {
        let _replacing = self.shared.replacing.lock().await;
        let session = lock(&self.shared.current).take();
        if let Some(session) = session {
            session.dispose().await?;
        }
        *lock(&self.shared.bound) = Bound::default();
        Ok(())
    }
}

impl fmt::Debug for AgentSessionRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSessionRuntime").field("session", &*lock(&self.shared.current)).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks the extensions whether another session may take this one's place.
async fn may_switch(session: &AgentSession, reason: SwitchReason, target: Option<&Path>) -> Result<(), RuntimeError> {
    let event = SessionBeforeSwitchEvent::new(reason, target.map(Path::to_owned));
    match session.extensions().session_before_switch(event).await {
        SwitchDecision::Proceed => Ok(()),
        SwitchDecision::Cancel => Err(RuntimeError::Cancelled),
    }
}

/// Why the session before ends.
impl From<StartReason> for ShutdownReason {
    fn from(reason: StartReason) -> Self {
        match reason {
            StartReason::Startup => Self::Quit,
            StartReason::New => Self::New,
            StartReason::Resume => Self::Resume,
            StartReason::Fork => Self::Fork,
        }
    }
}

/// Opens a session in its folder, unless that is gone, or in another one.
async fn open(
    path: &Path,
    access: Access,
    cwd: Option<&Path>,
    usual: &Path,
    environment: SessionEnvironment,
) -> Result<SessionManager, RuntimeError> {
    let manager = SessionManager::open(path, access, usual, environment).await?;
    if let Some(cwd) = cwd {
        return Ok(manager.in_folder(cwd));
    }
    let cwd = manager.cwd().to_owned();
    match tokio::fs::metadata(&cwd).await {
        Ok(metadata) if metadata.is_dir() => Ok(manager),
        _ => Err(RuntimeError::FolderGone { cwd, path: path.to_owned() }),
    }
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
