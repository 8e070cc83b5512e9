//! One settings file: read as it is, changed under the lock that all programs share.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::{error::SettingsError, migrate::migrate};
use crate::{
    regular_file,
    resources::{
        atomic_file,
        document::{self, Change},
        file_lock::FileLock,
    },
};

/// What one layer says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    /// The document with older keys under their new names.
    pub(crate) document: Map<String, Value>,
    /// The file's text, to find lines in.
    pub(crate) text: String,
    /// Why the file is not used.
    pub(crate) error: Option<SettingsError>,
}

impl Layer {
    pub(crate) fn from_document(mut document: Map<String, Value>) -> Self {
        migrate(&mut document);
        Self { document, text: String::new(), error: None }
    }

    /// Takes what was read again; a file that has become unusable leaves the last good values.
    pub(crate) fn replace_by(&mut self, new: Self) {
        match new.error {
            Some(error) => self.error = Some(error),
            None => *self = new,
        }
    }

    fn from_text(path: &Path, text: String) -> Self {
        match parse(path, &text) {
            Ok(document) => Self { text, ..Self::from_document(document) },
            Err(error) => Self { document: Map::new(), text, error: Some(error) },
        }
    }
}

/// Reads a layer. A file that is not there is an empty layer; one that cannot be read is empty and says why.
pub(crate) fn load(path: &Path) -> Layer {
    match read(path) {
        Ok(text) => Layer::from_text(path, text.unwrap_or_default()),
        Err(error) => Layer { error: Some(error), ..Layer::default() },
    }
}

/// Reads, changes and replaces the file under its lock, and gives the new layer.
pub(crate) fn update(path: &Path, changes: &[Change]) -> Result<Layer, SettingsError> {
    let unwritable = |source: io::Error| SettingsError::Unwritable { path: path.to_owned(), source: Arc::new(source) };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(unwritable)?;
    }
    let _lock = FileLock::acquire(path).map_err(unwritable)?;
    let text = read(path)?.unwrap_or_default();
    let document = parse(path, &text)?;
    let changes = keep_what_migration_would_lose(&document, changes);
    let edited = document::edit(&text, &changes).map_err(|problem| syntax(path, problem))?;
    if edited != text {
        atomic_file::replace(path, edited.as_bytes()).map_err(unwritable)?;
    }
    Ok(Layer::from_text(path, edited))
}

/// `skills` was once an object that also held a switch; replacing it must not drop the switch.
fn keep_what_migration_would_lose(document: &Map<String, Value>, changes: &[Change]) -> Vec<Change> {
    let replaces_skills = changes.iter().any(|change| change.path == ["skills"]);
    let switch = document.get("skills").and_then(|skills| skills.get("enableSkillCommands"));
    let mut all = changes.to_vec();
    if let (true, Some(switch), false) = (replaces_skills, switch, document.contains_key("enableSkillCommands")) {
        all.insert(0, Change { path: vec!["enableSkillCommands".into()], value: Some(switch.clone()) });
    }
    all
}

fn read(path: &Path) -> Result<Option<String>, SettingsError> {
    match regular_file::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SettingsError::Unreadable { path: path.to_owned(), source: Arc::new(error) }),
    }
}

fn parse(path: &Path, text: &str) -> Result<Map<String, Value>, SettingsError> {
    document::parse(text).map_err(|problem| syntax(path, problem))
}

fn syntax(path: &Path, problem: document::SyntaxProblem) -> SettingsError {
    SettingsError::Syntax { path: PathBuf::from(path), line: problem.line, message: problem.message }
}
