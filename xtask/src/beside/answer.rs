//! What came of a call, as far as it can be compared.

use serde::Deserialize;
use serde_json::Value;

/// What came of a call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Answer {
    pub(super) text: Option<String>,
    pub(super) details: Value,
    pub(super) structured: Value,
    pub(super) failed: bool,
    pub(super) error: Option<String>,
}

impl Answer {
    /// The first difference to ours, in words.
    pub(super) fn difference(&self, ours: &Self, tool: &str) -> Option<String> {
        match (&self.error, &ours.error) {
            (Some(_), Some(_)) => return None,
            (Some(error), None) => return Some(format!("fails there ({error}) and not here")),
            (None, Some(error)) => return Some(format!("fails here ({error}) and not there")),
            (None, None) => {}
        }
        if self.failed != ours.failed {
            return Some(format!("an error result: {} there, {} here", self.failed, ours.failed));
        }
        let (theirs, here) = (self.body(tool), ours.body(tool));
        if theirs != here {
            return Some(format!("the text is {theirs:?} there and {here:?} here"));
        }
        let parts = [
            ("details", self.plain_details(), ours.plain_details()),
            ("structured content", self.plain_structured(tool), ours.plain_structured(tool)),
        ];
        parts
            .into_iter()
            .find(|(_, theirs, here)| theirs != here)
            .map(|(what, theirs, here)| format!("the {what} are {theirs} there and {here} here"))
    }

    /// The text without what is wording; lines of searches in order.
    fn body(&self, tool: &str) -> Option<String> {
        // They only say that it was done.
        if matches!(tool, "edit" | "write") {
            return None;
        }
        let mut paragraphs: Vec<&str> = self.text.as_deref()?.split("\n\n").collect();
        while paragraphs.last().is_some_and(|last| {
            last.starts_with('[')
                || last.starts_with("Command ")
                || last.starts_with("\n[")
                || last.starts_with("\nCommand ")
        }) {
            paragraphs.pop();
        }
        let body = paragraphs.join("\n\n");
        // What stands for nothing is wording, too.
        if body.starts_with("No ") || body.starts_with('(') {
            return Some(String::new());
        }
        if !matches!(tool, "grep" | "find") {
            return Some(body);
        }
        let mut lines: Vec<&str> = body.split('\n').collect();
        lines.sort_unstable();
        Some(lines.join("\n"))
    }

    fn plain_details(&self) -> Value {
        let mut details = self.details.clone();
        if let Some(details) = details.as_object_mut() {
            if let Some(path) = details.get_mut("fullOutputPath") {
                *path = Value::from("a file");
            }
            // The text in it is the body, and was compared.
            if let Some(truncation) = details.get_mut("truncation").and_then(Value::as_object_mut) {
                truncation.shift_remove("content");
            }
        }
        details
    }

    fn plain_structured(&self, tool: &str) -> Value {
        let mut structured = self.structured.clone();
        match tool {
            "bash" => {
                if let Some(structured) = structured.as_object_mut() {
                    structured.shift_remove("wall_time_seconds");
                }
                structured
            }
            // The text again, with its wording.
            _ => Value::Null,
        }
    }
}
