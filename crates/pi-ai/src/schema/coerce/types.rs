//! Third pass: what has none of its schema's types is coerced to the first that it can be. This is what schemas with a
//! list of types need.

use serde_json::Value;

use super::super::rules::{NodeId, Type, Types};
use super::{Coercion, scalar};

impl Coercion<'_> {
    pub(super) fn coerce_types(&mut self, id: NodeId, value: &mut Value) {
        self.deeper(|this| this.coerce_types_in(id, value));
    }

    fn coerce_types_in(&mut self, id: NodeId, value: &mut Value) {
        let node = self.schema.node(id);
        if let Some(reference) = &node.reference {
            self.follow(reference, |this, target| this.coerce_types(target, value));
        }
        for schema in node.all_of.iter().flatten() {
            self.coerce_types(*schema, value);
        }
        for schemas in [&node.any_of, &node.one_of].into_iter().flatten() {
            self.coerce_to_alternative(schemas, value);
        }
        let Some(types) = &node.types else { return };
        if let Some(coerced) = coerced(types, value) {
            *value = coerced;
        }
        match value {
            Value::Object(members) => {
                let Some(rules) = node.object.as_ref().filter(|rules| rules.declares_members) else { return };
                for (key, member) in members {
                    for schema in rules.coerced_member(key) {
                        self.inside(|this| this.coerce_types(schema, member));
                    }
                }
            }
            Value::Array(items) => {
                let Some(rules) = &node.array else { return };
                for (at, item) in items.iter_mut().enumerate() {
                    if let Some(schema) = rules.coerced_item(at) {
                        self.inside(|this| this.coerce_types(schema, item));
                    }
                }
            }
            _ => {}
        }
    }

    fn coerce_to_alternative(&mut self, schemas: &[NodeId], value: &mut Value) {
        if schemas.iter().any(|schema| self.accepts(*schema, value)) {
            return;
        }
        for schema in schemas {
            let Some(mut candidate) = self.candidate(value) else { return };
            self.coerce_types(*schema, &mut candidate);
            if self.accepts(*schema, &candidate) {
                *value = candidate;
                return;
            }
        }
    }
}

fn coerced(types: &Types, value: &Value) -> Option<Value> {
    if types.accepts(value) {
        // `4.0` is an integer, but not to every reader.
        let written_as_float = value.is_f64() && types.known.contains(&Type::Integer) && Type::Integer.accepts(value);
        return written_as_float.then(|| scalar::whole(value)).flatten();
    }
    types.known.iter().find_map(|known| match known {
        Type::Number => scalar::number_like(value),
        Type::Integer => scalar::number_like(value).filter(|number| Type::Integer.accepts(number)),
        Type::Boolean => scalar::boolean_like(value),
        Type::String => scalar::text_like(value),
        Type::Null => scalar::null_like(value),
        Type::Array | Type::Object => None,
    })
}
