//! An extension that is a shell script: `cargo run -p example-extension-in-shell`.
//!
//! The extension is the folder `guard`; this program gives it a session with a scripted model.

use std::{collections::BTreeMap, error::Error, path::Path};

use pi_ai::faux::{FauxProvider, FauxReply};
use pi_coding_agent::{
    agent_session::AgentSession,
    extensions::stdio::StdioExtension,
    sdk::{SessionOptions, create_agent_session},
    session::SessionManager,
};
use serde_json::json;

fn script() -> FauxProvider {
    FauxProvider::new([
        FauxReply::tool_call("bash", json!({"command": "rm -rf /no/such/folder/anywhere"})),
        FauxReply::tool_call("bash", json!({"command": "echo allowed"})),
        FauxReply::text("I left it where it is."),
    ])
}

async fn session(model: FauxProvider, flags: &[&str]) -> Result<AgentSession, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("guard");
    let environment: BTreeMap<_, _> = std::env::vars_os().collect();
    let flags = flags.iter().map(|flag| ((*flag).to_owned(), None));
    let options = SessionOptions::default()
        .stream_fn(model)
        .model(FauxProvider::model())
        .session_manager(SessionManager::in_memory())
        .extension(StdioExtension::read(&folder, environment)?)
        .flag_values(flags.collect());
    Ok(create_agent_session(options).await?)
}

/// What the tools gave, in order.
fn results(session: &AgentSession) -> Vec<String> {
    let messages = session.messages();
    let results = messages.iter().filter_map(|message| message.as_tool_result());
    results.map(|result| result.content[0].as_text().unwrap_or_default().trim().to_owned()).collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let session = session(script(), &[]).await?;
    println!("{}", session.prompt("Remove the folder.").await?.into_text()?);
    for result in results(&session) {
        println!("> {result}");
    }
    session.dispose().await?;
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use pi_coding_agent::session::EntryKind;

    use super::*;

    #[tokio::test]
    async fn the_script_blocks_what_deletes_by_force_and_nothing_else() {
        let session = session(script(), &[]).await.unwrap();
        session.prompt("Remove the folder.").await.unwrap();
        let results = results(&session);
        assert!(results[0].contains("not allowed here"), "{results:?}");
        assert_eq!(results[1], "allowed");
        let manager = session.session_manager().clone();
        session.dispose().await.unwrap();
        let noted = manager.branch_entries().iter().filter(|entry| entry.kind == EntryKind::Custom).count();
        assert_eq!(noted, 1);
    }

    #[tokio::test]
    async fn a_flag_lets_it_through() {
        let session = session(script(), &["careless"]).await.unwrap();
        session.prompt("Remove the folder.").await.unwrap();
        assert!(!results(&session)[0].contains("not allowed here"), "{:?}", results(&session));
        session.dispose().await.unwrap();
    }
}
