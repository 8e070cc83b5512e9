//! What a session is made with.

use std::sync::Arc;

use pi_agent_core::{Tool, ToolContext};
use pi_ai::{
    AssistantMessage, ThinkingLevel,
    faux::{FauxProvider, FauxReply},
    models::{Environment, Models},
    transcript::TranscriptItem,
};
use pi_coding_agent::{
    agent_session::{AgentSessionError, LeaveBehind, Queued, SessionPrompt, SessionRun},
    compaction::SummaryInstructions,
    resources::{DiscoveredPaths, ResourceLoader, Resources, SettingsManager},
    sdk::{SessionOptions, create_agent_session},
    session::{ExportFormat, NewSession, SessionEnvironment, SessionManager, SyncPolicy},
    tool_selection::{ToolBase, ToolList, ToolSelection},
};
use pretty_assertions::assert_eq;
use serde_json::json;

use super::{Place, said};

fn selection(base: ToolBase, only: Option<&[&str]>, exclude: &[&str]) -> ToolSelection {
    ToolSelection {
        base,
        only: only.map(|names| ToolList::Exactly(names.iter().map(ToString::to_string).collect())),
        exclude: exclude.iter().map(ToString::to_string).collect(),
        ..ToolSelection::default()
    }
}

#[tokio::test]
async fn tools_are_chosen_left_out_and_added() {
    let place = Place::new();
    let cases = [
        (selection(ToolBase::Usual, None, &[]), "read bash edit write own"),
        (selection(ToolBase::Usual, Some(&["grep", "own"]), &[]), "grep own"),
        (selection(ToolBase::NoBuiltins, None, &[]), "own"),
        (selection(ToolBase::Nothing, None, &[]), ""),
        (selection(ToolBase::Usual, None, &["bash", "own"]), "read edit write"),
    ];
    for (selection, offered) in cases {
        let own = Tool::new("own", "Does something.", async |_: (), _: ToolContext| Ok("done"));
        let options = place.options(&FauxProvider::new([])).tool(own).tool_selection(selection);
        let session = create_agent_session(options).await.unwrap();
        assert_eq!(session.active_tools().join(" "), offered);
    }
}

#[tokio::test]
async fn a_session_works_where_its_record_says_unless_told_otherwise() {
    let place = Place::new();
    std::fs::write(place.cwd().join("AGENTS.md"), "Be kind.").unwrap();
    let new = NewSession { cwd: place.cwd(), ..NewSession::default() };
    let manager = SessionManager::in_memory_with(new, SessionEnvironment::default());
    let provider = FauxProvider::new([FauxReply::text("yes"), FauxReply::text("yes")]);
    let options = || {
        SessionOptions::default()
            .agent_dir(place.0.path().join("agent"))
            .stream_fn(provider.clone())
            .model(FauxProvider::model())
    };
    let session = create_agent_session(options().session_manager(manager)).await.unwrap();
    session.prompt("hi").await.unwrap();
    assert!(session.system_prompt().contains("Be kind."), "{}", session.system_prompt());
    let elsewhere = place.0.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let session = create_agent_session(options().cwd(&elsewhere)).await.unwrap();
    session.prompt("hi").await.unwrap();
    assert!(!session.system_prompt().contains("Be kind."));
    assert_eq!(session.session_manager().cwd(), elsewhere);
}

#[tokio::test]
async fn the_model_is_the_sessions_own_then_the_scopes_then_the_settings() {
    let place = Place::new();
    let models = Models::builder()
        .environment(Environment::new(|name| (name == "ANTHROPIC_API_KEY").then(|| "key".to_owned())))
        .build();
    let ids: Vec<String> = models.available().await.unwrap().iter().take(3).map(|model| model.id.to_string()).collect();
    let [first, second, third] = ids.as_slice() else { panic!("{ids:?}") };
    let found = |id: &str| models.find("anthropic", id).unwrap();
    let settings = json!({"defaultProvider": "anthropic", "defaultModel": first, "defaultThinkingLevel": "low"});
    let options = |manager: &SessionManager| {
        SessionOptions::default()
            .host(place.host())
            .models(models.clone())
            .settings(SettingsManager::in_memory(settings.clone()))
            .session_manager(manager.clone())
    };
    let empty = SessionManager::in_memory();
    let session = create_agent_session(options(&empty)).await.unwrap();
    assert_eq!(session.model().unwrap().id, **first);
    assert_eq!(session.thinking_level(), found(first).clamp(ThinkingLevel::Low));

    let scope = [found(second).into(), found(third).into()];
    let session =
        create_agent_session(options(&SessionManager::in_memory()).scoped_models(scope.clone())).await.unwrap();
    assert_eq!(session.model().unwrap().id, **second);

    let resumed = SessionManager::in_memory();
    resumed.append_model_change("anthropic", third.as_str()).await.unwrap();
    let session = create_agent_session(options(&resumed).scoped_models(scope)).await.unwrap();
    assert_eq!((session.model().unwrap().id.as_str(), session.model_notice()), (third.as_str(), None));

    let lost = SessionManager::in_memory();
    lost.append_model_change("somebody", "gone-model").await.unwrap();
    let session = create_agent_session(options(&lost)).await.unwrap();
    assert_eq!(session.model().unwrap().id, **first);
    let notice = session.model_notice().unwrap();
    assert!(notice.contains("somebody/gone-model") && notice.contains(first.as_str()), "{notice}");
}

