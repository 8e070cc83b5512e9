//! Whether a project's own settings and resources are used.
//!
//! Order: the command line's flag, the user's extensions, the stored decision of the closest folder, the default of
//! the settings, and where somebody can be asked, a question. [`TrustCheck`] is that order as steps, because
//! extensions and questions must be awaited; nothing that has no user interface ever asks.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::{Locations, atomic_file, file_lock::FileLock, paths::canonical, settings::DefaultTrust};
use crate::regular_file;

/// Whether a project's own settings and resources are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProjectTrust {
    /// They are.
    Trusted,
    /// They are not; nothing of the project is executed.
    Untrusted,
}

impl ProjectTrust {
    fn from_stored(trusted: bool) -> Self {
        if trusted { Self::Trusted } else { Self::Untrusted }
    }
}

/// What in a project's `.pi` folder needs trust.
const NEEDS_TRUST: [&str; 8] =
    ["settings.json", "mcp.json", "extensions", "skills", "prompts", "themes", "SYSTEM.md", "APPEND_SYSTEM.md"];

/// Whether the working folder has anything that needs trust. The home folder's `.agents/skills` is the user's own.
pub fn needs_trust(locations: &Locations) -> bool {
    let own = locations.home.as_deref().map(|home| canonical(home).join(".agents").join("skills"));
    let cwd = canonical(&locations.cwd);
    let project = cwd.join(".pi");
    NEEDS_TRUST.iter().any(|name| project.join(name).exists())
        || cwd
            .ancestors()
            .map(|folder| folder.join(".agents").join("skills"))
            .any(|skills| Some(&skills) != own.as_ref() && skills.exists())
}

/// Why decisions cannot be read or stored.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The file cannot be read or written.
    #[error("the file of trusted folders {} cannot be used: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
    /// The file is not what it should be.
    #[error("the file of trusted folders {} is damaged: {message}; correct it or remove it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
}

/// The stored decisions (`trust.json`), by canonical path. Its methods block for a short time.
#[derive(Clone, Debug)]
pub struct TrustStore {
    file: PathBuf,
}

/// A stored decision, and the folder that it was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustEntry {
    /// The folder itself or one above it.
    pub folder: PathBuf,
    /// The decision.
    pub trust: ProjectTrust,
}

/// A change of the stored decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustUpdate {
    /// The folder.
    pub folder: PathBuf,
    /// The decision; `None` removes it.
    pub trust: Option<ProjectTrust>,
}

type Decisions = BTreeMap<String, Option<bool>>;

impl TrustStore {
    /// The store in this file.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into() }
    }

    /// The decision for a folder: its own, else that of the closest folder above it.
    ///
    /// # Errors
    /// When the file is there but cannot be used. Then nothing is trusted.
    pub fn get(&self, folder: &Path) -> Result<Option<TrustEntry>, TrustError> {
        let decisions = match self.read() {
            // Other programs write in place: what looks damaged may just be half written.
            Err(TrustError::Damaged { .. }) => {
                let _lock = FileLock::acquire(&self.file).map_err(|source| self.io(source))?;
                self.read()?
            }
            other => other?,
        };
        let folder = canonical(folder);
        Ok(folder.ancestors().find_map(|ancestor| {
            let trusted = (*decisions.get(ancestor.to_string_lossy().as_ref())?)?;
            Some(TrustEntry { folder: ancestor.to_owned(), trust: ProjectTrust::from_stored(trusted) })
        }))
    }

    /// Stores or removes decisions.
    ///
    /// # Errors
    /// When the file cannot be read (it is not overwritten then) or written.
    pub fn update(&self, updates: &[TrustUpdate]) -> Result<(), TrustError> {
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder).map_err(|source| self.io(source))?;
        }
        let _lock = FileLock::acquire(&self.file).map_err(|source| self.io(source))?;
        let mut decisions = self.read()?;
        for update in updates {
            let key = canonical(&update.folder).to_string_lossy().into_owned();
            match update.trust {
                Some(trust) => drop(decisions.insert(key, Some(trust == ProjectTrust::Trusted))),
                None => drop(decisions.remove(&key)),
            }
        }
        let text = serde_json::to_string_pretty(&decisions).unwrap_or_default() + "\n";
        atomic_file::replace(&self.file, text.as_bytes()).map_err(|source| self.io(source))
    }

    fn read(&self) -> Result<Decisions, TrustError> {
        let text = match regular_file::read_to_string(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Decisions::new()),
            Err(error) => return Err(self.io(error)),
        };
        let damaged = |message: String| TrustError::Damaged { path: self.file.clone(), message };
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let object: Map<String, Value> = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        let decision = |(folder, value): (String, Value)| match value {
            Value::Bool(trusted) => Ok((folder, Some(trusted))),
            Value::Null => Ok((folder, None)),
            other => Err(damaged(format!("expected true, false or null for {folder}, found {other}"))),
        };
        object.into_iter().map(decision).collect()
    }

    fn io(&self, source: io::Error) -> TrustError {
        TrustError::Io { path: self.file.clone(), source: Arc::new(source) }
    }
}

