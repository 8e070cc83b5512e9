//! Running commands on a Unix system.
//!
//! A thread of its own starts the shell and waits for it without reaping it; the caller's task reads the
//! pipe, watches the clock and the cancel token, and lets the thread reap the shell when all is over. Both
//! standard output and standard error of a shell are the same pipe, so what arrives is in order; a program that is run
//! without a shell has one for each.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc as blocking};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::future::select_all;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::session::{CommandProcesses, Departed, holders_of};
use super::spawn::{Descriptors, spawn};
use crate::workspace::local::launch::Launch;
use crate::workspace::local::{DRAIN_AFTER_EXIT, IDLE_AFTER_EXIT, ProcessOptions, Sandbox};
use crate::workspace::{
    ProcessEnd, ProcessError, ProcessOutcome, Processes, ProgramCommand, ShellCommand, ShellExit, Survivor,
};

/// From the polite signal to the other one.
const GRACE: Duration = Duration::from_secs(1);
/// Longest wait for the end of the shell and its output after the second signal.
const AFTER_KILL: Duration = Duration::from_millis(500);
/// How often the command's processes are looked at while they may end politely.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes read at once: what a pipe holds.
const CHUNK: usize = 64 * 1024;

/// Commands on this machine.
#[derive(Debug)]
pub struct LocalProcesses {
    options: ProcessOptions,
    running: RunningCommands,
    /// Ends the tasks that keep reading for background processes of finished commands.
    background: CancellationToken,
    _end_background: DropGuard,
}

impl LocalProcesses {
    /// Commands with these options.
    #[must_use]
    pub fn new(options: ProcessOptions) -> Self {
        let background = CancellationToken::new();
        let running = RunningCommands::default();
        Self { options, running, _end_background: background.clone().drop_guard(), background }
    }
}

#[async_trait]
impl Processes for LocalProcesses {
    async fn run(
        &self,
        command: ShellCommand,
        output: mpsc::Sender<Bytes>,
        cancel: CancellationToken,
    ) -> Result<ProcessEnd, ProcessError> {
        let timeout = command.timeout;
        let launch = Launch::shell(&self.options, command)?;
        let (stream, stdout) = Stream::new(output)?;
        let stderr = stdout.try_clone().map_err(ProcessError::Start)?;
        let until = Until { timeout, grace: GRACE, cancel };
        self.run_to_end(launch, Writers { stdout, stderr }, vec![stream], until).await
    }

    async fn exec(
        &self,
        command: ProgramCommand,
        stdout: mpsc::Sender<Bytes>,
        stderr: mpsc::Sender<Bytes>,
        cancel: CancellationToken,
    ) -> Result<ProcessEnd, ProcessError> {
        let (timeout, grace) = (command.timeout, command.grace);
        let launch = Launch::program(&self.options, command)?;
        let (output, stdout) = Stream::new(stdout)?;
        let (errors, stderr) = Stream::new(stderr)?;
        let until = Until { timeout, grace, cancel };
        self.run_to_end(launch, Writers { stdout, stderr }, vec![output, errors], until).await
    }

    fn kill_all(&self) {
        self.running.kill_all();
    }
}

/// The commands whose shells are not reaped yet, so that their ids still mean them.
#[derive(Clone, Debug, Default)]
struct RunningCommands(Arc<Mutex<Commands>>);

#[derive(Debug, Default)]
struct Commands {
    running: Vec<CommandProcesses>,
    /// Nothing may run any more.
    killed: bool,
}

impl RunningCommands {
    fn lock(&self) -> MutexGuard<'_, Commands> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, command: CommandProcesses) {
        let mut commands = self.lock();
        if commands.killed {
            command.signal(Signal::KILL);
        }
        commands.running.push(command);
    }

    /// To be called before the command's shell is reaped.
    fn remove(&self, command: CommandProcesses) {
        self.lock().running.retain(|running| *running != command);
    }

    fn kill_all(&self) {
        let mut commands = self.lock();
        commands.killed = true;
        commands.running.iter().for_each(|command| command.signal(Signal::KILL));
    }
}

