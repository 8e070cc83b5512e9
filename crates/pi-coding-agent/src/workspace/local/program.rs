//! What a program that is spoken to through pipes is started with.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite};

use super::Environment;
use super::shell::{command_environment, find_program};

/// A program, where it runs, and with what.
#[derive(Clone, Debug)]
pub(crate) struct ProgramCommand {
    /// The file.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// The folder that it runs in.
    pub(crate) folder: PathBuf,
    /// All of its environment.
    pub(crate) environment: Environment,
}

impl ProgramCommand {
    /// A command as people write it: a name is looked up on `PATH`, where relative parts count for nothing; anything
    /// with a slash is a file, from `folder` when it is relative.
    ///
    /// The program gets `base` without the facts of a session, and `variables` besides.
    pub(crate) fn find(
        words: &[String],
        folder: &Path,
        base: &Environment,
        variables: &[(String, String)],
    ) -> Result<Self, String> {
        let Some((program, arguments)) = words.split_first() else { return Err("no program is named".to_owned()) };
        let variables: Vec<_> = variables.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect();
        let environment = command_environment(base, None, &variables);
        let file = find_program(program, folder, &environment).map_err(|error| error.to_string())?;
        if !file.is_file() {
            return Err(format!("there is no program {}", file.display()));
        }
        Ok(Self { program: file, arguments: arguments.to_vec(), folder: folder.to_owned(), environment })
    }

    /// The program's name, for people.
    pub(crate) fn name(&self) -> &str {
        self.program.file_name().and_then(OsStr::to_str).unwrap_or("the program")
    }
}

/// Ends a program at once, from anywhere.
pub(crate) struct ProgramKiller(pub(super) Box<dyn Fn() + Send + Sync>);

impl ProgramKiller {
    /// Ends it and all that it started.
    pub(crate) fn kill(&self) {
        (self.0)();
    }
}

impl fmt::Debug for ProgramKiller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgramKiller")
    }
}

/// The ends of a program's pipes that are ours.
pub(crate) struct ProgramPipes {
    pub(crate) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) stderr: Box<dyn AsyncRead + Send + Unpin>,
}

impl fmt::Debug for ProgramPipes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgramPipes")
    }
}
