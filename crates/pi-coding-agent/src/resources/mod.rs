//! What a user or a project brings along: settings, instructions, skills, prompts, themes, trust.
//!
//! Nothing here reads a global: the agent's folder, the home folder and the working folder come in as [`Locations`].
//! What is wrong with a resource is a [`Diagnostic`] that names file and line; it never stops the rest from loading.

mod atomic_file;
mod context_files;
mod diagnostic;
mod file_lock;
mod frontmatter;
mod paths;
mod settings;
mod skills;
mod system_prompt;
mod trust;

pub use context_files::{CONTEXT_FILE_NAMES, ContextFile, ContextFiles, MAX_BYTES, load_context_files};
pub use diagnostic::{Collision, Diagnostic, ResourceKind, Severity};
pub use frontmatter::{Frontmatter, InvalidFrontmatter, parse_frontmatter};
pub use paths::{AgentDir, Locations, NoAgentDir, expand_home};
pub use settings::*;
pub use skills::{Skill, SkillReader, skills_prompt};
pub use system_prompt::{
    InvalidSectionName, Sections, SystemPromptOptions, build_sections, build_system_message, diff,
};
pub use trust::ProjectTrust;
