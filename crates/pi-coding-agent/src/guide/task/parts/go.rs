//! The packages of a Go module.

use super::{Part, Parts, manifest_text};
use crate::guide::{
    desk::{Ask, Desk},
    language::{Language, file_documentation},
    task::overview::join,
};

pub(super) fn parts(desk: &mut Desk<'_>, folder: &str) -> Ask<Parts> {
    let files = desk.files(folder)?.items;
    let sources: Vec<&String> =
        files.iter().filter(|file| file.ends_with(".go") && !file.ends_with("_test.go")).collect();
    let mut folders: Vec<&str> =
        sources.iter().map(|file| file.rsplit_once('/').map_or(".", |(parent, _)| parent)).collect();
    folders.dedup();
    folders.sort_unstable();
    folders.dedup();
    folders.truncate(40);
    // Any of a package's files may hold its comment; `doc.go`, the package's own name and the first files are likely.
    let candidates = |package: &str| -> Vec<String> {
        let mut own: Vec<&&String> =
            sources.iter().filter(|file| file.rsplit_once('/').map_or(".", |(parent, _)| parent) == package).collect();
        let name = package.rsplit('/').next().unwrap_or(package).to_owned();
        own.sort_by_key(|file| match file.rsplit('/').next().unwrap_or_default() {
            "doc.go" => 0,
            stem if stem.strip_suffix(".go") == Some(&name) => 1,
            "main.go" => 2,
            _ => 3,
        });
        own.into_iter().take(4).map(|file| (*file).clone()).collect()
    };
    let wanted: Vec<Vec<String>> = folders.iter().map(|package| candidates(package)).collect();
    let all: Vec<String> = wanted.concat();
    let heads = if all.is_empty() { Vec::new() } else { desk.heads(&all, 30)? };
    let mut next = heads.into_iter();
    let mut parts = Vec::new();
    for (package, files) in folders.iter().zip(&wanted) {
        let heads: Vec<String> = files.iter().filter_map(|_| next.next().flatten()).collect();
        let purpose = heads.iter().find_map(|head| file_documentation(Language::Go, head));
        let is_program = heads.iter().any(|head| head.lines().any(|line| line.trim() == "package main"));
        let purpose = purpose.or_else(|| is_program.then(|| "a program without a package comment".to_owned()));
        parts.push(Part { name: (*package).to_owned(), folder: (*package).to_owned(), purpose, modules: Vec::new() });
    }
    let has_module = files.iter().any(|file| file == &join(folder, "go.mod"));
    let name = if has_module {
        manifest_text("go.mod", &desk.read_start(&join(folder, "go.mod"))?.text, "name")
    } else {
        None
    };
    let whole = name.map_or("This Go folder".to_owned(), |name| format!("The Go module `{name}`"));
    Ok(Parts { noun: "package", whole, parts, shows_modules: false })
}
