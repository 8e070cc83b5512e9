//! The program behind an extension: started when something of it is used, ended with its session.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pi_agent_core::ToolContext;
use pi_ai::CancellationToken;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};
use tokio_util::task::AbortOnDropHandle;

use super::{
    connection::{CallClock, CallError, Connection, Patience},
    context::Described,
    limits,
    manifest::{Manifest, PROTOCOL, RestartPolicy},
    serve::{Ending, serve},
};
use crate::{
    extensions::{
        CommandContext, EventKind, ExtensionContext, ExtensionError, FailurePlace, context::WeakContext,
        runner::failure,
    },
    messages::SessionMessage,
    workspace::local::{Environment, LocalProgram, launch::Launch},
};

/// The program of one extension in one session. Dropped, it is ended at once.
#[derive(Debug)]
pub(super) struct Program {
    shared: Arc<Shared>,
    /// What starts it, serves it and ends it; it ends with the program.
    keeper: Mutex<Option<AbortOnDropHandle<()>>>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) manifest: Arc<Manifest>,
    environment: Arc<Environment>,
    pub(super) context: WeakContext,
    phase: watch::Sender<Phase>,
    failures: Mutex<Failures>,
    described: Mutex<Described>,
}

/// What the program is doing.
#[derive(Clone, Debug)]
enum Phase {
    /// It does not run, and may be started.
    Idle,
    Starting,
    Up(Arc<Connection>),
    /// It crashed, and may be started again from then on.
    Waiting(Instant),
    GivenUp(Arc<str>),
    /// The session is over.
    Ended,
}

#[derive(Debug, Default)]
struct Failures {
    /// When it failed, within the window.
    at: VecDeque<Instant>,
    last: Option<Arc<str>>,
    runs: u32,
}

impl Program {
    pub(super) fn new(manifest: Arc<Manifest>, environment: Arc<Environment>, context: WeakContext) -> Self {
        let shared = Shared {
            manifest,
            environment,
            context,
            phase: watch::channel(Phase::Idle).0,
            failures: Mutex::default(),
            described: Mutex::default(),
        };
        Self { shared: Arc::new(shared), keeper: Mutex::default() }
    }

    pub(super) fn manifest(&self) -> &Arc<Manifest> {
        &self.shared.manifest
    }

    /// The program, started when it does not run. A call starts it once at most.
    async fn connection(&self) -> Result<Arc<Connection>, CallError> {
        let mut phase = self.shared.phase.subscribe();
        let mut waited = false;
        loop {
            let now = phase.borrow_and_update().clone();
            match now {
                Phase::Up(connection) if !connection.over.is_cancelled() => return Ok(connection),
                Phase::GivenUp(why) => return Err(CallError::GivenUp(why)),
                Phase::Ended => return Err(CallError::ShutDown),
                Phase::Idle | Phase::Waiting(_) if waited => {
                    let why = lock(&self.shared.failures).last.clone();
                    return Err(CallError::NotStarted(why.unwrap_or_else(|| "the program ended at once".into())));
                }
                Phase::Waiting(until) if until > Instant::now() => {
                    tokio::select! {
                        () = tokio::time::sleep_until(until) => {}
                        _ = phase.changed() => {}
                    }
                }
                Phase::Idle | Phase::Waiting(_) => {
                    waited = true;
                    self.start();
                }
                // Dying or being born.
                Phase::Up(_) => drop(phase.changed().await),
                Phase::Starting => {
                    waited = true;
                    let _ = phase.changed().await;
                }
            }
        }
    }

    /// Starts it, unless somebody else has just done that.
    fn start(&self) {
        let mut keeper = lock(&self.keeper);
        let begins = self.shared.phase.send_if_modified(|phase| {
            let begins = matches!(phase, Phase::Idle | Phase::Waiting(_));
            if begins {
                *phase = Phase::Starting;
            }
            begins
        });
        if begins {
            *keeper = Some(AbortOnDropHandle::new(tokio::spawn(keep(self.shared.clone()))));
        }
    }

