//! The command line of `pi`.

pub mod arguments;
pub mod flags;
pub mod help;
pub mod stdin;
