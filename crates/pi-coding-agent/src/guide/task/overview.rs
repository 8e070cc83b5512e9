//! What a folder holds, and what the project in it is.

use super::{
    parts,
    text::{article, capital, code, enumerate, list, plural, sentence},
};
use crate::guide::{
    desk::{Ask, Desk, Entry, Settle},
    language::{Language, first_paragraph},
};

/// What a folder holds.
pub(super) fn folder(desk: &mut Desk<'_>, folder: Option<&str>) -> Ask<String> {
    let path = folder.unwrap_or(".");
    desk.remark(if path == "." { "Looking around.".to_owned() } else { format!("Looking into {}.", code(path)) });
    let entries = match desk.list(path).settle()? {
        Ok(entries) => entries,
        Err(trouble) => {
            // It may be a file, or lie somewhere else.
            if path != "." && matches!(trouble, crate::guide::desk::Trouble::Failed { .. }) {
                return super::explain::named(desk, path);
            }
            return Err(crate::guide::desk::Stop::Trouble(trouble));
        }
    };
    // The name of a file lists just the file.
    if let [only] = entries.as_slice()
        && !only.is_folder
        && path == only.name
    {
        return super::explain::named(desk, path);
    }
    if entries.is_empty() {
        return Ok(format!("{} is empty.", place(desk, path)));
    }
    let (folders, files): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(|entry| entry.is_folder);
    let mut counts = Vec::new();
    if !folders.is_empty() {
        counts.push(plural(folders.len(), "folder"));
    }
    if !files.is_empty() {
        counts.push(plural(files.len(), "file"));
    }
    let kinds = project_kinds(&entries);
    let mut answer = format!("{} has {}", place(desk, path), counts.join(" and "));
    if kinds.is_empty() {
        answer.push('.');
    } else {
        answer.push_str(&format!("; it is {}.", enumerate(&kinds)));
    }
    let readme = entries.iter().find(|entry| is_readme(&entry.name) && !entry.is_folder);
    if let Some(readme) = readme {
        let heads = desk.heads(&[join(path, &readme.name)], 60).settle()?.unwrap_or_default();
        if let Some(paragraph) = heads.into_iter().flatten().next().and_then(|text| first_paragraph(&text)) {
            answer.push_str(&format!("\n\n{} says: {}", code(&readme.name), sentence(&paragraph)));
        }
    }
    let items: Vec<String> = folders.iter().chain(&files).map(|entry| described(entry)).collect();
    answer.push_str("\n\n");
    answer.push_str(&list(&items, 80));
    Ok(answer)
}

/// What the project in a folder is.
pub(super) fn project(desk: &mut Desk<'_>, folder: Option<&str>) -> Ask<String> {
    let path = folder.unwrap_or(".");
    desk.remark("Looking at the project.");
    let entries = desk.list(path)?;
    let kinds = project_kinds(&entries);
    let readme =
        entries.iter().find(|entry| is_readme(&entry.name) && !entry.is_folder).map(|entry| join(path, &entry.name));
    let manifests: Vec<String> = ["Cargo.toml", "pyproject.toml", "package.json", "go.mod", "setup.cfg"]
        .into_iter()
        .filter(|name| entries.iter().any(|entry| entry.name == *name))
        .map(|name| join(path, name))
        .collect();
    let files: Vec<String> = readme.iter().cloned().chain(manifests.iter().cloned()).collect();
    let heads = if files.is_empty() { Vec::new() } else { desk.heads(&files, 80)? };
    let text_of =
        |file: &str| files.iter().position(|name| name == file).and_then(|index| heads.get(index)?.as_deref());
    let mut answer = String::new();
    let name = manifests
        .iter()
        .find_map(|file| parts::manifest_text(file, text_of(file)?, "name"))
        .unwrap_or_else(|| desk.folder_name().to_owned());
    let kind =
        if kinds.is_empty() { "a folder without a build file that I know".to_owned() } else { enumerate(&kinds) };
    answer.push_str(&if name.is_empty() { format!("This is {kind}.") } else { format!("{} is {kind}.", code(&name)) });
    if let Some(description) =
        manifests.iter().find_map(|file| parts::manifest_text(file, text_of(file)?, "description"))
    {
        answer.push_str(&format!(" Its manifest describes it so: {}", sentence(&capital(&description))));
    }
    if let Some(readme) = &readme
        && let Some(text) = text_of(readme)
    {
        if let Some(paragraph) = first_paragraph(text) {
            answer.push_str(&format!("\n\n{} says: {}", code(desk.shown(readme)), sentence(&paragraph)));
        }
        let headings: Vec<String> = text
            .lines()
            .filter(|line| line.starts_with("## "))
            .map(|line| line.trim_start_matches('#').trim().to_owned())
            .collect();
        if !headings.is_empty() {
            answer.push_str(&format!(" Its sections: {}.", enumerate(&headings)));
        }
    }
    let found = parts::find(desk, path)?;
    if found.parts.len() > 1 {
        answer.push_str(&format!(
            "\n\nIt has {}:\n\n{}",
            plural(found.parts.len(), found.noun),
            found.as_list(desk, 30)
        ));
    } else {
        let items: Vec<String> = entries
            .iter()
            .filter(|entry| entry.is_folder)
            .chain(entries.iter().filter(|entry| !entry.is_folder))
            .map(described)
            .collect();
        answer.push_str(&format!("\n\nAt the top level:\n\n{}", list(&items, 30)));
    }
    Ok(answer)
}

fn place(desk: &Desk<'_>, path: &str) -> String {
    if path == "." {
        let name = desk.folder_name();
        if name.is_empty() { "This folder".to_owned() } else { format!("This folder ({})", code(name)) }
    } else {
        code(desk.shown(path))
    }
}

