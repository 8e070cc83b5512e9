//! Settings: a user's file, a project's file and overrides, merged and typed.
//!
//! [`SettingsManager`] holds the layers; [`SettingsManager::settings`] gives the effective values as types. The files
//! keep what the program does not know: keys, comments, order.

mod error;
mod merge;
mod migrate;
mod reader;
mod store;
mod tools;
mod values;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Map, Value};

pub use error::SettingsError;
pub use tools::{DEFAULT_TOOLS, apply_tool_modifiers, check_tool_list, is_tool_modifier, resolve_default_tools};
pub use values::{
    BranchSummary, CacheWarming, Capability, Codemode, Compaction, CompactionSettings, DefaultTrust,
    DoubleEscapeAction, ExitOutput, ImageProtocol, Images, Interface, InvalidSetting, Mermaid, QueueMode,
    ResourceEntries, ResourceLists, Retry, SandboxMode, Scrollbar, SessionSync, Settings, ShareDestination,
    StartupOutput, Transport, TreeFilter, TuiMode, WheelLines,
};

use self::{
    merge::merge,
    reader::{Layers, ValueProblem},
    store::Layer,
};
use crate::resources::{
    Diagnostic, Locations, ProjectTrust,
    document::{self, Change},
};

/// Which file a setting is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SettingsScope {
    /// The user's file.
    Global,
    /// The project's file.
    Project,
}

/// Changes of settings, by path of keys. Only what is named is touched.
///
/// ```
/// use pi_coding_agent::resources::SettingsEdit;
/// let edit = SettingsEdit::default().set(&["theme"], "dark").set(&["compaction", "enabled"], false).remove(&["npmCommand"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingsEdit {
    changes: Vec<Change>,
}

impl SettingsEdit {
    /// Sets a value.
    #[must_use]
    pub fn set(mut self, path: &[&str], value: impl Into<Value>) -> Self {
        self.changes.push(Change { path: owned(path), value: Some(value.into()) });
        self
    }

    /// Removes a value.
    #[must_use]
    pub fn remove(mut self, path: &[&str]) -> Self {
        self.changes.push(Change { path: owned(path), value: None });
        self
    }
}

fn owned(path: &[&str]) -> Vec<String> {
    path.iter().map(|key| (*key).to_owned()).collect()
}

/// The settings of one run. Clones share them.
///
/// ```
/// use pi_coding_agent::resources::SettingsManager;
/// let settings = SettingsManager::in_memory(serde_json::json!({"defaultModel": "m1"}));
/// assert_eq!(settings.settings().default_model.as_deref(), Some("m1"));
/// ```
#[derive(Clone, Debug)]
pub struct SettingsManager {
    files: Option<Arc<Files>>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct Files {
    global: PathBuf,
    project: PathBuf,
}

#[derive(Debug)]
struct State {
    global: Layer,
    project: Layer,
    overrides: Map<String, Value>,
    trust: ProjectTrust,
    document: Arc<Map<String, Value>>,
    settings: Arc<Settings>,
    problems: Vec<ValueProblem>,
}

impl SettingsManager {
    /// Reads the user's and the project's file. It never fails: a file that cannot be used counts as empty and is
    /// among the [diagnostics](Self::diagnostics). Blocks for the time of reading two small files.
    pub fn load(locations: &Locations, trust: ProjectTrust) -> Self {
        let files = Files {
            global: locations.agent_dir.settings_file(),
            project: locations.project_dir().join("settings.json"),
        };
        let (global, project) = (store::load(&files.global), store::load(&files.project));
        Self { files: Some(Arc::new(files)), state: Arc::new(Mutex::new(State::new(global, project, trust))) }
    }

    /// Settings without a file: for embedding and tests. What is not an object counts as empty.
    pub fn in_memory(document: Value) -> Self {
        let document = if let Value::Object(document) = document { document } else { Map::new() };
        let state = State::new(Layer::from_document(document), Layer::default(), ProjectTrust::Trusted);
        Self { files: None, state: Arc::new(Mutex::new(state)) }
    }

    /// The effective settings.
    pub fn settings(&self) -> Arc<Settings> {
        self.state().settings.clone()
    }

    /// The effective settings as a document, unknown keys included.
    pub fn document(&self) -> Arc<Map<String, Value>> {
        self.state().document.clone()
    }

    /// What one file says, older keys under their new names; empty for a project that is not trusted.
    pub fn layer(&self, scope: SettingsScope) -> Map<String, Value> {
        let state = self.state();
        match scope {
            SettingsScope::Global => state.global.document.clone(),
            SettingsScope::Project => state.trusted_project().cloned().unwrap_or_default(),
        }
    }

