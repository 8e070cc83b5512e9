//! Tool arguments, from the text that a model streams.

use serde_json::{Map, Value};

/// Collects the text of a call's arguments.
#[derive(Debug, Default)]
pub struct ArgumentsBuilder {
    text: String,
}

impl ArgumentsBuilder {
    /// Takes the next piece.
    pub fn push(&mut self, _target: &mut Map<String, Value>, piece: &str) {
        self.text.push_str(piece);
    }

    /// The arguments. No text at all means none.
    ///
    /// # Errors
    /// When the text is not a JSON object.
    pub fn finish(self) -> Result<Map<String, Value>, serde_json::Error> {
        match self.text.trim().is_empty() {
            true => Ok(Map::new()),
            false => serde_json::from_str(&self.text),
        }
    }
}
