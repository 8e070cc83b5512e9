//! Do tool arguments cost their length while they stream, and how long does checking them take?

use std::hint::black_box;

use pi_ai::json::ArgumentsBuilder;
use pi_ai::schema::CompiledSchema;
use serde_json::{Map, Value, json};

use xtask::Error;
use xtask::measure::{median, nanos_per};
use xtask::row::{Goal, Row};

use crate::{Finding, Size};

/// What a provider sends at a time.
const DELTA: usize = 20;

/// Validations per timed run.
const CALLS: usize = 1_000;

pub(crate) fn run(size: Size) -> Result<Vec<Finding>, Error> {
    let file = |megabytes: usize| {
        let line = "let answer = \"42\"; // the usual\n";
        json!({"path": "src/main.rs", "content": line.repeat(megabytes * 1024 * 1024 / line.len())})
    };
    let list = |megabytes: usize| {
        let rows = (0..megabytes * 16_000).map(|id| json!({"id": id, "name": "a row", "tags": [1.5, true, null]}));
        json!({"rows": rows.collect::<Vec<_>>()})
    };
    Ok(vec![
        Finding::Row(streamed("arguments.4_mb_text_in_20_byte_deltas", file, size)),
        Finding::Row(streamed("arguments.4_mb_list_in_20_byte_deltas", list, size)),
        Finding::Row(validated(size)),
    ])
}

/// What a byte costs in 4 MB of arguments, against one in 1 MB.
fn streamed(name: &str, arguments: fn(usize) -> Value, size: Size) -> Row {
    let (short, long) = (arguments(1).to_string(), arguments(4).to_string());
    let (mut short_nanos, mut long_nanos) = (Vec::new(), Vec::new());
    for _ in 0..size.pick(9, 51) {
        short_nanos.push(nanos_per(1, short.len(), || stream(&short)));
        long_nanos.push(nanos_per(1, long.len(), || stream(&long)));
    }
    Row::new(name, median(long_nanos), "ns/byte").floor(median(short_nanos)).goal(Goal::Ratio(1.5))
}

fn stream(text: &str) {
    let mut arguments = Map::new();
    let mut builder = ArgumentsBuilder::default();
    let mut rest = text;
    while !rest.is_empty() {
        let (delta, more) = rest.split_at(DELTA.min(rest.len()));
        builder.push(&mut arguments, delta);
        rest = more;
    }
    black_box(&arguments);
    let _ = black_box(builder.finish());
}

/// An edit of three places: as many arguments as a call usually has. The floor is the copy of the arguments, which the
/// transcript's own must not be touched for.
fn validated(size: Size) -> Row {
    let text = || json!({"type": "string"});
    let schema = CompiledSchema::new(&json!({
        "type": "object",
        "properties": {
            "path": text(),
            "edits": {"type": "array", "items": {
                "type": "object",
                "properties": {"oldText": text(), "newText": text()},
                "required": ["oldText", "newText"]
            }}
        },
        "required": ["path", "edits"]
    }));
    let edit = json!({"oldText": "let answer = 41;", "newText": "let answer = 42;"});
    let arguments =
        Map::from_iter([("path".to_owned(), json!("src/main.rs")), ("edits".to_owned(), json!([edit, edit, edit]))]);
    let runs = size.pick(31, 301);
    let micros = |work: &dyn Fn()| nanos_per(runs, CALLS, || (0..CALLS).for_each(|_| work())) / 1_000.0;
    let validate = micros(&|| drop(black_box(schema.validate("edit", black_box(&arguments)))));
    let copy = micros(&|| drop(black_box(black_box(&arguments).clone())));
    Row::new("arguments.validate_an_edit", validate, "µs").floor(copy).goal(Goal::Value(5.0))
}
