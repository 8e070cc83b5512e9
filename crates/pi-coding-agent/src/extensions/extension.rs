//! What an extension is.

use std::sync::Arc;

use async_trait::async_trait;

use super::{ExtensionApi, ExtensionError};

/// Something that takes part in sessions: it handles events and brings tools, commands, flags, renderers and providers.
///
/// A closure or function over an [`ExtensionApi`] is one, named after its path; [`named`] gives it a name of its own.
/// Implement the trait for one that has to wait while it is set up, or that stands for something outside: a program
/// behind a pipe is an extension like any other, whose handlers wait for the program's answer.
///
/// ```
/// use pi_coding_agent::extensions::{ExtensionApi, event};
///
/// fn no_deletions(pi: &mut ExtensionApi) {
///     use pi_coding_agent::extensions::event::ToolCallDecision;
///     pi.on(event::ToolCall, async |event, _ctx| match event.tool_name.as_str() {
///         "delete" => ToolCallDecision::block("Nothing is deleted here."),
///         _ => ToolCallDecision::Allow,
///     });
/// }
/// # let _ = pi_coding_agent::sdk::SessionOptions::default().extension(no_deletions);
/// ```
#[async_trait]
pub trait Extension: Send + Sync + 'static {
    /// The name that people see when something goes wrong.
    fn name(&self) -> &str;

    /// Registers what the extension brings. It is called when a session is made and again when its extensions are
    /// loaded again. What lives long is started by a handler of `session_start` and ended by one of `session_shutdown`,
    /// not here.
    ///
    /// # Errors
    /// Then nothing of the extension is used; the session goes on without it.
    async fn register(&self, pi: &mut ExtensionApi) -> Result<(), ExtensionError>;
}

#[async_trait]
impl<F: Fn(&mut ExtensionApi) + Send + Sync + 'static> Extension for F {
    fn name(&self) -> &str {
        std::any::type_name::<F>()
    }

    async fn register(&self, pi: &mut ExtensionApi) -> Result<(), ExtensionError> {
        self(pi);
        Ok(())
    }
}

#[async_trait]
impl<T: Extension + ?Sized> Extension for Arc<T> {
    fn name(&self) -> &str {
        (**self).name()
    }

    async fn register(&self, pi: &mut ExtensionApi) -> Result<(), ExtensionError> {
        (**self).register(pi).await
    }
}

/// Gives an extension that is a closure a name.
///
/// ```
/// use pi_coding_agent::extensions::{Extension, ExtensionApi, named};
/// let audit = named("audit", |_pi: &mut ExtensionApi| {});
/// assert_eq!(audit.name(), "audit");
/// ```
pub fn named(name: impl Into<String>, register: impl Fn(&mut ExtensionApi) + Send + Sync + 'static) -> impl Extension {
    Named { name: name.into(), register }
}

struct Named<F> {
    name: String,
    register: F,
}

#[async_trait]
impl<F: Fn(&mut ExtensionApi) + Send + Sync + 'static> Extension for Named<F> {
    fn name(&self) -> &str {
        &self.name
    }

    async fn register(&self, pi: &mut ExtensionApi) -> Result<(), ExtensionError> {
        (self.register)(pi);
        Ok(())
    }
}
