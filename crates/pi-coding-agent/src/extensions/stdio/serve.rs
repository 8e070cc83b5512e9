//! Reads what a program says, writes what it is told, and ends it.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::{
    connection::{Addressee, Connection},
    limits,
    program::Shared,
    requests::{self, Lane},
    wire::{self, Incoming, LineCutter, RpcError},
};
use tokio_util::task::AbortOnDropHandle;

use crate::workspace::{
    ShellExit,
    local::{LocalProgram, program::ProgramPipes},
};

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// How a run of a program came to its end.
#[derive(Debug)]
pub(super) enum Ending {
    /// It was to end, or had nothing to do.
    Closed,
    /// It failed, and this is how.
    Failed(String),
}

/// Serves a program until it ended, and ends everything that is left of it.
pub(super) async fn serve(
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    mut program: LocalProgram,
    pipes: ProgramPipes,
    to_write: mpsc::Receiver<Vec<u8>>,
) -> Ending {
    let ProgramPipes { stdin, stdout, stderr } = pipes;
    connection.set_killer(Some(program.killer()));
    let mut listening = Listening::new(shared, connection.clone(), stdout, stderr);
    let ended = {
        let mut writing = std::pin::pin!(write(stdin, to_write));
        loop {
            let deadline = listening.output_ended.map(|ended| ended + limits::EXIT_AFTER_OUTPUT);
            tokio::select! {
                exit = program.exited() => break Some(exit),
                () = connection.over.cancelled() => break None,
                () = &mut writing => connection.fail("it closed its standard input"),
                () = listening.next() => {}
                () = until(deadline) => connection.fail("it closed its standard output"),
            }
        }
        // Here its input is closed.
    };
    let was_closing = connection.closing.is_cancelled();
    if ended.is_some() {
        // An answer may stand in the pipe; a child of the program may hold it open.
        listening.drain().await;
    } else {
        // One that failed is not asked.
        if was_closing && !ends_within(limits::INPUT_CLOSED_GRACE, &mut program, &mut listening).await {
            program.terminate().await;
            ends_within(limits::TERMINATE_GRACE, &mut program, &mut listening).await;
        }
    }
    // Also what it started and left behind.
    program.kill().await;
    if ended.is_none() {
        ends_within(limits::TERMINATE_GRACE, &mut program, &mut listening).await;
        listening.drain().await;
    }
    let said = listening.finish().await;
    connection.set_killer(None);
    let owed = connection.owes_answers();
    let why = match ended {
        Some(ShellExit::Signal(signal)) => format!("the program was ended by signal {signal}"),
        Some(exit) => format!("the program ended with exit code {}", exit.code()),
        None => format!("the program was ended: {}", connection.why()),
    };
    connection.fail(why.clone());
    let had_nothing_to_do = matches!(ended, Some(ShellExit::Code(0))) && !owed;
    if was_closing || had_nothing_to_do {
        return Ending::Closed;
    }
    Ending::Failed(if said.is_empty() { why } else { format!("{why}; it said: {said}") })
}

/// Waits for the program's end, and reads meanwhile. Whether it came in time.
async fn ends_within(time: Duration, program: &mut LocalProgram, listening: &mut Listening) -> bool {
    let end = Instant::now() + time;
    loop {
        tokio::select! {
            _ = program.exited() => return true,
            () = sleep_until(end) => return false,
            () = listening.next() => {}
        }
    }
}

