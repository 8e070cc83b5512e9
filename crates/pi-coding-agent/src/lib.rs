//! The coding agent: settings and resources, tools, sessions, extensions, the SDK and the `pi` binary.
#![forbid(unsafe_code)]

#[cfg(feature = "cli")]
pub mod cli;
pub mod compaction;
pub mod guide;
pub mod messages;
pub mod modes;
pub mod resources;
pub mod session;
#[doc(hidden)]
pub mod testing;
pub mod tool_selection;
pub mod tools;
pub mod workspace;
