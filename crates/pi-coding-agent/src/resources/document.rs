//! JSON documents with comments, as people write settings and themes: read, found in, and edited without touching the
//! rest.

use std::collections::HashSet;

use jsonc_parser::{
    ParseOptions,
    ast::{self, ObjectPropName},
    common::Ranged,
    cst::{CstInputValue, CstObject, CstRootNode},
    errors::ParseError,
};
use serde_json::{Map, Value};

/// The keys that lead to a value, from the outermost.
pub(crate) type KeyPath<'a> = &'a [&'a str];

/// Why a text is not a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxProblem {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// Comments are allowed; everything else is as strict as JSON.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn problem(error: &ParseError) -> SyntaxProblem {
    SyntaxProblem {
        line: error.line_display(),
        message: format!("{} (column {})", lower_first(&error.kind().to_string()), error.column_display()),
    }
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_lowercase().chain(characters).collect()).unwrap_or_default()
}

/// Reads a document. Nothing but blanks and comments is an empty one.
pub(crate) fn parse(text: &str) -> Result<Map<String, Value>, SyntaxProblem> {
    let text = without_bom(text);
    match jsonc_parser::parse_to_serde_value::<Value>(text, &options()).map_err(|error| problem(&error))? {
        Value::Object(document) => Ok(document),
        Value::Null if is_blank(text) => Ok(Map::new()),
        other => {
            Err(SyntaxProblem { line: 1, message: format!("expected an object in braces, found {}", kind_of(&other)) })
        }
    }
}

fn is_blank(text: &str) -> bool {
    jsonc_parser::parse_to_ast(text, &Default::default(), &options()).is_ok_and(|parsed| parsed.value.is_none())
}

/// What a value is, for messages.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The line (from 1) on which the value at a path stands.
pub(crate) fn line_of(text: &str, path: KeyPath<'_>) -> Option<usize> {
    let text = without_bom(text);
    let parsed = jsonc_parser::parse_to_ast(text, &Default::default(), &options()).ok()?;
    let mut value = parsed.value?;
    for key in path {
        let ast::Value::Object(object) = value else { return None };
        value = object.properties.into_iter().rev().find(|property| name_is(&property.name, key))?.value;
    }
    let before = text.get(..value.start())?;
    Some(before.matches('\n').count() + 1)
}

fn name_is(name: &ObjectPropName<'_>, key: &str) -> bool {
    name_of(name) == key
}

fn name_of<'a>(name: &'a ObjectPropName<'_>) -> &'a str {
    match name {
        ObjectPropName::String(literal) => &literal.value,
        ObjectPropName::Word(literal) => literal.value,
    }
}

/// The first key that stands twice in one object, and the line (from 1) of the second one.
pub(crate) fn repeated_key(text: &str) -> Option<(String, usize)> {
    fn find(value: &ast::Value<'_>) -> Option<(String, usize)> {
        match value {
            ast::Value::Object(object) => {
                let mut seen = HashSet::new();
                object.properties.iter().find_map(|property| {
                    let name = name_of(&property.name);
                    let is_new = seen.insert(name);
                    if is_new { find(&property.value) } else { Some((name.to_owned(), property.name.start())) }
                })
            }
            ast::Value::Array(array) => array.elements.iter().find_map(find),
            _ => None,
        }
    }
    let text = without_bom(text);
    let parsed = jsonc_parser::parse_to_ast(text, &Default::default(), &options()).ok()?;
    let (name, at) = find(&parsed.value?)?;
    Some((name, text.get(..at)?.matches('\n').count() + 1))
}

/// A change of one value: `None` removes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) path: Vec<String>,
    pub(crate) value: Option<Value>,
}

