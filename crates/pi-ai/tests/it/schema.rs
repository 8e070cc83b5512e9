//! Tool arguments against schemas: what models get wrong, hostile schemas, and another validator as the oracle.

use pi_ai::message::ToolCall;
use pi_ai::schema::{ArgumentsError, CompiledSchema, SchemaCache, validate_arguments};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

fn edit_tool() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "edits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}},
                    "required": ["oldText", "newText"],
                    "additionalProperties": false
                }
            }
        },
        "required": ["path", "edits"]
    })
}

#[test]
fn the_error_tells_the_model_which_fields_are_wrong_and_what_it_sent() {
    let arguments = object(json!({"path": ["a"], "edits": [{"oldText": "x", "new_text": "y"}]}));
    let error = validate_arguments(&edit_tool(), "edit", &arguments).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"The arguments for the tool "edit" do not match its schema:
  - path: expected string, got array
  - edits.0.newText: is required
  - edits.0.new_text: is not a known field

Received arguments:
{
  "path": [
    "a"
  ],
  "edits": [
    {
      "oldText": "x",
      "new_text": "y"
    }
  ]
}"#
    );
    let keywords: Vec<_> = error.issues().iter().map(|issue| issue.keyword).collect();
    assert_eq!(keywords, ["type", "required", "additionalProperties"]);
}

#[test]
fn a_rule_on_the_arguments_as_a_whole_is_reported_at_the_root() {
    let error = validate_arguments(&json!({"minProperties": 1}), "t", &Map::new()).unwrap_err();
    assert!(error.to_string().contains("\n  - root: needs 1 or more fields\n"), "{error}");
}

#[test]
fn a_whole_file_in_the_arguments_is_not_sent_back() {
    let arguments = object(json!({"content": "ü".repeat(1_000_000), "more": vec!["x".repeat(900); 100]}));
    let error = validate_arguments(&edit_tool(), "edit", &arguments).unwrap_err().to_string();
    assert!(error.len() < 20_000 && error.contains("\"content\": \"üü"), "{}", error.len());
}

#[test]
fn a_call_whose_text_could_not_be_read_says_so() {
    let call = ToolCall { name: "edit".into(), arguments_error: Some("no object".into()), ..ToolCall::default() };
    let error = CompiledSchema::new(&edit_tool()).validate_call(&call).unwrap_err();
    assert!(matches!(&error, ArgumentsError::Malformed { .. }));
    assert!(error.to_string().contains("\"edit\"") && error.to_string().contains("no object"));
}

#[test]
fn arguments_stay_an_object_where_the_schema_wants_something_else() {
    let arguments = object(json!({"a": 1}));
    let error = validate_arguments(&json!({"type": "array"}), "t", &arguments).unwrap_err();
    assert!(error.to_string().contains("root: expected array, got object"), "{error}");
    assert_eq!(validate_arguments(&json!({"items": {"type": "string"}}), "t", &arguments), Ok(arguments));
}

#[test]
fn the_cache_compiles_again_when_a_tool_changes() {
    let mut cache = SchemaCache::default();
    let first = cache.get("t", &json!({"required": ["a"]}));
    let same = cache.get("t", &json!({"required": ["a"]}));
    assert!(std::sync::Arc::ptr_eq(&first, &same));
    assert!(cache.get("t", &json!({"required": ["b"]})).is_valid(&json!({"b": 1})));
}

#[test]
fn nothing_but_what_must_change_is_changed() {
    let arguments = object(json!({"path": "5", "edits": [], "z": 1.5, "a": null, "big": 12345678901234567890u64}));
    let coerced = validate_arguments(&edit_tool(), "edit", &arguments).unwrap();
    assert_eq!(serde_json::to_string(&coerced).unwrap(), serde_json::to_string(&arguments).unwrap());
}

#[test]
fn whole_numbers_are_written_as_such_where_the_schema_wants_integers() {
    for kind in [json!("integer"), json!(["integer", "null"]), json!(["number", "integer"])] {
        let schema = CompiledSchema::new(&json!({"type": kind}));
        let mut value = json!(4.0);
        schema.coerce(&mut value);
        assert_eq!(value.to_string(), "4");
    }
}

#[test]
fn null_for_an_optional_field_is_left_out_behind_references_too() {
    let schema = json!({
        "properties": {
            "mode": {"$ref": "#/$defs/Mode"},
            "inner": {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}]},
            "kept": {"type": ["string", "null"]}
        },
        "$defs": {
            "Mode": {"enum": ["a", "b"]},
            "Inner": {"type": "object", "properties": {"text": {"type": "string"}}}
        }
    });
    let arguments = object(json!({"mode": null, "inner": {"text": null}, "kept": null}));
    let coerced = validate_arguments(&schema, "t", &arguments).unwrap();
    assert_eq!(Value::from(coerced), json!({"inner": {}, "kept": null}));
}

