//! What an agent knows of itself, and its queues.

use pi_agent_core::{Agent, AgentError, AgentEvent, AgentMessage, Prompt, QueueMode, agent::Reply};
use pi_ai::{
    Content, InputBlock, Message, SystemMessage, Timestamp,
    faux::{FauxProvider, FauxReply},
};

use crate::support::{calls, clock, never_returns, says_its_name, shared, soon, told};

#[test]
fn the_prompt_of_the_builder_is_for_transcripts_that_have_none() {
    let new = Agent::builder(FauxProvider::new([])).system_prompt("seed").build();
    assert_eq!(new.state().system_prompt(), "seed");
    let stored = [AgentMessage::from(SystemMessage::new("stored"))];
    let old = Agent::builder(FauxProvider::new([])).system_prompt("seed").messages(stored).build();
    assert_eq!(old.state().system_prompt(), "stored");
    let empty = Agent::builder(FauxProvider::new([])).build();
    assert!(empty.state().messages.is_empty());
}

#[tokio::test]
async fn a_section_of_the_prompt_can_be_patched_alone() {
    let model = FauxProvider::new([FauxReply::text("ok")]);
    let head = SystemMessage::new("You help.").section("tone", "formal").section("skills", "none");
    let agent = Agent::builder(model).messages([head]).build();
    let patch = SystemMessage::default().section("tone", "relaxed");
    soon(agent.prompt([patch.into(), Message::user("go")])).await.unwrap();
    let head = agent.state().system_message().unwrap();
    assert_eq!(head.sections["tone"].as_deref(), Some("relaxed"));
    assert_eq!(head.sections["skills"].as_deref(), Some("none"));
    assert_eq!(head.content.text(), "You help.");
}

#[tokio::test]
async fn reset_keeps_the_prompt_and_the_tools_as_they_stand() {
    let model = FauxProvider::new([FauxReply::text("ok")]);
    let agent = Agent::builder(model).system_prompt("You help.").tool(says_its_name("read")).build();
    soon(agent.prompt([SystemMessage::new("Be brief.").into(), Message::user("go")])).await.unwrap();
    agent.steer("later");
    agent.reset().unwrap();
    let state = agent.state();
    assert_eq!(told(&state.messages), ["system: You help.\n\nBe brief."]);
    assert_eq!(state.declared_tools().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["read"]);
    assert!(!agent.has_queued_messages());
}

#[tokio::test]
async fn while_a_run_is_active_others_are_refused() {
    let model = FauxProvider::new([FauxReply::text("one").hang()]);
    let agent = Agent::builder(model).build();
    let run = agent.prompt("go");
    assert!(matches!(agent.prompt("me too").await, Err(AgentError::Busy)));
    assert!(matches!(agent.continue_run().await, Err(AgentError::Busy)));
    assert!(matches!(agent.reset(), Err(AgentError::Busy)));
    assert!(matches!(agent.prompt("me too").detach(), Err(AgentError::Busy)));
    assert!(agent.state().is_streaming);
    agent.abort();
    soon(run).await.unwrap();
    assert!(agent.reset().is_ok());
}

/// The agent is busy until the listeners of the last event are done.
#[tokio::test]
async fn idle_means_that_everybody_has_heard_the_last_event() {
    let agent = Agent::builder(FauxProvider::new([FauxReply::text("ok")])).build();
    soon(agent.wait_for_idle()).await;
    let stored = shared(false);
    let log = stored.clone();
    agent
        .subscribe(async move |event: AgentEvent, _| {
            if let AgentEvent::AgentEnd { .. } = event {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                *log.lock().unwrap() = true;
            }
        })
        .detach();
    agent.prompt("go").detach().unwrap();
    soon(agent.wait_for_idle()).await;
    assert!(*stored.lock().unwrap());
}

#[tokio::test]
async fn a_snapshot_stays_as_it_was() {
    let agent = Agent::builder(FauxProvider::new([FauxReply::text("ok")])).build();
    let before = agent.state();
    soon(agent.prompt("go")).await.unwrap();
    assert!(before.messages.is_empty());
    assert_eq!(agent.state().messages.len(), 2);
}

#[tokio::test]
async fn while_an_answer_streams_it_can_be_looked_at() {
    let agent = Agent::builder(FauxProvider::new([FauxReply::text("some words that come piece by piece")])).build();
    let lengths = shared(Vec::new());
    let log = lengths.clone();
    let handle = agent.downgrade();
    agent
        .subscribe(async move |event: AgentEvent, context| {
            if event.text_delta().is_some() {
                let length = context.partial().map(|partial| partial.text().len()).unwrap();
                let state = handle.upgrade().unwrap().state();
                assert_eq!(state.streaming_message().unwrap().text().len(), length);
                log.lock().unwrap().push(length);
            } else {
                let streams = event.name() == "message_update" || begins_an_answer(&event);
                assert_eq!(context.partial().is_some(), streams, "{}", event.name());
            }
        })
        .detach();
    soon(agent.prompt("go")).await.unwrap();
    let lengths = lengths.lock().unwrap();
    assert!(lengths.len() > 1 && lengths.is_sorted());
    assert!(agent.state().streaming_message().is_none());
}

fn begins_an_answer(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::MessageStart { message } if message.as_assistant().is_some())
}

