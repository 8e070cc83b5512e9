//! The listener, its connections and what they recorded.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};

use crate::http::{Connection, RawRequest};
use crate::plan::{Plan, Planned};
use crate::reply::{End, Reply, Wait};
use crate::request::{Outcome, Request};
use crate::rules::Violation;
use crate::script::Script;
use crate::wire::{Asked, Check, Wire};

/// How long a test waits for something before that counts as a hang.
const DEADLINE: Duration = Duration::from_secs(10);

/// How long a client has to read what was sent before its connection is reset.
const BEFORE_RESET: Duration = Duration::from_millis(50);

/// A running server. Dropping it stops it.
///
/// # Panics
///
/// Dropping the server panics when a request broke a rule and the violations were not taken (unless
/// the thread is panicking already), so that no test passes on a request that a service would refuse.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    wire: Option<Wire>,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server on a free loopback port.
    ///
    /// # Panics
    ///
    /// When no port can be opened.
    pub fn start(script: Script) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
        let address = listener.local_addr().expect("the address of a bound listener");
        let wire = script.wire;
        let shared = Arc::new(Shared {
            script: Mutex::new(script),
            log: Mutex::new(Log::default()),
            changed: watch::Sender::new(()),
        });
        let (stop, stopped) = oneshot::channel();
        let served = shared.clone();
        let thread = std::thread::Builder::new()
            .name("fake-llm".to_owned())
            .spawn(move || serve(listener, served, stopped))
            .expect("a thread for the server");
        Self { address, wire, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL for a client of the script's wire, e.g. `http://127.0.0.1:4321/v1`. A script for
    /// any wire has the bare address here; see [`Server::base_url_of`].
    pub fn base_url(&self) -> String {
        self.wire.map_or_else(|| self.url(""), |wire| self.base_url_of(wire))
    }

    /// The base URL for a client of this wire.
    pub fn base_url_of(&self, wire: Wire) -> String {
        self.url(wire.base_path())
    }

    /// The URL of a path on this server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All requests so far, in order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log().requests.clone()
    }

    /// The request of this number, counted from 0; waits until it is there.
    ///
    /// # Panics
    ///
    /// When it is not there after ten seconds.
    pub async fn request(&self, index: usize) -> Request {
        let found = self.wait_for(|requests| requests.get(index).cloned()).await;
        found.unwrap_or_else(|| panic!("request {index} did not come within {DEADLINE:?}"))
    }

    /// The request of this number once its response is over, however it ended.
    ///
    /// # Panics
    ///
    /// When the response is not over after ten seconds.
    pub async fn finished(&self, index: usize) -> Request {
        let over = |request: &&Request| request.outcome != Outcome::Pending;
        let found = self.wait_for(|requests| requests.get(index).filter(over).cloned()).await;
        found.unwrap_or_else(|| panic!("the response to request {index} was not over within {DEADLINE:?}"))
    }

    /// Adds a reply to those that are played in order.
    pub fn push(&self, reply: impl Into<Reply>) {
        self.shared.script().push(reply.into());
    }

    /// How many of the replies in order no request has asked for yet.
    pub fn remaining(&self) -> usize {
        self.shared.script().remaining()
    }

    /// What was wrong with the requests so far. Taken, it does not fail the test.
    pub fn take_violations(&self) -> Vec<Violation> {
        std::mem::take(&mut self.shared.log().violations)
    }

    async fn wait_for(&self, found: impl Fn(&[Request]) -> Option<Request>) -> Option<Request> {
        let mut changed = self.shared.changed.subscribe();
        let search = async {
            loop {
                if let Some(request) = found(&self.shared.log().requests) {
                    return Some(request);
                }
                // The sender lives in `self.shared`, so this only ends with a change.
                changed.changed().await.ok()?;
            }
        };
        tokio::time::timeout(DEADLINE, search).await.ok().flatten()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in the server's thread has been printed there; the test fails by its symptoms.
            let _ = thread.join();
        }
        let violations = self.take_violations();
        if !violations.is_empty() && !std::thread::panicking() {
            let lines: Vec<String> = violations.iter().map(Violation::to_string).collect();
            panic!("the model server was sent what a service would refuse:\n{}", lines.join("\n"));
        }
    }
}

/// What the connections share.
#[derive(Debug)]
struct Shared {
    script: Mutex<Script>,
    log: Mutex<Log>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Log {
    requests: Vec<Request>,
    violations: Vec<Violation>,
}

impl Shared {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, index: usize, outcome: Outcome) {
        if let Some(request) = self.log().requests.get_mut(index) {
            request.outcome = outcome;
        }
        self.changed.send_replace(());
    }

    /// Records a request, checks it and picks its response.
    fn accept(&self, raw: RawRequest, connection: usize) -> (Request, Arc<Plan>) {
        let mut script = self.script();
        let request = {
            let mut log = self.log();
            let request = record(raw, connection, log.requests.len(), script.wire);
            log.requests.push(request.clone());
            request
        };
        let (violations, planned) = judge(&request, &mut script);
        let wire = request.wire.or(script.wire).unwrap_or(Wire::OpenAiCompletions);
        let asked = Asked { model: wire.dialect().model(&request), serial: request.index };
        let plan = planned.plan(wire, &asked);
        self.log().violations.extend(violations);
        drop(script);
        self.changed.send_replace(());
        (request, plan)
    }
}

