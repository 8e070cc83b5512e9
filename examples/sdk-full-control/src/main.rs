//! A session whose every boundary is the application's own: nothing is read from the machine, nothing is written to it.
//!
//! Models, settings, files, the record, resources, time and ids are supplied; the built-in tools work in a folder that
//! is only in memory. A runtime replaces the session, and its listener stays. The model is a scripted one, so that the
//! example runs anywhere.

use std::{
    error::Error,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use pi_agent_core::{Tool, ToolContext};
use pi_ai::{
    IdSource, ThinkingLevel, Timestamp,
    faux::{FauxProvider, FauxReply},
    time::FixedClock,
};
use pi_coding_agent::{
    agent_session::{ListenerContext, SessionEvent, SessionTool},
    host::Host,
    resources::{DiscoveredPaths, ProjectTrust, PromptText, ResourceLoader, Resources, SettingsManager},
    sdk::{AgentSessionRuntime, CreateSessionError, SessionOptions, SessionStart, create_agent_session},
    session::{NewSession, SessionEnvironment, SessionManager},
    tool_selection::{ToolList, ToolSelection},
    workspace::memory::{MemoryFiles, memory_workspace},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Ids that count up, so that every run is the same.
#[derive(Clone, Default)]
struct CountedIds(Arc<Mutex<u64>>);

impl CountedIds {
    fn next(&self) -> String {
        let mut count = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *count += 1;
        format!("{:08x}-0000-4000-8000-000000000000", *count)
    }
}

impl IdSource for CountedIds {
    fn uuid_v4(&self) -> String {
        self.next()
    }

    fn uuid_v7(&self) -> String {
        self.next()
    }
}

/// Resources that are compiled in. A loader that reads something is loaded by whoever makes it: a session only reloads
/// it when it is asked to.
struct BuiltIn(Arc<Resources>);

#[async_trait]
impl ResourceLoader for BuiltIn {
    fn resources(&self) -> Arc<Resources> {
        self.0.clone()
    }

    async fn reload(&self) {}

    async fn extend(&self, _paths: DiscoveredPaths) {}
}

#[derive(Deserialize, JsonSchema)]
struct Ticket {
    /// What is to be done.
    title: String,
}

/// What the host keeps for all of its sessions.
#[derive(Clone)]
struct Product {
    model: FauxProvider,
    files: MemoryFiles,
    environment: SessionEnvironment,
    tickets: Arc<Mutex<Vec<String>>>,
}

impl Product {
    fn new(replies: impl IntoIterator<Item = FauxReply>) -> Self {
        let environment = SessionEnvironment {
            clock: Arc::new(FixedClock(Timestamp::from_millis(1_800_000_000_000))),
            ids: Arc::new(CountedIds::default()),
            ..SessionEnvironment::default()
        };
        Self {
            model: FauxProvider::new(replies),
            files: MemoryFiles::new([("/project/README.md", "# A project\n")]),
            environment,
            tickets: Arc::default(),
        }
    }

    /// The record of a session. A server puts its own store behind `SessionManager::open_store`.
    fn record(&self) -> SessionManager {
        let new = NewSession { cwd: "/project".into(), ..NewSession::default() };
        SessionManager::in_memory_with(new, self.environment.clone())
    }

    fn options(&self, manager: SessionManager, start: SessionStart) -> SessionOptions {
        let tickets = self.tickets.clone();
        let file_ticket = Tool::new("file_ticket", "Files a ticket.", async move |ticket: Ticket, _: ToolContext| {
            let mut tickets = tickets.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            tickets.push(ticket.title);
            Ok(format!("ticket {}", tickets.len()))
        });
        let file_ticket = SessionTool {
            snippet: Some("files a ticket for work that is left".to_owned()),
            guidelines: vec!["File a ticket for everything that you leave undone.".to_owned()],
            ..SessionTool::custom(file_ticket)
        };
        let workspace =
            memory_workspace("/project", [] as [(PathBuf, &str); 0]).with_files(Arc::new(self.files.clone()));
        let only = ["read", "write", "file_ticket"].map(str::to_owned).to_vec();
        let mut resources = Resources::default();
        resources.append_system_prompt =
            vec![PromptText { text: "You work for the night shift.".to_owned(), source: None }];
        SessionOptions::default()
            .host(self.host())
            .trust(ProjectTrust::Untrusted)
            .settings(SettingsManager::in_memory(json!({"compaction": {"enabled": true}, "retry": {"maxRetries": 1}})))
            .resource_loader(BuiltIn(Arc::new(resources)))
            .stream_fn(self.model.clone())
            .model(FauxProvider::model())
            .thinking_level(ThinkingLevel::Off)
            .scoped_models([FauxProvider::model().into()])
            .workspace(workspace)
            .tool_selection(ToolSelection { only: Some(ToolList::Exactly(only)), ..ToolSelection::default() })
            .session_tool(file_ticket)
            .session_manager(manager)
            .session_start(start)
            .clock(FixedClock(Timestamp::from_millis(1_800_000_000_000)))
            .ids(CountedIds::default())
    }

    /// Surroundings that are nobody's: no home, no variables.
    fn host(&self) -> Host {
        Host {
            cwd: "/project".into(),
            home: None,
            agent_dir: "/nowhere/agent".into(),
            temp_dir: "/nowhere/tmp".into(),
            variables: Default::default(),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", night_shift().await?);
    Ok(())
}

/// Two sessions one after another, and what they left.
async fn night_shift() -> Result<String, Box<dyn Error>> {
    let product = Product::new([
        FauxReply::tool_call("write", json!({"path": "NOTES.md", "content": "Read me first.\n"})),
        FauxReply::tool_call("file_ticket", json!({"title": "Review NOTES.md"})),
        FauxReply::text("Written, and a ticket is filed."),
        FauxReply::tool_call("read", json!({"path": "NOTES.md"})),
        FauxReply::text("It says: read me first."),
    ]);
    let (factory, first) = (product.clone(), product.record());
    let runtime = AgentSessionRuntime::new(first, async move |manager: SessionManager, start: SessionStart| {
        let session = create_agent_session(factory.options(manager, start)).await?;
        Ok::<_, CreateSessionError>(session)
    })
    .await?;
    let settled = Arc::new(Mutex::new(0));
    let counted = settled.clone();
    let subscription = runtime.subscribe(async move |event: SessionEvent, _: ListenerContext| {
        if matches!(event, SessionEvent::AgentSettled { .. }) {
            *counted.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += 1;
        }
    });
    let mut lines = vec![runtime.session()?.prompt("Write notes for whoever comes next.").await?.into_text()?];
    runtime.new_session(None).await?;
    let session = runtime.session()?;
    lines.push(session.prompt("What do the notes say?").await?.into_text()?);
    let stats = session.stats().await?;
    lines.push(format!("{} messages, {} tool call", stats.total_messages, stats.tool_calls));
    drop(subscription);
    runtime.dispose().await?;
    let tickets = product.tickets.lock().unwrap_or_else(std::sync::PoisonError::into_inner).join(", ");
    lines.push(format!("tickets: {tickets}"));
    let settled = *settled.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    lines.push(format!("prompts heard: {settled}"));
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_sessions_share_the_files_and_the_listener() {
        let told = night_shift().await.unwrap();
        assert_eq!(
            told,
            "Written, and a ticket is filed.\nIt says: read me first.\n5 messages, 1 tool call\n\
             tickets: Review NOTES.md\nprompts heard: 2"
        );
    }

    #[tokio::test]
    async fn the_prompt_is_made_of_what_was_supplied() {
        let product = Product::new([FauxReply::text("ready")]);
        let session = create_agent_session(product.options(product.record(), SessionStart::default())).await.unwrap();
        session.prompt("Are you there?").await.unwrap();
        let prompt = session.system_prompt();
        assert!(prompt.contains("night shift") && prompt.contains("files a ticket for work"), "{prompt}");
        assert_eq!(session.active_tools(), ["read", "write", "file_ticket"]);
        assert_eq!(session.session_manager().branch_entries()[0].id, "00000002");
        session.dispose().await.unwrap();
    }
}
