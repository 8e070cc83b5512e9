//! Lists that select tools.

/// The built-in tools that are active when nothing else is said.
pub const DEFAULT_TOOLS: [&str; 4] = ["read", "bash", "edit", "write"];

/// Whether an entry adds (`+name`) or removes (`-name`) a tool instead of naming one.
pub fn is_tool_modifier(entry: &str) -> bool {
    entry.starts_with(['+', '-'])
}

/// Applies the `+name` and `-name` entries in order; other entries are ignored.
pub fn apply_tool_modifiers(base: &[String], entries: &[String]) -> Vec<String> {
    let mut tools = base.to_vec();
    for entry in entries {
        if let Some(name) = entry.strip_prefix('+') {
            if !name.is_empty() && !tools.iter().any(|tool| tool == name) {
                tools.push(name.to_owned());
            }
        } else if let Some(name) = entry.strip_prefix('-') {
            tools.retain(|tool| tool != name);
        }
    }
    tools
}

/// What a `defaultTools` list selects: plain names replace [`DEFAULT_TOOLS`], then the modifiers apply.
pub fn resolve_default_tools(entries: &[String]) -> Vec<String> {
    let plain: Vec<String> = entries.iter().filter(|entry| !is_tool_modifier(entry)).cloned().collect();
    let base = if plain.is_empty() && !entries.is_empty() { DEFAULT_TOOLS.map(str::to_owned).to_vec() } else { plain };
    apply_tool_modifiers(&base, entries)
}

/// Checks a list from `--tools` or the SDK: plain names and patterns, or nothing but modifiers with exact names.
///
/// # Errors
/// Says what is wrong with the list.
pub fn check_tool_list(entries: &[String]) -> Result<(), String> {
    let modifiers = entries.iter().filter(|entry| is_tool_modifier(entry)).count();
    if modifiers == 0 {
        return Ok(());
    }
    if modifiers < entries.len() {
        return Err("a tool list is either plain names or only +name and -name entries, not both".into());
    }
    match entries.iter().find(|entry| entry.contains('*')) {
        Some(pattern) => Err(format!("+name and -name entries take exact tool names; {pattern} has a *")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|entry| (*entry).to_owned()).collect()
    }

    #[test]
    fn plain_names_replace_and_modifiers_edit() {
        assert_eq!(resolve_default_tools(&list(&["+grep", "-write"])), ["read", "bash", "edit", "grep"]);
        assert_eq!(resolve_default_tools(&list(&["ls", "+grep", "+ls"])), ["ls", "grep"]);
        assert!(resolve_default_tools(&[]).is_empty());
        assert!(check_tool_list(&list(&["read", "b*"])).is_ok());
        assert!(check_tool_list(&list(&["+read", "bash"])).is_err());
        assert!(check_tool_list(&list(&["+b*"])).is_err());
    }
}