fn record(raw: RawRequest, connection: usize, index: usize, only: Option<Wire>) -> Request {
    let json = match raw.head.header("content-encoding") {
        Some("zstd") => zstd::decode_all(&raw.body[..]).ok().and_then(|body| serde_json::from_slice(&body).ok()),
        _ => serde_json::from_slice(&raw.body).ok(),
    };
    let json = json.map(Arc::new);
    let mut request = Request {
        index,
        connection,
        wire: None,
        first_byte_at: raw.first_byte_at,
        received_at: Instant::now(),
        outcome: Outcome::Pending,
        head: Arc::new(raw.head),
        body: Arc::new(raw.body),
        json,
    };
    if request.method() == "POST" {
        let spoken = only.filter(|wire| wire.owns(request.path()));
        request.wire = spoken.or_else(|| Wire::of_path(request.path()));
    }
    request
}

/// What is wrong with the request, and the reply to it.
fn judge(request: &Request, script: &mut Script) -> (Vec<Violation>, Arc<Planned>) {
    let mut check = Check::new(request.index, script.rules);
    let expected = script.expects(request);
    let spoken = request.wire.filter(|wire| script.wire.is_none_or(|only| only == *wire));
    match spoken {
        Some(wire) => check_request(request, wire, &mut check),
        None if expected => {}
        None if request.method() == "GET" && request.path().ends_with("/models") => {
            return (Vec::new(), Arc::new(Planned::new(model_list())));
        }
        None => {
            let what = format!("no endpoint `{} {}`", request.method(), request.path());
            check.fail("head", what.clone());
            return (check.into_violations(), Arc::new(Planned::new(Reply::error(404, what))));
        }
    }
    let mut violations = check.into_violations();
    if !violations.is_empty() {
        let lines: Vec<String> = violations.iter().map(|found| format!("{}: {}", found.at, found.what)).collect();
        let refusal = Reply::error(400, lines.join("; "));
        return (violations, Arc::new(Planned::new(refusal)));
    }
    let planned = script.next(request).unwrap_or_else(|| {
        let what = "the script has no reply to this request";
        violations.push(Violation { request: request.index, at: "script".to_owned(), what: what.to_owned() });
        Arc::new(Planned::new(Reply::error(500, what)))
    });
    (violations, planned)
}

fn check_request(request: &Request, wire: Wire, check: &mut Check) {
    let json = request.header("content-type").is_some_and(|value| value.starts_with("application/json"));
    check.require(json, "head", "`content-type` is not application/json");
    wire.dialect().check_head(request, check);
    match &request.json {
        Some(body) if body.is_object() => wire.dialect().check(body, check),
        _ => check.fail("body", "expected a JSON object in UTF-8, without unpaired surrogates"),
    }
}

fn model_list() -> Reply {
    let model = json!({"id": "fake-model", "object": "model", "created": 1_700_000_000, "owned_by": "fake"});
    Reply::json(200, json!({"object": "list", "data": Value::Array(vec![model])}))
}

fn serve(listener: std::net::TcpListener, shared: Arc<Shared>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime for the server");
    runtime.block_on(async {
        tokio::select! {
            _ = stopped => {}
            result = accept_connections(listener, shared) => result.expect("the listener works"),
        }
    });
    // Dropping the runtime drops the connections.
}

async fn accept_connections(listener: std::net::TcpListener, shared: Arc<Shared>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let mut number = 0;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve_connection(stream, number, shared.clone()));
        number += 1;
    }
}

async fn serve_connection(stream: TcpStream, number: usize, shared: Arc<Shared>) {
    // Without it small pieces would wait for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    let mut connection = Connection::new(stream);
    loop {
        match connection.read_request().await {
            Ok(Some(raw)) => {
                let closes = raw.head.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
                let (request, plan) = shared.accept(raw, number);
                let outcome = respond(&mut connection, &plan).await;
                shared.finish(request.index, outcome);
                if outcome == Outcome::ClientLeft || closes || !plan.reusable {
                    return;
                }
            }
            Ok(None) => return,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                shared.log().violations.push(Violation {
                    request: usize::MAX,
                    at: format!("connection {number}"),
                    what: error.to_string(),
                });
                return;
            }
            // The client went away in the middle of a request.
            Err(_) => return,
        }
    }
}

async fn respond(connection: &mut Connection, plan: &Plan) -> Outcome {
    match send(connection, plan).await {
        Ok(outcome) => outcome,
        Err(_) => Outcome::ClientLeft,
    }
}

async fn send(connection: &mut Connection, plan: &Plan) -> io::Result<Outcome> {
    if !pass(connection, &plan.before_head).await {
        return Ok(Outcome::ClientLeft);
    }
    connection.stream.write_all(&plan.head).await?;
    for segment in &plan.segments {
        if !pass(connection, &segment.waits).await {
            return Ok(Outcome::ClientLeft);
        }
        for write in &segment.writes {
            connection.stream.write_all(write).await?;
        }
    }
    match plan.end {
        End::Complete => {}
        End::Close => connection.stream.shutdown().await?,
        End::Reset => {
            tokio::time::sleep(BEFORE_RESET).await;
            connection.stream.set_zero_linger()?;
        }
        End::StayOpen => {
            connection.client_left().await;
            return Ok(Outcome::ClientLeft);
        }
    }
    Ok(Outcome::Sent)
}

/// Passes the waits; false when the client left meanwhile.
async fn pass(connection: &mut Connection, waits: &[Wait]) -> bool {
    for wait in waits {
        tokio::select! {
            () = wait.pass() => {}
            () = connection.client_left() => return false,
        }
    }
    true
}