    /// Asks the program something.
    pub(super) async fn ask(
        &self,
        method: &str,
        params: &impl Serialize,
        patience: Patience,
        signal: &CancellationToken,
    ) -> Result<Value, CallError> {
        let connection = self.reach(signal).await?;
        connection.call(connection.next_id(), method, params, patience, signal).await
    }

    /// The program, unless the caller is aborted before it runs.
    async fn reach(&self, signal: &CancellationToken) -> Result<Arc<Connection>, CallError> {
        tokio::select! {
            biased;
            connection = self.connection() => connection,
            () = signal.cancelled() => Err(CallError::Aborted),
        }
    }

    /// Has the program handle an event and gives its answer.
    pub(super) async fn event(
        &self,
        kind: EventKind,
        event: &Value,
        signal: &CancellationToken,
    ) -> Result<Value, ExtensionError> {
        let method = method_of(kind);
        let patience = self.patience_for(kind);
        let answered = match is_only_told(kind) {
            false => self.ask(&method, event, patience, signal).await,
            true => match self.reach(signal).await {
                Ok(connection) => connection.tell(&method, event, patience.time).await.map(|()| Value::Null),
                Err(error) => Err(error),
            },
        };
        Self::without_repeats(kind, answered)
    }

    /// Has the program handle `context`: it is told of the messages, and may read them while it does.
    pub(super) async fn context_event(
        &self,
        kind: EventKind,
        messages: Vec<SessionMessage>,
        signal: &CancellationToken,
    ) -> Result<Value, ExtensionError> {
        let answered = async {
            let connection = self.reach(signal).await?;
            let id = connection.next_id();
            let described = lock(&self.shared.described).describe(&messages);
            let messages = Arc::new(messages);
            let _shown = connection.showing_list(id, messages);
            let params = json!({"type": kind.as_str(), "list": id, "messages": described});
            connection.call(id, &method_of(kind), &params, self.patience_for(kind), signal).await
        };
        Self::without_repeats(kind, answered.await)
    }

    /// What was said once need not be said with every event, where nothing depends on the answer.
    fn without_repeats(kind: EventKind, answered: Result<Value, CallError>) -> Result<Value, ExtensionError> {
        match answered {
            Err(CallError::GivenUp(_)) if !is_gate(kind) => Ok(Value::Null),
            other => Ok(other?),
        }
    }

    fn patience_for(&self, kind: EventKind) -> Patience {
        let own = self.manifest().events.iter().find(|(other, _)| *other == kind);
        let own = own.and_then(|(_, subscription)| subscription.timeout_ms).map(Duration::from_millis);
        Patience { time: own.unwrap_or(self.manifest().timeouts.event), clock: CallClock::WhenNotBusy }
    }

    /// Has the program run a tool.
    pub(super) async fn run_tool(
        &self,
        params: &Value,
        time: Duration,
        context: ToolContext,
    ) -> Result<Value, CallError> {
        let signal = context.signal.clone();
        let connection = self.reach(&signal).await?;
        let _running = connection.running_tool(context);
        let patience = Patience { time, clock: CallClock::KeepsBusy };
        connection.call(connection.next_id(), "tool/execute", params, patience, &signal).await
    }

