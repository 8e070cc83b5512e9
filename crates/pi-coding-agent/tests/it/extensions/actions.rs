//! What extensions do besides answering.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use pi_ai::{CancellationToken, faux::FauxReply};
use pi_coding_agent::{
    agent_session::{AgentSessionError, CustomMessage, Delivery, MessageTiming, UserMessageTiming},
    extensions::{
        Command, Completion, ExecOptions, ExtensionApi, ExtensionUi, Flag, FlagValue, Mode, Shortcut, UiAnswer,
        UiQuestion, UiUpdate, event, named,
    },
    sdk::SessionOptions,
    session::EntryBody,
    workspace::memory::{ScriptedProcesses, memory_workspace},
};
use serde_json::json;

use super::{acceptance::tool, support::Fixture};

type Log = Arc<Mutex<Vec<String>>>;

fn message(text: &str) -> CustomMessage {
    CustomMessage { custom_type: "note".into(), content: text.into(), ..CustomMessage::default() }
}

#[tokio::test]
async fn messages_wait_for_their_time_and_split_no_call_from_its_result() {
    let replies = [
        FauxReply::tool_call("deploy", json!({})),
        FauxReply::text("one"),
        FauxReply::text("two"),
        FauxReply::text("three"),
    ];
    let fixture = Fixture::with(replies, |options| {
        options.tool(tool("deploy")).extension(named("talker", |pi: &mut ExtensionApi| {
            pi.on(event::ToolCall, async |_event, ctx| {
                ctx.send_message(message("noted"), MessageTiming::Noted).await?;
                ctx.send_message(message("steered"), MessageTiming::Queued(Delivery::Steer)).await?;
                ctx.send_message(message("later"), MessageTiming::Queued(Delivery::FollowUp)).await?;
                ctx.send_message(message("next"), MessageTiming::NextPrompt).await?;
                Ok(event::ToolCallDecision::Allow)
            });
        }))
    })
    .await;
    fixture.session.prompt("go").await.unwrap();
    fixture.session.prompt("again").await.unwrap();
    assert_eq!(
        fixture.model.said(1)[1..],
        ["assistant: ", "toolResult: deploy done", "user: noted", "user: steered"].map(str::to_owned)
    );
    assert_eq!(fixture.model.said(2).last().unwrap(), "user: later");
    let last = fixture.model.said(3);
    assert_eq!(last[last.len() - 2..], ["user: again", "user: next"].map(str::to_owned));
}

#[tokio::test]
async fn what_is_said_when_all_is_settled_is_answered_by_a_run_of_its_own() {
    let fixture = Fixture::new(
        [FauxReply::text("one"), FauxReply::text("two")],
        named("again", |pi: &mut ExtensionApi| {
            pi.on(event::AgentSettled, async |_event, ctx| {
                if ctx.session_name().is_none() {
                    ctx.set_session_name("said").await?;
                    ctx.send_message(message("And now?"), MessageTiming::Answered(Delivery::Steer)).await?;
                }
                Ok(())
            });
        }),
    )
    .await;
    fixture.session.prompt("go").await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), async {
        while fixture.model.requests() < 2
            || !matches!(fixture.session.activity(), pi_coding_agent::agent_session::Activity::Idle)
        {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert_eq!(fixture.model.said(1), ["user: go", "assistant: one", "user: And now?"]);
}

#[tokio::test]
async fn a_command_runs_at_once_and_speaks_in_the_users_place() {
    let fixture = Fixture::new(
        [FauxReply::text("hello")],
        named("greeter", |pi: &mut ExtensionApi| {
            pi.register_command(
                Command::new("greet", async |name, ctx| {
                    ctx.send_user_message(format!("/not-a-template Greet {name}"), UserMessageTiming::WhenIdle).await?;
                    ctx.wait_for_idle().await
                })
                .description("Greets somebody")
                .completions(|beginning| {
                    let names = ["Kim", "Lee"].into_iter().filter(|name| name.starts_with(beginning));
                    names.map(|name| Completion { value: name.into(), description: None }).collect()
                }),
            );
        }),
    )
    .await;
    fixture.session.prompt("/greet Kim Lee").await.unwrap();
    assert_eq!(fixture.model.said(0), ["user: /not-a-template Greet Kim Lee"]);
    let extensions = fixture.session.extensions();
    assert_eq!(extensions.completions("greet", "L")[0].value, "Lee");
    assert_eq!(extensions.commands()[0].description.as_deref(), Some("Greets somebody"));
    let refused = fixture.session.steer("/greet Kim").await;
    assert!(matches!(refused, Err(AgentSessionError::CommandCannotWait { .. })), "{refused:?}");
}

#[tokio::test]
async fn commands_with_one_name_get_numbers() {
    let log = Log::default();
    let brings = |name: &'static str, log: &Log| {
        let log = log.clone();
        named(name, move |pi: &mut ExtensionApi| {
            let log = log.clone();
            pi.register_command(Command::new("go", async move |_arguments, ctx| {
                log.lock().unwrap().push(ctx.extension().to_owned());
            }));
        })
    };
    let fixture = Fixture::with([], |options| options.extension(brings("a", &log)).extension(brings("b", &log))).await;
    let names: Vec<_> = fixture.session.extensions().commands().into_iter().map(|command| command.name).collect();
    assert_eq!(names, ["go:1", "go:2"]);
    fixture.session.prompt("/go:2").await.unwrap();
    assert_eq!(*log.lock().unwrap(), ["b"]);
}

