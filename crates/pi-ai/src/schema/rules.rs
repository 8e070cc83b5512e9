//! A schema's rules, as they are after compiling: plain data, with references between nodes.

use std::fmt;

use indexmap::IndexMap;
use regex_lite::Regex;
use serde_json::{Number, Value};

use super::equal::all_different;
use super::format::Format;
use crate::json::number;

/// A schema within its [`CompiledSchema`](super::CompiledSchema).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeId(pub(super) usize);

/// One schema: what each of its keywords asks for.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Nothing is valid: the schema `false`.
    pub(super) never: bool,
    pub(super) types: Option<Types>,
    pub(super) variants: Option<Vec<Value>>,
    pub(super) constant: Option<Value>,
    pub(super) number: Option<Box<NumberRules>>,
    pub(super) text: Option<Box<TextRules>>,
    pub(super) object: Option<Box<ObjectRules>>,
    pub(super) array: Option<Box<ArrayRules>>,
    pub(super) all_of: Option<Vec<NodeId>>,
    pub(super) any_of: Option<Vec<NodeId>>,
    pub(super) one_of: Option<Vec<NodeId>>,
    pub(super) not: Option<NodeId>,
    pub(super) condition: Option<Condition>,
    pub(super) reference: Option<Reference>,
}

#[derive(Debug)]
pub(super) struct Condition {
    pub(super) test: NodeId,
    pub(super) then: Option<NodeId>,
    pub(super) otherwise: Option<NodeId>,
}

#[derive(Debug)]
pub(super) enum Reference {
    To(NodeId),
    /// It names nothing, so it rejects the values at its place.
    Dangling(String),
}

/// A JSON type, with `integer` beside `number` as JSON Schema has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Type {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::String,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    pub(super) fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Boolean => value.is_boolean(),
            Self::Integer => matches!(value, Value::Number(number) if is_integer(number)),
            Self::Number => value.is_number(),
            Self::String => value.is_string(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

/// `4.0` is an integer, as in JavaScript.
pub(super) fn is_integer(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|value| value.fract() == 0.0)
}

/// The name of a value's type in messages.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if is_integer(number) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The keyword `type`.
#[derive(Debug)]
pub(super) struct Types {
    /// Those that are JSON's, in the order of the schema. Others accept nothing.
    pub(super) known: Vec<Type>,
    /// All of them, for messages.
    pub(super) names: Vec<String>,
    /// Whether the schema gave a name rather than a list of names.
    pub(super) form: TypeForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypeForm {
    Name,
    List,
}

impl Types {
    pub(super) fn accepts(&self, value: &Value) -> bool {
        self.known.iter().any(|known| known.accepts(value))
    }

    /// The type, when it was given as a name.
    pub(super) fn single(&self) -> Option<Type> {
        match self.form {
            TypeForm::Name => self.known.first().copied(),
            TypeForm::List => None,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct NumberRules {
    pub(super) minimum: Option<Number>,
    pub(super) maximum: Option<Number>,
    pub(super) exclusive_minimum: Option<Number>,
    pub(super) exclusive_maximum: Option<Number>,
    pub(super) multiple_of: Option<Number>,
}

#[derive(Debug, Default)]
pub(super) struct TextRules {
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    /// The source, and the expression when the engine knows it.
    pub(super) pattern: Option<(String, Option<Regex>)>,
    pub(super) format: Option<(String, Format)>,
}

#[derive(Debug, Default)]
pub(super) struct ObjectRules {
    pub(super) properties: IndexMap<String, Property>,
    pub(super) required: Vec<String>,
    pub(super) patterns: Vec<PatternProperty>,
    pub(super) additional: Option<NodeId>,
    pub(super) names: Option<NodeId>,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) dependent_required: Vec<(String, Vec<String>)>,
    pub(super) dependent_schemas: Vec<(String, NodeId)>,
    /// Whether `properties`, `patternProperties` or `additionalProperties` says what members hold.
    pub(super) declares_members: bool,
}

#[derive(Debug)]
pub(super) struct Property {
    pub(super) schema: NodeId,
    pub(super) presence: Presence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Required,
    Optional,
}

#[derive(Debug)]
pub(super) struct PatternProperty {
    /// `None`: the engine does not know the expression, so it is taken to match no key.
    pub(super) pattern: Option<Regex>,
    pub(super) schema: NodeId,
}

impl PatternProperty {
    pub(super) fn matches(&self, key: &str) -> bool {
        self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(key))
    }
}

impl ObjectRules {
    /// Whether some pattern is unknown, so that nobody can say which keys it names.
    pub(super) fn has_unknown_pattern(&self) -> bool {
        self.patterns.iter().any(|property| property.pattern.is_none())
    }

