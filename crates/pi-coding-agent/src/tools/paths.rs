//! What a path that a model writes means.
//!
//! Models copy paths from mentions (`@src/x`), from people (`~/x`), from links (`file:///x`) and from
//! screens that show other spaces, quotes and accents than the file system holds. [`lexical`] is the part
//! that needs no files; [`to_read`] and [`to_write`] also look whether the path as written exists, which
//! then wins.

use std::path::{Component, Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

use crate::workspace::Workspace;

/// A path that has no meaning here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// `~` without a home directory.
    #[error("{0:?} starts with `~`, but there is no home directory here. Give the whole path.")]
    NoHome(String),
    /// A `file://` URL that names no local file.
    #[error("{0:?} is not a URL of a local file.")]
    BadUrl(String),
}

/// Resolves a path as written against `cwd`: leading `@` gone, `~` and `file:` URLs expanded, Unicode spaces
/// plain, `.` and `..` worked out without looking at files.
///
/// # Errors
///
/// When it starts with `~` and there is no `home`, or is a URL of no local file.
///
/// ```
/// use std::path::Path;
/// use pi_coding_agent::tools::paths::lexical;
///
/// let resolved = lexical("@src/../README.md", Path::new("/project"), None)?;
/// assert_eq!(resolved, Path::new("/project/README.md"));
/// # Ok::<(), pi_coding_agent::tools::paths::PathError>(())
/// ```
pub fn lexical(written: &str, cwd: &Path, home: Option<&Path>) -> Result<PathBuf, PathError> {
    let spaced: String = written.chars().map(plain_space).collect();
    absolute(spaced.strip_prefix('@').unwrap_or(&spaced), cwd, home)
}

/// The file that a path to read means: as written, as [`lexical`] has it, or the one file whose name differs
/// only in spaces, quotes and the composition of accents. When none exists, what [`lexical`] has.
///
/// # Errors
///
/// As [`lexical`].
pub async fn to_read(written: &str, workspace: &Workspace) -> Result<PathBuf, PathError> {
    let resolved = to_write(written, workspace).await?;
    if exists(workspace, &resolved).await {
        return Ok(resolved);
    }
    Ok(look_alike(workspace, &resolved).await.unwrap_or(resolved))
}

/// The file that a path to write means: as written when that exists, else as [`lexical`] has it.
///
/// # Errors
///
/// As [`lexical`].
pub async fn to_write(written: &str, workspace: &Workspace) -> Result<PathBuf, PathError> {
    let resolved = lexical(written, workspace.cwd(), workspace.home())?;
    // Only where the two differ is there a question.
    if let Ok(literal) = absolute(written, workspace.cwd(), workspace.home())
        && literal != resolved
        && exists(workspace, &literal).await
    {
        return Ok(literal);
    }
    Ok(resolved)
}

async fn exists(workspace: &Workspace, path: &Path) -> bool {
    workspace.files().metadata(path).await.is_ok()
}

/// Follows a path from its root and takes, where a name is missing, the one entry that looks the same.
async fn look_alike(workspace: &Workspace, path: &Path) -> Option<PathBuf> {
    let mut found = PathBuf::new();
    for component in path.components() {
        let Component::Normal(name) = component else {
            found.push(component);
            continue;
        };
        let next = found.join(name);
        if exists(workspace, &next).await {
            found = next;
            continue;
        }
        let wanted = appearance(name.to_str()?);
        let entries = workspace.files().entries(&found).await.ok()?;
        let mut alike =
            entries.iter().filter(|entry| entry.name.to_str().is_some_and(|name| appearance(name) == wanted));
        match (alike.next(), alike.next()) {
            (Some(entry), None) => found.push(&entry.name),
            _ => return None,
        }
    }
    Some(found)
}

/// What a name looks like: composed accents, straight quotes, plain spaces.
fn appearance(name: &str) -> String {
    name.nfc()
        .map(|character| match character {
            '\u{2018}' | '\u{2019}' => '\'',
            '\u{201c}' | '\u{201d}' => '"',
            other => plain_space(other),
        })
        .collect()
}

