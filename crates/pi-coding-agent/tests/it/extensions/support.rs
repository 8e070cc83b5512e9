//! Sessions in memory with a scripted model.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use pi_ai::{
    Message,
    faux::{FauxProvider, FauxReply},
};
use pi_coding_agent::{
    agent_session::{AgentSession, ListenerContext, SessionEvent},
    extensions::Extension,
    host::Host,
    resources::SettingsManager,
    sdk::{SessionOptions, create_agent_session},
    session::{EntryBody, SessionManager},
    tool_selection::{ToolBase, ToolSelection},
};

/// A model that answers from a script and keeps what it was asked.
#[derive(Clone)]
pub(super) struct Scripted(pub(super) FauxProvider);

impl Scripted {
    pub(super) fn new(replies: impl IntoIterator<Item = FauxReply>) -> Self {
        Self(FauxProvider::new(replies))
    }

    /// What the nth request was made from.
    pub(super) fn request(&self, nth: usize) -> Vec<Message> {
        self.0.requests()[nth].context.messages().to_vec()
    }

    pub(super) fn requests(&self) -> usize {
        self.0.requests().len()
    }

    /// What the nth request says, without system messages: role and text.
    pub(super) fn said(&self, nth: usize) -> Vec<String> {
        self.request(nth).iter().filter(|message| message.role() != "system").map(said).collect()
    }
}

/// A message as role and text.
pub(super) fn said(message: &Message) -> String {
    let text = pi_coding_agent::messages::message_text(&message.clone().into());
    format!("{}: {text}", message.role())
}

/// Options of a session in memory, without built-in tools, in a folder of its own.
pub(super) fn options(model: &Scripted) -> (SessionOptions, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let host = Host {
        cwd: folder.path().to_owned(),
        home: None,
        agent_dir: folder.path().join("agent"),
        temp_dir: folder.path().to_owned(),
        variables: std::env::vars_os().filter(|(name, _)| name == "PATH").collect(),
    };
    let settings = serde_json::json!({"retry": {"enabled": false}});
    let options = SessionOptions::default()
        .host(host)
        .settings(SettingsManager::in_memory(settings))
        .stream_fn(model.0.clone())
        .model(FauxProvider::model())
        .session_manager(SessionManager::in_memory())
        .tool_selection(ToolSelection { base: ToolBase::NoBuiltins, ..ToolSelection::default() });
    (options, folder)
}

/// A session with extensions, and what went wrong in them.
pub(super) struct Fixture {
    pub(super) session: AgentSession,
    pub(super) model: Scripted,
    failures: Arc<Mutex<Vec<String>>>,
    /// Goes away with the session.
    _folder: tempfile::TempDir,
}

impl Fixture {
    pub(super) async fn new(replies: impl IntoIterator<Item = FauxReply>, extension: impl Extension) -> Self {
        Self::with(replies, |options| options.extension(extension)).await
    }

    pub(super) async fn with(
        replies: impl IntoIterator<Item = FauxReply>,
        change: impl FnOnce(SessionOptions) -> SessionOptions,
    ) -> Self {
        let model = Scripted::new(replies);
        let (options, folder) = options(&model);
        let session = create_agent_session(change(options)).await.unwrap();
        let failures: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = failures.clone();
        let listener = async move |event: SessionEvent, _context: ListenerContext| {
            if let SessionEvent::ExtensionError { extension, event, error } = event {
                heard.lock().unwrap().push(format!("{extension}, {event}: {error}"));
            }
        };
        session.subscribe(listener).detach();
        Self { session, model, failures, _folder: folder }
    }

    /// What went wrong in extensions.
    pub(super) fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap().clone()
    }

    /// The bodies of the branch's entries.
    pub(super) fn entries(&self) -> Vec<EntryBody> {
        let manager = self.session.session_manager();
        manager.branch_entries().iter().map(|entry| manager.entry(entry.id.as_str()).unwrap().body).collect()
    }
}
