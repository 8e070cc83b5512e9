//! A string that does not print.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A key or token. `Debug` and `Display` show dots, so that it cannot slip into a log; [`Secret::expose`] is the one
/// way to the text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The text itself. Use it only where it goes on the wire or into the credential file.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl From<String> for Secret {
    fn from(secret: String) -> Self {
        Self(secret)
    }
}

impl From<&str> for Secret {
    fn from(secret: &str) -> Self {
        Self(secret.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        let key = Secret::new("sk-123");
        assert!(!format!("{key:?} {key}").contains("sk-123"));
        assert_eq!(key.expose(), "sk-123");
    }
}
