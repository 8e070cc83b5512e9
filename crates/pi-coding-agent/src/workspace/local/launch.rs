//! What is started: a file, its arguments, where it runs, and with what environment.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::shell::{command_environment, find_program, find_shell};
use super::{Environment, ProcessOptions};
use crate::workspace::{ProcessError, ProgramCommand, ShellCommand};

/// A program, where it runs, and with what.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// The file.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// The folder that it runs in.
    pub(crate) folder: PathBuf,
    /// All of its environment.
    pub(crate) environment: Environment,
}

impl Launch {
    /// The shell with a script.
    pub(super) fn shell(options: &ProcessOptions, command: ShellCommand) -> Result<Self, ProcessError> {
        Ok(Self {
            program: find_shell(options.shell.as_deref(), &options.environment)?,
            arguments: vec!["-c".to_owned(), command.script],
            folder: command.cwd,
            environment: environment(options, &command.variables),
        })
    }

    /// A program without a shell.
    pub(super) fn program(options: &ProcessOptions, command: ProgramCommand) -> Result<Self, ProcessError> {
        let environment = environment(options, &[]);
        Ok(Self {
            program: find_program(&command.program, &command.cwd, &environment)?,
            arguments: command.arguments,
            folder: command.cwd,
            environment,
        })
    }

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

fn environment(options: &ProcessOptions, variables: &[(String, Option<String>)]) -> Environment {
    command_environment(&options.environment, options.bin_dir.as_deref(), variables)
}
