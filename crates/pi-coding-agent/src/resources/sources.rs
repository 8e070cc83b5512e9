//! Where skills, prompt templates and themes are looked for, and in which order.
//!
//! The command line's come first, then the project's settings, the project's folders, the user's settings, the user's
//! folders, and last what extensions found. Of two with one name the first one counts.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::extensions::stdio::extensions_in;

use super::{
    Diagnostic, Loaded, Locations, ProjectTrust, ResourceEntries, ResourceKind, ResourceLists,
    glob::{Glob, is_pattern},
    ignore_rules::{EntryKind, IgnoreRules},
    paths::canonical,
    prompt_templates::template_files,
    skills::{SkillFolder, skill_files},
    themes::theme_files,
};

/// Whether resources are looked for, or only those that were named are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discovery {
    /// They are looked for.
    #[default]
    On,
    /// Only those that the command line or an extension names are loaded.
    Off,
}

/// What is looked for, and where.
pub(crate) struct Search<'a> {
    pub(crate) kind: ResourceKind,
    pub(crate) locations: &'a Locations,
    pub(crate) trust: ProjectTrust,
    pub(crate) entries: &'a ResourceEntries,
    pub(crate) discovery: Discovery,
    /// Named on the command line, as written there.
    pub(crate) named: &'a [String],
    /// Found by extensions.
    pub(crate) discovered: &'a [PathBuf],
}

/// The extensions, in the order in which they are loaded, each once: manifests, their folders, and what this program
/// cannot run.
pub(crate) fn extension_paths(
    locations: &Locations,
    trust: ProjectTrust,
    entries: &ResourceEntries,
    named: &[String],
    discovery: Discovery,
) -> Loaded<PathBuf> {
    Search { kind: ResourceKind::Extension, locations, trust, entries, discovery, named, discovered: &[] }.files()
}

impl Search<'_> {
    /// The files, in the order in which they count, each once.
    pub(crate) fn files(&self) -> Loaded<PathBuf> {
        let mut found = Loaded::default();
        for text in self.named {
            let path = self.locations.resolve(text, &self.locations.cwd);
            if path.exists() {
                found.items.extend(self.files_at(&path, Depth::Top));
            } else {
                let problem = Diagnostic::error(format!("there is no {} at this path", noun(self.kind)));
                found.diagnostics.push(problem.in_file(path));
            }
        }
        if self.discovery == Discovery::On {
            let project = self.locations.project_dir();
            let user = self.locations.agent_dir.as_path();
            if self.trust == ProjectTrust::Trusted {
                let entries = self.list(&self.entries.project);
                self.add_settings(entries, &project, &mut found);
                self.add_folder(&project.join(folder_name(self.kind)), SkillFolder::Own, entries, &project, &mut found);
                for shared in self.shared_folders() {
                    self.add_shared(&shared, entries, &mut found);
                }
            }
            let entries = self.list(&self.entries.user);
            self.add_settings(entries, user, &mut found);
            self.add_folder(&user.join(folder_name(self.kind)), SkillFolder::Own, entries, user, &mut found);
            if let Some(home) = &self.locations.home {
                self.add_shared(&home.join(".agents"), entries, &mut found);
            }
        }
        for path in self.discovered {
            found.items.extend(self.files_at(path, Depth::Top));
        }
        let mut seen = std::collections::HashSet::new();
        found.items.retain(|path| seen.insert(canonical(path)));
        found
    }

    fn list<'l>(&self, lists: &'l ResourceLists) -> &'l [String] {
        match self.kind {
            ResourceKind::Skill => &lists.skills,
            ResourceKind::Prompt => &lists.prompts,
            ResourceKind::Theme => &lists.themes,
            ResourceKind::Extension => &lists.extensions,
        }
    }

    fn add_settings(&self, entries: &[String], base: &Path, found: &mut Loaded<PathBuf>) {
        let patterns = Patterns::read(entries);
        let mut files = Vec::new();
        for text in entries.iter().filter(|entry| !is_override(entry) && !is_pattern(entry)) {
            let path = self.locations.resolve(text, base);
            if path.exists() {
                files.extend(self.files_at(&path, Depth::All));
            } else {
                let text = format!("the settings name {} that is not there", with_article(self.kind));
                let problem = match self.kind {
                    // It may be a gate.
                    ResourceKind::Extension => Diagnostic::error(text),
                    _ => Diagnostic::warning(text),
                };
                found.diagnostics.push(problem.in_file(path));
            }
        }
        if files.is_empty() && !patterns.includes.is_empty() {
            // Patterns alone pick from everything below their folder.
            files = match self.kind {
                ResourceKind::Extension => extensions_in(&base.join(folder_name(self.kind))),
                _ => walk(base, self.extension()),
            };
        }
        found.items.extend(files.into_iter().filter(|file| patterns.select(file, base)));
    }

    fn add_folder(
        &self,
        folder: &Path,
        skills: SkillFolder,
        entries: &[String],
        base: &Path,
        found: &mut Loaded<PathBuf>,
    ) {
        let files = match self.kind {
            ResourceKind::Skill => skill_files(folder, skills),
            ResourceKind::Prompt => template_files(folder),
            ResourceKind::Theme => theme_files(folder),
            ResourceKind::Extension => extensions_in(folder),
        };
        let overrides = Patterns { includes: Vec::new(), ..Patterns::read(entries) };
        found.items.extend(files.into_iter().filter(|file| overrides.select(file, base)));
    }

    /// `.agents` is shared between programs and has skills only.
    fn add_shared(&self, agents: &Path, entries: &[String], found: &mut Loaded<PathBuf>) {
        if self.kind == ResourceKind::Skill {
            self.add_folder(&agents.join("skills"), SkillFolder::Shared, entries, agents, found);
        }
    }

    /// The `.agents` folders from the working folder up to the repository's root; the home folder's is the user's.
    fn shared_folders(&self) -> Vec<PathBuf> {
        let own = self.locations.home.as_deref().map(canonical);
        let mut folders = Vec::new();
        for folder in self.locations.cwd.ancestors() {
            if own.as_deref() != Some(&canonical(folder)) {
                folders.push(folder.join(".agents"));
            }
            if folder.join(".git").exists() {
                break;
            }
        }
        folders
    }

    fn files_at(&self, path: &Path, depth: Depth) -> Vec<PathBuf> {
        if path.is_file() {
            return vec![path.to_owned()];
        }
        match (self.kind, depth) {
            (ResourceKind::Skill, _) => skill_files(path, SkillFolder::Own),
            (ResourceKind::Prompt, Depth::Top) => template_files(path),
            (ResourceKind::Theme, Depth::Top) => theme_files(path),
            (ResourceKind::Prompt | ResourceKind::Theme, Depth::All) => walk(path, self.extension()),
            (ResourceKind::Extension, _) => vec![path.to_owned()],
        }
    }

    fn extension(&self) -> &'static str {
        if self.kind == ResourceKind::Theme { "json" } else { "md" }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Top,
    All,
}