    /// Has the program run a command or a shortcut.
    pub(super) async fn run_command(
        &self,
        method: &str,
        params: &Value,
        time: Duration,
        context: CommandContext,
    ) -> Result<(), ExtensionError> {
        let signal = context.signal().clone();
        let connection = self.reach(&signal).await?;
        let id = connection.next_id();
        let _running = connection.running_command(id, context);
        let patience = Patience { time, clock: CallClock::KeepsBusy };
        match connection.call(id, method, params, patience, &signal).await {
            Ok(_) => Ok(()),
            // It asked for its own end: another session, or its extensions again.
            Err(CallError::Ended(_)) if connection.closing.is_cancelled() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the program at once, without waiting.
    pub(super) fn kill(&self) {
        if let Phase::Up(connection) = &*self.shared.phase.borrow() {
            connection.kill();
        }
    }

    /// Ends the program in order: tells it, closes its input, and ends what is left of it.
    pub(super) async fn close(&self) {
        let before = self.shared.phase.send_replace(Phase::Ended);
        match before {
            Phase::Up(connection) => {
                if !connection.over.is_cancelled() {
                    connection.closing.cancel();
                    let patience = Patience { time: self.manifest().timeouts.shutdown, clock: CallClock::Always };
                    let (nothing, never) = (json!({}), CancellationToken::new());
                    // Whatever it answers, it is ended.
                    let _ = connection.call(connection.next_id(), "shutdown", &nothing, patience, &never).await;
                    connection.fail("it was shut down");
                }
                // Its keeper closes its input and ends it within bounds.
                connection.gone.cancelled().await;
            }
            Phase::Starting | Phase::Idle | Phase::Waiting(_) | Phase::GivenUp(_) | Phase::Ended => {}
        }
        drop(lock(&self.keeper).take());
    }
}

fn method_of(kind: EventKind) -> String {
    format!("event/{}", kind.as_str())
}

/// Whether nobody waits for the program: it is told of these many times in a second.
fn is_only_told(kind: EventKind) -> bool {
    matches!(kind, EventKind::MessageUpdate | EventKind::ToolExecutionUpdate | EventKind::ProviderStreamEvent)
}

/// Whether something is refused when the program does not answer.
fn is_gate(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::ProjectTrust
            | EventKind::ToolCall
            | EventKind::UserBash
            | EventKind::SessionBeforeSwitch
            | EventKind::SessionBeforeFork
            | EventKind::SessionBeforeCompact
            | EventKind::SessionBeforeTree
    )
}

/// One run of the program: starts it, serves it, and says how it ended.
async fn keep(shared: Arc<Shared>) {
    let ended = run(&shared).await;
    let next = match ended {
        Ok(()) => Phase::Idle,
        Err(why) => {
            let (next, notice) = shared.count_failure(&why);
            shared.report(notice).await;
            next
        }
    };
    shared.phase.send_if_modified(|phase| {
        let goes_on = !matches!(phase, Phase::Ended);
        if goes_on {
            *phase = next;
        }
        goes_on
    });
}

/// Runs the program to its end. `Ok`: it was to end.
async fn run(shared: &Arc<Shared>) -> Result<(), String> {
    let manifest = &shared.manifest;
    let folder = manifest.folder().to_owned();
    let command = Launch::find(&manifest.command, &folder, &shared.environment, &manifest.environment)?;
    let name = command.name().to_owned();
    let (program, pipes) =
        LocalProgram::start(command).await.map_err(|error| format!("`{name}` could not be started: {error}"))?;
    let (connection, to_write) = Connection::new();
    let _gone = connection.gone.clone().drop_guard();
    let mut serving = std::pin::pin!(serve(shared.clone(), connection.clone(), program, pipes, to_write));
    let greeting = shared.greeting();
    let hello = async {
        let patience = Patience { time: manifest.timeouts.start, clock: CallClock::Always };
        let never = CancellationToken::new();
        let id = connection.next_id();
        match connection.call(id, "initialize", &greeting, patience, &never).await {
            Ok(answer) => check_greeting(&answer),
            // How it ended says more.
            Err(CallError::Ended(_) | CallError::TimedOut(_)) => Ok(()),
            Err(error) => Err(format!("it refused `initialize`: {error}")),
        }
    };
    let ending = tokio::select! {
        ending = &mut serving => Some(ending),
        greeted = hello => {
            match greeted {
                Ok(()) if !connection.over.is_cancelled() => shared.is_up(&connection),
                Ok(()) => {}
                Err(why) => connection.fail(why),
            }
            None
        }
    };
    let ending = match ending {
        Some(ending) => ending,
        None => serving.await,
    };
    match ending {
        Ending::Closed => Ok(()),
        Ending::Failed(why) => Err(why),
    }
}

fn check_greeting(answer: &Value) -> Result<(), String> {
    match answer.get("protocol") {
        None | Some(Value::Null) => Ok(()),
        Some(version) if version.as_u64() == Some(PROTOCOL) => Ok(()),
        Some(other) => Err(format!("it speaks version {other} of the protocol; this pi speaks {PROTOCOL}")),
    }
}

impl Shared {
    /// What the program is told first.
    fn greeting(&self) -> Value {
        let runs = {
            let mut failures = lock(&self.failures);
            failures.runs += 1;
            failures.runs
        };
        // What it was told of messages, it was told in another life.
        *lock(&self.described) = Described::default();
        let context = self.context();
        let flags: serde_json::Map<String, Value> = self
            .manifest
            .flags
            .keys()
            .filter_map(|name| {
                let value = context.as_ref().and_then(|context| context.flag(name))?;
                Some((name.clone(), serde_json::to_value(value).ok()?))
            })
            .collect();
        let ui = context.as_ref().map(ExtensionContext::ui);
        json!({
            "protocol": PROTOCOL,
            "pi": env!("CARGO_PKG_VERSION"),
            "extension": {"name": self.manifest.name, "folder": self.manifest.folder()},
            "cwd": context.as_ref().and_then(|context| context.cwd().ok()),
            "mode": ui.as_ref().map(crate::extensions::Ui::mode),
            "hasUi": ui.as_ref().is_some_and(crate::extensions::Ui::has_user),
            "flags": flags,
            "restarted": runs > 1,
        })
    }

