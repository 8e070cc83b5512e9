//! Whether a value is valid: the fast way, without saying why.

use serde_json::{Map, Value};

use super::compile::CompiledSchema;
use super::equal::equal;
use super::rules::{ArrayRules, Node, NodeId, ObjectRules, Reference};

/// What one call may cost: schemas may refer to themselves, and alternatives of alternatives multiply.
#[derive(Debug)]
pub(super) struct Budget {
    steps: u64,
    depth: usize,
}

/// How many schemas may be looked at inside one another. Far above what nested arguments need, below what a stack holds.
const MAX_DEPTH: usize = 500;

impl Budget {
    /// Grows with the value, so that no honest arguments are too large for an honest schema.
    pub(super) fn for_value(value: &Value) -> Self {
        Self { steps: 300_000 + 50 * size(value) as u64, depth: 0 }
    }

    /// Whether anything was given up because it cost too much.
    pub(super) fn is_spent(&self) -> bool {
        self.steps == 0
    }

    pub(super) fn spend(&mut self, steps: usize) {
        self.steps = self.steps.saturating_sub(steps as u64);
    }

    /// Goes one schema deeper; `false`, and no [`leave`](Self::leave) then, when there is no budget for it.
    pub(super) fn enter(&mut self) -> bool {
        self.spend(1);
        if self.depth == MAX_DEPTH {
            self.steps = 0;
        }
        let goes = !self.is_spent();
        self.depth += usize::from(goes);
        goes
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }
}

impl CompiledSchema {
    /// Whether a value is valid as it is, without coercion.
    pub fn is_valid(&self, value: &Value) -> bool {
        let mut budget = Budget::for_value(value);
        self.accepts(self.root(), value, &mut budget) && !budget.is_spent()
    }

    pub(super) fn accepts(&self, id: NodeId, value: &Value, budget: &mut Budget) -> bool {
        if !budget.enter() {
            return false;
        }
        let accepts = self.node_accepts(self.node(id), value, budget);
        budget.leave();
        accepts
    }

    fn node_accepts(&self, node: &Node, value: &Value, budget: &mut Budget) -> bool {
        if node.never || node.types.as_ref().is_some_and(|types| !types.accepts(value)) {
            return false;
        }
        let own_rules = match value {
            Value::Number(number) => node.number.as_ref().is_none_or(|rules| rules.broken(number).next().is_none()),
            Value::String(text) => node.text.as_ref().is_none_or(|rules| rules.broken(text).next().is_none()),
            Value::Object(members) => {
                node.object.as_ref().is_none_or(|rules| self.object_holds(rules, members, value, budget))
            }
            Value::Array(items) => node.array.as_ref().is_none_or(|rules| self.array_holds(rules, items, budget)),
            Value::Null | Value::Bool(_) => true,
        };
        own_rules
            && node.variants.as_ref().is_none_or(|variants| {
                budget.spend(variants.len() / 16);
                variants.iter().any(|variant| equal(variant, value))
            })
            && node.constant.as_ref().is_none_or(|constant| equal(constant, value))
            && node.all_of.as_ref().is_none_or(|all| all.iter().all(|schema| self.accepts(*schema, value, budget)))
            && node.any_of.as_ref().is_none_or(|any| any.iter().any(|schema| self.accepts(*schema, value, budget)))
            && node.one_of.as_ref().is_none_or(|one| self.count_accepting(one, value, budget) == 1)
            && node.not.is_none_or(|schema| !self.accepts(schema, value, budget))
            && node.condition.as_ref().is_none_or(|condition| {
                let branch = match self.accepts(condition.test, value, budget) {
                    true => condition.then,
                    false => condition.otherwise,
                };
                branch.is_none_or(|schema| self.accepts(schema, value, budget))
            })
            && match &node.reference {
                Some(Reference::To(target)) => self.accepts(*target, value, budget),
                Some(Reference::Dangling(_)) => false,
                None => true,
            }
    }

    pub(super) fn count_accepting(&self, schemas: &[NodeId], value: &Value, budget: &mut Budget) -> usize {
        schemas.iter().filter(|schema| self.accepts(**schema, value, budget)).count()
    }

    fn object_holds(
        &self,
        rules: &ObjectRules,
        members: &Map<String, Value>,
        value: &Value,
        budget: &mut Budget,
    ) -> bool {
        rules.required.iter().all(|key| members.contains_key(key))
            && rules.broken_counts(members.len()).next().is_none()
            && (!rules.declares_members
                || members.iter().all(|(key, member)| {
                    let mut declared = rules.declared(key).peekable();
                    let additional = match declared.peek() {
                        None if !rules.has_unknown_pattern() => rules.additional,
                        _ => None,
                    };
                    declared.chain(additional).all(|schema| self.accepts(schema, member, budget))
                }))
            && rules
                .names
                .is_none_or(|schema| members.keys().all(|key| self.accepts(schema, &Value::from(key.as_str()), budget)))
            && rules.dependent_required.iter().all(|(key, required)| {
                !members.contains_key(key) || required.iter().all(|key| members.contains_key(key))
            })
            && rules
                .dependent_schemas
                .iter()
                .all(|(key, schema)| !members.contains_key(key) || self.accepts(*schema, value, budget))
    }

    fn array_holds(&self, rules: &ArrayRules, items: &[Value], budget: &mut Budget) -> bool {
        let items_hold = (rules.prefix.is_none() && rules.rest.is_none())
            || items
                .iter()
                .enumerate()
                .all(|(at, item)| rules.item(at).is_none_or(|schema| self.accepts(schema, item, budget)));
        items_hold && rules.broken(items).next().is_none() && self.contains_holds(rules, items, budget)
    }

    pub(super) fn contains_holds(&self, rules: &ArrayRules, items: &[Value], budget: &mut Budget) -> bool {
        rules.contains.as_ref().is_none_or(|contains| {
            let found = items.iter().filter(|item| self.accepts(contains.schema, item, budget)).count() as u64;
            found >= contains.min && contains.max.is_none_or(|max| found <= max)
        })
    }
}

/// How many values there are in a value.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<usize>(),
        _ => 1,
    }
}
