//! The integration tests of pi-agent-core.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod abort;
mod events;
mod hooks;
mod known_faults;
mod laws;
mod log;
mod low_level;
mod panics;
mod state;
mod support;
mod tools;
mod troubleshooting;
mod two_hooks;
mod vectors;
