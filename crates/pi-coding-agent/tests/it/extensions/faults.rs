//! What goes wrong in an extension stays there.

use std::time::Duration;

use futures::FutureExt;
use pi_agent_core::{Tool, ToolArguments, ToolContext};
use pi_ai::{CancellationToken, ToolDeclaration, faux::FauxReply};
use pi_coding_agent::{
    agent_session::{AgentSessionError, ForModel},
    extensions::{
        Command, EventKind, ExtensionApi, ExtensionError, ExtensionRunner, FailurePlace, RenderOptions, event, named,
    },
    resources::Theme,
    session::{CustomEntry, EntryId},
};
use serde_json::json;

use super::{
    acceptance::tool,
    support::{Fixture, Scripted, options},
};

/// How a handler fails.
#[derive(Clone, Copy)]
enum Failure {
    Error,
    Panic,
    PanicBeforeItBegins,
}

/// Fails on every event but those that decide about the only tool.
fn broken(failure: Failure, but: &'static [EventKind]) -> impl Fn(&mut ExtensionApi) + Send + Sync + 'static {
    move |pi| {
        for kind in EventKind::ALL.iter().filter(|kind| !but.contains(kind)) {
            pi.on_json(*kind, move |_event, _ctx| {
                if let Failure::PanicBeforeItBegins = failure {
                    panic!("broken early");
                }
                async move {
                    match failure {
                        Failure::Error => Err(ExtensionError::new("broken")),
                        _ => panic!("broken"),
                    }
                }
                .boxed()
            });
        }
    }
}

#[tokio::test]
async fn a_session_goes_on_whatever_fails_on_every_event() {
    for failure in [Failure::Error, Failure::Panic, Failure::PanicBeforeItBegins] {
        let replies = [FauxReply::tool_call("deploy", json!({})), FauxReply::text("Done.")];
        let fixture = Fixture::with(replies, |options| {
            options.tool(tool("deploy")).extension(named("broken", broken(failure, &[EventKind::ToolCall])))
        })
        .await;
        let reply = fixture.session.prompt("deploy it").await.unwrap();
        assert_eq!(reply.into_text().unwrap(), "Done.");
        assert_eq!(fixture.model.said(1)[2], "toolResult: deploy done");
        fixture.session.set_name("a name").await.unwrap();
        let failures = fixture.failures();
        for kind in
            ["input", "before_agent_start", "context", "tool_result", "message_end", "turn_end", "agent_settled"]
        {
            let reported = failures.iter().any(|failure| failure.starts_with(&format!("broken, {kind}: ")));
            assert!(reported, "{kind} is not among {failures:?}");
        }
        assert!(failures.iter().all(|failure| failure.contains("broken")), "{failures:?}");
        fixture.session.dispose().await.unwrap();
    }
}

#[tokio::test]
async fn a_gate_that_fails_blocks_the_call_and_says_whose_it_is() {
    for failure in [Failure::Error, Failure::Panic, Failure::PanicBeforeItBegins] {
        let replies = [FauxReply::tool_call("deploy", json!({})), FauxReply::text("I may not.")];
        let fixture = Fixture::with(replies, |options| {
            options.tool(tool("deploy")).extension(named("guard", broken(failure, &[])))
        })
        .await;
        fixture.session.prompt("deploy it").await.unwrap();
        let result = fixture.model.said(1).pop().unwrap();
        assert!(result.starts_with("toolResult: ") && result.contains("guard"), "{result}");
        assert!(!result.contains("deploy done"), "{result}");
    }
}

#[tokio::test]
async fn a_users_command_is_not_run_when_its_gate_fails() {
    let fixture = Fixture::new([], named("guard", broken(Failure::Panic, &[]))).await;
    let ran = fixture.session.execute_bash("echo hi", ForModel::Shown, CancellationToken::new()).await;
    let error = ran.unwrap_err();
    assert!(matches!(error, AgentSessionError::Extension(_)), "{error:?}");
    assert!(error.to_string().contains("guard"), "{error}");
}

#[tokio::test]
async fn an_answer_that_is_none_of_the_event_blocks_a_gate() {
    let replies = [FauxReply::tool_call("deploy", json!({})), FauxReply::text("I may not.")];
    let fixture = Fixture::with(replies, |options| {
        options.tool(tool("deploy")).extension(named("garbage", |pi: &mut ExtensionApi| {
            pi.on_json(EventKind::ToolCall, |_event, _ctx| async { Ok(json!({"block": "perhaps"})) }.boxed());
        }))
    })
    .await;
    fixture.session.prompt("deploy it").await.unwrap();
    assert!(fixture.model.said(1).pop().unwrap().contains("garbage"));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_ignores_the_abort_does_not_hold_the_session() {
    let started = std::sync::Arc::new(tokio::sync::Notify::new());
    let begun = started.clone();
    let declaration = ToolDeclaration::new("stubborn", "Never ends.", json!({"type": "object"}));
    let stubborn = Tool::from_declaration(declaration, async move |_: ToolArguments, context: ToolContext| {
        begun.notify_one();
        // It learns of the abort, and ignores it.
        context.signal.cancelled().await;
        std::future::pending::<()>().await;
        Ok("never")
    });
    let replies = [FauxReply::tool_call("stubborn", json!({})), FauxReply::text("never asked")];
    let fixture = Fixture::with(replies, |options| {
        options.extension(named("tools", {
            let stubborn = std::sync::Arc::new(stubborn);
            move |pi: &mut ExtensionApi| {
                let stubborn: std::sync::Arc<dyn pi_agent_core::AgentTool> = stubborn.clone();
                pi.register_tool(stubborn);
            }
        }))
    })
    .await;
    let run = fixture.session.prompt("go");
    tokio::time::timeout(Duration::from_secs(10), started.notified()).await.expect("it begins");
    fixture.session.abort();
    let ended = tokio::time::timeout(Duration::from_secs(10), run).await;
    let reply = ended.expect("the session does not wait for the tool").unwrap();
    assert!(reply.into_text().is_err(), "it was aborted");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_ignores_the_abort_is_dropped_and_named() {
    let started = std::sync::Arc::new(tokio::sync::Notify::new());
    let begun = started.clone();
    let fixture = Fixture::new(
        [FauxReply::text("ok")],
        named("sleeper", move |pi: &mut ExtensionApi| {
            let begun = begun.clone();
            pi.on(event::MessageEnd, async move |_event, _ctx| {
                begun.notify_one();
                std::future::pending::<()>().await;
            });
        }),
    )
    .await;
    let run = fixture.session.prompt("go");
    tokio::time::timeout(Duration::from_secs(10), started.notified()).await.expect("it begins");
    fixture.session.abort();
    assert!(tokio::time::timeout(Duration::from_secs(60), run).await.is_ok());
    assert!(fixture.failures()[0].starts_with("sleeper, message_end: "), "{:?}", fixture.failures());
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_the_shutdown_cannot_keep_the_session() {
    let fixture = Fixture::new(
        [],
        named("clinger", |pi: &mut ExtensionApi| {
            pi.on(event::SessionShutdown, async |_event, _ctx| std::future::pending::<()>().await);
        }),
    )
    .await;
    let ended = tokio::time::timeout(Duration::from_secs(30), fixture.session.dispose()).await;
    ended.unwrap().unwrap();
}

#[tokio::test]
async fn an_extension_that_cannot_be_loaded_is_left_out_and_the_others_work() {
    struct Unloadable;
    #[async_trait::async_trait]
    impl pi_coding_agent::extensions::Extension for Unloadable {
        fn name(&self) -> &str {
            "unloadable"
        }

        async fn register(&self, pi: &mut ExtensionApi) -> Result<(), ExtensionError> {
            pi.register_tool(tool("half"));
            Err(ExtensionError::new("its server is down"))
        }
    }
    let fixture = Fixture::with([FauxReply::text("ok")], |options| {
        options
            .extension(Unloadable)
            .extension(named("panics", |_pi: &mut ExtensionApi| panic!("while loading")))
            .extension(named("fine", |pi: &mut ExtensionApi| {
                pi.register_tool(tool("whole")).register_tool(tool("w2"));
            }))
    })
    .await;
    let extensions = fixture.session.extensions();
    assert_eq!(extensions.extensions(), ["fine"]);
    assert_eq!(fixture.session.active_tools(), ["whole", "w2"]);
    let failures = extensions.failures();
    let told: Vec<_> = failures.iter().map(|failure| (failure.extension.as_str(), &failure.place)).collect();
    assert_eq!(told, [("unloadable", &FailurePlace::Loading), ("panics", &FailurePlace::Loading)]);
    assert!(extensions.diagnostics().iter().all(|problem| problem.is_error()));
}

#[tokio::test]
async fn names_that_two_extensions_bring_are_reported_and_the_first_one_is_used() {
    let first = named("first", |pi: &mut ExtensionApi| {
        pi.register_tool(tool("deploy")).register_flag(pi_coding_agent::extensions::Flag::switch("plan"));
    });
    let second = named("second", |pi: &mut ExtensionApi| {
        pi.register_tool(tool("deploy")).register_flag(pi_coding_agent::extensions::Flag::text("plan"));
    });
    let runner =
        ExtensionRunner::new(vec![std::sync::Arc::new(first), std::sync::Arc::new(second)], Default::default());
    runner.load().await;
    let problems: Vec<String> = runner.diagnostics().iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("second") && problems[0].contains("deploy"), "{problems:?}");
    assert_eq!(runner.flags()[0].extension, "first");
}

#[tokio::test]
async fn a_renderer_or_a_command_that_panics_shows_what_went_wrong() {
    let fixture = Fixture::new(
        [],
        named("ugly", |pi: &mut ExtensionApi| {
            pi.register_entry_renderer::<u64>("note", |_entry, _options, _theme| panic!("no colours"));
            pi.register_command(Command::new("boom", async |_arguments, _ctx| -> () { panic!("no such luck") }));
        }),
    )
    .await;
    let draw = |data| {
        let entry = CustomEntry { custom_type: "note".into(), data: Some(data) };
        let extensions = fixture.session.extensions();
        let id = EntryId::from("e1");
        extensions.render_entry(&id, &entry, RenderOptions::COLLAPSED, &Theme::dark()).unwrap().to_string()
    };
    assert!(draw(json!(1)).contains("ugly") && draw(json!(1)).contains("no colours"));
    assert!(draw(json!("text")).contains("e1"), "data of another type: {}", draw(json!("text")));
    fixture.session.prompt("/boom").await.unwrap();
    assert!(fixture.failures().iter().any(|failure| failure.starts_with("ugly, /boom: ")), "{:?}", fixture.failures());
}

#[tokio::test]
async fn a_context_that_outlives_its_loading_or_its_session_says_so() {
    use pi_coding_agent::extensions::ExtensionContext;
    let kept: std::sync::Arc<std::sync::Mutex<Option<ExtensionContext>>> = Default::default();
    let keep = kept.clone();
    let model = Scripted::new([]);
    let (options, _folder) = options(&model);
    let keeper = named("keeper", move |pi: &mut ExtensionApi| {
        let keep = keep.clone();
        pi.on(event::SessionStart, async move |_event, ctx| {
            keep.lock().unwrap().get_or_insert(ctx);
        });
    });
    let session = pi_coding_agent::sdk::create_agent_session(options.extension(keeper)).await.unwrap();
    let context = kept.lock().unwrap().clone().unwrap();
    context.append_entry("note", 1).await.unwrap();
    session.reload().await;
    let error = context.append_entry("note", 2).await.unwrap_err();
    assert!(error.to_string().contains("loaded again"), "{error}");
    session.dispose().await.unwrap();
}

#[tokio::test]
async fn handlers_come_and_go_and_a_dispatch_in_progress_is_not_affected() {
    use std::sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    };
    let (calls, own) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(None)));
    let (count, slot) = (calls.clone(), own.clone());
    let fixture = Fixture::new(
        [FauxReply::text("a"), FauxReply::text("b")],
        named("once", move |pi: &mut ExtensionApi| {
            let (count, later, mine) = (count.clone(), count.clone(), slot.clone());
            let id = pi.on(event::AgentStart, async move |_event, ctx| {
                count.fetch_add(1, Ordering::SeqCst);
                let id = mine.lock().unwrap().take();
                if let Some(id) = id {
                    ctx.off(id);
                }
                let later = later.clone();
                ctx.register(|pi| {
                    pi.on(event::AgentStart, async move |_event, _ctx| {
                        later.fetch_add(10, Ordering::SeqCst);
                    });
                })
            });
            *slot.lock().unwrap() = Some(id);
        }),
    )
    .await;
    fixture.session.prompt("one").await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 1, "what is registered during a dispatch waits for the next one");
    fixture.session.prompt("two").await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 11, "the first one took itself away");
}
