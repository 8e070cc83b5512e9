//! The parts of a project: the crates of a workspace, the packages and modules of a Python folder, and the like.

mod cargo;
mod go;
mod node;
mod other;
mod python;

use serde_json::Value;

use super::{
    overview::{is_readme, join},
    text::{capital, code, enumerate, list, plural, sentence},
};
use crate::guide::{
    desk::{Ask, Desk, Settle},
    intent::PartKind,
    language::{Language, file_documentation, first_paragraph, toml},
};

/// A part of a project.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Part {
    pub(super) name: String,
    /// Where it is; for a module its file.
    pub(super) folder: String,
    /// What it says that it does.
    pub(super) purpose: Option<String>,
    /// What its parts are, for parts that have some.
    pub(super) modules: Vec<Part>,
}

/// The parts that were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Parts {
    /// What one of them is called.
    pub(super) noun: &'static str,
    /// What they are parts of: "This Cargo workspace".
    pub(super) whole: String,
    pub(super) parts: Vec<Part>,
    /// Whether they have modules worth showing.
    pub(super) shows_modules: bool,
}

impl Parts {
    /// The part of a name: its own, the last of its path, with `-` and `_` as one.
    pub(super) fn named(&self, name: &str) -> Option<&Part> {
        let plain = |text: &str| text.to_lowercase().replace('_', "-").trim_end_matches('/').to_owned();
        let wanted = plain(name);
        let all = || self.parts.iter().flat_map(|part| std::iter::once(part).chain(&part.modules));
        all()
            .find(|part| plain(&part.name) == wanted)
            .or_else(|| all().find(|part| plain(&part.folder) == wanted))
            .or_else(|| all().find(|part| plain(&part.folder).rsplit('/').next() == Some(&wanted)))
            .or_else(|| all().find(|part| plain(part.name.rsplit('.').next().unwrap_or_default()) == wanted))
    }

    pub(super) fn names_sentence(&self) -> String {
        let names: Vec<String> = self.parts.iter().map(|part| code(&part.name)).collect();
        match names.len() {
            0 => "I found no parts at all.".to_owned(),
            _ => format!("There is {}.", enumerate(&names)),
        }
    }

    pub(super) fn as_list(&self, desk: &Desk<'_>, most: usize) -> String {
        let mut lines = Vec::new();
        for part in self.parts.iter().take(most) {
            lines.push(format!("- {}", one_line(desk, part)));
            if self.shows_modules {
                lines.extend(part.modules.iter().take(40).map(|module| format!("  - {}", one_line(desk, module))));
                if part.modules.len() > 40 {
                    lines.push(format!("  … and {} more", part.modules.len() - 40));
                }
            }
        }
        if self.parts.len() > most {
            lines.push(format!("… and {} more", self.parts.len() - most));
        }
        lines.join("\n")
    }
}

fn one_line(desk: &Desk<'_>, part: &Part) -> String {
    let folder = desk.shown(&part.folder);
    let place = if folder == part.name || folder.is_empty() || folder == "." {
        String::new()
    } else {
        format!(" (in {})", code(folder))
    };
    match &part.purpose {
        Some(purpose) => format!("{}{place}: {}", code(&part.name), sentence(&capital(purpose))),
        None if part.modules.is_empty() => format!("{}{place}: it does not say what it does.", code(&part.name)),
        None => {
            let modules = plural(part.modules.len(), "module");
            format!("{}{place}: it does not say what it does; it has {modules}.", code(&part.name))
        }
    }
}

/// Finds the parts of the project in a folder, by what lies there.
pub(super) fn find(desk: &mut Desk<'_>, folder: &str) -> Ask<Parts> {
    find_kind(desk, folder, PartKind::Any)
}

