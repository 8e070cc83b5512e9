//! `cargo xtask features`: the feature tables of `docs/features.md`, made from the manifests.
//!
//! Each published crate says in `[package.metadata.features]` what each of its features is for and what `pi` answers
//! without it. A feature without such words, words without a feature and a table that is not up to date all fail.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde::Deserialize;

use xtask::workspace::{self, Package};
use xtask::{Error, Outcome};

/// The feature that the manifest format itself gives a meaning.
const DEFAULT: &str = "default";

pub(crate) fn command() -> Command {
    Command::new("features")
        .about("Writes the feature tables of docs/features.md from the manifests")
        .arg(crate::check_switch())
        .arg(
            Arg::new("list")
                .long("list")
                .action(ArgAction::SetTrue)
                .conflicts_with("check")
                .help("Print one line `CRATE FEATURE` per feature instead, for scripts"),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<Outcome, Error> {
    let crates = published_crates()?;
    if matches.get_flag("list") {
        for (package, features) in crates.iter().flat_map(|one| one.features.iter().map(move |name| (one, name.0))) {
            println!("{} {features}", package.name);
        }
        return Ok(Outcome::Fine);
    }
    let path = document();
    let old = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let new = with_tables(&old, &crates)?;
    if old == new {
        return Ok(Outcome::Fine);
    }
    if matches.get_flag("check") {
        eprintln!("docs/features.md is not what the manifests say: run `cargo xtask features`");
        return Ok(Outcome::Failed);
    }
    std::fs::write(&path, new)?;
    println!("wrote {}", path.display());
    Ok(Outcome::Fine)
}

fn document() -> PathBuf {
    workspace::root().join("docs/features.md")
}

/// A published crate and its features.
#[derive(Debug, Default)]
struct Crate {
    name: String,
    features: BTreeMap<String, Feature>,
}

#[derive(Debug, Default)]
struct Feature {
    /// What it gives.
    about: String,
    /// What `pi` answers without it.
    off: String,
    is_default: bool,
    /// The features, optional dependencies and features of dependencies that it turns on.
    turns_on: Vec<String>,
}

/// The words of a feature in `[package.metadata.features]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    about: String,
    off: String,
}

fn published_crates() -> Result<Vec<Crate>, Error> {
    let packages = workspace::metadata()?.packages;
    let mut crates =
        packages.iter().filter(|package| package.is_published()).map(read).collect::<Result<Vec<_>, _>>()?;
    crates.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(crates)
}

fn read(package: &Package) -> Result<Crate, Error> {
    let mut words = words_of(package)?;
    let declared = &package.features;
    let mut features = BTreeMap::new();
    for (name, turns_on) in declared.iter().filter(|(name, _)| *name != DEFAULT) {
        let Some(words) = words.remove(name) else {
            return Err(
                format!("{}: the feature `{name}` has no words in [package.metadata.features]", package.name).into()
            );
        };
        let feature = Feature {
            about: words.about,
            off: words.off,
            is_default: is_default(name, declared),
            turns_on: turns_on.clone(),
        };
        features.insert(name.clone(), feature);
    }
    match words.keys().next() {
        Some(name) => {
            Err(format!("{}: [package.metadata.features] describes `{name}`, which is no feature", package.name).into())
        }
        None => Ok(Crate { name: package.name.clone(), features }),
    }
}

fn words_of(package: &Package) -> Result<BTreeMap<String, Words>, Error> {
    let words = &package.metadata["features"];
    if words.is_null() {
        return Ok(BTreeMap::new());
    }
    let read = serde_json::from_value(words.clone());
    Ok(read.map_err(|error| format!("{}: [package.metadata.features]: {error}", package.manifest_path.display()))?)
}

/// Whether `name` is on by default, by itself or through another feature.
fn is_default(name: &str, declared: &BTreeMap<String, Vec<String>>) -> bool {
    let mut on = vec![DEFAULT];
    let mut next = 0;
    while let Some(feature) = on.get(next).copied() {
        next += 1;
        for implied in declared.get(feature).into_iter().flatten() {
            if declared.contains_key(implied.as_str()) && !on.contains(&implied.as_str()) {
                on.push(implied);
            }
        }
    }
    on.contains(&name)
}

/// The document with each crate's table between its two markers.
fn with_tables(document: &str, crates: &[Crate]) -> Result<String, Error> {
    let mut document = document.to_owned();
    for one in crates {
        let begin = format!("<!-- table: {} -->\n", one.name);
        let end = "<!-- end of table -->";
        let range = document.find(&begin).and_then(|start| {
            let start = start + begin.len();
            document[start..].find(end).map(|length| start..start + length)
        });
        let Some(range) = range else {
            return Err(format!("docs/features.md has no `{}` … `{end}`", begin.trim_end()).into());
        };
        document.replace_range(range, &table(one));
    }
    Ok(document)
}

fn table(one: &Crate) -> String {
    if one.features.is_empty() {
        return "\nIt has none.\n\n".to_owned();
    }
    let mut table =
        "\n| Feature | Default | What it gives | Turns on | Without it |\n|---|---|---|---|---|\n".to_owned();
    for (name, feature) in &one.features {
        let turns_on: Vec<String> = feature.turns_on.iter().map(|name| format!("`{name}`")).collect();
        let cells = [
            format!("`{name}`"),
            if feature.is_default { "yes".to_owned() } else { "no".to_owned() },
            feature.about.clone(),
            turns_on.join(", "),
            feature.off.clone(),
        ];
        table.push_str(&format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | ")));
    }
    table.push('\n');
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(features: serde_json::Value, words: serde_json::Value) -> Package {
        let package = json!({
            "name": "some-crate", "manifest_path": "Cargo.toml", "publish": null,
            "features": features, "metadata": {"features": words},
        });
        serde_json::from_value(package).unwrap()
    }

    #[test]
    fn the_document_agrees_with_the_manifests() {
        let document = std::fs::read_to_string(document()).unwrap();
        let fresh = with_tables(&document, &published_crates().unwrap()).unwrap();
        assert!(document == fresh, "docs/features.md is not what the manifests say: run `cargo xtask features`");
    }

    #[test]
    fn a_misspelt_feature_name_is_refused() {
        let words = json!({"htpp": {"about": "a", "off": "b"}});
        let error = read(&package(json!({"http": []}), words.clone())).unwrap_err().to_string();
        assert_eq!(error, "some-crate: the feature `http` has no words in [package.metadata.features]");
        let error = read(&package(json!({}), words)).unwrap_err().to_string();
        assert_eq!(error, "some-crate: [package.metadata.features] describes `htpp`, which is no feature");
        let misspelt = json!({"http": {"abuot": "a", "off": "b"}});
        assert!(read(&package(json!({"http": []}), misspelt)).is_err());
    }

    #[test]
    fn a_feature_is_on_by_default_through_another_one_too() {
        let features = json!({"default": ["a"], "a": ["b", "dep:x"], "b": [], "c": ["a"]});
        let declared: BTreeMap<String, Vec<String>> = serde_json::from_value(features).unwrap();
        let on: Vec<bool> = ["a", "b", "c"].iter().map(|name| is_default(name, &declared)).collect();
        assert_eq!(on, [true, true, false]);
    }
}
