//! The integration tests of pi-ai.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(all(feature = "http", any(feature = "bedrock", feature = "vertex")))]
mod accounts;
mod ai_data;
#[cfg(feature = "http")]
mod every_wire;
mod fuzz;
#[cfg(feature = "http")]
mod models;
mod providers;
mod proxy;
mod schema;
mod streaming_json;
mod transcript;
#[cfg(feature = "http")]
mod transport;
mod wires;
