//! Editing a file of a workspace.

use std::io;
use std::path::Path;

use bytes::Bytes;
use tokio::io::AsyncReadExt as _;
use tokio_util::sync::CancellationToken;

use super::{Edit, EditDiff, EditError, Edited, Piece, apply_edits};
use crate::tools::file_error::FileError;
use crate::tools::mutation_queue::MutationQueue;
use crate::tools::paths::{self, PathError};
use crate::tools::truncate::format_size;
use crate::workspace::{Files, Workspace};

/// The largest file that is edited, in bytes: it is held in memory, with the new text and what stays beside each other.
pub const MAX_FILE_BYTES: u64 = 512 * 1024 * 1024;

/// Why a file was not edited. It is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditFileError {
    /// The path has no meaning.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is larger than [`MAX_FILE_BYTES`].
    #[error(
        "{path} was not changed. It is larger than {}, the most that edit takes; change it with a command (for example \
         with sed), or split it.",
        format_size(MAX_FILE_BYTES)
    )]
    TooLarge {
        /// The file, as the model wrote it.
        path: String,
    },
    /// The edits do not fit the file.
    #[error("{path} was not changed. {error}")]
    Edit {
        /// The file, as the model wrote it.
        path: String,
        /// What does not fit.
        error: EditError,
    },
    /// The caller cancelled before anything was written.
    #[error("Operation aborted")]
    Aborted,
}

/// Applies edits to a file: all of them, or none.
///
/// # Errors
///
/// When the file cannot be read and written, or an edit does not fit; see [`EditFileError`].
pub async fn edit_file(
    workspace: &Workspace,
    queue: &MutationQueue,
    path: &str,
    edits: Vec<Edit>,
    cancel: &CancellationToken,
) -> Result<EditDiff, EditFileError> {
    let resolved = paths::to_write(path, workspace).await?;
    let files = workspace.files();
    let failed = |error| FileError { action: "edit", path: path.to_owned(), error };
    let _turn = queue.turn(files.as_ref(), &resolved).await;
    if cancel.is_cancelled() {
        return Err(EditFileError::Aborted);
    }
    files.check_writable(&resolved).await.map_err(failed)?;
    let original = read_within_limit(files.as_ref(), &resolved).await.map_err(failed)?;
    let original = original.ok_or_else(|| EditFileError::TooLarge { path: path.to_owned() })?;
    let edited = apply_on_blocking_thread(original.clone(), edits, path.to_owned())
        .await
        .map_err(|error| EditFileError::Edit { path: path.to_owned(), error })?;
    if cancel.is_cancelled() {
        return Err(EditFileError::Aborted);
    }
    let Edited { pieces, diff } = edited;
    let content = pieces
        .into_iter()
        .map(|piece| match piece {
            Piece::Kept(range) => original.slice(range),
            Piece::New(bytes) => Bytes::from(bytes),
        })
        .collect();
    files.replace(&resolved, content).await.map_err(failed)?;
    Ok(diff)
}

/// All bytes of a file; `None` when there are more than edit takes.
async fn read_within_limit(files: &dyn Files, path: &Path) -> io::Result<Option<Bytes>> {
    let opened = files.open(path).await?;
    if opened.len > MAX_FILE_BYTES {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(opened.len).unwrap_or_default());
    // Some files do not tell their size.
    opened.reader.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).await?;
    let fits = bytes.len() as u64 <= MAX_FILE_BYTES;
    Ok(fits.then(|| bytes.into()))
}

/// A large file takes its time.
async fn apply_on_blocking_thread(original: Bytes, edits: Vec<Edit>, path: String) -> Result<Edited, EditError> {
    const LARGE: usize = 1024 * 1024;
    if original.len() < LARGE {
        return apply_edits(&original, &edits, &path);
    }
    match tokio::task::spawn_blocking(move || apply_edits(&original, &edits, &path)).await {
        Ok(applied) => applied,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that shuts down cancels it; then nobody waits for the answer.
            Err(_) => std::future::pending().await,
        },
    }
}
