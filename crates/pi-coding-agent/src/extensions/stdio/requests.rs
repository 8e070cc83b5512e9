//! What a program may ask of pi.

use std::{path::PathBuf, time::Duration};

use pi_ai::{Content, ImageContent, ThinkingLevel};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{connection::Connection, program::Shared, tool, wire::RpcError};
use crate::{
    agent_session::{CustomMessage, Delivery, Display, LeaveBehind, MessageTiming, SessionPrompt, UserMessageTiming},
    compaction::SummaryInstructions,
    extensions::{
        CommandContext, ExecOptions, ExtensionContext, ExtensionError, UiQuestion, UiUpdate, event::ForkPosition,
    },
    session::EntryId,
};

/// The notification with which a tool shows what it has so far.
pub(super) const TOOL_UPDATE: &str = "tool/update";

/// How requests of one program are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// One after another, in the order in which they came.
    InOrder,
    /// Beside others: they wait for people, programs or the session, or set off events that the program itself handles.
    Beside,
}

/// Every method, and how it is answered.
const METHODS: &[(&str, Lane)] = &[
    ("session/append_entry", Lane::InOrder),
    ("session/send_message", Lane::InOrder),
    ("session/set_label", Lane::InOrder),
    ("session/state", Lane::InOrder),
    ("session/entries", Lane::InOrder),
    ("session/entry", Lane::InOrder),
    ("session/system_prompt", Lane::InOrder),
    ("session/abort", Lane::InOrder),
    ("tools/list", Lane::InOrder),
    ("tools/set_active", Lane::InOrder),
    ("flags/get", Lane::InOrder),
    ("commands/list", Lane::InOrder),
    ("context/read", Lane::InOrder),
    ("ui/show", Lane::InOrder),
    ("ui/notify", Lane::InOrder),
    ("log", Lane::InOrder),
    ("session/send_user_message", Lane::Beside),
    ("session/set_name", Lane::Beside),
    ("session/set_model", Lane::Beside),
    ("session/set_thinking_level", Lane::Beside),
    ("session/wait_for_idle", Lane::Beside),
    ("session/compact", Lane::Beside),
    ("session/navigate", Lane::Beside),
    ("session/reload", Lane::Beside),
    ("session/new", Lane::Beside),
    ("session/switch", Lane::Beside),
    ("session/fork", Lane::Beside),
    ("bus/emit", Lane::Beside),
    ("exec", Lane::Beside),
    ("ui/ask", Lane::Beside),
    ("ui/confirm", Lane::Beside),
    ("ui/select", Lane::Beside),
    ("ui/input", Lane::Beside),
    ("ui/editor", Lane::Beside),
];

/// How a method is answered. `None`: there is none of this name.
pub(super) fn lane(method: &str) -> Option<Lane> {
    METHODS.iter().find(|(name, _)| *name == method).map(|(_, lane)| *lane)
}

/// Shows what a tool has so far. After the call has ended it does nothing.
pub(super) fn tool_update(connection: &Connection, params: Value) -> Result<(), RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Update {
        call_id: String,
        #[serde(flatten)]
        output: tool::Output,
    }
    let update: Update = read(params)?;
    if let Some(context) = connection.tool(&update.call_id) {
        context.update(update.output.into_output().map_err(failed)?);
    }
    Ok(())
}