#[tokio::test]
async fn a_session_without_a_model_says_what_is_missing() {
    let place = Place::new();
    let models = Models::builder().environment(Environment::new(|_| None)).build();
    let options = SessionOptions::default().host(place.host()).models(models);
    let session = create_agent_session(options.session_manager(SessionManager::in_memory())).await.unwrap();
    assert_eq!((session.model(), session.thinking_level()), (None, ThinkingLevel::Off));
    let error = session.prompt("hi").await.unwrap_err().to_string();
    assert!(error.contains("ANTHROPIC_API_KEY"), "{error}");
}

#[tokio::test]
async fn a_session_tells_its_totals_and_is_exported() {
    let place = Place::new();
    let usage = pi_ai::Usage { input: 90, output: 10, total_tokens: 100, ..pi_ai::Usage::default() };
    let content = vec![pi_ai::AssistantBlock::text("hello")];
    let reply = FauxReply::message(AssistantMessage { content, usage, ..AssistantMessage::default() });
    let session = place.session([reply]).await;
    session.prompt("hi").await.unwrap();
    let stats = session.stats().await.unwrap();
    assert_eq!((stats.user_messages, stats.assistant_messages), (1, 1));
    assert!(session.context_usage().unwrap().tokens.unwrap() > 0);
    let file = place.cwd().join("copy.jsonl");
    session.export_to(&file, ExportFormat::of_name(&file)).await.unwrap();
    assert!(session.export_to(&file, ExportFormat::Jsonl).await.is_err());
    let copy = super::open_for_writing(&file).await;
    assert_eq!(copy.context().messages.len(), session.messages().len());
    session.export_to(place.cwd().join("notes.md"), ExportFormat::Markdown).await.unwrap();
    assert!(std::fs::read_to_string(place.cwd().join("notes.md")).unwrap().contains("## User\n\nhi"));
    assert_eq!(said(&session), ["hi", "hello"]);
    session.dispose().await.unwrap();
}

