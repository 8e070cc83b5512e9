//! What a manifest declares, registered.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    connection::{CallClock, Patience},
    manifest::{DeclaredCommand, MessageDetail, Subscription},
    program::Program,
    tool,
};
use crate::{
    extensions::{
        Command, Completion, EventKind, ExtensionApi, ExtensionContext, ExtensionError, Flag, FlagKind, RenderOptions,
        RenderedEntry, Shortcut,
        api::KeptRunning,
        event::{self, Boundary, ContextEvent, ContextOutcome, ContextWithSystemOutcome},
        outcome::Outcome,
    },
    messages::CustomContent,
    styled_text::StyledText,
};

/// Registers everything that the program's manifest declares.
pub(super) fn register(pi: &mut ExtensionApi, program: &Arc<Program>) {
    let manifest = program.manifest().clone();
    for (kind, subscription) in &manifest.events {
        handle(pi, *kind, subscription, program);
    }
    for (name, tool) in &manifest.tools {
        pi.register_session_tool(tool::session_tool(name, tool, program.clone()));
    }
    for (name, declared) in &manifest.commands {
        pi.register_command(command(name, declared, program));
    }
    for (name, declared) in &manifest.flags {
        let mut flag = match declared.kind {
            FlagKind::Switch => Flag::switch(name),
            FlagKind::Text => Flag::text(name),
        };
        if let Some(description) = &declared.description {
            flag = flag.description(description);
        }
        pi.register_flag(match declared.default.clone() {
            Some(value) => flag.default_value(value),
            None => flag,
        });
    }
    for (key, declared) in &manifest.shortcuts {
        let (pressed, program) = (key.to_lowercase(), program.clone());
        let shortcut = Shortcut::new(key, async move |(), ctx| {
            let time = program.manifest().timeouts.command;
            program.run_command("shortcut/press", &json!({"key": pressed}), time, ctx).await
        });
        pi.register_shortcut(match &declared.description {
            Some(description) => shortcut.description(description),
            None => shortcut,
        });
    }
    for provider in &manifest.providers {
        pi.register_provider(provider.clone());
    }
    for custom_type in &manifest.entry_renderers {
        let program = program.clone();
        pi.register_async_entry_renderer(
            custom_type,
            async move |entry: RenderedEntry<Value>, options: RenderOptions| {
                let entry = json!({"id": entry.id, "customType": entry.custom_type, "data": entry.data});
                draw(&program, "render/entry", &json!({"entry": entry, "expanded": options.is_expanded()})).await
            },
        );
    }
    for custom_type in &manifest.message_renderers {
        let program = program.clone();
        pi.register_async_message_renderer(custom_type, async move |message: CustomContent, options: RenderOptions| {
            draw(&program, "render/message", &json!({"message": message, "expanded": options.is_expanded()})).await
        });
    }
    for channel in &manifest.bus {
        let (program, name) = (program.clone(), channel.clone());
        pi.on_bus(channel, async move |value: Value, ctx: ExtensionContext| {
            let patience = event_patience(&program);
            program.ask("bus/message", &json!({"channel": name, "value": value}), patience, ctx.signal()).await?;
            Ok(())
        });
    }
    pi.keep_running(program.clone());
}

impl KeptRunning for Program {
    fn close(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move { Self::close(&self).await })
    }

    fn kill(&self) {
        Self::kill(self);
    }
}

fn event_patience(program: &Program) -> Patience {
    Patience { time: program.manifest().timeouts.event, clock: CallClock::WhenNotBusy }
}

async fn draw(program: &Program, method: &str, params: &Value) -> Result<StyledText, ExtensionError> {
    let never = pi_ai::CancellationToken::new();
    let drawn = program.ask(method, params, event_patience(program), &never).await?;
    // A text is the simplest drawing.
    match drawn {
        Value::String(text) => Ok(StyledText::from(text)),
        drawn => Ok(serde_json::from_value(drawn)?),
    }
}

