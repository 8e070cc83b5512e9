//! The real `pi` program: its words in, its output, exit code and session files out.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod endings;
mod extensions;
mod failures;
mod guide;
mod output;
mod program;
mod providers;
mod resources;
mod sandbox;
mod sessions;
mod sessions_command;
