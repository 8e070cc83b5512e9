//! Listening and watching.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt};
use pi_agent_core::{
    Agent, AgentError, AgentEvent, AgentMessage, NoCustom,
    agent_loop::{AgentContext, LoopConfig, agent_loop, agent_loop_continue, run_agent_loop, run_agent_loop_continue},
};
use pi_ai::{
    CancellationToken, Message,
    faux::{FauxProvider, FauxReply},
};
use serde_json::json;

use crate::support::{calls, clock, says_its_name, shared, soon, told, tool};

fn long_answer() -> String {
    "word ".repeat(2000)
}

#[tokio::test]
async fn a_reader_that_comes_late_gets_joined_deltas() {
    let agent = Agent::builder(FauxProvider::new([FauxReply::text(long_answer())])).build();
    let events = agent.events();
    soon(agent.prompt("go")).await.unwrap();
    drop(agent);
    let events: Vec<AgentEvent> = soon(events.collect()).await;
    let deltas: Vec<_> = events.iter().filter_map(AgentEvent::text_delta).collect();
    assert_eq!(deltas, [long_answer()]);
    assert_eq!((events[0].name(), events.last().unwrap().name()), ("agent_start", "agent_end"));
    assert_eq!(events.len(), 11);
}

#[tokio::test]
async fn a_reader_that_keeps_up_gets_pieces() {
    let agent = Agent::builder(FauxProvider::new([FauxReply::text("some words in two pieces")])).build();
    let mut events = agent.events();
    let reader = tokio::spawn(async move {
        let mut text = String::new();
        while let Some(event) = events.next().await {
            text += event.text_delta().unwrap_or_default();
            if let AgentEvent::AgentEnd { .. } = event {
                break;
            }
        }
        text
    });
    soon(agent.prompt("go")).await.unwrap();
    assert_eq!(soon(reader).await.unwrap(), "some words in two pieces");
}

#[tokio::test]
async fn the_stream_of_events_goes_on_over_runs_and_ends_with_the_agent() {
    let agent = Agent::builder(FauxProvider::new([FauxReply::text("one"), FauxReply::text("two")])).build();
    let mut events = agent.events();
    soon(agent.prompt("go")).await.unwrap();
    soon(agent.prompt("go")).await.unwrap();
    let mut ends = 0;
    while let Some(Some(event)) = events.next().now_or_never() {
        ends += usize::from(event.name() == "agent_end");
    }
    assert_eq!(ends, 2);
    assert!(events.next().now_or_never().is_none());
    drop(agent);
    assert!(soon(events.next()).await.is_none());
}

#[tokio::test]
async fn listeners_are_awaited_in_the_order_in_which_they_subscribed() {
    let agent = Agent::builder(FauxProvider::new([FauxReply::text("ok")])).build();
    let order = shared(Vec::new());
    for (name, delay) in [("slow", 3), ("quick", 0)] {
        let order = order.clone();
        agent
            .subscribe(async move |event: AgentEvent, _| {
                tokio::time::sleep(Duration::from_millis(delay)).await;
                order.lock().unwrap().push((event.name(), name));
            })
            .detach();
    }
    soon(agent.prompt("go")).await.unwrap();
    let order = order.lock().unwrap();
    assert!(order.chunks(2).all(|pair| pair[0].0 == pair[1].0 && (pair[0].1, pair[1].1) == ("slow", "quick")));
}

#[tokio::test]
async fn a_dropped_subscription_hears_no_more() {
    let agent = Agent::builder(FauxProvider::new([FauxReply::text("one"), FauxReply::text("two")])).build();
    let heard = shared(0);
    let count = heard.clone();
    let subscription = agent.subscribe(async move |_: AgentEvent, _| *count.lock().unwrap() += 1);
    soon(agent.prompt("go")).await.unwrap();
    drop(subscription);
    let so_far = *heard.lock().unwrap();
    soon(agent.prompt("go")).await.unwrap();
    assert!(so_far > 0);
    assert_eq!(*heard.lock().unwrap(), so_far);
}

