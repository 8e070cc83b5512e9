//! Fuzz entry points: one function over bytes per reader of foreign text. Each panics when a law is broken.
//!
//! The test run drives them from a fixed seed for a short time; cargo-fuzz can call them as they are.

use serde_json::{Map, Value};

use crate::json::{ArgumentsBuilder, StreamingJson, from_str_repaired};
use crate::schema::CompiledSchema;

/// The arguments of a tool call: what they are in the end does not depend on where the text was cut, and finished
/// text is judged as the whole-text reader judges it.
///
/// The first byte chooses the cuts, the rest is the text.
pub fn arguments(data: &[u8]) {
    let (seed, text) = data.split_first().unwrap_or((&0, data));
    let text = String::from_utf8_lossy(text);
    let mut whole = StreamingJson::default();
    whole.push(&text);

    let mut arguments = Map::new();
    let mut builder = ArgumentsBuilder::default();
    for piece in cut(&text, *seed) {
        builder.push(&mut arguments, piece);
    }
    assert_eq!(builder.text(), text);
    let too_deep = whole.too_deep();
    let shown = match whole.into_value() {
        Some(Value::Object(shown)) => shown,
        _ => Map::new(),
    };
    assert_eq!(arguments, shown, "the cuts changed what is shown");

    match (builder.finish(), from_str_repaired::<Value>(&text)) {
        (Ok(finished), Ok(Value::Object(read))) => {
            assert_eq!(finished, read);
            assert_eq!(finished, shown, "what was shown is not what came of it");
        }
        (Ok(finished), _) => assert!(finished.is_empty() && text.chars().all(is_blank), "accepted what is no object"),
        (Err(_), read) => assert!(too_deep || !matches!(read, Ok(Value::Object(_))), "refused an object"),
    }
}

/// A schema and arguments, both from others: the check ends, its verdict and its reasons agree, and what it accepts
/// after coercion is valid.
///
/// The text goes on with the schema, and then the arguments, after `[{`; it is read as far as it goes.
pub fn schema(data: &[u8]) {
    let mut json = StreamingJson::default();
    json.push("[{");
    json.push(&String::from_utf8_lossy(data));
    let Some(Value::Array(parts)) = json.into_value() else { return };
    let [schema, value, ..] = parts.as_slice() else { return };
    let compiled = CompiledSchema::new(schema);
    assert_eq!(compiled.is_valid(value), compiled.issues(value).is_empty());
    if let Value::Object(arguments) = value {
        match compiled.validate("tool", arguments) {
            Ok(accepted) => assert!(compiled.is_valid(&Value::Object(accepted)), "accepted what is not valid"),
            Err(error) => assert!(!error.issues().is_empty(), "refused without a reason"),
        }
    }
}

fn is_blank(character: char) -> bool {
    character.is_whitespace() || character == '\u{feff}'
}

/// Pieces of 1 to `seed` characters, in lengths that vary.
fn cut(text: &str, seed: u8) -> impl Iterator<Item = &str> {
    let mut state = u32::from(seed);
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let length = 1 + (state >> 16) as usize % usize::from(seed).max(1);
        let at = rest.char_indices().nth(length).map_or(rest.len(), |(at, _)| at);
        let (piece, more) = rest.split_at(at);
        rest = more;
        Some(piece)
    })
}
