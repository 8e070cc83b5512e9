//! What the tests share: agents over scripted models, and records of what happened.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use pi_agent_core::{
    Agent, AgentEvent, AgentMessage, CustomMessage, Tool, ToolArguments, ToolContext, ToolError, ToolOutput,
};
use pi_ai::{Timestamp, ToolCall, ToolDeclaration, faux::FauxReply, time::FixedClock};
use serde_json::json;

/// The clock of tests.
pub(crate) fn clock() -> FixedClock {
    FixedClock(Timestamp::from_millis(1_700_000_000_000))
}

/// A value that closures share.
pub(crate) fn shared<T>(value: T) -> Arc<Mutex<T>> {
    Arc::new(Mutex::new(value))
}

/// A panic that does not clutter the output of the test run.
pub(crate) fn quiet_panic(text: &str) -> ! {
    std::panic::resume_unwind(Box::new(text.to_owned()))
}

/// Ends a test that hangs.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), future).await.expect("the test hangs")
}

/// A tool that takes any arguments.
pub(crate) fn tool<O: Into<ToolOutput> + 'static>(
    name: &str,
    run: impl pi_agent_core::AsyncHook<ToolArguments, ToolContext, Result<O, ToolError>>,
) -> Tool {
    Tool::from_declaration(ToolDeclaration::new(name, "A tool.", json!({"type": "object"})), run)
}

/// A tool that says its name.
pub(crate) fn says_its_name(name: &'static str) -> Tool {
    tool(name, async move |_, _| Ok(name))
}

/// A tool that says that it has begun and never returns.
pub(crate) fn never_returns(name: &str) -> Tool {
    tool(name, async |_, context| {
        context.update("it has begun");
        pending::<Result<&str, ToolError>>().await
    })
}

/// An answer that calls tools without arguments; the ids are `c1`, `c2`, …
pub(crate) fn calls(names: &[&str]) -> FauxReply {
    let call = |(at, name): (usize, &&str)| ToolCall::new(format!("c{}", at + 1), *name, json!({})).into();
    FauxReply::blocks(names.iter().enumerate().map(call))
}

/// Everything that a listener hears, in short: names, and for messages the role.
pub(crate) fn record<C: CustomMessage>(agent: &Agent<C>) -> Arc<Mutex<Vec<String>>> {
    let heard = shared(Vec::new());
    let log = heard.clone();
    agent
        .subscribe(async move |event: AgentEvent<C>, _| {
            let line = match &event {
                AgentEvent::MessageStart { message } | AgentEvent::MessageEnd { message } => {
                    format!("{} {}", event.name(), message.role())
                }
                AgentEvent::ToolExecutionStart { call }
                | AgentEvent::ToolExecutionUpdate { call, .. }
                | AgentEvent::ToolExecutionEnd { call, .. } => format!("{} {}", event.name(), call.id),
                _ => event.name().to_owned(),
            };
            log.lock().unwrap().push(line);
        })
        .detach();
    heard
}

/// The messages of a transcript in short: role and text.
pub(crate) fn told<C: CustomMessage>(messages: &[AgentMessage<C>]) -> Vec<String> {
    messages.iter().map(|message| format!("{}: {}", message.role(), text_of(message))).collect()
}

/// The text of a message.
pub(crate) fn text_of<C: CustomMessage>(message: &AgentMessage<C>) -> String {
    use pi_ai::Message::{Assistant, System, ToolResult, User};
    match message.as_llm() {
        Some(System(message)) => message.content.text().into_owned(),
        Some(User(message)) => message.content.text().into_owned(),
        Some(Assistant(message)) => match &message.error_message {
            Some(error) => format!("{}!{error}", message.text()),
            None => message.text(),
        },
        Some(ToolResult(message)) => {
            message.content.iter().filter_map(pi_ai::InputBlock::as_text).collect::<Vec<_>>().join("\n")
        }
        None => String::new(),
    }
}

/// What was heard, without the updates of answers.
pub(crate) fn without_updates(heard: &Mutex<Vec<String>>) -> Vec<String> {
    heard.lock().unwrap().iter().filter(|line| *line != "message_update").cloned().collect()
}
