//! One run of a program, as those see it that call it.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pi_agent_core::ToolContext;
use pi_ai::CancellationToken;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};

use super::{
    limits,
    wire::{self, RpcError},
};
use crate::{extensions::CommandContext, messages::SessionMessage, workspace::local::program::ProgramKiller};

/// Why a call has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum CallError {
    /// The program ended, or was ended, before it answered.
    #[error("the program ended before it answered: {0}")]
    Ended(Arc<str>),
    /// It could not be started.
    #[error("{0}")]
    NotStarted(Arc<str>),
    /// It failed too often, and nothing more is asked of it.
    #[error("the program is not started any more: {0}")]
    GivenUp(Arc<str>),
    /// The session is over, or its extensions were loaded again.
    #[error("the program was ended with its session")]
    ShutDown,
    /// It took too long.
    #[error("the program did not answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// Nobody wants the answer any more.
    #[error("the call was aborted, and the program did not end it")]
    Aborted,
    /// What should be asked cannot be written.
    #[error("it cannot be put to the program: {0}")]
    Unwritable(String),
    /// It answered with an error.
    #[error("{message} (error {code})", code = .0.code, message = .0.message)]
    Refused(RpcError),
}

/// How long an answer may take, and what counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) time: Duration,
    pub(super) clock: CallClock,
}

/// When the time of a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallClock {
    /// While the program neither waits for an answer of ours nor runs a tool or a command: many programs do one thing
    /// after another.
    WhenNotBusy,
    /// While the program does not wait for an answer of ours. The call keeps the program busy.
    KeepsBusy,
    /// Always.
    Always,
}

type Answer = Result<Value, CallError>;

/// A program that runs. Calls go to it at the same time, each with an id of its own.
#[derive(Debug)]
pub(super) struct Connection {
    lines: mpsc::Sender<Vec<u8>>,
    calls: Mutex<Calls>,
    next_id: AtomicU64,
    /// It takes no calls any more.
    pub(super) over: CancellationToken,
    why: OnceLock<Arc<str>>,
    /// Its input is to be closed, and its end is no crash.
    pub(super) closing: CancellationToken,
    /// Nothing of it is left.
    pub(super) gone: CancellationToken,
    /// Questions of the program that are not answered yet, and tools and commands that it runs.
    busy: watch::Sender<Busy>,
    /// Tools that it runs, by call.
    tools: Mutex<HashMap<String, ToolContext>>,
    /// Commands that it runs, by call.
    commands: Mutex<Vec<(u64, CommandContext)>>,
    /// The lists that `context` handlers are looking at, by request.
    lists: Mutex<HashMap<u64, Arc<Vec<SessionMessage>>>>,
    /// Ends the program at once, as long as there is one.
    killer: Mutex<Option<ProgramKiller>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Busy {
    questions: usize,
    long_calls: usize,
}

#[derive(Debug, Default)]
struct Calls {
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
    abandoned: HashSet<u64>,
    /// The same, oldest first.
    oldest: VecDeque<u64>,
}

/// What an answer of the program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addressee {
    /// A call, which has it now.
    Call,
    /// A call that nobody waits for any more.
    Nobody,
    /// Nothing that was asked.
    Nothing,
}

impl Connection {
    /// A connection, and the lines that are to be written to the program.
    pub(super) fn new() -> (Arc<Self>, mpsc::Receiver<Vec<u8>>) {
        let (lines, to_write) = mpsc::channel(limits::MAX_UNWRITTEN);
        let connection = Self {
            lines,
            calls: Mutex::default(),
            next_id: AtomicU64::new(1),
            over: CancellationToken::new(),
            why: OnceLock::new(),
            closing: CancellationToken::new(),
            gone: CancellationToken::new(),
            busy: watch::channel(Busy::default()).0,
            tools: Mutex::default(),
            commands: Mutex::default(),
            lists: Mutex::default(),
            killer: Mutex::default(),
        };
        (Arc::new(connection), to_write)
    }

    /// Ends it: calls that wait fail, and the program is ended.
    pub(super) fn fail(&self, why: impl Into<Arc<str>>) {
        let _ = self.why.set(why.into());
        self.over.cancel();
        let waiting = std::mem::take(&mut lock(&self.calls).waiting);
        for (_, waiting) in waiting {
            let _ = waiting.send(Err(CallError::Ended(self.why())));
        }
    }

