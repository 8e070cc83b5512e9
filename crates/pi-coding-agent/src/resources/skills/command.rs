//! `/skill:name arguments`: a skill that a person calls up.

use std::{io, path::PathBuf};

use super::Skill;
use crate::{
    regular_file,
    resources::{InvalidFrontmatter, parse_frontmatter},
};

/// Why a skill that was called up cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillCommandError {
    /// Its file cannot be read.
    #[error("the skill `{name}` cannot be read from {}: {source}", path.display())]
    Unreadable {
        /// The skill.
        name: String,
        /// Its file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its file has changed and is no skill any more.
    #[error("the skill `{name}` in {} cannot be used: {source}", path.display())]
    Invalid {
        /// The skill.
        name: String,
        /// Its file.
        path: PathBuf,
        /// Why.
        source: InvalidFrontmatter,
    },
}

/// Replaces `/skill:name arguments` by the skill's text and the arguments. `None` when the text is no such command or
/// there is no skill of that name. Reads the skill's file: blocks.
///
/// # Errors
/// When the file cannot be read any more.
pub fn expand_skill_command(text: &str, skills: &[Skill]) -> Result<Option<String>, SkillCommandError> {
    let Some(command) = text.strip_prefix("/skill:") else { return Ok(None) };
    let (name, arguments) = command.split_once(' ').unwrap_or((command, ""));
    let Some(skill) = skills.iter().find(|skill| skill.name == name) else { return Ok(None) };
    let content = regular_file::read(&skill.file_path).map_err(|source| SkillCommandError::Unreadable {
        name: skill.name.clone(),
        path: skill.file_path.clone(),
        source,
    })?;
    let file = parse_frontmatter(&String::from_utf8_lossy(&content)).map_err(|source| SkillCommandError::Invalid {
        name: skill.name.clone(),
        path: skill.file_path.clone(),
        source,
    })?;
    let (location, folder) = (skill.file_path.display(), skill.base_dir.display());
    let block = format!(
        "<skill name=\"{}\" location=\"{location}\">\nPaths in this skill are relative to {folder}.\n\n{}\n</skill>",
        skill.name,
        file.body.trim()
    );
    Ok(Some(match arguments.trim() {
        "" => block,
        arguments => format!("{block}\n\n{arguments}"),
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_skill_that_is_called_up_stands_in_the_prompt_with_its_arguments() {
        let dir = tempfile::tempdir().unwrap();
        let file_path = dir.path().join("SKILL.md");
        fs::write(&file_path, "---\ndescription: d\n---\n\nDo it.\n").unwrap();
        let skill = Skill {
            name: "doer".into(),
            description: "d".into(),
            file_path: file_path.clone(),
            base_dir: dir.path().to_owned(),
            disable_model_invocation: true,
        };
        let text = expand_skill_command("/skill:doer  now  please ", std::slice::from_ref(&skill)).unwrap().unwrap();
        assert!(text.starts_with(&format!("<skill name=\"doer\" location=\"{}\">\n", file_path.display())), "{text}");
        assert!(text.ends_with("\n\nDo it.\n</skill>\n\nnow  please"), "{text}");
        assert_eq!(expand_skill_command("/skill:other", std::slice::from_ref(&skill)).unwrap(), None);
        assert_eq!(expand_skill_command("skill:doer", std::slice::from_ref(&skill)).unwrap(), None);
        fs::remove_file(&file_path).unwrap();
        assert!(expand_skill_command("/skill:doer", &[skill]).is_err());
    }
}
