//! Skills: instructions for a kind of task, read by the model when the task comes up.

mod command;
mod discovery;
mod prompt;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use command::{SkillCommandError, expand_skill_command};
pub use discovery::load_skills_from_dir;
pub(crate) use discovery::{SkillFolder, load_skill, skill_files};
pub use prompt::{SkillReader, skills_prompt};

/// A skill: what it is for and where its instructions are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    /// Its name, for `/skill:name`.
    pub name: String,
    /// When it is useful.
    pub description: String,
    /// The file with its instructions.
    pub file_path: PathBuf,
    /// Its folder; paths in the instructions are relative to it.
    pub base_dir: PathBuf,
    /// Whether only people may call it up.
    #[serde(default)]
    pub disable_model_invocation: bool,
}
