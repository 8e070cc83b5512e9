//! Finding sessions by what was said in them.

use std::path::Path;

use crate::session::{
    environment::SessionEnvironment,
    error::SessionError,
    index::{Hit, SessionIndex, files_below},
    list::{ListOptions, SessionFacts},
    manager::in_background,
    store::StoreError,
};

/// The sessions in a folder, and in the folders in it, that have all of these words, or words that begin so; the best
/// first.
///
/// An index beside the sessions is brought up to date first. It can be deleted at any time.
///
/// # Errors
/// When the folder or the index cannot be read, or the search is ended early.
pub async fn search_sessions(
    folder: &Path,
    query: &str,
    limit: usize,
    options: ListOptions,
    environment: &SessionEnvironment,
) -> Result<Vec<Hit>, SessionError> {
    let query = query.to_owned();
    with_index(folder, options, environment, move |index| index.search(&query, limit)).await
}

/// The sessions in a folder, and in the folders in it, the one that was used last first; without their text.
///
/// Like [`all_sessions`](super::all_sessions), but by an index beside the sessions, so that only files that have
/// changed are read. It can be deleted at any time.
///
/// # Errors
/// When the folder or the index cannot be read, or the list is ended early.
pub async fn indexed_sessions(
    folder: &Path,
    options: ListOptions,
    environment: &SessionEnvironment,
) -> Result<Vec<SessionFacts>, SessionError> {
    with_index(folder, options, environment, SessionIndex::sessions).await
}

async fn with_index<T: Send + 'static>(
    folder: &Path,
    options: ListOptions,
    environment: &SessionEnvironment,
    read: impl FnOnce(&SessionIndex) -> Result<T, SessionError> + Send + 'static,
) -> Result<T, SessionError> {
    let (folder, disk) = (folder.to_owned(), environment.disk.clone());
    in_background(move || {
        let failed = |error| SessionError::Store(StoreError::new(format_args!("listing {}", folder.display()), error));
        let files = files_below(&*disk, &folder).map_err(failed)?;
        disk.create_folder(&folder).map_err(failed)?;
        let mut index = SessionIndex::open(&folder)?;
        index.update(files, &options, &*disk)?;
        read(&index)
    })
    .await
}
