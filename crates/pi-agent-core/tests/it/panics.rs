//! Code of others that panics: the run stays in order.

use async_trait::async_trait;
use pi_agent_core::{
    Agent, AgentError, AgentEvent, AgentHooks, AgentMessage, CustomMessage, NoCustom, RequestId, RequestObserver,
    Stage,
    hooks::{
        AfterToolCall, BeforeToolCall, HookError, NextTurn, Permission, PrepareRequest, RequestUpdate, ToolResultPatch,
        Turn, TurnDecision,
    },
};
use pi_ai::{
    AssistantEvent, AssistantStream, Message, StopReason,
    faux::{FauxProvider, FauxReply},
    stream_fn,
};
use serde::{Deserialize, Serialize};

use crate::{
    log::Log,
    support::{calls, quiet_panic, record, says_its_name, soon, text_of, tool, without_updates},
};

#[tokio::test]
async fn a_tool_that_panics_gives_an_error_result_and_the_run_goes_on() {
    let broken = tool("broken", async |_, _| -> Result<&str, _> { quiet_panic("index out of range") });
    let model = FauxProvider::new([calls(&["broken", "fine"]), FauxReply::text("I see.")]);
    let agent = Agent::builder(model).tool(broken).tool(says_its_name("fine")).build();
    let reply = soon(agent.prompt("go")).await.unwrap();
    let results: Vec<_> = reply.messages().iter().filter_map(AgentMessage::as_tool_result).collect();
    assert_eq!((results[0].is_error, results[1].is_error), (true, false));
    assert!(text_of(&reply.messages()[2]).contains("index out of range"));
    assert_eq!(reply.into_text().unwrap(), "I see.");
}

#[tokio::test]
async fn preparing_arguments_may_panic_too() {
    let broken = says_its_name("broken").prepare_arguments(|_| quiet_panic("no such key"));
    let model = FauxProvider::new([calls(&["broken"]), FauxReply::text("I see.")]);
    let reply = soon(Agent::builder(model).tool(broken).build().prompt("go")).await.unwrap();
    assert!(text_of(&reply.messages()[2]).contains("no such key"));
    assert_eq!(reply.into_text().unwrap(), "I see.");
}

enum BrokenHooks {
    Before,
    After,
}

#[async_trait]
impl AgentHooks<NoCustom> for BrokenHooks {
    async fn before_tool_call(&self, _call: &mut BeforeToolCall<'_, NoCustom>) -> Result<Permission, HookError> {
        match self {
            Self::Before => quiet_panic("before"),
            Self::After => Ok(Permission::Allow),
        }
    }

    async fn after_tool_call(&self, _call: &AfterToolCall<'_, NoCustom>) -> Result<ToolResultPatch, HookError> {
        match self {
            Self::Before => Ok(ToolResultPatch::default()),
            Self::After => quiet_panic("after"),
        }
    }
}

#[tokio::test]
async fn a_tool_hook_that_panics_gives_an_error_result() {
    for (hooks, text) in [(BrokenHooks::Before, "before"), (BrokenHooks::After, "after")] {
        let model = FauxProvider::new([calls(&["fine"]), FauxReply::text("I see.")]);
        let agent = Agent::builder(model).tool(says_its_name("fine")).hooks(hooks).build();
        let reply = soon(agent.prompt("go")).await.unwrap();
        assert!(reply.messages()[2].as_tool_result().unwrap().is_error);
        assert!(text_of(&reply.messages()[2]).contains(text));
        assert_eq!(reply.into_text().unwrap(), "I see.");
    }
}

/// The events of a run whose request could not be made.
const ERROR_TURN: [&str; 8] = [
    "agent_start",
    "turn_start",
    "message_start user",
    "message_end user",
    "message_start assistant",
    "message_end assistant",
    "turn_end",
    "agent_end",
];