/// Where it writes.
struct Writers {
    stdout: io::PipeWriter,
    stderr: io::PipeWriter,
}

impl Writers {
    fn with_nothing_to_read(self) -> io::Result<Descriptors> {
        let stdin = File::open("/dev/null")?.into();
        Ok(Descriptors { stdin, stdout: self.stdout.into(), stderr: self.stderr.into() })
    }
}

/// When it is ended.
struct Until {
    timeout: Option<Duration>,
    /// From the polite signal to the other one.
    grace: Duration,
    cancel: CancellationToken,
}

impl LocalProcesses {
    async fn run_to_end(
        &self,
        launch: Launch,
        writers: Writers,
        streams: Vec<Stream>,
        until: Until,
    ) -> Result<ProcessEnd, ProcessError> {
        if !tokio::fs::metadata(&launch.folder).await.is_ok_and(|metadata| metadata.is_dir()) {
            return Err(ProcessError::MissingDirectory(launch.folder));
        }
        let deadline = until.timeout.map(|timeout| Instant::now() + timeout);
        let mut child = Child::start(launch, self.options.sandbox.clone(), writers, self.running.clone()).await?;
        let mut running = Running { streams, exit: None, departed: Departed::default(), grace: until.grace };
        let outcome = running.until_end(&mut child, deadline, &until.cancel).await;
        let readers = running.streams.into_iter().filter_map(|stream| stream.reader);
        let survivors = match outcome {
            ProcessOutcome::Exited(_) => {
                // A background process lives on; without a reader its next line would end it.
                readers.for_each(|reader| self.keep_reading(reader));
                Vec::new()
            }
            ProcessOutcome::TimedOut | ProcessOutcome::Aborted => {
                find_survivors(running.departed, readers.collect()).await
            }
        };
        child.over();
        Ok(ProcessEnd { outcome, survivors })
    }

    fn keep_reading(&self, mut reader: pipe::Receiver) {
        let end = self.background.clone();
        tokio::spawn(async move {
            let mut sink = tokio::io::sink();
            tokio::select! {
                () = end.cancelled() => {}
                _ = tokio::io::copy(&mut reader, &mut sink) => {}
            }
        });
    }
}

/// Processes of the command that are out of reach: those seen to have left, and those that hold its output.
async fn find_survivors(departed: Departed, readers: Vec<pipe::Receiver>) -> Vec<Survivor> {
    let find = move || {
        let mut survivors = departed.still_running();
        survivors.extend(readers.iter().flat_map(holders_of));
        survivors.sort_by_key(|survivor| survivor.pid);
        survivors.dedup_by_key(|survivor| survivor.pid);
        survivors
    };
    on_blocking_thread(find).await.unwrap_or_default()
}

/// Looking through /proc takes its time.
async fn on_blocking_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

/// A shell that was started. Dropped early, it and everything it started is ended at once.
struct Child {
    processes: CommandProcesses,
    exited: oneshot::Receiver<ShellExit>,
    /// Dropped, it lets the thread reap the shell.
    reap: Option<blocking::Sender<()>>,
}

