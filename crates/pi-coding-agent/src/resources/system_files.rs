//! Prompt files of a user or a project: `SYSTEM.md` and `APPEND_SYSTEM.md`; and prompts that the command line names.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{Diagnostic, Locations, ProjectTrust};
use crate::regular_file;

/// A prompt file that is there but cannot be read: its name is no prompt, so nothing takes its place.
#[derive(Debug, thiserror::Error)]
#[error("the prompt file {} cannot be read: {source}", path.display())]
pub struct UnreadablePrompt {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

impl From<UnreadablePrompt> for Diagnostic {
    fn from(error: UnreadablePrompt) -> Self {
        Diagnostic::error(format!("the prompt file cannot be read: {}", error.source)).in_file(error.path)
    }
}

/// A text for the prompt, and the file that it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptText {
    /// The text.
    pub text: String,
    /// The file, when it came from one.
    pub source: Option<PathBuf>,
}

/// Which of the two files is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemFile {
    /// `SYSTEM.md`: takes the place of the default prompt.
    Prompt,
    /// `APPEND_SYSTEM.md`: is added to it.
    Addition,
}

impl SystemFile {
    fn name(self) -> &'static str {
        match self {
            Self::Prompt => "SYSTEM.md",
            Self::Addition => "APPEND_SYSTEM.md",
        }
    }
}

/// Finds the file that counts: the project's, when it is trusted, else the user's. They are never joined.
pub(crate) fn discover(file: SystemFile, locations: &Locations, trust: ProjectTrust) -> Option<PathBuf> {
    let project = (trust == ProjectTrust::Trusted).then(|| locations.project_dir().join(file.name()));
    project.into_iter().chain([locations.agent_dir.join(file.name())]).find(|path| path.is_file())
}

/// Reads a prompt file.
///
/// # Errors
/// Says which file cannot be read.
pub(crate) fn read(path: &Path) -> Result<PromptText, UnreadablePrompt> {
    match regular_file::read(path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
            Ok(PromptText { text, source: Some(path.to_owned()) })
        }
        Err(source) => Err(UnreadablePrompt { path: path.to_owned(), source }),
    }
}

/// What the command line gives as a prompt: the content of a file of that name, else the text itself.
///
/// # Errors
/// When there is a file of that name that cannot be read: its name is no prompt.
pub fn prompt_input(input: &str, locations: &Locations) -> Result<PromptText, UnreadablePrompt> {
    if let Some(path) = prompt_file(input, locations) {
        return read(&path);
    }
    Ok(PromptText { text: input.to_owned(), source: None })
}

/// The file that a prompt of the command line names; `None`: it is the text itself.
pub(crate) fn prompt_file(input: &str, locations: &Locations) -> Option<PathBuf> {
    let path = locations.resolve(input, &locations.cwd);
    // Text of several lines names no file, and asking for it may be an error of its own.
    (!input.trim().is_empty() && !input.contains('\n') && path.is_file()).then_some(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::resources::AgentDir;

    #[test]
    fn a_trusted_projects_file_takes_the_place_of_the_users() {
        let dir = tempfile::tempdir().unwrap();
        let locations =
            Locations { agent_dir: AgentDir::new(dir.path().join("agent")), home: None, cwd: dir.path().join("p") };
        fs::create_dir_all(locations.agent_dir.as_path()).unwrap();
        fs::create_dir_all(locations.project_dir()).unwrap();
        assert_eq!(discover(SystemFile::Prompt, &locations, ProjectTrust::Trusted), None);
        fs::write(locations.agent_dir.join("SYSTEM.md"), "user").unwrap();
        fs::write(locations.project_dir().join("SYSTEM.md"), "\u{feff}project").unwrap();
        let text = |trust| read(&discover(SystemFile::Prompt, &locations, trust).unwrap()).unwrap().text;
        assert_eq!(text(ProjectTrust::Trusted), "project");
        assert_eq!(text(ProjectTrust::Untrusted), "user");
    }

    #[test]
    fn a_prompt_on_the_command_line_is_a_file_or_a_text() {
        let dir = tempfile::tempdir().unwrap();
        let locations = Locations { agent_dir: AgentDir::new("/none"), home: None, cwd: dir.path().to_owned() };
        fs::write(dir.path().join("p.md"), "from a file").unwrap();
        assert_eq!(prompt_input("p.md", &locations).unwrap().text, "from a file");
        for text in ["Be brief.", "two\nlines", "", &"long ".repeat(5000)] {
            assert_eq!(prompt_input(text, &locations).unwrap(), PromptText { text: text.to_owned(), source: None });
        }
    }
}
