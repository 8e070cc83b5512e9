//! Tools: what of their results goes where, and how they run.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use pi_agent_core::{
    Agent, AgentHooks, AgentTool, ExecutionMode, NoCustom, ReplayPolicy, ToolArguments, ToolContext, ToolError,
    ToolOutput, WeakAgent,
    hooks::{BeforeToolCall, HookError, Permission},
};
use pi_ai::{
    AssistantMessage, CancellationToken, ToolCall, ToolDeclaration, Usage,
    faux::{FauxProvider, FauxReply},
};
use serde_json::json;

use crate::support::{calls, record, says_its_name, shared, soon, text_of, tool, without_updates};

#[tokio::test]
async fn structured_content_and_terminate_stay_out_of_the_transcript_and_usage_goes_in() {
    let usage = Usage { input: 3, ..Usage::default() };
    let made = usage.clone();
    let rich = tool("rich", async move |_, _| {
        Ok(ToolOutput::text("text")
            .structured(json!({"n": 1}))
            .details(json!({"d": 2}))
            .usage(made.clone())
            .terminate())
    });
    let agent = Agent::builder(FauxProvider::new([calls(&["rich"])])).tool(rich).build();
    let reply = soon(agent.prompt("go")).await.unwrap();
    let written = serde_json::to_value(&reply.messages()[2]).unwrap();
    assert_eq!(written["details"], json!({"d": 2}));
    assert_eq!(written["usage"], serde_json::to_value(&usage).unwrap());
    assert_eq!((written.get("structuredContent"), written.get("terminate")), (None, None));
}

#[tokio::test]
async fn arguments_are_repaired_before_they_are_checked() {
    let read = tool("read", async |arguments, _| Ok(format!("read {}", arguments["path"])));
    let read = read.prepare_arguments(|mut arguments| {
        if let Some(path) = arguments.shift_remove("file_path") {
            arguments.insert("path".into(), path);
        }
        arguments
    });
    let model = FauxProvider::new([FauxReply::tool_call("read", json!({"file_path": "a"})), FauxReply::text("ok")]);
    let reply = soon(Agent::builder(model).tool(read).build().prompt("go")).await.unwrap();
    assert_eq!(text_of(&reply.messages()[2]), r#"read "a""#);
}

#[tokio::test]
async fn what_a_tool_says_about_itself_is_kept() {
    let made =
        says_its_name("read").label("Read a file").sequential().replay_safe().output_schema(json!({"type": "string"}));
    let made: Arc<dyn AgentTool> = Arc::new(made);
    assert_eq!(made.label(), "Read a file");
    assert_eq!(made.execution_mode(), ExecutionMode::Sequential);
    assert_eq!(made.replay_policy(), ReplayPolicy::Safe);
    assert_eq!(made.output_schema(), Some(&json!({"type": "string"})));
}

#[tokio::test(start_paused = true)]
async fn calls_run_beside_one_another_and_their_results_keep_the_order_of_the_calls() {
    let slow = tool("slow", async |_, _| {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok("slow")
    });
    let model = FauxProvider::new([calls(&["slow", "fast"]), FauxReply::text("ok")]);
    let agent = Agent::builder(model).tool(slow).tool(says_its_name("fast")).build();
    let heard = record(&agent);
    let reply = soon(agent.prompt("go")).await.unwrap();
    let ends: Vec<_> =
        without_updates(&heard).into_iter().filter(|line| line.starts_with("tool_execution_end")).collect();
    assert_eq!(ends, ["tool_execution_end c2", "tool_execution_end c1"]);
    assert_eq!([text_of(&reply.messages()[2]), text_of(&reply.messages()[3])], ["slow", "fast"]);
}

#[tokio::test]
async fn one_sequential_tool_makes_the_whole_batch_wait() {
    let order = shared(Vec::new());
    let made = |name: &'static str| {
        let order = order.clone();
        tool(name, async move |_, _| {
            order.lock().unwrap().push(format!("{name} begins"));
            tokio::time::sleep(Duration::from_millis(2)).await;
            order.lock().unwrap().push(format!("{name} ends"));
            Ok(name)
        })
    };
    let model = FauxProvider::new([calls(&["a", "b"]), FauxReply::text("ok")]);
    let agent = Agent::builder(model).tool(made("a")).tool(made("b").sequential()).build();
    soon(agent.prompt("go")).await.unwrap();
    assert_eq!(*order.lock().unwrap(), ["a begins", "a ends", "b begins", "b ends"]);
}

