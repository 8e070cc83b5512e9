//! Aborting, at any point and against any resistance.

use std::{future::pending, sync::mpsc, time::Duration};

use async_trait::async_trait;
use pi_agent_core::{
    Agent, AgentError, AgentEvent, AgentHooks, AgentMessage, ListenerContext, NoCustom, ToolError, WeakAgent,
    hooks::{BeforeToolCall, HookError, Permission},
};
use pi_ai::{
    AssistantEvent, AssistantStream, CancellationToken, ErrorKind, StopReason,
    faux::{FauxProvider, FauxReply},
    stream_fn,
};

use crate::support::{calls, never_returns, record, shared, soon, text_of, tool};

/// Aborts the agent when this event is heard.
fn abort_on(agent: &Agent, name: &'static str) {
    let person = agent.downgrade();
    agent
        .subscribe(async move |event: AgentEvent, _| {
            if let (true, Some(agent)) = (event.name() == name, person.upgrade()) {
                agent.abort();
            }
        })
        .detach();
}

/// Enough for several grace periods, of paused time.
async fn in_the_end<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("the run does not end")
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_ignores_the_abort_is_dropped_and_has_a_result() {
    let model = FauxProvider::new([calls(&["never"]), FauxReply::text("too late")]);
    let agent = Agent::builder(model).tool(never_returns("never")).build();
    abort_on(&agent, "tool_execution_update");
    let heard = record(&agent);
    let reply = in_the_end(agent.prompt("go")).await.unwrap();
    assert!(text_of(&reply.messages()[2]).contains("while this call was running"));
    assert!(reply.messages()[2].as_tool_result().unwrap().is_error);
    assert_eq!(reply.answer().unwrap().stop_reason, StopReason::Aborted);
    assert!(matches!(reply.check(), Err(AgentError::Aborted { .. })));
    assert_eq!(heard.lock().unwrap().last().unwrap(), "agent_end");
}

/// A future that never yields cannot be dropped; the run ends without it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_blocks_its_thread_does_not_hold_up_the_end_of_the_run() {
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = std::sync::Arc::new(std::sync::Mutex::new(blocked));
    let blocks = tool("blocks", async move |_, context| {
        context.update("it has begun");
        let _ = blocked.lock().unwrap().recv_timeout(Duration::from_secs(30));
        Ok("at last")
    });
    let model = FauxProvider::new([calls(&["blocks"])]);
    let agent = Agent::builder(model).tool(blocks).abort_grace(Duration::from_millis(20)).build();
    abort_on(&agent, "tool_execution_update");
    let reply = soon(agent.prompt("go")).await.unwrap();
    assert!(text_of(&reply.messages()[2]).contains("while this call was running"));
    drop(release);
}

