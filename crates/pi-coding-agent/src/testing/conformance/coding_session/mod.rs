//! Whole sessions against a scripted server: area `coding_session`.

mod script;
mod show;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use pi_ai::{CancellationToken, Clock, Model, SessionId, ThinkingLevel, Timestamp, time::FixedClock};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::script::{ScriptedServer, ScriptedTool};
use crate::{
    agent_session::{
        AgentSession, CustomMessage, ForModel, LeaveBehind, ListenerContext, SessionEvent, WeakAgentSession,
    },
    compaction::SummaryInstructions,
    host::Host,
    resources::{SettingsManager, SystemPromptOptions},
    sdk::{SessionOptions, create_agent_session},
    session::{Access, EntryBody, EntryId, NewSession, SessionEnvironment, SessionManager},
    tool_selection::{ToolBase, ToolSelection},
    workspace::local::{LocalOptions, local_workspace},
};

/// The clock of the vectors.
const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    #[serde(default)]
    replies: Vec<Value>,
    steps: Vec<Map<String, Value>>,
    #[serde(default)]
    settings: Value,
    #[serde(default)]
    tools: Map<String, Value>,
    #[serde(default)]
    during: Vec<During>,
    thinking_level: Option<ThinkingLevel>,
    context_window: Option<u64>,
}

/// Something to do when the first event of a kind comes.
#[derive(Clone, Deserialize)]
struct During {
    on: String,
    r#do: Vec<Map<String, Value>>,
}

/// Runs a session; `None` for a file that is not known, or a case that cannot be read.
pub async fn run(file_stem: &str, input: &Value) -> Option<Value> {
    if file_stem != "flow" {
        return None;
    }
    let case: Case = serde_json::from_value(input.clone()).ok()?;
    let folder = tempfile::tempdir().ok()?;
    let mut run = Run::new(case, folder.path().to_owned()).await?;
    let mut errors = Vec::new();
    for (index, step) in run.case.steps.clone().iter().enumerate() {
        if run.step(step).await.is_err() {
            errors.push(index);
        }
    }
    let manager = run.session.session_manager();
    let context: Vec<Value> = manager.context().messages.iter().map(show::message).collect();
    let lines = show::lines(manager);
    let events = std::mem::take(&mut *run.events.lock().unwrap_or_else(PoisonError::into_inner));
    Some(json!({
        "events": events, "errors": errors, "requests": run.server.requests(), "lines": lines, "context": context,
    }))
}

struct Run {
    case: Arc<Case>,
    folder: PathBuf,
    file: PathBuf,
    server: ScriptedServer,
    events: Arc<Mutex<Vec<Value>>>,
    session: AgentSession,
}

impl Run {
    async fn new(case: Case, folder: PathBuf) -> Option<Self> {
        let case = Arc::new(case);
        let server = ScriptedServer::new(case.replies.clone());
        let file = folder.join("session.jsonl");
        let new = NewSession { cwd: "/project".into(), id: Some(SessionId::from("s")), parent_session: None };
        let manager = SessionManager::create_at(&file, new, environment()).ok()?;
        let events = Arc::default();
        let session = open(&case, &folder, manager, &server, &events, Begin::New).await?;
        Some(Self { case, folder, file, server, events, session })
    }

    async fn step(&mut self, step: &Map<String, Value>) -> Result<(), Value> {
        let failed = |error: &dyn std::fmt::Display| json!(error.to_string());
        let text = |key: &str| step.get(key).and_then(Value::as_str);
        let session = self.session.clone();
        if let Some(prompt) = text("prompt") {
            session.prompt(prompt).await.map_err(|error| failed(&error))?;
        } else if step.contains_key("compact") {
            session.compact(SummaryInstructions::Usual).await.map_err(|error| failed(&error))?;
        } else if let Some(names) = step.get("set_active_tools").and_then(Value::as_array) {
            session.set_active_tools(names.iter().filter_map(Value::as_str).map(str::to_owned));
        } else if let Some(id) = text("set_model") {
            session.set_model(model(id, &self.case)).await.map_err(|error| failed(&error))?;
        } else if let Some(level) = text("set_thinking_level") {
            let level = level.parse().map_err(|error: pi_ai::model::UnknownThinkingLevel| failed(&error))?;
            session.set_thinking_level(level).await.map_err(|error| failed(&error))?;
        } else if let Some(command) = text("bash") {
            let for_model = if step.get("exclude") == Some(&json!(true)) { ForModel::Hidden } else { ForModel::Shown };
            let ran = session.execute_bash(command, for_model, CancellationToken::new()).await;
            ran.map_err(|error| failed(&error))?;
        } else if let Some(name) = text("name") {
            session.set_name(name).await.map_err(|error| failed(&error))?;
        } else if let Some(content) = text("custom_message") {
            let message =
                CustomMessage { custom_type: "n".into(), content: content.into(), ..CustomMessage::default() };
            if step.get("trigger") == Some(&json!(true)) {
                session.prompt_with(message).await.map_err(|error| failed(&error))?;
            } else {
                session.add_message(message).await.map_err(|error| failed(&error))?;
            }
        } else if let Some(nth) = step.get("navigate_to_user").and_then(Value::as_u64) {
            let leave = match step.get("summarize") {
                Some(Value::Bool(true)) => LeaveBehind::Summarized(SummaryInstructions::Usual),
                _ => LeaveBehind::Silently,
            };
            let target = nth_user_message(session.session_manager(), nth).ok_or(Value::Null)?;
            let navigated = session.navigate_to(&target, leave).await.map_err(|error| failed(&error))?;
            let mut event = json!({"type": "(navigated)"});
            if let Some(text) = navigated.text {
                event["editorText"] = text.into();
            }
            self.record(event);
        } else if step.contains_key("reopen") {
            drop(session);
            self.reopen().await.ok_or(Value::Null)?;
        }
        Ok(())
    }

