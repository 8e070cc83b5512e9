//! Whatever models, tools, hooks, listeners and people do: a run is well formed.
//!
//! Random scripts run against [`grammar`], a small model of what may follow what. It knows nothing of the loop.

mod grammar;
mod script;

use pi_agent_core::{AgentMessage, ToolSet};
use pi_ai::{
    Message, MessageIdentity, ToolCallId,
    transcript::{current_tools, tool_state_changes},
};
use proptest::{prelude::*, test_runner::RngSeed};

use self::{
    grammar::Grammar,
    script::{Played, Script, play, script},
};

/// `PI_LAW_CASES` and `PI_LAW_SEED` set longer runs and other seeds.
fn config() -> ProptestConfig {
    let number = |name| std::env::var(name).ok().and_then(|value: String| value.parse::<u32>().ok());
    ProptestConfig {
        cases: number("PI_LAW_CASES").unwrap_or(600),
        rng_seed: RngSeed::Fixed(number("PI_LAW_SEED").unwrap_or(1).into()),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_run_is_well_formed(script in script()) {
        let played = run(&script);
        check(&played).map_err(|broken| TestCaseError::fail(format!("{broken}\n{:#?}", played.names())))?;
    }
}

fn run(script: &Script) -> Played {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(play(script))
}

fn check(played: &Played) -> Result<(), String> {
    let mut grammar = Grammar::new(played.before.to_vec());
    for event in &played.events {
        grammar.take(event)?;
    }
    let transcript = grammar.finish()?;
    the_transcript_is_what_was_told(&transcript, played)?;
    every_request_is_answerable(played)?;
    every_request_has_a_key_of_its_own(played)?;
    nothing_queued_is_lost(&transcript, played)?;
    if played.requests.len() > script::MOST_REQUESTS {
        return Err("the run does not end by itself".into());
    }
    if played.state.is_streaming || !played.state.pending_tool_calls.is_empty() {
        return Err("after the run the agent is not idle".into());
    }
    if played.state.streaming_message().is_some() {
        return Err("after the run an answer is still being streamed".into());
    }
    Ok(())
}

fn the_transcript_is_what_was_told(told: &[AgentMessage], played: &Played) -> Result<(), String> {
    let identities = |messages: &[AgentMessage]| messages.iter().map(AgentMessage::identity).collect::<Vec<_>>();
    match identities(told) == identities(&played.state.messages) {
        true => Ok(()),
        false => Err("the transcript is not what the events told".into()),
    }
}

/// Each call in a request has one result behind it, unless its answer failed; and the model is told the tools that
/// there are.
fn every_request_is_answerable(played: &Played) -> Result<(), String> {
    for messages in played.requests.iter().map(|request| &request.messages) {
        if messages.is_empty() {
            return Err("a request without messages reached the stream function".into());
        }
        let mut open: Vec<ToolCallId> = Vec::new();
        for message in messages {
            match message {
                Message::Assistant(answer) if !answer.is_failed() => {
                    open.extend(answer.tool_calls().map(|call| call.id.clone()));
                }
                Message::ToolResult(result) => {
                    let call = open.iter().position(|id| *id == result.tool_call_id);
                    open.remove(call.ok_or("a result without a call")?);
                }
                _ => {}
            }
        }
        if !open.is_empty() {
            return Err(format!("calls without results in a request: {open:?}"));
        }
        let told = current_tools(messages);
        let are = |tools: &ToolSet| tool_state_changes(&told, tools.declarations()).is_empty();
        if !played.tool_sets.iter().any(are) {
            return Err("the model is not told the tools that there are".into());
        }
    }
    Ok(())
}

/// A key is asked for before every request, and goes along with that one only.
fn every_request_has_a_key_of_its_own(played: &Played) -> Result<(), String> {
    let keys: Option<Vec<usize>> = played.requests.iter().map(|request| request.key).collect();
    let keys = keys.ok_or("a request without the key that was given for it")?;
    match keys.windows(2).all(|pair| pair[0] < pair[1]) && keys.last().is_none_or(|last| *last <= played.keys_given) {
        true => Ok(()),
        false => Err(format!("keys are used again, or were never given: {keys:?}")),
    }
}

/// A queued message is in the queue or in the transcript: in one of them, once.
fn nothing_queued_is_lost(transcript: &[AgentMessage], played: &Played) -> Result<(), String> {
    let count = |messages: &[AgentMessage], wanted: MessageIdentity| {
        messages.iter().filter(|message| message.identity() == wanted).count()
    };
    for message in &played.queued {
        let wanted = message.identity();
        let places = count(transcript, wanted) + count(&played.left_in_queues, wanted);
        if places != 1 {
            return Err(format!("a queued message is in {places} places"));
        }
    }
    Ok(())
}

/// The model itself refuses what is wrong, or it would prove nothing.
#[test]
fn the_grammar_refuses_broken_sequences() {
    let played = run(&Script::with_two_calls());
    check(&played).unwrap();
    let events = &played.events;
    let refuses = |events: Vec<pi_agent_core::AgentEvent>| {
        let mut grammar = Grammar::new(played.before.to_vec());
        let taken = events.iter().try_for_each(|event| grammar.take(event));
        taken.is_err() || grammar.finish().is_err()
    };
    for left_out in 0..events.len() {
        // A partial result, or a piece of an answer, may be missing; everything else may not.
        if matches!(events[left_out].name(), "message_update" | "tool_execution_update") {
            continue;
        }
        let mut events = events.clone();
        let gone = events.remove(left_out);
        assert!(refuses(events), "a sequence without event {left_out} ({}) was accepted", gone.name());
    }
    for twice in 0..events.len() {
        if matches!(events[twice].name(), "message_update" | "tool_execution_update") {
            continue;
        }
        let mut events = events.clone();
        events.insert(twice, events[twice].clone());
        assert!(refuses(events), "event {twice} was accepted twice");
    }
}
