//! Which tools the model is offered.
//!
//! Order of application: the usual set, the `defaultTools` setting, `--tools`, `--no-builtin-tools` or `--no-tools`,
//! `--exclude-tools`.

use std::collections::HashSet;

/// The built-in tools that are offered when nothing else is said.
pub const USUAL_TOOLS: [&str; 4] = ["read", "bash", "edit", "write"];

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSelection {
    /// The `defaultTools` setting, the user's first.
    pub default_tools: Vec<ToolList>,
    /// `--tools`.
    pub only: Option<ToolList>,
    /// `--no-tools`, `--no-builtin-tools`.
    pub base: ToolBase,
    /// `--exclude-tools`: names, or patterns with `*`.
    pub exclude: Vec<String>,
}

/// What a selection starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolBase {
    /// The usual built-in tools and every tool that the application adds.
    #[default]
    Usual,
    /// Only the tools that the application adds.
    NoBuiltins,
    /// None.
    Nothing,
}

/// A list of tools, as settings and `--tools` write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolList {
    /// Exactly these: names, or patterns with `*`.
    Exactly(Vec<String>),
    /// The list before it, changed.
    Changes {
        /// `+name`.
        add: Vec<String>,
        /// `-name`.
        remove: Vec<String>,
    },
}

/// Plain names and changes in one list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the tool list mixes `{plain}` with `{change}`: give either plain names, or only names with + or - in front of them"
)]
pub struct MixedToolList {
    /// A plain name of the list.
    pub plain: String,
    /// A change of the list.
    pub change: String,
}

/// A tool that can be offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvailableTool<'a> {
    /// Its name.
    pub name: &'a str,
    /// Who brings it.
    pub origin: ToolOrigin,
}

/// Who brings a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolOrigin {
    /// This crate.
    Builtin,
    /// The application or an extension.
    Custom,
}

impl ToolList {
    /// Reads a list.
    ///
    /// # Errors
    /// When it mixes plain names with changes.
    pub fn parse(words: &[String]) -> Result<Self, MixedToolList> {
        let is_change = |word: &&String| word.starts_with(['+', '-']);
        let change = words.iter().find(is_change);
        let plain = words.iter().find(|word| !is_change(word));
        match (plain, change) {
            (Some(plain), Some(change)) => Err(MixedToolList { plain: plain.clone(), change: change.clone() }),
            (_, None) => Ok(Self::Exactly(words.to_vec())),
            (None, Some(_)) => {
                let with = |sign| words.iter().filter_map(move |word| word.strip_prefix(sign)).map(str::to_owned);
                Ok(Self::Changes { add: with('+').collect(), remove: with('-').collect() })
            }
        }
    }
}

impl ToolSelection {
    /// Whether nothing was said about this run: then a session that goes on keeps the tools that it had.
    pub fn leaves_the_choice_to_the_session(&self) -> bool {
        self.base == ToolBase::Usual && self.only.is_none()
    }

    /// Whether a tool is not offered, whatever else is said.
    pub fn excludes(&self, name: &str) -> bool {
        matches_any(&self.exclude, name)
    }

