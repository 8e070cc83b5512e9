//! The packages of a JavaScript workspace, or the modules of one package.

use serde_json::Value;

use super::{Part, Parts, documented, manifest_text};
use crate::guide::{
    desk::{Ask, Desk},
    language::{Language, first_paragraph},
    task::overview::join,
};
use crate::resources::glob::Glob;

pub(super) fn parts(desk: &mut Desk<'_>, folder: &str) -> Ask<Parts> {
    let text = desk.read(&join(folder, "package.json"))?.text;
    let root: Value = serde_json::from_str(&text).unwrap_or_default();
    let listed = root["workspaces"].as_array().or_else(|| root["workspaces"]["packages"].as_array());
    let mut patterns: Vec<String> =
        listed.into_iter().flatten().filter_map(|item| Some(item.as_str()?.to_owned())).collect();
    let entries = desk.list(folder)?;
    if entries.iter().any(|entry| entry.name == "pnpm-workspace.yaml") {
        let text = desk.read_start(&join(folder, "pnpm-workspace.yaml"))?.text;
        let items = text.lines().filter_map(|line| line.trim().strip_prefix("- "));
        patterns.extend(items.map(|item| item.trim().trim_matches(['"', '\'']).to_owned()));
    }
    let files = desk.files(folder)?.items;
    let prefix = if folder == "." { String::new() } else { format!("{}/", folder.trim_end_matches('/')) };
    let inside: Vec<&str> = files.iter().filter_map(|file| file.strip_prefix(&prefix)).collect();
    let fits = |path: &str| {
        patterns.iter().filter(|pattern| !pattern.starts_with('!')).any(|pattern| {
            let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
            Glob::new(pattern).matches(path)
        })
    };
    let packages: Vec<String> = inside
        .iter()
        .filter_map(|file| file.strip_suffix("/package.json"))
        .filter(|path| fits(path))
        .map(|path| join(folder, path))
        .collect();
    if packages.is_empty() {
        let is_source = |file: &&&str| {
            let depth = file.matches('/').count();
            let code = Language::of_path(file)
                .is_some_and(|language| matches!(language, Language::JavaScript | Language::TypeScript));
            code && (depth == 0 || depth == 1 && (file.starts_with("src/") || file.starts_with("lib/")))
                && !file.contains(".test.")
                && !file.contains(".spec.")
                && !file.contains(".config.")
        };
        let modules: Vec<String> = inside.iter().filter(is_source).map(|file| join(folder, file)).take(60).collect();
        let whole = match manifest_text("package.json", &text, "name") {
            Some(name) => format!("The package `{name}`"),
            None => "This package".to_owned(),
        };
        return Ok(Parts { noun: "module", whole, parts: documented(desk, &modules)?, shows_modules: false });
    }
    let wanted: Vec<String> =
        packages.iter().flat_map(|package| ["package.json", "README.md"].map(|name| join(package, name))).collect();
    let heads = desk.heads(&wanted, 80)?;
    let part = |(package, heads): (&String, &[Option<String>])| {
        let manifest = heads.first().cloned().flatten().unwrap_or_default();
        let fact = |key: &str| manifest_text("package.json", &manifest, key).or_else(|| line_fact(&manifest, key));
        let readme = heads.get(1).cloned().flatten();
        Part {
            name: fact("name").unwrap_or_else(|| package.clone()),
            folder: package.clone(),
            purpose: fact("description").or_else(|| first_paragraph(readme.as_deref()?)),
            modules: Vec::new(),
        }
    };
    let parts = packages.iter().zip(heads.chunks(2)).map(part).collect();
    Ok(Parts { noun: "package", whole: "This workspace".to_owned(), parts, shows_modules: false })
}

/// A fact of a manifest that was cut off and so is no JSON.
fn line_fact(manifest: &str, key: &str) -> Option<String> {
    let line = manifest.lines().find_map(|line| line.trim().strip_prefix(&format!("\"{key}\":")))?;
    Some(line.trim().trim_end_matches(',').trim_matches('"').to_owned())
}
