//! Why a value is not valid: every rule that does not hold, at the value it is about.

use serde_json::{Map, Value};

use super::check::Budget;
use super::compile::CompiledSchema;
use super::equal::equal;
use super::error::{Issue, IssuePath, PathSegment};
use super::rules::{ArrayRules, Broken, Node, NodeId, ObjectRules, Reference, type_name};

impl CompiledSchema {
    /// In which ways a value does not match; none when it is valid. Nothing is coerced.
    pub fn issues(&self, value: &Value) -> Vec<Issue> {
        let mut budget = Budget::for_value(value);
        if self.accepts(self.root(), value, &mut budget) && !budget.is_spent() {
            return Vec::new();
        }
        let mut explainer =
            Explainer { schema: self, path: Vec::new(), issues: Vec::new(), budget: Budget::for_value(value) };
        explainer.explain(self.root(), value);
        if explainer.issues.is_empty() {
            explainer.report("schema", "is too complex to be checked against its schema".to_owned());
        }
        explainer.issues
    }
}

struct Explainer<'a> {
    schema: &'a CompiledSchema,
    path: Vec<PathSegment>,
    issues: Vec<Issue>,
    budget: Budget,
}

/// The schemas of alternatives that tell themselves apart by a constant under the same key.
struct Tags<'a> {
    key: &'a str,
    constants: Vec<&'a Value>,
}

impl<'a> Explainer<'a> {
    fn explain(&mut self, id: NodeId, value: &Value) {
        let schema = self.schema;
        if schema.accepts(id, value, &mut self.budget) {
            return;
        }
        if self.budget.enter() {
            self.explain_node(schema.node(id), value);
            self.budget.leave();
        }
    }

