//! Holding what a model samples for a tool's arguments to a shape: strict JSON Schema, or a grammar.

use std::borrow::Cow;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::{
    error::{ErrorKind, ProviderError},
    tool::{ConstrainedSampling, Constraint, Strictness, ToolDeclaration},
};

/// Keywords that no provider's strict mode takes.
const NEVER_STRICT: &[&str] = &[
    "$ref",
    "$defs",
    "definitions",
    "allOf",
    "oneOf",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "propertyNames",
    "contains",
    "prefixItems",
    "not",
    "if",
    "then",
    "else",
];

/// How a wire's strict mode is.
#[derive(Clone, Copy)]
pub(crate) enum StrictMode {
    /// There is none.
    Unsupported,
    /// There is one; the function names further keywords (with their values) that it refuses.
    Supported(fn(&str, &Value) -> bool),
}

/// A mode that refuses nothing but what all refuse.
pub(crate) const ANY_KEYWORD: StrictMode = StrictMode::Supported(|_, _| false);

/// A tool's schema as it goes out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SampledSchema<'a> {
    /// The schema: the tool's own, or its strict form.
    pub(crate) schema: Cow<'a, Value>,
    /// Whether it is the strict form.
    pub(crate) strict: bool,
}

/// Whether the tool asks for strict sampling where it is possible, and can do without.
pub(crate) fn prefers_strict(tool: &ToolDeclaration) -> bool {
    json_schema_strictness(tool) == Some(Strictness::Prefer)
}

/// The schema that goes out, strict when the tool asks for it and the wire can.
///
/// # Errors
/// When the tool requires strict sampling, and the wire or the schema does not allow it.
pub(crate) fn sampled_schema(tool: &ToolDeclaration, mode: StrictMode) -> Result<SampledSchema<'_>, ProviderError> {
    let own = SampledSchema { schema: Cow::Borrowed(&tool.parameters), strict: false };
    let Some(strictness) = json_schema_strictness(tool) else { return Ok(own) };
    let outcome = match mode {
        StrictMode::Supported(refuses) => strict_schema(&tool.parameters, refuses),
        StrictMode::Unsupported => Err("this provider has no strict tools".to_owned()),
    };
    match (outcome, strictness) {
        (Ok(schema), _) => Ok(SampledSchema { schema: Cow::Owned(schema), strict: true }),
        (Err(_), Strictness::Prefer) => Ok(own),
        (Err(reason), Strictness::Require) => Err(refused(tool, "strict JSON Schema sampling", &reason)),
    }
}

fn json_schema_strictness(tool: &ToolDeclaration) -> Option<Strictness> {
    match tool.constrained_sampling {
        Some(ConstrainedSampling::On(Constraint::JsonSchema { strict })) => Some(strict),
        _ => None,
    }
}

fn refused(tool: &ToolDeclaration, what: &str, reason: &str) -> ProviderError {
    let message = format!("The tool `{}` asks for {what}, but {reason}.", tool.name);
    ProviderError::new(ErrorKind::InvalidRequest, message)
}

/// The strict form of a schema: every property is required, optional ones may be null, nothing else is allowed.
fn strict_schema(schema: &Value, refuses: fn(&str, &Value) -> bool) -> Result<Value, String> {
    let mut schema = schema.clone();
    make_strict(&mut schema, refuses)?;
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => Ok(schema),
        _ => Err("its schema is not of type object".into()),
    }
}

fn make_strict(schema: &mut Value, refuses: fn(&str, &Value) -> bool) -> Result<(), String> {
    let Value::Object(fields) = schema else { return Err("a schema in it is no object".into()) };
    if let Some(keyword) = NEVER_STRICT.iter().find(|keyword| fields.contains_key(**keyword)) {
        return Err(format!("its schema uses `{keyword}`"));
    }
    if let Some((keyword, value)) = fields.iter().find(|(keyword, value)| refuses(keyword, value)) {
        return Err(format!("its schema uses `{keyword}: {value}`"));
    }
    if !["type", "anyOf", "enum"].iter().any(|keyword| fields.contains_key(*keyword)) {
        return Err("a schema in it has no type".into());
    }
    if let Some(variants) = fields.get_mut("anyOf") {
        let variants = variants.as_array_mut().filter(|variants| !variants.is_empty());
        for variant in variants.ok_or("its `anyOf` is no list of schemas")? {
            if is_structured(variant) {
                return Err("its `anyOf` holds objects or lists".into());
            }
            make_strict(variant, refuses)?;
        }
    }
    if let Some(items) = fields.get_mut("items") {
        if items.is_array() {
            return Err("it describes a tuple".into());
        }
        make_strict(items, refuses)?;
    }
    if fields.get("type").and_then(Value::as_str) != Some("object") {
        return match fields.contains_key("properties") {
            true => Err("a schema with properties is not of type object".into()),
            false => Ok(()),
        };
    }
    make_object_strict(fields, refuses)
}