#[tokio::test]
async fn flags_have_what_the_command_line_said_or_their_default() {
    let log = Log::default();
    let heard = log.clone();
    let flags = [("plan", None), ("style", Some("terse".to_owned()))];
    let fixture = Fixture::with([], |options| {
        options.flag_values(flags.map(|(name, value)| (name.to_owned(), value)).into()).extension(named(
            "flags",
            move |pi: &mut ExtensionApi| {
                pi.register_flag(Flag::switch("plan"))
                    .register_flag(Flag::switch("quiet"))
                    .register_flag(Flag::text("style"))
                    .register_flag(Flag::text("depth").default_value(FlagValue::Text("two".into())));
                let heard = heard.clone();
                pi.on(event::SessionStart, async move |_event, ctx| {
                    let shown = ["plan", "quiet", "style", "depth"].map(|name| format!("{:?}", ctx.flag(name)));
                    heard.lock().unwrap().extend(shown);
                });
            },
        ))
    })
    .await;
    let expected = ["Some(Switch(true))", "None", "Some(Text(\"terse\"))", "Some(Text(\"two\"))"].map(str::to_owned);
    assert_eq!(*log.lock().unwrap(), expected);
    assert_eq!(fixture.session.extensions().flags().len(), 4);
}

#[tokio::test]
async fn a_program_is_run_without_a_shell_and_ended_in_time() {
    let log = Log::default();
    let heard = log.clone();
    let fixture = Fixture::new(
        [],
        named("runner", move |pi: &mut ExtensionApi| {
            let heard = heard.clone();
            pi.register_command(Command::new("run", async move |_arguments, ctx| {
                let ran = ctx.exec("sh", ["-c", "echo out; echo err >&2; exit 3"], ExecOptions::default()).await?;
                heard.lock().unwrap().push(format!(
                    "{} {} {:?} {}",
                    ran.stdout.trim(),
                    ran.stderr.trim(),
                    ran.code,
                    ran.killed
                ));
                let literal = ctx.exec("echo", ["$HOME; ls"], ExecOptions::default()).await?;
                heard.lock().unwrap().push(literal.stdout.trim().to_owned());
                let options = ExecOptions { timeout: Some(Duration::from_millis(50)), ..ExecOptions::default() };
                let slow = ctx.exec("sleep", ["60"], options).await?;
                heard.lock().unwrap().push(format!("killed {}", slow.killed));
                let options = ExecOptions { max_output: 1000, ..ExecOptions::default() };
                let endless = ctx.exec("yes", [""; 0], options).await?;
                heard.lock().unwrap().push(format!("killed {}", endless.killed));
                let missing = ctx.exec("no-such-program-here", [""; 0], ExecOptions::default()).await.unwrap_err();
                heard.lock().unwrap().push(missing.to_string());
                Ok(())
            }));
        }),
    )
    .await;
    fixture.session.prompt("/run").await.unwrap();
    let log = log.lock().unwrap();
    assert_eq!(log[..4], ["out err Some(3) false", "$HOME; ls", "killed true", "killed true"].map(str::to_owned));
    assert!(log[4].contains("no-such-program-here"), "{log:?}");
    assert_eq!(fixture.failures(), Vec::<String>::new());
}

