//! First pass: a `null` in an optional property whose schema refuses it is left out, as if it had not been written.

use serde_json::Value;

use super::super::rules::{NodeId, Presence};
use super::Coercion;

impl Coercion<'_> {
    pub(super) fn drop_nulls(&mut self, id: NodeId, value: &mut Value) {
        if matches!(value, Value::Array(_) | Value::Object(_)) {
            self.deeper(|this| this.drop_nulls_in(id, value));
        }
    }

    fn drop_nulls_in(&mut self, id: NodeId, value: &mut Value) {
        let node = self.schema.node(id);
        if let Some(reference) = &node.reference {
            self.follow(reference, |this, target| this.drop_nulls(target, value));
        }
        for schema in node.all_of.iter().flatten() {
            self.drop_nulls(*schema, value);
        }
        match value {
            Value::Array(items) => {
                let Some(rules) = &node.array else { return };
                for (at, item) in items.iter_mut().enumerate() {
                    if let Some(schema) = rules.coerced_item(at) {
                        self.inside(|this| this.drop_nulls(schema, item));
                    }
                }
            }
            Value::Object(members) => {
                let Some(rules) = node.object.as_ref().filter(|rules| rules.declares_members) else { return };
                members.retain(|key, member| {
                    if let Some(property) = rules.properties.get(key)
                        && member.is_null()
                        && property.presence == Presence::Optional
                    {
                        return self.accepts(property.schema, member);
                    }
                    if !member.is_null() {
                        for schema in rules.coerced_member(key) {
                            self.inside(|this| this.drop_nulls(schema, member));
                        }
                    }
                    true
                });
            }
            _ => {}
        }
    }
}
