//! Finding sessions by what was said in them.

use std::path::Path;

use crate::session::{
    environment::SessionEnvironment,
    error::SessionError,
    folder::{SessionFolder, files_below},
    index::{Depth, Hit, SessionIndex},
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
    let search = move |index: &SessionIndex| index.search(&query, limit, |_| true);
    with_index(Depth::Words, folder, folder, options, environment, search).await
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
    with_index(Depth::Facts, folder, folder, options, environment, |index| index.sessions(|_| true)).await
}

impl SessionFolder {
    /// Like [`search_sessions`], in the sessions of this folder alone. It shares its index with the other folders.
    ///
    /// # Errors
    /// As [`search_sessions`].
    pub async fn search(
        &self,
        query: &str,
        limit: usize,
        options: ListOptions,
        environment: &SessionEnvironment,
    ) -> Result<Vec<Hit>, SessionError> {
        let (query, is_member) = (query.to_owned(), self.members());
        let search = move |index: &SessionIndex| index.search(&query, limit, is_member);
        with_index(Depth::Words, self.everywhere(), self.path(), options, environment, search).await
    }

    /// Like [`sessions`](Self::sessions), but by the index that all folders share, so that only files that have changed
    /// are read; without their text.
    ///
    /// # Errors
    /// As [`indexed_sessions`].
    pub async fn indexed_sessions(
        &self,
        options: ListOptions,
        environment: &SessionEnvironment,
    ) -> Result<Vec<SessionFacts>, SessionError> {
        let is_member = self.members();
        let list = move |index: &SessionIndex| index.sessions(is_member);
        with_index(Depth::Facts, self.everywhere(), self.path(), options, environment, list).await
    }
}

/// Brings the index that lies in `folder` up to date with the files in `scope`, and reads it.
async fn with_index<T: Default + Send + 'static>(
    wanted: Depth,
    folder: &Path,
    scope: &Path,
    options: ListOptions,
    environment: &SessionEnvironment,
    read: impl FnOnce(&SessionIndex) -> Result<T, SessionError> + Send + 'static,
) -> Result<T, SessionError> {
    let (folder, scope, disk) = (folder.to_owned(), scope.to_owned(), environment.disk.clone());
    in_background(move || {
        let failed = |error| SessionError::Store(StoreError::new(format_args!("listing {}", scope.display()), error));
        let files = files_below(&*disk, &scope).map_err(failed)?;
        if disk.facts(&folder).is_err() {
            // Nothing has been kept yet, and looking for it leaves nothing behind.
            return Ok(T::default());
        }
        let mut index = SessionIndex::open(&folder)?;
        index.update(wanted, &scope, files, &options, &*disk)?;
        read(&index)
    })
    .await
}