/// How the question of trust stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustCheck {
    /// It is answered.
    Decided(ProjectTrust),
    /// The user's extensions may answer it now; after that see [`TrustCheck::from_store`].
    AskExtensions,
    /// Nothing answers it but the user. Without a user interface the answer is no.
    AskUser,
}

impl TrustCheck {
    /// The first step: a flag of the command line decides; so does the absence of anything that needs trust, unless a
    /// decision is stored.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn begin(locations: &Locations, flag: Option<ProjectTrust>, store: &TrustStore) -> Result<Self, TrustError> {
        if let Some(trust) = flag {
            return Ok(Self::Decided(trust));
        }
        if needs_trust(locations) {
            return Ok(Self::AskExtensions);
        }
        let stored = store.get(&locations.cwd)?;
        Ok(Self::Decided(stored.map_or(ProjectTrust::Trusted, |entry| entry.trust)))
    }

    /// The step after the extensions: the stored decision, else the default of the settings.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn from_store(locations: &Locations, store: &TrustStore, default: DefaultTrust) -> Result<Self, TrustError> {
        Ok(match (store.get(&locations.cwd)?, default) {
            (Some(entry), _) => Self::Decided(entry.trust),
            (None, DefaultTrust::Always) => Self::Decided(ProjectTrust::Trusted),
            (None, DefaultTrust::Never) => Self::Decided(ProjectTrust::Untrusted),
            (None, _) => Self::AskUser,
        })
    }

    /// What holds where nobody can be asked.
    pub fn without_user(self) -> ProjectTrust {
        match self {
            Self::Decided(trust) => trust,
            Self::AskExtensions | Self::AskUser => ProjectTrust::Untrusted,
        }
    }
}

/// An answer that a user can give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustChoice {
    /// The answer, for people.
    pub label: String,
    /// What it decides.
    pub trust: ProjectTrust,
    /// What is stored. Nothing: it holds for this session.
    pub updates: Vec<TrustUpdate>,
}

