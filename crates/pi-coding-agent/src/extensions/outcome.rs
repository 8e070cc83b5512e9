//! What handlers answer.

use serde_json::Value;

use super::ExtensionError;

/// What handlers of one event answer.
pub trait Outcome: Send + Sized + 'static {
    /// Reads an answer that came as JSON. Nothing (null) is the answer that decides nothing.
    ///
    /// # Errors
    /// When the answer does not have the event's shape. A gate counts that as a refusal.
    fn from_json(answer: Value) -> Result<Self, ExtensionError>;
}

/// Nothing is asked, so that any answer will do.
impl Outcome for () {
    fn from_json(_answer: Value) -> Result<Self, ExtensionError> {
        Ok(())
    }
}

/// What a handler may return: nothing where the event has an answer that decides nothing, the event's outcome, what
/// converts into it, or a [`Result`] of one of these.
#[diagnostic::on_unimplemented(
    message = "a handler of this event cannot answer `{Self}`",
    label = "expected `()`, `{O}` or a `Result` of one of them",
    note = "a gate has to decide, so that `()` is no answer to it"
)]
pub trait IntoOutcome<O> {
    /// The outcome.
    ///
    /// # Errors
    /// Those of the handler.
    fn into_outcome(self) -> Result<O, ExtensionError>;
}

impl<O: Default> IntoOutcome<O> for () {
    fn into_outcome(self) -> Result<O, ExtensionError> {
        Ok(O::default())
    }
}

impl<O, T: IntoOutcome<O>> IntoOutcome<O> for Result<T, ExtensionError> {
    fn into_outcome(self) -> Result<O, ExtensionError> {
        self.and_then(T::into_outcome)
    }
}

/// Lets handlers answer an outcome as it is, and what converts into it.
macro_rules! answers {
    ($($outcome:ty $(, from $($shorter:ty),+)?;)+) => { $(
        impl $crate::extensions::IntoOutcome<$outcome> for $outcome {
            fn into_outcome(self) -> Result<$outcome, $crate::extensions::ExtensionError> {
                Ok(self)
            }
        }
        $($(
            impl $crate::extensions::IntoOutcome<$outcome> for $shorter {
                fn into_outcome(self) -> Result<$outcome, $crate::extensions::ExtensionError> {
                    Ok(self.into())
                }
            }
        )+)?
    )+ };
}
pub(super) use answers;

/// Reads a part of an answer. What is absent or null is `None`.
pub(super) fn part<T: serde::de::DeserializeOwned>(
    answer: &mut Value,
    name: &str,
) -> Result<Option<T>, ExtensionError> {
    let Value::Object(fields) = answer else {
        if answer.is_null() {
            return Ok(None);
        }
        return Err(ExtensionError::new(format!("the answer is not an object: {answer}")));
    };
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => serde_json::from_value(value)
            .map(Some)
            .map_err(|error| ExtensionError::new(format!("the answer's `{name}` cannot be used: {error}"))),
    }
}

/// Checks that an answer of a gate had no other parts: a misspelt one would let through what it was to stop.
pub(super) fn nothing_left(answer: &Value) -> Result<(), ExtensionError> {
    match answer.as_object().and_then(|fields| fields.keys().next()) {
        None => Ok(()),
        Some(name) => Err(ExtensionError::new(format!("the answer's `{name}` is no part of an answer to this event"))),
    }
}