/// Answers a request.
pub(super) async fn answer(
    shared: &Shared,
    connection: &Connection,
    method: &str,
    params: Value,
) -> Result<Value, RpcError> {
    // What is asked for ends with the program at the latest.
    let Some(ctx) = shared.context.upgrade(connection.over.child_token()) else {
        return Err(failed(ExtensionError::stale()));
    };
    match method {
        "session/append_entry" => {
            let Entry { custom_type, data } = read(params)?;
            let id = ctx.append_entry(custom_type, data).await.map_err(failed)?;
            Ok(json!({"id": id}))
        }
        "session/send_message" => {
            let message: Message = read(params)?;
            let timing = message.timing();
            ctx.send_message(message.message(), timing).await.map_err(failed)?;
            Ok(Value::Null)
        }
        "session/send_user_message" => {
            let message: UserMessage = read(params)?;
            let timing =
                message.deliver_as.map_or(UserMessageTiming::WhenIdle, |at| UserMessageTiming::Queued(at.into()));
            let prompt = SessionPrompt { text: message.text, images: message.images };
            ctx.send_user_message(prompt, timing).await.map_err(failed)?;
            Ok(Value::Null)
        }
        "session/set_label" => {
            let Label { entry_id, label } = read(params)?;
            ctx.set_label(&entry_id, label.as_deref()).await.map_err(failed)?;
            Ok(Value::Null)
        }
        "session/set_name" => {
            let Name { name } = read(params)?;
            ctx.set_session_name(&name).await.map_err(failed)?;
            Ok(Value::Null)
        }
        "session/state" => state(&ctx),
        "session/entries" => entries(&ctx, read(params)?),
        "session/entry" => {
            let Id { id } = read(params)?;
            let entry = ctx.session_manager().map_err(failed)?.entry(id.as_str()).map_err(ExtensionError::from);
            write(&entry.map_err(failed)?)
        }
        "session/system_prompt" => Ok(json!({"text": ctx.system_prompt().map_err(failed)?})),
        "session/abort" => {
            ctx.abort();
            Ok(Value::Null)
        }
        "session/set_model" => set_model(shared, &ctx, read(params)?).await,
        "session/set_thinking_level" => {
            let Level { level } = read(params)?;
            write(&ctx.set_thinking_level(level).await.map_err(failed)?)
        }
        "tools/list" => Ok(json!({"active": ctx.active_tools(), "all": ctx.all_tools()})),
        "tools/set_active" => {
            let Names { names } = read(params)?;
            let known = ctx.all_tools();
            let unknown: Vec<String> = names.iter().filter(|name| !known.contains(name)).cloned().collect();
            ctx.set_active_tools(names).map_err(failed)?;
            Ok(json!({"unknown": unknown}))
        }
        "flags/get" => {
            let Name { name } = read(params)?;
            write(&ctx.flag(&name))
        }
        "commands/list" => {
            let commands = ctx.commands();
            let described = commands.iter().map(|command| {
                json!({"name": command.name, "description": command.description, "extension": command.extension})
            });
            Ok(described.collect())
        }
        "context/read" => read_context(connection, read(params)?),
        "bus/emit" => {
            let Emit { channel, value } = read(params)?;
            ctx.emit(&channel, value).await.map_err(failed)?;
            Ok(Value::Null)
        }
        "exec" => exec(&ctx, read(params)?).await,
        "log" => {
            let Log { message, level } = read(params)?;
            let extension = ctx.extension();
            match level.as_str() {
                "error" => tracing::error!(extension, "{message}"),
                "warning" => tracing::warn!(extension, "{message}"),
                "debug" => tracing::debug!(extension, "{message}"),
                _ => tracing::info!(extension, "{message}"),
            }
            Ok(Value::Null)
        }
        ui if ui.starts_with("ui/") => answer_ui(&ctx, ui, params).await,
        _ => {
            let command = connection.command().ok_or_else(|| {
                RpcError::new(RpcError::FAILED, format!("{method} is for commands: none of this extension runs"))
            })?;
            answer_command(&command, method, params).await
        }
    }
}

/// What only commands may ask for.
async fn answer_command(ctx: &CommandContext, method: &str, params: Value) -> Result<Value, RpcError> {
    match method {
        "session/wait_for_idle" => {
            ctx.wait_for_idle().await.map_err(failed)?;
            Ok(Value::Null)
        }
        "session/compact" => {
            let Instructions { instructions } = read(params)?;
            let instructions = instructions.map_or(SummaryInstructions::Usual, SummaryInstructions::Focus);
            write(&ctx.compact(instructions).await.map_err(failed)?)
        }
        "session/navigate" => {
            let Navigate { entry_id, summarize, instructions } = read(params)?;
            let leave = match (summarize, instructions) {
                (false, _) => LeaveBehind::Silently,
                (true, None) => LeaveBehind::Summarized(SummaryInstructions::Usual),
                (true, Some(focus)) => LeaveBehind::Summarized(SummaryInstructions::Focus(focus)),
            };
            let navigated = ctx.navigate_to(&entry_id, leave).await.map_err(failed)?;
            Ok(json!({"text": navigated.text, "summaryId": navigated.summary}))
        }
        "session/reload" => {
            ctx.reload().await.map_err(failed)?;
            Ok(Value::Null)
        }
        "session/new" => Ok(json!({"done": ctx.new_session().await.map_err(failed)?})),
        "session/switch" => {
            let File { file } = read(params)?;
            Ok(json!({"done": ctx.switch_session(file).await.map_err(failed)?}))
        }
        "session/fork" => {
            let Fork { entry_id, position } = read(params)?;
            let position = if position.as_deref() == Some("at") { ForkPosition::At } else { ForkPosition::Before };
            Ok(json!({"done": ctx.fork(entry_id, position).await.map_err(failed)?}))
        }
        _ => Err(RpcError::new(RpcError::METHOD_NOT_FOUND, format!("there is no method `{method}`"))),
    }
}

