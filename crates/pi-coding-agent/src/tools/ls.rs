//! The `ls` tool: what stands in a directory.

use std::cmp::Ordering;

use async_trait::async_trait;
use pi_agent_core::{AgentTool, ReplayPolicy, ToolArguments, ToolContext, ToolError, ToolOutput};
use pi_ai::ToolDeclaration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::file_error::FileError;
use super::paths::{self, PathError};
use super::shown_name::shown_name;
use super::truncate::{Limits, MAX_BYTES, Truncation, format_size, truncate_head};
use crate::workspace::{Entry, EntryKind, Workspace};

/// Entries that are listed, unless the call says otherwise.
const DEFAULT_LIMIT: usize = 500;

/// The details of a listing in which something is missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LsDetails {
    /// The limit, when there were more entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_limit_reached: Option<usize>,
    /// What was cut, when the listing was too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Truncation>,
}

/// Why a directory could not be listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LsError {
    /// The path has no meaning.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The directory cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The entries of a directory, sorted and marked.
///
/// # Errors
///
/// When there is no such directory, or it cannot be read.
async fn list(workspace: &Workspace, path: &str) -> Result<Vec<String>, LsError> {
    let resolved = paths::to_read(path, workspace).await?;
    let entries = workspace.files().entries(&resolved).await;
    let mut entries = entries.map_err(|error| FileError { action: "list", path: path.to_owned(), error })?;
    entries.sort_by_cached_key(|entry| SortKey::of(&entry.name.to_string_lossy()));
    let shown = |entry: Entry| format!("{}{}", shown_name(&entry.name.to_string_lossy()), mark(entry.kind));
    Ok(entries.into_iter().map(shown).collect())
}

/// What stands behind a name to tell what it is.
fn mark(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Directory | EntryKind::LinkToDirectory => "/",
        EntryKind::Link => "@",
        EntryKind::Pipe => "|",
        EntryKind::Socket => "=",
        EntryKind::File | EntryKind::Other => "",
    }
}

/// The order in which people expect names: punctuation, digits, letters; case and accents decide last.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SortKey {
    base: Vec<(u8, u32)>,
    name: String,
}

impl SortKey {
    fn of(name: &str) -> Self {
        let base = name.to_lowercase().nfd().filter(|character| !is_combining_mark(*character)).map(rank).collect();
        Self { base, name: name.to_owned() }
    }
}

impl Ord for SortKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.base
            .cmp(&other.base)
            .then_with(|| self.name.to_lowercase().cmp(&other.name.to_lowercase()))
            .then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The class of a character and its place there, after the order of the Unicode collation.
fn rank(character: char) -> (u8, u32) {
    const PUNCTUATION: &str = "\t\n _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
    match PUNCTUATION.find(character) {
        Some(at) => (0, at as u32),
        None if character.is_alphanumeric() && character.is_numeric() => (2, character.into()),
        None if character.is_alphanumeric() => (3, character.into()),
        None => (1, character.into()),
    }
}

/// The `ls` tool.
#[derive(Debug)]
pub struct LsTool {
    workspace: Workspace,
    declaration: ToolDeclaration,
}

#[derive(Debug, Deserialize)]
struct Arguments {
    path: Option<String>,
    limit: Option<f64>,
}

impl LsTool {
    /// The tool for a workspace.
    #[must_use]
    pub fn new(workspace: Workspace) -> Self {
        let declaration = ToolDeclaration::new(
            "ls",
            "Lists a directory, hidden entries too, in alphabetical order. Behind the names, `/` marks directories, `@` \
             links to other things, `|` pipes and `=` sockets. At most 500 entries or 50KB are listed, whichever is \
             less.",
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The directory; without it, the working directory"},
                    "limit": {"type": "number", "description": "Most entries to list; 500 without it"}
                }
            }),
        );
        Self { workspace, declaration }
    }
}

#[async_trait]
impl AgentTool for LsTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn replay_policy(&self) -> ReplayPolicy {
        ReplayPolicy::Safe
    }

    async fn execute(&self, arguments: ToolArguments, _context: ToolContext) -> Result<ToolOutput, ToolError> {
        let Arguments { path, limit } = serde_json::from_value(Value::Object(arguments))?;
        let path = path.filter(|path| !path.is_empty()).unwrap_or_else(|| ".".to_owned());
        let names = list(&self.workspace, &path).await?;
        Ok(present(names, at_least_one(limit, DEFAULT_LIMIT)))
    }
}

/// A limit as models send it: fractions are dropped, and at least one thing is given.
pub(super) fn at_least_one(limit: Option<f64>, default: usize) -> usize {
    // Casting ends at the limits of the type.
    limit.map_or(default, |limit| (limit.floor() as usize).max(1))
}

fn present(mut names: Vec<String>, limit: usize) -> ToolOutput {
    if names.is_empty() {
        return ToolOutput::text("(empty directory)");
    }
    let mut details = LsDetails::default();
    let mut notices = Vec::new();
    if names.len() > limit {
        let left_out = names.len() - limit;
        names.truncate(limit);
        details.entry_limit_reached = Some(limit);
        notices.push(format!(
            "{limit} entries listed, {left_out} left out. For more use limit={}",
            limit.saturating_mul(2)
        ));
    }
    let truncation = truncate_head(&names.join("\n"), Limits::BYTES_ONLY);
    if truncation.truncated {
        notices.push(format!("Cut at {}", format_size(MAX_BYTES as u64)));
    }
    let mut text = truncation.content.clone();
    if truncation.truncated {
        details.truncation = Some(truncation);
    }
    if notices.is_empty() {
        return ToolOutput::text(text);
    }
    text.push_str(&format!("\n\n[{}]", notices.join(". ")));
    ToolOutput::text(text).details(details)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_where_people_look_for_them() {
        let mut names =
            vec!["b", "B", "a", "1.txt", "__init__.py", ".hid", "-x", "éa", "ez", "f", "a.b", "a_b", "ab", "漢"];
        names.sort_by_cached_key(|name| SortKey::of(name));
        assert_eq!(
            names,
            ["__init__.py", "-x", ".hid", "1.txt", "a", "a_b", "a.b", "ab", "B", "b", "éa", "ez", "f", "漢"]
        );
    }
}