    /// The session, as handlers reach it. `None`: it is gone.
    pub(super) fn context(&self) -> Option<ExtensionContext> {
        self.context.upgrade(CancellationToken::new())
    }

    fn is_up(&self, connection: &Arc<Connection>) {
        self.phase.send_if_modified(|phase| {
            let begins = matches!(phase, Phase::Starting);
            if begins {
                *phase = Phase::Up(connection.clone());
            } else {
                connection.fail("the session is over");
            }
            begins
        });
    }

    /// What comes after a failure, and what people are told.
    fn count_failure(&self, why: &str) -> (Phase, String) {
        let restart = self.manifest.restart;
        let mut failures = lock(&self.failures);
        let now = Instant::now();
        let window = Duration::from_millis(restart.window_ms);
        failures.at.push_back(now);
        while failures.at.front().is_some_and(|at| now.duration_since(*at) > window) {
            failures.at.pop_front();
        }
        failures.last = Some(why.into());
        let count = u32::try_from(failures.at.len()).unwrap_or(u32::MAX);
        let never = restart.policy == RestartPolicy::Never;
        if never || count > restart.max {
            let limit = match never {
                true => "its manifest says that it is never started again".to_owned(),
                false => format!("it was started again {} times within {} s", restart.max, window.as_secs()),
            };
            let notice =
                format!("{why}; {limit}, so that it stays away: what it decides about is refused, and its tools fail");
            return (Phase::GivenUp(why.into()), notice);
        }
        let doubled = 1_u64.checked_shl(count - 1).unwrap_or(u64::MAX).saturating_mul(restart.back_off_ms);
        let back_off = Duration::from_millis(doubled).min(limits::MAX_BACK_OFF);
        let notice = format!("{why}; it is started again when it is needed ({count} of {})", restart.max);
        (Phase::Waiting(now + back_off), notice)
    }

    /// Tells people that something about the program is wrong.
    pub(super) async fn report(&self, text: String) {
        let error = ExtensionError::new(text);
        if let Some(runner) = self.context.runner() {
            runner.report(failure(&self.manifest.name, FailurePlace::Program, &error)).await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
