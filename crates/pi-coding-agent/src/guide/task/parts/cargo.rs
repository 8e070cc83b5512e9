//! The crates of a Cargo workspace.

use serde_json::Value;

use super::{Part, Parts, manifest_text};
use crate::guide::{
    desk::{Ask, Desk, Settle},
    intent::PartKind,
    language::{Language, file_documentation, first_paragraph, toml},
    task::overview::join,
};
use crate::resources::glob::Glob;

/// The crates that the manifest in a folder names, or the one crate there with its modules.
pub(super) fn parts(desk: &mut Desk<'_>, folder: &str, kind: PartKind) -> Ask<Parts> {
    let manifest = desk.read(&join(folder, "Cargo.toml"))?;
    let root = toml::parse(&manifest.text);
    let folders =
        if root.get("workspace").is_some() { member_folders(desk, folder, &root)? } else { vec![folder.to_owned()] };
    let mut crates = describe_crates(desk, &folders)?;
    if crates.len() == 1 && folders.first().map(String::as_str) == Some(folder) {
        let modules = super::modules_of(desk, folder)?;
        if kind == PartKind::Modules && !modules.is_empty() {
            let whole = format!("The crate `{}`", crates[0].name);
            return Ok(Parts { noun: "module", whole, parts: modules, shows_modules: false });
        }
        crates[0].modules = modules;
        let whole = "There is no workspace of several crates here: this folder".to_owned();
        return Ok(Parts { noun: "crate", whole, parts: crates, shows_modules: true });
    }
    if kind == PartKind::Modules {
        for part in crates.iter_mut().take(8) {
            part.modules = super::modules_of(desk, &part.folder)?;
        }
    }
    Ok(Parts {
        noun: "crate",
        whole: "This workspace".to_owned(),
        parts: crates,
        shows_modules: kind == PartKind::Modules,
    })
}

/// Crates that lie around without a workspace.
pub(super) fn scattered(desk: &mut Desk<'_>, files: &[String]) -> Ask<Parts> {
    let folders: Vec<String> =
        files.iter().filter_map(|file| Some(file.strip_suffix("/Cargo.toml")?.to_owned())).take(40).collect();
    let parts = describe_crates(desk, &folders)?;
    Ok(Parts { noun: "crate", whole: "This folder is no workspace, but it".to_owned(), parts, shows_modules: false })
}

/// Folders of crates that others are there for.
const SIDE_FOLDERS: [&str; 6] = ["examples", "example", "benches", "fuzz", "xtask", "tests"];

/// The folders of a workspace's members: those its patterns name, the root's own package, and packages inside that
/// it depends on by path.
fn member_folders(desk: &mut Desk<'_>, folder: &str, root: &Value) -> Ask<Vec<String>> {
    let workspace = &root["workspace"];
    let patterns = texts(&workspace["members"]);
    let excluded = texts(&workspace["exclude"]);
    let mut folders = Vec::new();
    if root.get("package").is_some() {
        folders.push(folder.to_owned());
    }
    let has_globs = patterns.iter().chain(&excluded).any(|pattern| pattern.contains(['*', '?', '[']));
    let manifests = if has_globs { manifests_below(desk, folder, &patterns)? } else { Vec::new() };
    for pattern in &patterns {
        let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
        if !pattern.contains(['*', '?', '[']) {
            folders.push(join(folder, pattern));
            continue;
        }
        let inside = manifests.iter().filter(|path| Glob::new(pattern).matches(path));
        folders.extend(inside.map(|path| join(folder, path)));
    }
    for table in ["dependencies", "dev-dependencies", "build-dependencies"] {
        let by_path = root[table]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(_, dependency)| dependency.get("path")?.as_str());
        folders.extend(
            by_path.filter(|path| !path.starts_with("..")).map(|path| join(folder, path.trim_start_matches("./"))),
        );
    }
    let is_excluded = |path: &str| {
        excluded
            .iter()
            .any(|excluded| path == join(folder, excluded) || path.starts_with(&format!("{}/", join(folder, excluded))))
    };
    let mut seen = std::collections::HashSet::new();
    folders.retain(|path| !is_excluded(path) && seen.insert(path.clone()));
    // What the project is comes first, what shows its use later.
    folders.sort_by_key(|path| path.split('/').any(|part| SIDE_FOLDERS.contains(&part)));
    Ok(folders)
}

