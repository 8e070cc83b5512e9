//! Runners that turn a vector's input into what this crate makes of it; one module per area.
//!
//! Each has `run(file_stem, input)`, which answers `None` for a file that it does not know. `cargo test` and
//! `cargo xtask conformance` share them.

pub mod coding_session;
pub mod compaction;
pub mod convert_to_llm;
pub mod extension_context;
pub mod modes;
pub mod resources;
pub mod sessions;
pub mod tools;