fn find_kind(desk: &mut Desk<'_>, folder: &str, kind: PartKind) -> Ask<Parts> {
    let entries = desk.list(folder)?;
    let has = |name: &str| entries.iter().any(|entry| entry.name == name && !entry.is_folder);
    if has("Cargo.toml") {
        return cargo::parts(desk, folder, kind);
    }
    let python = has("pyproject.toml") || has("setup.py") || has("setup.cfg") || has("requirements.txt");
    if python && !has("package.json") {
        return python::parts(desk, folder);
    }
    if has("package.json") {
        return node::parts(desk, folder);
    }
    if has("go.mod") || has("go.work") {
        return go::parts(desk, folder);
    }
    // Nothing at the top says what it is: the files do.
    let files = desk.files(folder)?.items;
    let ends = |suffix: &str| files.iter().filter(|file| file.ends_with(suffix)).count();
    if kind == PartKind::Crates || ends("/Cargo.toml") > 0 {
        let crates = cargo::scattered(desk, &files)?;
        if !crates.parts.is_empty() {
            return Ok(crates);
        }
    }
    if ends(".py") > 0 && ends(".py") >= ends(".go") && ends(".py") * 2 >= ends(".js") + ends(".ts") {
        return python::parts(desk, folder);
    }
    if ends(".go") > 0 {
        return go::parts(desk, folder);
    }
    other::parts(desk, folder)
}

/// Answers which parts there are, or what one of them does.
pub(super) fn members(desk: &mut Desk<'_>, kind: PartKind, named: Option<&str>) -> Ask<String> {
    desk.remark("Reading the project's manifests.");
    let found = find_kind(desk, ".", kind)?;
    if let Some(name) = named {
        return match found.named(name) {
            Some(part) => describe(desk, &part.clone(), found.noun),
            None => super::explain::named_or(
                desk,
                name,
                &format!("There is no {} called {} here. {}", found.noun, code(name), found.names_sentence()),
            ),
        };
    }
    if found.parts.is_empty() {
        return Ok(format!(
            "I found no parts here that are {}.",
            match kind {
                PartKind::Crates => "crates: there is no `Cargo.toml`",
                PartKind::Modules => "modules of a language that I know",
                PartKind::Packages | PartKind::Any => "packages, crates or modules of a kind that I know",
            }
        ));
    }
    let mut answer = String::new();
    if kind == PartKind::Crates && !found.noun.starts_with("crate") {
        answer.push_str("There are no crates here: I see no `Cargo.toml`. ");
    }
    answer.push_str(&format!(
        "{} has {}:\n\n{}",
        found.whole,
        plural(found.parts.len(), found.noun),
        found.as_list(desk, 60)
    ));
    Ok(answer)
}

/// Describes one part: what it says, its modules, what it needs.
pub(super) fn describe(desk: &mut Desk<'_>, part: &Part, noun: &str) -> Ask<String> {
    let place = if part.folder == part.name || part.folder.is_empty() {
        String::new()
    } else {
        format!(" (in {})", code(&part.folder))
    };
    let mut answer = match &part.purpose {
        Some(purpose) => format!("{}{place}: {}", code(&part.name), sentence(&capital(purpose))),
        None => format!("{}{place} does not say what it does.", code(&part.name)),
    };
    if Language::of_path(&part.folder).is_some() {
        let explained = super::explain::file(desk, &part.folder)?;
        return Ok(format!("{answer}\n\n{explained}"));
    }
    let entries = desk.list(&part.folder).settle()?.unwrap_or_default();
    if let Some(readme) = entries.iter().find(|entry| is_readme(&entry.name)) {
        let file = join(&part.folder, &readme.name);
        let head = desk.heads(std::slice::from_ref(&file), 60)?.into_iter().flatten().next();
        if let Some(paragraph) = head.as_deref().and_then(first_paragraph)
            && part.purpose.as_deref() != Some(paragraph.as_str())
        {
            answer.push_str(&format!("\n\n{} says: {}", code(&file), sentence(&paragraph)));
        }
    }
    let modules = if part.modules.is_empty() { modules_of(desk, &part.folder)? } else { part.modules.clone() };
    if !modules.is_empty() {
        let items: Vec<String> = modules.iter().map(|module| one_line(desk, module)).collect();
        answer.push_str(&format!("\n\nThe {noun} has {}:\n\n{}", plural(modules.len(), "module"), list(&items, 40)));
    }
    for manifest in ["Cargo.toml", "package.json", "pyproject.toml", "go.mod"] {
        if entries.iter().any(|entry| entry.name == manifest) {
            let text = desk.read_start(&join(&part.folder, manifest))?.text;
            let groups = super::project::dependency_groups(manifest, &text);
            if let Some((_, names)) = groups.iter().find(|(title, _)| title == "normal" || title == "direct") {
                let names: Vec<String> = names.iter().map(code).collect();
                answer.push_str(&format!("\n\nIt depends on {}.", enumerate(&names)));
            }
        }
    }
    Ok(answer)
}

