//! The `write` tool: a file with new content.

use std::io;
use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use pi_agent_core::{AgentTool, ToolArguments, ToolContext, ToolError, ToolOutput};
use pi_ai::ToolDeclaration;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::declare::declare_strict;
use super::file_error::FileError;
use super::mutation_queue::MutationQueue;
use super::paths::{self, PathError};
use crate::workspace::Workspace;

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The path has no meaning.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The caller cancelled before anything was written.
    #[error("Operation aborted")]
    Aborted,
}

/// Writes a file as a whole, with the directories above it; returns what the model is told.
///
/// # Errors
///
/// When the path has no meaning or the file cannot be written. What was there before is then still there.
pub async fn write_file(
    workspace: &Workspace,
    queue: &MutationQueue,
    path: &str,
    content: String,
    cancel: &CancellationToken,
) -> Result<String, WriteError> {
    let resolved = paths::to_write(path, workspace).await?;
    let files = workspace.files();
    let failed = |error| FileError { action: "write", path: path.to_owned(), error };
    let _turn = queue.turn(files.as_ref(), &resolved).await;
    if cancel.is_cancelled() {
        return Err(WriteError::Aborted);
    }
    let parent = files.create_dir_all(resolved.parent().unwrap_or(Path::new("/"))).await;
    parent.map_err(|error| failed(parent_error(error)))?;
    files.replace(&resolved, vec![Bytes::from(content)]).await.map_err(failed)?;
    Ok(format!("Wrote {path}."))
}

/// That something is where a directory is to be made means here that it is no directory.
fn parent_error(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            io::Error::new(io::ErrorKind::NotADirectory, "its parent is not a directory")
        }
        _ => error,
    }
}

/// The `write` tool.
#[derive(Debug)]
pub struct WriteTool {
    workspace: Workspace,
    queue: MutationQueue,
    declaration: ToolDeclaration,
}

#[derive(Debug, Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

impl WriteTool {
    /// The tool for a workspace; tools that change files share the queue.
    #[must_use]
    pub fn new(workspace: Workspace, queue: MutationQueue) -> Self {
        let declaration = declare_strict(
            "write",
            "Writes a whole file: a new one, with the directories above it, or in place of what was there.",
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The file, relative to the working directory or absolute"},
                    "content": {"type": "string", "description": "All of the file's new content"}
                },
                "required": ["path", "content"]
            }),
        );
        Self { workspace, queue, declaration }
    }
}

#[async_trait]
impl AgentTool for WriteTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    async fn execute(&self, arguments: ToolArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let Arguments { path, content } = serde_json::from_value(Value::Object(arguments))?;
        let text = write_file(&self.workspace, &self.queue, &path, content, &context.signal).await?;
        Ok(ToolOutput::text(text))
    }
}
