//! Who handles which event.

use std::{
    any::Any,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use futures::future::BoxFuture;

use super::{Event, EventKind, ExtensionContext, ExtensionError, runner::Loaded};

/// A handler of one event.
pub(super) type HandlerFn<E> = dyn Fn(<E as Event>::Payload, ExtensionContext) -> BoxFuture<'static, Result<<E as Event>::Outcome, ExtensionError>>
    + Send
    + Sync;

/// Names a handler, so that it can be taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HandlerId(u64);

impl HandlerId {
    /// A new one, different from all others of this process.
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A handler of some event, before it is known whose it is.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) id: HandlerId,
    pub(super) kind: EventKind,
    /// An `Arc<HandlerFn<E>>` of the event of that kind.
    run: Arc<dyn Any + Send + Sync>,
    /// Whether it was taken away, before it was in use.
    pub(super) is_removed: Arc<AtomicBool>,
}

impl Handler {
    pub(super) fn new<E: Event>(run: Arc<HandlerFn<E>>) -> Self {
        Self { id: HandlerId::new(), kind: E::KIND, run: Arc::new(run), is_removed: Arc::default() }
    }
}

/// A handler in use.
#[derive(Clone)]
pub(super) struct Registered {
    id: HandlerId,
    pub(super) extension: Arc<Loaded>,
    run: Arc<dyn Any + Send + Sync>,
}

impl Registered {
    /// The handler itself. `None` cannot be: the list of an event holds handlers of that event only.
    pub(super) fn of<E: Event>(&self) -> Option<&HandlerFn<E>> {
        self.run.downcast_ref::<Arc<HandlerFn<E>>>().map(AsRef::as_ref)
    }
}

/// Every handler, by event. Asking whether there is any costs one load; what is handled is not built otherwise.
pub(super) struct HandlerTable {
    counts: [AtomicUsize; EventKind::ALL.len()],
    /// In the order in which they run. Copied when they change, so that a dispatch in progress is not affected.
    lists: Mutex<[Arc<[Registered]>; EventKind::ALL.len()]>,
}

impl Default for HandlerTable {
    fn default() -> Self {
        let nothing: Arc<[Registered]> = Arc::new([]);
        Self {
            counts: std::array::from_fn(|_| AtomicUsize::new(0)),
            lists: Mutex::new(std::array::from_fn(|_| nothing.clone())),
        }
    }
}

impl HandlerTable {
    /// Whether anybody handles the event.
    pub(super) fn has(&self, kind: EventKind) -> bool {
        self.counts[kind as usize].load(Ordering::Acquire) != 0
    }

    /// The handlers of an event as they are now.
    pub(super) fn of(&self, kind: EventKind) -> Arc<[Registered]> {
        self.lists()[kind as usize].clone()
    }

    /// Adds handlers of an extension: behind its own, before those of extensions that were loaded later.
    pub(super) fn add(&self, extension: &Arc<Loaded>, handlers: impl IntoIterator<Item = Handler>) {
        let mut lists = self.lists();
        for handler in handlers {
            if handler.is_removed.load(Ordering::Acquire) {
                continue;
            }
            let registered = Registered { id: handler.id, extension: extension.clone(), run: handler.run };
            self.change(&mut lists, handler.kind, |list| {
                let at = list.partition_point(|other| other.extension.place <= extension.place);
                list.insert(at, registered);
            });
        }
    }

    /// Takes a handler away.
    pub(super) fn remove(&self, id: HandlerId) {
        self.retain(|registered| registered.id != id);
    }

    /// Takes everything away.
    pub(super) fn clear(&self) {
        self.retain(|_| false);
    }

    fn retain(&self, stays: impl Fn(&Registered) -> bool) {
        let mut lists = self.lists();
        for kind in EventKind::ALL {
            if lists[*kind as usize].iter().any(|registered| !stays(registered)) {
                self.change(&mut lists, *kind, |list| list.retain(&stays));
            }
        }
    }

    fn change(
        &self,
        lists: &mut [Arc<[Registered]>; EventKind::ALL.len()],
        kind: EventKind,
        change: impl FnOnce(&mut Vec<Registered>),
    ) {
        let list = &mut lists[kind as usize];
        let mut changed = list.to_vec();
        change(&mut changed);
        *list = changed.into();
        self.counts[kind as usize].store(list.len(), Ordering::Release);
    }

    fn lists(&self) -> MutexGuard<'_, [Arc<[Registered]>; EventKind::ALL.len()]> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for HandlerTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let handled = EventKind::ALL.iter().filter(|kind| self.has(**kind));
        f.debug_set().entries(handled.map(|kind| kind.as_str())).finish()
    }
}