    /// The names that are offered, in the order in which they are available.
    pub fn select(&self, available: &[AvailableTool<'_>]) -> Vec<String> {
        let custom = |tool: &&AvailableTool<'_>| tool.origin == ToolOrigin::Custom;
        let mut active: HashSet<&str> = match self.base {
            ToolBase::Usual => available
                .iter()
                .filter(|tool| custom(tool) || USUAL_TOOLS.contains(&tool.name))
                .map(|tool| tool.name)
                .collect(),
            ToolBase::NoBuiltins => available.iter().filter(custom).map(|tool| tool.name).collect(),
            ToolBase::Nothing => HashSet::new(),
        };
        if self.base == ToolBase::Usual {
            for list in &self.default_tools {
                match list {
                    // Plain names choose among the built-in tools; the application's own stay.
                    ToolList::Exactly(names) => active.retain(|name| {
                        available.iter().any(|tool| tool.name == *name && custom(&tool)) || matches_any(names, name)
                    }),
                    ToolList::Changes { .. } => {}
                }
                add_and_remove(&mut active, list, available);
            }
        }
        match &self.only {
            Some(ToolList::Exactly(names)) if self.base != ToolBase::Nothing => {
                let allowed = |tool: &&AvailableTool<'_>| self.base == ToolBase::Usual || custom(tool);
                active = available
                    .iter()
                    .filter(allowed)
                    .map(|tool| tool.name)
                    .filter(|name| matches_any(names, name))
                    .collect();
            }
            Some(list) => add_and_remove(&mut active, list, available),
            None => {}
        }
        available
            .iter()
            .map(|tool| tool.name)
            .filter(|name| active.contains(name) && !self.excludes(name))
            .map(str::to_owned)
            .collect()
    }
}

fn add_and_remove<'a>(active: &mut HashSet<&'a str>, list: &ToolList, available: &[AvailableTool<'a>]) {
    let named = |names: &[String]| {
        let names = names.to_vec();
        available.iter().map(|tool| tool.name).filter(move |name| matches_any(&names, name))
    };
    match list {
        ToolList::Exactly(names) => active.extend(named(names)),
        ToolList::Changes { add, remove } => {
            active.extend(named(add));
            let removed: HashSet<&str> = named(remove).collect();
            active.retain(|name| !removed.contains(name));
        }
    }
}

fn matches_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name))
}

/// Whether a name fits a pattern in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|head| name.strip_prefix(head)) else { return false };
    let Some(tail) = parts.next_back() else { return rest.is_empty() };
    // The leftmost place for each part leaves the most room for the next one.
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AVAILABLE: [AvailableTool<'static>; 8] = {
        const fn builtin(name: &'static str) -> AvailableTool<'static> {
            AvailableTool { name, origin: ToolOrigin::Builtin }
        }
        [
            builtin("read"),
            builtin("bash"),
            builtin("edit"),
            builtin("write"),
            builtin("grep"),
            builtin("find"),
            builtin("ls"),
            AvailableTool { name: "deploy", origin: ToolOrigin::Custom },
        ]
    };

    fn list(words: &[&str]) -> ToolList {
        ToolList::parse(&words.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
    }

    fn check(selection: ToolSelection, expected: &[&str]) {
        assert_eq!(selection.select(&AVAILABLE), expected);
    }

    #[test]
    fn the_usual_tools_and_the_applications_own_are_offered() {
        check(ToolSelection::default(), &["read", "bash", "edit", "write", "deploy"]);
    }

    #[test]
    fn a_setting_of_plain_names_replaces_the_built_in_ones_only() {
        let settings = |lists: &[&[&str]]| ToolSelection {
            default_tools: lists.iter().map(|words| list(words)).collect(),
            ..ToolSelection::default()
        };
        check(settings(&[&["read", "grep"]]), &["read", "grep", "deploy"]);
        check(settings(&[&[]]), &["deploy"]);
        check(settings(&[&["read"], &["+ls", "-deploy"]]), &["read", "ls"]);
    }

    #[test]
    fn the_command_line_chooses_exactly_or_changes_the_usual_set() {
        let only = |words: &[&str]| ToolSelection { only: Some(list(words)), ..ToolSelection::default() };
        check(only(&["read", "dep*"]), &["read", "deploy"]);
        check(only(&["+grep", "-bash"]), &["read", "edit", "write", "grep", "deploy"]);
    }

    #[test]
    fn switches_and_exclusions_come_last() {
        let base = |base| ToolSelection { base, ..ToolSelection::default() };
        check(base(ToolBase::NoBuiltins), &["deploy"]);
        check(base(ToolBase::Nothing), &[]);
        let exclude = ToolSelection { exclude: vec!["*d*".into()], ..ToolSelection::default() };
        check(exclude, &["bash", "write"]);
    }

    #[test]
    fn names_and_changes_do_not_mix() {
        let words = ["read".to_owned(), "+grep".to_owned()];
        assert!(ToolList::parse(&words).unwrap_err().to_string().contains("read"));
    }
}