struct NoDeleting;

#[async_trait]
impl AgentHooks<NoCustom> for NoDeleting {
    async fn before_tool_call(&self, call: &mut BeforeToolCall<'_, NoCustom>) -> Result<Permission, HookError> {
        Ok(match call.call.name.as_str() {
            "delete" => Permission::block("nothing is deleted here"),
            _ => Permission::Allow,
        })
    }
}

/// A tool that calls other tools of its agent does not get around the hooks.
#[tokio::test]
async fn calls_that_a_tool_makes_go_through_the_same_gate() {
    let own: Arc<std::sync::OnceLock<WeakAgent>> = Arc::default();
    let agent_of = own.clone();
    let script = tool("script", async move |_, context| {
        let agent = agent_of.get().and_then(WeakAgent::upgrade).ok_or_else(|| std::io::Error::other("gone"))?;
        let message = AssistantMessage::default();
        let mut said = Vec::new();
        for name in ["list", "delete", "nothing"] {
            let call = ToolCall::new(format!("{}/{name}", context.call_id), name, json!({}));
            let outcome = agent.run_tool_call(&call, &message, context.signal.clone(), |_| {}).await;
            said.push(format!("{} ({})", outcome.output.to_text(), if outcome.is_error { "failed" } else { "fine" }));
        }
        Ok(said.join("; "))
    });
    let model = FauxProvider::new([calls(&["script"]), FauxReply::text("ok")]);
    let agent = Agent::builder(model)
        .tool(script)
        .tool(says_its_name("list"))
        .tool(says_its_name("delete"))
        .hooks(NoDeleting)
        .build();
    own.set(agent.downgrade()).unwrap();
    let heard = record(&agent);
    let reply = soon(agent.prompt("go")).await.unwrap();
    let text = text_of(&reply.messages()[2]);
    assert!(
        text.starts_with("list (fine); nothing is deleted here (failed); There is no tool named `nothing`"),
        "{text}"
    );
    let begun = without_updates(&heard).iter().filter(|line| line.starts_with("tool_execution_start")).count();
    assert_eq!(begun, 1);
}

#[tokio::test]
async fn a_call_that_a_tool_makes_shows_its_updates_and_ends_with_the_abort() {
    let waits = tool("waits", async |_, context| {
        context.update("so far");
        context.signal.cancelled().await;
        Ok("stopped")
    });
    let agent = Agent::builder(FauxProvider::new([])).tool(waits).build();
    let signal = CancellationToken::new();
    let abort = signal.clone();
    let call = ToolCall::new("c1", "waits", json!({}));
    let message = AssistantMessage::default();
    let mut updates = Vec::new();
    let call = agent.run_tool_call(&call, &message, signal, |partial| {
        updates.push(partial.to_text());
        abort.cancel();
    });
    let outcome = soon(call).await;
    assert_eq!((outcome.output.to_text().as_str(), outcome.is_error), ("stopped", false));
    assert_eq!(updates, ["so far"]);
}

/// A tool whose every word is a panic.
struct Broken(ToolDeclaration);

#[async_trait]
impl AgentTool for Broken {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn execution_mode(&self) -> ExecutionMode {
        panic!("the mode")
    }

    async fn execute(&self, _arguments: ToolArguments, _context: ToolContext) -> Result<ToolOutput, ToolError> {
        panic!("the work")
    }
}

#[tokio::test]
async fn a_tool_that_panics_when_it_is_asked_how_it_runs_fails_its_own_call_only() {
    let model = FauxProvider::new([calls(&["broken", "list"]), FauxReply::text("ok")]);
    let broken = Broken(ToolDeclaration::new("broken", "Breaks.", json!({"type": "object"})));
    let agent = Agent::builder(model).tool(broken).tool(says_its_name("list")).build();
    let reply = soon(agent.prompt("go")).await.unwrap();
    let texts: Vec<String> = reply.messages().iter().map(text_of).collect();
    assert!(texts.iter().any(|text| text.contains("the work")), "{texts:?}");
    assert!(texts.contains(&"list".to_owned()) && texts.contains(&"ok".to_owned()), "{texts:?}");
}
