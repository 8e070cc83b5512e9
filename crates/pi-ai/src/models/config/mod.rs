//! `models.json`: providers and models of the user's own, and changes to the built-in ones.

mod merge;
mod schema;

use std::{
    io,
    path::{Path, PathBuf},
};

use indexmap::IndexMap;
use jsonc_parser::{CollectOptions, ParseOptions, ast, common::Ranged, parse_to_ast};
use serde_json::{Map, Number, Value};

pub(super) use merge::{apply_override, merge_compat, read_model};

use super::regular_file;

/// What a `models.json` says.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelsFile {
    pub(super) path: PathBuf,
    pub(super) providers: IndexMap<String, ProviderEntry>,
}

/// What it says of one provider. The file was checked: every field has its type.
#[derive(Clone, Debug, Default)]
pub(super) struct ProviderEntry {
    /// Where it stands.
    pub(super) line: usize,
    fields: Map<String, Value>,
}

/// A `models.json`, or a part of it, that is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file is there and cannot be read.
    #[error("{}: cannot be read: {reason}. Its providers and models are not used.", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The file is not JSON, or not of the right shape. None of it is used.
    #[error("{}: {}\nThe file is ignored until it is corrected; it was not changed.", path.display(), each(problems))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, in the file's order.
        problems: Vec<Problem>,
    },
    /// One provider lacks something. It is not used as configured; the rest of the file is.
    #[error("{}: {problem}\nThis entry is ignored until it is corrected.", path.display())]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// What is missing.
        problem: Problem,
    },
}

/// One thing that is wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// Where in the structure, such as `providers.local.models[0].id`.
    pub at: String,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { line, at, expected, found } = self;
        write!(f, "line {line}, {at}: expected {expected}, found {found}")
    }
}

fn each(problems: &[Problem]) -> String {
    match problems {
        [problem] => problem.to_string(),
        problems => problems.iter().map(|problem| format!("\n  {problem}")).collect(),
    }
}

impl ModelsFile {
    /// Reads a file; `None` when there is none.
    pub(super) fn load(path: &Path) -> Result<Option<Self>, ConfigError> {
        let unreadable = |reason: String| ConfigError::Unreadable { path: path.to_owned(), reason };
        let bytes = match regular_file::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error.to_string())),
        };
        let text = String::from_utf8(bytes)
            .map_err(|error| unreadable(format!("it is not UTF-8 text (byte {})", error.utf8_error().valid_up_to())))?;
        Self::parse(path, &text).map(Some)
    }

    /// Reads the text of a file.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let invalid = |problems| ConfigError::Invalid { path: path.to_owned(), problems };
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let syntax = |line, found: String| {
            invalid(vec![Problem {
                line,
                at: "the file".into(),
                expected: "JSON (comments are allowed)".into(),
                found,
            }])
        };
        let parsed = parse_to_ast(text, &CollectOptions::default(), &options)
            .map_err(|error| syntax(error.line_display(), lower_first(&error.kind().to_string())))?;
        let file = parsed.value.ok_or_else(|| syntax(1, "an empty file".into()))?;
        let problems = schema::check(text, &file);
        if !problems.is_empty() {
            return Err(invalid(problems));
        }
        let providers = file.as_object().and_then(|file| file.get_object("providers"));
        let entries = providers.into_iter().flat_map(|providers| &providers.properties).map(|property| {
            let fields = match value_of(&property.value) {
                Value::Object(fields) => fields,
                _ => Map::new(),
            };
            let line = schema::line_of(text, property.range().start);
            (property.name.as_str().to_owned(), ProviderEntry { line, fields })
        });
        Ok(Self { path: path.to_owned(), providers: entries.collect() })
    }
}

impl ProviderEntry {
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.fields.get(key)?.as_str()
    }

    pub(super) fn object(&self, key: &str) -> Option<&Map<String, Value>> {
        self.fields.get(key)?.as_object().filter(|object| !object.is_empty())
    }

    pub(super) fn texts(&self, key: &str) -> impl Iterator<Item = (&str, &str)> {
        texts(self.object(key))
    }

    pub(super) fn sends_bearer(&self) -> bool {
        self.fields.get("authHeader").and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn models(&self) -> impl Iterator<Item = &Map<String, Value>> {
        self.fields.get("models").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
    }

    pub(super) fn overrides(&self) -> impl Iterator<Item = (&str, &Map<String, Value>)> {
        let overrides = self.object("modelOverrides").into_iter().flatten();
        overrides.filter_map(|(id, fields)| Some((id.as_str(), fields.as_object()?)))
    }

    /// The APIs that it names, each with its place in the entry.
    pub(super) fn apis(&self) -> impl Iterator<Item = (String, &str)> {
        let own = self.fields.get("api").and_then(Value::as_str).map(|api| ("api".to_owned(), api));
        let models = self.fields.get("models").and_then(Value::as_array).into_iter().flatten().enumerate();
        own.into_iter().chain(
            models.filter_map(|(index, model)| Some((format!("models[{index}].api"), model.get("api")?.as_str()?))),
        )
    }

    /// Whether it says anything that has an effect.
    pub(super) fn has_effect(&self) -> bool {
        ["baseUrl", "headers", "compat", "modelOverrides", "models", "apiKey", "oauth", "authHeader"]
            .into_iter()
            .filter_map(|key| self.fields.get(key))
            .any(|value| match value {
                Value::Object(object) => !object.is_empty(),
                Value::Array(list) => !list.is_empty(),
                _ => true,
            })
    }
}

/// The entries of an object whose values are text.
pub(super) fn texts(object: Option<&Map<String, Value>>) -> impl Iterator<Item = (&str, &str)> {
    object.into_iter().flatten().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
}

fn value_of(value: &ast::Value<'_>) -> Value {
    match value {
        ast::Value::StringLit(text) => Value::String(text.value.to_string()),
        ast::Value::NumberLit(number) => number.value.parse::<Number>().map_or(Value::Null, Value::Number),
        ast::Value::BooleanLit(boolean) => Value::Bool(boolean.value),
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::Array(list) => Value::Array(list.elements.iter().map(value_of).collect()),
        ast::Value::Object(object) => Value::Object(
            object
                .properties
                .iter()
                .map(|property| (property.name.as_str().to_owned(), value_of(&property.value)))
                .collect(),
        ),
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}
