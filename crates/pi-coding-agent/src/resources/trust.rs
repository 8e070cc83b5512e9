//! Whether a project's own settings and resources are used.

/// Whether a project's own settings and resources are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProjectTrust {
    /// They are.
    Trusted,
    /// They are not; nothing of the project is executed.
    Untrusted,
}