    /// The schemas that say what the member of this key holds, without `additionalProperties`.
    pub(super) fn declared<'a>(&'a self, key: &'a str) -> impl Iterator<Item = NodeId> + 'a {
        let property = self.properties.get(key).map(|property| property.schema);
        property
            .into_iter()
            .chain(self.patterns.iter().filter(|property| property.matches(key)).map(|property| property.schema))
    }
}

#[derive(Debug, Default)]
pub(super) struct ArrayRules {
    /// The schemas of the first items, when there are any of their own.
    pub(super) prefix: Option<Vec<NodeId>>,
    pub(super) rest: Option<NodeId>,
    /// Whether items past the prefix are coerced: those of draft 7's `additionalItems` are not.
    pub(super) rest_is_coerced: bool,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) unique: bool,
    pub(super) contains: Option<Contains>,
}

#[derive(Debug)]
pub(super) struct Contains {
    pub(super) schema: NodeId,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

impl ArrayRules {
    /// The schema of the item at this index.
    pub(super) fn item(&self, index: usize) -> Option<NodeId> {
        match self.prefix.as_ref().and_then(|prefix| prefix.get(index)) {
            Some(schema) => Some(*schema),
            None => self.rest,
        }
    }

    /// The schema towards which the item at this index is coerced.
    pub(super) fn coerced_item(&self, index: usize) -> Option<NodeId> {
        let in_prefix = self.prefix.as_ref().is_some_and(|prefix| index < prefix.len());
        self.item(index).filter(|_| in_prefix || self.rest_is_coerced)
    }
}

/// A rule of a single keyword that does not hold; its text is what was expected.
#[derive(Debug)]
pub(super) enum Broken<'a> {
    Minimum(&'a Number),
    Maximum(&'a Number),
    ExclusiveMinimum(&'a Number),
    ExclusiveMaximum(&'a Number),
    MultipleOf(&'a Number),
    MinLength(u64),
    MaxLength(u64),
    Pattern(&'a str),
    Format(&'a str),
    MinProperties(u64),
    MaxProperties(u64),
    MinItems(u64),
    MaxItems(u64),
    UniqueItems,
}

impl Broken<'_> {
    pub(super) fn keyword(&self) -> &'static str {
        match self {
            Self::Minimum(_) => "minimum",
            Self::Maximum(_) => "maximum",
            Self::ExclusiveMinimum(_) => "exclusiveMinimum",
            Self::ExclusiveMaximum(_) => "exclusiveMaximum",
            Self::MultipleOf(_) => "multipleOf",
            Self::MinLength(_) => "minLength",
            Self::MaxLength(_) => "maxLength",
            Self::Pattern(_) => "pattern",
            Self::Format(_) => "format",
            Self::MinProperties(_) => "minProperties",
            Self::MaxProperties(_) => "maxProperties",
            Self::MinItems(_) => "minItems",
            Self::MaxItems(_) => "maxItems",
            Self::UniqueItems => "uniqueItems",
        }
    }
}

impl fmt::Display for Broken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minimum(bound) => write!(f, "must be {bound} or more"),
            Self::Maximum(bound) => write!(f, "must be {bound} or less"),
            Self::ExclusiveMinimum(bound) => write!(f, "must be more than {bound}"),
            Self::ExclusiveMaximum(bound) => write!(f, "must be less than {bound}"),
            Self::MultipleOf(factor) => write!(f, "must be a multiple of {factor}"),
            Self::MinLength(count) => write!(f, "needs {count} or more characters"),
            Self::MaxLength(count) => write!(f, "must not have more than {count} characters"),
            Self::Pattern(pattern) => write!(f, "must match the pattern {pattern}"),
            Self::Format(format) => write!(f, "must have the format {format}"),
            Self::MinProperties(count) => write!(f, "needs {count} or more fields"),
            Self::MaxProperties(count) => write!(f, "must not have more than {count} fields"),
            Self::MinItems(count) => write!(f, "needs {count} or more items"),
            Self::MaxItems(count) => write!(f, "must not have more than {count} items"),
            Self::UniqueItems => f.write_str("must not hold the same item twice"),
        }
    }
}

impl NumberRules {
    pub(super) fn broken<'a>(&'a self, value: &'a Number) -> impl Iterator<Item = Broken<'a>> {
        let bound = |bound: &'a Option<Number>, holds: fn(f64, f64) -> bool, broken: fn(&'a Number) -> Broken<'a>| {
            bound.as_ref().filter(|bound| !compare(value, bound, holds)).map(broken)
        };
        let multiple = self.multiple_of.as_ref().filter(|factor| !is_multiple(value, factor)).map(Broken::MultipleOf);
        bound(&self.minimum, |value, bound| value >= bound, Broken::Minimum)
            .into_iter()
            .chain(bound(&self.maximum, |value, bound| value <= bound, Broken::Maximum))
            .chain(bound(&self.exclusive_minimum, |value, bound| value > bound, Broken::ExclusiveMinimum))
            .chain(bound(&self.exclusive_maximum, |value, bound| value < bound, Broken::ExclusiveMaximum))
            .chain(multiple)
    }
}

/// Compares as integers where both are, so that large ids are not rounded.
fn compare(value: &Number, bound: &Number, holds: fn(f64, f64) -> bool) -> bool {
    match (value.as_i128(), bound.as_i128()) {
        // The difference of two 64-bit integers keeps its sign as a double.
        (Some(value), Some(bound)) => holds((value - bound) as f64, 0.0),
        _ => match (value.as_f64(), bound.as_f64()) {
            (Some(value), Some(bound)) => holds(value, bound),
            _ => true,
        },
    }
}

/// Whether a number is a multiple of another in decimal: 0.3 is one of 0.1.
fn is_multiple(value: &Number, factor: &Number) -> bool {
    let (Some((value, value_exponent)), Some((factor, factor_exponent))) = (decimal(value), decimal(factor)) else {
        return true;
    };
    if value == 0 || factor == 0 {
        return value == 0;
    }
    let shift = value_exponent - factor_exponent;
    if shift >= 0 {
        // value × 10^shift ≡ 0 (mod factor), without leaving 128 bits: the digits are at most 20.
        let mut remainder = value % factor;
        for _ in 0..shift {
            if remainder == 0 {
                break;
            }
            remainder = remainder * 10 % factor;
        }
        return remainder == 0;
    }
    // More places behind the point than the factor has: only if the factor's digits, moved, still divide.
    let power = u32::try_from(-shift).ok().and_then(|places| 10u128.checked_pow(places));
    power.and_then(|power| factor.checked_mul(power)).is_some_and(|factor| value % factor == 0)
}

/// A number's magnitude as digits and a power of ten.
fn decimal(number: &Number) -> Option<(u128, i64)> {
    if let Some(integer) = number.as_i128() {
        return Some((integer.unsigned_abs(), 0));
    }
    let text = number::to_text(number.as_f64()?.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}").parse().ok()?;
    Some((digits, exponent.parse::<i64>().ok()? - fraction.len() as i64))
}

impl TextRules {
    pub(super) fn broken<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Broken<'a>> {
        let counted = self.min_length.is_some() || self.max_length.is_some();
        let length = if counted { text.chars().count() as u64 } else { 0 };
        let pattern = self.pattern.as_ref().filter(|(_, pattern)| pattern.as_ref().is_some_and(|p| !p.is_match(text)));
        let format = self.format.as_ref().filter(|(_, format)| !format.accepts(text));
        least(self.min_length, length)
            .map(Broken::MinLength)
            .into_iter()
            .chain(most(self.max_length, length).map(Broken::MaxLength))
            .chain(pattern.map(|(source, _)| Broken::Pattern(source)))
            .chain(format.map(|(name, _)| Broken::Format(name)))
    }
}

