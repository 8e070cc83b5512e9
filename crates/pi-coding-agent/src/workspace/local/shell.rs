//! Which shell runs commands, and with what environment.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::Environment;
use crate::workspace::ProcessError;

/// Variables that tell a command about its session; copies that this process inherited are those of another.
const SESSION_VARIABLES: [&str; 5] =
    ["PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL"];

/// The shell: the one that was asked for, else bash where it usually is or on `PATH`, else sh.
pub(super) fn find_shell(wanted: Option<&Path>, environment: &Environment) -> Result<PathBuf, ProcessError> {
    if let Some(wanted) = wanted {
        return if wanted.exists() {
            Ok(wanted.to_owned())
        } else {
            Err(ProcessError::NoShell(format!(
                "the configured shell {} does not exist. Correct or remove the `shellPath` setting.",
                wanted.display()
            )))
        };
    }
    usual_places(environment)
        .into_iter()
        .find(|place| place.exists())
        .or_else(|| on_path(if cfg!(windows) { "bash.exe" } else { "bash" }, environment))
        .or_else(|| Some(PathBuf::from("/bin/sh")).filter(|sh| sh.exists()))
        .or_else(|| on_path("sh", environment))
        .ok_or_else(|| {
            ProcessError::NoShell(if cfg!(windows) {
                "bash was found neither in Git's usual folders nor on PATH. Install Git for Windows, or set `shellPath`."
                    .to_owned()
            } else {
                "neither bash nor sh was found. Install one, or set `shellPath`.".to_owned()
            })
        })
}

fn usual_places(environment: &Environment) -> Vec<PathBuf> {
    if !cfg!(windows) {
        return vec!["/bin/bash".into()];
    }
    ["ProgramFiles", "ProgramFiles(x86)"]
        .iter()
        .filter_map(|name| environment.get(OsStr::new(name)))
        .map(|folder| Path::new(folder).join("Git").join("bin").join("bash.exe"))
        .collect()
}

/// A program on `PATH`.
fn on_path(program: &str, environment: &Environment) -> Option<PathBuf> {
    folders_of_path(environment).into_iter().map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

/// The folders of `PATH`. Relative and empty parts are skipped: they would name a file of the project.
fn folders_of_path(environment: &Environment) -> Vec<PathBuf> {
    let path = environment.get(OsStr::new(path_name(environment)));
    path.map(|path| std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect()).unwrap_or_default()
}

/// The file of a program that is run without a shell: by its path as it is, by its name on `PATH`.
pub(super) fn find_program(program: &str, cwd: &Path, environment: &Environment) -> Result<PathBuf, ProcessError> {
    let is_path = program.contains(std::path::is_separator);
    if is_path {
        return Ok(cwd.join(program));
    }
    let endings: &[&str] = if cfg!(windows) { &["", ".exe", ".cmd", ".bat"] } else { &[""] };
    folders_of_path(environment)
        .iter()
        .flat_map(|folder| endings.iter().map(move |ending| folder.join(format!("{program}{ending}"))))
        .find(|candidate| !program.is_empty() && is_program(candidate))
        .ok_or_else(|| ProcessError::NoProgram { program: program.to_owned() })
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}

/// What the search path is called here; Windows does not care about case.
fn path_name(environment: &Environment) -> &str {
    environment.keys().filter_map(|name| name.to_str()).find(|name| name.eq_ignore_ascii_case("PATH")).unwrap_or("PATH")
}

/// The environment of a command: the workspace's own without another session's facts, our programs in front
/// of `PATH`, and what the command asks for.
pub(super) fn command_environment(
    base: &Environment,
    bin_dir: Option<&Path>,
    variables: &[(String, Option<String>)],
) -> Environment {
    let mut environment = base.clone();
    for name in SESSION_VARIABLES {
        environment.remove(OsStr::new(name));
    }
    if let Some(bin_dir) = bin_dir {
        let name = OsString::from(path_name(&environment).to_owned());
        let old = environment.get(&name).cloned().unwrap_or_default();
        let folders: Vec<PathBuf> =
            std::env::split_paths(&old).filter(|folder| !folder.as_os_str().is_empty()).collect();
        if !folders.iter().any(|folder| folder == bin_dir)
            && let Ok(path) = std::env::join_paths(std::iter::once(bin_dir).chain(folders.iter().map(PathBuf::as_path)))
        {
            environment.insert(name, path);
        }
    }
    for (name, value) in variables {
        match value {
            Some(value) => environment.insert(name.into(), value.into()),
            None => environment.remove(OsStr::new(name)),
        };
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn a_program_of_the_project_is_never_taken_for_the_shell() {
        let folder = tempfile::tempdir().unwrap();
        let fake = folder.path().join("bash");
        std::fs::write(&fake, "").unwrap();
        let relative = environment(&[("PATH", ".::bin")]);
        assert_eq!(on_path("bash", &relative), None);
        let absolute = std::env::join_paths([folder.path()]).unwrap();
        let absolute = Environment::from([("PATH".into(), absolute)]);
        assert_eq!(on_path("bash", &absolute), Some(fake));
    }

    #[cfg(unix)]
    #[test]
    fn a_program_is_found_on_absolute_parts_of_the_path_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (program, text) = (folder.path().join("tool"), folder.path().join("text"));
        std::fs::write(&program, "").unwrap();
        std::fs::write(&text, "").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let absolute = std::env::join_paths([folder.path()]).unwrap();
        let absolute = Environment::from([("PATH".into(), absolute)]);
        let find = |name: &str, environment: &Environment| find_program(name, folder.path(), environment).ok();
        assert_eq!(find("tool", &absolute), Some(program.clone()));
        assert_eq!(find("text", &absolute), None);
        assert_eq!(find("tool", &environment(&[("PATH", ".::bin")])), None);
        // Who names a path means that file.
        assert_eq!(find("./tool", &Environment::new()), Some(folder.path().join("./tool")));
        assert_eq!(find("", &absolute), None);
    }

    #[test]
    fn a_configured_shell_that_is_missing_is_an_error_that_says_so() {
        let error = find_shell(Some(Path::new("/nowhere/zsh")), &Environment::new()).unwrap_err();
        assert!(error.to_string().contains("/nowhere/zsh"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn commands_do_not_inherit_the_facts_of_another_session() {
        let base = environment(&[("PI_MODEL", "old"), ("PATH", "/usr/bin"), ("A", "1"), ("B", "2")]);
        let variables = [("A".to_owned(), None), ("PI_SESSION_ID".to_owned(), Some("s".to_owned()))];
        let made = command_environment(&base, Some(Path::new("/agent/bin")), &variables);
        assert_eq!(made, environment(&[("PI_SESSION_ID", "s"), ("PATH", "/agent/bin:/usr/bin"), ("B", "2")]));
    }
}