#[tokio::test]
async fn events_are_written_as_others_read_them() {
    let counts = tool("count", async |_, context| {
        context.update("1");
        Ok("2")
    });
    let model = FauxProvider::new([calls(&["count"]), FauxReply::text("done")]).clock(clock());
    let agent = Agent::builder(model).tool(counts).clock(clock()).build();
    let lines = shared(Vec::new());
    let log = lines.clone();
    agent
        .subscribe(async move |event: AgentEvent, context| {
            let partial = context.partial();
            log.lock().unwrap().push(event.to_json(partial.as_deref()).unwrap());
        })
        .detach();
    soon(agent.prompt("go")).await.unwrap();
    let lines = lines.lock().unwrap();
    let of = |name: &str| lines.iter().filter(|line| line["type"] == name).collect::<Vec<_>>();
    assert_eq!(
        of("tool_execution_start"),
        [&json!({
            "type": "tool_execution_start", "toolCallId": "c1", "toolName": "count", "args": {},
        })]
    );
    assert_eq!(of("tool_execution_update")[0]["partialResult"], json!({"content": [{"type": "text", "text": "1"}]}));
    assert_eq!(
        of("tool_execution_end"),
        [&json!({
            "type": "tool_execution_end", "toolCallId": "c1", "toolName": "count", "isError": false, "durationMs": 0,
            "result": {"content": [{"type": "text", "text": "2"}]},
        })]
    );
    let updates: Vec<_> = of("message_update").iter().map(|line| line["assistantMessageEvent"].clone()).collect();
    assert!(updates.contains(&json!({"type": "text_delta", "contentIndex": 0, "delta": "done"})));
    assert!(updates.contains(&json!({"type": "text_end", "contentIndex": 0, "content": "done"})));
    assert_eq!(of("turn_end")[0]["toolResults"][0]["role"], "toolResult");
    assert_eq!(of("agent_end")[0]["messages"].as_array().unwrap().len(), 4);
}

fn config(replies: impl IntoIterator<Item = FauxReply>) -> LoopConfig<NoCustom> {
    LoopConfig::new(FauxProvider::new(replies), FauxProvider::model())
}

#[tokio::test]
async fn the_loop_runs_without_an_agent() {
    let heard = shared(Vec::new());
    let log = heard.clone();
    let tools = [Arc::new(says_its_name("echo")) as Arc<dyn pi_agent_core::AgentTool>];
    let context = AgentContext { tools: tools.into_iter().collect(), ..AgentContext::default() };
    let config = config([calls(&["echo"]), FauxReply::text("done")]);
    let run =
        run_agent_loop("go", context, config, CancellationToken::new(), async move |event: AgentEvent, context| {
            // Two looks at once do not wait for each other.
            let (one, two) = (context.partial(), context.partial());
            assert_eq!(one.map(|partial| partial.text()), two.map(|partial| partial.text()));
            log.lock().unwrap().push(event.name());
        });
    let messages = soon(run).await;
    let roles: Vec<_> = messages.iter().map(AgentMessage::role).collect();
    assert_eq!(roles, ["system", "user", "assistant", "toolResult", "assistant"]);
    let heard = heard.lock().unwrap();
    assert_eq!((heard[0], *heard.last().unwrap()), ("agent_start", "agent_end"));
}

#[tokio::test]
async fn the_loop_as_a_stream_does_not_wait_for_its_reader() {
    let follow_up = shared(vec![AgentMessage::user("and then")]);
    let mut config = config([FauxReply::text("one"), FauxReply::text("two")]);
    config.follow_up = Some(Arc::new(move || std::mem::take(&mut *follow_up.lock().unwrap())));
    let events = agent_loop("go", AgentContext::default(), config, &CancellationToken::new());
    let events: Vec<_> = soon(events.collect()).await;
    let Some(AgentEvent::AgentEnd { messages }) = events.last() else { panic!("no end") };
    assert_eq!(told(messages), ["user: go", "assistant: one", "user: and then", "assistant: two"]);
}

#[tokio::test]
async fn the_loop_refuses_to_continue_from_nothing_or_from_an_answer() {
    let empty = run_agent_loop_continue(
        AgentContext::default(),
        config([]),
        CancellationToken::new(),
        async |_: AgentEvent, _| {},
    );
    assert!(matches!(soon(empty).await, Err(AgentError::NothingToContinue)));
    let answered = vec![AgentMessage::user("go"), Message::from(pi_ai::AssistantMessage::default()).into()];
    let context = AgentContext { messages: answered, ..AgentContext::default() };
    let refused = agent_loop_continue(context, config([]), &CancellationToken::new());
    assert!(matches!(refused.err(), Some(AgentError::AlreadyAnswered)));
    let context = AgentContext { messages: vec![AgentMessage::user("go")], ..AgentContext::default() };
    let events = agent_loop_continue(context, config([FauxReply::text("ok")]), &CancellationToken::new()).unwrap();
    assert_eq!(soon(events.collect::<Vec<_>>()).await.last().unwrap().name(), "agent_end");
}

#[tokio::test]
async fn dropping_the_stream_of_a_loop_aborts_it() {
    let signal = CancellationToken::new();
    let model = FauxProvider::new([FauxReply::text("hangs").hang()]);
    let config: LoopConfig<NoCustom> = LoopConfig::new(model.clone(), FauxProvider::model());
    let mut events = agent_loop("go", AgentContext::default(), config, &signal);
    while let Some(event) = soon(events.next()).await {
        if event.text_delta().is_some() {
            break;
        }
    }
    drop(events);
    soon(model.requests()[0].options.signal.cancelled()).await;
    assert!(!signal.is_cancelled());
}
