//! The commands that make, change or remove files.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{Failure, Output, Place, blocking, read::go_to, words};
use crate::{
    resources::expand_home,
    session::{
        Deleted, EntryId, ExportFormat, Persistence, SessionFolder, SessionManager, Trash, commands, delete_session,
        diagnose_session, repair_session,
    },
};

impl Place {
    pub(super) async fn fork(&self, request: &words::Request) -> Result<u8, Failure> {
        let source = self.file(request.words.first()).await?;
        let (at, before) = (request.value(&words::AT), request.value(&words::BEFORE));
        let (session, text) = match (at, before) {
            (None, None) => {
                let id = request.value(&words::ID).map(Into::into);
                let environment = self.environment.clone();
                (SessionManager::fork_from(&source, &self.folder, id, environment).await?, None)
            }
            (Some(entry), _) => (self.open(&source).await?.branched(&EntryId::from(entry)).await?, None),
            (None, Some(entry)) => {
                let fork = self.open(&source).await?.fork_before(&EntryId::from(entry)).await?;
                (fork.session, Some(fork.text))
            }
        };
        let Persistence::File { path } = session.persistence() else {
            return Err("nothing was said before that entry, so there is nothing to keep".into());
        };
        self.made(request, &session.id(), &path, text)?;
        Ok(0)
    }

    pub(super) async fn import(&self, request: &words::Request) -> Result<u8, Failure> {
        for word in &request.words {
            let path = SessionManager::import(&self.path(word), &self.folder, self.environment.clone()).await?;
            let id = self.open(&path).await?.id();
            self.made(request, &id, &path, None)?;
        }
        Ok(0)
    }

    /// Tells of a new session.
    fn made(&self, request: &words::Request, id: &str, path: &Path, text: Option<String>) -> Result<(), Failure> {
        #[derive(Serialize)]
        struct Made<'a> {
            id: &'a str,
            path: std::borrow::Cow<'a, str>,
            /// The message of the user that the fork goes back to before.
            #[serde(skip_serializing_if = "Option::is_none")]
            text: Option<String>,
        }
        if request.has(&words::JSON) {
            return self.write_json(&Made { id, path: path.to_string_lossy(), text });
        }
        self.show_text(&format!("{id}\n{}\n", path.display()));
        if let Some(text) = text {
            self.show_text(&format!("It goes back to before:\n{text}\n"));
        }
        Ok(())
    }

    pub(super) async fn export(&self, request: &words::Request) -> Result<u8, Failure> {
        let file = request.words.get(1).filter(|file| *file != "-").map(|file| self.path(file));
        let format = match (request.value(&words::FORMAT), &file) {
            (Some("jsonl"), _) => ExportFormat::Jsonl,
            (Some("markdown" | "md"), _) => ExportFormat::Markdown,
            (Some("html"), _) => ExportFormat::Html,
            (Some(other), _) => return Err(words::invalid(&words::FORMAT, "jsonl, markdown or html", other).into()),
            (None, Some(file)) => ExportFormat::of_name(file),
            (None, None) => ExportFormat::Jsonl,
        };
        let session = self.open(&self.file(request.words.first()).await?).await?;
        go_to(&session, request).await?;
        let (environment, output) = (self.environment.clone(), self.output.clone());
        let target = file.clone();
        blocking(move || -> Result<(), Failure> {
            let cwd = session.cwd().to_owned();
            match target {
                Some(file) => session.with(|session| session.export_to(&file, format, &cwd, &environment))?,
                None => {
                    let mut sink = io::BufWriter::new(Sink(&output));
                    session.with(|session| session.export(format, &cwd, environment.clock.now(), &mut sink))?;
                    sink.flush()?;
                }
            }
            Ok(())
        })
        .await??;
        if let Some(file) = file {
            self.show_text(&format!("Exported to: {}\n", file.display()));
        }
        Ok(0)
    }

    pub(super) async fn repair(&self, request: &words::Request) -> Result<u8, Failure> {
        let path = self.file(request.words.first()).await?;
        let environment = self.environment.clone();
        if request.has(&words::WRITE) {
            let cwd = self.host.cwd.clone();
            let repaired = blocking(move || repair_session(&path, &cwd, &environment)).await??;
            if request.has(&words::JSON) {
                let old_file = repaired.old_file.as_ref().map(|file| file.to_string_lossy().into_owned());
                self.write_json(&serde_json::json!({
                    "diagnosis": repaired.diagnosis,
                    "oldFile": old_file,
                    "leftInOldFile": repaired.left_in_old_file,
                }))?;
            } else {
                self.show_text(&commands::repaired_text(&repaired));
            }
            return Ok(0);
        }
        let diagnosis = blocking(move || diagnose_session(&path, &environment)).await??;
        if request.has(&words::JSON) {
            self.write_json(&serde_json::json!({"diagnosis": diagnosis}))?;
        } else {
            self.show_text(&commands::diagnosis_text(&diagnosis));
        }
        Ok(u8::from(diagnosis.needs_repair()))
    }

    pub(super) async fn delete(&self, request: &words::Request) -> Result<u8, Failure> {
        let mut files = Vec::new();
        for word in &request.words {
            let file = self.file(Some(word)).await?;
            // What is no session is not ours to delete.
            let id = self.open(&file).await?.id();
            if *id == **word {
                let namesakes = SessionFolder::namesakes(&file, &id, &self.environment).await?;
                if namesakes.len() > 1 {
                    let files: Vec<String> = namesakes.iter().map(|file| file.display().to_string()).collect();
                    let count = files.len();
                    return Err(format!(
                        "{count} sessions have the id {id}, and none was deleted; name the file: {}",
                        files.join(", ")
                    )
                    .into());
                }
            }
            files.push(file);
        }
        let trash = match (&self.host.home, request.has(&words::PERMANENTLY)) {
            (Some(home), false) => Trash::usual(home, self.host.variable("XDG_DATA_HOME").map(Path::new)),
            (None, false) | (_, true) => Trash::None,
        };
        for file in files {
            let (trash, environment, path) = (trash.clone(), self.environment.clone(), file.clone());
            let text = match blocking(move || delete_session(&path, &trash, &environment)).await?? {
                Deleted::Trashed(place) => format!("{} is in the trash: {}\n", file.display(), place.display()),
                Deleted::Removed => format!("{} is deleted\n", file.display()),
            };
            self.show_text(&text);
        }
        Ok(0)
    }

    /// A path that somebody typed.
    fn path(&self, word: &str) -> PathBuf {
        self.host.cwd.join(expand_home(Path::new(word), self.host.home.as_deref()))
    }
}

/// Standard output as it is: what is exported is data.
struct Sink<'a>(&'a Output);

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_bytes(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
