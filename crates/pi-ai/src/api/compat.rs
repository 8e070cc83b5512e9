//! Reading a model's compat switches. A switch of another JSON type than its own counts as not set.

use serde_json::{Map, Value};

use crate::model::Model;

/// The switches that a model sets.
#[derive(Clone, Copy, Debug)]
pub struct Switches<'a>(Option<&'a Map<String, Value>>);

impl<'a> Switches<'a> {
    /// The model's switches.
    pub fn of(model: &'a Model) -> Self {
        Self(model.compat.as_ref())
    }

    /// Whether something is on, if the model says so.
    pub fn flag(self, name: &str) -> Option<bool> {
        self.get(name)?.as_bool()
    }

    /// A name of something, if the model gives one.
    pub fn text(self, name: &str) -> Option<&'a str> {
        self.get(name)?.as_str()
    }

    /// Further settings, if the model has any.
    pub fn object(self, name: &str) -> Option<&'a Map<String, Value>> {
        self.get(name)?.as_object()
    }

    /// A list, if the model has one.
    pub fn list(self, name: &str) -> &'a [Value] {
        self.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// The value as it is.
    pub fn get(self, name: &str) -> Option<&'a Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }
}