fn make_object_strict(fields: &mut Map<String, Value>, refuses: fn(&str, &Value) -> bool) -> Result<(), String> {
    if fields.get("additionalProperties").is_some_and(|value| *value != Value::Bool(false)) {
        return Err("it allows additional properties".into());
    }
    let required: Vec<String> = match fields.get("required") {
        None => Vec::new(),
        Some(Value::Array(names)) => {
            let names = names.iter().map(|name| name.as_str().map(str::to_owned));
            names.collect::<Option<_>>().ok_or("its `required` is no list of names")?
        }
        Some(_) => return Err("its `required` is no list of names".into()),
    };
    let mut none = Map::new();
    let properties = match fields.get_mut("properties") {
        None => &mut none,
        Some(Value::Object(properties)) => properties,
        Some(_) => return Err("its `properties` are no object".into()),
    };
    if let Some(unknown) = required.iter().find(|name| !properties.contains_key(*name)) {
        return Err(format!("it requires `{unknown}` and does not describe it"));
    }
    for (name, property) in properties.iter_mut() {
        make_strict(property, refuses)?;
        if !required.contains(name) && !allows_null(property) {
            *property = json!({ "anyOf": [property.take(), { "type": "null" }] });
        }
    }
    let names: Vec<Value> = properties.keys().map(|name| Value::from(name.as_str())).collect();
    fields.insert("required".into(), names.into());
    fields.insert("additionalProperties".into(), false.into());
    Ok(())
}

fn has_type(schema: &Map<String, Value>, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(types)) => types.iter().any(|one| one == name),
        _ => false,
    }
}

fn is_structured(schema: &Value) -> bool {
    schema.as_object().is_some_and(|schema| {
        has_type(schema, "object")
            || has_type(schema, "array")
            || schema.contains_key("properties")
            || schema.contains_key("items")
    })
}

fn allows_null(schema: &Value) -> bool {
    let Value::Object(schema) = schema else { return false };
    let in_list = |name: &str, test: fn(&Value) -> bool| {
        schema.get(name).and_then(Value::as_array).is_some_and(|values| values.iter().any(test))
    };
    has_type(schema, "null")
        || schema.get("const") == Some(&Value::Null)
        || in_list("enum", Value::is_null)
        || in_list("anyOf", allows_null)
}

/// A tool whose input is free text of a grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grammar<'a> {
    /// `lark` or `regex`.
    pub(crate) syntax: &'static str,
    /// The grammar.
    pub(crate) definition: &'a str,
    /// The one property that the text stands for.
    pub(crate) property: &'a str,
}

/// Whether a wire has grammar tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrammarMode {
    Unsupported,
    Supported,
}

impl GrammarMode {
    pub(crate) fn from_flag(supported: bool) -> Self {
        if supported { Self::Supported } else { Self::Unsupported }
    }
}

/// The grammar of a tool that asks for one, where the wire has them.
///
/// # Errors
/// When the tool has no grammar that the wire knows, or its schema is not one required string.
pub(crate) fn grammar(tool: &ToolDeclaration, mode: GrammarMode) -> Result<Option<Grammar<'_>>, ProviderError> {
    let (GrammarMode::Supported, Some(ConstrainedSampling::On(Constraint::Grammar { variants }))) =
        (mode, &tool.constrained_sampling)
    else {
        return Ok(None);
    };
    let variant = |name: &str| variants.get(name).map(String::as_str).filter(|text| !text.trim().is_empty());
    let (syntax, definition) = variant("openai_lark")
        .map(|text| ("lark", text))
        .or_else(|| variant("openai_regex").map(|text| ("regex", text)))
        .ok_or_else(|| refused(tool, "a grammar", "it has none that this provider knows"))?;
    let property = only_text_property(&tool.parameters)
        .ok_or_else(|| refused(tool, "a grammar", "its schema is not an object with exactly one required string"))?;
    Ok(Some(Grammar { syntax, definition, property }))
}

fn only_text_property(schema: &Value) -> Option<&str> {
    let [Value::String(name)] = schema["required"].as_array()?.as_slice() else { return None };
    (schema["type"] == "object" && schema["properties"][name]["type"] == "string").then_some(name)
}

/// The property that each grammar tool's text stands for, by the tool's name.
pub(crate) fn grammar_properties<'a>(
    tools: impl IntoIterator<Item = &'a ToolDeclaration>,
    mode: GrammarMode,
) -> Result<IndexMap<String, String>, ProviderError> {
    let mut properties = IndexMap::new();
    for tool in tools {
        if let Some(grammar) = grammar(tool, mode)? {
            properties.insert(tool.name.clone(), grammar.property.to_owned());
        }
    }
    Ok(properties)
}

