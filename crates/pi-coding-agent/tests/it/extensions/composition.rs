//! How the answers of several handlers become one.

use std::sync::{Arc, Mutex};

use futures::FutureExt;
use pi_agent_core::{Tool, ToolArguments, ToolContext};
use pi_ai::{CancellationToken, Message, ToolDeclaration, faux::FauxReply};
use pi_coding_agent::{
    agent_session::{AgentSessionError, Delivery, ForModel, LeaveBehind, Queued},
    compaction::SummaryInstructions,
    extensions::{
        EventKind, ExtensionApi, ExtensionContext,
        event::{
            self, CompactDecision, CompactionDraft, InputDecision, ToolCallDecision, ToolResultOutcome, TreeAdjustment,
            TreeDecision, TreeSummary, UserBashDecision,
        },
        named,
    },
    messages::{SessionMessage, message_text},
    resources::SettingsManager,
    session::EntryBody,
    tools::user_bash::UserCommandResult,
};
use serde_json::json;

use super::{acceptance::tool, support::Fixture};

/// Extensions `a` and `b`, loaded in this order.
async fn two(
    replies: impl IntoIterator<Item = FauxReply>,
    a: impl Fn(&mut ExtensionApi) + Send + Sync + 'static,
    b: impl Fn(&mut ExtensionApi) + Send + Sync + 'static,
) -> Fixture {
    Fixture::with(replies, |options| options.tool(tool("deploy")).extension(named("a", a)).extension(named("b", b)))
        .await
}

#[tokio::test]
async fn what_is_said_goes_through_one_handler_after_another() {
    let fixture = two(
        [FauxReply::text("ok")],
        |pi| {
            pi.on(event::Input, async |event, _ctx| InputDecision::text(event.text + " a"));
        },
        |pi| {
            pi.on(event::Input, async |event, _ctx| match event.text.as_str() {
                "stop a" => InputDecision::Handled,
                _ => InputDecision::text(event.text + " b"),
            });
        },
    )
    .await;
    let reply = fixture.session.prompt("stop").await.unwrap();
    assert!(reply.message.is_none());
    assert_eq!(fixture.model.requests(), 0);
    fixture.session.prompt("go").await.unwrap();
    assert_eq!(fixture.model.said(0), ["user: go a b"]);
    assert_eq!(fixture.session.steer("stop").await.unwrap(), Queued::Handled);
    assert_eq!(fixture.session.queue("on", Delivery::FollowUp).await.unwrap(), Queued::Waits);
    assert_eq!(fixture.session.clear_queue().await.1, ["on a b"]);
}

