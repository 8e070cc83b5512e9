//! Has extensions draw their entries and messages, at once or with a wait.

use std::{future::Future, sync::Arc};

use pi_ai::CancellationToken;
use serde_json::Value;

use super::{
    ExtensionError, FailurePlace, RenderOptions, RenderedEntry,
    api::Registrations,
    contain::{contained, contained_now},
    renderer::Renderer,
    runner::{ExtensionRunner, Loaded, failure},
};
use crate::{
    messages::{CodingMessage, CustomContent, message_text},
    resources::Theme,
    session::{CustomEntry, EntryId},
    styled_text::StyledText,
};

impl ExtensionRunner {
    /// Draws an entry, when an extension says how. A renderer that fails is reported, and the entry shown as what went
    /// wrong.
    pub fn render_entry(
        &self,
        id: &EntryId,
        entry: &CustomEntry,
        options: RenderOptions,
        theme: &Theme,
    ) -> Option<StyledText> {
        let found = self.renderer(|brings| brings.entry_renderers.get(&entry.custom_type).cloned())?;
        Some(self.draw_now(found, rendered(id, entry), options, theme))
    }

    /// Draws an entry, when an extension says how, and waits where that takes time.
    pub async fn draw_entry(
        &self,
        id: &EntryId,
        entry: &CustomEntry,
        options: RenderOptions,
        theme: &Theme,
    ) -> Option<StyledText> {
        let found = self.renderer(|brings| brings.entry_renderers.get(&entry.custom_type).cloned())?;
        Some(self.draw(found, rendered(id, entry), options, theme).await)
    }

    /// Draws a message of an extension, when an extension says how.
    pub fn render_message(&self, message: &CustomContent, options: RenderOptions, theme: &Theme) -> Option<StyledText> {
        let found = self.renderer(|brings| brings.message_renderers.get(&message.custom_type).cloned())?;
        Some(self.draw_now(found, message.clone(), options, theme))
    }

    /// Draws a message of an extension, when an extension says how, and waits where that takes time.
    pub async fn draw_message(
        &self,
        message: &CustomContent,
        options: RenderOptions,
        theme: &Theme,
    ) -> Option<StyledText> {
        let found = self.renderer(|brings| brings.message_renderers.get(&message.custom_type).cloned())?;
        Some(self.draw(found, message.clone(), options, theme).await)
    }

    /// The first extension that draws something, and how.
    fn renderer<R>(&self, of: impl Fn(&Registrations) -> Option<R>) -> Option<(Arc<Loaded>, R)> {
        self.loaded().iter().find_map(|loaded| Some((loaded.clone(), of(&loaded.brings())?)))
    }

    fn draw_now<T: Drawable>(
        &self,
        (loaded, renderer): (Arc<Loaded>, Renderer<T>),
        item: T,
        options: RenderOptions,
        theme: &Theme,
    ) -> StyledText {
        match renderer {
            Renderer::Now(render) => {
                let drawn = contained_now(|| render(&item, options, theme)).and_then(|drawn| drawn);
                drawn.unwrap_or_else(|error| self.undrawn(&loaded, item.custom_type(), &error))
            }
            Renderer::Later(later) => {
                let key = item.key();
                later.last(&key, options).unwrap_or_else(|| {
                    let (stand_in, custom_type) = (item.stand_in(), item.custom_type().to_owned());
                    self.draw_beside(&loaded, custom_type, async move { later.draw(key, item, options).await });
                    stand_in
                })
            }
        }
    }

    async fn draw<T: Drawable>(
        &self,
        (loaded, renderer): (Arc<Loaded>, Renderer<T>),
        item: T,
        options: RenderOptions,
        theme: &Theme,
    ) -> StyledText {
        let Renderer::Later(later) = renderer else {
            return self.draw_now((loaded, renderer), item, options, theme);
        };
        let custom_type = item.custom_type().to_owned();
        let drawn = contained(&CancellationToken::new(), || later.draw(item.key(), item, options)).await;
        drawn.unwrap_or_else(|error| self.undrawn(&loaded, &custom_type, &error))
    }

    /// Has something drawn that nobody waits for.
    fn draw_beside(
        &self,
        loaded: &Loaded,
        custom_type: String,
        drawing: impl Future<Output = Result<StyledText, ExtensionError>> + Send + 'static,
    ) {
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (runner, name) = (self.downgrade(), loaded.name.clone());
        self.spawn(async move {
            if let Err(error) = contained(&CancellationToken::new(), || drawing).await
                && let Some(runner) = runner.upgrade()
            {
                runner.report(failure(&name, FailurePlace::Renderer(custom_type), &error)).await;
            }
        });
    }

    fn undrawn(&self, loaded: &Loaded, custom_type: &str, error: &ExtensionError) -> StyledText {
        let failure = failure(&loaded.name, FailurePlace::Renderer(custom_type.to_owned()), error);
        let text = StyledText::from(failure.to_string());
        // Drawing does not wait, so that the report is made beside it.
        if tokio::runtime::Handle::try_current().is_ok() {
            let runner = self.clone();
            self.spawn(async move { runner.report(failure).await });
        }
        text
    }
}

/// What extensions draw.
trait Drawable: Send + 'static {
    /// The extension's name for this kind of thing.
    fn custom_type(&self) -> &str;
    /// Tells it from others of its kind.
    fn key(&self) -> String;
    /// What is shown until it is drawn.
    fn stand_in(&self) -> StyledText;
}

impl Drawable for RenderedEntry<Value> {
    fn custom_type(&self) -> &str {
        &self.custom_type
    }

    fn key(&self) -> String {
        self.id.to_string()
    }

    fn stand_in(&self) -> StyledText {
        StyledText::from(format!("[{}] {}", self.custom_type, self.data))
    }
}

impl Drawable for CustomContent {
    fn custom_type(&self) -> &str {
        &self.custom_type
    }

    fn key(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn stand_in(&self) -> StyledText {
        StyledText::from(message_text(&CodingMessage::Custom(self.clone()).into()))
    }
}

fn rendered(id: &EntryId, entry: &CustomEntry) -> RenderedEntry<Value> {
    let data = entry.data.clone().unwrap_or(Value::Null);
    RenderedEntry { id: id.clone(), custom_type: entry.custom_type.clone(), data }
}