#[test]
fn references_are_found_by_pointer_anchor_and_id() {
    let schema = CompiledSchema::new(&json!({
        "$id": "https://example.com/tools/root.json",
        "properties": {
            "pointer": {"$ref": "#/$defs/with%20space~1slash"},
            "anchor": {"$ref": "#anchored"},
            "id": {"$ref": "tree.json"},
            "into": {"$ref": "tree.json#/properties/name"},
            "self": {"$ref": "root.json"}
        },
        "$defs": {
            "with space/slash": {"type": "integer"},
            "other": {"$anchor": "anchored", "type": "boolean"},
            "tree": {
                "$id": "https://example.com/tools/tree.json",
                "type": "object",
                "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "tree.json"}}},
                "required": ["name"]
            }
        }
    }));
    let paths = |value: Value| schema.issues(&value).iter().map(|issue| issue.path.to_string()).collect::<Vec<_>>();
    let tree = json!({"name": "a", "children": [{"name": "b", "children": [{"name": 1}]}, {}]});
    assert_eq!(
        paths(json!({"pointer": "x", "anchor": 1, "id": tree, "into": 5, "self": {"anchor": "x"}})),
        ["pointer", "anchor", "id.children.0.children.0.name", "id.children.1.name", "into", "self.anchor"]
    );
}

