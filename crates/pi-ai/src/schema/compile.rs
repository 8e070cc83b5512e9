//! From JSON Schema text to rules: keywords are read, references resolved and expressions compiled once.

use std::collections::{HashMap, VecDeque};

use regex_lite::Regex;
use serde_json::{Map, Number, Value};

use super::format::Format;
use super::rules::{
    ArrayRules, Condition, Contains, Node, NodeId, NumberRules, ObjectRules, PatternProperty, Presence, Property,
    Reference, TextRules, Type, TypeForm, Types,
};

/// A JSON Schema that values can be coerced towards and checked against.
///
/// ```
/// use pi_ai::schema::CompiledSchema;
/// use serde_json::json;
///
/// let schema = CompiledSchema::new(&json!({"type": "array", "items": {"type": "integer", "minimum": 0}}));
/// assert!(schema.is_valid(&json!([1, 2])));
/// assert_eq!(schema.issues(&json!([1, -2]))[0].to_string(), "1: must be 0 or more");
///
/// let mut value = json!("3");
/// schema.coerce(&mut value);
/// assert_eq!(value, json!([3]));
/// ```
#[derive(Debug)]
pub struct CompiledSchema {
    nodes: Vec<Node>,
    root: NodeId,
}

impl CompiledSchema {
    /// Compiles a schema. Every JSON value is one; what is no schema in it accepts everything.
    pub fn new(schema: &Value) -> Self {
        let mut compiler =
            Compiler { document: schema, nodes: Vec::new(), known: HashMap::new(), pending: Vec::new(), names: None };
        let root = compiler.node(schema);
        compiler.compile_pending();
        Self { nodes: compiler.nodes, root }
    }

    pub(super) fn root(&self) -> NodeId {
        self.root
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }
}

struct Compiler<'a> {
    document: &'a Value,
    nodes: Vec<Node>,
    /// The nodes of the schemas that were met, by their address in the document: references may form circles.
    known: HashMap<*const Value, NodeId>,
    /// The nodes that have a place but no rules yet. Schemas are nested as deeply as others like.
    pending: Vec<(NodeId, &'a Value)>,
    /// The schemas with an `$id` or `$anchor`, by the reference that names them; made on the first that is not a pointer.
    names: Option<HashMap<String, &'a Value>>,
}

impl<'a> Compiler<'a> {
    /// The place of a schema among the nodes.
    fn node(&mut self, schema: &'a Value) -> NodeId {
        *self.known.entry(schema).or_insert_with(|| {
            let id = NodeId(self.nodes.len());
            self.nodes.push(Node::default());
            self.pending.push((id, schema));
            id
        })
    }

    fn compile_pending(&mut self) {
        while let Some((id, schema)) = self.pending.pop() {
            self.nodes[id.0] = match schema {
                Value::Bool(false) => Node { never: true, ..Node::default() },
                Value::Object(keywords) => self.keywords(keywords),
                _ => Node::default(),
            };
        }
    }

    fn keywords(&mut self, keywords: &'a Map<String, Value>) -> Node {
        let list = |name| keywords.get(name).and_then(Value::as_array);
        Node {
            never: false,
            types: keywords.get("type").and_then(types),
            variants: list("enum").cloned(),
            constant: keywords.get("const").cloned(),
            number: number_rules(keywords),
            text: text_rules(keywords),
            object: self.object_rules(keywords),
            array: self.array_rules(keywords),
            all_of: list("allOf").map(|schemas| self.nodes(schemas)),
            any_of: list("anyOf").map(|schemas| self.nodes(schemas)),
            one_of: list("oneOf").map(|schemas| self.nodes(schemas)),
            not: keywords.get("not").map(|schema| self.node(schema)),
            condition: keywords.get("if").map(|test| Condition {
                test: self.node(test),
                then: keywords.get("then").map(|schema| self.node(schema)),
                otherwise: keywords.get("else").map(|schema| self.node(schema)),
            }),
            reference: keywords.get("$ref").or(keywords.get("$dynamicRef")).and_then(Value::as_str).map(|reference| {
                match self.resolve(reference) {
                    Some(schema) => Reference::To(self.node(schema)),
                    None => Reference::Dangling(reference.to_owned()),
                }
            }),
        }
    }