#[tokio::test(start_paused = true)]
async fn a_tool_may_tidy_up_after_the_abort() {
    let tidy = tool("tidy", async |_, context| {
        context.update("it has begun");
        context.signal.cancelled().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok("half of it is done")
    });
    let agent = Agent::builder(FauxProvider::new([calls(&["tidy"])])).tool(tidy).build();
    abort_on(&agent, "tool_execution_update");
    let reply = in_the_end(agent.prompt("go")).await.unwrap();
    assert_eq!(text_of(&reply.messages()[2]), "half of it is done");
    assert!(!reply.messages()[2].as_tool_result().unwrap().is_error);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ignores_the_abort_is_dropped_and_what_came_stays() {
    let stubborn = stream_fn(|model, _context, _options| {
        let begin = [AssistantEvent::Start, AssistantEvent::TextStart { index: 0 }];
        let text = AssistantEvent::TextDelta { index: 0, delta: "so far".into() };
        let events = futures::stream::iter(begin.into_iter().chain([text]));
        let events = futures::StreamExt::chain(events, futures::stream::pending());
        AssistantStream::from_events(model, Default::default(), CancellationToken::new(), events)
    });
    let agent = Agent::builder(stubborn).build();
    abort_on(&agent, "message_update");
    let reply = in_the_end(agent.prompt("go")).await.unwrap();
    assert_eq!(reply.text(), "so far");
    assert_eq!(reply.answer().unwrap().stop_reason, StopReason::Aborted);
    assert_eq!(reply.error().unwrap().kind(), ErrorKind::Aborted);
}

/// One that always has something more to say, too.
#[tokio::test(start_paused = true)]
async fn a_stream_that_never_stops_talking_is_dropped_after_an_abort() {
    let chatty = stream_fn(|model, _context, _options| {
        let begin = futures::stream::iter([AssistantEvent::Start, AssistantEvent::TextStart { index: 0 }]);
        let more = futures::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Some((AssistantEvent::TextDelta { index: 0, delta: "bla ".into() }, ()))
        });
        let events = futures::StreamExt::chain(begin, more);
        AssistantStream::from_events(model, Default::default(), CancellationToken::new(), events)
    });
    let agent = Agent::builder(chatty).build();
    abort_on(&agent, "message_update");
    let reply = in_the_end(agent.prompt("go")).await.unwrap();
    assert_eq!(reply.answer().unwrap().stop_reason, StopReason::Aborted);
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_ignores_the_abort_is_dropped() {
    let agent = Agent::builder(FauxProvider::new([]))
        .transform_context(async |_messages: Vec<AgentMessage>, _signal| pending().await)
        .build();
    abort_on(&agent, "message_end");
    let heard = record(&agent);
    let reply = in_the_end(agent.prompt("go")).await.unwrap();
    assert_eq!(reply.answer().unwrap().stop_reason, StopReason::Aborted);
    assert_eq!(heard.lock().unwrap().last().unwrap(), "agent_end");
}

struct AsksForEver;