#[tokio::test]
async fn a_setting_says_when_the_record_is_forced_to_the_disk() {
    let place = Place::new();
    let cases = [
        (json!({}), SyncPolicy::PerTurn),
        (json!({"sessionSync": "entry"}), SyncPolicy::PerEntry),
        (json!({"sessionSync": "never"}), SyncPolicy::Never),
    ];
    for (settings, sync) in cases {
        let settings = SettingsManager::in_memory(settings);
        let options = place.options(&FauxProvider::new([])).settings(settings);
        let session = create_agent_session(options).await.unwrap();
        assert_eq!(session.session_manager().environment().sync, sync);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_sessions_with_different_surroundings_run_side_by_side() {
    let running = (0..16).map(|number| {
        tokio::spawn(async move {
            let place = Place::new();
            std::fs::write(place.cwd().join("AGENTS.md"), format!("You are number {number}.")).unwrap();
            let read = FauxReply::tool_call("read", json!({"path": "AGENTS.md"}));
            let session = place.session([read, FauxReply::text("done")]).await;
            session.prompt("Who are you?").await.unwrap();
            assert!(session.system_prompt().contains(&format!("number {number}.")));
            assert!(said(&session)[2].contains(&format!("number {number}.")));
            session.dispose().await.unwrap();
        })
    });
    for session in running.collect::<Vec<_>>() {
        session.await.unwrap();
    }
}

/// A loader of the application's own.
struct OwnLoader {
    reloads: Arc<std::sync::atomic::AtomicUsize>,
}

#[async_trait::async_trait]
impl ResourceLoader for OwnLoader {
    fn resources(&self) -> Arc<Resources> {
        Arc::default()
    }

    async fn reload(&self) {
        self.reloads.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }

    async fn extend(&self, _found: DiscoveredPaths) {}
}

#[tokio::test]
async fn whoever_makes_a_loader_has_it_load() {
    let place = Place::new();
    std::fs::write(place.cwd().join("AGENTS.md"), "Never read.").unwrap();
    let reloads = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let loader = OwnLoader { reloads: reloads.clone() };
    let options = place.options(&FauxProvider::new([FauxReply::text("ok")])).resource_loader(loader);
    let session = create_agent_session(options).await.unwrap();
    session.prompt("hi").await.unwrap();
    assert!(!session.system_prompt().contains("Never read."));
    assert_eq!(reloads.load(std::sync::atomic::Ordering::SeqCst), 0);
    session.reload_resources().await;
    assert_eq!(reloads.load(std::sync::atomic::Ordering::SeqCst), 1);
    session.dispose().await.unwrap();
}

#[tokio::test]
async fn a_reload_tells_the_model_only_the_sections_that_changed() {
    let place = Place::new();
    let instructions = place.cwd().join("AGENTS.md");
    std::fs::write(&instructions, "Use tabs.").unwrap();
    let session = place.session([FauxReply::text("one"), FauxReply::text("two"), FauxReply::text("three")]).await;
    session.prompt("first").await.unwrap();
    std::fs::write(&instructions, "Use blanks.").unwrap();
    // Nothing is watched: it counts when somebody asks for it.
    session.prompt("second").await.unwrap();
    assert!(session.system_prompt().contains("Use tabs."));
    session.reload_resources().await;
    session.prompt("third").await.unwrap();
    let patches: Vec<_> = session.messages().iter().filter_map(|message| message.as_system().cloned()).collect();
    assert_eq!(patches.len(), 2);
    let changed: Vec<&str> = patches[1].sections.keys().map(String::as_str).collect();
    assert_eq!(changed, ["project_context"]);
    assert!(patches[1].tools_added.is_empty() && patches[1].tools_removed.is_empty());
    assert!(session.system_prompt().contains("Use blanks.") && !session.system_prompt().contains("Use tabs."));
    session.dispose().await.unwrap();
}

#[tokio::test]
async fn a_prompt_has_pictures_and_a_second_one_says_how_it_comes_in() {
    let place = Place::new();
    let provider = FauxProvider::new([FauxReply::tool_call("wait", json!({})), FauxReply::text("seen")]);
    let (tool, begun, _aborted) = super::waiting_tool();
    let session = create_agent_session(place.options(&provider).tool(tool)).await.unwrap();
    let picture = pi_ai::ImageContent { mime_type: "image/png".into(), data: "aGk=".into() };
    let run = session.prompt(SessionPrompt { text: "What is this?".into(), images: vec![picture.clone()] });
    begun.notified().await;
    assert!(matches!(session.prompt("and this?").await, Err(AgentSessionError::Busy)));
    assert_eq!(session.steer("and this?").await.unwrap(), Queued::Waits);
    let sent = provider.requests()[0].context.messages().to_vec();
    let asked = sent.iter().find_map(pi_ai::Message::as_user).unwrap();
    let pi_ai::Content::Blocks(blocks) = &asked.content else { panic!("{asked:?}") };
    assert_eq!(blocks[1], pi_ai::InputBlock::Image(picture));
    session.abort();
    run.await.unwrap();
    session.dispose().await.unwrap();
}

/// What a session needs comes in through its options, so that several in one process never meet.
#[test]
fn nothing_in_the_library_is_global() {
    /// Where the process's own surroundings are read, and values that are the same for everybody.
    const KNOWN: [&str; 5] = [
        "src/host.rs",
        "src/bin/pi.rs",
        "src/session/store/lock.rs",
        "src/guide/mod.rs",
        "src/guide/intent/table/mod.rs",
    ];
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("src")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            if path.is_dir() {
                if !name.starts_with("src/testing") {
                    folders.push(path);
                }
                continue;
            }
            if KNOWN.contains(&name.as_str()) || name.ends_with("tests.rs") || name.starts_with("src/cli/") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let code = || code.lines().filter(|line| !line.trim_start().starts_with("//"));
            for word in [
                "env::var",
                "env::vars",
                "env::current_dir",
                "env::home_dir",
                "env::temp_dir",
                "env::set_",
                "LazyLock",
                "thread_local!",
                "static mut",
                ": OnceLock",
                ": Mutex<",
            ] {
                let is_static = |line: &&str| line.trim_start().trim_start_matches("pub ").starts_with("static ");
                let is_global = |line: &&str| line.contains(word) && (word.starts_with("env") || is_static(line));
                found.extend(code().filter(is_global).map(|line| format!("{name}: {}", line.trim())));
            }
        }
    }
    assert_eq!(found, [""; 0]);
}

/// Whoever embeds sessions runs them on any thread.
#[test]
fn the_futures_of_the_sdk_can_be_sent() {
    fn is_send<T: Send>(_: &T) {}
    let place = Place::new();
    is_send(&create_agent_session(SessionOptions::default().host(place.host())));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let session = runtime.block_on(place.session([]));
    is_send(&session.prompt_as::<Vec<String>>("x"));
    is_send::<Option<SessionRun>>(&None);
    is_send(&session.steer("x"));
    is_send(&session.reload());
    is_send(&session.export_to("x", ExportFormat::Html));
    is_send(&session.navigate_to(&"x".into(), LeaveBehind::Silently));
    is_send(&session.compact(SummaryInstructions::Usual));
    is_send(&session.stats());
    is_send(&session.clone().dispose());
}