/// The modules directly below a part's source folder, with what they say.
fn modules_of(desk: &mut Desk<'_>, folder: &str) -> Ask<Vec<Part>> {
    let files = desk.files(folder).settle()?.unwrap_or_default().items;
    let source = if files.iter().any(|file| file.starts_with(&join(folder, "src/"))) {
        join(folder, "src")
    } else {
        folder.to_owned()
    };
    let modules: Vec<String> = files
        .into_iter()
        .filter(|file| Language::of_path(file).is_some_and(Language::is_code))
        .filter(|file| {
            let inside = file.strip_prefix(&format!("{source}/")).or_else(|| (source == ".").then_some(file.as_str()));
            inside.is_some_and(|inside| {
                let depth = inside.matches('/').count();
                let name = inside.rsplit('/').next().unwrap_or_default();
                depth == 0 && !matches!(name, "lib.rs" | "main.rs" | "__init__.py")
                    || depth == 1 && matches!(name, "mod.rs" | "__init__.py" | "index.ts" | "index.js" | "main.rs")
            })
        })
        .take(60)
        .collect();
    documented(desk, &modules)
}

/// Source files as parts, each with what it says at its head.
pub(super) fn documented(desk: &mut Desk<'_>, files: &[String]) -> Ask<Vec<Part>> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let heads = desk.heads(files, 30)?;
    let part = |(file, head): (&String, Option<String>)| {
        let language = Language::of_path(file);
        let purpose = language.zip(head).and_then(|(language, head)| file_documentation(language, &head));
        Part { name: module_name(file), folder: file.clone(), purpose, modules: Vec::new() }
    };
    Ok(files.iter().zip(heads).map(part).collect())
}

/// The name of a module, by its file.
fn module_name(file: &str) -> String {
    let mut parts = file.rsplit('/');
    let name = parts.next().unwrap_or(file);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    match stem {
        "mod" | "__init__" | "index" => {
            parts.next().filter(|folder| !matches!(*folder, "src" | "lib")).unwrap_or(stem).to_owned()
        }
        _ => stem.to_owned(),
    }
}

/// A text fact of a manifest, with the places where workspaces keep shared ones.
pub(super) fn manifest_text(path: &str, text: &str, key: &str) -> Option<String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let flat = |value: &Value| -> Option<String> {
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Array(items) => {
                let items: Vec<String> = items
                    .iter()
                    .filter_map(|item| Some(item.as_str().or_else(|| item.get("name")?.as_str())?.to_owned()))
                    .collect();
                (!items.is_empty()).then(|| items.join(", "))
            }
            Value::Object(table) => table
                .get("text")
                .or_else(|| table.get("name"))
                .or_else(|| table.get("file"))
                .and_then(|value| value.as_str().map(str::to_owned)),
            _ => None,
        }
    };
    let value = match name {
        "Cargo.toml" => {
            let toml = toml::parse(text);
            flat(&toml["package"][key]).or_else(|| flat(&toml["workspace"]["package"][key]))
        }
        "pyproject.toml" => {
            let toml = toml::parse(text);
            flat(&toml["project"][key]).or_else(|| flat(&toml["tool"]["poetry"][key]))
        }
        "package.json" => {
            let json: Value = serde_json::from_str(text).ok()?;
            let key = if key == "authors" { "author" } else { key };
            flat(&json[key])
        }
        "setup.cfg" => text.lines().find_map(|line| {
            let (found, value) = line.split_once('=')?;
            (found.trim() == key).then(|| value.trim().to_owned())
        }),
        "go.mod" if key == "name" => {
            text.lines().find_map(|line| Some(line.strip_prefix("module ")?.trim().to_owned()))
        }
        _ => None,
    };
    value.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|value| !value.is_empty())
}
