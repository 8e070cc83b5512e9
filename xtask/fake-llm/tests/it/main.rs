//! What a test that uses the server can rely on, seen from a bare socket.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected fails there")]

mod answers;
mod client;
mod connections;
mod recorded;
mod strictness;
