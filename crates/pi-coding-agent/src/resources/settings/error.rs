//! Why settings could not be read or written.

use std::{io, path::PathBuf, sync::Arc};

use crate::resources::Diagnostic;

/// Why a settings file could not be read or written.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file is there but cannot be read.
    #[error("cannot read the settings file {}: {source}; its settings are not used, and it is left as it is", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
    /// The file is not a settings document.
    #[error("{}:{line}: {message}; correct the file: until then its settings are not used, and it is left as it is", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// The file could not be replaced; it is as it was.
    #[error("cannot write the settings file {}: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
    /// Settings of a project that is not trusted are not written.
    #[error("the project is not trusted, so its settings file {} is not written; trust the project first", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
    },
}

impl SettingsError {
    /// The same as something to show at the start.
    pub fn to_diagnostic(&self) -> Diagnostic {
        match self {
            Self::Syntax { path, line, message } => Diagnostic::warning(format!(
                "{message}; correct the file: until then its settings are not used, and it is left as it is"
            ))
            .in_file(path)
            .on_line(*line),
            Self::Unreadable { path, .. } | Self::Unwritable { path, .. } | Self::Untrusted { path } => {
                Diagnostic::warning(self.to_string()).in_file(path)
            }
        }
    }
}