async fn answer_ui(ctx: &ExtensionContext, method: &str, params: Value) -> Result<Value, RpcError> {
    if let "ui/show" = method {
        ctx.ui().show(read::<UiUpdate>(params)?);
        return Ok(Value::Null);
    }
    if let "ui/notify" = method {
        let Notify { message, level } = read(params)?;
        ctx.ui().notify_as(message, level);
        return Ok(Value::Null);
    }
    let timeout = params.get("timeoutMs").and_then(Value::as_u64).map(Duration::from_millis);
    let mut question = params;
    if let (Some(kind), Value::Object(fields)) =
        (method.strip_prefix("ui/").filter(|kind| *kind != "ask"), &mut question)
    {
        fields.insert("method".to_owned(), kind.into());
        // A question without a text is one all the same.
        fields.entry("message").or_insert_with(|| "".into());
    }
    let question: UiQuestion = read(question)?;
    let is_confirm = matches!(question, UiQuestion::Confirm { .. });
    let ui = match timeout {
        Some(timeout) => ctx.ui().within(timeout),
        None => ctx.ui(),
    };
    use crate::extensions::UiAnswer;
    Ok(match ui.ask(question).await {
        Some(UiAnswer::Confirmed(yes)) => json!({"confirmed": yes}),
        Some(UiAnswer::Value(value)) => json!({"value": value}),
        None if is_confirm => json!({"confirmed": false}),
        None => json!({"value": null}),
    })
}

fn state(ctx: &ExtensionContext) -> Result<Value, RpcError> {
    let manager = ctx.session_manager().map_err(failed)?;
    let model = ctx.model().map(|model| json!({"provider": model.provider, "id": model.id}));
    Ok(json!({
        "id": manager.id(),
        "file": manager.path(),
        "name": manager.name(),
        "leafId": manager.leaf_id(),
        "cwd": ctx.cwd().map_err(failed)?,
        "model": model,
        "thinkingLevel": ctx.thinking_level(),
        "idle": ctx.is_idle(),
        "trusted": ctx.is_project_trusted(),
        "contextUsage": ctx.context_usage(),
    }))
}

/// The entries of the branch, whole, from `from` on, `limit` at most.
fn entries(ctx: &ExtensionContext, asked: Entries) -> Result<Value, RpcError> {
    const MOST: usize = 1000;
    let manager = ctx.session_manager().map_err(failed)?;
    let branch = manager.branch_entries();
    let chosen = branch.iter().skip(asked.from).take(asked.limit.unwrap_or(MOST).min(MOST));
    let read: Result<Vec<_>, _> = chosen.map(|entry| manager.entry(entry.id.as_str())).collect();
    let read = read.map_err(|error| failed(error.into()))?;
    Ok(json!({"total": branch.len(), "entries": read}))
}

/// Messages of the list that a `context` handler is looking at.
fn read_context(connection: &Connection, asked: Range) -> Result<Value, RpcError> {
    let list = connection.list(asked.list).ok_or_else(|| {
        let text = format!("no `context` handler is looking at the list {}", asked.list);
        RpcError::new(RpcError::INVALID_PARAMS, text)
    })?;
    match list.get(asked.from..asked.to) {
        Some(messages) => Ok(json!({"messages": messages})),
        None => Err(RpcError::new(
            RpcError::INVALID_PARAMS,
            format!("{} to {} is no range of {} messages", asked.from, asked.to, list.len()),
        )),
    }
}

async fn set_model(shared: &Shared, ctx: &ExtensionContext, asked: ModelName) -> Result<Value, RpcError> {
    let runner = shared.context.runner();
    let model = runner.and_then(|runner| runner.find_model(&asked.provider, &asked.id));
    let model = model.ok_or_else(|| {
        RpcError::new(RpcError::INVALID_PARAMS, format!("there is no model {}/{}", asked.provider, asked.id))
    })?;
    ctx.set_model(model).await.map_err(failed)?;
    Ok(Value::Null)
}