impl Child {
    async fn start(
        launch: Launch,
        sandbox: Option<Sandbox>,
        writers: Writers,
        running: RunningCommands,
    ) -> Result<Self, ProcessError> {
        let (started, pid) = oneshot::channel();
        let (exit, exited) = oneshot::channel();
        let (reap, may_reap) = blocking::channel();
        std::thread::Builder::new()
            .name("pi-shell".to_owned())
            .spawn(move || {
                // It holds for this thread and what it starts, and for nothing else.
                if let Some(Err(refused)) = sandbox.map(|sandbox| sandbox.enter()) {
                    let _ = started.send(Err(ProcessError::Sandbox(refused)));
                    return;
                }
                let pid = match writers.with_nothing_to_read().and_then(|descriptors| spawn(&launch, descriptors)) {
                    Ok(pid) => pid,
                    Err(error) => {
                        let _ = started.send(Err(ProcessError::Start(error)));
                        return;
                    }
                };
                let processes = CommandProcesses::of_child(pid);
                running.add(processes);
                // A caller that is gone has dropped `reap`, too, but nobody would end the command.
                if started.send(Ok(pid)).is_err() {
                    processes.signal(Signal::KILL);
                }
                let _ = exit.send(wait_without_reaping(pid));
                let _ = may_reap.recv();
                running.remove(processes);
                wait_and_reap(pid);
            })
            .map_err(ProcessError::Start)?;
        let pid = pid
            .await
            .unwrap_or_else(|_| Err(ProcessError::Start(io::Error::other("the thread that starts commands ended"))))?;
        Ok(Self { processes: CommandProcesses::of_child(pid), exited, reap: Some(reap) })
    }

    /// The command is over; nothing of it is signalled any more.
    fn over(mut self) {
        self.reap = None;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.reap.is_some() {
            self.processes.signal(Signal::KILL);
        }
    }
}

/// Waits for the shell's end and leaves it a zombie, so that its id stays its own.
pub(super) fn wait_without_reaping(pid: Pid) -> ShellExit {
    wait(pid, WaitIdOptions::NOWAIT)
}

/// Waits for the shell's end; then its id may come to mean something else.
pub(super) fn wait_and_reap(pid: Pid) {
    wait(pid, WaitIdOptions::empty());
}

fn wait(pid: Pid, how: WaitIdOptions) -> ShellExit {
    loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | how) {
            Ok(Some(status)) => {
                return match status.terminating_signal() {
                    Some(signal) => ShellExit::Signal(signal),
                    None => ShellExit::Code(status.exit_status().unwrap_or(1)),
                };
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return ShellExit::Code(1),
        }
    }
}

struct Running {
    streams: Vec<Stream>,
    exit: Option<ShellExit>,
    /// Those that left the command's session before it was ended.
    departed: Departed,
    grace: Duration,
}

/// What is read of a command.
struct Stream {
    /// `None` after its end.
    reader: Option<pipe::Receiver>,
    buffer: BytesMut,
    output: mpsc::Sender<Bytes>,
    /// What was read and the receiver has no room for yet. Nothing more is read meanwhile.
    untaken: Option<Bytes>,
}

impl Stream {
    /// A pipe whose text goes to `output`, and its other end.
    fn new(output: mpsc::Sender<Bytes>) -> Result<(Self, io::PipeWriter), ProcessError> {
        let (reader, writer) = io::pipe().map_err(ProcessError::Start)?;
        let reader = pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).map_err(ProcessError::Start)?;
        Ok((Self { reader: Some(reader), buffer: BytesMut::new(), output, untaken: None }, writer))
    }

    /// Hands on what was read, or reads more. It waits for ever when there is neither.
    async fn progress(&mut self) -> Event {
        if self.untaken.is_some() {
            // A receiver that is gone wants no more; the pipe is emptied all the same.
            if let (Ok(room), Some(piece)) = (self.output.reserve().await, self.untaken.take()) {
                room.send(piece);
            }
            return Event::Output;
        }
        let Some(reader) = &mut self.reader else { return std::future::pending().await };
        self.buffer.reserve(CHUNK);
        match reader.read_buf(&mut self.buffer).await {
            Ok(0) | Err(_) => {
                self.reader = None;
                Event::Closed
            }
            Ok(_) => {
                let piece = self.buffer.split().freeze();
                if let Err(mpsc::error::TrySendError::Full(piece)) = self.output.try_send(piece) {
                    self.untaken = Some(piece);
                }
                Event::Output
            }
        }
    }
}

/// What a wait ended with.
enum Event {
    Output,
    Closed,
    Exited,
    Deadline,
    Cancelled,
}

