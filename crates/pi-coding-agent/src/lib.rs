//! The coding agent: settings and resources, tools, sessions, extensions, the SDK and the `pi` binary.

pub mod resources;
#[doc(hidden)]
pub mod testing;
