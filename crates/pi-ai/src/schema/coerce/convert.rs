//! Second pass: a value becomes what the first telling keyword of its schema says.

use serde_json::Value;

use super::super::equal::equal;
use super::super::rules::{ArrayRules, Node, NodeId, ObjectRules, Type};
use super::{Coercion, scalar};

impl Coercion<'_> {
    pub(super) fn convert(&mut self, id: NodeId, value: &mut Value) {
        self.deeper(|this| this.convert_node(id, value));
    }

    fn convert_node(&mut self, id: NodeId, value: &mut Value) {
        let node = self.schema.node(id);
        if let Some(reference) = &node.reference {
            self.follow(reference, |this, target| this.convert(target, value));
            return;
        }
        if let Some(constant) = &node.constant {
            if let Some(converted) = scalar::to_literal(constant, value) {
                *value = converted;
            }
        } else if let Some(variants) = &node.variants {
            self.convert_to_variant(id, variants, value);
        } else if let Some(schemas) = node.any_of.as_ref().or(node.one_of.as_ref()) {
            self.convert_to_alternative(id, schemas, value);
        } else if let Some(schemas) = &node.all_of {
            for schema in schemas {
                self.convert(*schema, value);
            }
            self.convert_members(node, value);
        } else if let Some(types) = &node.types {
            if let Some(single) = types.single() {
                self.convert_to_type(node, single, value);
            }
        } else if node.object.as_ref().is_some_and(|rules| rules.declares_members) {
            self.convert_members(node, value);
        } else if node.array.as_ref().is_some_and(|rules| rules.prefix.is_some() || rules.rest.is_some()) {
            self.convert_to_type(node, Type::Array, value);
        }
    }

    fn convert_to_type(&mut self, node: &Node, single: Type, value: &mut Value) {
        let converted = match single {
            Type::Array => {
                self.convert_to_array(node.array.as_deref(), value);
                None
            }
            Type::Object => {
                self.convert_members(node, value);
                None
            }
            Type::String => scalar::to_text(value),
            Type::Number => scalar::to_number(value),
            Type::Integer => scalar::to_integer(value),
            Type::Boolean => scalar::to_boolean(value),
            Type::Null => scalar::to_null(value),
        };
        if let Some(converted) = converted {
            *value = converted;
        }
    }

    /// A variant stays; else the first that the value converts to, and that the whole schema accepts.
    fn convert_to_variant(&mut self, id: NodeId, variants: &[Value], value: &mut Value) {
        if variants.iter().any(|variant| equal(variant, value)) {
            return;
        }
        let accepted = variants
            .iter()
            .find_map(|variant| scalar::to_literal(variant, value).filter(|candidate| self.accepts(id, candidate)));
        if let Some(accepted) = accepted {
            *value = accepted;
        }
    }

    /// A value that one alternative accepts stays; else the first conversion that the whole schema accepts.
    fn convert_to_alternative(&mut self, id: NodeId, schemas: &[NodeId], value: &mut Value) {
        let node = self.schema.node(id);
        if !schemas.iter().any(|schema| self.accepts(*schema, value)) {
            for schema in schemas {
                let Some(mut candidate) = self.candidate(value) else { break };
                self.drop_nulls(*schema, &mut candidate);
                self.convert(*schema, &mut candidate);
                self.convert_members(node, &mut candidate);
                if self.accepts(id, &candidate) {
                    *value = candidate;
                    return;
                }
            }
        }
        self.convert_members(node, value);
    }

    /// Converts what an object holds, where the schema itself says something about it.
    fn convert_members(&mut self, node: &Node, value: &mut Value) {
        let Some(rules) = node.object.as_deref().filter(|rules| rules.declares_members) else { return };
        let Value::Object(members) = value else { return };
        for (key, member) in members {
            for schema in rules.coerced_member(key) {
                self.inside(|this| this.convert(schema, member));
            }
        }
    }

    fn convert_to_array(&mut self, rules: Option<&ArrayRules>, value: &mut Value) {
        if let Value::Array(items) = value {
            let Some(rules) = rules else { return };
            for (at, item) in items.iter_mut().enumerate() {
                if let Some(schema) = rules.coerced_item(at) {
                    self.inside(|this| this.convert(schema, item));
                }
            }
            return;
        }
        // A tuple is more than its first item.
        if rules.is_some_and(|rules| rules.prefix.is_some()) {
            return;
        }
        // The item is the value at hand, so this is no step inside: a list of lists of itself would never end.
        if let Some(schema) = rules.and_then(|rules| rules.rest) {
            self.convert(schema, value);
        }
        *value = Value::Array(vec![value.take()]);
    }
}

impl ObjectRules {
    /// The schemas towards which the member of this key is coerced.
    pub(super) fn coerced_member<'a>(&'a self, key: &'a str) -> impl Iterator<Item = NodeId> + use<'a> {
        let mut declared = self.declared(key).peekable();
        let additional = match declared.peek() {
            None if !self.has_unknown_pattern() => self.additional,
            _ => None,
        };
        declared.chain(additional)
    }
}
