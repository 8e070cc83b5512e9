//! What programs and sessions say to one another.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pi_agent_core::{AgentEvent, ToolOutput};
use pi_ai::{CancellationToken, faux::FauxReply};
use pi_coding_agent::{
    agent_session::{ListenerContext, SessionEvent},
    extensions::{ExtensionApi, ExtensionUi, Mode, RenderOptions, UiAnswer, UiQuestion, UiUpdate, event, named},
    messages::SessionMessage,
    resources::Theme,
    session::{CustomEntry, EntryBody, EntryId, EntryKind},
};
use serde_json::json;

use super::{Folder, Shared, deploys, result, until};
use crate::extensions::support::Fixture;

#[tokio::test]
async fn only_what_is_subscribed_is_sent_in_the_order_of_the_session() {
    let events =
        json!({"session_start": {}, "turn_start": {}, "tool_result": {}, "turn_end": {}, "session_shutdown": {}});
    let folder =
        Folder::new(json!({"events": events}), "event/turn_end) printf '%s\\n' \"$line\" > turn; reply \"$id\" '{}';;");
    let fixture = folder.session(deploys(1)).await;
    fixture.session.prompt("deploy it").await.unwrap();
    fixture.session.dispose().await.unwrap();
    let turn = ["event/turn_start", "event/tool_result", "event/turn_end", "event/turn_start", "event/turn_end"];
    let expected: Vec<_> = ["initialize", "event/session_start"].into_iter().chain(turn).collect();
    let methods = folder.methods();
    assert_eq!(methods[..expected.len()], expected, "{methods:?}");
    assert_eq!(methods[expected.len()..], ["event/session_shutdown", "shutdown", "closed"]);
    // The conversation is not copied with each turn.
    let told = folder.text("turn");
    assert!(told.contains("\"messageCount\":") && !told.contains("contextMessages"), "{told}");
}

