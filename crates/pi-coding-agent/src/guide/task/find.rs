//! Where things are: definitions, uses, texts, files.

use super::text::{block_in, code, list, plural, shorten};
use crate::guide::{
    desk::{Ask, Desk, Found, Query, QueryKind, escape_expression},
    intent::Usage,
    language::{Language, definition_of},
};

/// Words before a name that make its line a likely definition.
const LEADS: &str = "fn|struct|enum|union|trait|type|mod|const|static|let|var|val|class|def|defp|defmodule|interface|function|func|fun|object|record|protocol|module|namespace|macro_rules!|sub|package|typedef|data|newtype|actor|extension";

/// Places that define a name, the likeliest first, each with the word for what it is.
pub(super) fn definitions(desk: &mut Desk<'_>, name: &str) -> Ask<Vec<(Found, &'static str)>> {
    // `Type::method` and `module.function`: the last part is defined, the others say where.
    let parts: Vec<&str> = name.split(['.', ':', '#']).filter(|part| !part.is_empty()).collect();
    let Some((wanted, context)) = parts.split_last() else { return Ok(Vec::new()) };
    let escaped = escape_expression(wanted);
    let keyword = format!(
        "(^|[^A-Za-z0-9_])({LEADS}|#define)[[:space:]]+(mut[[:space:]]+|\\([^)]*\\)[[:space:]]*|self\\.|[A-Za-z_]+[.:])?{escaped}([^A-Za-z0-9_]|$)"
    );
    let bare =
        format!("^[[:space:]]*([A-Za-z_<>,*&:. ]+[[:space:]*&])?{escaped}[[:space:]]*(\\(|:?=[^=]|::|:[^:]*=[^=])");
    let query = Query { most: 300, ..Query::new(format!("{keyword}|{bare}"), QueryKind::Expression) };
    let found = desk.search(".", &query)?;
    let mut definitions: Vec<(Found, &'static str)> = found
        .into_iter()
        .filter_map(|place| {
            let language = Language::of_path(&place.file);
            let kind = definition_of(language, &place.text, wanted)?;
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
    let last = name.split(['.', ':', '#']).rfind(|part| !part.is_empty()).unwrap_or(name);
    let query = Query { ignore_case: true, most: 60, ..Query::new(last, QueryKind::Text) };
    let found = desk.search(".", &query)?;
    if found.is_empty() {
        return Ok(format!("I found no definition of {} here, and the name does not occur in any file.", code(name)));
    }
    Ok(format!(
        "I found no line here that defines {}. It occurs on {}:\n\n{}",
        code(name),
        plural(found.len(), "line"),
        list(&found.iter().map(place_line).collect::<Vec<_>>(), 15)
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
    if found.is_empty() && text.chars().any(char::is_alphabetic) {
        found = desk.search(folder, &Query { ignore_case: true, ..exact })?;
        note = " when upper and lower case count as one";
    }
    let place = scope.map(|scope| format!(" in {}", code(scope))).unwrap_or_default();
    if found.is_empty() {
        return Ok(format!(
            "{} does not occur{place}{}.",
            code(text),
            if scope.is_none() { " in the files here" } else { "" }
        ));
    }
    let mut files: Vec<&str> = found.iter().map(|line| line.file.as_str()).collect();
    files.dedup();
    let (definitions, uses): (Vec<&Found>, Vec<&Found>) = match usage {
        Usage::Name => {
            found.iter().partition(|line| definition_of(Language::of_path(&line.file), &line.text, text).is_some())
        }
        Usage::Text => (Vec::new(), found.iter().collect()),
    };
    let many = if found.len() >= 400 { "at least " } else { "" };
    let mut answer = match usage {
        Usage::Text => format!(
            "{} occurs on {many}{} in {}{place}{note}:",
            code(text),
            plural(found.len(), "line"),
            plural(files.len(), "file")
        ),
        Usage::Name => format!(
            "{} is used on {many}{} in {}{place}{note}:",
            code(text),
            plural(uses.len(), "line"),
            plural(files.len(), "file")
        ),
    };
    let lines: Vec<String> = uses.iter().map(|line| place_line(line)).collect();
    if lines.is_empty() {
        answer = format!("{} is not used{place} apart from its definition.", code(text));
    } else {
        answer.push_str(&format!("\n\n{}", list(&lines, 40)));
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
    if found.is_empty() && !pattern.contains(['*', '?']) {
        found = desk.find(&format!("*{pattern}*"))?;
    }
    if found.is_empty() {
        return Ok(format!("There is no file called {} below this folder.", code(pattern)));
    }
    let items: Vec<String> = found.iter().map(code).collect();
    Ok(match items.as_slice() {
        [only] => format!("There is one: {only}."),
        items => format!("I found {}:\n\n{}", plural(items.len(), "file"), list(items, 60)),
    })
}
