//! `.gitignore`, `.ignore` and `.fdignore`, while a folder of resources is walked.

use std::{fs, path::Path};

use super::glob::Glob;
use crate::regular_file;

/// Folders are not followed deeper than this: a link may lead back up.
const DEEPEST: usize = 24;

const FILES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];

/// The rules of the folders on the way down, the last one that fits wins.
#[derive(Clone, Debug, Default)]
pub(crate) struct IgnoreRules(Vec<Rule>);

#[derive(Clone, Debug)]
struct Rule {
    glob: Glob,
    keeps: bool,
    folders_only: bool,
}

impl IgnoreRules {
    /// Enters a folder: adds its rules and gives the names in it, sorted. `below` is its path from the root of the walk,
    /// empty for the root itself. `None` when it cannot be read, or is too deep.
    pub(crate) fn enter(&mut self, folder: &Path, below: &str) -> Option<Vec<String>> {
        if below.matches('/').count() > DEEPEST {
            return None;
        }
        let entries = fs::read_dir(folder).ok()?;
        self.add_folder(folder, below);
        let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        Some(names)
    }

    fn add_folder(&mut self, folder: &Path, below: &str) {
        for text in FILES.iter().filter_map(|name| regular_file::read_to_string(&folder.join(name)).ok()) {
            self.0.extend(text.lines().filter_map(|line| rule(line, below)));
        }
    }

    /// Whether a path (from the root of the walk, with `/`) is left out.
    pub(crate) fn ignores(&self, path: &str, kind: EntryKind) -> bool {
        let fits = |rule: &&Rule| (kind == EntryKind::Folder || !rule.folders_only) && rule.glob.matches(path);
        self.0.iter().rev().find(fits).is_some_and(|rule| !rule.keeps)
    }
}

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Folder,
}

fn rule(line: &str, below: &str) -> Option<Rule> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    // Blanks at the end count only when they are escaped.
    let line = if line.ends_with("\\ ") { line } else { line.trim_end() };
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (keeps, line) = match line.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (folders_only, line) = match line.strip_suffix('/') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    // A slash at the start or in the middle ties the pattern to its folder.
    let tied = line.contains('/');
    let pattern = line.strip_prefix('/').unwrap_or(line);
    let anywhere = if tied { "" } else { "**/" };
    let folder = if below.is_empty() { String::new() } else { format!("{}/", escaped(below)) };
    // Braces mean nothing here.
    let pattern = pattern.replace('{', "\\{").replace('}', "\\}");
    Some(Rule { glob: Glob::new(&format!("{folder}{anywhere}{pattern}")), keeps, folders_only })
}

fn escaped(path: &str) -> String {
    path.chars()
        .flat_map(|c| matches!(c, '*' | '?' | '[' | '{' | '}' | '\\').then_some('\\').into_iter().chain([c]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_those_of_git() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join(".gitignore"), "# no\n*.log\n!keep.log\n/top\nbuild/\na/b\n\\#x\n").unwrap();
        fs::write(dir.path().join("sub/.ignore"), "only-here\n!x.log\n").unwrap();
        let mut rules = IgnoreRules::default();
        rules.add_folder(dir.path(), "");
        rules.add_folder(&dir.path().join("sub"), "sub");
        use EntryKind::{File, Folder};
        for (path, kind, ignored) in [
            ("x.log", File, true),
            ("deep/er/x.log", File, true),
            ("keep.log", File, false),
            ("top", File, true),
            ("sub/top", File, false),
            ("build", Folder, true),
            ("build", File, false),
            ("sub/build", Folder, true),
            ("a/b", File, true),
            ("x/a/b", File, false),
            ("#x", File, true),
            ("sub/only-here", File, true),
            ("only-here", File, false),
            ("sub/x.log", File, false),
        ] {
            assert_eq!(rules.ignores(path, kind), ignored, "{path} {kind:?}");
        }
    }
}