#[async_trait]
impl AgentHooks<NoCustom> for AsksForEver {
    async fn before_tool_call(&self, _call: &mut BeforeToolCall<'_, NoCustom>) -> Result<Permission, HookError> {
        pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_ends_with_the_abort() {
    let agent = Agent::builder(FauxProvider::new([calls(&["never", "never"])]))
        .tool(never_returns("never"))
        .hooks(AsksForEver)
        .build();
    abort_on(&agent, "tool_execution_start");
    let reply = in_the_end(agent.prompt("go")).await.unwrap();
    let results = reply.messages().iter().filter_map(AgentMessage::as_tool_result);
    assert_eq!(results.filter(|result| result.is_error).count(), 2);
}

#[tokio::test]
async fn dropping_a_run_aborts_it_and_its_events_are_completed() {
    let model = FauxProvider::new([FauxReply::text("partial").hang()]);
    let agent = Agent::builder(model).build();
    let heard = record(&agent);
    let timed_out = tokio::time::timeout(Duration::from_millis(20), agent.prompt("go")).await;
    assert!(timed_out.is_err());
    soon(agent.wait_for_idle()).await;
    assert_eq!(heard.lock().unwrap().last().unwrap(), "agent_end");
    let state = agent.state();
    let answer = state.messages.last().unwrap().as_assistant().unwrap();
    assert_eq!((answer.text().as_str(), answer.stop_reason), ("partial", StopReason::Aborted));
    assert!(!state.is_streaming);
}

#[tokio::test]
async fn a_detached_run_goes_on_by_itself() {
    let agent = Agent::builder(FauxProvider::new([FauxReply::text("done")])).build();
    agent.prompt("go").detach().unwrap();
    soon(agent.wait_for_idle()).await;
    assert_eq!(text_of(agent.state().messages.last().unwrap()), "done");
}

#[tokio::test]
async fn the_last_handle_takes_its_run_with_it() {
    let model = FauxProvider::new([FauxReply::text("partial").hang()]);
    let agent = Agent::builder(model).build();
    let (ended, end) = tokio::sync::mpsc::channel(1);
    agent
        .subscribe(async move |event: AgentEvent, _| {
            if let AgentEvent::AgentEnd { .. } = event {
                let _ = ended.send(()).await;
            }
        })
        .detach();
    agent.prompt("go").detach().unwrap();
    let weak = agent.downgrade();
    drop(agent);
    let mut end = end;
    soon(end.recv()).await;
    assert!(weak.upgrade().is_none());
}

#[tokio::test]
async fn after_an_abort_the_agent_can_be_prompted_again() {
    let model = FauxProvider::new([FauxReply::text("one").hang(), FauxReply::text("two")]);
    let agent = Agent::builder(model).build();
    let run = agent.prompt("go");
    agent.abort();
    assert!(matches!(soon(run).await.unwrap().into_text(), Err(AgentError::Aborted { .. })));
    assert_eq!(soon(agent.prompt("again")).await.unwrap().into_text().unwrap(), "two");
}

/// A hook that was asked for this request sees the abort; what it makes of the request is not sent.
#[tokio::test]
async fn an_abort_while_a_request_is_made_sends_nothing() {
    for place in ["transform_context", "convert_to_llm", "the key source"] {
        let model = FauxProvider::new([FauxReply::text("never asked for")]);
        let here = move |at: &'static str, signal: &CancellationToken, person: &std::sync::OnceLock<WeakAgent>| {
            if at == place {
                person.get().and_then(WeakAgent::upgrade).unwrap().abort();
                assert!(signal.is_cancelled());
            }
        };
        let person: std::sync::Arc<std::sync::OnceLock<WeakAgent>> = Default::default();
        let [first, second, third] = [person.clone(), person.clone(), person.clone()];
        let agent = Agent::builder(model.clone())
            .transform_context(async move |messages: Vec<AgentMessage>, signal: CancellationToken| {
                here("transform_context", &signal, &first);
                messages
            })
            .convert_list_to_llm(async move |messages: Vec<AgentMessage>, signal: CancellationToken| {
                here("convert_to_llm", &signal, &second);
                messages.iter().filter_map(|message| message.as_llm().cloned()).collect()
            })
            .key_source(async move |_provider, signal: CancellationToken| {
                here("the key source", &signal, &third);
                None
            })
            .build();
        person.set(agent.downgrade()).unwrap();
        let heard = record(&agent);
        let reply = soon(agent.prompt("go")).await.unwrap();
        assert_eq!(reply.answer().unwrap().stop_reason, StopReason::Aborted, "{place}");
        assert!(model.requests().is_empty(), "{place}");
        assert_eq!(heard.lock().unwrap().last().unwrap(), "agent_end");
    }
}

/// The run waits for listeners after an abort, too: what they store is what was told. The signal tells them not to take
/// their time; whoever only watches is not waited for.
#[tokio::test(start_paused = true)]
async fn a_listener_is_waited_for_after_an_abort_and_can_see_it() {
    let agent = Agent::builder(FauxProvider::new([FauxReply::text("hello")])).build();
    let watched = agent.events();
    abort_on(&agent, "turn_start");
    let stored = shared(0);
    let count = stored.clone();
    agent
        .subscribe(async move |event: AgentEvent, context: ListenerContext| {
            if let AgentEvent::TurnEnd { .. } = event {
                context.signal().cancelled().await;
                tokio::time::sleep(Duration::from_secs(30)).await;
                *count.lock().unwrap() += 1;
            }
        })
        .detach();
    let reply = in_the_end(agent.prompt("go")).await.unwrap();
    assert_eq!(reply.answer().unwrap().stop_reason, StopReason::Aborted);
    assert_eq!(*stored.lock().unwrap(), 1);
    drop(watched);
}

#[tokio::test]
async fn no_further_call_begins_after_an_abort() {
    let agent = Agent::builder(FauxProvider::new([calls(&["first", "second"])]))
        .tool(tool("first", async |_, _| Err::<&str, _>(ToolError::new("too early"))).sequential())
        .tool(tool("second", async |_, _| Ok("it ran")))
        .build();
    abort_on(&agent, "tool_execution_end");
    let reply = soon(agent.prompt("go")).await.unwrap();
    assert_eq!(text_of(&reply.messages()[2]), "too early");
    assert!(text_of(&reply.messages()[3]).contains("aborted"));
}