async fn exec(ctx: &ExtensionContext, asked: Exec) -> Result<Value, RpcError> {
    let defaults = ExecOptions::default();
    let options = ExecOptions {
        cwd: asked.cwd,
        timeout: asked.timeout_ms.map(Duration::from_millis),
        max_output: asked.max_output.unwrap_or(4 << 20).min(defaults.max_output),
        ..defaults
    };
    let ran = ctx.exec(&asked.program, asked.args, options).await.map_err(failed)?;
    Ok(json!({"stdout": ran.stdout, "stderr": ran.stderr, "code": ran.code, "killed": ran.killed}))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    custom_type: String,
    #[serde(default)]
    data: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    custom_type: String,
    content: Content,
    #[serde(default)]
    display: bool,
    #[serde(default)]
    details: Option<Value>,
    #[serde(default)]
    deliver_as: Option<DeliverAs>,
    #[serde(default)]
    trigger_turn: Option<bool>,
}

/// When something is said.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
enum DeliverAs {
    Steer,
    FollowUp,
    NextTurn,
}

impl Message {
    fn timing(&self) -> MessageTiming {
        let delivery = match self.deliver_as {
            Some(DeliverAs::NextTurn) => return MessageTiming::NextPrompt,
            Some(DeliverAs::FollowUp) => Delivery::FollowUp,
            Some(DeliverAs::Steer) | None => Delivery::Steer,
        };
        match self.trigger_turn {
            Some(true) => MessageTiming::Answered(delivery),
            Some(false) => MessageTiming::Noted,
            None => MessageTiming::Queued(delivery),
        }
    }

    fn message(self) -> CustomMessage {
        CustomMessage {
            custom_type: self.custom_type,
            content: self.content,
            display: if self.display { Display::Shown } else { Display::Hidden },
            details: self.details,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UserMessage {
    text: String,
    #[serde(default)]
    images: Vec<ImageContent>,
    #[serde(default)]
    deliver_as: Option<UserDeliverAs>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
enum UserDeliverAs {
    Steer,
    FollowUp,
}

impl From<UserDeliverAs> for Delivery {
    fn from(at: UserDeliverAs) -> Self {
        match at {
            UserDeliverAs::Steer => Self::Steer,
            UserDeliverAs::FollowUp => Self::FollowUp,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Label {
    entry_id: EntryId,
    #[serde(default)]
    label: Option<String>,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

#[derive(Deserialize)]
struct Names {
    names: Vec<String>,
}

#[derive(Deserialize)]
struct Id {
    id: EntryId,
}

#[derive(Deserialize)]
struct Level {
    level: ThinkingLevel,
}

#[derive(Deserialize)]
struct ModelName {
    provider: String,
    id: String,
}

#[derive(Deserialize)]
struct File {
    file: PathBuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fork {
    entry_id: EntryId,
    #[serde(default)]
    position: Option<String>,
}

#[derive(Default, Deserialize)]
struct Instructions {
    #[serde(default)]
    instructions: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Navigate {
    entry_id: EntryId,
    #[serde(default)]
    summarize: bool,
    #[serde(default)]
    instructions: Option<String>,
}

#[derive(Default, Deserialize)]
struct Entries {
    #[serde(default)]
    from: usize,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct Range {
    list: u64,
    from: usize,
    to: usize,
}

#[derive(Deserialize)]
struct Emit {
    channel: String,
    #[serde(default)]
    value: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Exec {
    program: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    max_output: Option<usize>,
}

#[derive(Deserialize)]
struct Log {
    message: String,
    #[serde(default)]
    level: String,
}

#[derive(Deserialize)]
struct Notify {
    message: String,
    #[serde(default)]
    level: crate::extensions::NoticeLevel,
}

/// Reads parameters; none are an empty object.
fn read<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    let params = if params.is_null() { json!({}) } else { params };
    serde_json::from_value(params).map_err(|error| RpcError::new(RpcError::INVALID_PARAMS, error.to_string()))
}

fn write(answer: &impl Serialize) -> Result<Value, RpcError> {
    serde_json::to_value(answer).map_err(|error| RpcError::new(RpcError::FAILED, error.to_string()))
}

fn failed(error: ExtensionError) -> RpcError {
    RpcError::new(RpcError::FAILED, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_docs_name_every_method() {
        let docs = include_str!("../../../../../docs/extensions.md");
        for (method, _) in METHODS.iter().filter(|(method, _)| *method != "ui/ask") {
            assert!(docs.contains(&format!("`{method}`")), "docs/extensions.md does not name `{method}`");
        }
        assert!(docs.contains(&format!("`{TOOL_UPDATE}`")));
    }
}
