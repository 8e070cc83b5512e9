//! The packages and modules of a Python folder.

use super::{Part, Parts, documented, manifest_text};
use crate::guide::{
    desk::{Ask, Desk},
    language::{Language, file_documentation, first_paragraph},
    task::overview::join,
};

/// Sub-projects when there are several, else packages with their modules, and modules that stand alone.
pub(super) fn parts(desk: &mut Desk<'_>, folder: &str) -> Ask<Parts> {
    let files = desk.files(folder)?.items;
    let prefix = if folder == "." { String::new() } else { format!("{}/", folder.trim_end_matches('/')) };
    let inside: Vec<&str> = files.iter().filter_map(|file| file.strip_prefix(&prefix)).collect();
    let projects: Vec<String> = inside
        .iter()
        .filter_map(|file| file.strip_suffix("/pyproject.toml").or_else(|| file.strip_suffix("/setup.py")))
        .map(str::to_owned)
        .collect();
    if projects.len() > 1 {
        return sub_projects(desk, folder, &projects);
    }
    let is_test =
        |path: &str| path.split('/').any(|part| matches!(part, "tests" | "test") || part.starts_with("test_"));
    let code: Vec<&str> = inside.iter().copied().filter(|file| file.ends_with(".py")).collect();
    let is_package = |path: &str| code.iter().any(|file| file.strip_suffix("/__init__.py") == Some(path));
    // A folder with modules counts as a package even without an `__init__.py`.
    let mut packages: Vec<String> = Vec::new();
    for file in code.iter().filter(|file| !is_test(file)) {
        let Some((parent, _)) = file.rsplit_once('/') else { continue };
        let top = top_package(parent, &is_package);
        if !packages.contains(&top) {
            packages.push(top);
        }
    }
    let alone: Vec<String> = code
        .iter()
        .filter(|file| !file.contains('/') && !matches!(**file, "setup.py" | "conftest.py") && !is_test(file))
        .map(|file| join(folder, file))
        .collect();
    let mut parts = Vec::new();
    for package in &packages {
        let modules: Vec<String> = code
            .iter()
            .filter(|file| {
                let rest = file.strip_prefix(&format!("{package}/"));
                rest.is_some_and(|rest| {
                    rest != "__init__.py"
                        && !is_test(rest)
                        && (!rest.contains('/') || rest.ends_with("/__init__.py") && rest.matches('/').count() == 1)
                })
            })
            .map(|file| join(folder, file))
            .take(60)
            .collect();
        let files = [join(folder, &format!("{package}/__init__.py")), join(folder, &format!("{package}/README.md"))];
        let heads = desk.heads(&files, 40)?;
        let own = heads.first().and_then(|head| file_documentation(Language::Python, head.as_deref()?));
        let readme = || heads.get(1).and_then(|head| first_paragraph(head.as_deref()?));
        let purpose = own.or_else(readme);
        let name = package.strip_prefix("src/").unwrap_or(package).replace('/', ".");
        parts.push(Part { name, folder: join(folder, package), purpose, modules: documented(desk, &modules)? });
    }
    if packages.is_empty() || !alone.is_empty() {
        parts.extend(documented(desk, &alone)?);
    }
    let noun = match (packages.len(), alone.len()) {
        (0, _) => "module",
        (_, 0) => "package",
        _ => "package and module",
    };
    let whole = project_name(desk, folder, &inside)?;
    let noun = if noun == "package and module" { "part" } else { noun };
    Ok(Parts { noun, whole, parts, shows_modules: true })
}

/// The outermost package that a folder belongs to.
fn top_package(folder: &str, is_package: &impl Fn(&str) -> bool) -> String {
    let mut top = folder;
    while let Some((parent, _)) = top.rsplit_once('/') {
        // Everything below a package belongs to it; so does what lies in a folder that is not a source root.
        if is_package(parent) || !is_package(top) && parent != "src" {
            top = parent;
        } else {
            break;
        }
    }
    top.to_owned()
}

fn project_name(desk: &mut Desk<'_>, folder: &str, files: &[&str]) -> Ask<String> {
    for manifest in ["pyproject.toml", "setup.cfg"] {
        if files.contains(&manifest) {
            let text = desk.read_start(&join(folder, manifest))?.text;
            if let Some(name) = manifest_text(manifest, &text, "name") {
                return Ok(format!("The Python project `{name}`"));
            }
        }
    }
    Ok("This Python folder".to_owned())
}

fn sub_projects(desk: &mut Desk<'_>, folder: &str, projects: &[String]) -> Ask<Parts> {
    let files: Vec<String> = projects
        .iter()
        .flat_map(|project| ["pyproject.toml", "README.md"].map(|name| join(folder, &format!("{project}/{name}"))))
        .collect();
    let heads = desk.heads(&files, 60)?;
    let part = |(project, heads): (&String, &[Option<String>])| {
        let manifest = heads.first().cloned().flatten().unwrap_or_default();
        let readme = heads.get(1).cloned().flatten();
        Part {
            name: manifest_text("pyproject.toml", &manifest, "name").unwrap_or_else(|| project.clone()),
            folder: join(folder, project),
            purpose: manifest_text("pyproject.toml", &manifest, "description")
                .or_else(|| first_paragraph(readme.as_deref()?)),
            modules: Vec::new(),
        }
    };
    let parts = projects.iter().zip(heads.chunks(2)).map(part).collect();
    Ok(Parts { noun: "Python project", whole: "This folder".to_owned(), parts, shows_modules: false })
}
