//! What is in files of data and settings.

use serde_json::Value;

use super::super::text::{code, enumerate, list, plural, shorten};
use crate::guide::language::toml as toml_reader;

pub(super) fn toml(text: &str) -> String {
    let comment = leading_comment(text);
    format!("{comment}{}", tree(&toml_reader::parse(text)))
}

pub(super) fn json(text: &str) -> String {
    match jsonc_parser::parse_to_serde_value::<Value>(text, &jsonc_parser::ParseOptions::default()) {
        Ok(value) => tree(&value),
        Err(error) => format!("It is not valid JSON: {error}."),
    }
}

fn leading_comment(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map_while(|line| line.trim().strip_prefix('#')).map(str::trim).collect();
    let comment = lines.join(" ");
    if comment.is_empty() { String::new() } else { format!("It begins with: {}\n\n", shorten(&comment, 300)) }
}

fn tree(value: &Value) -> String {
    match value {
        Value::Object(fields) if fields.is_empty() => "It is an empty object.".to_owned(),
        Value::Object(fields) => {
            let items: Vec<String> =
                fields.iter().map(|(key, value)| format!("{}: {}", code(key), summary(value))).collect();
            format!("At the top level it has {}:\n\n{}", plural(fields.len(), "key"), list(&items, 50))
        }
        Value::Array(items) => {
            let first = items.first().map(|item| format!(" The first one is {}.", summary(item))).unwrap_or_default();
            format!("It is a list of {}.{first}", plural(items.len(), "item"))
        }
        other => format!("It is the single value {}.", code(other.to_string())),
    }
}

fn summary(value: &Value) -> String {
    match value {
        Value::Object(fields) if fields.is_empty() => "empty".to_owned(),
        Value::Object(fields) => {
            let keys: Vec<String> = fields.keys().take(8).map(code).collect();
            if fields.len() > 8 {
                format!("{} and {} more", keys.join(", "), fields.len() - 8)
            } else {
                format!("has {}", enumerate(&keys))
            }
        }
        Value::Array(items)
            if !items.is_empty()
                && items.len() <= 5
                && items.iter().all(|item| item.is_string() || item.is_number()) =>
        {
            enumerate(
                &items
                    .iter()
                    .map(|item| code(item.as_str().map_or_else(|| item.to_string(), str::to_owned)))
                    .collect::<Vec<_>>(),
            )
        }
        Value::Array(items) => plural(items.len(), "item"),
        Value::String(text) => code(shorten(text, 100)),
        other => code(other.to_string()),
    }
}

pub(super) fn yaml(text: &str) -> String {
    let keys: Vec<String> = text
        .lines()
        .filter(|line| !line.starts_with([' ', '\t', '#', '-']))
        .filter_map(|line| {
            let (key, value) = line.split_once(':')?;
            let value = value.trim();
            Some(if value.is_empty() || value.starts_with('#') {
                code(key)
            } else {
                format!("{}: {}", code(key), code(shorten(value, 80)))
            })
        })
        .collect();
    let comment = leading_comment(text);
    match keys.len() {
        0 => format!(
            "{comment}It has {} at the top level.",
            plural(text.lines().filter(|line| line.starts_with("- ")).count(), "list item")
        ),
        count => format!("{comment}At the top level it has {}:\n\n{}", plural(count, "key"), list(&keys, 50)),
    }
}

pub(super) fn lock_file(text: &str) -> String {
    let packages = text.lines().filter(|line| line.trim() == "[[package]]").count();
    if packages > 0 {
        return format!("A program wrote it; it is not meant to be edited. It pins {}.", plural(packages, "package"));
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value["packages"].is_object() => {
            let count = value["packages"].as_object().map_or(0, |packages| packages.len().saturating_sub(1));
            format!("A program wrote it; it is not meant to be edited. It pins {}.", plural(count, "package"))
        }
        _ => "A program wrote it; it is not meant to be edited.".to_owned(),
    }
}

pub(super) fn table(name: &str, text: &str) -> String {
    let separator = if name.ends_with(".tsv") { '\t' } else { ',' };
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let columns: Vec<String> =
        lines.next().unwrap_or_default().split(separator).map(|column| code(column.trim().trim_matches('"'))).collect();
    format!(
        "It is a table with {} ({}) and {}.",
        plural(columns.len(), "column"),
        enumerate(&columns.into_iter().take(30).collect::<Vec<_>>()),
        plural(lines.count(), "row")
    )
}

pub(super) fn dockerfile(text: &str) -> String {
    let steps: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| {
            ["FROM", "WORKDIR", "COPY", "ADD", "RUN", "ENV", "EXPOSE", "CMD", "ENTRYPOINT", "USER", "ARG"]
                .iter()
                .any(|word| line.starts_with(word))
        })
        .map(|line| code(shorten(line, 120)))
        .collect();
    format!("Its steps:\n\n{}", list(&steps, 40))
}
