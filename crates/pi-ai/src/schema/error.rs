//! What is wrong with the arguments of a call, for programs and for the model.

use std::fmt;

use serde_json::{Map, Value};
use thiserror::Error;

/// The arguments of a call cannot be used. Its text is written for the model that made the call.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ArgumentsError {
    /// The text that the model wrote was no JSON object.
    #[error("The arguments for the tool \"{tool_name}\" could not be read: {detail}")]
    Malformed {
        /// The tool that was called.
        tool_name: String,
        /// What was wrong with the text.
        detail: String,
    },
    /// The arguments do not match the schema of the tool.
    #[error(
        "The arguments for the tool \"{tool_name}\" do not match its schema:\n{}\n\nReceived arguments:\n{received}",
        list(issues)
    )]
    Mismatch {
        /// The tool that was called.
        tool_name: String,
        /// What does not match; at least one.
        issues: Vec<Issue>,
        /// The arguments as JSON, as they came; very long texts in them are shortened.
        received: String,
    },
}

impl ArgumentsError {
    pub(super) fn malformed(tool_name: &str, detail: &str) -> Self {
        Self::Malformed { tool_name: tool_name.to_owned(), detail: detail.to_owned() }
    }

    pub(super) fn mismatch(tool_name: &str, issues: Vec<Issue>, received: &Map<String, Value>) -> Self {
        Self::Mismatch { tool_name: tool_name.to_owned(), issues, received: show(received) }
    }

    /// What does not match the schema; empty when the text could not be read at all.
    pub fn issues(&self) -> &[Issue] {
        match self {
            Self::Malformed { .. } => &[],
            Self::Mismatch { issues, .. } => issues,
        }
    }
}

fn list(issues: &[Issue]) -> String {
    issues.iter().map(|issue| format!("  - {issue}")).collect::<Vec<_>>().join("\n")
}

/// The model wrote the arguments itself: the structure helps it, a whole file's content does not.
fn show(received: &Map<String, Value>) -> String {
    const TEXT_LIMIT: usize = 1024;
    const LIMIT: usize = 16 * 1024;
    let mut received = Value::Object(received.clone());
    shorten_texts(&mut received, TEXT_LIMIT);
    let mut shown = format!("{received:#}");
    if shown.len() > LIMIT {
        let left_out = shown.len() - shown.floor_char_boundary(LIMIT);
        shown.truncate(shown.floor_char_boundary(LIMIT));
        shown.push_str(&format!("\n[… {left_out} bytes left out]"));
    }
    shown
}

fn shorten_texts(value: &mut Value, limit: usize) {
    match value {
        Value::String(text) if text.len() > limit => {
            let kept = text.floor_char_boundary(limit);
            let left_out = text.len() - kept;
            text.truncate(kept);
            text.push_str(&format!("[… {left_out} bytes left out]"));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| shorten_texts(item, limit)),
        Value::Object(members) => members.values_mut().for_each(|member| shorten_texts(member, limit)),
        _ => {}
    }
}

/// One way in which a value does not match its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Issue {
    /// Where: a field that is missing is named as if it were there.
    pub path: IssuePath,
    /// The keyword of the schema that does not hold.
    pub keyword: &'static str,
    /// What was expected.
    pub message: String,
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// A place inside the arguments; written `edits.0.oldText`, and `root` for the arguments as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssuePath(pub Vec<PathSegment>);

/// One step of an [`IssuePath`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathSegment {
    /// Into an object, by key.
    Key(String),
    /// Into a list, by index.
    Index(usize),
}

impl fmt::Display for IssuePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("root");
        }
        for (at, segment) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(".")?;
            }
            match segment {
                PathSegment::Key(key) => f.write_str(key)?,
                PathSegment::Index(index) => write!(f, "{index}")?,
            }
        }
        Ok(())
    }
}
