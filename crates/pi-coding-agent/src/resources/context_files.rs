//! Instructions for the model that lie beside the code: `AGENTS.md` and its kin.
//!
//! They load whether or not the project is trusted, because they are only text; so the user is told which ones were
//! read, a file cannot be longer than [`MAX_BYTES`], characters that nobody can see are reported, and a link out of
//! the project is followed only when the project is trusted.

use std::{
    fs, io,
    io::Read,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{Diagnostic, Locations, ProjectTrust, paths::canonical};
use crate::regular_file;

/// In a folder, the first of these that is a file counts.
pub const CONTEXT_FILE_NAMES: [&str; 5] = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

/// What is read of one file at most, in bytes. Longer ones are cut at a line's end.
pub const MAX_BYTES: usize = 128 * 1024;

/// A file with instructions for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its text, without a byte order mark, at most [`MAX_BYTES`].
    pub content: String,
}

/// The files that were found, and what the user should know about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextFiles {
    /// In the order in which the model gets them: the user's, then from the file system's root to the working folder.
    pub files: Vec<ContextFile>,
    /// Files that were cut, left out or have invisible characters.
    pub diagnostics: Vec<Diagnostic>,
}

/// Finds the files of the agent's folder, of the working folder and of every folder above it. Blocks.
pub fn load_context_files(locations: &Locations, trust: ProjectTrust) -> ContextFiles {
    let mut found = ContextFiles::default();
    // The user's own folder is always trusted.
    found.load_first(locations.agent_dir.as_path(), &Links::Followed);
    let links = match trust {
        ProjectTrust::Trusted => Links::Followed,
        ProjectTrust::Untrusted => Links::Within(repository_of(&locations.cwd)),
    };
    let shadowed = shadowed_file(&locations.cwd);
    let mut folders: Vec<&Path> = locations.cwd.ancestors().collect();
    folders.reverse();
    for folder in folders {
        if folder == locations.agent_dir.as_path() || shadowed.as_deref() == Some(&canonical(folder)) {
            continue;
        }
        found.load_first(folder, &links);
    }
    found
}

/// Which links are followed.
enum Links {
    Followed,
    /// Those that stay within the file's own folder or within this one.
    Within(PathBuf),
}

impl ContextFiles {
    fn load_first(&mut self, folder: &Path, links: &Links) {
        for name in CONTEXT_FILE_NAMES {
            let path = folder.join(name);
            if !path.is_file() {
                continue;
            }
            match self.load(&path, folder, links) {
                Ok(Some(file)) => {
                    self.files.push(file);
                    return;
                }
                Ok(None) => {}
                Err(error) => {
                    self.diagnostics.push(Diagnostic::warning(format!("cannot be read: {error}")).in_file(&path));
                }
            }
        }
    }

    fn load(&mut self, path: &Path, folder: &Path, links: &Links) -> io::Result<Option<ContextFile>> {
        if let Links::Within(project) = links {
            let target = fs::canonicalize(path)?;
            if !target.starts_with(canonical(folder)) && !target.starts_with(project) {
                let message = format!(
                    "is a link to {}, outside of the project; it is not read, because the project is not trusted",
                    target.display()
                );
                self.diagnostics.push(Diagnostic::warning(message).in_file(path));
                return Ok(None);
            }
        }
        let content = read_capped(path)?;
        if content.cut {
            let message = format!("is longer than {} KiB; only the beginning is used", MAX_BYTES / 1024);
            self.diagnostics.push(Diagnostic::warning(message).in_file(path));
        }
        if let Some(line) = content.not_utf8 {
            let message = "is not all UTF-8; bytes that are not reach the model as U+FFFD";
            self.diagnostics.push(Diagnostic::warning(message).in_file(path).on_line(line));
        }
        if let Some(hidden) = invisible_characters(&content.text) {
            self.diagnostics.push(Diagnostic::warning(hidden.message()).in_file(path).on_line(hidden.line));
        }
        Ok(Some(ContextFile { path: path.to_owned(), content: content.text }))
    }
}

struct Capped {
    text: String,
    cut: bool,
    /// The line of the first byte that is not UTF-8.
    not_utf8: Option<usize>,
}