#[test]
fn alternatives_are_explained_by_the_one_that_was_meant() {
    let schema = CompiledSchema::new(&json!({
        "properties": {
            "tagged": {"oneOf": [
                {"properties": {"kind": {"const": "text"}, "text": {"type": "string"}}, "required": ["kind", "text"]},
                {"properties": {"kind": {"const": "image"}, "width": {"type": "integer"}}, "required": ["kind", "width"]}
            ]},
            "plain": {"anyOf": [
                {"type": "object", "properties": {"a": {}, "b": {"type": "object", "required": ["c"]}}},
                {"type": "null"}
            ]}
        }
    }));
    let issues = |value: Value| schema.issues(&value).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(issues(json!({"tagged": {"kind": "image"}})), ["tagged.width: is required"]);
    assert_eq!(issues(json!({"tagged": {"kind": "video"}})), [r#"tagged.kind: must be one of "text", "image""#]);
    assert_eq!(issues(json!({"plain": {"a": 1, "b": {}}})), ["plain.b.c: is required"]);
}

#[test]
fn patterns_that_the_engine_does_not_know_pass() {
    let schema = CompiledSchema::new(&json!({
        "properties": {"a": {"pattern": "^(?!x)"}, "b": {"pattern": "^\\p{L}+$"}, "c": {"pattern": "["}},
        "patternProperties": {"^(?=y)": {"type": "string"}},
        "additionalProperties": false
    }));
    assert!(schema.is_valid(&json!({"a": "x", "b": "1", "c": "", "anything": 1})));
}

#[test]
fn schemas_that_refer_to_themselves_end() {
    let alternatives = json!({"anyOf": [
        {"type": "object", "properties": {"l": {"$ref": "#/$defs/T"}, "r": {"$ref": "#/$defs/T"}}, "required": ["l"]},
        {"type": "object", "properties": {"l": {"$ref": "#/$defs/T"}, "r": {"$ref": "#/$defs/T"}}, "required": ["r"]},
        {"type": "array", "items": {"$ref": "#/$defs/T"}}
    ]});
    let mut deep = json!("leaf");
    for _ in 0..90 {
        deep = json!({"l": deep, "r": deep_sibling()});
    }
    let schemas = [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
        json!({"type": "array", "items": {"$ref": "#"}}),
        json!({"$ref": "#/$defs/T", "$defs": {"T": alternatives}}),
        json!({"properties": {"l": {"$ref": "#"}}, "anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
    ];
    for schema in schemas {
        let compiled = CompiledSchema::new(&schema);
        for value in [json!({}), json!("x"), json!([[[1]]]), deep.clone()] {
            let mut coerced = value.clone();
            compiled.coerce(&mut coerced);
            assert_eq!(compiled.is_valid(&value), compiled.issues(&value).is_empty(), "{schema}");
        }
    }
}

fn deep_sibling() -> Value {
    json!({"l": 1, "r": [null]})
}

#[test]
fn a_schema_nested_deeper_than_the_stack_is_no_crash() {
    let mut schema = json!({"type": "string"});
    for _ in 0..2_000 {
        schema = wrap("properties", wrap("a", schema));
    }
    let compiled = CompiledSchema::new(&schema);
    assert!(compiled.is_valid(&json!({"a": {"a": 1}})));
    let mut negated = json!({});
    for _ in 0..2_000 {
        negated = wrap("not", negated);
    }
    let error = CompiledSchema::new(&negated).validate("t", &Map::new()).unwrap_err();
    assert!(error.to_string().contains("root: is too complex"), "{error}");
    // The drop of such a value recurses as well; that is the owner's affair.
    std::mem::forget((schema, negated));
}

/// `json!` would copy the value, and that recurses.
fn wrap(key: &str, value: Value) -> Value {
    Value::Object([(key.to_owned(), value)].into_iter().collect())
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..8).prop_map(Value::from),
        select(vec![0.5, 1.0, 2.5, 4.0]).prop_map(Value::from),
        select(vec!["", "a", "aa", "abc", "1", "true", "é"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(select(vec!["a", "b", "c", "zz"]), inner, 0..4).prop_map(|members| {
                Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

/// One keyword, with schemas below it as deep as `schema` goes.
fn any_keyword(schema: impl Strategy<Value = Value> + Clone + 'static) -> impl Strategy<Value = (String, Value)> {
    let named = |name: &'static str| move |value: Value| (name.to_owned(), value);
    let types = select(vec!["null", "boolean", "integer", "number", "string", "array", "object"]);
    let key = select(vec!["a", "b", "c"]);
    let schemas = prop::collection::vec(schema.clone(), 1..4).prop_map(Value::from);
    let members = prop::collection::btree_map(key.clone(), schema.clone(), 1..3).prop_map(|members| json!(members));
    let keys = prop::collection::btree_set(key.clone(), 0..3).prop_map(|keys| json!(keys));
    prop_oneof![
        4 => types.clone().prop_map(|name| ("type".to_owned(), json!(name))),
        1 => prop::collection::btree_set(types, 1..3).prop_map(|names| ("type".to_owned(), json!(names))),
        1 => prop::collection::vec(any_value(), 1..4).prop_map(Value::from).prop_map(named("enum")),
        1 => any_value().prop_map(named("const")),
        2 => (select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), -2i64..6)
            .prop_map(|(name, bound)| (name.to_owned(), json!(bound))),
        1 => select(vec![json!(2), json!(0.5)]).prop_map(named("multipleOf")),
        2 => (select(vec!["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]), 0u64..4)
            .prop_map(|(name, bound)| (name.to_owned(), json!(bound))),
        1 => select(vec!["^a+$", "[0-9]", "b|^$"]).prop_map(|pattern| ("pattern".to_owned(), json!(pattern))),
        3 => members.clone().prop_map(named("properties")),
        1 => schema.clone().prop_map(|schema| ("patternProperties".to_owned(), json!({"^z": schema}))),
        1 => prop_oneof![Just(json!(false)), schema.clone()].prop_map(named("additionalProperties")),
        2 => keys.clone().prop_map(named("required")),
        1 => (key.clone(), keys).prop_map(|(key, keys)| ("dependentRequired".to_owned(), json!({key: keys}))),
        1 => members.prop_map(named("dependentSchemas")),
        1 => schema.clone().prop_map(named("propertyNames")),
        2 => schema.clone().prop_map(named("items")),
        1 => schemas.clone().prop_map(named("prefixItems")),
        1 => any::<bool>().prop_map(Value::from).prop_map(named("uniqueItems")),
        1 => schema.clone().prop_map(named("contains")),
        1 => (select(vec!["minContains", "maxContains"]), 0u64..3).prop_map(|(name, bound)| (name.to_owned(), json!(bound))),
        2 => (select(vec!["allOf", "anyOf", "oneOf"]), schemas).prop_map(|(name, schemas)| (name.to_owned(), schemas)),
        1 => (select(vec!["not", "if", "then", "else"]), schema).prop_map(|(name, schema)| (name.to_owned(), schema)),
        1 => select(vec!["#/$defs/A", "#/$defs/B"]).prop_map(|target| ("$ref".to_owned(), json!(target))),
    ]
}

fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!({})), Just(json!(true)), Just(json!(false))].boxed();
    let schema = (0..3).fold(leaf, |inner, _| {
        prop::collection::vec(any_keyword(inner), 0..4)
            .prop_map(|keywords| Value::Object(keywords.into_iter().collect()))
            .boxed()
    });
    (schema.clone(), schema).prop_map(|(mut schema, definition)| {
        schema["$defs"] = json!({"A": {"type": ["string", "integer"]}, "B": without_references(definition)});
        schema
    })
}

/// Circles of references are another test's affair: the oracle's answer to them is an overflow.
fn without_references(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(members) => {
            members.remove("$ref");
            members.values_mut().for_each(|member| *member = without_references(member.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_references(item.take())),
        _ => {}
    }
    schema
}

proptest! {
    #[test]
    fn the_check_agrees_with_another_validator(schema in any_schema(), values in prop::collection::vec(any_value(), 8)) {
        let oracle = jsonschema::draft202012::new(&schema).unwrap();
        let compiled = CompiledSchema::new(&schema);
        for value in values {
            prop_assert_eq!(compiled.is_valid(&value), oracle.is_valid(&value), "{} against {}", value, schema);
            prop_assert_eq!(compiled.issues(&value).is_empty(), oracle.is_valid(&value));
        }
    }

    #[test]
    fn what_is_accepted_is_valid(schema in any_schema(), value in any_value()) {
        if let Value::Object(arguments) = value
            && let Ok(accepted) = validate_arguments(&schema, "t", &arguments)
        {
            prop_assert!(CompiledSchema::new(&schema).is_valid(&Value::Object(accepted)));
        }
    }
}
