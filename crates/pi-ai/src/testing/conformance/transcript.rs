//! The area `transcript`.

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    context::Context,
    message::{Message, SystemMessage},
    tool::ToolDeclaration,
    transcript::{
        LaterSystemMessages, ToolChangeSupport, TranscriptItem, TranscriptState, collapse,
        create_initial_system_message, current_system_message, current_system_prompt, current_tools, declared_tools,
        has_non_additive_tool_changes, initial_system_message, render_full, render_update, resolve, resolve_tools,
        tool_state_changes, without_initial_system_message,
    },
};

/// What this crate makes of `input`, a case of the file `file_stem`; `None` when there is no runner for that file.
pub fn run(file_stem: &str, input: &Value) -> Option<Value> {
    match file_stem {
        "replay" => replay(input),
        "collapse" => collapsed(input),
        "tool_state_changes" => changes(input),
        "create_initial" => create_initial(input),
        "normalize_context" => normalize(input),
        "render" => render(input),
        _ => None,
    }
}

/// An element of a list that may hold roles of an application.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Item {
    Message(Message),
    Custom(Value),
}

impl TranscriptItem for Item {
    fn as_system(&self) -> Option<&SystemMessage> {
        match self {
            Self::Message(message) => message.as_system(),
            Self::Custom(_) => None,
        }
    }
}

impl From<SystemMessage> for Item {
    fn from(message: SystemMessage) -> Self {
        Self::Message(message.into())
    }
}

fn items(input: &Value) -> Option<Vec<Item>> {
    let read = |value: &Value| match value["role"].as_str() {
        Some(role) if Message::ROLES.contains(&role) => serde_json::from_value(value.clone()).ok().map(Item::Message),
        _ => Some(Item::Custom(value.clone())),
    };
    input["messages"].as_array()?.iter().map(read).collect()
}

fn tools(value: &Value) -> Option<Vec<ToolDeclaration>> {
    match value {
        Value::Null => Some(Vec::new()),
        tools => serde_json::from_value(tools.clone()).ok(),
    }
}

fn replay(input: &Value) -> Option<Value> {
    let items = items(input)?;
    let state: TranscriptState = items.iter().collect();
    let current = current_system_message(&items);
    assert_eq!(state.system_message(), current, "the incremental fold disagrees with the replay");
    let resolved = |support| {
        let tools = resolve_tools(&items, support);
        json!({ "requestTools": tools.request_tools, "foldedSystemMessages": tools.folded_system_messages })
    };
    Some(json!({
        "section_order": state.sections().keys().collect::<Vec<_>>(),
        "current_system_prompt": current_system_prompt(&items),
        "current_system_message": current.map(Message::from),
        "initial_system_message": initial_system_message(&items).cloned().map(Message::from),
        "current_tools": current_tools(&items),
        "declared_tools": declared_tools(&items),
        "has_non_additive_tool_changes": has_non_additive_tool_changes(&items),
        "resolve_tools": {
            "none": resolved(ToolChangeSupport::None),
            "additions": resolved(ToolChangeSupport::Additions),
            "changes": resolved(ToolChangeSupport::Changes),
        },
    }))
}

fn collapsed(input: &Value) -> Option<Value> {
    let items = items(input)?;
    let collapsed = json!(collapse(&items));
    let unsupported = json!(resolve(&items, LaterSystemMessages::Unsupported)) == collapsed;
    let default = json!(resolve(&items, LaterSystemMessages::default())) == collapsed;
    Some(json!({
        "collapsed": collapsed,
        "resolved_supported": resolve(&items, LaterSystemMessages::Supported).len(),
        "resolved_unsupported_equals_collapsed": unsupported,
        "resolved_undefined_equals_collapsed": default,
        "without_initial": without_initial_system_message(&items).len(),
    }))
}

fn changes(input: &Value) -> Option<Value> {
    let changes = tool_state_changes(&tools(&input["previous"])?, &tools(&input["current"])?);
    Some(json!({ "toolsAdded": changes.tools_added, "toolsRemoved": changes.tools_removed }))
}

fn create_initial(input: &Value) -> Option<Value> {
    let prompt = input["systemPrompt"].as_str().unwrap_or_default();
    Some(json!(create_initial_system_message(prompt, tools(&input["tools"])?).map(Message::from)))
}

fn normalize(input: &Value) -> Option<Value> {
    let context = Context {
        system_prompt: input["systemPrompt"].as_str().map(str::to_owned),
        messages: serde_json::from_value(input["messages"].clone()).ok()?,
        tools: tools(&input["tools"])?,
    };
    Some(json!({ "messages": context.normalize().messages() }))
}

fn render(input: &Value) -> Option<Value> {
    let message = serde_json::from_value(input["message"].clone()).ok()?;
    Some(json!({ "full": render_full(&message), "update": render_update(&message) }))
}