fn noun(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Skill => "skill",
        ResourceKind::Prompt => "prompt template",
        ResourceKind::Theme => "theme",
        ResourceKind::Extension => "extension",
    }
}

fn with_article(kind: ResourceKind) -> String {
    let article = if kind == ResourceKind::Extension { "an" } else { "a" };
    format!("{article} {}", noun(kind))
}

fn folder_name(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Skill => "skills",
        ResourceKind::Prompt => "prompts",
        ResourceKind::Theme => "themes",
        ResourceKind::Extension => "extensions",
    }
}

fn is_override(entry: &str) -> bool {
    entry.starts_with(['!', '+', '-'])
}

/// The entries of a list that choose among files.
#[derive(Default)]
struct Patterns<'e> {
    includes: Vec<Glob>,
    /// `!glob`
    excludes: Vec<Glob>,
    /// `+path`
    kept: Vec<&'e str>,
    /// `-path`
    dropped: Vec<&'e str>,
}

impl<'e> Patterns<'e> {
    fn read(entries: &'e [String]) -> Self {
        let mut patterns = Self::default();
        for entry in entries.iter().map(|entry| entry.trim()) {
            if let Some(glob) = entry.strip_prefix('!') {
                patterns.excludes.push(Glob::new(glob.trim_start_matches("./")));
            } else if let Some(path) = entry.strip_prefix('+') {
                patterns.kept.push(path.trim_start_matches("./"));
            } else if let Some(path) = entry.strip_prefix('-') {
                patterns.dropped.push(path.trim_start_matches("./"));
            } else if is_pattern(entry) {
                patterns.includes.push(Glob::new(entry.trim_start_matches("./")));
            }
        }
        patterns
    }

    fn select(&self, file: &Path, base: &Path) -> bool {
        let names = names_of(file, base);
        let fits = |globs: &[Glob]| globs.iter().any(|glob| names.loose.iter().any(|name| glob.matches(name)));
        let is = |paths: &[&str]| paths.iter().any(|path| names.exact.iter().any(|name| name == path));
        let included = self.includes.is_empty() || fits(&self.includes);
        (included && !fits(&self.excludes) || is(&self.kept)) && !is(&self.dropped)
    }
}

struct Names {
    /// What a pattern may fit: the path from the base, the whole path, the last part; of a skill also its folder's.
    loose: Vec<String>,
    /// What a path may be: the same without the last parts.
    exact: Vec<String>,
}

fn names_of(file: &Path, base: &Path) -> Names {
    let text = |path: &Path| path.to_string_lossy().replace('\\', "/");
    let mut names = Names { loose: Vec::new(), exact: Vec::new() };
    let folder = file.parent().filter(|_| file.file_name().is_some_and(|name| name == "SKILL.md"));
    for path in [Some(file), folder].into_iter().flatten() {
        let relative = path.strip_prefix(base).map(text);
        for name in relative.into_iter().chain([text(path)]) {
            names.loose.push(name.clone());
            names.exact.push(name);
        }
        names.loose.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    names
}

/// All files below a folder that end in `.extension`, without hidden, ignored and installed ones.
fn walk(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    walk_into(folder, String::new(), extension, IgnoreRules::default(), &mut files);
    files
}

fn walk_into(folder: &Path, below: String, extension: &str, mut rules: IgnoreRules, files: &mut Vec<PathBuf>) {
    let Some(names) = rules.enter(folder, &below) else { return };
    for name in names.iter().filter(|name| !name.starts_with('.') && *name != "node_modules") {
        let path = folder.join(name);
        let Ok(metadata) = fs::metadata(&path) else { continue };
        let relative = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if metadata.is_dir() && !rules.ignores(&relative, EntryKind::Folder) {
            walk_into(&path, relative, extension, rules.clone(), files);
        } else if metadata.is_file()
            && path.extension().is_some_and(|own| own == extension)
            && !rules.ignores(&relative, EntryKind::File)
        {
            files.push(path);
        }
    }
}