#[tokio::test]
async fn arguments_and_results_of_a_call_are_changed_in_turn() {
    let replies = [FauxReply::tool_call("echo", json!({"n": 1})), FauxReply::text("ok")];
    let declaration = pi_ai::ToolDeclaration::new("echo", "Echoes.", json!({"type": "object"}));
    let echo =
        pi_agent_core::Tool::from_declaration(declaration, async |arguments: pi_agent_core::ToolArguments, _| {
            Ok(serde_json::to_string(&arguments)?)
        });
    let add = |name: &'static str| {
        named(name, move |pi: &mut ExtensionApi| {
            pi.on(event::ToolCall, async move |event, _ctx| {
                let mut input = event.input;
                input.insert(name.to_owned(), input.len().into());
                ToolCallDecision::AllowWith(input)
            });
            pi.on(event::ToolResult, async move |event, _ctx| ToolResultOutcome {
                content: Some(vec![pi_ai::InputBlock::text(format!("{} {name}", event.text()))]),
                is_error: Some(name == "b"),
                ..ToolResultOutcome::default()
            });
        })
    };
    let fixture = Fixture::with(replies, |options| options.tool(echo).extension(add("a")).extension(add("b"))).await;
    fixture.session.prompt("go").await.unwrap();
    let result = fixture.model.request(1).pop().unwrap();
    let Message::ToolResult(result) = result else { panic!() };
    assert_eq!(result.content[0].as_text(), Some(r#"{"n":1,"a":1,"b":2} a b"#));
    assert!(result.is_error);
}

#[tokio::test]
async fn the_first_gate_that_blocks_ends_the_question() {
    let replies = [FauxReply::tool_call("deploy", json!({})), FauxReply::text("ok")];
    let asked = Arc::new(Mutex::new(false));
    let second = asked.clone();
    let fixture = two(
        replies,
        |pi| {
            pi.on(event::ToolCall, async |_event, _ctx| ToolCallDecision::block("Not on a Friday."));
        },
        move |pi| {
            let second = second.clone();
            pi.on(event::ToolCall, async move |_event, _ctx| {
                *second.lock().unwrap() = true;
                ToolCallDecision::Allow
            });
            pi.on(event::ToolResult, async |_event, _ctx| -> () { panic!("a blocked call has no result") });
        },
    )
    .await;
    fixture.session.prompt("go").await.unwrap();
    assert_eq!(fixture.model.said(1)[2], "toolResult: Not on a Friday.");
    assert!(!*asked.lock().unwrap());
    assert_eq!(fixture.failures(), Vec::<String>::new());
}

#[tokio::test]
async fn a_message_is_changed_before_it_is_stored_and_keeps_its_role() {
    let fixture = two(
        [FauxReply::text("the password is 1234"), FauxReply::text("ok")],
        |pi| {
            pi.on(event::MessageEnd, async |event, _ctx| {
                let text = message_text(&event.message);
                let Some(Message::Assistant(answer)) = event.message.as_llm() else { return Ok(Default::default()) };
                let mut answer = (**answer).clone();
                answer.content = vec![pi_ai::AssistantBlock::text(text.replace("1234", "****"))];
                Ok(event::MessageOutcome::from(SessionMessage::from(Message::from(answer))))
            });
        },
        |pi| {
            pi.on(event::MessageEnd, async |event, _ctx| match event.message.role() == "assistant" {
                true => event::MessageOutcome::Replaced(SessionMessage::user("something else")),
                false => event::MessageOutcome::Unchanged,
            });
        },
    )
    .await;
    fixture.session.prompt("tell me").await.unwrap();
    fixture.session.prompt("again").await.unwrap();
    assert_eq!(fixture.model.said(1)[1], "assistant: the password is ****");
    assert!(fixture.failures()[0].starts_with("b, message_end: "), "{:?}", fixture.failures());
}

#[tokio::test]
async fn the_calls_that_run_are_those_of_the_message_that_took_the_place() {
    let replies = [FauxReply::tool_call("deploy", json!({"stage": "live"})), FauxReply::text("ok")];
    let rename = |pi: &mut ExtensionApi| {
        pi.on(event::MessageEnd, async |event, _ctx| match event.message.as_llm() {
            Some(Message::Assistant(answer)) => {
                let mut answer = (**answer).clone();
                for block in &mut answer.content {
                    if let pi_ai::AssistantBlock::ToolCall(call) = block {
                        call.arguments.insert("stage".into(), json!("test"));
                    }
                }
                event::MessageOutcome::from(SessionMessage::from(Message::from(answer)))
            }
            Some(Message::ToolResult(result)) => {
                // It belongs to another call then, so that it is refused.
                let result = pi_ai::ToolResultMessage { tool_call_id: "other".into(), ..(**result).clone() };
                event::MessageOutcome::from(SessionMessage::from(Message::from(result)))
            }
            _ => event::MessageOutcome::Unchanged,
        });
    };
    let echo = Tool::from_declaration(
        ToolDeclaration::new("deploy", "Deploys.", json!({"type": "object"})),
        async |arguments: ToolArguments, _: ToolContext| Ok(format!("deployed to {}", arguments["stage"])),
    );
    let fixture = Fixture::with(replies, |options| options.tool(echo).extension(named("rename", rename))).await;
    fixture.session.prompt("deploy it").await.unwrap();
    // What ran, what is stored and what the model sees next are one and the same.
    assert_eq!(fixture.model.said(1)[2], "toolResult: deployed to \"test\"");
    let stored = format!("{:?}", fixture.entries());
    assert!(stored.contains("\"test\"") && !stored.contains("live"), "{stored}");
    assert!(fixture.failures()[0].starts_with("rename, message_end: a tool's result"), "{:?}", fixture.failures());
}

#[tokio::test]
async fn a_program_prunes_with_operations_and_sees_no_system_messages() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = seen.clone();
    let fixture = Fixture::new(
        (0..3).map(|n| FauxReply::text(format!("answer {n}"))),
        named("program", move |pi: &mut ExtensionApi| {
            let keep = keep.clone();
            pi.on_json(EventKind::Context, move |event, _ctx: ExtensionContext| {
                let roles: Vec<_> =
                    event["messages"].as_array().unwrap().iter().map(|message| message["role"].clone()).collect();
                let count = roles.len();
                keep.lock().unwrap().push((event["type"].clone(), roles));
                let note = json!({"role": "user", "content": "(earlier messages left out)", "timestamp": 1});
                let answer = match count {
                    0..=3 => json!(null),
                    _ => json!({"operations": [
                        {"keep": {"from": count - 1, "to": count}}, {"insert": {"at": 0, "messages": [note]}},
                    ]}),
                };
                async { Ok(answer) }.boxed()
            });
        }),
    )
    .await;
    for n in 0..3 {
        fixture.session.prompt(format!("question {n}")).await.unwrap();
    }
    assert_eq!(fixture.model.said(2), ["user: (earlier messages left out)", "user: question 2"]);
    let seen = seen.lock().unwrap();
    assert_eq!(seen[2].0, "context");
    assert!(seen[2].1.iter().all(|role| role != "system"), "{seen:?}");
}

