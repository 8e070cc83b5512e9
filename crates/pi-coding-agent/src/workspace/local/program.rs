//! The ends of a program that is spoken to through pipes.

use std::fmt;

use tokio::io::{AsyncRead, AsyncWrite};

/// Ends a program at once, from anywhere.
pub(crate) struct ProgramKiller(pub(super) Box<dyn Fn() + Send + Sync>);

impl ProgramKiller {
    /// Ends it and all that it started.
    pub(crate) fn kill(&self) {
        (self.0)();
    }
}

impl fmt::Debug for ProgramKiller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgramKiller")
    }
}

/// The ends of a program's pipes that are ours.
pub(crate) struct ProgramPipes {
    pub(crate) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) stderr: Box<dyn AsyncRead + Send + Unpin>,
}

impl fmt::Debug for ProgramPipes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgramPipes")
    }
}
