//! What is read of the process's surroundings, once, at the edge.

use std::{collections::BTreeMap, ffi::OsString, io, path::PathBuf};

use pi_ai::models::Environment;

use crate::resources::{AgentDir, Locations};

/// The surroundings of a program that runs sessions: folders and environment variables. Everything further in gets
/// what it needs of them handed down, so that several sessions with different surroundings can run in one process.
#[derive(Clone, Debug)]
pub struct Host {
    /// The working folder, absolute.
    pub cwd: PathBuf,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Where settings, sessions and credentials lie.
    pub agent_dir: PathBuf,
    /// Where large outputs of commands go.
    pub temp_dir: PathBuf,
    /// The environment variables.
    pub variables: BTreeMap<OsString, OsString>,
}

impl Host {
    /// The surroundings of this process.
    ///
    /// # Errors
    /// When the working folder does not exist any more, or there is neither a home nor `PI_CODING_AGENT_DIR`.
    pub fn of_process() -> io::Result<Self> {
        let variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        let cwd = std::env::current_dir().map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("the working folder cannot be used ({error}); change to one that exists"),
            )
        })?;
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        let variable = |name: &str| variables.get(std::ffi::OsStr::new(name)).cloned();
        let agent_dir = AgentDir::from_environment(variable, home.as_deref())
            .map_err(|error| io::Error::new(io::ErrorKind::NotFound, error.to_string()))?;
        let agent_dir = cwd.join(agent_dir.as_path());
        Ok(Self { cwd, home, agent_dir, temp_dir: std::env::temp_dir(), variables })
    }

    /// An environment variable as text; one that is not UTF-8 counts as unset.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(std::ffi::OsStr::new(name))?.to_str()
    }

    /// The variables for whatever reads keys.
    pub fn environment(&self) -> Environment {
        let variables = self.variables.clone();
        Environment::new(move |name| variables.get(std::ffi::OsStr::new(name))?.to_str().map(str::to_owned))
    }

    /// The folders for whatever reads resources.
    pub fn locations(&self) -> Locations {
        Locations { agent_dir: AgentDir::new(&self.agent_dir), home: self.home.clone(), cwd: self.cwd.clone() }
    }
}
