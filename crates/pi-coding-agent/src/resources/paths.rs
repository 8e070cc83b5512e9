//! Where things are: the agent's folder, the home folder, the working folder. Read once at the edge and passed down.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The folder with a user's settings, credentials, sessions and resources (`~/.pi/agent` by default).
///
/// ```
/// use pi_coding_agent::resources::AgentDir;
/// let dir = AgentDir::new("/home/ada/.pi/agent");
/// assert_eq!(dir.settings_file(), std::path::Path::new("/home/ada/.pi/agent/settings.json"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentDir(PathBuf);

/// Neither `PI_CODING_AGENT_DIR` nor a home folder is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no folder for settings and sessions: neither PI_CODING_AGENT_DIR nor HOME is set; set one of them to a folder that can be written"
)]
pub struct NoAgentDir;

impl AgentDir {
    /// The environment variable that names the folder.
    pub const VARIABLE: &'static str = "PI_CODING_AGENT_DIR";

    /// A folder that the caller chose.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder that the environment names, else `.pi/agent` in the home folder. `~` in the variable is expanded.
    ///
    /// # Errors
    /// When there is neither.
    pub fn from_environment(
        variable: impl Fn(&str) -> Option<OsString>,
        home: Option<&Path>,
    ) -> Result<Self, NoAgentDir> {
        match variable(Self::VARIABLE).filter(|value| !value.is_empty()) {
            Some(value) => Ok(Self(expand_home(Path::new(&value), home))),
            None => home.map(|home| Self(home.join(".pi").join("agent"))).ok_or(NoAgentDir),
        }
    }

    /// The folder itself.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// A file or folder in it.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// `settings.json`.
    pub fn settings_file(&self) -> PathBuf {
        self.0.join("settings.json")
    }

    /// `keybindings.json`.
    pub fn keybindings_file(&self) -> PathBuf {
        self.0.join("keybindings.json")
    }

    /// `models.json`: providers and models that the user adds.
    pub fn models_file(&self) -> PathBuf {
        self.0.join("models.json")
    }

    /// `auth.json`: credentials.
    pub fn auth_file(&self) -> PathBuf {
        self.0.join("auth.json")
    }

    /// `trust.json`: which project folders are trusted.
    pub fn trust_file(&self) -> PathBuf {
        self.0.join("trust.json")
    }

    /// Where sessions are kept.
    pub fn sessions_dir(&self) -> PathBuf {
        self.0.join("sessions")
    }

    /// Where a user's extensions are.
    pub fn extensions_dir(&self) -> PathBuf {
        self.0.join("extensions")
    }

    /// Where a user's skills are.
    pub fn skills_dir(&self) -> PathBuf {
        self.0.join("skills")
    }

    /// Where a user's prompt templates are.
    pub fn prompts_dir(&self) -> PathBuf {
        self.0.join("prompts")
    }

    /// Where a user's themes are.
    pub fn themes_dir(&self) -> PathBuf {
        self.0.join("themes")
    }
}

/// The folders that resources are looked up from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locations {
    /// The user's folder.
    pub agent_dir: AgentDir,
    /// The home folder, for `~` and `~/.agents`. `None` when it is not known.
    pub home: Option<PathBuf>,
    /// The absolute working folder.
    pub cwd: PathBuf,
}

impl Locations {
    /// The project's folder for settings and resources: `.pi` in the working folder.
    pub fn project_dir(&self) -> PathBuf {
        self.cwd.join(".pi")
    }

    /// A path as a user writes it: `~` expanded, relative ones taken from `base`.
    pub fn resolve(&self, text: &str, base: &Path) -> PathBuf {
        let text = text.trim();
        let path = text.strip_prefix("file://").unwrap_or(text);
        normalize(&base.join(expand_home(Path::new(path), self.home.as_deref())))
    }
}

/// Replaces a leading `~` by the home folder. Without a home folder the path stays as it is.
pub fn expand_home(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) if rest.as_os_str().is_empty() => home.to_owned(),
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

/// Resolves `.` and `..` by name only, so that it works for paths that do not exist.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            // Above the root there is only the root.
            Component::ParentDir if normal.has_root() => {}
            other => normal.push(other),
        }
    }
    normal
}

/// The path with links resolved, or as it is when it does not exist.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_folder_comes_from_the_environment_else_from_home() {
        let home = Path::new("/home/ada");
        let with = |value: &'static str| {
            AgentDir::from_environment(move |name| (name == AgentDir::VARIABLE).then(|| value.into()), Some(home))
        };
        assert_eq!(with("~/x").unwrap().as_path(), Path::new("/home/ada/x"));
        assert_eq!(with("/srv/pi").unwrap().as_path(), Path::new("/srv/pi"));
        assert_eq!(with("").unwrap().as_path(), Path::new("/home/ada/.pi/agent"));
        assert_eq!(AgentDir::from_environment(|_| None, None), Err(NoAgentDir));
    }

    #[test]
    fn paths_resolve_as_a_user_writes_them() {
        let locations =
            Locations { agent_dir: AgentDir::new("/a"), home: Some("/home/ada".into()), cwd: "/project".into() };
        let base = Path::new("/project/sub");
        assert_eq!(locations.resolve(" ~/notes ", base), Path::new("/home/ada/notes"));
        assert_eq!(locations.resolve("../x/./y", base), Path::new("/project/x/y"));
        assert_eq!(locations.resolve("file:///etc/x", base), Path::new("/etc/x"));
        assert_eq!(locations.resolve("~other/x", base), Path::new("/project/sub/~other/x"));
    }
}
