//! Equality as JSON Schema means it: numbers by value, members in any order.

use std::collections::HashSet;

use serde_json::{Number, Value};

use crate::json::number;

/// Whether two values are the same JSON value.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

/// Integers exactly, anything else as doubles.
pub(super) fn same_number(a: &Number, b: &Number) -> bool {
    a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
}

/// Whether no two items are equal.
pub(super) fn all_different(items: &[Value]) -> bool {
    /// Up to here comparing each with each is cheaper than writing them down.
    const FEW: usize = 16;
    if items.len() <= FEW {
        return items.iter().enumerate().all(|(at, item)| !items[..at].iter().any(|other| equal(item, other)));
    }
    let mut seen = HashSet::with_capacity(items.len());
    items.iter().all(|item| {
        let mut text = String::new();
        write_canonical(item, &mut text);
        seen.insert(text)
    })
}

/// Writes equal values as equal texts.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Number(number) => {
            let number = match number.as_f64() {
                Some(value) if number.is_f64() => number::to_number(value).unwrap_or_else(|| number.clone()),
                _ => number.clone(),
            };
            text.push_str(&number.to_string());
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (key, member) in members {
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write_canonical(member, text);
                text.push(',');
            }
            text.push('}');
        }
        _ => text.push_str(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_equal_by_value_and_members_in_any_order() {
        assert!(equal(&json!({"a": [1, 2.5], "b": null}), &json!({"b": null, "a": [1.0, 2.5]})));
        assert!(!equal(&json!(9007199254740993i64), &json!(9007199254740992i64)));
        for (a, b) in
            [(json!(1), json!("1")), (json!(0), json!(false)), (json!([]), json!({})), (json!({"a": 1}), json!({}))]
        {
            assert!(!equal(&a, &b), "{a} {b}");
        }
    }

    #[test]
    fn long_lists_are_judged_as_short_ones() {
        let long = |last: [Value; 2]| -> Vec<Value> { (0..100).map(Value::from).chain(last).collect() };
        assert!(all_different(&long([json!({"a": 1, "b": 2}), json!({"a": 1})])));
        assert!(!all_different(&long([json!({"a": 1, "b": 2.0}), json!({"b": 2, "a": 1})])));
        assert!(!all_different(&long([json!("x"), json!(5.0)])));
        assert!(!all_different(&[json!(1), json!(1.0)]));
    }
}
