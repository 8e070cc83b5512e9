//! Whole runs of an agent against a scripted model.

mod model;
mod record;
mod script;
mod tools;

use std::sync::{Arc, Mutex, PoisonError};

use pi_ai::{InputBlock, Timestamp, UserMessage, time::FixedClock};
use serde_json::{Map, Value, json};

use self::{
    model::ScriptedModel,
    record::Recorder,
    script::{Action, Case, Step},
    tools::{ScriptedHooks, tool_set},
};
use crate::{Agent, AgentError, AgentEvent, AgentMessage, NoCustom, WeakAgent, agent::AgentBuilder};

/// Runs a case of `agent`.
///
/// Scripts have timing in them: a thread and a runtime of their own keep the order of what happens at one moment.
pub async fn run(file_stem: &str, input: &Value) -> Option<Value> {
    if file_stem != "agent" {
        return None;
    }
    let input = input.clone();
    let (sender, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let made = runtime.map(|runtime| runtime.block_on(run_case(input)));
        // Nobody may be left to read it.
        let _ = sender.send(made);
    });
    match answer.await {
        Ok(Ok(Ok(output))) => Some(output),
        Ok(Ok(Err(error))) => Some(json!({"runner_error": error.to_string()})),
        Ok(Err(error)) => Some(json!({"runner_error": error.to_string()})),
        Err(_) => Some(json!({"runner_error": "the case panicked"})),
    }
}

async fn run_case(input: Value) -> Result<Value, serde_json::Error> {
    let case: Arc<Case> = Arc::new(serde_json::from_value(input)?);
    let model = ScriptedModel::new(&case);
    let recorder = Arc::new(Recorder::new(model.clone()));
    let agent = builder(&case, &model).build();
    let listener = Listener { case: case.clone(), agent: agent.downgrade(), recorder: recorder.clone() };
    agent.subscribe(async move |event: AgentEvent, _context| listener.hear(&event)).detach();

    let mut errors = Vec::new();
    for (index, step) in case.steps.iter().enumerate() {
        if let Err(refused) = take(step, &case, &agent).await {
            tracing::debug!(%refused, index, "a step was refused");
            errors.push(json!({"step": index}));
        }
    }

    let state = agent.state();
    Ok(json!({
        "events": recorder.take_events(),
        "requests": model.requests(),
        "messages": state.messages.iter().map(record::message).collect::<Vec<_>>(),
        "errors": errors,
        "queued": agent.has_queued_messages(),
        "error_message": state.error_message,
    }))
}

fn builder(case: &Arc<Case>, model: &ScriptedModel) -> AgentBuilder {
    let names = case.initial.tools.clone().unwrap_or_else(|| case.tools.keys().cloned().collect());
    let options = &case.options;
    let mut builder = Agent::builder(model.clone())
        .model(case.model.clone())
        .clock(FixedClock(Timestamp::from_millis(1_700_000_000_000)))
        .system_prompt(case.initial.system_prompt.clone().unwrap_or_default())
        .messages(case.initial.messages.clone())
        .tools(tool_set(case, &names))
        .tool_execution(options.tool_execution.unwrap_or_default().into())
        .steering_mode(options.steering_mode.unwrap_or_default().into())
        .follow_up_mode(options.follow_up_mode.unwrap_or_default().into())
        .thinking_level(options.thinking_level.unwrap_or_default())
        .hooks(ScriptedHooks::new(case.clone()));
    if options.transform_context.as_deref() == Some("keep_last_two") {
        builder = builder.transform_context(async |messages: Vec<AgentMessage>, _signal| {
            let oldest = messages.len().saturating_sub(2);
            messages.into_iter().skip(oldest).collect()
        });
    }
    if options.convert_to_llm.as_deref() == Some("drop_all_but_user") {
        builder = builder.convert_list_to_llm(async |messages: Vec<AgentMessage>, _signal| {
            let users = messages.iter().filter_map(AgentMessage::as_llm).filter(|message| message.role() == "user");
            users.cloned().collect()
        });
    }
    builder
}

async fn take(step: &Step, case: &Arc<Case>, agent: &Agent) -> Result<(), AgentError> {
    match step {
        Step::Prompt(script::Prompt::Text(text)) => drop(agent.prompt(text.as_str()).await?),
        Step::Prompt(script::Prompt::Messages(messages)) => drop(agent.prompt(messages.clone()).await?),
        Step::Continue(true) => drop(agent.continue_run().await?),
        Step::Append(messages) => {
            let state = agent.state();
            agent.set_messages(state.messages.iter().chain(messages).cloned());
        }
        Step::Reset(true) => agent.reset()?,
        Step::Continue(false) | Step::Reset(false) => {}
        Step::Action(action) => act(action, case, agent),
    }
    Ok(())
}

fn act(action: &Action, case: &Arc<Case>, agent: &Agent) {
    match action {
        Action::Steer(text) => agent.steer(user(text)),
        Action::FollowUp(text) => agent.follow_up(user(text)),
        Action::SetTools(names) => agent.set_tools(tool_set(case, names)),
        Action::Abort(true) => agent.abort(),
        Action::Clear(true) => drop(agent.clear_all_queues()),
        Action::Abort(false) | Action::Clear(false) => {}
    }
}

fn user(text: &str) -> AgentMessage {
    let content = [InputBlock::text(text)].into();
    UserMessage { content, timestamp: Timestamp::from_millis(1) }.into()
}

/// Writes events down and does what the script says about them.
#[derive(Clone)]
struct Listener {
    case: Arc<Case>,
    agent: WeakAgent<NoCustom>,
    recorder: Arc<Recorder>,
}

impl Listener {
    fn hear(&self, event: &AgentEvent) {
        let nth = self.recorder.write(event);
        let Some(agent) = self.agent.upgrade() else { return };
        let due = self.case.during.iter().filter(|during| during.on == event.name() && during.nth == nth);
        for action in due.flat_map(|during| &during.actions) {
            act(action, &self.case, &agent);
        }
    }
}

/// A value that the script's parts take turns with.
fn lock<T>(value: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The fields of a JSON object.
fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
