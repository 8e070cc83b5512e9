//! The promises that people build on.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pi_agent_core::{Tool, ToolArguments, ToolContext};
use pi_ai::{
    Message, SystemMessage, ToolDeclaration,
    faux::FauxReply,
    transcript::{current_system_message, current_tools},
};
use pi_coding_agent::{
    agent_session::{CustomMessage, Display, MessageTiming, SessionTool},
    extensions::{
        Command, ExtensionApi, RenderOptions,
        event::{self, RunTrigger},
        named,
    },
    messages::SessionMessage,
    resources::{Theme, ThemeToken},
    sdk::create_agent_session,
    session::{EntryBody, EntryKind, SessionManager},
    styled_text::{Span, StyledText},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::support::{Fixture, Scripted, options, said};

/// A tool that answers with its name.
pub(super) fn tool(name: &str) -> Tool {
    let answer = format!("{name} done");
    let declaration = ToolDeclaration::new(name, format!("Does {name}."), json!({"type": "object"}));
    Tool::from_declaration(declaration, async move |_: ToolArguments, _: ToolContext| Ok(answer.clone()))
}

#[derive(Serialize, Deserialize)]
struct Audit {
    tool: String,
    at: u64,
}

fn audit(pi: &mut ExtensionApi) {
    pi.on(event::ToolResult, async |event, ctx| {
        let note = Audit { tool: event.tool_name, at: ctx.now().as_millis() };
        ctx.append_entry("audit-note", note).await?;
        Ok(())
    });
    pi.register_entry_renderer::<Audit>("audit-note", |entry, options, _theme| {
        let mut text = StyledText::line([Span::token("[audit] ", ThemeToken::Accent), Span::plain(&entry.data.tool)]);
        if options.is_expanded() {
            text.push_line([Span::token(format!("at {}", entry.data.at), ThemeToken::Dim)]);
        }
        text
    });
}

#[tokio::test]
async fn an_audit_note_is_kept_and_shown_and_never_sent() {
    let replies = [FauxReply::tool_call("deploy", json!({})), FauxReply::text("Deployed.")];
    let fixture = Fixture::with(replies, |options| options.tool(tool("deploy")).extension(named("audit", audit))).await;
    fixture.session.prompt("deploy it").await.unwrap();

    let manager = fixture.session.session_manager();
    let branch = manager.branch_entries();
    let kinds: Vec<_> = branch.iter().map(|entry| entry.kind).collect();
    assert!(kinds.contains(&EntryKind::Custom), "{kinds:?}");
    let requests = format!("{:?}", [fixture.model.request(0), fixture.model.request(1)]);
    assert!(!requests.contains("audit"), "{requests}");
    assert_eq!(fixture.model.said(1)[2], "toolResult: deploy done");

    let note = branch.iter().find(|entry| entry.kind == EntryKind::Custom).unwrap();
    let EntryBody::Custom(custom) = manager.entry(note.id.as_str()).unwrap().body else { panic!() };
    let draw = |options| {
        fixture.session.extensions().render_entry(&note.id, &custom, options, &Theme::dark()).unwrap().to_string()
    };
    assert_eq!(draw(RenderOptions::COLLAPSED), "[audit] deploy");
    assert!(draw(RenderOptions::EXPANDED).starts_with("[audit] deploy\nat "));
    assert_eq!(fixture.failures(), Vec::<String>::new());
}

/// Counts warnings that name something.
struct Warnings(&'static str, Arc<AtomicUsize>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }

    fn new_span(&self, _span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _span: &tracing::span::Id, _values: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _span: &tracing::span::Id, _follows: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, _field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0 += &format!("{value:?} ");
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        if text.0.contains(self.0) {
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn enter(&self, _span: &tracing::span::Id) {}

    fn exit(&self, _span: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_role_that_nobody_converts_stays_out_of_the_request_and_a_warning_says_so_once() {
    let warnings = Arc::new(AtomicUsize::new(0));
    let _watching = tracing::subscriber::set_default(Warnings("weather", warnings.clone()));
    let fixture = Fixture::with([FauxReply::text("Hm."), FauxReply::text("Hm.")], |options| options).await;
    let foreign: SessionMessage = serde_json::from_value(json!({"role": "weather", "text": "rain"})).unwrap();
    fixture.session.session_manager().append_message(foreign).await.unwrap();
    fixture.session.prompt("How is it?").await.unwrap();
    fixture.session.prompt("And now?").await.unwrap();
    assert_eq!(fixture.model.said(1), ["user: How is it?", "assistant: Hm.", "user: And now?"]);
    assert!(fixture.session.messages().iter().any(|message| message.role() == "weather"));
    assert_eq!(warnings.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_section_of_the_prompt_is_patched_and_taken_away() {
    let fixture =
        Fixture::with([FauxReply::text("one"), FauxReply::text("two"), FauxReply::text("three")], |o| o).await;
    let session = &fixture.session;
    session.update_system_prompt(|prompt| {
        prompt.sections.insert("tone".into(), "Be brief.".into());
        prompt.sections.insert("team".into(), "Ask Kim.".into());
    });
    session.prompt("a").await.unwrap();
    let before = current_system_message(&fixture.model.request(0)).unwrap();

    session.update_system_prompt(|prompt| drop(prompt.sections.insert("tone".into(), "Be kind.".into())));
    session.prompt("b").await.unwrap();
    let patch = fixture.model.request(1).into_iter().rfind(|message| message.role() == "system").unwrap();
    let Message::System(patch) = patch else { panic!() };
    assert_eq!(patch.sections.keys().collect::<Vec<_>>(), ["tone"], "only what changed is said");
    let after = current_system_message(&fixture.model.request(1)).unwrap();
    for (name, text) in &before.sections {
        let expected = if name == "tone" { "<tone>\nBe kind.\n</tone>" } else { text.as_deref().unwrap() };
        assert_eq!(after.sections[name].as_deref(), Some(expected), "{name}");
    }

    session.update_system_prompt(|prompt| drop(prompt.sections.shift_remove("team")));
    session.prompt("c").await.unwrap();
    let gone = current_system_message(&fixture.model.request(2)).unwrap();
    assert!(!gone.sections.contains_key("team"), "{gone:?}");
}

#[tokio::test]
async fn an_extension_patches_a_section_itself() {
    let fixture = Fixture::new(
        [FauxReply::text("ok")],
        named("tone", |pi: &mut ExtensionApi| {
            pi.on(event::ContextWithSystem, async |event, _ctx| {
                let head = current_system_message(&event.messages)?.section("tone", "Be brief.");
                let rest = event.messages.into_iter().filter(|message| !message.is_system());
                Some(std::iter::once(SessionMessage::from(head)).chain(rest).collect::<Vec<_>>())
            });
        }),
    )
    .await;
    fixture.session.prompt("hi").await.unwrap();
    let head = current_system_message(&fixture.model.request(0)).unwrap();
    assert_eq!(head.sections["tone"].as_deref(), Some("Be brief."));
    assert_eq!(fixture.failures(), Vec::<String>::new());
}

#[tokio::test]
async fn a_change_of_tools_is_said_once_and_holds_from_the_next_request_on() {
    let replies = [FauxReply::text("one"), FauxReply::text("two")];
    let fixture =
        Fixture::with(replies, |options| options.tool(tool("plan")).tool(tool("build")).tool(tool("deploy"))).await;
    fixture.session.set_active_tools(["plan".to_owned(), "build".to_owned()]);
    fixture.session.prompt("a").await.unwrap();
    fixture.session.set_active_tools(["build".to_owned(), "deploy".to_owned()]);
    fixture.session.prompt("b").await.unwrap();

    let names = |nth| current_tools(&fixture.model.request(nth)).into_iter().map(|tool| tool.name).collect::<Vec<_>>();
    assert_eq!(names(0), ["plan", "build"]);
    assert_eq!(names(1), ["build", "deploy"]);
    let changes: Vec<SystemMessage> = fixture
        .session
        .messages()
        .iter()
        .filter_map(|message| match message.as_llm() {
            Some(Message::System(system)) => Some((**system).clone()),
            _ => None,
        })
        .skip(1)
        .filter(|system| !system.tools_added.is_empty() || !system.tools_removed.is_empty())
        .collect();
    let [change] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!(change.tools_added.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["deploy"]);
    assert_eq!(change.tools_removed.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["plan"]);
}

#[tokio::test]
async fn a_request_without_its_head_is_reported_and_sent() {
    let fixture = Fixture::new(
        [FauxReply::text("ok")],
        named("headless", |pi: &mut ExtensionApi| {
            pi.on(event::ContextWithSystem, async |event, _ctx| {
                event.messages.into_iter().filter(|message| !message.is_system()).collect::<Vec<_>>()
            });
        }),
    )
    .await;
    fixture.session.prompt("hi").await.unwrap();
    assert_eq!(fixture.model.request(0).iter().map(said).collect::<Vec<_>>(), ["user: hi"]);
    let failures = fixture.failures();
    let [failure] = &failures[..] else { panic!("{failures:?}") };
    assert!(failure.starts_with("headless, context_with_system: "), "{failure}");
    assert!(failure.contains("system message"), "{failure}");
}

#[tokio::test]
async fn what_an_extension_says_reaches_the_model_and_its_details_do_not() {
    let fixture = Fixture::new(
        [FauxReply::text("I see.")],
        named("build-watch", |pi: &mut ExtensionApi| {
            pi.register_command(Command::new("report", async |text, ctx| {
                let message = CustomMessage {
                    custom_type: "build".into(),
                    content: text.into(),
                    display: Display::Hidden,
                    details: Some(json!({"log": "/var/secret.log"})),
                };
                ctx.send_message(message, MessageTiming::default()).await
            }));
        }),
    )
    .await;
    fixture.session.prompt("/report The build failed.").await.unwrap();
    assert_eq!(fixture.model.requests(), 0, "nothing is set off");
    fixture.session.prompt("Why?").await.unwrap();
    assert_eq!(fixture.model.said(0), ["user: The build failed.", "user: Why?"]);
    assert!(!format!("{:?}", fixture.model.request(0)).contains("secret"));
    let kept = fixture.entries().into_iter().find_map(|body| match body {
        EntryBody::CustomMessage(message) => Some(message),
        _ => None,
    });
    assert_eq!(kept.unwrap().details, Some(json!({"log": "/var/secret.log"})));
}

#[tokio::test]
async fn a_pruner_shortens_the_request_and_the_record_on_disk_keeps_everything() {
    let model = Scripted::new((0..4).map(|n| FauxReply::text(format!("answer {n}"))));
    let (options, folder) = options(&model);
    let file = folder.path().join("session.jsonl");
    let new = pi_coding_agent::session::NewSession { cwd: folder.path().to_owned(), ..Default::default() };
    let manager = SessionManager::create_at(&file, new, Default::default()).unwrap();
    let pruner = named("pruner", |pi: &mut ExtensionApi| {
        pi.on(event::Context, async |event, _ctx| {
            let oldest = event.messages.len().saturating_sub(3);
            event.messages.into_iter().skip(oldest).collect::<Vec<_>>()
        });
    });
    let session = create_agent_session(options.session_manager(manager).extension(pruner)).await.unwrap();
    for n in 0..4 {
        session.prompt(format!("question {n}")).await.unwrap();
    }
    assert_eq!(model.said(3), ["user: question 2", "assistant: answer 2", "user: question 3"]);
    let prompt = current_system_message(&model.request(3)).unwrap();
    assert!(prompt.sections.contains_key("rules"), "the prompt is not the pruner's to lose: {prompt:?}");
    session.dispose().await.unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    for n in 0..4 {
        assert!(text.contains(&format!("question {n}")) && text.contains(&format!("answer {n}")), "{n}");
    }
}

#[tokio::test]
async fn a_session_in_memory_with_an_inline_extension_runs_on_the_offline_model() {
    use pi_coding_agent::{guide::GuideModel, sdk::SessionOptions};
    let (_, folder) = options(&Scripted::new([]));
    std::fs::write(folder.path().join("README.md"), "# A small project\n\nIt greets people.\n").unwrap();
    let host = pi_coding_agent::host::Host {
        cwd: folder.path().to_owned(),
        home: None,
        agent_dir: folder.path().join("agent"),
        temp_dir: folder.path().to_owned(),
        variables: Default::default(),
    };
    let session = create_agent_session(
        SessionOptions::default()
            .host(host)
            .stream_fn(GuideModel::default())
            .stand_in_model(GuideModel::model())
            .session_manager(SessionManager::in_memory())
            .extension(named("audit", audit)),
    )
    .await
    .unwrap();
    let reply = session.prompt("Read README.md").await.unwrap();
    assert!(reply.into_text().unwrap().contains("greets people"));
    let entries = session.session_manager().branch_entries();
    assert!(entries.iter().any(|entry| entry.kind == EntryKind::Custom), "the guide's tools were audited");
    session.dispose().await.unwrap();
}

#[tokio::test]
async fn an_extension_adds_to_the_beginning_of_a_run() {
    let fixture = Fixture::new(
        [FauxReply::text("ok"), FauxReply::text("ok")],
        named("context", |pi: &mut ExtensionApi| {
            pi.on(event::BeforeAgentStart, async |event, _ctx| {
                let RunTrigger::User { prompt, .. } = event.trigger else { return Ok(Default::default()) };
                let mut answer = event::BeforeAgentStartOutcome::from(CustomMessage {
                    custom_type: "seen".into(),
                    content: format!("You asked {} letters.", prompt.len()).into(),
                    ..CustomMessage::default()
                });
                answer.system_prompt = (prompt == "abc").then(|| "Only this.".to_owned());
                Ok(answer)
            });
        }),
    )
    .await;
    fixture.session.prompt("abc").await.unwrap();
    fixture.session.prompt("abcd").await.unwrap();
    assert_eq!(fixture.model.said(0), ["user: abc", "user: You asked 3 letters."]);
    let prompt = |nth| pi_ai::transcript::current_system_prompt(&fixture.model.request(nth));
    assert_eq!(prompt(0), "Only this.");
    assert!(prompt(1).contains("<rules>"), "the override is for one run: {}", prompt(1));
    assert!(!fixture.session.system_prompt().contains("Only this."), "the record keeps its own prompt");
}

#[tokio::test]
async fn a_tool_of_an_extension_can_be_registered_at_any_time() {
    let replies = [
        FauxReply::tool_call("early", json!({})),
        FauxReply::text("one"),
        FauxReply::tool_call("late", json!({})),
        FauxReply::text("two"),
    ];
    let fixture = Fixture::new(
        replies,
        named("tools", |pi: &mut ExtensionApi| {
            pi.register_session_tool(SessionTool {
                snippet: Some("Does it early".into()),
                ..SessionTool::custom(tool("early"))
            });
            pi.on(event::AgentSettled, async |_event, ctx| {
                ctx.register(|pi| {
                    pi.register_tool(tool("late"));
                })
            });
        }),
    )
    .await;
    fixture.session.prompt("a").await.unwrap();
    assert!(fixture.session.system_prompt().contains("Does it early"));
    fixture.session.prompt("b").await.unwrap();
    assert_eq!(fixture.model.said(1).last().unwrap(), "toolResult: early done");
    assert_eq!(fixture.model.said(3).last().unwrap(), "toolResult: late done");
}
