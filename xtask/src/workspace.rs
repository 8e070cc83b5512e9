//! The workspace itself: where it is, what its manifests say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

use crate::Error;

/// The root of the workspace.
pub fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// A `cargo` command that runs in the root, with the `cargo` that runs us.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Where build products go.
///
/// # Errors
///
/// As [`metadata`].
pub fn target_dir() -> Result<PathBuf, Error> {
    Ok(metadata()?.target_directory)
}

/// A package of the workspace, as `cargo metadata` shows it.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Where its manifest is.
    pub manifest_path: PathBuf,
    /// `None` for published packages, an empty list for those that are not.
    pub publish: Option<Vec<String>>,
    /// Each feature and what it turns on.
    pub features: BTreeMap<String, Vec<String>>,
    /// `[package.metadata]`.
    #[serde(default)]
    pub metadata: Value,
}

impl Package {
    /// Whether the package goes to a registry.
    pub fn is_published(&self) -> bool {
        self.publish.is_none()
    }
}

/// What `cargo metadata` says, as far as it is used here.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// The members of the workspace.
    pub packages: Vec<Package>,
    /// Where build products go.
    pub target_directory: PathBuf,
}

/// Asks `cargo` for the workspace's packages.
///
/// # Errors
///
/// When `cargo metadata` fails, with what it said.
pub fn metadata() -> Result<Metadata, Error> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
    let output = cargo().args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
