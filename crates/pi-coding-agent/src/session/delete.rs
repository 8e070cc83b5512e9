//! Deleting sessions: into the trash where there is one.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::session::{
    environment::SessionEnvironment, error::SessionError, fork::write_new_file, store::StoreError, time::iso,
    writer::lock,
};

/// Where deleted files go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trash {
    /// A folder with `files` and `info`, as the desktops of Linux have it.
    FreeDesktop(PathBuf),
    /// A folder that files are moved into, as macOS has it.
    Folder(PathBuf),
    /// Nowhere: files are gone.
    None,
}

impl Trash {
    /// The trash of this platform. `data_home` is where the user's data lies (`$XDG_DATA_HOME`), when it was said.
    pub fn usual(home: &Path, data_home: Option<&Path>) -> Self {
        if cfg!(target_os = "macos") {
            return Self::Folder(home.join(".Trash"));
        }
        if cfg!(target_os = "linux") {
            let data = data_home.map_or_else(|| home.join(".local/share"), Path::to_owned);
            return Self::FreeDesktop(data.join("Trash"));
        }
        Self::None
    }
}

/// What became of a deleted session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// It lies in the trash, here.
    Trashed(PathBuf),
    /// It is gone.
    Removed,
}

/// Deletes a session file. When it cannot be moved into the trash it stays.
///
/// # Errors
/// When somebody is writing to the session, or it cannot be moved or removed.
pub fn delete_session(path: &Path, trash: &Trash, environment: &SessionEnvironment) -> Result<Deleted, SessionError> {
    let failed = |error| SessionError::Store(StoreError::new(format_args!("deleting {}", path.display()), error));
    environment.disk.facts(path).map_err(failed)?;
    let _lock = lock(environment, path)?;
    match trash {
        Trash::None => {
            environment.disk.remove(path).map_err(failed)?;
            Ok(Deleted::Removed)
        }
        Trash::Folder(folder) => {
            environment.disk.create_folder(folder).map_err(failed)?;
            let target = move_into(path, folder, environment).map_err(failed)?;
            Ok(Deleted::Trashed(target))
        }
        Trash::FreeDesktop(folder) => {
            let (files, info) = (folder.join("files"), folder.join("info"));
            environment.disk.create_folder(&files).map_err(failed)?;
            environment.disk.create_folder(&info).map_err(failed)?;
            let target = move_into(path, &files, environment).map_err(failed)?;
            let mut name = target.file_name().unwrap_or_default().to_owned();
            name.push(".trashinfo");
            // The session is in the trash already; without the note it can only not be put back by a click.
            let noted = write_new_file(environment, &info.join(name), |sink| note(path, environment, sink));
            if let Err(error) = noted {
                tracing::warn!(%error, "the trash does not know where the session was");
            }
            Ok(Deleted::Trashed(target))
        }
    }
}

fn move_into(path: &Path, folder: &Path, environment: &SessionEnvironment) -> io::Result<PathBuf> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let mut number = 1u32;
    loop {
        let target = folder.join(match number {
            1 => format!("{stem}.{extension}"),
            _ => format!("{stem}.{number}.{extension}"),
        });
        match environment.disk.copy_new(path, &target) {
            Ok(()) => break environment.disk.remove(path).map(|()| target),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 10_000 => number += 1,
            Err(error) => break Err(error),
        }
    }
}

fn note(path: &Path, environment: &SessionEnvironment, sink: &mut dyn Write) -> io::Result<()> {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    let now = iso(environment.clock.now());
    let seconds = now.split('.').next().unwrap_or_default();
    let path = percent_encode(path.as_os_str().as_encoded_bytes(), KEPT);
    write!(sink, "[Trash Info]\nPath={path}\nDeletionDate={seconds}\n")
}
