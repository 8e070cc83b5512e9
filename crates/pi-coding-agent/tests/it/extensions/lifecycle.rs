//! Beginnings and ends.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use pi_ai::faux::FauxReply;
use pi_coding_agent::{
    extensions::{
        EventKind, ExtensionApi,
        event::{self, ForkDecision, SwitchDecision, TrustDecision},
        named,
    },
    resources::DiscoveredPaths,
    sdk::{AgentSessionRuntime, RuntimeError, create_agent_session},
    session::SessionManager,
};
use serde_json::json;

use super::{
    acceptance::tool,
    support::{Fixture, Scripted, options},
};

type Log = Arc<Mutex<Vec<String>>>;

/// Keeps the names of all events, but those of deltas.
fn recorder(log: &Log) -> impl pi_coding_agent::extensions::Extension + use<> {
    let log = log.clone();
    named("recorder", move |pi: &mut ExtensionApi| {
        let quiet = [EventKind::MessageUpdate, EventKind::ToolExecutionUpdate];
        for kind in EventKind::ALL.iter().filter(|kind| !quiet.contains(kind)) {
            let log = log.clone();
            pi.on_json(*kind, move |event, _ctx| {
                log.lock().unwrap().push(event["type"].as_str().unwrap().to_owned());
                Box::pin(async { Ok(serde_json::Value::Null) })
            });
        }
    })
}

#[tokio::test]
async fn events_come_in_the_order_that_extensions_rely_on() {
    let log = Log::default();
    let replies = [FauxReply::tool_call("deploy", json!({})), FauxReply::text("Done.")];
    let fixture = Fixture::with(replies, |options| options.tool(tool("deploy")).extension(recorder(&log))).await;
    fixture.session.prompt("go").await.unwrap();
    fixture.session.dispose().await.unwrap();
    let expected = "project_trust session_start resources_discover input before_agent_start agent_start turn_start \
                    message_start message_end message_start message_end context context_with_system message_start message_end \
                    tool_execution_start tool_call tool_result tool_execution_end message_start message_end turn_end \
                    turn_start context context_with_system message_start message_end turn_end agent_end \
                    agent_before_settle agent_settled session_shutdown";
    assert_eq!(log.lock().unwrap().join(" "), expected);
}

#[tokio::test]
async fn an_extension_decides_about_trust_and_brings_resources() {
    let model = Scripted::new([FauxReply::text("ok")]);
    let (options, folder) = options(&model);
    let prompts = folder.path().join("brought");
    std::fs::create_dir(&prompts).unwrap();
    std::fs::write(prompts.join("greet.md"), "Greet $1 kindly.\n").unwrap();
    let brought = prompts.clone();
    let extension = named("bringer", move |pi: &mut ExtensionApi| {
        let brought = brought.clone();
        pi.on(event::ProjectTrust, async |_event, _ctx| TrustDecision::Trust(event::Remember::Once));
        pi.on(event::ResourcesDiscover, async move |_event, _ctx| DiscoveredPaths {
            prompts: vec![brought.clone()],
            ..DiscoveredPaths::default()
        });
    });
    let session = create_agent_session(options.extension(extension)).await.unwrap();
    session.prompt("/greet Kim").await.unwrap();
    assert_eq!(model.said(0), ["user: Greet Kim kindly.\n"]);
    session.reload().await;
    assert!(session.resources().prompt_templates.iter().any(|template| template.name == "greet"));
    session.dispose().await.unwrap();
}

#[tokio::test]
async fn a_reload_loads_extensions_again_and_takes_their_tools_over() {
    let loads = Log::default();
    let (log, told) = (loads.clone(), loads.clone());
    let fixture = Fixture::new(
        [],
        named("reloaded", move |pi: &mut ExtensionApi| {
            log.lock().unwrap().push("load".into());
            pi.register_tool(tool("deploy"));
            let (start, end) = (told.clone(), told.clone());
            pi.on(event::SessionStart, async move |event, _ctx| {
                start.lock().unwrap().push(format!("start {:?}", event.reason));
            });
            pi.on(event::SessionShutdown, async move |event, _ctx| {
                end.lock().unwrap().push(format!("end {:?}", event.reason));
            });
        }),
    )
    .await;
    fixture.session.reload().await;
    assert_eq!(fixture.session.active_tools(), ["deploy"]);
    fixture.session.dispose().await.unwrap();
    let expected = ["load", "start Startup", "end Reload", "load", "start Reload", "end Quit"];
    assert_eq!(*loads.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_tool_that_is_not_brought_again_is_gone_and_what_it_replaced_is_back() {
    let loads = Arc::new(Mutex::new(0));
    let fixture = Fixture::with([], |options| {
        options.tool(tool("deploy")).extension(named("fickle", move |pi: &mut ExtensionApi| {
            let mut loads = loads.lock().unwrap();
            if *loads == 0 {
                pi.register_tool(tool("deploy")).register_tool(tool("extra"));
            }
            *loads += 1;
        }))
    })
    .await;
    assert_eq!(fixture.session.active_tools(), ["deploy", "extra"]);
    fixture.session.reload().await;
    assert_eq!(fixture.session.active_tools(), ["deploy"]);
    assert!(!fixture.session.known_tools().contains(&"extra".to_owned()));
}

#[tokio::test]
async fn extensions_are_asked_before_another_session_takes_the_place() {
    let log = Log::default();
    let allowed = Arc::new(Mutex::new(false));
    let folders = Arc::new(Mutex::new(Vec::new()));
    let (told, may, keep) = (log.clone(), allowed.clone(), folders.clone());
    let factory = async move |manager: SessionManager, start| {
        let (told, may) = (told.clone(), may.clone());
        let extension = named("guard", move |pi: &mut ExtensionApi| {
            let (switch, fork, start, end) = (may.clone(), may.clone(), told.clone(), told.clone());
            pi.on(event::SessionBeforeSwitch, async move |_event, _ctx| match *switch.lock().unwrap() {
                true => SwitchDecision::Proceed,
                false => SwitchDecision::Cancel,
            });
            pi.on(event::SessionBeforeFork, async move |_event, _ctx| match *fork.lock().unwrap() {
                true => ForkDecision::Proceed,
                false => ForkDecision::Cancel,
            });
            pi.on(event::SessionStart, async move |event, _ctx| {
                start.lock().unwrap().push(format!("start {:?}", event.reason));
            });
            pi.on(event::SessionShutdown, async move |event, _ctx| {
                end.lock().unwrap().push(format!("end {:?}", event.reason));
            });
        });
        let (options, folder) = options(&Scripted::new([]));
        keep.lock().unwrap().push(folder);
        create_agent_session(options.session_manager(manager).session_start(start).extension(extension)).await
    };
    let runtime = AgentSessionRuntime::new(SessionManager::in_memory(), factory).await.unwrap();
    assert!(matches!(runtime.new_session(None).await, Err(RuntimeError::Cancelled)));
    *allowed.lock().unwrap() = true;
    runtime.new_session(None).await.unwrap();
    runtime.dispose().await.unwrap();
    assert_eq!(*log.lock().unwrap(), ["start Startup", "end New", "start New", "end Quit"]);
}