    /// How the program is ended at once; `None` when it has ended.
    pub(super) fn set_killer(&self, killer: Option<ProgramKiller>) {
        *lock(&self.killer) = killer;
    }

    /// Ends the program at once, without waiting.
    pub(super) fn kill(&self) {
        if let Some(killer) = &*lock(&self.killer) {
            killer.kill();
        }
    }

    /// Why it is over.
    pub(super) fn why(&self) -> Arc<str> {
        self.why.get().cloned().unwrap_or_else(|| "it is over".into())
    }

    /// Whether a call waits for its answer.
    pub(super) fn owes_answers(&self) -> bool {
        !lock(&self.calls).waiting.is_empty()
    }

    /// Takes an answer of the program.
    pub(super) fn answered(&self, id: &Value, result: Result<Value, RpcError>) -> Addressee {
        let Some(id) = id.as_u64() else { return Addressee::Nothing };
        let mut calls = lock(&self.calls);
        match calls.waiting.remove(&id) {
            Some(waiting) => {
                drop(calls);
                let _ = waiting.send(result.map_err(CallError::Refused));
                Addressee::Call
            }
            None if calls.abandoned.remove(&id) => Addressee::Nobody,
            None => Addressee::Nothing,
        }
    }

    /// The next call.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Asks the program something and waits for the answer. When `signal` is cancelled the program is told, and has a
    /// moment to end what it does. One that takes too long is ended.
    pub(super) async fn call(
        &self,
        id: u64,
        method: &str,
        params: &impl Serialize,
        patience: Patience,
        signal: &CancellationToken,
    ) -> Answer {
        let line = wire::request(id, method, params).map_err(|error| CallError::Unwritable(error.to_string()))?;
        if line.len() > limits::MAX_LINE {
            let text = format!("it has more than {} bytes", limits::MAX_LINE);
            return Err(CallError::Unwritable(text));
        }
        let (waiting, mut answer) = oneshot::channel();
        {
            let mut calls = lock(&self.calls);
            if self.over.is_cancelled() {
                return Err(CallError::Ended(self.why()));
            }
            calls.waiting.insert(id, waiting);
        }
        let _open = OpenCall { connection: self, id };
        let _busy = (patience.clock == CallClock::KeepsBusy).then(|| self.busy_with(|busy| &mut busy.long_calls));
        let mut slow = std::pin::pin!(self.out_of_time(patience));
        let mut aborted = std::pin::pin!(self.aborted(id, signal));
        let mut writing = std::pin::pin!(self.write(line));
        let mut written = false;
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer.unwrap_or_else(|_| Err(CallError::Ended(self.why()))),
                wrote = &mut writing, if !written => {
                    written = true;
                    wrote?;
                }
                () = &mut aborted => return Err(CallError::Aborted),
                () = &mut slow => {
                    let error = CallError::TimedOut(patience.time);
                    self.fail(format!("it did not answer {method} within {} ms", patience.time.as_millis()));
                    return Err(error);
                }
            }
        }
    }

    /// Tells the program something.
    pub(super) async fn tell(
        &self,
        method: &str,
        params: &impl Serialize,
        patience: Duration,
    ) -> Result<(), CallError> {
        let line = wire::notification(method, params).map_err(|error| CallError::Unwritable(error.to_string()))?;
        match tokio::time::timeout(patience, self.write(line)).await {
            Ok(written) => written,
            Err(_) => {
                self.fail(format!("it did not read its input for {} ms", patience.as_millis()));
                Err(CallError::TimedOut(patience))
            }
        }
    }

    /// Answers the program.
    pub(super) async fn answer(&self, id: &Value, result: Result<Value, RpcError>) {
        let line = wire::response(id, result).and_then(|line| match line.len() > limits::MAX_LINE {
            false => Ok(line),
            true => {
                let text = format!("the answer has more than {} bytes; ask for less", limits::MAX_LINE);
                wire::response(id, Err(RpcError::new(RpcError::FAILED, text)))
            }
        });
        if let Ok(line) = line {
            // A program that is gone needs no answer.
            let _ = self.write(line).await;
        }
    }

    async fn write(&self, line: Vec<u8>) -> Result<(), CallError> {
        tokio::select! {
            sent = self.lines.send(line) => sent.map_err(|_| CallError::Ended(self.why())),
            () = self.over.cancelled() => Err(CallError::Ended(self.why())),
        }
    }

    /// Waits until a call has taken too long.
    async fn out_of_time(&self, patience: Patience) {
        let mut busy = self.busy.subscribe();
        let stands = |busy: &Busy| match patience.clock {
            CallClock::Always => false,
            CallClock::KeepsBusy => busy.questions > 0,
            CallClock::WhenNotBusy => busy.questions > 0 || busy.long_calls > 0,
        };
        // A clock that began anew after each question would never run out for a program that goes on asking.
        let mut left = patience.time;
        loop {
            // The sender is borrowed, so that it is not gone.
            let _ = busy.wait_for(|busy| !stands(busy)).await;
            let runs_since = Instant::now();
            tokio::select! {
                () = sleep_until(runs_since + left) => return,
                _ = busy.wait_for(stands) => left = left.saturating_sub(runs_since.elapsed()),
            }
        }
    }

    /// Waits until a call was aborted and its grace is over.
    async fn aborted(&self, id: u64, signal: &CancellationToken) {
        signal.cancelled().await;
        self.cancel(id);
        tokio::time::sleep(limits::ABORT_GRACE).await;
    }

    fn cancel(&self, id: u64) {
        if let Ok(line) = wire::notification("cancel", &json!({"id": id})) {
            // A program that does not read is not told; its time runs all the same.
            let _ = self.lines.try_send(line);
        }
    }

    /// Answers a question of the program for as long as the guard lives.
    pub(super) fn answering(&self) -> BusyGuard<'_> {
        self.busy_with(|busy| &mut busy.questions)
    }

    fn busy_with(&self, part: fn(&mut Busy) -> &mut usize) -> BusyGuard<'_> {
        self.busy.send_modify(|busy| *part(busy) += 1);
        BusyGuard { busy: &self.busy, part }
    }

    /// Has updates of a tool's call shown for as long as the guard lives.
    pub(super) fn running_tool(&self, context: ToolContext) -> impl Drop + use<'_> {
        let id = context.call_id.to_string();
        lock(&self.tools).insert(id.clone(), context);
        Cleanup(move || drop(lock(&self.tools).remove(&id)))
    }

    /// The context of a tool's call that runs.
    pub(super) fn tool(&self, call: &str) -> Option<ToolContext> {
        lock(&self.tools).get(call).cloned()
    }

    /// Lets the program do what only commands may for as long as the guard lives.
    pub(super) fn running_command(&self, id: u64, context: CommandContext) -> impl Drop + use<'_> {
        lock(&self.commands).push((id, context));
        Cleanup(move || lock(&self.commands).retain(|(other, _)| *other != id))
    }

    /// The context of the command that began last, of those that run.
    pub(super) fn command(&self) -> Option<CommandContext> {
        lock(&self.commands).last().map(|(_, context)| context.clone())
    }

    /// Lets the program read a list of messages for as long as the guard lives.
    pub(super) fn showing_list(&self, id: u64, messages: Arc<Vec<SessionMessage>>) -> impl Drop + use<'_> {
        lock(&self.lists).insert(id, messages);
        Cleanup(move || drop(lock(&self.lists).remove(&id)))
    }

    /// A list of messages that the program was shown.
    pub(super) fn list(&self, id: u64) -> Option<Arc<Vec<SessionMessage>>> {
        lock(&self.lists).get(&id).cloned()
    }
}

/// A call that waits. Dropped without an answer, the program is told that nobody wants it any more.
struct OpenCall<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        let mut calls = lock(&self.connection.calls);
        if calls.waiting.remove(&self.id).is_none() {
            return;
        }
        calls.abandoned.insert(self.id);
        calls.oldest.push_back(self.id);
        if calls.oldest.len() > limits::MAX_ABANDONED
            && let Some(oldest) = calls.oldest.pop_front()
        {
            calls.abandoned.remove(&oldest);
        }
        drop(calls);
        self.connection.cancel(self.id);
    }
}

/// Something that keeps the program busy.
pub(super) struct BusyGuard<'a> {
    busy: &'a watch::Sender<Busy>,
    part: fn(&mut Busy) -> &mut usize,
}

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        self.busy.send_modify(|busy| *(self.part)(busy) -= 1);
    }
}

/// Does something when it is dropped.
struct Cleanup<F: FnMut()>(F);

impl<F: FnMut()> Drop for Cleanup<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
