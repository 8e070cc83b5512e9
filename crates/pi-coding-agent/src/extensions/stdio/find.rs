//! Where extensions that are programs are looked for.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{MANIFEST_FILE, StdioExtension};
use crate::{
    resources::{Diagnostic, Discovery, Locations, ProjectTrust, ResourceEntries, extension_paths},
    workspace::local::Environment,
};

/// What is looked for, and where.
#[derive(Clone, Debug)]
pub struct FindExtensions<'a> {
    /// The folders.
    pub locations: &'a Locations,
    /// Whether the project's own are used.
    pub trust: ProjectTrust,
    /// What the settings name.
    pub entries: &'a ResourceEntries,
    /// Manifests and folders that were named explicitly, as a user writes them.
    pub named: &'a [String],
    /// Whether others are looked for.
    pub discovery: Discovery,
    /// What their programs get as environment.
    pub environment: Arc<Environment>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct FoundExtensions {
    /// The extensions, in the order in which they are loaded: named ones, the project's, the user's.
    pub extensions: Vec<Arc<StdioExtension>>,
    /// What is wrong, each with its file. Errors are about extensions that cannot be used.
    pub diagnostics: Vec<Diagnostic>,
}

/// Finds extensions and reads their manifests. Nothing is started. It reads files, so that it blocks for a short time.
pub fn find_extensions(search: &FindExtensions<'_>) -> FoundExtensions {
    let mut found = FoundExtensions::default();
    let paths = extension_paths(search.locations, search.trust, search.entries, search.named, search.discovery);
    found.diagnostics.extend(paths.diagnostics);
    let mut seen = HashSet::new();
    for path in paths.items {
        match unsupported(&path) {
            Some(problem) => found.diagnostics.push(problem),
            None => match StdioExtension::read(&path, search.environment.clone()) {
                Ok(extension) => {
                    // A folder and the manifest in it are the same extension.
                    let file = extension.manifest().file();
                    if seen.insert(fs::canonicalize(file).unwrap_or_else(|_| file.to_owned())) {
                        found.extensions.push(Arc::new(extension));
                    }
                }
                Err(invalid) => found.diagnostics.push(invalid.into()),
            },
        }
    }
    found.diagnostics.extend(collisions(&found.extensions));
    found
}

/// Extensions of upstream are TypeScript and JavaScript modules.
fn unsupported(path: &Path) -> Option<Diagnostic> {
    let is_script = |path: &Path| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        matches!(ending, Some("ts" | "js" | "mjs" | "cjs"))
    };
    let script = match path.is_dir() {
        false => is_script(path).then(|| path.to_owned()),
        true if path.join(MANIFEST_FILE).exists() => None,
        true => ["index.ts", "index.js"].iter().map(|name| path.join(name)).find(|script| script.exists()),
    }?;
    let text = format!(
        "extensions in TypeScript and JavaScript are not run by this pi; one that is a program with a manifest \
         ({MANIFEST_FILE}) is"
    );
    Some(Diagnostic::warning(text).in_file(script))
}

/// Tools and flags that two of them bring: the first one counts, and it is an error all the same.
fn collisions(extensions: &[Arc<StdioExtension>]) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    let mut names: HashMap<&str, &Path> = HashMap::new();
    let mut brought: HashMap<(&str, &str), &Path> = HashMap::new();
    for extension in extensions {
        let manifest = extension.manifest();
        let file = manifest.file();
        if let Some(other) = names.insert(manifest.name(), file) {
            let text = format!("another extension has the name `{}`: {}", manifest.name(), other.display());
            problems.push(Diagnostic::warning(text).in_file(file));
        }
        let tools = manifest.tools().map(|name| ("tool", name));
        let flags = manifest.flags().map(|(name, ..)| ("flag", name));
        for (what, name) in tools.chain(flags) {
            if let Some(other) = brought.get(&(what, name)) {
                let text = format!("the {what} `{name}` is brought by {} already", other.display());
                problems.push(Diagnostic::error(text).in_file(file));
            } else {
                brought.insert((what, name), file);
            }
        }
    }
    problems
}

/// Extensions directly in a folder: folders with a manifest, and what upstream would run. Sorted.
pub(crate) fn extensions_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.join(MANIFEST_FILE).is_file() || unsupported(path).is_some())
        .collect();
    found.sort_unstable();
    found
}