#[tokio::test]
async fn nothing_is_started_before_something_of_it_is_used() {
    let folder = Folder::new(
        json!({
            "tools": {"look": {"description": "Looks.", "promptSnippet": "Looks closely"}},
            "commands": {"hello": {"description": "Greets", "completions": ["world", "pi"]}},
            "flags": {"plan": {}},
        }),
        r#"command/run) printf '%s\n' "$line" > command; reply "$id" null;;"#,
    );
    let fixture = folder.session([FauxReply::text("Hello.")]).await;
    fixture.session.prompt("hi").await.unwrap();
    assert!(fixture.session.known_tools().contains(&"look".to_owned()));
    assert!(fixture.session.system_prompt().contains("Looks closely"));
    let completions = fixture.session.extensions().completions("hello", "w");
    assert_eq!(completions.iter().map(|word| word.value.as_str()).collect::<Vec<_>>(), ["world"]);
    assert_eq!(folder.starts(), 0);
    fixture.session.prompt("/hello world 2").await.unwrap();
    assert!(folder.text("command").contains(r#""name":"hello","arguments":"world 2""#), "{}", folder.text("command"));
    assert_eq!(folder.starts(), 1);
    fixture.session.dispose().await.unwrap();
}

#[tokio::test]
async fn a_tool_shows_what_it_has_and_gives_its_result() {
    let folder = Folder::new(
        json!({"tools": {"count": {"description": "Counts.", "parameters": {
            "type": "object", "properties": {"to": {"type": "integer"}}, "required": ["to"]}}}}),
        r#"tool/execute) call=${line#*'"callId":"'}; call=${call%%'"'*}; printf '%s\n' "$line" > call
             tell tool/update "{\"callId\":\"$call\",\"content\":\"one\"}"
             tell tool/update "{\"callId\":\"nobody\",\"content\":\"lost\"}"
             tell tool/update "{\"callId\":\"$call\",\"content\":[{\"type\":\"text\",\"text\":\"two\"}]}"
             reply "$id" '{"content":"one two three","details":{"count":3}}';;"#,
    );
    let replies = [FauxReply::tool_call("count", json!({"to": 3})), FauxReply::text("Counted.")];
    let fixture = folder.session(replies).await;
    let shown: Shared<Vec<String>> = Arc::default();
    let heard = shown.clone();
    let listener = async move |event: SessionEvent, _: ListenerContext| {
        if let SessionEvent::Agent(AgentEvent::ToolExecutionUpdate { partial, .. }) = event {
            heard.lock().unwrap().push(text_of(&partial));
        }
    };
    fixture.session.subscribe(listener).detach();
    fixture.session.prompt("count").await.unwrap();
    assert_eq!(result(&fixture, 1), "toolResult: one two three");
    assert_eq!(*shown.lock().unwrap(), ["one", "two"]);
    assert!(folder.text("call").contains(r#""name":"count","arguments":{"to":3}"#), "{}", folder.text("call"));
    assert!(fixture.failures().is_empty(), "{:?}", fixture.failures());
}

fn text_of(output: &ToolOutput) -> String {
    output.content.iter().filter_map(|block| block.as_text()).collect()
}

#[tokio::test]
async fn an_abort_reaches_a_running_tool_which_may_still_say_how_far_it_came() {
    let folder = Folder::new(
        json!({"tools": {"wait": {"description": "Waits."}}}),
        r#"tool/execute) call=$id; touch running;;
           cancel) printf '%s\n' "$line" > cancelled; reply "$call" '{"content":"half of it"}';;"#,
    );
    let fixture = folder.session([FauxReply::tool_call("wait", json!({}))]).await;
    let run = fixture.session.prompt("wait");
    let running = async {
        until("the tool", || folder.file("running").exists()).await;
        fixture.session.abort();
    };
    let (_, ()) = tokio::join!(run, running);
    let messages = fixture.session.messages();
    let result = messages.iter().find_map(|message| message.as_tool_result()).unwrap();
    assert_eq!(result.content[0].as_text(), Some("half of it"));
    assert!(folder.text("cancelled").contains(r#""method":"cancel","params":{"id":"#), "{}", folder.text("cancelled"));
}

#[tokio::test]
async fn a_tool_that_fails_tells_the_model_whose_it_is() {
    let folder = Folder::new(
        json!({"tools": {"look": {"description": "Looks."}}}),
        r#"tool/execute) echo 'no eyes' >&2; exit 2;;"#,
    );
    let fixture = folder.session([FauxReply::tool_call("look", json!({})), FauxReply::text("Sorry.")]).await;
    fixture.session.prompt("look").await.unwrap();
    let result = result(&fixture, 1);
    assert!(result.contains("extension `helper`") && result.contains("exit code 2"), "{result}");
}

#[tokio::test]
async fn a_context_handler_prunes_by_operations_and_what_stays_is_the_same() {
    let folder = Folder::new(
        json!({"events": {"context": {}}}),
        r#"event/context) printf '%s\n' "$line" >> lists
             if [ -e prune ]; then reply "$id" '{"operations":[{"drop":{"from":0,"to":2}},{"insert":{"at":0,"messages":[{"role":"user","content":"(earlier words left out)","timestamp":1}]}}]}'
             else reply "$id" '{"operations":[]}'; fi;;"#,
    );
    let fixture = folder.session(["One.", "Two.", "Three."].map(FauxReply::text)).await;
    fixture.session.prompt("first").await.unwrap();
    fixture.session.prompt("second").await.unwrap();
    assert_eq!(fixture.model.said(1), ["user: first", "assistant: One.", "user: second"]);
    std::fs::write(folder.file("prune"), "").unwrap();
    fixture.session.prompt("third").await.unwrap();
    let said = fixture.model.said(2);
    assert_eq!(said, ["user: (earlier words left out)", "user: second", "assistant: Two.", "user: third"]);
    // The model gets the very messages of the session, and the record keeps all of them.
    let kept =
        fixture.model.request(2).into_iter().find(|message| super::super::support::said(message) == "user: second");
    let own = fixture.session.messages();
    let own = own
        .iter()
        .filter_map(SessionMessage::as_llm)
        .find(|own| Some(own.identity()) == kept.as_ref().map(|kept| kept.identity()));
    assert!(own.is_some(), "a message that stays is the same one");
    assert_eq!(fixture.session.messages().iter().filter(|message| !message.is_system()).count(), 6);
    // It is told which messages there are and how large, not what they say; they keep their keys.
    let lists = folder.text("lists");
    assert!(!lists.contains("first") && !lists.contains("One."), "{lists}");
    let second = lists.lines().nth(1).unwrap();
    assert!(second.contains(r#"{"index":0,"key":1,"role":"user","tokens":2,"#), "{second}");
    assert!(fixture.failures().is_empty(), "{:?}", fixture.failures());
}

#[tokio::test]
async fn an_unchanged_list_leaves_later_system_messages_where_they_are() {
    let folder = Folder::new(
        json!({"events": {"context": {}}}),
        r#"event/context) reply "$id" '{"operations":[{"keep":{"from":0,"to":3}}]}';;"#,
    );
    let fixture = folder.session(["One.", "Two."].map(FauxReply::text)).await;
    fixture.session.prompt("first").await.unwrap();
    fixture.session.register_tools([]);
    fixture.session.set_active_tools(Vec::new());
    fixture.session.prompt("second").await.unwrap();
    let roles: Vec<_> = fixture.model.request(1).iter().map(|message| message.role().to_owned()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "system", "user"], "the change of tools stays in its place");
}

#[tokio::test]
async fn a_context_handler_can_read_what_it_needs_and_may_ask_for_everything() {
    let folder = Folder::new(
        json!({"events": {"context": {}}}),
        r#"event/context) call=$id; list=${line#*'"list":'}; list=${list%%,*}
             ask r context/read "{\"list\":$list,\"from\":0,\"to\":1}";;
           answer) printf '%s\n' "$line" > read; reply "$call" '{}';;"#,
    );
    let fixture = folder.session([FauxReply::text("One.")]).await;
    fixture.session.prompt("a secret word").await.unwrap();
    assert!(folder.text("read").contains("a secret word"), "{}", folder.text("read"));

    let folder = Folder::new(
        json!({"events": {"context": {"messages": "whole"}}}),
        r#"event/context) printf '%s\n' "$line" > whole; reply "$id" '{}';;"#,
    );
    let fixture = folder.session([FauxReply::text("One.")]).await;
    fixture.session.prompt("a secret word").await.unwrap();
    assert!(folder.text("whole").contains("a secret word"), "{}", folder.text("whole"));
}

#[tokio::test]
async fn a_context_handler_that_answers_a_copy_or_nonsense_changes_nothing() {
    for answer in
        [r#"{"messages":[]}"#, r#"{"operations":[{"drop":{"from":0,"to":99}}]}"#, r#"{"operations":[{"shuffle":1}]}"#]
    {
        let folder =
            Folder::new(json!({"events": {"context": {}}}), &format!("event/context) reply \"$id\" '{answer}';;"));
        let fixture = folder.session([FauxReply::text("One.")]).await;
        fixture.session.prompt("first").await.unwrap();
        assert_eq!(fixture.model.said(0), ["user: first"]);
        let failures = fixture.failures();
        assert!(failures[0].starts_with("helper, context: "), "{failures:?}");
    }
}

#[tokio::test]
async fn a_program_keeps_state_says_things_and_reads_the_session() {
    let folder = Folder::new(
        json!({"commands": {"go": {}}}),
        r#"command/run) call=$id
             ask 1 session/append_entry '{"customType":"note","data":{"n":1}}'
             ask 2 session/send_message '{"customType":"hint","content":"be quick","display":true,"details":{"secret":1},"deliverAs":"nextTurn"}'
             ask 3 session/set_name '{"name":"a good name"}'
             ask 4 tools/list '{}'
             ask 5 exec '{"program":"echo","args":["out"]}'
             ask 6 session/state '{}'
             ask 7 session/entries '{}';;
           answer) printf '%s\n' "$line" >> answers
             case $(wc -l < answers) in *7) reply "$call" null;; esac;;"#,
    );
    let fixture = folder.session([FauxReply::text("Quickly.")]).await;
    fixture.session.prompt("/go").await.unwrap();
    let answers = folder.text("answers");
    for expected in [r#""stdout":"out\n""#, r#""active":["deploy"]"#, r#""idle":"#, r#""customType":"note""#] {
        assert!(answers.contains(expected), "{expected} is not in {answers}");
    }
    assert!(!answers.contains("\"error\""), "{answers}");
    let noted = fixture
        .entries()
        .into_iter()
        .any(|body| matches!(body, EntryBody::Custom(entry) if entry.custom_type == "note"));
    assert!(noted);
    assert_eq!(fixture.session.session_manager().name().as_deref(), Some("a good name"));
    fixture.session.prompt("go on").await.unwrap();
    assert_eq!(fixture.model.said(0), ["user: go on", "user: be quick"]);
    assert!(!format!("{:?}", fixture.model.request(0)).contains("secret"));
}

#[tokio::test]
async fn what_a_program_asked_for_before_it_ended_is_done() {
    let folder = Folder::new(
        json!({"events": {"session_shutdown": {}}}),
        r#"event/session_shutdown) tell session/append_entry '{"customType":"last words"}'; reply "$id" null;;"#,
    );
    let fixture = folder.session([]).await;
    let manager = fixture.session.session_manager().clone();
    fixture.session.dispose().await.unwrap();
    let entries = manager.branch_entries();
    assert!(entries.iter().any(|entry| entry.kind == EntryKind::Custom), "{entries:?}");
}

#[tokio::test]
async fn flags_of_the_command_line_are_told_at_the_start() {
    let folder = Folder::new(
        json!({"flags": {"plan": {}, "depth": {"type": "string", "default": "2"}, "other": {}}, "events": {"session_start": {}}}),
        "",
    );
    let flags = [("plan".to_owned(), None)].into_iter().collect();
    let fixture = Fixture::with([], |options| options.extension(folder.extension()).flag_values(flags)).await;
    let told = folder.text("initialize");
    assert!(told.contains(r#""flags":{"plan":true,"depth":"2"}"#), "{told}");
    assert!(told.contains(r#""hasUi":false"#) && told.contains(r#""protocol":1"#), "{told}");
    fixture.session.dispose().await.unwrap();
}

/// Answers yes, and keeps what is shown.
struct Yes(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl ExtensionUi for Yes {
    async fn ask(&self, question: UiQuestion, _signal: CancellationToken) -> Option<UiAnswer> {
        self.0.lock().unwrap().push(format!("{question:?}"));
        Some(match question {
            UiQuestion::Confirm { .. } => UiAnswer::Confirmed(true),
            _ => UiAnswer::Value("chosen".to_owned()),
        })
    }

    fn show(&self, update: UiUpdate) {
        self.0.lock().unwrap().push(format!("{update:?}"));
    }

    fn mode(&self) -> Mode {
        Mode::Tui
    }
}

#[tokio::test]
async fn a_program_asks_the_user_and_shows_things() {
    let folder = Folder::new(
        json!({"events": {"tool_call": {}}, "shortcuts": {"ctrl+K": {}}}),
        r#"event/tool_call) call=$id; tell ui/notify '{"message":"asking","level":"warning"}'
             tell ui/show '{"method":"setStatus","key":"k","text":"busy"}'
             ask 1 ui/confirm '{"title":"Deploy?","message":"really"}';;
           shortcut/press) tell ui/notify '{"message":"pressed"}'; reply "$id" null;;
           answer) case "$line" in *'"confirmed":true'*) reply "$call" '{}';; *) reply "$call" '{"block":true}';; esac;;"#,
    );
    let fixture = folder.session(deploys(2)).await;
    fixture.session.prompt("deploy it").await.unwrap();
    assert!(!result(&fixture, 1).contains("deploy done"), "nobody is there to say yes");
    let shown: Arc<Mutex<Vec<String>>> = Arc::default();
    fixture.session.extensions().set_ui(Yes(shown.clone()));
    fixture.session.prompt("deploy it").await.unwrap();
    assert_eq!(result(&fixture, 3), "toolResult: deploy done");
    assert!(fixture.session.extensions().run_shortcut("ctrl+k").await);
    until("the notices", || shown.lock().unwrap().len() == 4).await;
    let shown = shown.lock().unwrap().join("\n");
    for expected in ["asking", "SetStatus", "Deploy?", "pressed"] {
        assert!(shown.contains(expected), "{expected} is not in {shown}");
    }
}

#[tokio::test]
async fn extensions_of_both_kinds_talk_over_the_bus() {
    let folder = Folder::new(
        json!({"bus": ["build"]}),
        r#"bus/message) case "$line" in *'"value":{"ok":true}'*) tell bus/emit '{"channel":"answer","value":"good"}';; esac; reply "$id" null;;"#,
    );
    let heard: Shared<Vec<String>> = Arc::default();
    let hearing = heard.clone();
    let inline = named("inline", move |pi: &mut ExtensionApi| {
        pi.on(event::SessionInfoChanged, async |_event, ctx| {
            ctx.emit("build", json!({"ok": true})).await?;
            Ok(())
        });
        let hearing = hearing.clone();
        pi.on_bus("answer", async move |value, _ctx| hearing.lock().unwrap().push(value.to_string()));
    });
    let fixture = Fixture::with([], |options| options.extension(inline).extension(folder.extension())).await;
    fixture.session.set_name("x").await.unwrap();
    until("the answer", || !heard.lock().unwrap().is_empty()).await;
    assert_eq!(*heard.lock().unwrap(), ["\"good\""]);
}

#[tokio::test]
async fn a_program_draws_its_entries() {
    let folder = Folder::new(
        json!({"entryRenderers": ["note", "plain", "broken"]}),
        r#"render/entry) case "$line" in
             *'"customType":"plain"'*) reply "$id" '"two\nlines"';;
             *'"customType":"broken"'*) reply "$id" '7';;
             *'"expanded":true'*) reply "$id" '[[{"text":"[note] ","token":"accent"},{"text":"all"}],[{"text":"more"}]]';;
             *) reply "$id" '[[{"text":"[note] ","token":"accent"}]]';; esac;;"#,
    );
    let fixture = folder.session([]).await;
    let extensions = fixture.session.extensions();
    let id = EntryId::from("e1");
    let entry = |custom_type: &str| CustomEntry { custom_type: custom_type.to_owned(), data: Some(json!({"n": 1})) };
    // Without waiting there is the data, and then the drawing.
    let at_once = extensions.render_entry(&id, &entry("note"), RenderOptions::COLLAPSED, &Theme::dark()).unwrap();
    assert_eq!(at_once.to_string(), "[note] {\"n\":1}");
    let theme = Theme::dark();
    let drawn = async |custom_type: &str, options| {
        extensions.draw_entry(&id, &entry(custom_type), options, &theme).await.unwrap().to_string()
    };
    assert_eq!(drawn("note", RenderOptions::EXPANDED).await, "[note] all\nmore");
    assert_eq!(drawn("note", RenderOptions::COLLAPSED).await, "[note] ");
    assert_eq!(drawn("plain", RenderOptions::COLLAPSED).await, "two\nlines");
    assert!(drawn("broken", RenderOptions::COLLAPSED).await.contains("helper"));
    let again = extensions.render_entry(&id, &entry("note"), RenderOptions::EXPANDED, &theme).unwrap();
    assert_eq!(again.to_string(), "[note] all\nmore");
}
