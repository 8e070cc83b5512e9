//! What goes to a provider, over a real socket.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use fake_llm::{Script, Server, Wire};
use pi_ai::models::{Models, Provider};
use pi_coding_agent::{
    agent_session::AgentSession,
    extensions::{
        ExtensionApi,
        event::{self, HeaderChanges},
        named,
    },
    sdk::create_agent_session,
};
use serde_json::json;

use super::support::{Scripted, options};

fn provider(id: &str, server: &Server) -> Provider {
    let model = pi_ai::Model {
        id: "m".into(),
        name: "m".into(),
        context_window: 100_000,
        max_tokens: 1000,
        ..Default::default()
    };
    Provider::new(id, server.base_url()).api("openai-completions").without_key().model(model)
}

async fn session(
    server: &Server,
    extension: impl Fn(&mut ExtensionApi) + Send + Sync + 'static,
) -> (AgentSession, Models, tempfile::TempDir) {
    let (_, folder) = options(&Scripted::new([]));
    let models = Models::builder().provider(provider("local", server)).build();
    let host = pi_coding_agent::host::Host {
        cwd: folder.path().to_owned(),
        home: None,
        agent_dir: folder.path().join("agent"),
        temp_dir: folder.path().to_owned(),
        variables: Default::default(),
    };
    let options = pi_coding_agent::sdk::SessionOptions::default()
        .host(host)
        .settings(pi_coding_agent::resources::SettingsManager::in_memory(json!({"retry": {"enabled": false}})))
        .model(models.find("local", "m").unwrap())
        .models(models.clone())
        .session_manager(pi_coding_agent::session::SessionManager::in_memory())
        .extension(named("wire-tap", extension));
    (create_agent_session(options).await.unwrap(), models, folder)
}

#[tokio::test]
async fn an_extension_sees_and_changes_what_goes_over_the_wire() {
    let server = Server::start(Script::new(Wire::OpenAiCompletions).reply("Hello."));
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = log.clone();
    let (session, _models, _folder) = session(&server, move |pi| {
        let (payload, response, raw) = (heard.clone(), heard.clone(), heard.clone());
        pi.on(event::BeforeProviderHeaders, async |_event, _ctx| {
            HeaderChanges::default().set("X-Team", "core").remove("user-agent")
        });
        pi.on(event::BeforeProviderRequest, async move |event, _ctx| {
            payload.lock().unwrap().push("payload".into());
            let mut changed = event.payload;
            changed["user"] = json!("team-core");
            changed
        });
        pi.on(event::AfterProviderResponse, async move |event, _ctx| {
            response.lock().unwrap().push(format!("status {}", event.status));
        });
        pi.on(event::ProviderStreamEvent, async move |event, _ctx| {
            raw.lock().unwrap().push(format!("{} {}", event.provider, event.data.starts_with('{')));
        });
    })
    .await;
    assert_eq!(session.prompt("hi").await.unwrap().into_text().unwrap(), "Hello.");
    let request = &server.requests()[0];
    assert_eq!(request.json()["user"], "team-core");
    assert_eq!(request.header("x-team"), Some("core"));
    let log = log.lock().unwrap();
    assert_eq!(log[..2], ["payload", "status 200"].map(str::to_owned));
    assert!(log.contains(&"local true".to_owned()), "{log:?}");
}

#[tokio::test]
async fn a_role_that_no_provider_knows_gets_through_as_a_raw_payload_only_and_gives_the_providers_own_words() {
    let server = Server::start(Script::new(Wire::OpenAiCompletions).reply("never"));
    let (session, _models, _folder) = session(&server, |pi| {
        // The converter cannot produce such a role: it does not compile. Writing the body by hand is the nearest way.
        pi.on(event::BeforeProviderRequest, async |event, _ctx| {
            let mut payload = event.payload;
            payload["messages"].as_array_mut().unwrap().push(json!({"role": "weather", "content": "rain"}));
            payload
        });
    })
    .await;
    let failed = session.prompt("hi").await.unwrap().into_text().unwrap_err().to_string();
    assert!(failed.contains("400") && failed.contains("weather"), "{failed}");
    assert!(!server.take_violations().is_empty());
}

#[tokio::test]
async fn a_provider_of_an_extension_can_be_chosen() {
    let server = Server::start(Script::new(Wire::OpenAiCompletions).reply("From the new one."));
    let other = Server::start(Script::new(Wire::OpenAiCompletions));
    let brought = provider("brought", &server);
    let (session, models, _folder) = session(&other, move |pi| {
        pi.register_provider(brought.clone());
    })
    .await;
    session.set_model(models.find("brought", "m").unwrap()).await.unwrap();
    assert_eq!(session.prompt("hi").await.unwrap().into_text().unwrap(), "From the new one.");
}