fn read_capped(path: &Path) -> io::Result<Capped> {
    let mut bytes = Vec::new();
    regular_file::open(path, fs::OpenOptions::new().read(true))?.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let cut = bytes.len() > MAX_BYTES;
    if cut {
        let end = memchr::memrchr(b'\n', &bytes[..MAX_BYTES]).map_or(MAX_BYTES, |newline| newline + 1);
        bytes.truncate(end);
    }
    let mut not_utf8 = None;
    if let Err(error) = std::str::from_utf8(&bytes) {
        match error.error_len() {
            // One line that is longer than the limit is cut within a character, which is no fault of the file.
            None if cut => bytes.truncate(error.valid_up_to()),
            _ => not_utf8 = Some(memchr::memchr_iter(b'\n', &bytes[..error.valid_up_to()]).count() + 1),
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(Capped { text: text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned(), cut, not_utf8 })
}

/// Characters in a text that people cannot see but a model reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvisibleCharacters {
    pub(crate) count: usize,
    /// The line of the first one.
    pub(crate) line: usize,
    pub(crate) first: char,
}

impl InvisibleCharacters {
    fn message(&self) -> String {
        let (count, first) = (self.count, u32::from(self.first));
        let noun = if count == 1 { "invisible character" } else { "invisible characters" };
        format!("has {count} {noun} (the first is U+{first:04X}); the model reads them although nobody sees them")
    }
}

/// Finds format controls, tag characters and the like. Joiners inside emoji sequences are not counted.
pub(crate) fn invisible_characters(text: &str) -> Option<InvisibleCharacters> {
    let mut found: Option<InvisibleCharacters> = None;
    let mut line = 1;
    let mut previous = ' ';
    for character in text.chars() {
        match character {
            '\n' => line += 1,
            '\u{200d}' if !previous.is_ascii() => {}
            _ if is_invisible(character) => match &mut found {
                Some(found) => found.count += 1,
                None => found = Some(InvisibleCharacters { count: 1, line, first: character }),
            },
            _ => {}
        }
        previous = character;
    }
    found
}

fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The repository that a folder belongs to, else the folder itself, with links resolved.
fn repository_of(folder: &Path) -> PathBuf {
    let folder = canonical(folder);
    let repository = folder.ancestors().find(|ancestor| ancestor.join(".git").exists()).map(Path::to_owned);
    repository.unwrap_or(folder)
}

/// The main working tree of a linked one that lies inside it: both are the same project, so when the inner one has
/// instructions the outer one's would be the same text twice.
fn shadowed_file(cwd: &Path) -> Option<PathBuf> {
    let inner = repository_of(cwd);
    let pointer = regular_file::read_to_string(&inner.join(".git")).ok()?;
    let git_dir = canonical(&inner.join(pointer.strip_prefix("gitdir:")?.trim()));
    let common = regular_file::read_to_string(&git_dir.join("commondir")).ok()?;
    let common = canonical(&git_dir.join(common.trim()));
    let outer = common.parent()?.to_owned();
    let nested = inner.starts_with(&outer) && inner != outer && canonical(&outer.join(".git")) == common;
    let has_own = CONTEXT_FILE_NAMES.iter().any(|name| inner.join(name).is_file());
    (nested && has_own).then_some(outer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::AgentDir;

    fn locations(root: &Path) -> Locations {
        Locations { agent_dir: AgentDir::new(root.join("agent")), home: None, cwd: root.join("repo/sub") }
    }

    fn write(path: PathBuf, text: impl AsRef<[u8]>) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The files below the test's folder; machines may have some above it.
    fn names(found: &ContextFiles, root: &Path) -> Vec<String> {
        let below = found.files.iter().filter_map(|file| file.path.strip_prefix(root).ok());
        below.map(|path| path.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_users_file_comes_first_then_from_the_root_to_the_working_folder() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root.join("agent/CLAUDE.md"), "user");
        write(root.join("repo/AGENTS.md"), "\u{feff}repo");
        write(root.join("repo/CLAUDE.md"), "not this one");
        write(root.join("repo/sub/AGENTS.override.md"), "sub");
        write(root.join("repo/sub/AGENTS.md"), "not this one either");
        let found = load_context_files(&locations(root), ProjectTrust::Untrusted);
        assert_eq!(names(&found, root), ["agent/CLAUDE.md", "repo/AGENTS.md", "repo/sub/AGENTS.override.md"]);
        assert!(found.files.iter().any(|file| file.content == "repo"));
    }

    #[test]
    fn a_folder_of_that_name_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("repo/sub/AGENTS.md")).unwrap();
        write(root.join("repo/sub/CLAUDE.md"), "text");
        let found = load_context_files(&locations(root), ProjectTrust::Untrusted);
        assert_eq!(names(&found, root), ["repo/sub/CLAUDE.md"]);
    }

    #[test]
    fn a_huge_file_is_cut_and_reported() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root.join("repo/sub/AGENTS.md"), "rule\n".repeat(1_000_000));
        let found = load_context_files(&locations(root), ProjectTrust::Untrusted);
        let file = found.files.last().unwrap();
        assert!(file.content.len() <= MAX_BYTES && file.content.ends_with("rule\n"));
        assert!(found.diagnostics.iter().any(|problem| problem.message.contains("longer than")));
    }

    #[test]
    fn characters_that_nobody_sees_are_reported_with_their_line() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root.join("repo/sub/AGENTS.md"), "# Rules\nhidden:\u{e0041}\u{e0042}\u{200b}\n👩\u{200d}👩 fine\n");
        let found = load_context_files(&locations(root), ProjectTrust::Untrusted);
        let problem = found.diagnostics.iter().find(|problem| problem.message.contains("invisible")).unwrap();
        assert_eq!(problem.line, Some(2));
        assert!(problem.message.contains("has 3") && problem.message.contains("U+E0041"), "{}", problem.message);
        assert!(found.files.last().unwrap().content.contains('\u{e0041}'), "the text itself stays as it is");
    }

    #[test]
    fn bytes_that_are_no_text_are_reported_with_their_line() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root.join("repo/sub/AGENTS.md"), b"# Rules\nUse tabs.\ncaf\xe9\n");
        let found = load_context_files(&locations(root), ProjectTrust::Untrusted);
        let problem = found.diagnostics.iter().find(|problem| problem.message.contains("UTF-8")).unwrap();
        assert_eq!((problem.file.as_deref(), problem.line), (Some(&*root.join("repo/sub/AGENTS.md")), Some(3)));
        assert_eq!(found.files.last().unwrap().content, "# Rules\nUse tabs.\ncaf\u{fffd}\n");
        // A character that the size limit cuts in two is not the file's mistake.
        write(root.join("repo/sub/AGENTS.md"), format!("a{}", "é".repeat(MAX_BYTES)));
        let found = load_context_files(&locations(root), ProjectTrust::Untrusted);
        assert!(!found.diagnostics.iter().any(|problem| problem.message.contains("UTF-8")));
        assert!(!found.files.last().unwrap().content.contains('\u{fffd}'));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_project_is_followed_only_when_it_is_trusted() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root.join("secret.txt"), "secret");
        write(root.join("repo/docs/rules.md"), "inside");
        fs::create_dir_all(root.join("repo/.git")).unwrap();
        fs::create_dir_all(root.join("repo/sub")).unwrap();
        symlink(root.join("secret.txt"), root.join("repo/sub/AGENTS.md")).unwrap();
        symlink("docs/rules.md", root.join("repo/AGENTS.md")).unwrap();
        let found = load_context_files(&locations(root), ProjectTrust::Untrusted);
        assert_eq!(names(&found, root), ["repo/AGENTS.md"]);
        assert!(found.diagnostics.iter().any(|problem| problem.message.contains("outside of the project")));
        let found = load_context_files(&locations(root), ProjectTrust::Trusted);
        assert_eq!(names(&found, root), ["repo/AGENTS.md", "repo/sub/AGENTS.md"]);
    }

    #[test]
    fn a_working_tree_inside_its_own_repository_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let root = canonical(dir.path());
        write(root.join("repo/AGENTS.md"), "same");
        write(root.join("repo/sub/AGENTS.md"), "same");
        write(root.join("repo/.git/worktrees/sub/commondir"), "../..\n");
        write(root.join("repo/sub/.git"), format!("gitdir: {}\n", root.join("repo/.git/worktrees/sub").display()));
        let found = load_context_files(&locations(&root), ProjectTrust::Untrusted);
        assert_eq!(names(&found, &root), ["repo/sub/AGENTS.md"]);
    }
}