fn plain_space(character: char) -> char {
    match character {
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

fn absolute(written: &str, cwd: &Path, home: Option<&Path>) -> Result<PathBuf, PathError> {
    let path = if let Some(below) = below_home(written) {
        let home = home.ok_or_else(|| PathError::NoHome(written.to_owned()))?;
        home.join(below)
    } else if written.starts_with("file://") {
        from_url(written).ok_or_else(|| PathError::BadUrl(written.to_owned()))?
    } else {
        native(written)
    };
    Ok(without_dots(&cwd.join(path)))
}

/// The part behind `~/`, when the path starts with the home directory.
fn below_home(written: &str) -> Option<&str> {
    let rest = written.strip_prefix('~')?;
    if rest.is_empty() {
        return Some(rest);
    }
    rest.strip_prefix('/').or_else(|| rest.strip_prefix('\\').filter(|_| cfg!(windows)))
}

fn native(written: &str) -> PathBuf {
    if cfg!(windows)
        && let Some(path) = windows_shell_path(written)
    {
        return path.into();
    }
    written.into()
}

/// The Windows form of a drive path as Git Bash, Cygwin and WSL write it: `/c/x`, `/cygdrive/c/x`, `/mnt/c/x`.
fn windows_shell_path(written: &str) -> Option<String> {
    if written.contains('\\') {
        return None;
    }
    let rest = written.strip_prefix('/')?;
    let rest = rest.strip_prefix("mnt/").or_else(|| rest.strip_prefix("cygdrive/")).unwrap_or(rest);
    let (drive, path) = rest.split_once('/').unwrap_or((rest, ""));
    match drive.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => {
            Some(format!("{}:\\{}", drive.to_ascii_uppercase(), path.replace('/', "\\")))
        }
        _ => None,
    }
}

fn from_url(url: &str) -> Option<PathBuf> {
    let with_host = url.strip_prefix("file://")?;
    let (host, _) = with_host.split_once('/')?;
    if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
        return None;
    }
    let path = with_host.get(host.len()..)?.split(['?', '#']).next()?;
    let is_code = |code: &str| code.get(..2).is_some_and(|code| code.bytes().all(|digit| digit.is_ascii_hexdigit()));
    if !path.split('%').skip(1).all(is_code) {
        return None;
    }
    let decoded = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
    if !decoded.starts_with('/') {
        return None;
    }
    // A drive letter stands behind the first slash: file:///C:/x
    let has_drive = cfg!(windows) && decoded.as_bytes().get(2) == Some(&b':');
    Some(native(if has_drive { &decoded[1..] } else { &decoded }))
}

/// The path without `.` and `..`; those at the root vanish.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::memory::memory_workspace;

    #[test]
    fn urls_of_this_machine_are_paths() {
        let resolve = |written: &str| lexical(written, Path::new("/p"), None);
        assert_eq!(resolve("file:///a%20b/c"), Ok("/a b/c".into()));
        assert_eq!(resolve("file://localhost/x"), Ok("/x".into()));
        assert!(matches!(resolve("file://elsewhere/x"), Err(PathError::BadUrl(_))));
        assert!(matches!(resolve("~/x"), Err(PathError::NoHome(_))));
    }

    #[test]
    fn drive_paths_of_unix_shells_become_windows_paths() {
        assert_eq!(windows_shell_path("/c/Users/x").as_deref(), Some("C:\\Users\\x"));
        assert_eq!(windows_shell_path("/mnt/d/x").as_deref(), Some("D:\\x"));
        assert_eq!(windows_shell_path("/cygdrive/e").as_deref(), Some("E:\\"));
        assert_eq!(windows_shell_path("/usr/bin"), None);
    }

    #[tokio::test]
    async fn a_file_that_is_really_called_so_wins() {
        let workspace = memory_workspace("/p", [("/p/@x", ""), ("/p/a\u{202f}b", "")]);
        assert_eq!(to_write("@x", &workspace).await, Ok("/p/@x".into()));
        assert_eq!(to_write("@y", &workspace).await, Ok("/p/y".into()));
        assert_eq!(to_write("a\u{202f}b", &workspace).await, Ok("/p/a\u{202f}b".into()));
        assert_eq!(to_write("c\u{202f}d", &workspace).await, Ok("/p/c d".into()));
    }

    #[tokio::test]
    async fn a_screenshot_is_found_by_the_name_that_people_type() {
        let name = "/p/Capture d\u{2019}e\u{301}cran 10.54.01\u{202f}AM.png";
        let workspace = memory_workspace("/p", [(name, "")]);
        let found = to_read("Capture d'\u{e9}cran 10.54.01 AM.png", &workspace).await;
        assert_eq!(found, Ok(name.into()));
        // Writing never guesses.
        let written = to_write("Capture d'\u{e9}cran 10.54.01 AM.png", &workspace).await;
        assert_eq!(written, Ok("/p/Capture d'\u{e9}cran 10.54.01 AM.png".into()));
    }

    #[tokio::test]
    async fn two_look_alikes_are_no_answer() {
        let workspace = memory_workspace("/p", [("/p/it\u{2019}s", ""), ("/p/it\u{2018}s", "")]);
        assert_eq!(to_read("it's", &workspace).await, Ok("/p/it's".into()));
    }
}
