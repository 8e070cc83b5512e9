//! Prompt templates: Markdown files that stand for a prompt, with places for arguments.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Diagnostic, Loaded, parse_frontmatter};
use crate::regular_file;

/// A prompt that `/name arguments` stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PromptTemplate {
    /// The file's name without its ending.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What its arguments are, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<String>,
    /// The text with its places for arguments.
    pub content: String,
    /// Where it is.
    pub file_path: PathBuf,
}

/// Longer first lines are cut when they serve as description, in UTF-16 units.
const LONGEST_DESCRIPTION: usize = 60;

/// Loads the Markdown files directly in a folder, sorted by name. A folder that is not there has none. Blocks.
pub fn load_templates_from_dir(folder: &Path) -> Loaded<PromptTemplate> {
    let mut loaded = Loaded::default();
    for file in template_files(folder) {
        let one = load_template(&file);
        loaded.items.extend(one.items);
        loaded.diagnostics.extend(one.diagnostics);
    }
    loaded
}

pub(crate) fn template_files(folder: &Path) -> Vec<PathBuf> {
    super::files_in(folder, "md")
}

/// Reads one template.
pub(crate) fn load_template(file: &Path) -> Loaded<PromptTemplate> {
    let mut loaded = Loaded::default();
    let content = match regular_file::read(file) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => {
            loaded
                .diagnostics
                .push(Diagnostic::warning(format!("the prompt template cannot be read: {error}")).in_file(file));
            return loaded;
        }
    };
    match parse_frontmatter(&content) {
        Ok(parsed) => {
            let given = parsed.text("description").filter(|text| !text.is_empty()).map(str::to_owned);
            loaded.items.push(PromptTemplate {
                name: file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default(),
                description: given.unwrap_or_else(|| first_line(&parsed.body)),
                argument_hint: parsed.text("argument-hint").filter(|hint| !hint.is_empty()).map(str::to_owned),
                content: parsed.body,
                file_path: file.to_owned(),
            });
        }
        Err(error) => {
            let problem = Diagnostic::warning(format!("the prompt template is not loaded: {error}")).in_file(file);
            loaded.diagnostics.push(problem.on_line(error.line.unwrap_or(1)));
        }
    }
    loaded
}

fn first_line(body: &str) -> String {
    let line = body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let mut units = 0;
    let end = line.char_indices().find(|(_, c)| {
        units += c.len_utf16();
        units > LONGEST_DESCRIPTION
    });
    match end {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line.to_owned(),
    }
}

/// Replaces `/name arguments` by the template's text. Text that is no such command stays as it is.
///
/// ```
/// use pi_coding_agent::resources::{PromptTemplate, expand_prompt_template};
/// let fix = PromptTemplate { name: "fix".into(), content: "Fix $1.".into(), ..Default::default() };
/// assert_eq!(expand_prompt_template("/fix \"the bug\"", &[fix]), "Fix the bug.");
/// ```
pub fn expand_prompt_template(text: &str, templates: &[PromptTemplate]) -> String {
    let Some(command) = text.strip_prefix('/') else { return text.to_owned() };
    let end = command.find(char::is_whitespace).unwrap_or(command.len());
    let (name, arguments) = command.split_at(end);
    match templates.iter().find(|template| !name.is_empty() && template.name == name) {
        Some(template) => substitute_arguments(&template.content, &parse_arguments(arguments)),
        None => text.to_owned(),
    }
}

/// Takes arguments apart. A quote counts only where an argument begins; inside, a backslash keeps that same quote; one
/// that is never closed is a character like any other.
pub fn parse_arguments(text: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let mut argument = String::new();
        if matches!(first, '"' | '\'')
            && let Some((quoted, after)) = quoted(rest, first)
        {
            argument = quoted;
            rest = after;
        }
        // Whatever follows without a blank belongs to it.
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        argument.push_str(&rest[..end]);
        arguments.push(argument);
        rest = rest[end..].trim_start();
    }
    arguments
}

fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inside = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        if c == '\\' && characters.peek().is_some_and(|(_, next)| *next == quote) {
            inside.push(quote);
            characters.next();
        } else if c == quote {
            return Some((inside, &text[at + quote.len_utf8()..]));
        } else {
            inside.push(c);
        }
    }
    None
}

/// Puts arguments into a template: `$1`, `$@`, `$ARGUMENTS`, `${1:-default}`, `${@:-default}`, `${ARGUMENTS:-default}`,
/// `${@:from}`, `${@:from:count}` (counted from 1). What is put in is not looked at again.
pub fn substitute_arguments(content: &str, arguments: &[String]) -> String {
    let mut result = String::with_capacity(content.len());
    let mut rest = content;
    while let Some(at) = rest.find('$') {
        result.push_str(&rest[..at]);
        let place = &rest[at..];
        match place_at(place) {
            Some((place, length)) => {
                result.push_str(&place.fill(arguments));
                rest = &rest[at + length..];
            }
            None => {
                result.push('$');
                rest = &rest[at + 1..];
            }
        }
    }
    result.push_str(rest);
    result
}

enum Which {
    All,
    /// From 1; 0 is none.
    Nth(usize),
}

enum PlaceForArguments<'t> {
    Value { which: Which, default: &'t str },
    Slice { from: usize, count: Option<usize> },
}

impl PlaceForArguments<'_> {
    fn fill(&self, arguments: &[String]) -> String {
        match self {
            Self::Value { which, default } => {
                let value = match which {
                    Which::All => arguments.join(" "),
                    Which::Nth(number) => {
                        number.checked_sub(1).and_then(|index| arguments.get(index)).cloned().unwrap_or_default()
                    }
                };
                if value.is_empty() { (*default).to_owned() } else { value }
            }
            Self::Slice { from, count } => {
                let rest = arguments.iter().skip(from.saturating_sub(1)).take(count.unwrap_or(usize::MAX));
                rest.map(String::as_str).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

/// The place that a text beginning with `$` begins with, and its length.
fn place_at(text: &str) -> Option<(PlaceForArguments<'_>, usize)> {
    let after = text.get(1..)?;
    if let Some(inside) = after.strip_prefix('{') {
        let end = inside.find('}')?;
        let length = end + 3;
        let body = &inside[..end];
        if let Some((target, default)) = body.split_once(":-") {
            return Some((PlaceForArguments::Value { which: which(target)?, default }, length));
        }
        let numbers = body.strip_prefix("@:")?;
        let (from, count) = match numbers.split_once(':') {
            Some((from, count)) => (number(from)?, Some(number(count)?)),
            None => (number(numbers)?, None),
        };
        return Some((PlaceForArguments::Slice { from, count }, length));
    }
    let name = ["ARGUMENTS", "@"].into_iter().find(|name| after.starts_with(name));
    let length = name.map_or_else(|| after.bytes().take_while(u8::is_ascii_digit).count(), str::len);
    let which = which(after.get(..length)?)?;
    Some((PlaceForArguments::Value { which, default: "" }, 1 + length))
}

fn which(target: &str) -> Option<Which> {
    match target {
        "@" | "ARGUMENTS" => Some(Which::All),
        digits => number(digits).map(Which::Nth),
    }
}

/// Digits only; a number beyond all bounds is as good as the largest.
fn number(digits: &str) -> Option<usize> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_take_the_place_of_what_is_missing_or_empty() {
        let fill = |content: &str, arguments: &[&str]| {
            substitute_arguments(content, &arguments.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(fill("${1:-a} ${2:-b}", &["", "x"]), "a x");
        assert_eq!(fill("${ARGUMENTS:-none}", &[]), "none");
        assert_eq!(fill("${@:-none}", &["", ""]), " ");
        assert_eq!(fill("$99999999999999999999 ${@:99999999999999999999}|", &["a"]), " |");
        assert_eq!(fill("ä$1ö${", &["ü"]), "äüö${");
    }
}
