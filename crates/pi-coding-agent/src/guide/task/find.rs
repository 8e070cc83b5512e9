//! Where things are: definitions, uses, texts, files.

use super::text::{amount, block_in, code, list, list_of, shorten};
use crate::guide::{
    desk::{Amount, Ask, Desk, Found, Listing, Query, QueryKind, escape_expression},
    intent::Usage,
    language::{Language, definition_of},
};

/// Words before a name that make its line a likely definition.
const LEADS: &str = "fn|struct|enum|union|trait|type|mod|const|static|let|var|val|class|def|defp|defmodule|interface|function|func|fun|object|record|protocol|module|namespace|macro_rules!|sub|package|typedef|data|newtype|actor|extension";

/// Places that define a name, the likeliest first, each with the word for what it is.
pub(super) fn definitions(desk: &mut Desk<'_>, name: &str) -> Ask<Vec<(Found, &'static str)>> {
    let found = possible_definitions(desk, name, Case::Exact)?;
    let Some((wanted, context)) = split_name(name) else { return Ok(Vec::new()) };
    let mut definitions: Vec<(Found, &'static str)> = found
        .into_iter()
        .filter_map(|place| {
            let kind = definition_of(Language::of_path(&place.file), &place.text, wanted)?;
            Some((place, kind))
        })
        .collect();
    definitions.sort_by_key(|(place, kind)| {
        let in_context = context
            .iter()
            .all(|part| place.file.to_lowercase().contains(&part.to_lowercase()) || place.text.contains(part));
        let is_test = place.file.split('/').any(|part| part.starts_with("test") || part == "spec");
        let is_module_line = *kind == "module" && place.text.trim_end().ends_with(';');
        (
            !in_context,
            is_test,
            is_module_line,
            matches!(*kind, "variable" | "constant" | "value"),
            place.text.len() - place.text.trim_start().len(),
        )
    });
    Ok(definitions)
}

/// Whether upper and lower case count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Exact,
    Any,
}

/// `Type::method` and `module.function`: the last part is defined, the others say where.
fn split_name(name: &str) -> Option<(&str, Vec<&str>)> {
    let mut parts: Vec<&str> = name.split(['.', ':', '#']).filter(|part| !part.is_empty()).collect();
    let wanted = parts.pop()?;
    Some((wanted, parts))
}

/// Lines that look as if they defined a name.
fn possible_definitions(desk: &mut Desk<'_>, name: &str, case: Case) -> Ask<Vec<Found>> {
    let Some((wanted, _)) = split_name(name) else { return Ok(Vec::new()) };
    let escaped = escape_expression(wanted);
    let keyword = format!(
        "(^|[^A-Za-z0-9_])({LEADS}|#define)[[:space:]]+(mut[[:space:]]+|\\([^)]*\\)[[:space:]]*|self\\.|[A-Za-z_]+[.:])?{escaped}([^A-Za-z0-9_]|$)"
    );
    let bare =
        format!("^[[:space:]]*([A-Za-z_<>,*&:. ]+[[:space:]*&])?{escaped}[[:space:]]*(\\(|:?=[^=]|::|:[^:]*=[^=])");
    let query = Query {
        most: 300,
        ignore_case: case == Case::Any,
        ..Query::new(format!("{keyword}|{bare}"), QueryKind::Expression)
    };
    Ok(desk.search(".", &query)?.items)
}