    async fn reopen(&mut self) -> Option<()> {
        // The file has one writer at a time: everything that holds the old session goes first.
        let placeholder = self.placeholder().await?;
        let closing = std::mem::replace(&mut self.session, placeholder);
        closing.dispose().await.ok()?;
        let manager =
            SessionManager::open(&self.file, Access::Write, Path::new("/project"), environment()).await.ok()?;
        self.record(json!({"type": "(reopened)"}));
        self.session = open(&self.case, &self.folder, manager, &self.server, &self.events, Begin::Resumed).await?;
        Some(())
    }

    async fn placeholder(&self) -> Option<AgentSession> {
        let manager = SessionManager::in_memory();
        open(&self.case, &self.folder, manager, &self.server, &Arc::default(), Begin::New).await
    }

    fn record(&self, event: Value) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Begin {
    New,
    Resumed,
}

async fn open(
    case: &Arc<Case>,
    folder: &Path,
    manager: SessionManager,
    server: &ScriptedServer,
    events: &Arc<Mutex<Vec<Value>>>,
    begin: Begin,
) -> Option<AgentSession> {
    let host = Host {
        cwd: folder.to_owned(),
        home: None,
        agent_dir: folder.join("agent"),
        temp_dir: folder.to_owned(),
        variables: std::env::vars_os().filter(|(name, _)| name == "PATH").collect(),
    };
    let recorded = manager.context().model.map(|choice| choice.model_id.to_string());
    let asked = recorded.unwrap_or_else(|| "m1".to_owned());
    let workspace = local_workspace(LocalOptions {
        cwd: folder.to_owned(),
        temp_dir: folder.to_owned(),
        ..LocalOptions::default()
    });
    let mut options = SessionOptions::default()
        .host(host)
        .settings(SettingsManager::in_memory(case.settings.clone()))
        .workspace(workspace)
        .stream_fn(server.clone())
        .model(model(&asked, case))
        .session_manager(manager)
        .tool_selection(ToolSelection { base: ToolBase::NoBuiltins, ..ToolSelection::default() })
        .system_prompt(SystemPromptOptions { cwd: "/project".into(), ..SystemPromptOptions::default() })
        .clock(FixedClock(NOW));
    if let (Some(level), Begin::New) = (case.thinking_level, begin) {
        options = options.thinking_level(level);
    }
    for (name, behavior) in &case.tools {
        options = options.tool(ScriptedTool::new(name, behavior));
    }
    let session = create_agent_session(options).await.ok()?;
    let watch = Watch { events: events.clone(), during: Arc::new(Mutex::new(case.during.clone())) };
    let weak = session.downgrade();
    let listener = session.subscribe(async move |event: SessionEvent, _context: ListenerContext| {
        watch.take(event, &weak).await;
    });
    listener.detach();
    Some(session)
}

/// Records events, and does what a case says when they come.
#[derive(Clone)]
struct Watch {
    events: Arc<Mutex<Vec<Value>>>,
    during: Arc<Mutex<Vec<During>>>,
}

impl Watch {
    async fn take(&self, event: SessionEvent, session: &WeakAgentSession) {
        let Some(shown) = show::event(&event) else { return };
        let kind = shown["type"].clone();
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(shown);
        let due: Vec<During> = {
            let mut during = self.during.lock().unwrap_or_else(PoisonError::into_inner);
            let (due, later) = during.drain(..).partition(|action| kind == action.on);
            *during = later;
            due
        };
        for action in due.iter().flat_map(|during| &during.r#do) {
            let Some(session) = session.upgrade() else { return };
            if let Some(text) = action.get("steer").and_then(Value::as_str) {
                let _ = session.steer(text).await;
            } else if let Some(text) = action.get("follow_up").and_then(Value::as_str) {
                let _ = session.follow_up(text).await;
            } else if action.contains_key("abort") {
                session.abort();
            }
        }
    }
}

fn environment() -> SessionEnvironment {
    let clock: Arc<dyn Clock> = Arc::new(FixedClock(NOW));
    SessionEnvironment { clock, ..SessionEnvironment::default() }
}

fn model(id: &str, case: &Case) -> Arc<Model> {
    Arc::new(Model {
        id: id.into(),
        name: id.to_owned(),
        api: "openai-completions".into(),
        provider: "local".into(),
        base_url: "http://127.0.0.1:1/v1".to_owned(),
        reasoning: id == "m1",
        input: vec![pi_ai::model::InputKind::Text],
        context_window: case.context_window.unwrap_or(100_000),
        max_tokens: 1000,
        ..Model::default()
    })
}

fn nth_user_message(manager: &SessionManager, nth: u64) -> Option<EntryId> {
    let is_user = |id: &EntryId| match manager.entry(id.as_str()).map(|entry| entry.body) {
        Ok(EntryBody::Message(entry)) => entry.message.as_llm().is_some_and(|message| message.as_user().is_some()),
        _ => false,
    };
    let mut users = manager.branch_entries().into_iter().map(|entry| entry.id).filter(is_user);
    users.nth(usize::try_from(nth).ok()?)
}
