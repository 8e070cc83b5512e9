//! The integration tests of pi-agent-core.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod abort;
mod known_faults;
mod laws;
mod log;
mod panics;
mod support;
mod vectors;
