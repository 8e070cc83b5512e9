//! The tools of a coding agent: read, write, edit, bash, grep, find and ls.
//!
//! Each tool is one file. They reach the world only through a [`Workspace`](crate::workspace::Workspace), so
//! that a host can point them elsewhere.

pub mod bash;
pub mod builtin;
mod declare;
pub mod edit;
pub(crate) mod exec;
mod file_error;
pub mod find;
pub mod grep;
pub mod ls;
pub mod mutation_queue;
pub mod paths;
pub mod read;
mod search_text;
pub mod session_facts;
mod shown_name;
pub mod truncate;
pub mod user_bash;
pub mod write;

pub use file_error::FileError;
