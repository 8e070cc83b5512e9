//! The hooks around tool calls, requests and turns, and what goes along with a request.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pi_agent_core::{
    Agent, AgentEvent, AgentHooks, AgentMessage, NoCustom, ToolOutput,
    hooks::{
        AfterToolCall, BeforeToolCall, HookError, NextTurn, Permission, PrepareRequest, RequestUpdate, ToolResultPatch,
        Turn, TurnDecision,
    },
};
use pi_ai::{
    AssistantBlock, CancellationToken, InputBlock, Message, Model, ProviderId, Secret, StopReason, StreamOptions,
    ThinkingLevel, ToolResultMessage,
    faux::{FauxProvider, FauxReply},
    options::{Identity, ProviderHooks, provider_hook},
};
use serde_json::json;

use crate::support::{calls, record, says_its_name, soon, text_of, told, tool, without_updates};

struct ChangesArguments;

#[async_trait]
impl AgentHooks<NoCustom> for ChangesArguments {
    async fn before_tool_call(&self, call: &mut BeforeToolCall<'_, NoCustom>) -> Result<Permission, HookError> {
        assert_eq!(call.assistant_message.tool_calls().count(), 1);
        assert_eq!(call.messages.len(), 3);
        call.arguments.insert("path".into(), json!(7));
        Ok(Permission::Allow)
    }

    async fn after_tool_call(&self, call: &AfterToolCall<'_, NoCustom>) -> Result<ToolResultPatch, HookError> {
        let text = format!("{} with {}", call.output.to_text(), call.arguments["path"]);
        Ok(ToolResultPatch { content: Some(vec![InputBlock::text(text)]), ..ToolResultPatch::default() })
    }
}

/// The hook is trusted: what it puts in is not checked against the schema again.
#[tokio::test]
async fn a_hook_may_change_arguments_and_what_came_of_them() {
    let read = tool("read", async |arguments, _| Ok(format!("read {}", arguments["path"])));
    let model = FauxProvider::new([FauxReply::tool_call("read", json!({"path": "a"})), FauxReply::text("ok")]);
    let agent = Agent::builder(model).tool(read).hooks(ChangesArguments).build();
    let reply = soon(agent.prompt("go")).await.unwrap();
    assert_eq!(text_of(&reply.messages()[2]), "read 7 with 7");
}

/// Takes the place of what the model said and of what its tools gave.
struct Rewrites;

#[async_trait]
impl AgentHooks<NoCustom> for Rewrites {
    async fn complete_message(&self, message: &AgentMessage, _signal: &CancellationToken) -> Option<AgentMessage> {
        match message {
            AgentMessage::Llm(Message::Assistant(answer)) if answer.tool_calls().next().is_some() => {
                let mut answer = (**answer).clone();
                for block in &mut answer.content {
                    if let AssistantBlock::ToolCall(call) = block {
                        call.name = "read".into();
                    }
                }
                Some(AgentMessage::Llm(Message::Assistant(Arc::new(answer))))
            }
            AgentMessage::Llm(Message::ToolResult(result)) => {
                let content = vec![InputBlock::text("rewritten")];
                let result = ToolResultMessage { content, ..(**result).clone() };
                Some(AgentMessage::Llm(Message::ToolResult(Arc::new(result))))
            }
            // Another role is none that can stand here.
            AgentMessage::Llm(Message::User(_)) => Some(AgentMessage::Llm(Message::system("I never said this"))),
            _ => panic!("a hook that panics changes nothing"),
        }
    }
}

#[tokio::test]
async fn a_message_that_takes_the_place_of_another_counts_for_all_that_follows() {
    let read = tool("read", async |_, _| Ok("read it".to_owned()));
    let model = FauxProvider::new([FauxReply::tool_call("delete", json!({})), FauxReply::text("ok")]);
    let agent = Agent::builder(model.clone()).system_prompt("Be kind.").tool(read).hooks(Rewrites).build();
    let reply = soon(agent.prompt("go")).await.unwrap();
    // The call that ran is the one of the replacement, and the next request has it, too.
    let result = reply.messages().iter().find_map(AgentMessage::as_tool_result).unwrap();
    assert_eq!((&*result.tool_name, result.is_error), ("read", false));
    let second: Vec<String> =
        model.requests()[1].context.messages().iter().map(|message| format!("{message:?}")).collect();
    assert!(second.iter().any(|message| message.contains("rewritten")), "{second:?}");
    assert!(!second.iter().any(|message| message.contains("delete") || message.contains("never said")), "{second:?}");
    assert_eq!(reply.text(), "ok");
    assert!(agent.state().messages.iter().any(|message| text_of(message) == "go"));
}

