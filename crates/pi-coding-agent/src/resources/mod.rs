//! What a user or a project brings along: settings, instructions, skills, prompts, themes, trust.
//!
//! Nothing here reads a global: the agent's folder, the home folder and the working folder come in as [`Locations`].
//! What is wrong with a resource is a [`Diagnostic`] that names file and line; it never stops the rest from loading.

mod atomic_file;
mod context_files;
mod diagnostic;
pub(crate) mod document;
mod file_lock;
mod frontmatter;
pub(crate) mod glob;
mod ignore_rules;
mod loader;
mod paths;
mod prompt_templates;
mod settings;
mod skills;
mod sources;
mod system_files;
mod system_prompt;
mod themes;
mod trust;

use std::path::{Path, PathBuf};

pub use context_files::{CONTEXT_FILE_NAMES, ContextFile, ContextFiles, MAX_BYTES, load_context_files};
pub use diagnostic::{Collision, Diagnostic, ResourceKind, Severity};
pub use frontmatter::{Frontmatter, InvalidFrontmatter, parse_frontmatter};
pub use loader::{DefaultResourceLoader, DiscoveredPaths, Discovery, ResourceLoader, ResourceLoaderOptions, Resources};
pub use paths::{AgentDir, Locations, NoAgentDir, expand_home};
pub use prompt_templates::{
    PromptTemplate, expand_prompt_template, load_templates_from_dir, parse_arguments, substitute_arguments,
};
pub use settings::*;
pub use skills::{Skill, SkillCommandError, SkillReader, expand_skill_command, load_skills_from_dir, skills_prompt};
pub(crate) use sources::extension_paths;
#[cfg(feature = "cli")]
pub(crate) use system_files::prompt_file;
pub use system_files::{PromptText, SystemFile, UnreadablePrompt, prompt_input};
pub use system_prompt::{
    InvalidSectionName, Sections, SystemPromptOptions, build_sections, build_system_message, diff,
};
pub use themes::{Appearance, ExportColors, SYSTEM_THEME, Slot, Theme, ThemeColor, ThemeToken, load_themes_from_dir};
pub use trust::{
    ProjectTrust, TrustCheck, TrustChoice, TrustEntry, TrustError, TrustStore, TrustUpdate, needs_trust, trust_choices,
};

/// What was loaded, and what is wrong with it or with what could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded<T> {
    /// What was loaded.
    pub items: Vec<T>,
    /// Problems, each with its file.
    pub diagnostics: Vec<Diagnostic>,
}

impl<T> Default for Loaded<T> {
    fn default() -> Self {
        Self { items: Vec::new(), diagnostics: Vec::new() }
    }
}

impl<T> Loaded<T> {
    fn problem(problem: Diagnostic) -> Self {
        Self { items: Vec::new(), diagnostics: vec![problem] }
    }
}

/// The files directly in a folder that end in `.extension`, sorted; links to files count.
fn files_in(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|own| own == extension) && path.is_file())
        .collect();
    files.sort_unstable();
    files
}
