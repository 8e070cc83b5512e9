//! The coding agent: settings and resources, tools, sessions, extensions, the SDK and the `pi` binary.
#![forbid(unsafe_code)]

pub mod agent_session;
#[cfg(feature = "cli")]
pub mod cli;
pub mod compaction;
pub mod extensions;
pub mod guide;
pub mod host;
pub mod messages;
pub mod modes;
pub mod page;
mod regular_file;
pub mod resources;
mod screen;
pub mod sdk;
pub mod session;
pub mod styled_text;
#[doc(hidden)]
pub mod testing;
pub mod tool_selection;
pub mod tools;
pub mod workspace;

/// The code of the page on the SDK compiles, and its first example runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/sdk.md")]
pub struct SdkPage;

/// The code of the page on extensions compiles, and its first example runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/extensions.md")]
pub struct ExtensionsPage;
