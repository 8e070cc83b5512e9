//! The folders of a project of no kind that the guide knows.

use super::{Part, Parts};
use crate::guide::{
    desk::{Ask, Desk},
    language::{Language, first_paragraph},
    task::{
        overview::join,
        text::{enumerate, plural},
    },
};

pub(super) fn parts(desk: &mut Desk<'_>, folder: &str) -> Ask<Parts> {
    let entries = desk.list(folder)?;
    let folders: Vec<String> = entries
        .iter()
        .filter(|entry| entry.is_folder && !entry.name.starts_with('.'))
        .map(|entry| join(folder, &entry.name))
        .take(40)
        .collect();
    let readmes: Vec<String> = folders.iter().map(|path| join(path, "README.md")).collect();
    let heads = if readmes.is_empty() { Vec::new() } else { desk.heads(&readmes, 40)? };
    let files = desk.files(folder)?.items;
    let part = |(path, head): (&String, Option<String>)| {
        let own: Vec<&String> = files.iter().filter(|file| file.starts_with(&format!("{path}/"))).collect();
        let mut languages: Vec<String> =
            own.iter().filter_map(|file| Language::of_path(file)).map(|language| language.name().to_owned()).collect();
        languages.sort_unstable();
        languages.dedup();
        languages.truncate(3);
        let counted = match languages.len() {
            0 => plural(own.len(), "file"),
            _ => format!("{} ({})", plural(own.len(), "file"), enumerate(&languages)),
        };
        let purpose = head.as_deref().and_then(first_paragraph).unwrap_or(counted);
        Part {
            name: format!("{}/", path.rsplit('/').next().unwrap_or(path)),
            folder: path.clone(),
            purpose: Some(purpose),
            modules: Vec::new(),
        }
    };
    let parts = folders.iter().zip(heads).map(part).collect();
    Ok(Parts {
        noun: "folder",
        whole: "I know no build file here, but this folder".to_owned(),
        parts,
        shows_modules: false,
    })
}
