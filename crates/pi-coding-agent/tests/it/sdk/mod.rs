//! Sessions as a program makes and uses them, with a scripted model.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cycle;
mod lifetime;
mod options;
mod page;
mod recovery;
mod runtime;
mod structured;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use pi_agent_core::{AgentEvent, AgentTool, Tool, ToolContext, ToolOutput};
use pi_ai::faux::{FauxProvider, FauxReply};
use pi_coding_agent::{
    agent_session::{AgentSession, ListenerContext, SessionEvent},
    host::Host,
    messages::message_text,
    sdk::{SessionOptions, create_agent_session},
    session::{Access, SessionEnvironment, SessionManager},
};

/// Tells ends from hangs.
const DEADLINE: Duration = Duration::from_secs(10);

/// A folder that a session works in, with an agent folder that has nothing in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(place.cwd()).unwrap();
        place
    }

    fn cwd(&self) -> PathBuf {
        self.0.path().join("work")
    }

    fn host(&self) -> Host {
        Host {
            cwd: self.cwd(),
            home: None,
            agent_dir: self.0.path().join("agent"),
            temp_dir: self.0.path().to_owned(),
            variables: [("PATH".into(), std::env::var_os("PATH").unwrap_or_default())].into(),
        }
    }

    fn options(&self, provider: &FauxProvider) -> SessionOptions {
        SessionOptions::default().host(self.host()).stream_fn(provider.clone()).model(FauxProvider::model())
    }

    async fn session(&self, replies: impl IntoIterator<Item = FauxReply>) -> AgentSession {
        create_agent_session(self.options(&FauxProvider::new(replies))).await.unwrap()
    }
}

async fn open_for_writing(path: &Path) -> SessionManager {
    SessionManager::open(path, Access::Write, Path::new("/"), SessionEnvironment::default()).await.unwrap()
}

/// What the conversation is, the prompt left out.
fn said(session: &AgentSession) -> Vec<String> {
    session.messages().iter().filter(|message| !message.is_system()).map(message_text).collect()
}

/// The names of what a session tells.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn listen(&self, session: &AgentSession) {
        let heard = self.clone();
        session.subscribe(async move |event: SessionEvent, _: ListenerContext| heard.note(&event)).detach();
    }

    fn note(&self, event: &SessionEvent) {
        let name = match event {
            SessionEvent::Agent(AgentEvent::MessageUpdate { .. }) => return,
            SessionEvent::Agent(event) => format!("{event:?}"),
            event => format!("{event:?}"),
        };
        let name: String = name.chars().take_while(char::is_ascii_alphanumeric).collect();
        self.0.lock().unwrap().push(name);
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A tool that tells when it runs, and ends when it is aborted.
fn waiting_tool() -> (Arc<dyn AgentTool>, Arc<tokio::sync::Notify>, Arc<tokio::sync::Notify>) {
    let (begun, aborted) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (tell_begun, tell_aborted) = (begun.clone(), aborted.clone());
    let run = async move |_: serde_json::Map<String, serde_json::Value>, context: ToolContext| {
        tell_begun.notify_one();
        context.signal.cancelled().await;
        tell_aborted.notify_one();
        Ok(ToolOutput::text("ended"))
    };
    let declaration = pi_ai::ToolDeclaration::new("wait", "Waits.", serde_json::json!({"type": "object"}));
    (Arc::new(Tool::from_declaration(declaration, run)), begun, aborted)
}
