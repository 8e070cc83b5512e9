//! What the tasks (`src/main.rs`) and the benches (`benches/figures`) share.

pub mod measure;
pub mod row;
pub mod workspace;

/// What keeps a task from being done at all.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// How a task ends: in order, or with something that the caller must see in the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is well.
    Fine,
    /// The task was done and found something wrong.
    Failed,
}
