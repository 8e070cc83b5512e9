//! Loads extensions, keeps what they bring and calls their handlers.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::future::join_all;
use pi_ai::{CancellationToken, Model, models::Models};
use tokio::task::JoinSet;

use super::{
    Event, EventKind, Extension, ExtensionApi, ExtensionContext, ExtensionError, ExtensionFailure, ExtensionHost,
    FailurePlace, FlagValues, HandlerId,
    api::{KeptRunning, ProviderChange, Registrations},
    contain::contained,
    context::WeakContext,
    handlers::{HandlerTable, Registered},
    ui::{ExtensionUi, NoUi, UiUpdate},
};
use crate::agent_session::WeakAgentSession;

/// Failures that are kept while nobody listens.
const MOST_FAILURES: usize = 100;

/// The extensions of one session. Clones are handles.
///
/// It calls handlers in their order, one at a time, and contains them: a failure or a panic is reported with the
/// extension's name, and the session goes on. What no handler waits for is never built.
#[derive(Clone)]
pub struct ExtensionRunner {
    shared: Arc<Shared>,
}

/// The extensions of a session, without keeping them.
#[derive(Clone, Default)]
pub(super) struct WeakRunner(Weak<Shared>);

impl WeakRunner {
    pub(super) fn upgrade(&self) -> Option<ExtensionRunner> {
        Some(ExtensionRunner { shared: self.0.upgrade()? })
    }
}

impl fmt::Debug for WeakRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakRunner")
    }
}

struct Shared {
    extensions: Vec<Arc<dyn Extension>>,
    table: HandlerTable,
    loaded: Mutex<Arc<[Arc<Loaded>]>>,
    flags: FlagValues,
    failures: Mutex<Vec<ExtensionFailure>>,
    session: OnceLock<WeakAgentSession>,
    /// Over when the session is.
    lifetime: OnceLock<CancellationToken>,
    models: OnceLock<Models>,
    ui: Mutex<Arc<dyn ExtensionUi>>,
    open_prompts: Mutex<usize>,
    host: Mutex<Option<Arc<dyn ExtensionHost>>>,
    /// Whether an extension wanted the program to end before there was a host.
    should_end: AtomicBool,
    /// What goes on beside the session; it ends with it.
    tasks: Mutex<JoinSet<()>>,
}

/// An extension that was loaded.
pub(super) struct Loaded {
    pub(super) name: Arc<str>,
    /// Its place in the order of loading.
    pub(super) place: usize,
    /// Whether it was not loaded again since.
    is_current: AtomicBool,
    /// What it brings, besides its handlers.
    brings: Mutex<Registrations>,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Loaded {
    pub(super) fn is_current(&self) -> bool {
        self.is_current.load(Ordering::Acquire)
    }

    pub(super) fn brings(&self) -> MutexGuard<'_, Registrations> {
        lock(&self.brings)
    }
}

impl Default for ExtensionRunner {
    fn default() -> Self {
        Self::new(Vec::new(), FlagValues::new())
    }
}

