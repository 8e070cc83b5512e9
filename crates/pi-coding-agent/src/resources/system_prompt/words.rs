//! What the prompt says.

use indexmap::IndexMap;

use crate::resources::ContextFile;

pub(super) const PREAMBLE: &str = "You are pi, a coding agent that works in a person's terminal. \
You read and change files and run commands in their working folder to do what they ask.";

pub(super) const DOCS: &str = "Read about pi itself only when the person asks about pi (its settings, \
extensions, skills, prompt templates, themes, sessions or SDK):
- `pi --help` lists the command line, `pi --version --verbose` what this build can do.
- In a checkout of pi, README.md and the files under docs/ explain the rest; the crates' own documentation covers the SDK.";

/// The tools that have a line of their own.
pub(super) fn tools(declared: &[&str], snippets: &IndexMap<String, String>) -> String {
    let listed: Vec<String> = declared
        .iter()
        .filter_map(|tool| {
            snippets.get(*tool).filter(|snippet| !snippet.is_empty()).map(|text| format!("- {tool}: {text}"))
        })
        .collect();
    let list = if listed.is_empty() { "(none is described here)".to_owned() } else { listed.join("\n") };
    format!("{list}\n\nThere may be further tools besides these; their declarations say what they do.")
}

/// The rules, each said once: the shell's part, the tools' own, further ones, two that always hold.
pub(super) fn rules(declared: &[&str], by_tool: &IndexMap<String, Vec<String>>, further: &[String]) -> String {
    let own = declared.iter().filter_map(|tool| by_tool.get(*tool)).flatten().map(String::as_str);
    let mut rules: Vec<&str> = Vec::new();
    let all = shell_rule(declared).into_iter().chain(own).chain(further.iter().map(String::as_str)).chain(ALWAYS);
    for rule in all.map(str::trim).filter(|rule| !rule.is_empty()) {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules.iter().map(|rule| format!("- {rule}")).collect::<Vec<_>>().join("\n")
}

const ALWAYS: [&str; 2] = ["Keep answers short and to the point.", "Name files by their paths when you speak of them."];

/// Without tools of its own for looking around, the shell is the way to do it.
fn shell_rule(declared: &[&str]) -> Option<&'static str> {
    let has = |tool: &str| declared.contains(&tool);
    if has("grep") || has("find") || has("ls") {
        return None;
    }
    match (has("bash"), has("powershell")) {
        (true, true) => Some("List, search and find files with bash or powershell."),
        (true, false) => Some("List, search and find files with bash (ls, grep, rg, find)."),
        (false, true) => Some("List, search and find files with powershell."),
        (false, false) => None,
    }
}

/// The instructions that lie beside the code, each with its path.
pub(super) fn project_context(files: &[ContextFile]) -> String {
    let one = |file: &ContextFile| {
        let path = file.path.to_string_lossy().replace('"', "&quot;");
        format!(
            "<project_instructions path=\"{path}\">\n{}\n</project_instructions>",
            without_closing_tags(&file.content)
        )
    };
    let files: Vec<String> = files.iter().map(one).collect();
    format!("Instructions that lie beside the code; follow them while you work there.\n\n{}", files.join("\n\n"))
}

/// A file must not be able to end its own section and speak as the prompt.
fn without_closing_tags(text: &str) -> String {
    text.replace("</project_instructions", "&lt;/project_instructions")
        .replace("</project_context", "&lt;/project_context")
}
