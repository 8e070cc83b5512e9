//! Shell commands that work on every system: POSIX tools, and git where it is there.

/// A word that the shell takes as it is.
pub(in crate::guide) fn quote(text: &str) -> String {
    let plain = !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ':' | ',' | '@' | '%'));
    if plain && !text.starts_with('-') { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Folders that hold what others made.
const SKIPPED: [&str; 10] =
    [".git", "node_modules", "target", "dist", "build", "__pycache__", ".venv", "venv", ".tox", "vendor"];

/// Prints the files below a folder, one per line: those that git knows or would add, else all but generated ones.
pub(super) fn list_files(folder: &str) -> String {
    let folder = if folder.is_empty() { "." } else { folder };
    let place = quote(folder);
    let skipped = SKIPPED.iter().map(|name| format!("-name {name}")).collect::<Vec<_>>().join(" -o ");
    format!(
        "{{ git -c core.quotePath=false ls-files -co --exclude-standard -- {place} 2>/dev/null | grep . || \
         find {place} \\( {skipped} \\) -prune -o -type f -print | sed 's|^\\./||'; }}"
    )
}

/// Prints what grep says about the files below a folder or about one file.
pub(super) fn grep(folder: &str, flags: &str, pattern: &str) -> String {
    format!(
        "{} | sort -u | tr '\\n' '\\0' | xargs -0 grep {flags} -e {} /dev/null 2>/dev/null",
        list_files(folder),
        quote(pattern)
    )
}

/// The same with bytes for characters, so that text in any encoding is text: for counting.
pub(super) fn grep_bytes(folder: &str, flags: &str, pattern: &str) -> String {
    grep(folder, flags, pattern).replacen("xargs -0 grep", "LC_ALL=C xargs -0 grep", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_shell_as_they_are() {
        assert_eq!(quote("src/main.rs"), "src/main.rs");
        for (text, quoted) in
            [("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$(rm)", "'$(rm)'"), ("-rf", "'-rf'")]
        {
            assert_eq!(quote(text), quoted);
        }
    }
}