#[tokio::test]
async fn an_extension_runs_the_users_command_in_its_own_way() {
    let fixture = two(
        [],
        |pi| {
            pi.on(event::UserBash, async |event, _ctx| match event.command.as_str() {
                "remote" => UserBashDecision::Ran(UserCommandResult {
                    output: "from afar".into(),
                    exit_code: Some(0),
                    cancelled: false,
                    truncated: false,
                    full_output_path: None,
                }),
                _ => UserBashDecision::RunHere,
            });
        },
        |pi| {
            pi.on(event::UserBash, async |event, _ctx| {
                assert_ne!(event.command, "remote", "the first one that takes it over counts");
                UserBashDecision::RunHere
            });
        },
    )
    .await;
    let run = |command| fixture.session.execute_bash(command, ForModel::Shown, CancellationToken::new());
    assert_eq!(run("remote").await.unwrap().output, "from afar");
    assert_eq!(run("echo here").await.unwrap().output.trim(), "here");
}

#[tokio::test]
async fn an_extension_summarises_or_cancels_a_compaction() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let (heard, failed) = (told.clone(), told.clone());
    let settings = json!({"compaction": {"enabled": false, "keepRecentTokens": 1}});
    let fixture = Fixture::with((0..3).map(|n| FauxReply::text(format!("answer {n}"))), |options| {
        let options = options.settings(SettingsManager::in_memory(settings));
        let by_hand = named("a", |pi: &mut ExtensionApi| {
            pi.on(event::SessionBeforeCompact, async |event, _ctx| {
                assert!(!event.branch_entries.is_empty());
                CompactDecision::from(CompactionDraft {
                    summary: "By hand.".into(),
                    first_kept_entry_id: Some(event.preparation.first_kept_entry_id.clone()),
                    ..CompactionDraft::default()
                })
            });
        });
        let last_word = named("b", move |pi: &mut ExtensionApi| {
            pi.on(event::SessionBeforeCompact, async |event, _ctx| match event.custom_instructions.as_deref() {
                Some("never") => CompactDecision::Cancel,
                _ => CompactDecision::Proceed,
            });
            let heard = heard.clone();
            pi.on(event::SessionCompact, async move |event, _ctx| {
                heard.lock().unwrap().push(format!("done, from an extension: {}", event.from_extension));
            });
            let failed = failed.clone();
            pi.on(event::SessionCompactFailed, async move |event, _ctx| {
                failed.lock().unwrap().push(format!("failed, aborted: {}", event.aborted));
            });
        });
        options.extension(by_hand).extension(last_word)
    })
    .await;
    for n in 0..3 {
        fixture.session.prompt(format!("question {n}")).await.unwrap();
    }
    let asked = fixture.model.requests();
    let cancelled = fixture.session.compact(SummaryInstructions::Focus("never".into())).await;
    assert!(matches!(cancelled, Err(AgentSessionError::Cancelled)), "{cancelled:?}");
    let done = fixture.session.compact(SummaryInstructions::Usual).await.unwrap();
    assert_eq!(done.summary, "By hand.");
    assert_eq!(fixture.model.requests(), asked, "no model was asked");
    assert_eq!(*told.lock().unwrap(), ["failed, aborted: true", "done, from an extension: true"]);
    let Some(EntryBody::Compaction(compaction)) = fixture.entries().pop() else { panic!() };
    assert_eq!(compaction.from_hook, Some(true));
}