    fn explain_node(&mut self, node: &'a Node, value: &Value) {
        if node.never {
            self.report("false", "is not allowed here".to_owned());
            return;
        }
        if let Some(types) = &node.types
            && !types.accepts(value)
        {
            self.report("type", format!("expected {}, got {}", types.names.join(" or "), type_name(value)));
            return;
        }
        if let Some(variants) = &node.variants
            && !variants.iter().any(|variant| equal(variant, value))
        {
            self.report("enum", format!("must be one of {}", list(variants.iter())));
        }
        if let Some(constant) = &node.constant
            && !equal(constant, value)
        {
            self.report("const", format!("must be {constant}"));
        }
        match value {
            Value::Number(number) => self.report_all(node.number.iter().flat_map(|rules| rules.broken(number))),
            Value::String(text) => self.report_all(node.text.iter().flat_map(|rules| rules.broken(text))),
            Value::Object(members) => {
                if let Some(rules) = &node.object {
                    self.explain_object(rules, members, value);
                }
            }
            Value::Array(items) => {
                if let Some(rules) = &node.array {
                    self.explain_array(rules, items);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
        for schema in node.all_of.iter().flatten() {
            self.explain(*schema, value);
        }
        if let Some(schemas) = &node.any_of
            && self.schema.count_accepting(schemas, value, &mut self.budget) == 0
        {
            self.explain_alternatives("anyOf", schemas, value);
        }
        if let Some(schemas) = &node.one_of {
            match self.schema.count_accepting(schemas, value, &mut self.budget) {
                0 => self.explain_alternatives("oneOf", schemas, value),
                1 => {}
                _ => self.report("oneOf", "matches more than one of the alternatives".to_owned()),
            }
        }
        if let Some(schema) = node.not
            && self.schema.accepts(schema, value, &mut self.budget)
        {
            self.report("not", "matches what the schema excludes".to_owned());
        }
        if let Some(condition) = &node.condition {
            let branch = match self.schema.accepts(condition.test, value, &mut self.budget) {
                true => condition.then,
                false => condition.otherwise,
            };
            if let Some(schema) = branch {
                self.explain(schema, value);
            }
        }
        match &node.reference {
            Some(Reference::To(target)) => self.explain(*target, value),
            Some(Reference::Dangling(reference)) => {
                self.report(
                    "$ref",
                    format!("cannot be checked: the schema refers to {reference}, which does not exist"),
                );
            }
            None => {}
        }
    }

    fn explain_object(&mut self, rules: &'a ObjectRules, members: &Map<String, Value>, value: &Value) {
        for key in rules.required.iter().filter(|key| !members.contains_key(*key)) {
            self.inside(PathSegment::Key(key.clone()), |this| this.report("required", "is required".to_owned()));
        }
        for (key, property) in &rules.properties {
            if let Some(member) = members.get(key) {
                self.inside(PathSegment::Key(key.clone()), |this| this.explain(property.schema, member));
            }
        }
        for (key, member) in members {
            self.inside(PathSegment::Key(key.clone()), |this| {
                let mut known = rules.properties.contains_key(key) || rules.has_unknown_pattern();
                for pattern in rules.patterns.iter().filter(|pattern| pattern.matches(key)) {
                    known = true;
                    this.explain(pattern.schema, member);
                }
                match rules.additional {
                    Some(schema) if !known && this.schema.node(schema).never => {
                        this.report("additionalProperties", "is not a known field".to_owned());
                    }
                    Some(schema) if !known => this.explain(schema, member),
                    _ => {}
                }
                if let Some(schema) = rules.names
                    && !this.schema.accepts(schema, &Value::from(key.as_str()), &mut this.budget)
                {
                    this.report("propertyNames", "is not an allowed field name".to_owned());
                }
            });
        }
        self.report_all(rules.broken_counts(members.len()));
        for (key, required) in rules.dependent_required.iter().filter(|(key, _)| members.contains_key(key)) {
            for missing in required.iter().filter(|key| !members.contains_key(*key)) {
                self.inside(PathSegment::Key(missing.clone()), |this| {
                    this.report("dependentRequired", format!("is required together with {key}"));
                });
            }
        }
        for (_, schema) in rules.dependent_schemas.iter().filter(|(key, _)| members.contains_key(key)) {
            self.explain(*schema, value);
        }
    }

    fn explain_array(&mut self, rules: &'a ArrayRules, items: &[Value]) {
        for (at, item) in items.iter().enumerate() {
            if let Some(schema) = rules.item(at) {
                self.inside(PathSegment::Index(at), |this| this.explain(schema, item));
            }
        }
        self.report_all(rules.broken(items));
        if let Some(contains) = &rules.contains
            && !self.schema.contains_holds(rules, items, &mut self.budget)
        {
            let most = contains.max.map(|max| format!(", and not more than {max}")).unwrap_or_default();
            self.report("contains", format!("needs {} matching items{most}", contains.min));
        }
    }

    /// None of the alternatives accepts the value: the one is explained that was most likely meant.
    fn explain_alternatives(&mut self, keyword: &'static str, schemas: &[NodeId], value: &Value) {
        if let Value::Object(members) = value
            && let Some(tags) = self.tags(schemas)
        {
            let tag = members.get(tags.key);
            match tags.constants.iter().position(|constant| tag.is_some_and(|tag| equal(constant, tag))) {
                Some(at) => self.explain(schemas[at], value),
                None => self.inside(PathSegment::Key(tags.key.to_owned()), |this| {
                    this.report(keyword, format!("must be one of {}", list(tags.constants.iter().copied())));
                }),
            }
            return;
        }
        // Of objects, the alternative that knows most of its fields; then the one whose first issue lies deepest.
        let before = self.issues.len();
        let mut best: Option<((usize, usize), Vec<Issue>)> = None;
        for schema in schemas {
            self.explain(*schema, value);
            let issues = self.issues.split_off(before);
            let Some(first) = issues.first() else { continue };
            let rank = (self.known_fields(*schema, value), pointer_length(&first.path));
            if best.as_ref().is_none_or(|(best, _)| rank > *best) {
                best = Some((rank, issues));
            }
        }
        match best {
            Some((_, issues)) => self.issues.extend(issues),
            None => self.report(keyword, "matches none of the alternatives".to_owned()),
        }
    }

    /// The first key under which every alternative has a constant of its own.
    fn tags(&self, schemas: &[NodeId]) -> Option<Tags<'a>> {
        let schema = self.schema;
        let first = self.target(*schemas.first()?).object.as_ref()?;
        first.properties.keys().find_map(|key| {
            let constants = schemas.iter().map(|id| {
                let property = self.target(*id).object.as_ref()?.properties.get(key)?;
                schema.node(property.schema).constant.as_ref().filter(|tag| !tag.is_object() && !tag.is_array())
            });
            let constants: Vec<&Value> = constants.collect::<Option<_>>()?;
            let distinct = constants.iter().enumerate().all(|(at, tag)| !constants[..at].iter().any(|t| equal(t, tag)));
            distinct.then_some(Tags { key, constants })
        })
    }

    fn known_fields(&self, id: NodeId, value: &Value) -> usize {
        match (value, &self.target(id).object) {
            (Value::Object(members), Some(rules)) => {
                members.keys().filter(|key| rules.properties.contains_key(*key)).count()
            }
            _ => 0,
        }
    }

    /// A schema, or the one that it is a reference to.
    fn target(&self, id: NodeId) -> &'a Node {
        let node = self.schema.node(id);
        match node.reference {
            Some(Reference::To(target)) => self.schema.node(target),
            _ => node,
        }
    }

    fn inside(&mut self, segment: PathSegment, explain: impl FnOnce(&mut Self)) {
        self.path.push(segment);
        explain(self);
        self.path.pop();
    }

    fn report(&mut self, keyword: &'static str, message: String) {
        self.issues.push(Issue { path: IssuePath(self.path.clone()), keyword, message });
    }

    fn report_all<'b>(&mut self, broken: impl Iterator<Item = Broken<'b>>) {
        for broken in broken {
            self.report(broken.keyword(), broken.to_string());
        }
    }
}

/// The length of a path written as a JSON pointer.
fn pointer_length(path: &IssuePath) -> usize {
    let segment_length = |segment: &PathSegment| match segment {
        PathSegment::Key(key) => key.chars().map(|c| if matches!(c, '~' | '/') { 2 } else { c.len_utf16() }).sum(),
        PathSegment::Index(index) => index.to_string().len(),
    };
    path.0.iter().map(|segment| 1 + segment_length(segment)).sum()
}

/// Values as JSON; a long list is cut.
fn list<'a>(values: impl ExactSizeIterator<Item = &'a Value>) -> String {
    const SHOWN: usize = 20;
    let left_out = values.len().saturating_sub(SHOWN);
    let mut listed: Vec<String> = values.take(SHOWN).map(Value::to_string).collect();
    if left_out > 0 {
        listed.push(format!("… and {left_out} more"));
    }
    listed.join(", ")
}