impl ObjectRules {
    /// The rules on how many members there are.
    pub(super) fn broken_counts(&self, count: usize) -> impl Iterator<Item = Broken<'static>> {
        let count = count as u64;
        least(self.min_properties, count)
            .map(Broken::MinProperties)
            .into_iter()
            .chain(most(self.max_properties, count).map(Broken::MaxProperties))
    }
}

impl ArrayRules {
    /// The rules on the list as a whole.
    pub(super) fn broken(&self, items: &[Value]) -> impl Iterator<Item = Broken<'static>> {
        let count = items.len() as u64;
        let repeated = self.unique && !all_different(items);
        least(self.min_items, count)
            .map(Broken::MinItems)
            .into_iter()
            .chain(most(self.max_items, count).map(Broken::MaxItems))
            .chain(repeated.then_some(Broken::UniqueItems))
    }
}

fn least(bound: Option<u64>, count: u64) -> Option<u64> {
    bound.filter(|bound| count < *bound)
}

fn most(bound: Option<u64>, count: u64) -> Option<u64> {
    bound.filter(|bound| count > *bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_are_decimal() {
        let number = |text: &str| serde_json::from_str::<Number>(text).unwrap();
        for (value, factor) in [
            ("0.3", "0.1"),
            ("1.1", "0.01"),
            ("-4", "2"),
            ("0", "7"),
            ("1e300", "5"),
            ("1e-7", "1e-8"),
            ("4.0", "2"),
            ("12345678901234567890", "10"),
        ] {
            assert!(is_multiple(&number(value), &number(factor)), "{value} {factor}");
        }
        for (value, factor) in [
            ("0.35", "0.1"),
            ("7", "2"),
            ("1e308", "0.123456789"),
            ("1e-300", "1"),
            ("9007199254740993", "2"),
            ("1", "3e300"),
        ] {
            assert!(!is_multiple(&number(value), &number(factor)), "{value} {factor}");
        }
    }

    #[test]
    fn large_integers_are_compared_exactly() {
        let rules = NumberRules { maximum: Some(9007199254740992i64.into()), ..NumberRules::default() };
        assert_eq!(rules.broken(&9007199254740993i64.into()).count(), 1);
        assert_eq!(rules.broken(&9007199254740992i64.into()).count(), 0);
    }
}
