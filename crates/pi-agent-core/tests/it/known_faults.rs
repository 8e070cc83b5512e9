//! Faults that agents are known for, and that this one does not have.

use std::time::Duration;

use pi_agent_core::{Agent, AgentEvent, Tool, ToolOutput};
use pi_ai::{
    StopReason, ToolCall,
    faux::{FauxProvider, FauxReply},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::support::{calls, never_returns, says_its_name, shared, soon, text_of, told, tool};

#[derive(Deserialize, JsonSchema)]
struct Read {
    path: String,
}

fn read() -> Tool {
    Tool::new("read", "Reads a file.", async |arguments: Read, _| Ok(format!("read {}", arguments.path)))
}

/// Output hit the token limit in the middle of a call, and the repaired arguments would write half a file.
#[tokio::test]
async fn no_call_of_an_answer_that_was_cut_off_runs() {
    let ran = shared(0);
    let count = ran.clone();
    let write = tool("write", async move |_, _| {
        *count.lock().unwrap() += 1;
        Ok("written")
    });
    let cut = FauxReply::tool_call("write", json!({"path": "a", "content": "hal"})).stop_reason(StopReason::Length);
    let model = FauxProvider::new([cut, FauxReply::text("I will write less.")]);
    let agent = Agent::builder(model.clone()).tool(write).build();
    let reply = soon(agent.prompt("go")).await.unwrap();
    assert_eq!(*ran.lock().unwrap(), 0);
    assert_eq!(reply.text(), "I will write less.");
    let result = reply.messages()[2].as_tool_result().unwrap();
    assert!(result.is_error);
    assert!(text_of(&reply.messages()[2]).contains("token limit"), "{result:?}");
    assert_eq!(model.requests().len(), 2);
}

/// A call to a tool that is not there gets an empty result, and the model repeats it for ever.
#[tokio::test]
async fn an_unknown_tool_is_answered_with_the_names_that_there_are() {
    let model = FauxProvider::new([FauxReply::tool_call("reed", json!({})), FauxReply::text("ok")]);
    let agent = Agent::builder(model).tool(read()).tool(says_its_name("list")).build();
    let reply = soon(agent.prompt("go")).await.unwrap();
    let text = text_of(&reply.messages()[2]);
    assert!(["`reed`", "read", "list"].iter().all(|name| text.contains(name)), "{text}");
}

#[tokio::test]
async fn wrong_arguments_are_answered_with_the_field() {
    let model = FauxProvider::new([FauxReply::tool_call("read", json!({"file": 1})), FauxReply::text("ok")]);
    let agent = Agent::builder(model).tool(read()).build();
    let reply = soon(agent.prompt("go")).await.unwrap();
    assert!(reply.messages()[2].as_tool_result().unwrap().is_error);
    let text = text_of(&reply.messages()[2]);
    assert!(text.contains("path") && text.contains("required"), "{text}");
}

/// A steering message that was typed during a tool batch is taken from the queue and lost with the abort.
#[tokio::test]
async fn a_steering_message_stays_queued_when_the_run_is_aborted() {
    let waits = tool("waits", async |_, context| {
        context.signal.cancelled().await;
        Ok("stopped")
    });
    let model = FauxProvider::new([calls(&["quick", "waits"])]);
    let agent = Agent::builder(model).tool(says_its_name("quick")).tool(waits).build();
    let person = agent.downgrade();
    agent
        .subscribe(async move |event: AgentEvent, _| {
            if let (AgentEvent::ToolExecutionEnd { call, .. }, Some(agent)) = (&event, person.upgrade())
                && call.name == "quick"
            {
                agent.steer("wait a moment");
                agent.abort();
            }
        })
        .detach();
    let reply = soon(agent.prompt("go")).await.unwrap();
    assert!(told(reply.messages()).iter().all(|line| !line.contains("wait a moment")));
    assert_eq!(told(&agent.queued_messages().0), ["user: wait a moment"]);
    // It is taken in by the next run.
    let reply = soon(agent.continue_run()).await.unwrap();
    assert_eq!(told(reply.messages())[0], "user: wait a moment");
    assert!(!agent.has_queued_messages());
}

/// Results of tools that were done before the interrupt are dropped, and ids no longer match.
#[tokio::test(start_paused = true)]
async fn results_that_were_there_before_an_abort_are_kept_in_the_order_of_the_calls() {
    let quick = tool("quick", async |_, _| Ok(ToolOutput::text("done").details(json!({"kept": true}))));
    let model = FauxProvider::new([calls(&["never", "quick", "never"])]);
    let agent = Agent::builder(model).tool(never_returns("never")).tool(quick).build();
    let person = agent.downgrade();
    agent
        .subscribe(async move |event: AgentEvent, _| {
            if let (AgentEvent::ToolExecutionEnd { .. }, Some(agent)) = (&event, person.upgrade()) {
                agent.abort();
            }
        })
        .detach();
    let reply = tokio::time::timeout(Duration::from_secs(60), agent.prompt("go")).await.unwrap().unwrap();
    let results: Vec<_> = reply.messages().iter().filter_map(|message| message.as_tool_result()).collect();
    let ids: Vec<_> = results.iter().map(|result| result.tool_call_id.as_str()).collect();
    assert_eq!(ids, ["c1", "c2", "c3"]);
    assert_eq!(results.iter().map(|result| result.is_error).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(results[1].details, Some(json!({"kept": true})));
    assert!(text_of(&reply.messages()[2]).contains("aborted"));
}

/// Two calls of one answer may have the same id; each still gets its result.
#[tokio::test]
async fn two_calls_with_one_id_get_two_results() {
    let twice = || ToolCall::new("same", "echo", json!({})).into();
    let model = FauxProvider::new([FauxReply::blocks([twice(), twice()]), FauxReply::text("ok")]);
    let agent = Agent::builder(model).tool(says_its_name("echo")).build();
    let reply = soon(agent.prompt("go")).await.unwrap();
    assert_eq!(reply.messages().iter().filter(|message| message.as_tool_result().is_some()).count(), 2);
}
