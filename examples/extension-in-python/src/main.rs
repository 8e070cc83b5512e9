//! An extension that is a Python program: `cargo run -p example-extension-in-python`.
//!
//! The extension is the folder `notebook`; this program gives it a session with a scripted model and shows what it did.

use std::{collections::BTreeMap, error::Error, path::Path};

use pi_ai::faux::{FauxProvider, FauxReply};
use pi_coding_agent::{
    agent_session::AgentSession,
    extensions::{RenderOptions, stdio::StdioExtension},
    resources::Theme,
    sdk::{SessionOptions, create_agent_session},
    session::{EntryBody, SessionManager},
};
use serde_json::json;

fn script() -> FauxProvider {
    FauxProvider::new([
        FauxReply::tool_call("count_words", json!({"text": "one two three"})),
        FauxReply::tool_call("write", json!({"path": "Cargo.lock", "content": ""})),
        FauxReply::text("Three words; and the lock file stays as it is."),
    ])
}

async fn session(model: FauxProvider) -> Result<AgentSession, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebook");
    let environment: BTreeMap<_, _> = std::env::vars_os().collect();
    let options = SessionOptions::default()
        .stream_fn(model)
        .model(FauxProvider::model())
        .session_manager(SessionManager::in_memory())
        .extension(StdioExtension::read(&folder, environment)?)
        .flag_values([("keep".to_owned(), Some("3".to_owned()))].into());
    Ok(create_agent_session(options).await?)
}

/// The notes of the session, as the extension draws them.
async fn notes(session: &AgentSession, options: RenderOptions) -> Vec<String> {
    let manager = session.session_manager();
    let mut drawn = Vec::new();
    for entry in manager.branch_entries() {
        let Ok(EntryBody::Custom(note)) = manager.entry(entry.id.as_str()).map(|entry| entry.body) else { continue };
        let text = session.extensions().draw_entry(&entry.id, &note, options, &Theme::dark()).await;
        drawn.extend(text.map(|text| text.to_string()));
    }
    drawn
}

/// Whether the program of the extension can run here.
fn has_python() -> bool {
    let version = std::process::Command::new("python3").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    if !has_python() {
        println!("This example needs python3, which is not on PATH.");
        return Ok(());
    }
    let session = session(script()).await?;
    println!("{}", session.prompt("Count, then write the lock file.").await?.into_text()?);
    for note in notes(&session, RenderOptions::EXPANDED).await {
        println!("{note}");
    }
    session.dispose().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_program_counts_blocks_notes_and_prunes() {
        if !has_python() {
            eprintln!("skipped: python3 is not on PATH");
            return;
        }
        let model = script();
        let session = session(model.clone()).await.unwrap();
        session.prompt("Count, then write the lock file.").await.unwrap();
        let results: Vec<String> = session
            .messages()
            .iter()
            .filter_map(|message| message.as_tool_result())
            .map(|result| result.content[0].as_text().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(results, ["3 words", "Lock files are written by their tools."]);
        assert_eq!(notes(&session, RenderOptions::COLLAPSED).await, ["[note] count_words"]);
        assert_eq!(notes(&session, RenderOptions::EXPANDED).await, ["[note] count_words\nit went well"]);
        // Of five messages the last request keeps three; the results stand behind their calls.
        let sent = model.requests()[2].context.messages().to_vec();
        let roles: Vec<_> = sent.iter().map(|message| message.role()).filter(|role| *role != "system").collect();
        assert_eq!(roles, ["assistant", "toolResult", "assistant", "toolResult"]);
        session.dispose().await.unwrap();
    }
}