async fn ends_in_an_error_turn(agent: Agent, text: &str) {
    let heard = record(&agent);
    let reply = soon(agent.prompt("go")).await.unwrap();
    assert_eq!(without_updates(&heard), ERROR_TURN);
    let answer = reply.answer().unwrap();
    assert_eq!((answer.stop_reason, answer.error_message.as_deref()), (StopReason::Error, Some(text)));
    assert!(matches!(reply.check(), Err(AgentError::Failed { cause: Some(_), .. })));
    assert_eq!(agent.state().error_message.as_deref(), Some(text));
    // And the agent goes on.
    agent.set_transform_context(async |messages, _| messages);
    agent.set_convert_to_llm(|never: &NoCustom| -> Option<Message> { match *never {} });
    assert!(soon(agent.prompt("again")).await.is_ok());
}

#[tokio::test]
async fn a_hook_that_panics_ends_the_run_with_an_error_turn() {
    let polled = Agent::builder(FauxProvider::new([]))
        .transform_context(async |_messages: Vec<AgentMessage>, _| quiet_panic("transform"))
        .build();
    ends_in_an_error_turn(polled, "The hook `transform_context` panicked: transform").await;

    let converting = Agent::builder(FauxProvider::new([]))
        .convert_list_to_llm(async |_messages: Vec<AgentMessage>, _| quiet_panic("convert"))
        .build();
    ends_in_an_error_turn(converting, "The hook `convert_to_llm` panicked: convert").await;

    let asking = Agent::builder(FauxProvider::new([])).key_source(async |_, _| quiet_panic("keys")).build();
    let heard = record(&asking);
    let reply = soon(asking.prompt("go")).await.unwrap();
    assert_eq!(without_updates(&heard), ERROR_TURN);
    assert_eq!(reply.answer().unwrap().error_message.as_deref(), Some("The key source panicked: keys"));
}

