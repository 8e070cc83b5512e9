//! Why something that an extension does failed.

use std::{error::Error, fmt};

use super::EventKind;

/// Why a handler, a command or a registration failed. Every error converts with `?`.
///
/// It is not itself a [`std::error::Error`], so that the conversion from all of those can exist.
pub struct ExtensionError(Box<dyn Error + Send + Sync>);

impl ExtensionError {
    /// A failure with a text.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into().into())
    }

    /// What is said to an extension that outlived its session, or was reloaded since.
    pub(crate) fn stale() -> Self {
        Self::new(
            "the session that this context belongs to is gone, or its extensions were loaded again; use the context \
             that the current handler was given",
        )
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ExtensionError {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Debug for ExtensionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for ExtensionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A failure of an extension: whose, where, and what went wrong. The session goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("extension `{extension}`, {place}: {message}")]
pub struct ExtensionFailure {
    /// The extension's name.
    pub extension: String,
    /// What it was doing.
    pub place: FailurePlace,
    /// What went wrong.
    pub message: String,
}

/// What an extension was doing when it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailurePlace {
    /// It registered what it brings; nothing of it is used.
    Loading,
    /// It handled an event.
    Event(EventKind),
    /// It ran a command of the user.
    Command(String),
    /// It ran a shortcut.
    Shortcut(String),
    /// It drew an entry or a message of this type.
    Renderer(String),
    /// It said something to another extension over the bus.
    Bus(String),
    /// A command went on in the session that it had put in the place of its own.
    Replacement,
    /// The program that it stands for ran, or was to run.
    Program,
}

impl fmt::Display for FailurePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loading => f.write_str("load"),
            Self::Event(kind) => f.write_str(kind.as_str()),
            Self::Command(name) => write!(f, "/{name}"),
            Self::Shortcut(key) => write!(f, "shortcut {key}"),
            Self::Renderer(custom_type) => write!(f, "renderer of {custom_type}"),
            Self::Bus(channel) => write!(f, "bus {channel}"),
            Self::Replacement => f.write_str("in the session that took the place"),
            Self::Program => f.write_str("program"),
        }
    }
}