pub(super) fn join(folder: &str, name: &str) -> String {
    let folder = folder.trim_end_matches('/');
    if folder.is_empty() || folder == "." { name.to_owned() } else { format!("{folder}/{name}") }
}

pub(super) fn is_readme(name: &str) -> bool {
    let lower = name.to_lowercase();
    lower == "readme" || lower.starts_with("readme.")
}

/// What the entries of a folder show it to be.
fn project_kinds(entries: &[Entry]) -> Vec<String> {
    const SIGNS: [(&str, &str); 16] = [
        ("Cargo.toml", "a Rust project"),
        ("pyproject.toml", "a Python project"),
        ("setup.py", "a Python project"),
        ("setup.cfg", "a Python project"),
        ("requirements.txt", "a Python project"),
        ("package.json", "a JavaScript project"),
        ("deno.json", "a Deno project"),
        ("go.mod", "a Go module"),
        ("go.work", "a Go workspace"),
        ("pom.xml", "a Maven project"),
        ("build.gradle", "a Gradle project"),
        ("build.gradle.kts", "a Gradle project"),
        ("CMakeLists.txt", "a CMake project"),
        ("Gemfile", "a Ruby project"),
        ("composer.json", "a PHP project"),
        ("mix.exs", "an Elixir project"),
    ];
    let mut kinds: Vec<String> = Vec::new();
    for (file, kind) in SIGNS {
        if entries.iter().any(|entry| entry.name == file) && !kinds.iter().any(|known| known.starts_with(kind)) {
            kinds.push(format!("{kind} ({})", code(file)));
        }
    }
    if kinds.is_empty() {
        let languages: Vec<Language> = entries
            .iter()
            .filter(|entry| !entry.is_folder)
            .filter_map(|entry| Language::of_path(&entry.name))
            .filter(|language| language.is_code())
            .collect();
        if let Some(first) = languages.first()
            && languages.iter().all(|language| language == first)
        {
            let name = first.name();
            kinds.push(format!("{} {name} folder", article(name)));
        }
    }
    kinds
}

fn described(entry: &Entry) -> String {
    let shown = if entry.is_folder { format!("{}/", entry.name) } else { entry.name.clone() };
    let what = if entry.is_folder { folder_purpose(&entry.name) } else { file_purpose(&entry.name) };
    match what {
        Some(what) => format!("{} — {what}", code(shown)),
        None => code(shown),
    }
}

fn folder_purpose(name: &str) -> Option<&'static str> {
    Some(match name {
        "src" => "source code",
        "tests" | "test" | "spec" | "__tests__" => "tests",
        "docs" | "doc" => "documentation",
        "examples" | "example" => "examples",
        "benches" | "bench" | "benchmarks" => "benchmarks",
        "crates" => "the workspace's crates",
        "packages" => "the workspace's packages",
        "scripts" | "tools" => "scripts and tools",
        "target" | "dist" | "build" | "out" => "build output",
        "node_modules" | "vendor" | "third_party" => "dependencies",
        ".git" => "the git repository",
        ".github" => "settings of GitHub, such as workflows",
        ".ci" | ".circleci" => "continuous integration",
        ".vscode" | ".idea" => "an editor's settings",
        ".venv" | "venv" => "a Python environment",
        "__pycache__" => "compiled Python files",
        "lib" => "library code",
        "bin" => "programs",
        "include" => "header files",
        "assets" | "static" | "public" => "files that are delivered as they are",
        "migrations" => "changes of the database",
        "xtask" => "the workspace's own tasks",
        _ => return None,
    })
}

pub(super) fn file_purpose(name: &str) -> Option<&'static str> {
    if is_readme(name) {
        return Some("what the project says about itself");
    }
    let lower = name.to_lowercase();
    Some(match lower.as_str() {
        "cargo.toml" => "the Cargo manifest",
        "cargo.lock" | "package-lock.json" | "yarn.lock" | "pnpm-lock.yaml" | "poetry.lock" | "uv.lock"
        | "gemfile.lock" | "go.sum" | "composer.lock" => "the exact versions of all dependencies",
        "pyproject.toml" | "setup.py" | "setup.cfg" => "the Python project's settings",
        "requirements.txt" => "the Python packages that are needed",
        "package.json" => "the npm manifest: scripts and dependencies",
        "tsconfig.json" => "the TypeScript compiler's settings",
        "go.mod" => "the Go module's name and dependencies",
        "makefile" | "justfile" => "tasks to run",
        "dockerfile" | "containerfile" => "how the container image is built",
        "docker-compose.yml" | "docker-compose.yaml" | "compose.yml" | "compose.yaml" => "containers that run together",
        ".gitignore" | ".ignore" | ".dockerignore" => "files to be left out",
        ".gitattributes" => "git's settings by file",
        ".editorconfig" => "editor settings",
        "license" | "license.md" | "license.txt" | "licence" | "copying" => "the licence",
        "changelog.md" | "changes.md" | "history.md" | "changelog" => "what changed between versions",
        "contributing.md" => "how to contribute",
        "agents.md" | "claude.md" => "instructions for coding agents",
        "rustfmt.toml" | ".rustfmt.toml" => "formatting settings",
        "clippy.toml" | ".clippy.toml" | "ruff.toml" | ".eslintrc.json" | "eslint.config.js" => "lint settings",
        "deny.toml" => "rules for dependencies",
        "conftest.py" => "shared fixtures of the tests",
        ".env" => "environment variables, possibly secret",
        _ => return None,
    })
}