/// The text with the changes made; comments, order and layout of everything else stay.
pub(crate) fn edit(text: &str, changes: &[Change]) -> Result<String, SyntaxProblem> {
    let bom = if text.starts_with('\u{feff}') { "\u{feff}" } else { "" };
    let text = without_bom(text);
    // Also refuses what is no object, so that it is never replaced.
    parse(text)?;
    let root = CstRootNode::parse(if text.trim().is_empty() { "{}\n" } else { text }, &options())
        .map_err(|error| problem(&error))?;
    let object = root.object_value_or_set();
    for change in changes {
        apply(&object, &change.path, change.value.as_ref());
    }
    Ok(format!("{bom}{root}"))
}

fn apply(object: &CstObject, path: &[String], value: Option<&Value>) {
    let [key, rest @ ..] = path else { return };
    match (rest, value) {
        ([], Some(value)) => match object.get(key) {
            Some(property) => property.set_value(input(value)),
            None => drop(object.append(key, input(value))),
        },
        ([], None) => {
            if let Some(property) = object.get(key) {
                property.remove();
            }
        }
        (rest, Some(_)) => apply(&object.object_value_or_set(key), rest, value),
        (rest, None) => {
            if let Some(inner) = object.object_value(key) {
                apply(&inner, rest, None);
            }
        }
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(fields) => {
            CstInputValue::Object(fields.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(path: &[&str], value: Option<Value>) -> Change {
        Change { path: path.iter().map(|key| (*key).to_owned()).collect(), value }
    }

    #[test]
    fn comments_and_a_byte_order_mark_are_read() {
        let text = "\u{feff}// mine\n{\n  \"a\": 1, /* two */ \"b\": {\"c\": [true]}\n}\n";
        assert_eq!(Value::from(parse(text).unwrap()), json!({"a": 1, "b": {"c": [true]}}));
        assert!(parse("").unwrap().is_empty());
        assert!(parse("  // nothing yet\n").unwrap().is_empty());
    }

    #[test]
    fn a_trailing_comma_is_an_error_on_its_line() {
        let problem = parse("{\n  \"a\": 1,\n}\n").unwrap_err();
        assert_eq!(problem.line, 2);
        assert!(problem.message.contains("railing comma"), "{}", problem.message);
        for text in ["{'a': 1}", "{a: 1}", "{\"a\": 0x1}", "{\"a\": NaN}", "{\"a\" 1}", "[]", "null", "{} {}"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_value_is_found_on_its_line() {
        let text = "{\n  // x\n  \"a\": {\n    \"b\": 2\n  }\n}";
        assert_eq!(line_of(text, &["a", "b"]), Some(4));
        assert_eq!(line_of(text, &["a", "c"]), None);
    }

    #[test]
    fn an_edit_leaves_everything_else_as_it_was() {
        let text = "{\n  // colours\n  \"theme\": \"dark\", // yes\n  \"future\": { \"x\": 1.50 }\n}\n";
        let edited = edit(
            text,
            &[change(&["theme"], Some(json!("light"))), change(&["compaction", "enabled"], Some(json!(false)))],
        )
        .unwrap();
        assert!(edited.starts_with("{\n  // colours\n  \"theme\": \"light\", // yes\n"), "{edited}");
        assert!(edited.contains("\"future\": { \"x\": 1.50 }"), "{edited}");
        assert_eq!(Value::from(parse(&edited).unwrap())["compaction"], json!({"enabled": false}));
        let removed = edit(&edited, &[change(&["theme"], None), change(&["none", "such"], None)]).unwrap();
        assert!(!removed.contains("theme"), "{removed}");
        parse(&removed).unwrap();
    }

    #[test]
    fn an_edit_of_nothing_makes_a_document() {
        for text in ["", "\n", "{}"] {
            let edited = edit(text, &[change(&["a", "b"], Some(json!("x\n\"y\"")))]).unwrap();
            assert_eq!(Value::from(parse(&edited).unwrap()), json!({"a": {"b": "x\n\"y\""}}), "{text:?}");
        }
        assert!(edit("[1]", &[]).is_err());
    }
}