impl ExtensionRunner {
    /// A runner of extensions that are not loaded yet, with what the command line said about flags.
    pub fn new(extensions: Vec<Arc<dyn Extension>>, flags: FlagValues) -> Self {
        let nothing: Arc<[Arc<Loaded>]> = Arc::new([]);
        let shared = Shared {
            extensions,
            table: HandlerTable::default(),
            loaded: Mutex::new(nothing),
            flags,
            failures: Mutex::default(),
            session: OnceLock::new(),
            lifetime: OnceLock::new(),
            models: OnceLock::new(),
            ui: Mutex::new(Arc::new(NoUi)),
            open_prompts: Mutex::default(),
            host: Mutex::default(),
            should_end: AtomicBool::new(false),
            tasks: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Loads every extension, in order. One that fails is left out and reported; the others are loaded all the same.
    ///
    /// What was loaded before is forgotten: its contexts answer with errors from then on.
    pub async fn load(&self) {
        self.forget();
        for (place, extension) in self.shared.extensions.iter().enumerate() {
            let name: Arc<str> = extension.name().into();
            let loaded = Arc::new(Loaded {
                name: name.clone(),
                place,
                is_current: AtomicBool::new(true),
                brings: Mutex::default(),
            });
            let mut api = ExtensionApi::of(WeakContext::new(self.downgrade(), &loaded));
            let registered = contained(&CancellationToken::new(), || extension.register(&mut api)).await;
            match registered {
                Ok(()) => {
                    let mut all = lock(&self.shared.loaded);
                    *all = all.iter().cloned().chain([loaded.clone()]).collect();
                    drop(all);
                    self.take_in(&loaded, api.brings);
                }
                Err(error) => {
                    self.report(failure(&name, FailurePlace::Loading, &error)).await;
                }
            }
        }
    }

    pub(super) fn downgrade(&self) -> WeakRunner {
        WeakRunner(Arc::downgrade(&self.shared))
    }

    /// Ends what extensions keep running, all at once. Each does that within bounds. What is registered stays, but
    /// programs behind it answer no more until the extensions are loaded again.
    pub async fn close(&self) {
        join_all(self.kept_running().into_iter().map(KeptRunning::close)).await;
    }

    /// Ends what extensions keep running, at once and without waiting: for a program that quits.
    pub(crate) fn kill(&self) {
        self.kept_running().iter().for_each(|kept| kept.kill());
    }

    fn kept_running(&self) -> Vec<Arc<dyn KeptRunning>> {
        self.loaded().iter().flat_map(|loaded| loaded.brings().kept_running.clone()).collect()
    }

    /// Cancelled when the session is over; never, as long as there is none.
    pub(super) fn lifetime(&self) -> CancellationToken {
        self.shared.lifetime.get().cloned().unwrap_or_default()
    }

    /// A model of those that the session knows.
    pub(super) fn find_model(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        self.shared.models.get()?.find(provider, id)
    }

    /// Forgets what was loaded.
    fn forget(&self) {
        self.shared.table.clear();
        let before = std::mem::take(&mut *lock(&self.shared.loaded));
        before.iter().for_each(|loaded| loaded.is_current.store(false, Ordering::Release));
    }

    /// Puts registrations to use.
    pub(super) fn take_in(&self, loaded: &Arc<Loaded>, mut brings: Registrations) {
        self.shared.table.add(loaded, std::mem::take(&mut brings.handlers));
        if let Some(models) = self.shared.models.get() {
            apply_providers(models, &brings.providers);
        }
        let mut all = loaded.brings();
        all.tools.extend(brings.tools);
        all.commands.extend(brings.commands);
        all.flags.extend(brings.flags);
        all.shortcuts.extend(brings.shortcuts);
        all.providers.extend(brings.providers);
        all.entry_renderers.extend(brings.entry_renderers);
        all.message_renderers.extend(brings.message_renderers);
        all.bus.extend(brings.bus);
        all.kept_running.extend(brings.kept_running);
    }

    pub(super) fn off(&self, handler: HandlerId) {
        self.shared.table.remove(handler);
    }

    /// Gives the extensions their session. It is done once.
    pub(crate) fn bind(&self, session: WeakAgentSession, lifetime: CancellationToken) {
        let _ = self.shared.lifetime.set(lifetime);
        // A second session would have to bring a runner of its own; the first one stays.
        let _ = self.shared.session.set(session);
    }

    /// Gives the extensions the models that they may add to, and adds what waited.
    pub(crate) fn bind_models(&self, models: &Models) {
        if self.shared.models.set(models.clone()).is_ok() {
            for loaded in self.loaded().iter() {
                apply_providers(models, &loaded.brings().providers);
            }
        }
    }

    /// Lets extensions ask the user. It can be changed at any time.
    pub fn set_ui(&self, ui: impl ExtensionUi) {
        *lock(&self.shared.ui) = Arc::new(ui);
    }

    /// Lets commands replace the session and end the program.
    pub fn set_host(&self, host: impl ExtensionHost) {
        let host: Arc<dyn ExtensionHost> = Arc::new(host);
        *lock(&self.shared.host) = Some(host.clone());
        if self.shared.should_end.swap(false, Ordering::AcqRel) {
            host.shutdown();
        }
    }

    /// Has the program end as soon as the session is idle. Without a host it is remembered for the one to come.
    pub(super) fn ask_to_end(&self) {
        match self.host() {
            Some(host) => host.shutdown(),
            None => self.shared.should_end.store(true, Ordering::Release),
        }
    }

    /// The session is over: contexts answer with errors from now on. What the extensions draw stays.
    pub(crate) fn retire(&self) {
        self.loaded().iter().for_each(|loaded| loaded.is_current.store(false, Ordering::Release));
    }

    pub(super) fn ui(&self) -> Arc<dyn ExtensionUi> {
        lock(&self.shared.ui).clone()
    }

    /// Has the user go on from a text.
    pub(crate) fn put_into_editor(&self, text: String) {
        self.ui().show(UiUpdate::SetEditorText { text });
    }

    /// One more question is open, or one less. Whether the first one was opened, or the last one closed.
    pub(super) fn count_prompts(&self, change: isize) -> bool {
        let mut open = lock(&self.shared.open_prompts);
        let before = *open;
        *open = open.saturating_add_signed(change);
        (before == 0) != (*open == 0)
    }

    pub(crate) fn host(&self) -> Option<Arc<dyn ExtensionHost>> {
        lock(&self.shared.host).clone()
    }

    pub(super) fn session(&self) -> Option<&WeakAgentSession> {
        self.shared.session.get()
    }

    /// Has something go on beside the session. It ends with it at the latest.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.shared.tasks);
        while tasks.try_join_next().is_some() {}
        let lifetime = self.lifetime();
        tasks.spawn(async move {
            tokio::select! {
                () = task => {}
                () = lifetime.cancelled() => {}
            }
        });
    }

    /// Ends what goes on beside the session.
    pub(crate) fn end_tasks(&self) {
        lock(&self.shared.tasks).abort_all();
    }

    /// What the command line said about flags.
    pub(super) fn given_flags(&self) -> &FlagValues {
        &self.shared.flags
    }

    pub(super) fn loaded(&self) -> Arc<[Arc<Loaded>]> {
        lock(&self.shared.loaded).clone()
    }

    /// The names of the extensions that are loaded, in order.
    pub fn extensions(&self) -> Vec<String> {
        self.loaded().iter().map(|loaded| loaded.name.to_string()).collect()
    }

    /// Whether anybody handles an event.
    pub fn has_handlers(&self, kind: EventKind) -> bool {
        self.shared.table.has(kind)
    }

    pub(super) fn handlers(&self, kind: EventKind) -> Arc<[Registered]> {
        self.shared.table.of(kind)
    }

    /// Tells handlers of something. `payload` is only called when there is one.
    pub async fn notify<E: Event<Outcome = ()>>(
        &self,
        _event: E,
        signal: &CancellationToken,
        payload: impl FnOnce() -> E::Payload,
    ) {
        if !self.has_handlers(E::KIND) {
            return;
        }
        let payload = payload();
        for handler in self.handlers(E::KIND).iter() {
            self.ask::<E>(handler, payload.clone(), signal).await;
        }
    }

    /// Asks a handler. A failure is reported, and counts as no answer.
    pub(super) async fn ask<E: Event>(
        &self,
        handler: &Registered,
        payload: E::Payload,
        signal: &CancellationToken,
    ) -> Option<E::Outcome> {
        match self.try_ask::<E>(handler, payload, signal).await {
            Ok(outcome) => Some(outcome),
            Err(failure) => {
                self.report(failure).await;
                None
            }
        }
    }

    /// Asks a handler.
    pub(super) async fn try_ask<E: Event>(
        &self,
        handler: &Registered,
        payload: E::Payload,
        signal: &CancellationToken,
    ) -> Result<E::Outcome, ExtensionFailure> {
        let context = self.context_of(&handler.extension, signal);
        let asked = contained(signal, || {
            let run = handler.of::<E>().map(|run| run(payload, context));
            async move {
                match run {
                    Some(running) => running.await,
                    None => Err(ExtensionError::new("the handler is one of another event")),
                }
            }
        });
        asked.await.map_err(|error| failure(&handler.extension.name, FailurePlace::Event(E::KIND), &error))
    }

    pub(super) fn context_of(&self, extension: &Arc<Loaded>, signal: &CancellationToken) -> ExtensionContext {
        ExtensionContext::new(self.clone(), extension.clone(), signal.clone())
    }

    /// Says what went wrong: to the session's listeners, or, as long as there are none, in [`failures`](Self::failures).
    pub(super) async fn report(&self, failure: ExtensionFailure) {
        tracing::warn!(extension = failure.extension, place = %failure.place, "{}", failure.message);
        let untold = match self.session() {
            Some(session) => session.tell_extension_failure(failure).await,
            None => Some(failure),
        };
        let mut failures = lock(&self.shared.failures);
        // Without anybody who listens they would be kept without end.
        if failures.len() < MOST_FAILURES {
            failures.extend(untold);
        }
    }

    /// What went wrong before anybody listened to the session: the first hundred failures.
    pub fn failures(&self) -> Vec<ExtensionFailure> {
        lock(&self.shared.failures).clone()
    }
}

pub(super) fn failure(extension: &str, place: FailurePlace, error: &ExtensionError) -> ExtensionFailure {
    ExtensionFailure { extension: extension.to_owned(), place, message: error.to_string() }
}

fn apply_providers(models: &Models, changes: &[ProviderChange]) {
    for change in changes {
        match change {
            ProviderChange::Register(provider) => models.register((**provider).clone()),
            ProviderChange::Unregister(id) => models.unregister(id),
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for ExtensionRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtensionRunner")
            .field("extensions", &self.extensions())
            .field("handled", &self.shared.table)
            .finish_non_exhaustive()
    }
}
