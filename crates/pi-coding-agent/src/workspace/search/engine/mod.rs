//! The searching itself: patterns made ready, one file searched, results kept in order and within limits.
//!
//! Built from ripgrep's own crates. Where the files come from is not its business: [`local`](crate::workspace::local)
//! walks this machine in parallel, `over_files` walks any [`Files`](super::super::Files).

mod collect;
mod file;
mod names;
mod over_files;

pub(in crate::workspace) use collect::{Collector, PathKey};
pub(in crate::workspace) use file::{FileSearch, GrepMatcher};
pub(in crate::workspace) use names::{FirstNames, NameMatcher};
pub(in crate::workspace) use over_files::{OverFiles, glob_override};
