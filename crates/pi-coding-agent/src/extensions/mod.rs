//! Extensions: code of others that takes part in a session.
//!
//! An [`Extension`] registers what it brings with an [`ExtensionApi`]: handlers of [events](event), tools, commands,
//! flags, shortcuts, renderers and providers. A session's [`ExtensionRunner`] calls the handlers; each gets a payload
//! of its own event and an [`ExtensionContext`], and answers what that event takes.
//!
//! ```
//! use pi_ai::faux::{FauxProvider, FauxReply};
//! use pi_coding_agent::{
//!     extensions::{ExtensionApi, event},
//!     sdk::{SessionOptions, create_agent_session},
//!     session::SessionManager,
//! };
//!
//! fn audit(pi: &mut ExtensionApi) {
//!     pi.on(event::MessageEnd, async |event, ctx| {
//!         ctx.append_entry("audit-note", event.message.role()).await?;
//!         Ok(())
//!     });
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = SessionOptions::default()
//!     .stream_fn(FauxProvider::new([FauxReply::text("Hello.")]))
//!     .model(FauxProvider::model())
//!     .session_manager(SessionManager::in_memory())
//!     .extension(audit);
//! let session = create_agent_session(options).await?;
//! session.prompt("Hi").await?;
//! let entries = session.session_manager().branch_entries();
//! assert!(entries.iter().any(|entry| entry.kind == pi_coding_agent::session::EntryKind::Custom));
//! # Ok(()) }
//! ```

mod api;
mod brought;
mod command;
mod command_context;
mod compose;
mod contain;
mod context;
mod drawing;
mod error;
pub mod event;
mod exec;
mod extension;
mod flag;
mod handlers;
mod host;
mod outcome;
mod renderer;
mod runner;
pub mod stdio;
mod ui;

pub use api::ExtensionApi;
pub use command::{Command, CommandInfo, Completion, Shortcut, ShortcutInfo};
pub use command_context::{CommandContext, ThenInSession};
pub use context::ExtensionContext;
pub use error::{ExtensionError, ExtensionFailure, FailurePlace};
pub use event::{Event, EventKind};
pub use exec::{ExecOptions, ExecResult};
pub use extension::{Extension, named};
pub use flag::{Flag, FlagInfo, FlagKind, FlagValue, FlagValues};
pub use handlers::HandlerId;
pub use host::ExtensionHost;
pub use outcome::{IntoOutcome, Outcome};
pub use renderer::{Detail, RenderOptions, RenderedEntry};
pub use runner::ExtensionRunner;
pub use ui::{ExtensionUi, Mode, NoUi, NoticeLevel, Ui, UiAnswer, UiQuestion, UiUpdate, WidgetPlacement};

pub(crate) use brought::CalledCommand;
pub(crate) use compose::{AtBoundary, RunStart};
