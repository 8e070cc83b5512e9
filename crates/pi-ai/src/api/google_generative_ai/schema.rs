//! Tool schemas as Gemini takes them.

use serde_json::{Map, Value, json};

use crate::api::tool_schema::rewrite;

/// What the OpenAPI subset has.
const OPENAPI_KEYWORDS: [&str; 22] = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "default",
    "example",
    "properties",
    "required",
    "propertyOrdering",
    "minProperties",
    "maxProperties",
    "items",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "anyOf",
];

/// The schema with each string or number `const` as an `enum` of one value: Gemini does not heed `const`.
pub(super) fn const_as_enum(schema: &Value) -> Value {
    rewrite(schema, &mut |schema| {
        if schema.get("const").is_some_and(|value| value.is_string() || value.is_number())
            && !schema.contains_key("enum")
        {
            let value = schema.shift_remove("const");
            schema.insert("enum".into(), json!([value]));
        }
    })
}

/// The schema in OpenAPI's subset, for servers that refuse everything else.
pub(super) fn openapi_subset(schema: &Value) -> Value {
    rewrite(&const_as_enum(schema), &mut |schema| {
        if let Some(alternatives) = schema.shift_remove("oneOf")
            && !schema.contains_key("anyOf")
        {
            schema.insert("anyOf".into(), alternatives);
        }
        // It may lift a schema out of its alternatives.
        null_as_nullable(schema);
        let is_integer = schema.get("type").is_some_and(|kind| kind == "integer");
        if is_integer
            && let Some(above) = schema.get("exclusiveMinimum").and_then(Value::as_i64)
            && !schema.contains_key("minimum")
        {
            schema.insert("minimum".into(), above.saturating_add(1).into());
        }
        schema.retain(|keyword, _| OPENAPI_KEYWORDS.contains(&keyword.as_str()));
    })
}

/// The subset has no type `null`.
fn null_as_nullable(schema: &mut Map<String, Value>) {
    let is_null = |value: &Value| value == "null";
    if let Some(Value::Array(types)) = schema.get_mut("type")
        && let Some(at) = types.iter().position(is_null)
    {
        types.remove(at);
        schema.insert("nullable".into(), true.into());
    }
    if let Some(Value::Array(types)) = schema.get("type") {
        let types = types.clone();
        schema.shift_remove("type");
        match &types[..] {
            [one] => drop(schema.insert("type".into(), one.clone())),
            [] => {}
            several => {
                let variants = several.iter().map(|kind| json!({ "type": kind })).collect();
                schema.entry("anyOf").or_insert(variants);
            }
        }
    }
    let Some(Value::Array(variants)) = schema.get_mut("anyOf") else { return };
    let before = variants.len();
    variants.retain(|variant| variant.get("type").is_none_or(|kind| kind != "null"));
    if variants.len() < before {
        let only = if variants.len() == 1 { variants.pop() } else { None };
        if let Some(Value::Object(only)) = only {
            schema.shift_remove("anyOf");
            for (keyword, value) in only {
                schema.entry(keyword).or_insert(value);
            }
        }
        schema.insert("nullable".into(), true.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_keyword_const_becomes_an_enum() {
        let schema = json!({
            "properties": {"const": {"const": "v"}, "b": {"anyOf": [{"const": 1}, {"const": true}]}},
            "default": {"const": "data"},
        });
        let expected = json!({
            "properties": {"const": {"enum": ["v"]}, "b": {"anyOf": [{"enum": [1]}, {"const": true}]}},
            "default": {"const": "data"},
        });
        assert_eq!(const_as_enum(&schema), expected);
    }

    #[test]
    fn the_subset_keeps_what_it_can_say() {
        let schema = json!({
            "$schema": "x", "type": "object", "additionalProperties": false,
            "properties": {
                "n": {"type": "integer", "exclusiveMinimum": 0},
                "s": {"type": ["string", "null"], "minLength": 1},
                "o": {"anyOf": [{"type": "number", "description": "d"}, {"type": "null"}]},
                "a": {"type": "array", "items": {"oneOf": [{"type": "string"}, {"type": "integer"}]}, "uniqueItems": true},
                "t": {"type": ["string", "integer"]},
            },
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer", "minimum": 1},
                "s": {"minLength": 1, "nullable": true, "type": "string"},
                "o": {"type": "number", "description": "d", "nullable": true},
                "a": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
                "t": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            },
        });
        assert_eq!(openapi_subset(&schema), expected);
    }
}
