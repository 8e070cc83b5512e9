//! The integration tests of pi-agent-core.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod vectors;