/// Runs `program` from a command, and gives what came of it.
async fn ran(
    change: impl FnOnce(SessionOptions) -> SessionOptions,
    program: &'static str,
    arguments: &'static [&'static str],
) -> String {
    let log = Log::default();
    let heard = log.clone();
    let runner = named("runner", move |pi: &mut ExtensionApi| {
        let heard = heard.clone();
        pi.register_command(Command::new("run", async move |_arguments, ctx| {
            let ran = ctx.exec(program, arguments.iter().copied(), ExecOptions::default()).await;
            let ran = ran.map_or_else(|error| error.to_string(), |ran| format!("{} {:?}", ran.stdout.trim(), ran.code));
            heard.lock().unwrap().push(ran);
            Ok(())
        }));
    });
    let fixture = Fixture::with([], |options| change(options).extension(runner)).await;
    fixture.session.prompt("/run").await.unwrap();
    let log = log.lock().unwrap();
    log.join("\n")
}

#[tokio::test]
async fn a_program_runs_where_the_sessions_commands_run() {
    // A workspace that is elsewhere gets the words, each for itself.
    let elsewhere = ScriptedProcesses::new(|command| (format!("there: {}", command.script).into(), 4));
    let workspace = memory_workspace("/project", [("", ""); 0]).with_processes(Arc::new(elsewhere));
    let said = ran(|options| options.workspace(workspace), "git", &["log", "a b"]).await;
    assert_eq!(said, "there: exec 'git' 'log' 'a b' Some(4)");
    // One that runs nothing says so.
    let nothing = memory_workspace("/project", [("", ""); 0]);
    let said = ran(|options| options.workspace(nothing), "git", &["log"]).await;
    assert!(said.contains("`git` could not be started in /project: This workspace runs no commands"), "{said}");
    // What the environment of the host says counts, and not that of this process.
    let said = ran(|options| options, "sh", &["-c", "echo ${HOME:-nobody}, $AI_AGENT"]).await;
    assert_eq!(said, "nobody, pi Some(0)");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_of_an_extension_stays_in_the_sandbox() {
    use pi_coding_agent::workspace::local::{Network, Sandbox};
    if let Err(unavailable) = Sandbox::check() {
        eprintln!("not tested, there is no sandbox here: {unavailable}");
        return;
    }
    let outside = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let file: &'static str = Box::leak(outside.path().join("made").to_string_lossy().into_owned().into_boxed_str());
    let arguments: &'static [&'static str] = Box::leak(Box::new([file]));
    let said = ran(|options| options.sandbox(Network::Denied), "touch", arguments).await;
    assert!(said.ends_with("Some(1)"), "{said}");
    assert!(!std::path::Path::new(file).exists());
    let said = ran(|options| options.sandbox(Network::Denied), "touch", &["inside"]).await;
    assert_eq!(said, " Some(0)");
}