/// Folders with a manifest, relative to the workspace.
fn manifests_below(desk: &mut Desk<'_>, folder: &str, patterns: &[String]) -> Ask<Vec<String>> {
    match desk.find("Cargo.toml").settle()? {
        Ok(found) => {
            let prefix = if folder == "." { String::new() } else { format!("{}/", folder.trim_start_matches("./")) };
            let inside = found.items.iter().filter_map(|path| path.strip_prefix(&prefix)?.strip_suffix("/Cargo.toml"));
            Ok(inside.map(str::to_owned).collect())
        }
        // Without a tool that finds files, the folders before a plain `*` can still be listed.
        Err(_) => {
            let mut folders = Vec::new();
            for parent in patterns.iter().filter_map(|pattern| pattern.strip_suffix("/*")) {
                let entries = desk.list(&join(folder, parent))?;
                folders.extend(entries.iter().filter(|entry| entry.is_folder).map(|entry| join(parent, &entry.name)));
            }
            Ok(folders)
        }
    }
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|item| Some(item.as_str()?.to_owned())).collect()
}

/// Reads what crates say about themselves: the manifest's description, else the crate's documentation, else the README.
fn describe_crates(desk: &mut Desk<'_>, folders: &[String]) -> Ask<Vec<Part>> {
    if folders.is_empty() {
        return Ok(Vec::new());
    }
    const KINDS: [&str; 4] = ["Cargo.toml", "src/lib.rs", "src/main.rs", "README.md"];
    let files: Vec<String> = folders.iter().flat_map(|folder| KINDS.map(|name| join(folder, name))).collect();
    let heads = desk.heads(&files, 60)?;
    let mut parts = Vec::new();
    for (folder, heads) in folders.iter().zip(heads.chunks(KINDS.len())) {
        let [manifest, library, program, readme] = heads else { continue };
        // A pattern may fit folders that are no crates.
        let Some(manifest) = manifest else { continue };
        let fact = |key| manifest_text("Cargo.toml", manifest, key);
        let documentation = |text: &Option<String>| file_documentation(Language::Rust, text.as_deref()?);
        let purpose = fact("description")
            .or_else(|| documentation(library))
            .or_else(|| documentation(program))
            .or_else(|| first_paragraph(readme.as_deref()?))
            .or_else(|| derived(manifest, library.as_deref(), program.as_deref()));
        let name = fact("name").unwrap_or_else(|| folder.rsplit('/').next().unwrap_or(folder).to_owned());
        parts.push(Part { name, folder: folder.clone(), purpose, modules: Vec::new() });
    }
    Ok(parts)
}

/// A crate that says nothing in words still says what it is.
fn derived(manifest: &str, library: Option<&str>, program: Option<&str>) -> Option<String> {
    let is_macro = toml::parse(manifest)["lib"]["proc-macro"] == true;
    let what = match (is_macro, library, program) {
        (true, _, _) => "a library of procedural macros",
        (_, Some(_), Some(_)) => "a library with a program",
        (_, Some(_), None) => "a library",
        (_, None, Some(_)) => "a program",
        (_, None, None) => return None,
    };
    let items =
        library.or(program).map(|text| crate::guide::language::items_of(Language::Rust, text)).unwrap_or_default();
    let names: Vec<String> =
        items.iter().filter(|item| item.indent == 0).take(6).map(|item| format!("`{}`", item.name)).collect();
    let defines = if names.is_empty() {
        String::new()
    } else {
        format!(" that begins with {}", crate::guide::task::text::enumerate(&names))
    };
    Some(format!("it has no description; it is {what}{defines}"))
}