#[derive(Clone, Default)]
struct Switches {
    asked: Arc<Mutex<Vec<ThinkingLevel>>>,
}

#[async_trait]
impl AgentHooks<NoCustom> for Switches {
    async fn prepare_request(
        &self,
        request: &PrepareRequest<'_, NoCustom>,
    ) -> Result<RequestUpdate<NoCustom>, HookError> {
        let mut asked = self.asked.lock().unwrap();
        asked.push(request.thinking_level);
        if asked.len() > 1 {
            return Ok(RequestUpdate::default());
        }
        let model = Model { id: "other".into(), ..Model::clone(request.model) };
        Ok(RequestUpdate {
            messages: Some(vec![AgentMessage::user("only this")]),
            model: Some(model.into()),
            thinking_level: Some(ThinkingLevel::High),
            ..RequestUpdate::default()
        })
    }
}

#[tokio::test]
async fn what_prepare_request_replaces_holds_for_the_rest_of_the_run_and_leaves_the_agent_alone() {
    let switches = Switches::default();
    let model = FauxProvider::new([calls(&["echo"]), FauxReply::text("ok")]);
    let agent = Agent::builder(model.clone())
        .tool(says_its_name("echo"))
        .model(FauxProvider::model())
        .hooks(switches.clone())
        .build();
    let reply = soon(agent.prompt("go")).await.unwrap();
    let requests = model.requests();
    assert!(requests.iter().all(|request| request.model.id == "other"));
    assert!(requests.iter().all(|request| request.options.reasoning == Some(ThinkingLevel::High)));
    assert_eq!(*switches.asked.lock().unwrap(), [ThinkingLevel::Off, ThinkingLevel::High]);
    // The replaced list declared no tools: the model is told about them again.
    let sent: Vec<_> = requests[1].context.messages().iter().map(pi_ai::Message::role).collect();
    assert_eq!(sent, ["user", "system", "assistant", "toolResult"]);
    assert_eq!(reply.answer().unwrap().thinking_level, Some(ThinkingLevel::High));
    let state = agent.state();
    assert_eq!(state.model.id, "faux-1");
    assert_eq!(state.thinking_level, ThinkingLevel::Off);
    assert_eq!(told(&state.messages)[1], "user: go");
}

