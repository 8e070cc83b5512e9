//! Coercion: from what a model wrote to what the schema most likely means by it.
//!
//! Three passes, each over the whole value: optional nulls are left out; values are converted by what their schemas say
//! they are; what then still has none of the types of its schema is coerced by type. A value that no rule turns into
//! something valid is left as it is, so that the check reports what the model wrote.

mod convert;
mod nulls;
mod scalar;
mod types;

use serde_json::Value;

use super::check::{Budget, size};
use super::compile::CompiledSchema;
use super::rules::{NodeId, Reference};

impl CompiledSchema {
    /// Coerces a value towards the schema, in place.
    pub fn coerce(&self, value: &mut Value) {
        let mut coercion = Coercion { schema: self, budget: Budget::for_value(value), followed: Vec::new(), here: 0 };
        coercion.drop_nulls(self.root(), value);
        coercion.convert(self.root(), value);
        coercion.coerce_types(self.root(), value);
    }
}

struct Coercion<'a> {
    schema: &'a CompiledSchema,
    budget: Budget,
    /// The reference targets that are being followed.
    followed: Vec<NodeId>,
    /// Where those begin that were followed at the value at hand. Following one of these again would never end.
    here: usize,
}

impl Coercion<'_> {
    fn accepts(&mut self, id: NodeId, value: &Value) -> bool {
        self.schema.accepts(id, value, &mut self.budget)
    }

    /// Does something one level deeper, unless that costs too much.
    fn deeper(&mut self, inner: impl FnOnce(&mut Self)) {
        if self.budget.enter() {
            inner(self);
            self.budget.leave();
        }
    }

    /// Does something to a member or an item of the value at hand.
    fn inside(&mut self, inner: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.here, self.followed.len());
        inner(self);
        self.here = outer;
    }

    /// Does something with the target of a reference, unless that is being done to this value already.
    fn follow(&mut self, reference: &Reference, inner: impl FnOnce(&mut Self, NodeId)) {
        let Reference::To(target) = *reference else { return };
        if self.followed[self.here..].contains(&target) {
            return;
        }
        self.followed.push(target);
        inner(self, target);
        self.followed.pop();
    }

    /// A copy to try something on; `None` when that costs too much.
    fn candidate(&mut self, value: &Value) -> Option<Value> {
        self.budget.spend(size(value));
        (!self.budget.is_spent()).then(|| value.clone())
    }
}