/// The answers that a user can give for a folder, in order.
pub fn trust_choices(folder: &Path) -> Vec<TrustChoice> {
    let folder = canonical(folder);
    let store = |folder: &Path, trust| TrustUpdate { folder: folder.to_owned(), trust };
    let choice = |label: String, trust, updates| TrustChoice { label, trust, updates };
    let (yes, no) = (ProjectTrust::Trusted, ProjectTrust::Untrusted);
    let mut choices = vec![choice("Trust this folder".into(), yes, vec![store(&folder, Some(yes))])];
    if let Some(parent) = folder.parent() {
        choices.push(choice(
            format!("Trust everything in {}", parent.display()),
            yes,
            vec![store(parent, Some(yes)), store(&folder, None)],
        ));
    }
    choices.push(choice("Trust it for this session".into(), yes, Vec::new()));
    choices.push(choice("Do not trust this folder".into(), no, vec![store(&folder, Some(no))]));
    choices.push(choice("Do not trust it for this session".into(), no, Vec::new()));
    choices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::AgentDir;

    struct Folders {
        dir: tempfile::TempDir,
        store: TrustStore,
        locations: Locations,
    }

    fn folders() -> Folders {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("home/work/project");
        fs::create_dir_all(&cwd).unwrap();
        let agent_dir = AgentDir::new(dir.path().join("home/.pi/agent"));
        let store = TrustStore::new(agent_dir.trust_file());
        let locations = Locations { agent_dir, home: Some(dir.path().join("home")), cwd };
        Folders { dir, store, locations }
    }

    fn decide(folders: &Folders, default: DefaultTrust) -> ProjectTrust {
        match TrustCheck::begin(&folders.locations, None, &folders.store).unwrap() {
            TrustCheck::AskExtensions => {
                TrustCheck::from_store(&folders.locations, &folders.store, default).unwrap().without_user()
            }
            other => other.without_user(),
        }
    }

    #[test]
    fn a_project_without_resources_needs_no_trust_and_one_with_them_does() {
        let folders = folders();
        assert_eq!(decide(&folders, DefaultTrust::Ask), ProjectTrust::Trusted);
        fs::create_dir_all(folders.locations.project_dir()).unwrap();
        assert_eq!(decide(&folders, DefaultTrust::Ask), ProjectTrust::Trusted, "an empty .pi needs none");
        fs::write(folders.locations.project_dir().join("settings.json"), "{}").unwrap();
        assert_eq!(decide(&folders, DefaultTrust::Ask), ProjectTrust::Untrusted, "nobody can be asked");
        assert_eq!(decide(&folders, DefaultTrust::Always), ProjectTrust::Trusted);
        let flag = TrustCheck::begin(&folders.locations, Some(ProjectTrust::Trusted), &folders.store).unwrap();
        assert_eq!(flag, TrustCheck::Decided(ProjectTrust::Trusted));
    }

    #[test]
    fn shared_skills_above_need_trust_but_not_those_of_the_home_folder() {
        let folders = folders();
        fs::create_dir_all(folders.dir.path().join("home/.agents/skills")).unwrap();
        assert!(!needs_trust(&folders.locations));
        fs::create_dir_all(folders.dir.path().join("home/work/.agents/skills")).unwrap();
        assert!(needs_trust(&folders.locations));
    }

    #[test]
    fn the_closest_stored_decision_counts_even_where_none_is_needed() {
        let folders = folders();
        let parent = folders.locations.cwd.parent().unwrap().to_owned();
        let set = |folder: &Path, trust| {
            folders.store.update(&[TrustUpdate { folder: folder.to_owned(), trust }]).unwrap();
        };
        set(&parent, Some(ProjectTrust::Untrusted));
        assert_eq!(decide(&folders, DefaultTrust::Always), ProjectTrust::Untrusted);
        set(&folders.locations.cwd, Some(ProjectTrust::Trusted));
        assert_eq!(decide(&folders, DefaultTrust::Never), ProjectTrust::Trusted);
        set(&folders.locations.cwd, None);
        assert_eq!(folders.store.get(&folders.locations.cwd).unwrap().unwrap().folder, canonical(&parent));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_folder_is_that_folder() {
        let folders = folders();
        let link = folders.dir.path().join("link");
        std::os::unix::fs::symlink(&folders.locations.cwd, &link).unwrap();
        let update = TrustUpdate { folder: link, trust: Some(ProjectTrust::Trusted) };
        folders.store.update(&[update]).unwrap();
        let entry = folders.store.get(&folders.locations.cwd).unwrap().unwrap();
        assert_eq!(entry.trust, ProjectTrust::Trusted);
    }

    #[test]
    fn a_damaged_file_trusts_nothing_and_is_not_overwritten() {
        let folders = folders();
        fs::create_dir_all(folders.locations.agent_dir.as_path()).unwrap();
        let file = folders.locations.agent_dir.trust_file();
        for text in ["{\"/a\": 1}", "[]", "{"] {
            fs::write(&file, text).unwrap();
            assert!(folders.store.get(&folders.locations.cwd).is_err());
            let update = TrustUpdate { folder: folders.locations.cwd.clone(), trust: Some(ProjectTrust::Trusted) };
            assert!(folders.store.update(&[update]).is_err());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
    }

    #[test]
    fn trusting_the_parent_forgets_the_folders_own_decision() {
        let choices = trust_choices(Path::new("/x/y"));
        let labels: Vec<_> = choices.iter().map(|choice| choice.trust).collect();
        use ProjectTrust::{Trusted, Untrusted};
        assert_eq!(labels, [Trusted, Trusted, Trusted, Untrusted, Untrusted]);
        assert_eq!(choices[1].updates.len(), 2);
        assert_eq!(choices[1].updates[1].trust, None);
        assert_eq!(trust_choices(Path::new("/")).len(), 4);
    }
}