impl Running {
    async fn until_end(
        &mut self,
        child: &mut Child,
        deadline: Option<Instant>,
        cancel: &CancellationToken,
    ) -> ProcessOutcome {
        let mut drained = None;
        loop {
            if let Some(exit) = self.exit
                && !self.is_open()
                && !self.has_untaken()
            {
                return ProcessOutcome::Exited(exit);
            }
            let wait_until = match &drained {
                None => deadline,
                // What has come is not given up because the receiver is slow.
                Some(_) if self.has_untaken() => deadline,
                Some(Drain { idle, end }) => Some((*idle).min(*end)),
            };
            match self.next(child, wait_until, cancel).await {
                Event::Exited => {
                    let now = Instant::now();
                    drained = Some(Drain { idle: now + IDLE_AFTER_EXIT, end: now + DRAIN_AFTER_EXIT });
                }
                Event::Output => {
                    if let Some(drain) = &mut drained {
                        drain.idle = Instant::now() + IDLE_AFTER_EXIT;
                    }
                }
                Event::Closed => {}
                Event::Deadline => match self.exit {
                    Some(exit) => return ProcessOutcome::Exited(exit),
                    None => {
                        self.end(child).await;
                        return ProcessOutcome::TimedOut;
                    }
                },
                Event::Cancelled => {
                    self.end(child).await;
                    return ProcessOutcome::Aborted;
                }
            }
        }
    }

    /// Ends the command: politely, then not. What it writes meanwhile still counts.
    async fn end(&mut self, child: &mut Child) {
        let never = CancellationToken::new();
        let processes = child.processes;
        // Looked for first: when their parents are gone, nothing tells whose children they were.
        let find_and_signal = move || {
            let departed = Departed::from(processes);
            processes.signal(Signal::TERM);
            departed
        };
        self.departed = on_blocking_thread(find_and_signal).await.unwrap_or_default();
        let grace = Instant::now() + self.grace;
        while Instant::now() < grace {
            let running = on_blocking_thread(move || processes.any_running()).await.flatten();
            if self.exit.is_some() && !running.unwrap_or(self.is_open()) {
                break;
            }
            let look = (Instant::now() + LOOK).min(grace);
            self.next(child, Some(look), &never).await;
        }
        on_blocking_thread(move || processes.signal(Signal::KILL)).await;
        let end = Instant::now() + AFTER_KILL;
        let mut idle = end;
        while self.exit.is_none() || self.is_open() || self.has_untaken() {
            match self.next(child, Some(idle.min(end)), &never).await {
                Event::Deadline => break,
                Event::Output | Event::Exited if self.exit.is_some() => idle = Instant::now() + IDLE_AFTER_EXIT,
                _ => {}
            }
        }
        // A process that was just being started may have been missed.
        on_blocking_thread(move || processes.signal(Signal::KILL)).await;
    }

    async fn next(&mut self, child: &mut Child, until: Option<Instant>, cancel: &CancellationToken) -> Event {
        let exited = self.exit.is_some();
        // Each may be dropped before it is ready: it has done nothing then.
        let streams = select_all(self.streams.iter_mut().map(|stream| Box::pin(stream.progress())));
        let deadline = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // In this order: a command that never stops writing must still meet its deadline.
            biased;
            () = cancel.cancelled() => Event::Cancelled,
            () = deadline => Event::Deadline,
            exit = &mut child.exited, if !exited => {
                // The thread always sends before it ends.
                self.exit = Some(exit.unwrap_or(ShellExit::Code(1)));
                Event::Exited
            }
            (event, ..) = streams => event,
        }
    }

    fn has_untaken(&self) -> bool {
        self.streams.iter().any(|stream| stream.untaken.is_some())
    }

    fn is_open(&self) -> bool {
        self.streams.iter().any(|stream| stream.reader.is_some())
    }
}

struct Drain {
    idle: Instant,
    end: Instant,
}
