//! Facts at the head of a Markdown file: YAML between two lines of three hyphens.

use serde_json::{Map, Value};

/// A Markdown file in its two parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Frontmatter {
    /// The facts; most often an object. An empty object when there are none.
    pub facts: Value,
    /// The text below, trimmed when there are facts; line ends are LF.
    pub body: String,
}

/// The facts are not YAML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the facts between the --- lines are not YAML: {message}")]
pub struct InvalidFrontmatter {
    /// The line in the file, from 1, where that is known.
    pub line: Option<usize>,
    /// What is wrong there.
    pub message: String,
}

impl Frontmatter {
    /// A fact that is a text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.facts.get(key)?.as_str()
    }
}

/// Takes a Markdown file apart.
///
/// ```
/// let file = pi_coding_agent::resources::parse_frontmatter("---\nname: a\n---\nbody\n")?;
/// assert_eq!((file.text("name"), file.body.as_str()), (Some("a"), "body"));
/// # Ok::<(), pi_coding_agent::resources::InvalidFrontmatter>(())
/// ```
///
/// # Errors
/// When the facts are not YAML.
pub fn parse_frontmatter(content: &str) -> Result<Frontmatter, InvalidFrontmatter> {
    let content = content.strip_prefix('\u{feff}').unwrap_or(content).replace("\r\n", "\n").replace('\r', "\n");
    let (yaml, body) = split(&content);
    if yaml.is_empty() {
        return Ok(Frontmatter { facts: Value::Object(Map::new()), body: body.to_owned() });
    }
    let facts = read_yaml(yaml)?;
    Ok(Frontmatter { facts, body: body.to_owned() })
}

/// The YAML begins after the first line's hyphens and one more character, and ends at the next line that begins with
/// hyphens; what stands behind those hyphens belongs to the body.
fn split(content: &str) -> (&str, &str) {
    let Some(rest) = content.strip_prefix("---") else { return ("", content) };
    let Some(end) = rest.find("\n---") else { return ("", content) };
    let mut yaml = rest.get(..end).unwrap_or_default().chars();
    yaml.next();
    (yaml.as_str(), rest.get(end + 4..).unwrap_or_default().trim())
}

fn read_yaml(yaml: &str) -> Result<Value, InvalidFrontmatter> {
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        strict_booleans: true,
    };
    match serde_saphyr::from_str_with_options::<Value>(yaml, options) {
        Ok(Value::Null) => Ok(Value::Object(Map::new())),
        Ok(facts) => Ok(facts),
        Err(error) => Err(InvalidFrontmatter {
            // The hyphens are the file's first line.
            line: error.location().and_then(|location| usize::try_from(location.line()).ok()).map(|line| line + 1),
            message: first_line(&error.without_snippet().to_string()),
        }),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