/// Names that are defined and differ from a name only in upper and lower case.
fn defined_in_other_case(desk: &mut Desk<'_>, name: &str) -> Ask<Vec<(String, Found, &'static str)>> {
    let Some((wanted, _)) = split_name(name) else { return Ok(Vec::new()) };
    let found = possible_definitions(desk, name, Case::Any)?;
    let mut names: Vec<(String, Found, &'static str)> = found
        .into_iter()
        .filter_map(|place| {
            let at = place.text.to_ascii_lowercase().find(&wanted.to_ascii_lowercase())?;
            let spelled = place.text.get(at..at + wanted.len())?.to_owned();
            let kind = definition_of(Language::of_path(&place.file), &place.text, &spelled)?;
            Some((spelled, place, kind))
        })
        .collect();
    // A type is likelier meant than a variable.
    names.sort_by_key(|(_, _, kind)| matches!(*kind, "variable" | "constant" | "value"));
    Ok(names)
}

/// Answers where a name is defined.
pub(super) fn definition(desk: &mut Desk<'_>, name: &str) -> Ask<String> {
    desk.remark(format!("Searching for the definition of {}.", code(name)));
    let definitions = definitions(desk, name)?;
    let Some((first, kind)) = definitions.first() else { return not_defined(desk, name) };
    let place = format!("{}:{}", first.file, first.line);
    let mut answer = format!("{} is defined in {} ({kind}).", code(name), code(&place));
    let text = desk.read_lines(&first.file, first.line, 24)?.text;
    let lines: Vec<&str> = text.lines().collect();
    let language = Language::of_path(&first.file);
    let body = super::explain::body(language, &lines).join("\n");
    let fence = language.map(|language| language.name().to_lowercase()).unwrap_or_default();
    answer.push_str(&format!("\n\n{}", block_in(&fence, &body, 24)));
    if definitions.len() > 1 {
        let others: Vec<String> = definitions
            .iter()
            .skip(1)
            .map(|(place, kind)| {
                format!(
                    "{} ({kind}): {}",
                    code(format!("{}:{}", place.file, place.line)),
                    code(shorten(place.text.trim(), 120))
                )
            })
            .collect();
        answer.push_str(&format!(
            "\n\nThere {} of that name:\n\n{}",
            if others.len() == 1 {
                "is another definition".to_owned()
            } else {
                format!("are {} other definitions", others.len())
            },
            list(&others, 12)
        ));
    }
    Ok(answer)
}

fn not_defined(desk: &mut Desk<'_>, name: &str) -> Ask<String> {
    let others = defined_in_other_case(desk, name)?;
    if !others.is_empty() {
        let items: Vec<String> = others
            .iter()
            .map(|(spelled, place, kind)| {
                format!("{} ({kind}) in {}", code(spelled), code(format!("{}:{}", place.file, place.line)))
            })
            .collect();
        return Ok(format!(
            "I found no definition of {}. With other upper and lower case there is one:\n\n{}",
            code(name),
            list(&items, 12)
        ));
    }
    let last = name.split(['.', ':', '#']).rfind(|part| !part.is_empty()).unwrap_or(name);
    let query = Query { ignore_case: true, most: 60, ..Query::new(last, QueryKind::Text) };
    let found = desk.search(".", &query)?;
    if found.items.is_empty() {
        return Ok(format!("I found no definition of {} here, and the name does not occur in any file.", code(name)));
    }
    Ok(format!(
        "I found no line here that defines {}. It occurs on {}:\n\n{}",
        code(name),
        amount(found.total, "line"),
        list_of(&found.items.iter().map(place_line).collect::<Vec<_>>(), 15, found.total)
    ))
}

fn place_line(found: &Found) -> String {
    format!("{}: {}", code(format!("{}:{}", found.file, found.line)), code(shorten(found.text.trim(), 140)))
}

/// Answers where a text occurs.
pub(super) fn search(desk: &mut Desk<'_>, text: &str, scope: Option<&str>, usage: Usage) -> Ask<String> {
    desk.remark(format!("Searching for {}.", code(text)));
    let folder = scope.unwrap_or(".");
    let kind = match usage {
        Usage::Name if text.chars().all(|c| c.is_alphanumeric() || c == '_') => QueryKind::Word,
        Usage::Name | Usage::Text => QueryKind::Text,
    };
    let exact = Query { most: 400, ..Query::new(text, kind) };
    let mut found = desk.search(folder, &exact)?;
    let mut note = "";
    if found.items.is_empty() && text.chars().any(char::is_alphabetic) {
        found = desk.search(folder, &Query { ignore_case: true, ..exact })?;
        note = " when upper and lower case count as one";
    }
    let place = scope.map(|scope| format!(" in {}", code(scope))).unwrap_or_default();
    if found.items.is_empty() {
        return Ok(format!(
            "{} does not occur{place}{}.",
            code(text),
            if scope.is_none() { " in the files here" } else { "" }
        ));
    }
    // Of the lines that are not at hand it is not known whether they define the name or use it.
    let Listing { items: found, total } = found;
    let is_all = total == Amount::Exactly(found.len());
    let mut files: Vec<&str> = found.iter().map(|line| line.file.as_str()).collect();
    files.dedup();
    let part = |count| if is_all { Amount::Exactly(count) } else { Amount::AtLeast(count) };
    let (definitions, uses): (Vec<&Found>, Vec<&Found>) = match usage {
        Usage::Name => {
            found.iter().partition(|line| definition_of(Language::of_path(&line.file), &line.text, text).is_some())
        }
        Usage::Text => (Vec::new(), found.iter().collect()),
    };
    let mut answer = match usage {
        Usage::Text => format!(
            "{} occurs on {} in {}{place}{note}:",
            code(text),
            amount(total, "line"),
            amount(part(files.len()), "file")
        ),
        Usage::Name => format!(
            "{} is used on {} in {}{place}{note}:",
            code(text),
            amount(part(uses.len()), "line"),
            amount(part(files.len()), "file")
        ),
    };
    let lines: Vec<String> = uses.iter().map(|line| place_line(line)).collect();
    if lines.is_empty() {
        answer = format!("{} is not used{place} apart from its definition.", code(text));
    } else {
        answer.push_str(&format!(
            "\n\n{}",
            list_of(&lines, 40, if usage == Usage::Text { total } else { part(uses.len()) })
        ));
    }
    if !definitions.is_empty() {
        let places: Vec<String> =
            definitions.iter().take(6).map(|line| code(format!("{}:{}", line.file, line.line))).collect();
        answer.push_str(&format!("\n\nIt is defined in {}.", super::text::enumerate(&places)));
    }
    Ok(answer)
}

/// Answers which files have a name.
pub(super) fn files(desk: &mut Desk<'_>, pattern: &str) -> Ask<String> {
    desk.remark(format!("Looking for {}.", code(pattern)));
    let mut found = desk.find(pattern)?;
    if found.items.is_empty() && !pattern.contains(['*', '?']) {
        found = desk.find(&format!("*{pattern}*"))?;
    }
    if found.items.is_empty() {
        return Ok(format!("There is no file called {} below this folder.", code(pattern)));
    }
    let items: Vec<String> = found.items.iter().map(code).collect();
    Ok(match items.as_slice() {
        [only] => format!("There is one: {only}."),
        items => format!("I found {}:\n\n{}", amount(found.total, "file"), list_of(items, 60, found.total)),
    })
}
