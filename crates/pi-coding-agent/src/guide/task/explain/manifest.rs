//! What manifests say.

use serde_json::Value;

use super::super::{
    parts::manifest_text,
    project::dependency_groups,
    text::{code, enumerate, enumerate_some, list, plural, sentence},
};
use crate::guide::language::toml;

fn facts(manifest: &str, text: &str, keys: &[&str]) -> Vec<String> {
    keys.iter().filter_map(|key| Some(format!("{key}: {}", manifest_text(manifest, text, key)?))).collect()
}

fn names(table: &Value) -> Vec<String> {
    table.as_object().map(|table| table.keys().map(code).collect()).unwrap_or_default()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(code)).collect()
}

pub(super) fn cargo(text: &str) -> String {
    let toml = toml::parse(text);
    let mut parts = Vec::new();
    let is_package = toml.get("package").is_some();
    let is_workspace = toml.get("workspace").is_some();
    parts.push(
        match (is_package, is_workspace) {
            (true, true) => "It describes a crate and a workspace that the crate is the root of.",
            (true, false) => "It describes one crate.",
            (false, true) => "It describes a workspace and no crate of its own (a virtual manifest).",
            (false, false) => "It has neither a `[package]` nor a `[workspace]`.",
        }
        .to_owned(),
    );
    let package = facts(
        "Cargo.toml",
        text,
        &["name", "version", "edition", "rust-version", "license", "description", "repository"],
    );
    if !package.is_empty() {
        parts.push(list(&package, 20));
    }
    let members = texts(&toml["workspace"]["members"]);
    if !members.is_empty() {
        parts.push(format!("The workspace's members are {}.", enumerate(&members)));
    }
    let defaults = texts(&toml["workspace"]["default-members"]);
    if !defaults.is_empty() {
        parts.push(format!("Commands without `-p` or `--workspace` work on {}.", enumerate(&defaults)));
    }
    let features = names(&toml["features"]);
    if !features.is_empty() {
        parts.push(format!("Features: {}.", enumerate(&features)));
    }
    for (title, dependencies) in dependency_groups("Cargo.toml", text) {
        let shown: Vec<String> = dependencies.iter().map(code).collect();
        parts.push(format!(
            "{} ({title}): {}.",
            super::super::text::capital(&plural(dependencies.len(), "dependency")),
            enumerate_some(&shown, 40)
        ));
    }
    for (table, what) in [("bin", "Programs"), ("example", "Examples"), ("bench", "Benchmarks")] {
        let targets: Vec<String> = toml[table]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|target| target["name"].as_str().map(code))
            .collect();
        if !targets.is_empty() {
            parts.push(format!("{what}: {}.", enumerate(&targets)));
        }
    }
    let profiles = names(&toml["profile"]);
    if !profiles.is_empty() {
        parts.push(format!("It sets the build profiles {}.", enumerate(&profiles)));
    }
    let lints: Vec<String> = [&toml["lints"], &toml["workspace"]["lints"]].into_iter().flat_map(names).collect();
    if !lints.is_empty() {
        parts.push(format!("It sets lints for {}.", enumerate(&lints)));
    }
    parts.join("\n\n")
}

pub(super) fn package_json(text: &str) -> String {
    let Ok(json) = serde_json::from_str::<Value>(text) else { return super::data::json(text) };
    let mut parts =
        vec![list(&facts("package.json", text, &["name", "version", "description", "license", "type", "main"]), 10)];
    if let Some(scripts) = json["scripts"].as_object() {
        let scripts: Vec<String> = scripts
            .iter()
            .map(|(name, command)| format!("{}: {}", code(name), code(command.as_str().unwrap_or_default())))
            .collect();
        parts.push(format!("Scripts:\n\n{}", list(&scripts, 30)));
    }
    let workspaces = texts(&json["workspaces"]);
    if !workspaces.is_empty() {
        parts.push(format!("Workspaces: {}.", enumerate(&workspaces)));
    }
    for (title, dependencies) in dependency_groups("package.json", text) {
        let shown: Vec<String> = dependencies.iter().map(code).collect();
        parts.push(format!(
            "{} ({title}): {}.",
            super::super::text::capital(&plural(dependencies.len(), "dependency")),
            enumerate_some(&shown, 40)
        ));
    }
    parts.join("\n\n")
}

pub(super) fn pyproject(text: &str) -> String {
    let toml = toml::parse(text);
    let mut parts = Vec::new();
    let facts = facts("pyproject.toml", text, &["name", "version", "description", "requires-python", "license"]);
    if !facts.is_empty() {
        parts.push(list(&facts, 10));
    }
    if let Some(backend) = toml["build-system"]["build-backend"].as_str() {
        parts.push(format!("It is built with {}.", code(backend)));
    }
    let scripts: Vec<String> = toml["project"]["scripts"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, target)| format!("{} runs {}", code(name), code(target.as_str().unwrap_or_default())))
        .collect();
    if !scripts.is_empty() {
        parts.push(format!("Commands: {}.", enumerate(&scripts)));
    }
    for (title, dependencies) in dependency_groups("pyproject.toml", text) {
        let shown: Vec<String> = dependencies.iter().map(code).collect();
        parts.push(format!(
            "{} ({title}): {}.",
            super::super::text::capital(&plural(dependencies.len(), "dependency")),
            enumerate_some(&shown, 40)
        ));
    }
    let tools = names(&toml["tool"]);
    if !tools.is_empty() {
        parts.push(format!("It has settings for {}.", enumerate(&tools)));
    }
    parts.join("\n\n")
}

pub(super) fn go_mod(text: &str) -> String {
    let mut parts = Vec::new();
    for line in text.lines() {
        if let Some(module) = line.strip_prefix("module ") {
            parts.push(format!("The module is {}.", code(module.trim())));
        } else if let Some(version) = line.strip_prefix("go ") {
            parts.push(sentence(&format!("It needs Go {}", version.trim())));
        }
    }
    for (title, dependencies) in dependency_groups("go.mod", text) {
        let shown: Vec<String> = dependencies.iter().map(code).collect();
        parts.push(format!(
            "{} ({title}): {}.",
            super::super::text::capital(&plural(dependencies.len(), "dependency")),
            enumerate_some(&shown, 40)
        ));
    }
    parts.join("\n\n")
}