fn command(name: &str, declared: &DeclaredCommand, program: &Arc<Program>) -> Command {
    let (own, called) = (program.clone(), name.to_owned());
    let time = declared.timeout_ms.map_or(program.manifest().timeouts.command, Duration::from_millis);
    let mut command = Command::new(name, async move |arguments: String, ctx| {
        own.run_command("command/run", &json!({"name": called, "arguments": arguments}), time, ctx).await
    });
    if let Some(description) = &declared.description {
        command = command.description(description);
    }
    let words = declared.completions.clone();
    if words.is_empty() {
        return command;
    }
    command.completions(move |beginning| {
        let fitting = words.iter().filter(|word| word.starts_with(beginning));
        fitting.map(|word| Completion { value: word.clone(), description: None }).collect()
    })
}

/// Has the program handle an event.
fn handle(pi: &mut ExtensionApi, kind: EventKind, subscription: &Subscription, program: &Arc<Program>) {
    let program = program.clone();
    let detail = subscription.messages.unwrap_or_default();
    match kind {
        EventKind::Context => {
            pi.on(event::Context, async move |event: ContextEvent, ctx: ExtensionContext| {
                operations::<ContextOutcome>(ask_for_operations(&program, kind, detail, event, &ctx).await?)
            });
        }
        EventKind::ContextWithSystem => {
            pi.on(event::ContextWithSystem, async move |event: ContextEvent, ctx: ExtensionContext| {
                operations::<ContextWithSystemOutcome>(ask_for_operations(&program, kind, detail, event, &ctx).await?)
            });
        }
        EventKind::TurnEnd if detail == MessageDetail::Described => {
            pi.on(event::TurnEnd, async move |mut event: event::TurnEndEvent, ctx: ExtensionContext| {
                let count = without_messages(&mut event.boundary);
                boundary(&program, kind, &event, count, &ctx).await
            });
        }
        EventKind::AgentBeforeSettle if detail == MessageDetail::Described => {
            pi.on(
                event::AgentBeforeSettle,
                async move |mut event: event::AgentBeforeSettleEvent, ctx: ExtensionContext| {
                    let count = without_messages(&mut event.boundary);
                    boundary(&program, kind, &event, count, &ctx).await
                },
            );
        }
        _ => {
            pi.on_json(kind, move |event, ctx| {
                let program = program.clone();
                Box::pin(async move { program.event(kind, &event, ctx.signal()).await })
            });
        }
    }
}

async fn ask_for_operations(
    program: &Program,
    kind: EventKind,
    detail: MessageDetail,
    event: ContextEvent,
    ctx: &ExtensionContext,
) -> Result<Value, ExtensionError> {
    match detail {
        MessageDetail::Described => program.context_event(kind, event.messages, ctx.signal()).await,
        MessageDetail::Whole => {
            let event = json!({"type": kind.as_str(), "messages": event.messages});
            program.event(kind, &event, ctx.signal()).await
        }
    }
}

/// The operations of an answer. Messages that none of them inserts stay the same ones, so that what is unchanged can be
/// told from what is not.
fn operations<T: Outcome>(answer: Value) -> Result<T, ExtensionError> {
    if answer.get("messages").is_some_and(|messages| !messages.is_null()) {
        return Err(ExtensionError::new(
            "a program answers with `operations` (keep, drop, insert), not with a list of messages",
        ));
    }
    T::from_json(answer)
}

/// Takes the messages away, and gives their number.
fn without_messages(boundary: &mut Boundary) -> usize {
    let count = boundary.context.context_messages.len();
    let context = Arc::make_mut(&mut boundary.context);
    context.context_messages = Vec::new();
    context.llm_messages = Vec::new();
    count
}

async fn boundary<E: Serialize>(
    program: &Program,
    kind: EventKind,
    event: &E,
    messages: usize,
    ctx: &ExtensionContext,
) -> Result<event::BoundaryOutcome, ExtensionError> {
    let mut told = json!({"type": kind.as_str()});
    if let (Value::Object(told), Value::Object(fields)) = (&mut told, serde_json::to_value(event)?) {
        told.extend(fields);
        if let Some(Value::Object(context)) = told.get_mut("context") {
            context.shift_remove("contextMessages");
            context.shift_remove("llmMessages");
            context.insert("messageCount".to_owned(), messages.into());
        }
    }
    event::BoundaryOutcome::from_json(program.event(kind, &told, ctx.signal()).await?)
}