#[tokio::test]
async fn calls_that_run_are_listed() {
    let agent = Agent::builder(FauxProvider::new([calls(&["never", "never"])]))
        .tool(never_returns("never"))
        .abort_grace(std::time::Duration::from_millis(10))
        .build();
    let seen = shared(Vec::new());
    let (log, handle) = (seen.clone(), agent.downgrade());
    agent
        .subscribe(async move |event: AgentEvent, _| {
            if let (AgentEvent::ToolExecutionUpdate { .. }, Some(agent)) = (&event, handle.upgrade()) {
                let state = agent.state();
                log.lock().unwrap().push(state.pending_tool_calls.iter().map(ToString::to_string).collect::<Vec<_>>());
                agent.abort();
            }
        })
        .detach();
    let run = tokio::time::timeout(std::time::Duration::from_secs(30), agent.prompt("go"));
    agent.set_tools([]);
    run.await.unwrap().unwrap();
    assert_eq!(seen.lock().unwrap()[0], ["c1", "c2"]);
    assert!(agent.state().pending_tool_calls.is_empty());
}

#[tokio::test]
async fn what_is_queued_can_be_seen_and_taken_back() {
    let agent = Agent::builder(FauxProvider::new([])).steering_mode(QueueMode::All).build();
    agent.follow_up("later");
    assert_eq!(told(&agent.peek_queued()), ["user: later"]);
    agent.steer("now");
    agent.steer("and now");
    assert_eq!(told(&agent.peek_queued()), ["user: now", "user: and now"]);
    assert_eq!(told(&agent.clear_all_queues()), ["user: now", "user: and now", "user: later"]);
    assert!(!agent.has_queued_messages() && agent.peek_queued().is_empty());
}

/// A message that is taken back while it waits for its turn does not come after all.
#[tokio::test]
async fn a_message_that_was_taken_back_is_not_taken_in() {
    let model = FauxProvider::new([calls(&["echo"]), FauxReply::text("ok")]);
    let agent = Agent::builder(model).tool(says_its_name("echo")).build();
    let handle = agent.downgrade();
    agent
        .subscribe(async move |event: AgentEvent, _| {
            let Some(agent) = handle.upgrade() else { return };
            match event {
                AgentEvent::ToolExecutionStart { .. } => agent.steer("never mind"),
                // The loop has chosen it for the turn that begins here.
                AgentEvent::TurnStart if agent.has_queued_messages() => drop(agent.clear_steering_queue()),
                _ => {}
            }
        })
        .detach();
    let reply = soon(agent.prompt("go")).await.unwrap();
    assert!(told(reply.messages()).iter().all(|line| !line.contains("never mind")));
    assert_eq!(reply.into_text().unwrap(), "ok");
}

#[tokio::test]
async fn text_is_stamped_and_messages_keep_their_time() {
    let model = FauxProvider::new([FauxReply::text("ok")]).clock(clock());
    let agent = Agent::builder(model).clock(clock()).build();
    let prompt = Prompt::text("look").image(InputBlock::image("AA==", "image/png")).message(Message::user("as it is"));
    let reply: Reply = soon(agent.prompt(prompt)).await.unwrap();
    let times: Vec<_> = reply.messages().iter().filter_map(AgentMessage::timestamp).collect();
    assert_eq!(times, [1_700_000_000_000, 0, 1_700_000_000_000].map(Timestamp::from_millis));
    let first = reply.messages()[0].as_llm().unwrap().as_user().unwrap();
    assert!(matches!(&first.content, Content::Blocks(blocks) if blocks.len() == 2));
}

#[tokio::test]
async fn what_cannot_be_continued_is_refused_and_the_queues_stay() {
    let agent = Agent::builder(FauxProvider::new([])).system_prompt("You help.").build();
    agent.steer("wait");
    assert!(matches!(agent.continue_run().await, Err(AgentError::NothingToContinue)));
    assert!(agent.has_queued_messages());
    let agent = Agent::builder(FauxProvider::new([FauxReply::text("ok")])).build();
    soon(agent.prompt("go")).await.unwrap();
    assert!(matches!(agent.continue_run().await, Err(AgentError::AlreadyAnswered)));
}

#[tokio::test]
async fn thousands_of_agents_live_on_one_runtime() {
    let agents: Vec<_> =
        (0..2000).map(|n| Agent::builder(FauxProvider::new([FauxReply::text(n.to_string())])).build()).collect();
    let runs = agents.iter().map(|agent| agent.prompt("go"));
    let replies = soon(futures::future::join_all(runs)).await;
    for (n, reply) in replies.into_iter().enumerate() {
        assert_eq!(reply.unwrap().into_text().unwrap(), n.to_string());
    }
}

/// Handles, runs and streams can be sent to other tasks.
#[test]
fn handles_can_be_sent() {
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    let agent = sendable(Agent::builder(FauxProvider::new([])).build());
    drop(sendable(agent.events()));
    drop(sendable(agent.wait_for_idle()));
    drop(sendable(agent.downgrade()));
    let subscription = sendable(agent.subscribe(async |_: AgentEvent, _| {}));
    drop(subscription);
    fn run_is_send(agent: &Agent) -> impl Future + Send {
        agent.prompt("go")
    }
    let _ = run_is_send;
}
