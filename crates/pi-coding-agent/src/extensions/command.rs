//! Commands and shortcuts that extensions bring.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use pi_agent_core::AsyncHook;

use super::{CommandContext, ExtensionError, IntoOutcome};

pub(super) type Run =
    Arc<dyn Fn(String, CommandContext) -> BoxFuture<'static, Result<(), ExtensionError>> + Send + Sync>;
type Complete = Arc<dyn Fn(&str) -> Vec<Completion> + Send + Sync>;

/// A command that the user calls up with `/name arguments`. It runs at once, also while a prompt is answered, and the
/// model does not see it.
///
/// ```
/// # use pi_coding_agent::extensions::{Command, ExtensionApi};
/// fn bookmarks(pi: &mut ExtensionApi) {
///     pi.register_command(
///         Command::new("bookmark", async |label, ctx| {
///             if let Some(entry) = ctx.leaf_id() {
///                 ctx.set_label(&entry, Some(&label)).await?;
///             }
///             Ok(())
///         })
///         .description("Marks where the conversation stands"),
///     );
/// }
/// # let _ = bookmarks;
/// ```
#[derive(Clone)]
pub struct Command {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) run: Run,
    pub(super) complete: Option<Complete>,
}

impl Command {
    /// A command of this name, without its slash.
    pub fn new<R: IntoOutcome<()> + 'static>(
        name: impl Into<String>,
        run: impl AsyncHook<String, CommandContext, R>,
    ) -> Self {
        let run: Run = Arc::new(move |arguments, context| {
            let running = run.run(arguments, context);
            Box::pin(async move { running.await.into_outcome() })
        });
        Self { name: name.into(), description: None, run, complete: None }
    }

    /// What it does, for people.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// What its arguments may be, given how they begin.
    #[must_use]
    pub fn completions(mut self, complete: impl Fn(&str) -> Vec<Completion> + Send + Sync + 'static) -> Self {
        self.complete = Some(Arc::new(complete));
        self
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What an argument may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// The argument.
    pub value: String,
    /// What it means, for people.
    pub description: Option<String>,
}

/// A command as it can be called up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandInfo {
    /// What it is called up with, without its slash. Of several commands with one name each has a number.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// The extension that brings it.
    pub extension: String,
}

/// A key that does something, in the interactive mode.
#[derive(Clone)]
pub struct Shortcut {
    pub(super) key: String,
    pub(super) description: Option<String>,
    pub(super) run: Run,
}

impl Shortcut {
    /// A shortcut on a key such as `ctrl+shift+b`.
    pub fn new<R: IntoOutcome<()> + 'static>(
        key: impl Into<String>,
        run: impl AsyncHook<(), CommandContext, R>,
    ) -> Self {
        let run: Run = Arc::new(move |_, context| {
            let running = run.run((), context);
            Box::pin(async move { running.await.into_outcome() })
        });
        Self { key: key.into().to_lowercase(), description: None, run }
    }

    /// What it does, for people.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}

impl fmt::Debug for Shortcut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shortcut").field("key", &self.key).finish_non_exhaustive()
    }
}

/// A shortcut as it can be pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShortcutInfo {
    /// The key, in lower case.
    pub key: String,
    /// What it does.
    pub description: Option<String>,
    /// The extension that brings it.
    pub extension: String,
}
