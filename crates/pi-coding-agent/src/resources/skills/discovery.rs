//! Finding skills and reading what they say about themselves.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::Skill;
use crate::{
    regular_file,
    resources::{
        Diagnostic, Loaded,
        ignore_rules::{EntryKind, IgnoreRules},
        parse_frontmatter,
    },
};

/// The longest name, in UTF-16 units.
const LONGEST_NAME: usize = 64;
/// The longest description, in UTF-16 units.
const LONGEST_DESCRIPTION: usize = 1024;

/// Which Markdown files of a folder are skills, besides `SKILL.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SkillFolder {
    /// One of pi's own: those at its top.
    Own,
    /// A shared `.agents/skills`: those below its top.
    Shared,
}

/// The files in a folder that may be skills, sorted. A folder with a `SKILL.md` is one skill and is not entered.
pub(crate) fn skill_files(folder: &Path, kind: SkillFolder) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(folder, String::new(), kind, IgnoreRules::default(), &mut found);
    found
}

fn collect(folder: &Path, below: String, kind: SkillFolder, mut rules: IgnoreRules, found: &mut Vec<PathBuf>) {
    let Some(names) = rules.enter(folder, &below) else { return };
    let relative = |name: &str| if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
    let skill = folder.join("SKILL.md");
    if names.iter().any(|name| name == "SKILL.md")
        && skill.is_file()
        && !rules.ignores(&relative("SKILL.md"), EntryKind::File)
    {
        found.push(skill);
        return;
    }
    for name in names.iter().filter(|name| !name.starts_with('.') && *name != "node_modules") {
        let path = folder.join(name);
        // Links are followed; one that leads nowhere is neither.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        let relative = relative(name);
        if metadata.is_dir() {
            if !rules.ignores(&relative, EntryKind::Folder) {
                collect(&path, relative, kind, rules.clone(), found);
            }
        } else if metadata.is_file() && name.ends_with(".md") && !rules.ignores(&relative, EntryKind::File) {
            let at_top = below.is_empty();
            if at_top == (kind == SkillFolder::Own) {
                found.push(path);
            }
        }
    }
}

/// Loads the skills of one of pi's own folders. Blocks.
pub fn load_skills_from_dir(folder: &Path) -> Loaded<Skill> {
    let mut loaded = Loaded::default();
    for file in skill_files(folder, SkillFolder::Own) {
        let one = load_skill(&file);
        loaded.items.extend(one.items);
        loaded.diagnostics.extend(one.diagnostics);
    }
    loaded
}

/// Reads one skill. A Markdown file that is not called `SKILL.md` and has no description is just not a skill.
pub(crate) fn load_skill(file: &Path) -> Loaded<Skill> {
    let mut loaded = Loaded::default();
    let declared = file.file_name().is_some_and(|name| name == "SKILL.md");
    let warn = |message: String| Diagnostic::warning(message).in_file(file);
    let content = match regular_file::read(file) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => {
            loaded.diagnostics.push(warn(format!("the skill cannot be read: {error}")));
            return loaded;
        }
    };
    let facts = match parse_frontmatter(&content) {
        Ok(parsed) => parsed,
        Err(error) => {
            if declared {
                let line = error.line.unwrap_or(1);
                loaded.diagnostics.push(warn(format!("the skill is not loaded: {error}")).on_line(line));
            }
            return loaded;
        }
    };
    let description = facts.text("description").filter(|text| !text.trim().is_empty());
    if description.is_none() && !declared {
        return loaded;
    }
    let line_of = |key: &str| line_of_fact(&content, key);
    let base_dir = file.parent().unwrap_or(Path::new("")).to_owned();
    let folder_name = || base_dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = facts.text("name").filter(|name| !name.is_empty()).map_or_else(folder_name, str::to_owned);
    match description {
        None => {
            let message = "the skill is not loaded: it needs a `description`, a text that says when it is useful";
            loaded.diagnostics.push(warn(message.to_owned()).on_line(line_of("description")));
        }
        Some(text) if text.encode_utf16().count() > LONGEST_DESCRIPTION => {
            let length = text.encode_utf16().count();
            let message = format!("the description has {length} characters; {LONGEST_DESCRIPTION} are allowed");
            loaded.diagnostics.push(warn(message).on_line(line_of("description")));
        }
        Some(_) => {}
    }
    let problems = name_problems(&name);
    loaded.diagnostics.extend(problems.into_iter().map(|problem| warn(problem).on_line(line_of("name"))));
    if let Some(description) = description {
        loaded.items.push(Skill {
            name,
            description: description.to_owned(),
            file_path: file.to_owned(),
            base_dir,
            disable_model_invocation: facts.facts.get("disable-model-invocation") == Some(&true.into()),
        });
    }
    loaded
}

/// The line of a fact at the file's head; the first line when it is not there.
fn line_of_fact(content: &str, key: &str) -> usize {
    let head = content.lines().enumerate().take_while(|(index, line)| *index == 0 || !line.starts_with("---"));
    head.into_iter()
        .find(|(_, line)| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':')))
        .map_or(1, |(index, _)| index + 1)
}

fn name_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let length = name.encode_utf16().count();
    if length > LONGEST_NAME {
        problems.push(format!("the name has {length} characters; {LONGEST_NAME} are allowed"));
    }
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
        problems.push(format!("the name `{name}` may have lower-case letters a-z, digits and hyphens only"));
    }
    if name.starts_with('-') || name.ends_with('-') {
        problems.push(format!("the name `{name}` must not begin or end with a hyphen"));
    }
    if name.contains("--") {
        problems.push(format!("the name `{name}` must not have two hyphens in a row"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_shared_folder_takes_markdown_below_its_top_only() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path().join("top.md"), "");
        write(dir.path().join("a/inner.md"), "");
        write(dir.path().join("b/SKILL.md"), "");
        write(dir.path().join("b/more.md"), "");
        let names = |kind| -> Vec<String> {
            let files = skill_files(dir.path(), kind);
            files.iter().map(|file| file.strip_prefix(dir.path()).unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names(SkillFolder::Own), ["b/SKILL.md", "top.md"]);
        assert_eq!(names(SkillFolder::Shared), ["a/inner.md", "b/SKILL.md"]);
    }

    #[test]
    fn a_mistake_is_reported_with_file_and_line() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path().join("x/SKILL.md"), "---\ndescription: d\nname: Bad_Name\n---\n");
        write(dir.path().join("y/SKILL.md"), "---\na: b\nbad: [unclosed\n---\n");
        let loaded = load_skills_from_dir(dir.path());
        assert_eq!(loaded.items.len(), 1);
        assert_eq!(loaded.diagnostics[0].line, Some(3));
        assert!(loaded.diagnostics[1].file.as_ref().unwrap().ends_with("y/SKILL.md"));
        assert!(loaded.diagnostics[1].line.is_some_and(|line| line >= 3), "{:?}", loaded.diagnostics[1]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_back_up_does_not_go_on_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path().join("a/SKILL.md"), "---\ndescription: d\n---\n");
        std::os::unix::fs::symlink(dir.path(), dir.path().join("z-loop")).unwrap();
        let files = skill_files(dir.path(), SkillFolder::Own);
        assert!(files.len() < 60, "{}", files.len());
    }
}
