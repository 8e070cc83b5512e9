//! Tool arguments against the JSON Schema of the tool.
//!
//! Models are close but loose: `"42"` for a number, a single value for a list, `null` for what they leave out. So
//! arguments are first coerced towards the schema, then checked; what does not fit becomes an [`ArgumentsError`] whose
//! text tells the model which field is wrong, and how.
//!
//! A [`CompiledSchema`] is made once per tool; a [`SchemaCache`] keeps them by tool name.
//!
//! # What is checked
//!
//! Every validation keyword of drafts 7 and 2020-12 but `unevaluatedProperties` and `unevaluatedItems`, which pass;
//! `$ref` within the document by pointer, `$anchor` or `$id` (`$dynamicRef` is read as `$ref`). A reference to nothing
//! rejects the values at its place only. A `pattern` that the engine does not know (look-around, back-references,
//! Unicode classes) passes, and so does a `format` other than those of [`format`](self#formats).
//!
//! # Formats
//!
//! `date`, `time`, `date-time`, `duration`, `email`, `hostname`, `ipv4`, `ipv6`, `uri`, `url`, `uuid`.
//!
//! # Coercion
//!
//! - `null` in an optional property whose schema refuses it: left out.
//! - For a string: numbers, booleans and `null` become their text.
//! - For a number: text of one (`" 42 "`, `"1e3"`, `"0x10"`), booleans (1, 0), `null` (0). For an integer the same, and
//!   the fraction is dropped.
//! - For a boolean: `"true"`, `"false"`, 1, 0 (also as text), `null` (false). For `null`: `"null"`, `""`, 0, `false`.
//! - For a list: a single value becomes a list of one. For `const` and `enum`: the member that the value converts to.
//! - For alternatives: a value that one accepts stays; else the first whose conversion is accepted.

mod check;
mod coerce;
mod compile;
mod equal;
mod error;
mod explain;
mod format;
mod rules;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

pub use compile::CompiledSchema;
pub use error::{ArgumentsError, Issue, IssuePath, PathSegment};

use crate::message::ToolCall;

/// Coerces and checks the arguments of a call against the schema of its tool.
///
/// This compiles the schema; keep a [`CompiledSchema`] or a [`SchemaCache`] where calls repeat.
///
/// # Errors
///
/// When the arguments do not match the schema, even coerced.
///
/// # Example
///
/// ```
/// use pi_ai::schema::validate_arguments;
/// use serde_json::{Map, json};
///
/// let parameters = json!({
///     "type": "object",
///     "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
///     "required": ["path"],
/// });
/// let arguments = |value| serde_json::from_value::<Map<_, _>>(value);
///
/// let coerced = validate_arguments(&parameters, "read", &arguments(json!({"path": "a", "limit": "20"}))?)?;
/// assert_eq!(json!(coerced), json!({"path": "a", "limit": 20}));
///
/// let error = validate_arguments(&parameters, "read", &arguments(json!({"limit": 20}))?).unwrap_err();
/// assert!(error.to_string().contains("\n  - path: is required"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn validate_arguments(
    parameters: &Value,
    tool_name: &str,
    arguments: &Map<String, Value>,
) -> Result<Map<String, Value>, ArgumentsError> {
    CompiledSchema::new(parameters).validate(tool_name, arguments)
}

impl CompiledSchema {
    /// Coerces and checks the arguments of a call to the tool of this name.
    ///
    /// # Errors
    ///
    /// When the arguments do not match the schema, even coerced.
    pub fn validate(
        &self,
        tool_name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Map<String, Value>, ArgumentsError> {
        let mut value = Value::Object(arguments.clone());
        self.coerce(&mut value);
        if !value.is_object() {
            // Arguments are an object, whatever else the schema would rather have.
            value = Value::Object(arguments.clone());
        }
        let issues = self.issues(&value);
        match value {
            Value::Object(coerced) if issues.is_empty() => Ok(coerced),
            _ => Err(ArgumentsError::mismatch(tool_name, issues, arguments)),
        }
    }

    /// Coerces and checks the arguments of a call.
    ///
    /// # Errors
    ///
    /// When the text of the arguments could not be read, or they do not match the schema.
    pub fn validate_call(&self, call: &ToolCall) -> Result<Map<String, Value>, ArgumentsError> {
        match &call.arguments_error {
            Some(detail) => Err(ArgumentsError::malformed(&call.name, detail)),
            None => self.validate(&call.name, &call.arguments),
        }
    }
}

/// Compiled schemas by tool name.
///
/// A tool whose schema changed under the same name is compiled again, so the cache never has to be emptied.
#[derive(Clone, Debug, Default)]
pub struct SchemaCache {
    schemas: HashMap<String, (Value, Arc<CompiledSchema>)>,
}

impl SchemaCache {
    /// The compiled schema of a tool.
    pub fn get(&mut self, tool_name: &str, parameters: &Value) -> Arc<CompiledSchema> {
        if let Some((known, schema)) = self.schemas.get(tool_name)
            && known == parameters
        {
            return Arc::clone(schema);
        }
        let schema = Arc::new(CompiledSchema::new(parameters));
        self.schemas.insert(tool_name.to_owned(), (parameters.clone(), Arc::clone(&schema)));
        schema
    }
}
