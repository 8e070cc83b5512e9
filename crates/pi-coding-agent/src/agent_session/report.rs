//! What can be told of a session as a whole.

use std::path::Path;

use super::{AgentSession, AgentSessionError};
use crate::{
    compaction::{ContextUsage, context_usage},
    extensions::{ExtensionRunner, RenderOptions},
    messages::CustomContent,
    page::{Drawing, Drawn, SessionPage},
    resources::Theme,
    session::{CustomEntry, EntryId, ExportFormat, SessionStats, in_background},
};

impl AgentSession {
    /// Messages, tool calls, tokens and costs over the whole record, all branches. Reads it on another thread.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub async fn stats(&self) -> Result<SessionStats, AgentSessionError> {
        let manager = self.inner.manager.clone();
        Ok(in_background(move || manager.with(|session| session.stats())).await?)
    }

    /// How full the model's context is; `None` without a model, or when its size is not known.
    pub fn context_usage(&self) -> Option<ContextUsage> {
        let window = self.model()?.context_window;
        self.inner.manager.with(|session| context_usage(session.projection(), window))
    }

    /// Writes the branch that the session stands on into a file that appears whole or not at all: as a session of its
    /// own, as Markdown for people, or as a page, where the session's extensions say how their entries look.
    /// [`ExportFormat::of_name`] tells the format that a name asks for.
    ///
    /// # Errors
    /// When the record cannot be read, a page of an empty one is asked for, or there is such a file already.
    pub async fn export_to(&self, path: impl AsRef<Path>, format: ExportFormat) -> Result<(), AgentSessionError> {
        let (manager, path) = (self.inner.manager.clone(), path.as_ref().to_owned());
        let (theme, extensions) = (self.theme(), self.inner.extensions.clone());
        let export = move || {
            let (cwd, environment) = (manager.cwd().to_owned(), manager.environment().clone());
            manager.with(|session| match format {
                ExportFormat::Html => {
                    let drawing = ExtensionDrawing { extensions: &extensions, theme: &theme };
                    let page = SessionPage::default().theme(theme.clone()).drawing(&drawing);
                    session.export_page_to(&path, &page, &environment)
                }
                _ => session.export_to(&path, format, &cwd, &environment),
            })
        };
        Ok(in_background(export).await?)
    }

    /// The theme that the settings name; of a pair for light and dark the dark one, and without a name the dark one.
    pub fn theme(&self) -> Theme {
        let settings = self.inner.settings.settings();
        let name = settings.theme.as_deref().unwrap_or_default();
        let name = name.split_once('/').map_or(name, |(_, dark)| dark);
        let resources = self.inner.resources.loader.resources();
        let loaded = resources.themes.iter().find(|theme| theme.name == name).cloned();
        loaded.unwrap_or_else(|| if name == "light" { Theme::light() } else { Theme::dark() })
    }
}

/// What the session's extensions say about how their entries and messages look.
struct ExtensionDrawing<'a> {
    extensions: &'a ExtensionRunner,
    theme: &'a Theme,
}

impl Drawing for ExtensionDrawing<'_> {
    fn entry(&self, id: &EntryId, entry: &CustomEntry) -> Option<Drawn> {
        let draw = |options| self.extensions.render_entry(id, entry, options, self.theme);
        Some(Drawn { collapsed: draw(RenderOptions::COLLAPSED)?, expanded: draw(RenderOptions::EXPANDED)? })
    }

    fn message(&self, message: &CustomContent) -> Option<Drawn> {
        let draw = |options| self.extensions.render_message(message, options, self.theme);
        Some(Drawn { collapsed: draw(RenderOptions::COLLAPSED)?, expanded: draw(RenderOptions::EXPANDED)? })
    }
}
