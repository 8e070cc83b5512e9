//! Runners that turn a vector's input into what this crate makes of it; one module per area.
//!
//! Each has `run(file_stem, input)`, which answers `None` for a file that it does not know. `cargo test` and
//! `cargo xtask conformance` share them.

pub mod ai_data;
mod exchange;
#[cfg(feature = "http")]
pub mod models;
pub mod provider_requests;
pub mod provider_responses;
pub mod provider_sequences;
pub mod transcript;