#[tokio::test]
async fn a_handler_has_the_conversation_summarised_without_waiting_for_itself() {
    let compacted = Arc::new(tokio::sync::Notify::new());
    let tell = compacted.clone();
    let settings = json!({"compaction": {"enabled": false, "keepRecentTokens": 1}});
    let fixture = Fixture::with((0..3).map(|n| FauxReply::text(format!("answer {n}"))), |options| {
        let tidy = named("tidy", move |pi: &mut ExtensionApi| {
            pi.on(event::TurnEnd, async |event, ctx| {
                if event.message.text() == "answer 2" {
                    ctx.compact_soon(SummaryInstructions::Usual)?;
                }
                Ok(())
            });
            pi.on(event::SessionBeforeCompact, async |event, _ctx| {
                CompactDecision::from(CompactionDraft {
                    summary: "Tidy.".into(),
                    first_kept_entry_id: Some(event.preparation.first_kept_entry_id.clone()),
                    ..CompactionDraft::default()
                })
            });
            let tell = tell.clone();
            pi.on(event::SessionCompact, async move |_event, _ctx| tell.notify_one());
        });
        options.settings(SettingsManager::in_memory(settings)).extension(tidy)
    })
    .await;
    for n in 0..3 {
        fixture.session.prompt(format!("question {n}")).await.unwrap();
    }
    tokio::time::timeout(std::time::Duration::from_secs(10), compacted.notified()).await.unwrap();
    assert!(fixture.entries().iter().any(|body| matches!(body, EntryBody::Compaction(_))));
    assert_eq!(fixture.failures(), Vec::<String>::new());
}

#[tokio::test]
async fn an_extension_has_its_say_about_another_place_in_the_tree() {
    let told = Arc::new(Mutex::new(None));
    let heard = told.clone();
    let fixture = two(
        (0..2).map(|n| FauxReply::text(format!("answer {n}"))),
        |pi| {
            pi.on(event::SessionBeforeTree, async |event, _ctx| match event.preparation.user_wants_summary {
                true => TreeDecision::from(TreeAdjustment {
                    summary: Some(TreeSummary { summary: "We tried two.".into(), ..TreeSummary::default() }),
                    label: Some("tried".into()),
                    ..TreeAdjustment::default()
                }),
                false => TreeDecision::Cancel,
            });
        },
        move |pi| {
            let heard = heard.clone();
            pi.on(event::SessionTree, async move |event, _ctx| *heard.lock().unwrap() = Some(event));
        },
    )
    .await;
    fixture.session.prompt("one").await.unwrap();
    let target = fixture.session.session_manager().leaf_id().unwrap();
    fixture.session.prompt("two").await.unwrap();
    let silently = fixture.session.navigate_to(&target, LeaveBehind::Silently).await;
    assert!(matches!(silently, Err(AgentSessionError::Cancelled)), "{silently:?}");
    let summarized = LeaveBehind::Summarized(SummaryInstructions::Usual);
    let navigated = fixture.session.navigate_to(&target, summarized).await.unwrap();
    let manager = fixture.session.session_manager();
    let summary = navigated.summary.unwrap();
    let EntryBody::BranchSummary(body) = manager.entry(summary.as_str()).unwrap().body else { panic!() };
    assert_eq!((body.summary.as_str(), body.from_hook), ("We tried two.", Some(true)));
    assert_eq!(manager.with(|session| session.label(summary.as_str()).unwrap().text.clone()), "tried");
    let told = told.lock().unwrap().clone().unwrap();
    assert_eq!(told.from_extension, Some(true));
}
