//! How one settings layer lies over another.

use serde_json::{Map, Value};

/// The upper layer wins; objects merge, everything else replaces. A list of `defaultTools` that only adds and removes
/// names extends the lower list instead.
pub(crate) fn merge(lower: &Map<String, Value>, upper: &Map<String, Value>) -> Map<String, Value> {
    let mut merged = lower.clone();
    merge_into(&mut merged, upper);
    if let (Some(Value::Array(lower)), Some(Value::Array(upper))) = (lower.get(DEFAULT_TOOLS), upper.get(DEFAULT_TOOLS))
        && upper.iter().all(is_modifier)
    {
        merged.insert(DEFAULT_TOOLS.to_owned(), lower.iter().chain(upper).cloned().collect());
    }
    merged
}

const DEFAULT_TOOLS: &str = "defaultTools";

fn merge_into(lower: &mut Map<String, Value>, upper: &Map<String, Value>) {
    for (key, value) in upper {
        match (lower.get_mut(key), value) {
            (Some(Value::Object(lower)), Value::Object(upper)) => merge_into(lower, upper),
            _ => drop(lower.insert(key.clone(), value.clone())),
        }
    }
}

fn is_modifier(entry: &Value) -> bool {
    entry.as_str().is_some_and(|entry| entry.starts_with(['+', '-']))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(lower: Value, upper: Value) -> Value {
        let (Value::Object(lower), Value::Object(upper)) = (lower, upper) else { panic!("layers are objects") };
        merge(&lower, &upper).into()
    }

    #[test]
    fn objects_merge_and_everything_else_replaces() {
        assert_eq!(
            merged(
                json!({"a": {"b": 1, "c": 2}, "l": [1, 2], "x": 1}),
                json!({"a": {"c": 3}, "l": [3], "x": {"y": 1}})
            ),
            json!({"a": {"b": 1, "c": 3}, "l": [3], "x": {"y": 1}})
        );
        assert_eq!(merged(json!({"a": 1}), json!({"a": null})), json!({"a": null}));
    }

    #[test]
    fn a_list_of_tool_modifiers_extends_the_lower_list() {
        let tools = |lower: Value, upper: Value| merged(json!({"defaultTools": lower}), json!({"defaultTools": upper}));
        assert_eq!(tools(json!(["read"]), json!(["+grep"])), json!({"defaultTools": ["read", "+grep"]}));
        assert_eq!(tools(json!(["read"]), json!(["grep", "+ls"])), json!({"defaultTools": ["grep", "+ls"]}));
        assert_eq!(tools(json!("broken"), json!(["+grep"])), json!({"defaultTools": ["+grep"]}));
    }
}