/// The text of a call to a grammar tool.
///
/// # Errors
/// When the stored call does not hold it.
pub(crate) fn grammar_input<'a>(
    tool: &str,
    arguments: &'a Map<String, Value>,
    property: &str,
) -> Result<&'a str, ProviderError> {
    arguments.get(property).and_then(Value::as_str).ok_or_else(|| {
        let message = format!("A stored call of the grammar tool `{tool}` has no text in its argument `{property}`.");
        ProviderError::new(ErrorKind::InvalidRequest, message)
    })
}

/// Turns the streamed text of a grammar tool into the text of the JSON arguments that it stands for.
#[derive(Clone, Debug)]
pub(crate) struct GrammarInput {
    property: String,
    input: String,
    state: InputState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputState {
    Empty,
    Open,
    Closed,
}

impl GrammarInput {
    pub(crate) fn new(property: &str) -> Self {
        Self { property: property.to_owned(), input: String::new(), state: InputState::Empty }
    }

    /// The JSON text for the next piece; empty for an empty piece.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        if piece.is_empty() || self.state == InputState::Closed {
            return String::new();
        }
        self.input.push_str(piece);
        self.opening() + &escaped(piece)
    }

    /// The rest of the JSON text, with what `whole` has beyond the pieces. Nothing when it was closed already.
    ///
    /// # Errors
    /// When `whole` is not what the pieces said.
    pub(crate) fn close(&mut self, whole: Option<&str>) -> Result<String, ProviderError> {
        let changed =
            || ProviderError::new(ErrorKind::Protocol, "The input of a grammar tool changed after it was sent.");
        if self.state == InputState::Closed {
            return match whole {
                Some(whole) if whole != self.input => Err(changed()),
                _ => Ok(String::new()),
            };
        }
        let rest = match whole {
            Some(whole) => whole.strip_prefix(self.input.as_str()).ok_or_else(changed)?.to_owned(),
            None => String::new(),
        };
        let opening = self.opening();
        self.input.push_str(&rest);
        self.state = InputState::Closed;
        Ok(opening + &escaped(&rest) + "\"}")
    }

    fn opening(&mut self) -> String {
        match std::mem::replace(&mut self.state, InputState::Open) {
            InputState::Empty => format!("{{{}:\"", Value::from(self.property.as_str())),
            InputState::Open | InputState::Closed => String::new(),
        }
    }
}

/// A text as it stands inside a JSON string literal.
fn escaped(text: &str) -> String {
    let literal = Value::from(text).to_string();
    literal[1..literal.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict(schema: Value) -> Result<Value, String> {
        strict_schema(&schema, |keyword, _| keyword == "minimum")
    }

    #[test]
    fn a_strict_schema_requires_everything_and_lets_the_optional_be_null() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string"},
            "b": {"type": "object", "properties": {"c": {"type": ["integer", "null"]}}},
            "d": {"type": "array", "items": {"enum": [1]}},
        }});
        let expected = json!({"type": "object", "properties": {
            "a": {"type": "string"},
            "b": {"anyOf": [
                {"type": "object", "properties": {"c": {"type": ["integer", "null"]}}, "required": ["c"], "additionalProperties": false},
                {"type": "null"},
            ]},
            "d": {"anyOf": [{"type": "array", "items": {"enum": [1]}}, {"type": "null"}]},
        }, "required": ["a", "b", "d"], "additionalProperties": false});
        assert_eq!(strict(schema), Ok(expected));
    }

    #[test]
    fn what_strict_modes_refuse_is_named() {
        for (schema, reason) in [
            (json!({"type": "object", "properties": {"a": {"$ref": "#"}}}), "$ref"),
            (json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}), "minimum"),
            (json!({"type": "object", "additionalProperties": true}), "additional"),
            (json!({"type": "object", "required": ["x"]}), "`x`"),
            (json!({"type": "array", "items": {"type": "string"}}), "type object"),
            (json!({"type": "object", "properties": {"a": {"description": "d"}}}), "no type"),
            (json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "object"}]}}}), "anyOf"),
            (json!({"type": "object", "properties": {"a": {"type": "array", "items": []}}}), "tuple"),
            (json!(true), "no object"),
        ] {
            let found = strict(schema.clone()).unwrap_err();
            assert!(found.contains(reason), "{schema}: {found}");
        }
    }

    #[test]
    fn grammar_text_becomes_json_piece_by_piece() {
        let mut input = GrammarInput::new("in");
        let text = [input.push("a\""), input.push(""), input.push("b"), input.close(Some("a\"b\n")).unwrap()].concat();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"in": "a\"b\n"}));
        assert_eq!(input.close(None).unwrap(), "");
        assert!(input.close(Some("x")).is_err());
        let mut empty = GrammarInput::new("in");
        assert_eq!(empty.close(None).unwrap(), r#"{"in":""}"#);
    }
}
