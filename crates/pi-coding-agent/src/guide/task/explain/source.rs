//! What a source file is made of.

use super::super::text::{code, enumerate, list, plural, sentence};
use crate::guide::language::{Item, Language, file_documentation, items_of};

/// Its documentation, what it uses and what it defines.
pub(super) fn explain(language: Language, text: &str) -> String {
    let mut parts = Vec::new();
    if let Some(documentation) = file_documentation(language, text) {
        parts.push(format!("It says of itself: {}", sentence(&documentation)));
    }
    let uses = imports(language, text);
    if !uses.is_empty() {
        let shown: Vec<String> = uses.iter().take(12).map(code).collect();
        let more = if uses.len() > 12 { format!(" and {} more", uses.len() - 12) } else { String::new() };
        parts.push(format!("It uses {}{more}.", if more.is_empty() { enumerate(&shown) } else { shown.join(", ") }));
    }
    let items = items_of(language, text);
    let outer: Vec<&Item> = items.iter().filter(|item| item.indent == 0).collect();
    if items.is_empty() {
        let shown = super::super::text::block_in(&language.name().to_lowercase(), text, 20);
        parts.push(format!(
            "It defines nothing that I recognise. It reads:

{shown}"
        ));
    } else {
        let lines: Vec<String> = outer.iter().map(|item| described(item, &items, text)).collect();
        let kinds = kinds(&outer);
        let inner = items.len() - outer.len();
        let inner = if inner > 0 { format!(", and {inner} inside them or in blocks") } else { String::new() };
        parts.push(format!("It defines {kinds}{inner}:\n\n{}", list(&lines, 60)));
    }
    let tests = items.iter().filter(|item| is_test(language, item, text)).count();
    if tests > 0 {
        parts.push(format!("{} of its functions are tests.", tests));
    }
    let todos: Vec<usize> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains("TODO") || line.contains("FIXME"))
        .map(|(index, _)| index + 1)
        .collect();
    if !todos.is_empty() {
        let lines: Vec<String> = todos.iter().take(8).map(|line| line.to_string()).collect();
        parts.push(format!("Open notes (TODO or FIXME) stand on line {}.", enumerate(&lines)));
    }
    parts.join("\n\n")
}

fn described(item: &Item, all: &[Item], text: &str) -> String {
    let documentation = item.documentation.as_ref().map(|text| format!(": {}", sentence(text))).unwrap_or_default();
    let names: Vec<String> = members(item, all, text).into_iter().map(code).collect();
    let members = match names.len() {
        0 => String::new(),
        1..=12 => format!(" It has {}.", enumerate(&names)),
        more => format!(" It has {} and {} more.", names[..12].join(", "), more - 12),
    };
    format!("{} ({}, line {}){documentation}{members}", code(&item.name), item.kind, item.line)
}

/// The methods of a type: those inside its body, and in Rust those in its `impl` blocks.
fn members<'i>(item: &Item, all: &'i [Item], text: &str) -> Vec<&'i str> {
    let lines: Vec<&str> = text.lines().collect();
    let holders: Vec<usize> = match item.kind {
        "class" | "interface" | "trait" | "object" | "module" | "protocol" => vec![item.line],
        "struct" | "enum" => {
            let heads = lines.iter().enumerate().filter(|(_, line)| is_impl_of(line, &item.name));
            heads.map(|(index, _)| index + 1).collect()
        }
        _ => return Vec::new(),
    };
    let mut names: Vec<&str> = Vec::new();
    for holder in holders {
        // A block ends where the next line without indentation begins something else.
        let end = lines.iter().skip(holder).position(|line| {
            !line.is_empty() && !line.starts_with([' ', '\t', '}', ')', '{']) && !line.starts_with("where")
        });
        let end = end.map_or(lines.len(), |offset| holder + offset);
        let inside = all.iter().filter(|other| other.line > holder && other.line <= end && other.indent > 0);
        names.extend(
            inside.filter(|other| matches!(other.kind, "function" | "method")).map(|other| other.name.as_str()),
        );
    }
    names
}

fn is_impl_of(line: &str, name: &str) -> bool {
    let Some(head) = line.strip_prefix("impl") else { return false };
    if head.contains(" for ") {
        return false;
    }
    let head = match head.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((_, rest)) => rest,
        None => head,
    };
    let head = head.trim_start();
    let end = head.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(head.len());
    head.get(..end) == Some(name)
}

