//! Sessions on a real file system.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod append;
mod commands;
mod crash;
mod damage;
mod faults;
mod fork;
mod intruders;
mod migration;
mod stores;
mod writers;

use std::path::{Path, PathBuf};

use pi_ai::{AssistantBlock, AssistantMessage, Message};
use pi_coding_agent::{
    messages::message_text,
    session::{Access, EntryId, NewSession, SessionEnvironment, SessionError, SessionManager},
};

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/project"}"#;

/// A message of the user as a line.
fn line(id: &str, parent: Option<&str>, text: &str) -> String {
    let entry = serde_json::json!({
        "type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {"role": "user", "content": text, "timestamp": 1},
    });
    entry.to_string()
}

/// A folder with a session file of these lines.
fn file(lines: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let mut text = lines.join("\n");
    text.push('\n');
    file_of(text.as_bytes())
}

fn file_of(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

async fn open(path: &Path, access: Access) -> Result<SessionManager, SessionError> {
    SessionManager::open(path, access, Path::new("/elsewhere"), SessionEnvironment::default()).await
}

async fn open_for_writing(path: &Path) -> SessionManager {
    open(path, Access::Write).await.unwrap()
}

fn create(folder: &Path) -> SessionManager {
    let new = NewSession { cwd: "/project".into(), ..NewSession::default() };
    SessionManager::create(folder, new, SessionEnvironment::default()).unwrap()
}

async fn say(session: &SessionManager, text: &str) -> EntryId {
    session.append_message(Message::user(text)).await.unwrap().id
}

async fn answer(session: &SessionManager, text: &str) -> EntryId {
    let message = AssistantMessage { content: vec![AssistantBlock::text(text)], ..AssistantMessage::default() };
    session.append_message(message).await.unwrap().id
}

/// What the next request is made from, as text.
fn said(session: &SessionManager) -> Vec<String> {
    session.context().messages.iter().map(message_text).collect()
}

fn notices(session: &SessionManager) -> Vec<String> {
    session.with(|session| session.notices().iter().map(ToString::to_string).collect())
}

fn case(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name)).unwrap()
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
