//! What is wrong with a resource, and where.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// How much a problem with a resource matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// The user should know; work goes on without it.
    Warning,
    /// What the user asked for cannot be done; a non-interactive start ends here.
    Error,
}

/// A problem with a resource: what, in which file, on which line.
///
/// ```
/// use pi_coding_agent::resources::Diagnostic;
/// let problem = Diagnostic::warning("the description is missing").in_file("/skills/a/SKILL.md").on_line(2);
/// assert_eq!(problem.to_string(), "/skills/a/SKILL.md:2: the description is missing");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// How much it matters.
    #[serde(rename = "type")]
    pub severity: Severity,
    /// What is wrong and what to do, for people.
    pub message: String,
    /// The file that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "path")]
    pub file: Option<PathBuf>,
    /// The line in that file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Set when two resources have one name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collision: Option<Collision>,
}

/// Two resources with one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Collision {
    /// What they are.
    pub resource_type: ResourceKind,
    /// The name that both have.
    pub name: String,
    /// The one that is used.
    pub winner_path: PathBuf,
    /// The one that is left out.
    pub loser_path: PathBuf,
}

/// A kind of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ResourceKind {
    /// A skill.
    Skill,
    /// A prompt template.
    Prompt,
    /// A theme.
    Theme,
    /// An extension.
    Extension,
}

impl ResourceKind {
    fn noun(self) -> &'static str {
        match self {
            Self::Skill => "skill",
            Self::Prompt => "prompt template",
            Self::Theme => "theme",
            Self::Extension => "extension",
        }
    }
}

impl Diagnostic {
    /// Something that the user should know.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, message: message.into(), file: None, line: None, collision: None }
    }

    /// Something that keeps the user's wish from being fulfilled.
    pub fn error(message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, ..Self::warning(message) }
    }

    /// Two resources with one name; the first one is used.
    pub fn collision(kind: ResourceKind, name: &str, winner: &Path, loser: &Path) -> Self {
        let message = format!("a {} named \"{name}\" is already loaded from {}", kind.noun(), winner.display());
        Self {
            collision: Some(Collision {
                resource_type: kind,
                name: name.to_owned(),
                winner_path: winner.to_owned(),
                loser_path: loser.to_owned(),
            }),
            ..Self::warning(message).in_file(loser)
        }
    }

    /// Names the file.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Names the line, from 1.
    #[must_use]
    pub fn on_line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    /// Whether it keeps the user's wish from being fulfilled.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}: ", file.display())?,
            (Some(file), None) => write!(f, "{}: ", file.display())?,
            (None, _) => {}
        }
        f.write_str(&self.message)
    }
}