    fn nodes(&mut self, schemas: &'a [Value]) -> Vec<NodeId> {
        schemas.iter().map(|schema| self.node(schema)).collect()
    }

    fn object_rules(&mut self, keywords: &'a Map<String, Value>) -> Option<Box<ObjectRules>> {
        let map = |name| keywords.get(name).and_then(Value::as_object);
        let required: Vec<String> = texts(keywords.get("required"));
        let properties = map("properties").into_iter().flatten().map(|(key, schema)| {
            let presence = if required.contains(key) { Presence::Required } else { Presence::Optional };
            (key.clone(), Property { schema: self.node(schema), presence })
        });
        let properties = properties.collect();
        let patterns = map("patternProperties")
            .into_iter()
            .flatten()
            .map(|(pattern, schema)| PatternProperty { pattern: Regex::new(pattern).ok(), schema: self.node(schema) });
        let patterns = patterns.collect();
        let mut rules = ObjectRules {
            properties,
            required,
            patterns,
            additional: keywords.get("additionalProperties").map(|schema| self.node(schema)),
            names: keywords.get("propertyNames").map(|schema| self.node(schema)),
            min_properties: count(keywords, "minProperties"),
            max_properties: count(keywords, "maxProperties"),
            dependent_required: Vec::new(),
            dependent_schemas: Vec::new(),
            declares_members: ["properties", "patternProperties", "additionalProperties"]
                .iter()
                .any(|name| keywords.contains_key(*name)),
        };
        // Draft 7 has both kinds under one name.
        let dependencies = ["dependentRequired", "dependentSchemas", "dependencies"];
        for (key, dependency) in dependencies.iter().filter_map(|name| map(name)).flatten() {
            match dependency {
                Value::Array(_) => rules.dependent_required.push((key.clone(), texts(Some(dependency)))),
                _ => rules.dependent_schemas.push((key.clone(), self.node(dependency))),
            }
        }
        let asks = rules.declares_members
            || !rules.required.is_empty()
            || rules.names.is_some()
            || rules.min_properties.is_some()
            || rules.max_properties.is_some()
            || !rules.dependent_required.is_empty()
            || !rules.dependent_schemas.is_empty();
        asks.then(|| Box::new(rules))
    }

    fn array_rules(&mut self, keywords: &'a Map<String, Value>) -> Option<Box<ArrayRules>> {
        // Draft 7 lists the first items in `items` and describes the rest in `additionalItems`.
        let (prefix, rest, rest_is_coerced) = match (keywords.get("items"), keywords.get("prefixItems")) {
            (Some(Value::Array(prefix)), _) => (Some(prefix), keywords.get("additionalItems"), false),
            (items, Some(Value::Array(prefix))) => (Some(prefix), items, true),
            (items, _) => (None, items, true),
        };
        let rules = ArrayRules {
            prefix: prefix.map(|schemas| self.nodes(schemas)),
            rest: rest.map(|schema| self.node(schema)),
            rest_is_coerced,
            min_items: count(keywords, "minItems"),
            max_items: count(keywords, "maxItems"),
            unique: keywords.get("uniqueItems") == Some(&Value::Bool(true)),
            contains: keywords.get("contains").map(|schema| Contains {
                schema: self.node(schema),
                min: count(keywords, "minContains").unwrap_or(1),
                max: count(keywords, "maxContains"),
            }),
        };
        let asks = rules.prefix.is_some()
            || rules.rest.is_some()
            || rules.min_items.is_some()
            || rules.max_items.is_some()
            || rules.unique
            || rules.contains.is_some();
        asks.then(|| Box::new(rules))
    }

