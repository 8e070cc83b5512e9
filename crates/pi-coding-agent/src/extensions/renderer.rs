//! How entries and messages of extensions look.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ExtensionError;
use crate::{messages::CustomContent, resources::Theme, session::EntryId, styled_text::StyledText};

pub(super) type EntryRenderer =
    Arc<dyn Fn(&RenderedEntry<Value>, RenderOptions, &Theme) -> Result<StyledText, ExtensionError> + Send + Sync>;
pub(super) type MessageRenderer = Arc<dyn Fn(&CustomContent, RenderOptions, &Theme) -> StyledText + Send + Sync>;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    Arc::new(move |entry, options, theme| {
        let data = T::deserialize(&entry.data)
            .map_err(|error| ExtensionError::new(format!("entry {} cannot be read: {error}", entry.id)))?;
        let entry = RenderedEntry { id: entry.id.clone(), custom_type: entry.custom_type.clone(), data };
        Ok(render(&entry, options, theme))
    })
}
