//! The area `sessions`.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::future::BoxFuture;
use pi_ai::{
    Timestamp,
    id::CountingIds,
    time::{Clock, FixedClock},
};
use serde_json::{Map, Value, json};

use crate::{
    messages::SessionMessage,
    session::{
        Access, Appended, BranchSummary, Compaction, CustomMessageEntry, EntryId, EntryKind, ListOptions, NewSession,
        Projection, Replacement, Session, SessionEnvironment, SessionError, SessionFolder, SessionManager, SessionTree,
        TextDetail, parse_time, session_id, write_time,
    },
};

/// What this crate makes of `input`, a case of the file `file_stem`; `None` when there is no runner for that file.
pub fn run<'a>(file_stem: &'a str, input: &'a Value) -> BoxFuture<'a, Option<Value>> {
    Box::pin(async move {
        match file_stem {
            "load" => load(input).await,
            "context_of_leaf" => context_of_leaf(input),
            "operations" => operations(input).await,
            "names" => names(input),
            "list" => list(input).await,
            "find" => find(input).await,
            _ => None,
        }
    })
}

fn environment(now: Timestamp) -> SessionEnvironment {
    SessionEnvironment {
        clock: Arc::new(FixedClock(now)) as Arc<dyn Clock>,
        ids: Arc::new(CountingIds::default()),
        ..SessionEnvironment::default()
    }
}

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

async fn load(input: &Value) -> Option<Value> {
    let folder = tempfile::tempdir().ok()?;
    let path = folder.path().join("session.jsonl");
    let before = input["file"].as_str()?;
    std::fs::write(&path, before).ok()?;
    let opened = SessionManager::open(&path, Access::Write, Path::new("/project"), environment(NOW)).await;
    let after = std::fs::read_to_string(&path).ok()?;
    let Ok(manager) = opened else {
        return Some(json!({"error": true, "file_unchanged": after == before}));
    };
    let file_change = match after.strip_prefix(before) {
        Some("") => "none",
        Some("\n") => "newline_appended",
        _ => "rewritten",
    };
    manager.with(|session| {
        let labels: Map<String, Value> =
            session.labels().map(|(id, mark)| (id.to_string(), json!(mark.text))).collect();
        let ids = |ids: Vec<EntryId>| ids.into_iter().map(|id| json!({"id": id})).collect::<Vec<_>>();
        Some(json!({
            "session_id": session.id(),
            "cwd": manager.cwd(),
            "header": session.header().fields,
            "entries": entries(session)?,
            "leaf_id": session.leaf_id(),
            "name": session.name(),
            "labels": labels,
            "branch": ids(session.branch().into_iter().map(|entry| entry.id).collect()),
            "context_entries": ids(session.projection().entries().iter().map(|entry| entry.id.clone()).collect()),
            "context": context(session.projection()),
            "tree": tree(&session.tree()),
            "file_change": file_change,
        }))
    })
}

fn entries(session: &Session) -> Option<Vec<Value>> {
    let readable = session.entries().filter(|entry| entry.kind != EntryKind::Unreadable);
    readable.map(|entry| pi_ai::json::from_slice_lossy(&session.line(entry.id.as_str()).ok()?).ok()).collect()
}

fn context(projection: &Projection) -> Value {
    json!({
        "messages": projection.messages(),
        "thinkingLevel": projection.thinking_level(),
        "model": projection.model(),
    })
}

fn tree(tree: &SessionTree) -> Value {
    fn node(tree: &SessionTree, place: usize) -> Value {
        let mut value = Map::new();
        value.insert("id".into(), json!(tree.nodes[place].entry.id));
        if let Some(label) = &tree.nodes[place].label {
            value.insert("label".into(), json!(label.text));
        }
        let children = tree.nodes[place].children.iter().map(|child| node(tree, *child)).collect();
        value.insert("children".into(), Value::Array(children));
        Value::Object(value)
    }
    tree.roots.iter().map(|root| node(tree, *root)).collect()
}