#[tokio::test]
async fn extensions_talk_to_one_another_over_the_bus() {
    let log = Log::default();
    let heard = log.clone();
    let fixture = Fixture::with([], |options| {
        options
            .extension(named("listener", move |pi: &mut ExtensionApi| {
                let heard = heard.clone();
                pi.on_bus("build", async move |value, _ctx| heard.lock().unwrap().push(value.to_string()));
                pi.on_bus("other", async |_value, _ctx| -> () { panic!("another channel") });
            }))
            .extension(named("speaker", |pi: &mut ExtensionApi| {
                pi.register_command(Command::new("build", async |_arguments, ctx| {
                    ctx.emit("build", json!({"ok": true})).await
                }));
            }))
    })
    .await;
    fixture.session.prompt("/build").await.unwrap();
    assert_eq!(*log.lock().unwrap(), [r#"{"ok":true}"#]);
}

/// A user who answers what the test says, or never.
struct Answers(Option<UiAnswer>, Log);

#[async_trait]
impl ExtensionUi for Answers {
    async fn ask(&self, question: UiQuestion, signal: CancellationToken) -> Option<UiAnswer> {
        self.1.lock().unwrap().push(format!("{question:?}"));
        match &self.0 {
            Some(answer) => Some(answer.clone()),
            None => {
                signal.cancelled().await;
                std::future::pending().await
            }
        }
    }

    fn mode(&self) -> Mode {
        Mode::Tui
    }

    fn show(&self, update: UiUpdate) {
        self.1.lock().unwrap().push(format!("{update:?}"));
    }
}

fn asks(log: &Log) -> impl pi_coding_agent::extensions::Extension + use<> {
    let log = log.clone();
    named("asker", move |pi: &mut ExtensionApi| {
        let (answers, started, ended) = (log.clone(), log.clone(), log.clone());
        pi.register_command(Command::new("ask", async move |_arguments, ctx| {
            let sure = ctx.ui().within(Duration::from_millis(50)).confirm("Sure?", "It is gone then.").await;
            answers.lock().unwrap().push(format!("sure: {sure}"));
        }));
        pi.on(event::UiPromptStart, async move |event, _ctx| {
            started.lock().unwrap().push(format!("start {:?}", event.kind));
        });
        pi.on(event::UiPromptEnd, async move |_event, _ctx| ended.lock().unwrap().push("end".into()));
        pi.register_shortcut(Shortcut::new("Ctrl+Shift+B", async |(), ctx| ctx.ui().notify("pressed")));
    })
}

#[tokio::test]
async fn a_question_without_an_answer_is_a_no() {
    let log = Log::default();
    let fixture = Fixture::with([], |options| options.extension(asks(&log))).await;
    fixture.session.prompt("/ask").await.unwrap();
    assert_eq!(*log.lock().unwrap(), ["sure: false"], "nobody is there: nothing is asked");

    let shown = Log::default();
    fixture.session.extensions().set_ui(Answers(None, shown.clone()));
    fixture.session.prompt("/ask").await.unwrap();
    assert!(shown.lock().unwrap()[0].contains("Sure?"));
    assert_eq!(log.lock().unwrap().iter().filter(|line| *line == "sure: false").count(), 2, "its time was up");

    fixture.session.extensions().set_ui(Answers(Some(UiAnswer::Confirmed(true)), shown.clone()));
    fixture.session.prompt("/ask").await.unwrap();
    assert!(log.lock().unwrap().contains(&"sure: true".to_owned()));
    let told = tokio::time::timeout(Duration::from_secs(10), async {
        while log.lock().unwrap().iter().filter(|line| *line == "end").count() < 2 {
            tokio::task::yield_now().await;
        }
    });
    told.await.unwrap();
    assert!(fixture.session.extensions().run_shortcut("ctrl+shift+b").await);
    assert!(shown.lock().unwrap().last().unwrap().contains("pressed"));
}

#[tokio::test]
async fn labels_names_and_tools_are_within_reach() {
    let fixture = Fixture::with([FauxReply::text("ok")], |options| {
        options.tool(tool("plan")).tool(tool("build")).extension(named("keeper", |pi: &mut ExtensionApi| {
            pi.register_command(Command::new("mark", async |label, ctx| {
                let entry = ctx.leaf_id().ok_or_else(|| pi_coding_agent::extensions::ExtensionError::new("empty"))?;
                ctx.set_label(&entry, Some(&label)).await?;
                ctx.set_session_name("Marked").await?;
                assert!(ctx.all_tools().iter().any(|name| name == "plan"));
                ctx.set_active_tools(["build"])?;
                assert!(ctx.context_usage().is_some() && ctx.model().is_some() && ctx.is_idle());
                Ok(())
            }));
        }))
    })
    .await;
    fixture.session.prompt("hi").await.unwrap();
    let answer = fixture.session.session_manager().leaf_id().unwrap();
    fixture.session.prompt("/mark here").await.unwrap();
    let manager = fixture.session.session_manager();
    assert_eq!(manager.with(|session| session.label(answer.as_str()).unwrap().text.clone()), "here");
    assert_eq!(manager.name().as_deref(), Some("Marked"));
    assert_eq!(fixture.session.active_tools(), ["build"]);
    assert!(fixture.entries().iter().any(|body| matches!(body, EntryBody::Label(_))));
    assert_eq!(fixture.failures(), Vec::<String>::new());
}
