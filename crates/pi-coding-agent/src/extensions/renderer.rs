//! How entries and messages of extensions look.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use indexmap::IndexMap;
use pi_agent_core::AsyncHook;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ExtensionError;
use crate::{messages::CustomContent, resources::Theme, session::EntryId, styled_text::StyledText};

type Draw<T> = Arc<dyn Fn(&T, RenderOptions, &Theme) -> Result<StyledText, ExtensionError> + Send + Sync>;

/// Draws entries or messages.
pub(super) enum Renderer<T> {
    Now(Draw<T>),
    Later(Arc<Later<T>>),
}

impl<T> Clone for Renderer<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Now(draw) => Self::Now(draw.clone()),
            Self::Later(later) => Self::Later(later.clone()),
        }
    }
}

/// Draws entries.
pub(super) type EntryRenderer = Renderer<RenderedEntry<Value>>;
/// Draws messages.
pub(super) type MessageRenderer = Renderer<CustomContent>;

type Drawing = BoxFuture<'static, Result<StyledText, ExtensionError>>;

/// A renderer that has to be waited for, and its last drawings.
pub(super) struct Later<T> {
    draw: Box<dyn Fn(T, RenderOptions) -> Drawing + Send + Sync>,
    drawn: Mutex<IndexMap<(String, Detail), StyledText>>,
}

impl<T: Send + 'static> Later<T> {
    /// Drawings that are kept.
    const KEPT: usize = 256;

    pub(super) fn new(render: impl AsyncHook<T, RenderOptions, Result<StyledText, ExtensionError>>) -> Arc<Self> {
        let draw = Box::new(move |item, options| -> Drawing { Box::pin(render.run(item, options)) });
        Arc::new(Self { draw, drawn: Mutex::default() })
    }

    /// The drawing of something, if it was drawn before.
    pub(super) fn last(&self, key: &str, options: RenderOptions) -> Option<StyledText> {
        let drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        drawn.get(&(key.to_owned(), options.detail)).cloned()
    }

    /// Draws something, and remembers it.
    pub(super) async fn draw(
        &self,
        key: String,
        item: T,
        options: RenderOptions,
    ) -> Result<StyledText, ExtensionError> {
        let text = (self.draw)(item, options).await?;
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if drawn.len() >= Self::KEPT {
            drawn.shift_remove_index(0);
        }
        drawn.insert((key, options.detail), text.clone());
        Ok(text)
    }
}

/// An entry that is drawn.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RenderedEntry<T> {
    /// The entry.
    pub id: EntryId,
    /// The extension's name for this kind of entry.
    pub custom_type: String,
    /// What the extension put there.
    pub data: T,
}

/// How something is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RenderOptions {
    /// How much of it is shown.
    pub detail: Detail,
}

/// How much is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Detail {
    /// The gist.
    #[default]
    Collapsed,
    /// Everything.
    Expanded,
}

impl RenderOptions {
    /// The gist.
    pub const COLLAPSED: Self = Self { detail: Detail::Collapsed };
    /// Everything.
    pub const EXPANDED: Self = Self { detail: Detail::Expanded };

    /// Whether everything is shown.
    pub fn is_expanded(self) -> bool {
        self.detail == Detail::Expanded
    }
}

/// A renderer that gets the data as the extension's own type.
pub(super) fn typed<T: DeserializeOwned>(
    render: impl Fn(&RenderedEntry<T>, RenderOptions, &Theme) -> StyledText + Send + Sync + 'static,
) -> EntryRenderer {
    EntryRenderer::Now(Arc::new(move |entry, options, theme| {
        let data = T::deserialize(&entry.data)
            .map_err(|error| ExtensionError::new(format!("entry {} cannot be read: {error}", entry.id)))?;
        let entry = RenderedEntry { id: entry.id.clone(), custom_type: entry.custom_type.clone(), data };
        Ok(render(&entry, options, theme))
    }))
}