/// Writes lines until the program reads no more.
async fn write(mut stdin: Box<dyn AsyncWrite + Send + Unpin>, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// What a program says.
struct Listening {
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    /// `None` after its end.
    stdout: Option<Box<dyn AsyncRead + Send + Unpin>>,
    stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
    from_stdout: Vec<u8>,
    from_stderr: Vec<u8>,
    cutter: LineCutter,
    /// Lines that wait, because the requests before them do.
    waiting: VecDeque<Vec<u8>>,
    errors: VecDeque<u8>,
    bad_lines: usize,
    budget: Budget,
    output_ended: Option<Instant>,
    /// Requests that are answered one after another.
    in_order: mpsc::Sender<Asked>,
    answering_in_order: AbortOnDropHandle<()>,
    /// Requests that are answered beside them, and what is told to people.
    beside: JoinSet<()>,
    refused: bool,
}

struct Asked {
    id: Option<Value>,
    method: String,
    params: Value,
}

impl Listening {
    fn new(
        shared: Arc<Shared>,
        connection: Arc<Connection>,
        stdout: Box<dyn AsyncRead + Send + Unpin>,
        stderr: Box<dyn AsyncRead + Send + Unpin>,
    ) -> Self {
        let (in_order, mut asked) = mpsc::channel::<Asked>(limits::MAX_QUEUED_REQUESTS);
        let (for_shared, for_connection) = (shared.clone(), connection.clone());
        let answering_in_order = AbortOnDropHandle::new(tokio::spawn(async move {
            while let Some(request) = asked.recv().await {
                answer(&for_shared, &for_connection, request).await;
            }
        }));
        Self {
            shared,
            connection,
            stdout: Some(stdout),
            stderr: Some(stderr),
            from_stdout: vec![0; CHUNK],
            from_stderr: vec![0; 4 << 10],
            cutter: LineCutter::default(),
            waiting: VecDeque::new(),
            errors: VecDeque::new(),
            bad_lines: 0,
            budget: Budget::default(),
            output_ended: None,
            in_order,
            answering_in_order,
            beside: JoinSet::new(),
            refused: false,
        }
    }

    /// Waits for the next thing that the program says, and deals with it. Nothing is lost when it is dropped.
    async fn next(&mut self) {
        let pause = self.budget.pause();
        let is_behind = !self.waiting.is_empty();
        tokio::select! {
            () = room(&self.in_order), if is_behind => self.catch_up(),
            read = read(&mut self.stdout, &mut self.from_stdout), if pause.is_none() && !is_behind => match read {
                0 => {
                    self.stdout = None;
                    self.output_ended = Some(Instant::now());
                }
                count => self.heard(count),
            },
            read = read(&mut self.stderr, &mut self.from_stderr) => match read {
                0 => self.stderr = None,
                count => {
                    self.errors.extend(&self.from_stderr[..count]);
                    let surplus = self.errors.len().saturating_sub(limits::STDERR_TAIL);
                    self.errors.drain(..surplus);
                }
            },
            () = wait(pause), if pause.is_some() => {}
            Some(_) = self.beside.join_next() => {}
        }
    }

    /// Reads what is left of a program that ended, for a moment.
    async fn drain(&mut self) {
        let end = Instant::now() + limits::DRAIN_AFTER_EXIT;
        while self.stdout.is_some() || self.stderr.is_some() || !self.waiting.is_empty() {
            let idle = (Instant::now() + limits::IDLE_AFTER_EXIT).min(end);
            if tokio::time::timeout_at(idle, self.next()).await.is_err() || Instant::now() >= end {
                return;
            }
        }
    }

    /// Does what the program asked for in order before it ended.
    async fn finish(self) -> String {
        let said = self.said_about_errors();
        drop(self.in_order);
        let _ = tokio::time::timeout(limits::FINISH_REQUESTS, self.answering_in_order).await;
        said
    }

    /// What the program wrote about errors last.
    fn said_about_errors(&self) -> String {
        let bytes: Vec<u8> = self.errors.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        text.trim().to_owned()
    }

    fn heard(&mut self, count: usize) {
        let waiting = &mut self.waiting;
        let cut = self.cutter.feed(&self.from_stdout[..count], |line| waiting.push_back(line.to_vec()));
        self.catch_up();
        if let Err(too_long) = cut {
            self.stdout = None;
            self.connection.fail(too_long.to_string());
        }
    }

    /// Deals with the lines that wait, as far as there is room for requests.
    fn catch_up(&mut self) {
        while self.in_order.capacity() > 0
            && let Some(line) = self.waiting.pop_front()
        {
            self.line(&line);
        }
    }

    fn line(&mut self, line: &[u8]) {
        self.budget.spend();
        match wire::read(line) {
            Ok(None) => {}
            Ok(Some(Incoming::Response { id, result })) => {
                if self.connection.answered(&id, result) == Addressee::Nothing {
                    self.bad_line(format!("it answered {id}, which was not asked"));
                }
            }
            Ok(Some(Incoming::Request { id, method, params })) => self.asked(Some(id), method, params),
            Ok(Some(Incoming::Notification { method, params })) => self.asked(None, method, params),
            Err(problem) => self.bad_line(format!("it wrote a line that is no message: {problem}")),
        }
    }

    /// The first one is told to people, and too many end the program.
    fn bad_line(&mut self, what: String) {
        self.bad_lines += 1;
        if self.bad_lines == 1 {
            self.report(format!("{what} (standard output is for messages; write notes to standard error)"));
        }
        if self.bad_lines >= limits::MAX_BAD_LINES {
            self.connection.fail(format!("it wrote {} lines that are no messages", limits::MAX_BAD_LINES));
        }
    }

    fn report(&mut self, text: String) {
        let shared = self.shared.clone();
        self.beside.spawn(async move { shared.report(text).await });
    }

    fn asked(&mut self, id: Option<Value>, method: String, params: Value) {
        if method == requests::TOOL_UPDATE {
            if let Err(error) = requests::tool_update(&self.connection, params) {
                self.refuse(id, error);
            }
            return;
        }
        match requests::lane(&method) {
            None => {
                let known = format!("there is no method `{method}`");
                self.refuse(id, RpcError::new(RpcError::METHOD_NOT_FOUND, known));
            }
            Some(Lane::InOrder) => {
                if let Err(error) = self.in_order.try_send(Asked { id, method, params }) {
                    let Asked { id, .. } = error.into_inner();
                    self.too_many(id);
                }
            }
            Some(Lane::Beside) if self.beside.len() >= limits::MAX_OPEN_REQUESTS => self.too_many(id),
            Some(Lane::Beside) => {
                let (shared, connection) = (self.shared.clone(), self.connection.clone());
                self.beside.spawn(async move { answer(&shared, &connection, Asked { id, method, params }).await });
            }
        }
    }

    fn too_many(&mut self, id: Option<Value>) {
        let text = "too many requests are open; wait for answers before asking more";
        self.refuse(id, RpcError::new(RpcError::TOO_MANY, text));
    }

    /// Refuses a request. Who wants no answer is told of the first refusal by way of people.
    fn refuse(&mut self, id: Option<Value>, error: RpcError) {
        match id {
            // The program may not read while it writes: waiting for it here could be for good.
            Some(id) => {
                let connection = self.connection.clone();
                if self.beside.len() >= limits::MAX_QUEUED_REQUESTS {
                    return self.connection.fail("it asks without reading the answers");
                }
                self.beside.spawn(async move { connection.answer(&id, Err(error)).await });
            }
            None if !self.refused => {
                self.refused = true;
                self.report(format!("a notification was refused: {}", error.message));
            }
            None => {}
        }
    }
}

/// Does what a program asks for.
async fn answer(shared: &Arc<Shared>, connection: &Arc<Connection>, asked: Asked) {
    let Asked { id, method, params } = asked;
    let result = {
        // A program that wants no answer does not wait for one.
        let _busy = id.is_some().then(|| connection.answering());
        let lifetime = shared.context.lifetime();
        // What is asked for holds the session. One that was only dropped ends it.
        tokio::select! {
            result = requests::answer(shared, connection, &method, params) => result,
            () = lifetime.cancelled() => Err(RpcError::new(RpcError::FAILED, "the session is over")),
        }
    };
    match (id, result) {
        (Some(id), result) => connection.answer(&id, result).await,
        (None, Err(error)) => shared.report(format!("{method} failed: {}", error.message)).await,
        (None, Ok(_)) => {}
    }
}

/// Reads; 0 is the end. A pipe that ended has nothing more.
async fn read(from: &mut Option<Box<dyn AsyncRead + Send + Unpin>>, into: &mut [u8]) -> usize {
    match from {
        Some(from) => from.read(into).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

/// Waits until there is room for a request.
async fn room(requests: &mpsc::Sender<Asked>) {
    drop(requests.reserve().await);
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn wait(time: Option<Duration>) {
    if let Some(time) = time {
        sleep(time).await;
    }
}

/// How many messages a program may send before it is read more slowly.
struct Budget {
    left: f64,
    at: Instant,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: limits::BURST, at: Instant::now() }
    }
}

impl Budget {
    fn spend(&mut self) {
        self.left -= 1.0;
    }

    /// How long to wait before the program is read on.
    fn pause(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let earned = now.duration_since(self.at).as_secs_f64() * limits::MESSAGES_PER_SECOND;
        self.left = (self.left + earned).min(limits::BURST);
        self.at = now;
        (self.left < 0.0).then(|| Duration::from_secs_f64(-self.left / limits::MESSAGES_PER_SECOND))
    }
}