/// A session file of these entries.
pub(super) fn session_of(entries: &Value) -> Option<Session> {
    let mut file = b"{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/project\"}\n".to_vec();
    for entry in entries.as_array()? {
        serde_json::to_writer(&mut file, entry).ok()?;
        file.push(b'\n');
    }
    Session::from_bytes(file).ok()
}

fn context_of_leaf(input: &Value) -> Option<Value> {
    let session = session_of(&input["entries"])?;
    // An id that does not exist, and none at all, mean the last entry.
    let last = session.leaf_id().map(EntryId::as_str);
    let leaf = match input.get("leaf_id") {
        Some(Value::Null) => None,
        Some(id) => id.as_str().filter(|id| session.contains(id)).or(last),
        None => last,
    };
    let projection = session.projection_at(leaf).ok()?;
    let ids: Vec<_> = projection.entries().iter().map(|entry| &entry.id).collect();
    Some(json!({"context_entries": ids, "context": context(&projection)}))
}

/// Gives ids the names by which the vectors call them.
#[derive(Default)]
struct Names(HashMap<String, String>);

impl Names {
    fn id(&self, name: &Value) -> EntryId {
        let name = name.as_str().unwrap_or_default();
        let known = self.0.iter().find(|(_, known)| *known == name);
        EntryId::from(known.map_or(name, |(id, _)| id))
    }