fn kinds(items: &[&Item]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for item in items {
        match counts.iter_mut().find(|(kind, _)| *kind == item.kind) {
            Some((_, count)) => *count += 1,
            None => counts.push((item.kind, 1)),
        }
    }
    if counts.is_empty() {
        return "nothing at the outer level".to_owned();
    }
    enumerate(&counts.iter().map(|(kind, count)| plural(*count, kind)).collect::<Vec<_>>())
}

fn is_test(language: Language, item: &Item, text: &str) -> bool {
    match language {
        Language::Rust => {
            let above: Vec<&str> = text.lines().take(item.line.saturating_sub(1)).collect();
            above
                .iter()
                .rev()
                .map(|line| line.trim())
                .take_while(|line| line.starts_with("#[") || line.starts_with("//"))
                .any(|line| line.contains("test]") || line.contains("test("))
        }
        Language::Python => item.name.starts_with("test_"),
        Language::Go => item.name.starts_with("Test"),
        _ => false,
    }
}

/// The names of what a file brings in from elsewhere.
fn imports(language: Language, text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = line.trim_end();
        let name = match language {
            Language::Rust => line
                .strip_prefix("use ")
                .or_else(|| line.strip_prefix("pub use "))
                .and_then(|path| path.split(['{', ';', ':']).next()),
            Language::Python => line
                .strip_prefix("import ")
                .or_else(|| line.strip_prefix("from "))
                .and_then(|rest| rest.split([' ', ',']).next()),
            Language::JavaScript | Language::TypeScript => (line.starts_with("import ") || line.contains("require("))
                .then(|| line.split(['"', '\'']).nth(1))
                .flatten(),
            Language::C | Language::Cpp => {
                line.strip_prefix("#include ").map(|rest| rest.trim_matches(['<', '>', '"']))
            }
            Language::Java | Language::Kotlin | Language::Scala | Language::Swift | Language::Haskell => {
                line.strip_prefix("import ").map(|rest| rest.trim_end_matches(';'))
            }
            Language::CSharp => {
                line.strip_prefix("using ").filter(|rest| !rest.starts_with('(')).map(|rest| rest.trim_end_matches(';'))
            }
            Language::Ruby => line
                .strip_prefix("require ")
                .or_else(|| line.strip_prefix("require_relative "))
                .map(|rest| rest.trim_matches(['"', '\''])),
            Language::Go => {
                let inside = line.trim();
                (inside.starts_with('"') && inside.ends_with('"') || line.starts_with("import \""))
                    .then(|| line.split('"').nth(1))
                    .flatten()
            }
            Language::Shell => line.strip_prefix("source ").or_else(|| line.strip_prefix(". ")),
            _ => None,
        };
        if let Some(name) = name.map(str::trim).filter(|name| !name.is_empty())
            && !(language == Language::Rust && matches!(name, "crate" | "self" | "super"))
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// The lines of a definition, from its first one to the end of its body.
pub(in crate::guide::task) fn body<'l>(language: Option<Language>, lines: &[&'l str]) -> Vec<&'l str> {
    let Some(first) = lines.first() else { return Vec::new() };
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = indent(first);
    let by_indent = matches!(language, Some(Language::Python | Language::Ruby | Language::Haskell | Language::Elixir));
    let mut end = 1;
    if !by_indent {
        // A definition that ends on its first line has no body.
        let opens = lines.iter().take(8).any(|line| line.contains('{'));
        if first.trim_end().ends_with(';') || !opens {
            return vec![first];
        }
    }
    for line in lines.iter().skip(1) {
        let inside = line.trim().is_empty()
            || indent(line) > own
            || line.trim_start().starts_with([')', '{', ']'])
            || line.trim_start().starts_with("where");
        if inside {
            end += 1;
            continue;
        }
        if !by_indent && line.trim_start().starts_with('}') || line.trim() == "end" {
            end += 1;
        }
        break;
    }
    while end > 1 && lines.get(end - 1).is_some_and(|line| line.trim().is_empty()) {
        end -= 1;
    }
    lines.get(..end).unwrap_or_default().to_vec()
}