struct BrokenSchedule(&'static str);

#[async_trait]
impl AgentHooks<NoCustom> for BrokenSchedule {
    async fn prepare_request(
        &self,
        _request: &PrepareRequest<'_, NoCustom>,
    ) -> Result<RequestUpdate<NoCustom>, HookError> {
        if self.0 == "prepare_request" { quiet_panic("oh") } else { Ok(RequestUpdate::default()) }
    }

    async fn finish_turn(&self, _turn: &Turn<'_, NoCustom>) -> Result<TurnDecision, HookError> {
        if self.0 == "finish_turn" { quiet_panic("oh") } else { Ok(TurnDecision::Natural) }
    }

    async fn prepare_next_turn(&self, _last: &Turn<'_, NoCustom>) -> Result<NextTurn<NoCustom>, HookError> {
        if self.0 == "prepare_next_turn" { quiet_panic("oh") } else { Ok(NextTurn::default()) }
    }
}

#[tokio::test]
async fn an_error_turn_names_the_hook_that_panicked() {
    for name in ["prepare_request", "finish_turn", "prepare_next_turn"] {
        let model = FauxProvider::new([calls(&["fine"]), FauxReply::text("never")]);
        let agent = Agent::builder(model).tool(says_its_name("fine")).hooks(BrokenSchedule(name)).build();
        let reply = soon(agent.prompt("go")).await.unwrap();
        let said = reply.answer().unwrap().error_message.clone();
        assert_eq!(said, Some(format!("The hook `{name}` panicked: oh")));
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "role")]
enum Role {
    Note,
}
impl CustomMessage for Role {}

#[tokio::test]
async fn a_converter_that_panics_ends_the_run_with_an_error_turn() {
    let agent = Agent::with_roles::<Role>(FauxProvider::new([]))
        .convert_to_llm(|_: &Role| -> Option<Message> { quiet_panic("convert one") })
        .build();
    let reply = soon(agent.prompt([Role::Note.into(), AgentMessage::user("go")])).await.unwrap();
    let said = reply.answer().unwrap().error_message.as_deref();
    assert_eq!(said, Some("The hook `convert_to_llm` panicked: convert one"));
}

#[tokio::test]
async fn a_stream_function_that_panics_ends_the_run_with_an_error_turn() {
    let agent = Agent::builder(stream_fn(|_, _, _| quiet_panic("stream"))).build();
    ends_in_an_error_turn(agent, "stream").await;
}

#[tokio::test]
async fn a_stream_that_panics_half_way_keeps_what_came() {
    let breaks = stream_fn(|model, _context, options| {
        let events = [
            AssistantEvent::Start,
            AssistantEvent::TextStart { index: 0 },
            AssistantEvent::TextDelta { index: 0, delta: "half".into() },
        ];
        let panics = futures::stream::once(async { quiet_panic("decoder") });
        let events = futures::StreamExt::chain(futures::stream::iter(events), panics);
        AssistantStream::from_events(model, Default::default(), options.signal, events)
    });
    let agent = Agent::builder(breaks).build();
    let heard = record(&agent);
    let reply = soon(agent.prompt("go")).await.unwrap();
    assert_eq!(without_updates(&heard), ERROR_TURN);
    assert_eq!(text_of(reply.messages().last().unwrap()), "half!decoder");
}

#[tokio::test]
async fn a_listener_that_panics_is_detached_and_reported_once() {
    let log = Log::watch();
    let agent = Agent::builder(FauxProvider::new([FauxReply::text("one"), FauxReply::text("two")])).build();
    let before = record(&agent);
    agent
        .subscribe(async |event: AgentEvent, _| {
            if let AgentEvent::TurnStart = event {
                quiet_panic("listener");
            }
        })
        .detach();
    let after = record(&agent);
    assert_eq!(soon(agent.prompt("go")).await.unwrap().into_text().unwrap(), "one");
    assert_eq!(soon(agent.prompt("go")).await.unwrap().into_text().unwrap(), "two");
    assert_eq!(log.lines_with("listener").len(), 1);
    assert_eq!(agent.state().error_message, None);
    assert_eq!(*before.lock().unwrap(), *after.lock().unwrap());
}

struct BrokenObserver;

impl RequestObserver<NoCustom> for BrokenObserver {
    fn stage(&self, _request: RequestId, _stage: Stage<'_, NoCustom>) {
        quiet_panic("observer");
    }
}

#[tokio::test]
async fn an_observer_that_panics_is_left_out() {
    let log = Log::watch();
    let agent = Agent::builder(FauxProvider::new([FauxReply::text("one")])).observer(BrokenObserver).build();
    assert_eq!(soon(agent.prompt("go")).await.unwrap().into_text().unwrap(), "one");
    assert_eq!(log.lines_with("observer").len(), 1);
}

/// Types of the application may panic as well: here a clock, in the middle of a run.
#[tokio::test]
async fn whatever_panics_the_sequence_is_complete() {
    struct StopsSoon(std::sync::atomic::AtomicUsize);
    impl pi_ai::Clock for StopsSoon {
        fn now(&self) -> pi_ai::Timestamp {
            match self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                0..=2 => Default::default(),
                _ => quiet_panic("the clock stopped"),
            }
        }
    }
    let model = FauxProvider::new([calls(&["fine"]), FauxReply::text("never")]);
    let agent = Agent::builder(model).tool(says_its_name("fine")).clock(StopsSoon(Default::default())).build();
    let heard = record(&agent);
    let reply = soon(agent.prompt("go")).await.unwrap();
    let heard = without_updates(&heard);
    let count = |name: &str| heard.iter().filter(|line| line.starts_with(name)).count();
    assert_eq!(count("message_start"), count("message_end"), "{heard:#?}");
    assert_eq!(count("tool_execution_start"), count("tool_execution_end"));
    assert_eq!((count("turn_start"), count("turn_end"), count("agent_end")), (1, 1, 1));
    let said = reply.answer().unwrap().error_message.clone().unwrap();
    assert!(said.ends_with("panicked: the clock stopped"), "{said}");
}