    fn rename(&self, value: &mut Value, folder: &str) {
        match value {
            Value::String(text) => {
                if let Some(name) = self.0.get(text.as_str()) {
                    *text = name.clone();
                }
                *text = text.replace(folder, "/sessions");
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.rename(item, folder)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.rename(field, folder)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

async fn operations(input: &Value) -> Option<Value> {
    let folder = tempfile::tempdir().ok()?;
    let now = parse_time(input["now"].as_str()?)?;
    let id = session_id(input["session_id"].as_str()?).ok()?;
    let new = NewSession { cwd: input["cwd"].as_str()?.into(), id: Some(id), ..NewSession::default() };
    let mut session = SessionManager::create(folder.path(), new, environment(now)).ok()?;
    let mut names = Names::default();
    let (mut errors, mut exists) = (Vec::new(), Vec::new());
    for (number, operation) in input["operations"].as_array()?.iter().enumerate() {
        match operate(&mut session, operation, &names).await? {
            Ok(Some(appended)) => drop(names.0.insert(appended.id.to_string(), format!("${number}"))),
            Ok(None) => {}
            Err(_) => errors.push(number),
        }
        exists.push(session.path().is_some_and(|path| path.exists()));
    }
    let folder_text = folder.path().to_string_lossy().into_owned();
    let path = session.path()?;
    let lines: Vec<Value> = match std::fs::read_to_string(&path) {
        Ok(text) => text.lines().map(serde_json::from_str).collect::<Result<_, _>>().ok()?,
        Err(_) => Vec::new(),
    };
    let mut file_name = path.to_string_lossy().into_owned();
    if session.id() != *input["session_id"].as_str()? {
        file_name = file_name.replace(session.id().as_str(), "<id>");
        names.0.insert(session.id().to_string(), "<new id>".into());
    }
    let mut output = json!({
        "errors": errors,
        "file_exists_after": exists,
        "file_name": file_name,
        "lines": lines,
        "leaf_id": session.leaf_id(),
        "context": session.with(|session| context(session.projection())),
    });
    names.rename(&mut output, &folder_text);
    Some(output)
}

/// Outer `None`: an operation that is not known.
async fn operate(
    session: &mut SessionManager,
    operation: &Value,
    names: &Names,
) -> Option<Result<Option<Appended>, SessionError>> {
    let argument = |at: usize| &operation[at];
    let text = |at: usize| operation[at].as_str();
    let id = |at: usize| (!operation[at].is_null()).then(|| names.id(&operation[at]));
    let result = match text(0)? {
        "message" => {
            let message: SessionMessage = serde_json::from_value(argument(1).clone()).ok()?;
            session.append_message(message).await
        }
        "model" => session.append_model_change(text(1)?, text(2)?).await,
        "thinking" => session.append_thinking_level_change(text(1)?.parse().ok()?).await,
        "label" => session.append_label_change(&id(1)?, text(2)).await,
        "name" => session.append_session_info(text(1)?).await,
        "custom" => session.append_custom(text(1)?, operation.get(2).cloned()).await,
        "custom_message" => {
            let message = CustomMessageEntry {
                custom_type: text(1)?.into(),
                content: serde_json::from_value(argument(2).clone()).ok()?,
                display: argument(3).as_bool()?,
                details: operation.get(4).cloned(),
            };
            session.append_custom_message(message).await
        }
        "edit" => {
            let replacement: Option<Replacement> = serde_json::from_value(argument(2).clone()).ok()?;
            session.append_context_edit(&id(1)?, replacement).await
        }
        "compaction" => {
            let compaction = Compaction {
                summary: text(1)?.into(),
                first_kept_entry_id: id(2),
                tokens_before: argument(3).as_u64()?,
                ..Compaction::default()
            };
            session.append_compaction(compaction).await
        }
        "usage" => session.append_usage(serde_json::from_value(argument(1).clone()).ok()?).await,
        "branch" => return Some(session.branch(&id(1)?).await.map(|()| None)),
        "reset" | "reset_leaf" => return Some(session.reset_leaf().await.map(|()| None)),
        "branch_summary" => {
            let summary = BranchSummary { summary: text(2)?.into(), ..BranchSummary::default() };
            session.branch_with_summary(id(1).as_ref(), summary).await
        }
        "branched" => match session.branched(&id(1)?).await {
            Ok(branched) => {
                *session = branched;
                return Some(Ok(None));
            }
            Err(error) => Err(error),
        },
        _ => return None,
    };
    Some(result.map(Some))
}

fn names(input: &Value) -> Option<Value> {
    if let Some(id) = input.get("session_id") {
        return Some(json!({"valid": session_id(id.as_str()?).is_ok()}));
    }
    let folder = SessionFolder::usual(Path::new(input["agent_dir"].as_str()?), Path::new(input["cwd"].as_str()?));
    Some(json!(folder.path()))
}

fn write_files(input: &Value) -> Option<(tempfile::TempDir, SessionFolder)> {
    let folder = tempfile::tempdir().ok()?;
    for (name, text) in input["files"].as_object()? {
        std::fs::write(folder.path().join(name), text.as_str()?).ok()?;
    }
    let cwd = PathBuf::from(input["cwd"].as_str()?);
    let sessions = SessionFolder::chosen(folder.path(), Path::new("/agent"), &cwd);
    Some((folder, sessions))
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

async fn list(input: &Value) -> Option<Value> {
    let (_folder, sessions) = write_files(input)?;
    let options = ListOptions { text: TextDetail::All, ..ListOptions::default() };
    let found = sessions.sessions(options, &environment(NOW)).await.ok()?;
    let listed = found.iter().map(|session| {
        let mut facts = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                facts.insert(key.into(), value);
            }
        };
        put("path", file_name(&session.path).map(Value::from));
        put("id", Some(json!(session.id)));
        put("cwd", Some(json!(session.cwd)));
        put("name", session.name.clone().map(Value::from));
        put("parentSessionPath", session.parent_session.clone().map(Value::from));
        put("created", session.created.map(|time| write_time(time).into()));
        put("modified", Some(write_time(session.modified).into()));
        put("messageCount", Some(json!(session.messages)));
        put("firstMessage", Some(json!(session.first_message.as_deref().unwrap_or("(nothing was said yet)"))));
        put("allMessagesText", Some(json!(session.text)));
        Value::Object(facts)
    });
    Some(listed.collect())
}

async fn find(input: &Value) -> Option<Value> {
    let (_folder, sessions) = write_files(input)?;
    let found = sessions.find(input["session_id"].as_str()?, &environment(NOW)).await.ok()?;
    Some(json!({"file": found.as_deref().and_then(file_name)}))
}
