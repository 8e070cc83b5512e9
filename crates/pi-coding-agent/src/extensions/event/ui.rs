//! Questions to the user.

use serde::Serialize;

/// The user is asked something, or no longer. Questions that overlap are one span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UiPromptEvent {
    /// Always `ui_prompt`.
    reason: &'static str,
    /// What is asked for.
    pub kind: PromptKind,
    /// The question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

impl UiPromptEvent {
    pub(crate) fn new(kind: PromptKind, title: Option<String>) -> Self {
        Self { reason: "ui_prompt", kind, title }
    }
}

/// What a user is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum PromptKind {
    /// One of several.
    Select,
    /// Yes or no.
    Confirm,
    /// A line of text.
    Input,
    /// A longer text.
    Editor,
    /// Something of the extension's own.
    Custom,
}