struct Broken(&'static str);

#[async_trait]
impl AgentHooks<NoCustom> for Broken {
    async fn prepare_request(
        &self,
        _request: &PrepareRequest<'_, NoCustom>,
    ) -> Result<RequestUpdate<NoCustom>, HookError> {
        if self.0 == "prepare_request" { Err(HookError::new("cannot prepare")) } else { Ok(RequestUpdate::default()) }
    }

    async fn finish_turn(&self, _turn: &Turn<'_, NoCustom>) -> Result<TurnDecision, HookError> {
        if self.0 == "finish_turn" { Err(HookError::new("cannot finish")) } else { Ok(TurnDecision::Natural) }
    }

    async fn prepare_next_turn(&self, _last: &Turn<'_, NoCustom>) -> Result<NextTurn<NoCustom>, HookError> {
        if self.0 == "prepare_next_turn" { Err(HookError::new("cannot go on")) } else { Ok(NextTurn::default()) }
    }
}

#[tokio::test]
async fn a_hook_that_fails_ends_the_run_with_an_error_turn() {
    for hook in ["prepare_request", "finish_turn", "prepare_next_turn"] {
        let model = FauxProvider::new([calls(&["echo"]), FauxReply::text("ok")]);
        let agent = Agent::builder(model).tool(says_its_name("echo")).hooks(Broken(hook)).build();
        let heard = record(&agent);
        let reply = soon(agent.prompt("go")).await.unwrap();
        let answer = reply.answer().unwrap();
        assert_eq!(answer.stop_reason, StopReason::Error, "{hook}");
        assert!(answer.error_message.as_deref().unwrap().starts_with("cannot"));
        let heard = without_updates(&heard);
        let count = |name: &str| heard.iter().filter(|line| *line == name).count();
        assert_eq!(count("turn_start"), count("turn_end"), "{hook}: {heard:#?}");
    }
}

#[tokio::test]
async fn a_key_is_asked_for_before_every_request() {
    let asked: Arc<Mutex<Vec<ProviderId>>> = Arc::default();
    let log = asked.clone();
    let model = FauxProvider::new([calls(&["echo"]), FauxReply::text("ok")]);
    let agent = Agent::builder(model.clone())
        .model(FauxProvider::model())
        .tool(says_its_name("echo"))
        .key_source(async move |provider, _signal: CancellationToken| {
            let mut asked = log.lock().unwrap();
            asked.push(provider);
            (asked.len() > 1).then(|| Secret::new("fresh"))
        })
        .stream_options(StreamOptions { api_key: Some("configured".into()), ..StreamOptions::default() })
        .build();
    soon(agent.prompt("go")).await.unwrap();
    assert_eq!(*asked.lock().unwrap(), ["faux", "faux"]);
    let keys: Vec<_> = model.requests().iter().map(|request| request.options.api_key.clone().unwrap()).collect();
    assert_eq!(keys.iter().map(Secret::expose).collect::<Vec<_>>(), ["configured", "fresh"]);
}

#[tokio::test]
async fn provider_hooks_identity_and_session_go_along_with_every_request() {
    let model = FauxProvider::new([FauxReply::text("ok")]);
    let hooks = ProviderHooks {
        on_response: Some(provider_hook(async |_head| Ok(()))),
        on_payload: Some(provider_hook(async |_body| Ok(None))),
        on_stream_event: Some(provider_hook(async |_event| Ok(()))),
        ..ProviderHooks::default()
    };
    let identity = Identity { title: Some("my agent".into()), ..Identity::default() };
    let agent = Agent::builder(model.clone())
        .provider_hooks(hooks)
        .identity(identity.clone())
        .session_id("s1")
        .thinking_level(ThinkingLevel::Low)
        .build();
    soon(agent.prompt("go")).await.unwrap();
    let options = &model.requests()[0].options;
    assert_eq!((options.session_id.as_deref(), &options.identity), (Some("s1"), &identity));
    assert_eq!(options.reasoning, Some(ThinkingLevel::Low));
    let hooks = &options.hooks;
    assert!(hooks.on_response.is_some() && hooks.on_payload.is_some() && hooks.on_stream_event.is_some());
}

/// A listener has stored the answer before any of its calls is asked about.
#[tokio::test]
async fn the_end_of_a_message_is_a_barrier_before_its_calls() {
    let order: Arc<Mutex<Vec<&str>>> = Arc::default();
    struct Notes(Arc<Mutex<Vec<&'static str>>>);
    #[async_trait]
    impl AgentHooks<NoCustom> for Notes {
        async fn before_tool_call(&self, _call: &mut BeforeToolCall<'_, NoCustom>) -> Result<Permission, HookError> {
            self.0.lock().unwrap().push("asked");
            Ok(Permission::Allow)
        }
    }
    let model = FauxProvider::new([calls(&["echo"]), FauxReply::text("ok")]);
    let agent = Agent::builder(model).tool(says_its_name("echo")).hooks(Notes(order.clone())).build();
    let log = order.clone();
    agent
        .subscribe(async move |event: AgentEvent, _| {
            if let AgentEvent::MessageEnd { message } = event
                && message.as_assistant().is_some()
            {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                log.lock().unwrap().push("stored");
            }
        })
        .detach();
    soon(agent.prompt("go")).await.unwrap();
    assert_eq!(*order.lock().unwrap(), ["stored", "asked", "stored"]);
}

#[tokio::test]
async fn patches_are_merged_field_by_field() {
    struct Patches;
    #[async_trait]
    impl AgentHooks<NoCustom> for Patches {
        async fn after_tool_call(&self, call: &AfterToolCall<'_, NoCustom>) -> Result<ToolResultPatch, HookError> {
            assert!(!call.is_error);
            Ok(ToolResultPatch { is_error: Some(true), terminate: Some(true), ..ToolResultPatch::default() })
        }
    }
    let kept = tool("kept", async |_, _| Ok(ToolOutput::text("text").details(json!({"k": 1}))));
    let agent = Agent::builder(FauxProvider::new([calls(&["kept"])])).tool(kept).hooks(Patches).build();
    let reply = soon(agent.prompt("go")).await.unwrap();
    let result = reply.messages()[2].as_tool_result().unwrap();
    assert!(result.is_error);
    assert_eq!(result.details, Some(json!({"k": 1})));
    // Every call said that the run may end: there is no further request.
    assert_eq!(reply.messages().len(), 3);
}
