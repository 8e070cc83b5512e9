//! `pi sessions`: what was kept of earlier conversations.

mod change;
mod read;
mod words;

use std::path::{Path, PathBuf};

use serde::Serialize;

use self::words::{Asked, Request, help};
use super::{
    arguments::Arguments,
    output::{Output, say},
    session_choice::{damage, locate, session_folder},
};
use crate::{
    host::Host,
    resources::{Diagnostic, ProjectTrust, SettingsManager},
    screen::for_screen,
    session::{Access, SessionEnvironment, SessionFolder, SessionManager},
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Wrong usage.
const USAGE: u8 = 2;

/// Runs a command with the words after `pi sessions`. Gives the exit code.
pub(super) fn run(words: impl IntoIterator<Item = String>) -> Result<u8, Failure> {
    let output = Output::stdout();
    let request = match Asked::read(words)? {
        None => {
            say(help(None).trim_end());
            return Ok(USAGE);
        }
        Some(Asked::Help(command)) => {
            output.write(&help(command));
            return Ok(u8::from(output.failed()));
        }
        Some(Asked::Run(request)) => request,
    };
    let host = Host::of_process()?;
    // Whether the project is trusted does not matter here: where its sessions lie is known before that is decided.
    let settings = SettingsManager::load(&host.locations(), ProjectTrust::Untrusted);
    settings.diagnostics().iter().map(Diagnostic::to_string).for_each(|notice| say(&notice));
    let arguments = Arguments { session_dir: request.session_dir(), ..Arguments::default() };
    let folder = session_folder(&arguments, &host, &settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let place = Place { host, folder, environment: SessionEnvironment::default(), output };
    let code = runtime.block_on(place.run(&request))?;
    Ok(if place.output.failed() { 1 } else { code })
}

/// `pi --export SESSION [FILE]`: as `pi sessions export`, with a page as the usual form and a name of its own.
pub(super) fn export_page(session: &str, arguments: &Arguments) -> Result<u8, Failure> {
    let page = || {
        let name = Path::new(session).file_stem().map_or_else(|| session.into(), |stem| stem.to_string_lossy());
        format!("pi-session-{name}.html")
    };
    let file = arguments.messages.first().cloned().unwrap_or_else(page);
    let mut words = vec!["export".to_owned()];
    words.extend(
        arguments
            .session_dir
            .iter()
            .flat_map(|folder| ["--session-dir".to_owned(), folder.to_string_lossy().into_owned()]),
    );
    words.extend(["--".to_owned(), session.to_owned(), file]);
    run(words)
}

/// Where the sessions are, and where the answer goes.
struct Place {
    host: Host,
    folder: SessionFolder,
    environment: SessionEnvironment,
    output: Output,
}

impl Place {
    async fn run(&self, request: &Request) -> Result<u8, Failure> {
        match request.command.name {
            "list" => self.list(request).await,
            "show" => self.show(request).await,
            "search" => self.search(request).await,
            "stats" => self.stats(request).await,
            "fork" => self.fork(request).await,
            "export" => self.export(request).await,
            "repair" => self.repair(request).await,
            "import" => self.import(request).await,
            "delete" => self.delete(request).await,
            other => unreachable!("the table has no command {other}"),
        }
    }

    /// The file of a session that is asked for; without a word the last one of this folder.
    async fn file(&self, asked: Option<&String>) -> Result<PathBuf, Failure> {
        match asked {
            Some(asked) => Ok(locate(asked, &self.host, &self.folder, &self.environment).await?.path),
            None => self.folder.most_recent(&self.environment).await?.ok_or_else(|| {
                format!(
                    "there is no session of {} yet; `pi sessions list --all` lists those of other folders",
                    self.folder.cwd().display()
                )
                .into()
            }),
        }
    }

    /// Opens a session for reading, and says what is wrong with its file.
    async fn open(&self, path: &Path) -> Result<SessionManager, Failure> {
        let manager = SessionManager::open(path, Access::ReadOnly, &self.host.cwd, self.environment.clone()).await?;
        damage(&manager, path).iter().for_each(|notice| say(notice));
        Ok(manager)
    }

    /// Writes text for people.
    fn show_text(&self, text: &str) {
        self.output.write(&for_screen(text));
    }

    /// Writes a line for programs.
    fn write_json(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.output.line(&serde_json::to_string(value)?);
        Ok(())
    }
}

/// Does something that blocks.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    Ok(tokio::task::spawn_blocking(work).await?)
}
