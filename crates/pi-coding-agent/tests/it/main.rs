//! The crate's integration tests: one binary, one module per subject.

mod cli;
mod compaction;
mod conformance_coding_session;
mod conformance_extension_context;
mod conformance_modes;
mod conformance_resources;
mod conformance_sessions;
mod conformance_tools;
mod extensions;
mod fuzz;
mod sdk;
mod sessions;
mod tools;
