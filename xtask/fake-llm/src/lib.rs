//! A strict, scriptable model server for tests and benches.
//!
//! [`Server`] plays a [`Script`] on a loopback port: each request gets the script's next [`Reply`],
//! which is an [`Answer`] in the request's own wire format, a provider error, or raw bytes. A reply
//! can be cut at exact byte boundaries, delayed, held back by a [`Gate`], broken off or never closed.
//!
//! The server keeps every [`Request`] and checks it against the rules of its [`Wire`]: each tool call
//! has exactly one result, no result is an orphan, no block is one that the real service refuses. A
//! request that breaks a rule is answered with status 400, and dropping the server then panics with
//! the list, so that every test has the check for free. A test that breaks rules on purpose takes
//! them with [`Server::take_violations`].
//!
//! ```
//! use fake_llm::{Answer, Script, Server, Wire};
//! use serde_json::json;
//!
//! let server = Server::start(
//!     Script::new(Wire::OpenAiCompletions)
//!         .reply(Answer::new().text("Let me look.").tool_call("read", json!({"path": "a.txt"})))
//!         .reply("It says hello."),
//! );
//! assert!(server.base_url().starts_with("http://127.0.0.1:"));
//! assert!(server.requests().is_empty());
//! ```
//!
//! The server runs on a thread of its own, so it serves blocking tests, tests that start a program,
//! and async tests alike, and takes no turn from the runtime under test.

mod answer;
mod http;
mod plan;
mod reply;
mod request;
mod rules;
mod script;
mod server;
mod wire;

pub use answer::{Answer, Stop, ToolCall, Usage};
pub use reply::{End, Framing, Gate, Pieces, Reply, Wait};
pub use request::{Outcome, Request};
pub use rules::{Alternation, LaterSystem, Rules, Signatures, UnknownFields, Violation};
pub use script::Script;
pub use server::Server;
pub use wire::Wire;