    /// The schema that a reference names, by pointer, anchor or id.
    fn resolve(&mut self, reference: &str) -> Option<&'a Value> {
        let document = self.document;
        let (resource, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = match resource {
            "" => document,
            id => *self.names().get(id)?,
        };
        let fragment = percent_decoded(fragment)?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return resource.pointer(&fragment);
        }
        self.names().get(&format!("#{fragment}")).copied()
    }

    fn names(&mut self) -> &HashMap<String, &'a Value> {
        let document = self.document;
        self.names.get_or_insert_with(|| collect_names(document))
    }
}

/// The schemas with a name of their own; of several with the same name the outermost.
fn collect_names(document: &Value) -> HashMap<String, &Value> {
    let mut names = HashMap::new();
    let mut pending = VecDeque::from([document]);
    while let Some(schema) = pending.pop_front() {
        match schema {
            Value::Object(keywords) => {
                if let Some(id) = keywords.get("$id").and_then(Value::as_str) {
                    let id = id.trim_end_matches('#');
                    // References are mostly written relative to the base that ids have in common.
                    let last = id.rsplit('/').next().unwrap_or(id);
                    for name in [id, last] {
                        names.entry(name.to_owned()).or_insert(schema);
                    }
                }
                for keyword in ["$anchor", "$dynamicAnchor"] {
                    if let Some(anchor) = keywords.get(keyword).and_then(Value::as_str) {
                        names.entry(format!("#{anchor}")).or_insert(schema);
                    }
                }
                pending.extend(keywords.values());
            }
            Value::Array(items) => pending.extend(items),
            _ => {}
        }
    }
    names
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut decoded = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2)?;
        decoded.push(u8::from_str_radix(digits, 16).ok()?);
        decoded.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(decoded).ok()
}

fn types(value: &Value) -> Option<Types> {
    let (names, form) = match value {
        Value::String(name) => (vec![name.clone()], TypeForm::Name),
        Value::Array(_) => (texts(Some(value)), TypeForm::List),
        _ => return None,
    };
    Some(Types { known: names.iter().filter_map(|name| Type::from_name(name)).collect(), names, form })
}

fn number_rules(keywords: &Map<String, Value>) -> Option<Box<NumberRules>> {
    let number = |name| match keywords.get(name) {
        Some(Value::Number(number)) => Some(Number::clone(number)),
        _ => None,
    };
    let rules = NumberRules {
        minimum: number("minimum"),
        maximum: number("maximum"),
        exclusive_minimum: number("exclusiveMinimum"),
        exclusive_maximum: number("exclusiveMaximum"),
        multiple_of: number("multipleOf"),
    };
    let asks = rules.minimum.is_some()
        || rules.maximum.is_some()
        || rules.exclusive_minimum.is_some()
        || rules.exclusive_maximum.is_some()
        || rules.multiple_of.is_some();
    asks.then(|| Box::new(rules))
}

fn text_rules(keywords: &Map<String, Value>) -> Option<Box<TextRules>> {
    let text = |name| keywords.get(name).and_then(Value::as_str);
    let rules = TextRules {
        min_length: count(keywords, "minLength"),
        max_length: count(keywords, "maxLength"),
        pattern: text("pattern").map(|pattern| (pattern.to_owned(), Regex::new(pattern).ok())),
        format: text("format").and_then(|name| Some((name.to_owned(), Format::from_name(name)?))),
    };
    let asks =
        rules.min_length.is_some() || rules.max_length.is_some() || rules.pattern.is_some() || rules.format.is_some();
    asks.then(|| Box::new(rules))
}

/// A bound on a count; some writers have `2.0`.
fn count(keywords: &Map<String, Value>, name: &str) -> Option<u64> {
    let value = keywords.get(name)?;
    value.as_u64().or_else(|| value.as_f64().filter(|value| *value >= 0.0).map(|value| value.ceil() as u64))
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