    /// Where sessions are kept, as written. A project's value counts before the project is trusted: without it the
    /// session that knows about the trust could not be found.
    pub fn session_dir(&self) -> Option<String> {
        let state = self.state();
        let own = |layer: &Map<String, Value>| Some(layer.get("sessionDir")?.as_str()?.to_owned());
        own(&state.overrides).or_else(|| own(&state.project.document)).or_else(|| own(&state.global.document))
    }

    /// Whether the project's file counts.
    pub fn project_trust(&self) -> ProjectTrust {
        self.state().trust
    }

    /// Says whether the project's file counts.
    pub fn set_project_trust(&self, trust: ProjectTrust) {
        let mut state = self.state();
        state.trust = trust;
        state.refresh();
    }

    /// Lays a document over both files, for this run. What is not an object counts as empty.
    pub fn set_overrides(&self, overrides: Value) {
        let mut state = self.state();
        state.overrides = if let Value::Object(overrides) = overrides { overrides } else { Map::new() };
        state.refresh();
    }

    /// Reads the files again. A file that has become unusable keeps its last good values. Blocks.
    pub fn reload(&self) {
        let Some(files) = &self.files else { return };
        let (global, project) = (store::load(&files.global), store::load(&files.project));
        let mut state = self.state();
        state.global.replace_by(global);
        state.project.replace_by(project);
        state.refresh();
    }

    /// What is wrong with the files and their values.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let state = self.state();
        let project = state.trusted_project().map(|_| &state.project);
        let layers = || {
            std::iter::once((&state.global, SettingsScope::Global)).chain(project.map(|p| (p, SettingsScope::Project)))
        };
        let files = layers().filter_map(|(layer, _)| layer.error.as_ref()).map(SettingsError::to_diagnostic);
        let values = state.problems.iter().map(|problem| {
            // The upper layer's value is the one that counts.
            let found =
                layers().collect::<Vec<_>>().into_iter().rev().find_map(|(layer, scope)| {
                    Some((self.path(scope)?, document::line_of(&layer.text, &problem.path)?))
                });
            let diagnostic = Diagnostic::warning(&problem.message);
            match found {
                Some((path, line)) => diagnostic.in_file(path).on_line(line),
                None => diagnostic,
            }
        });
        files.chain(values).collect()
    }

    /// Changes a file, under the lock that all programs share: what another program wrote in the meantime stays, and
    /// so do comments and keys that are not named. The effective settings follow.
    ///
    /// # Errors
    /// When the file cannot be read, is not a settings document or cannot be written; then it is as it was. When the
    /// project is not trusted.
    pub async fn update(&self, scope: SettingsScope, edit: SettingsEdit) -> Result<(), SettingsError> {
        let path = self.path(scope).map(Path::to_owned);
        if let (SettingsScope::Project, ProjectTrust::Untrusted) = (scope, self.project_trust()) {
            return Err(SettingsError::Untrusted { path: path.unwrap_or_default() });
        }
        let layer = match path {
            Some(path) => {
                let write = move || store::update(&path, &edit.changes);
                tokio::task::spawn_blocking(write)
                    .await
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?
            }
            None => {
                let text = Value::Object(self.layer(scope)).to_string();
                let edited = document::edit(&text, &edit.changes).unwrap_or(text);
                Layer::from_document(document::parse(&edited).unwrap_or_default())
            }
        };
        let mut state = self.state();
        match scope {
            SettingsScope::Global => state.global = layer,
            SettingsScope::Project => state.project = layer,
        }
        state.refresh();
        Ok(())
    }

    fn path(&self, scope: SettingsScope) -> Option<&Path> {
        let files = self.files.as_ref()?;
        Some(match scope {
            SettingsScope::Global => &files.global,
            SettingsScope::Project => &files.project,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(global: Layer, project: Layer, trust: ProjectTrust) -> Self {
        let mut state = Self {
            global,
            project,
            overrides: Map::new(),
            trust,
            document: Arc::default(),
            settings: Arc::default(),
            problems: Vec::new(),
        };
        state.refresh();
        state
    }

    fn trusted_project(&self) -> Option<&Map<String, Value>> {
        (self.trust == ProjectTrust::Trusted).then_some(&self.project.document)
    }

    fn refresh(&mut self) {
        let none = Map::new();
        let project = self.trusted_project().unwrap_or(&none);
        let merged = merge(&merge(&self.global.document, project), &self.overrides);
        let layers = Layers { merged: &merged, global: &self.global.document, project };
        let (settings, problems) = reader::read(layers);
        self.settings = Arc::new(settings);
        self.problems = problems;
        self.document = Arc::new(merged);
    }
}

#[cfg(test)]
mod tests;
