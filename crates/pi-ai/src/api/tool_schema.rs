//! Tool schemas as particular providers take them. The tool's own schema is never changed.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The schema without some keywords, at all depths. Names of properties are not keywords.
pub(crate) fn without_keywords<'a>(schema: &'a Value, keywords: &[Value]) -> Cow<'a, Value> {
    if keywords.is_empty() {
        return Cow::Borrowed(schema);
    }
    Cow::Owned(rewrite(schema, &mut |schema| {
        schema.retain(|name, _| !keywords.iter().any(|keyword| keyword == name));
    }))
}

/// Keywords whose value is an object of schemas by name.
const SCHEMAS_BY_NAME: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords whose value is a schema, or a list of schemas. What other keywords hold is data.
const SCHEMAS: [&str; 16] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "contentSchema",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
];

/// A copy in which `change` was applied to each schema, the outer ones first.
pub(crate) fn rewrite(schema: &Value, change: &mut impl FnMut(&mut Map<String, Value>)) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut fields = fields.clone();
            change(&mut fields);
            let rewritten = fields.into_iter().map(|(name, value)| {
                let value = match &value {
                    Value::Object(named) if SCHEMAS_BY_NAME.contains(&name.as_str()) => {
                        let named = named.iter().map(|(name, schema)| (name.clone(), rewrite(schema, change)));
                        Value::Object(named.collect())
                    }
                    schema if SCHEMAS.contains(&name.as_str()) => rewrite(schema, change),
                    _ => value,
                };
                (name, value)
            });
            Value::Object(rewritten.collect())
        }
        Value::Array(schemas) => schemas.iter().map(|schema| rewrite(schema, change)).collect(),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keywords_go_at_all_depths_and_properties_of_their_name_stay() {
        let schema = json!({
            "type": "object", "default": {"pattern": 1},
            "properties": {"pattern": {"type": "string", "pattern": "a"}},
            "anyOf": [{"items": {"pattern": "b", "enum": [{"pattern": 2}]}}],
        });
        let expected = json!({
            "type": "object", "default": {"pattern": 1},
            "properties": {"pattern": {"type": "string"}},
            "anyOf": [{"items": {"enum": [{"pattern": 2}]}}],
        });
        assert_eq!(*without_keywords(&schema, &[json!("pattern")]), expected);
        assert!(matches!(without_keywords(&schema, &[]), Cow::Borrowed(_)));
    }
}
