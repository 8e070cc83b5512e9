//! Sessions as pages.

use base64::Engine as _;
use pi_ai::{
    AssistantMessage, ImageContent, InputBlock, ToolResultMessage,
    faux::{FauxProvider, FauxReply},
};
use pi_coding_agent::{
    agent_session::{AgentSession, CustomMessage, Display, ForModel, MessageTiming},
    extensions::{ExtensionApi, event, named},
    resources::{SettingsManager, ThemeToken},
    sdk::{SessionOptions, create_agent_session},
    session::{ExportFormat, SessionError, SessionManager},
    styled_text::{Span, StyledText},
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::Place;

const HOSTILE: &str = "</pre></article><script>alert('x')</script><img src=https://x.example/y onerror=z> \"&amp; \u{1b}]0;t\u{7}\u{202e}";

fn notes(pi: &mut ExtensionApi) {
    pi.on(event::AgentStart, async |_event, ctx| {
        ctx.append_entry("note", json!({"tool": HOSTILE, "secret": "only in the data"})).await?;
        Ok(())
    });
    pi.register_entry_renderer::<Value>("note", |entry, options, _theme| {
        let tool = entry.data["tool"].as_str().unwrap_or_default();
        let mut text = StyledText::line([Span::token("[note] ", ThemeToken::Accent), Span::plain(tool)]);
        if options.is_expanded() {
            text.push_line([Span::token("drawn in full", ThemeToken::Dim)]);
        }
        text
    });
    pi.register_message_renderer("drawn", |message, _options, _theme| {
        StyledText::from(format!("drawn: {}", message.content.text()))
    });
}

fn said(custom_type: &str, display: Display) -> CustomMessage {
    CustomMessage {
        custom_type: custom_type.into(),
        content: format!("{custom_type} says <hello>").into(),
        display,
        details: Some(json!("never shown")),
    }
}

async fn page(session: &AgentSession, place: &Place, name: &str) -> String {
    let file = place.cwd().join(name);
    session.export_to(&file, ExportFormat::of_name(&file)).await.unwrap();
    std::fs::read_to_string(file).unwrap()
}

/// The data that a page carries.
fn data(page: &str) -> Value {
    let begin = page.find("id=\"session-data\">").unwrap() + "id=\"session-data\">".len();
    let end = page[begin..].find('<').unwrap() + begin;
    let json = base64::engine::general_purpose::STANDARD.decode(&page[begin..end]).unwrap();
    serde_json::from_slice(&json).unwrap()
}

#[tokio::test]
async fn a_page_shows_everything_that_people_see_and_nothing_of_it_is_taken_for_markup() {
    let place = Place::new();
    let provider =
        FauxProvider::new([FauxReply::tool_call(HOSTILE, json!({"path": HOSTILE})), FauxReply::text(HOSTILE)]);
    let options = place.options(&provider).extension(named("notes", notes));
    let session = create_agent_session(options).await.unwrap();
    session.set_name(HOSTILE).await.unwrap();
    session.prompt(HOSTILE).await.unwrap();
    for message in [said("drawn", Display::Shown), said("plain", Display::Shown), said("hidden", Display::Hidden)] {
        session.send_message(message, MessageTiming::Noted).await.unwrap();
    }
    session.execute_bash("echo '<i>'; exit 3", ForModel::Hidden, Default::default()).await.unwrap();
    let leaf = session.session_manager().leaf_id().unwrap();
    session.set_label(&leaf, Some("<here>")).await.unwrap();

    let page = page(&session, &place, "page.html").await;
    let (shown, _data) = page.split_once("<script type=\"application/json;base64\"").unwrap();
    for markup in ["<script", "<img", "\u{1b}", "\u{202e}", "onerror=z>", "<i>", "<here>", "<hello>"] {
        assert!(!shown.contains(markup), "{markup} in {shown}");
    }
    assert!(shown.contains("default-src 'none'"), "{shown}");
    assert!(shown.matches("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;").count() >= 5, "{shown}");
    // What extensions draw, say, hide and keep.
    assert!(shown.contains("<span class=\"t-accent\">[note] </span>") && shown.contains("drawn in full"), "{shown}");
    assert!(shown.contains("drawn: drawn says &lt;hello&gt;") && shown.contains("plain says &lt;hello&gt;"), "{shown}");
    assert!(!shown.contains("hidden says") && !shown.contains("never shown"), "{shown}");
    assert!(!shown.contains("only in the data"), "{shown}");
    // The rest.
    assert!(shown.contains("System prompt</summary>") && shown.contains("<code>read</code>"), "{shown}");
    assert!(shown.contains("Exit code 3.") && shown.contains("Shell, not for the model"), "{shown}");
    assert!(shown.contains("<span class=\"label\">&lt;here&gt;</span>"), "{shown}");
    let data = data(&page);
    assert_eq!(data["header"]["id"], session.session_manager().id().as_str());
    assert_eq!(data["leafId"], session.session_manager().leaf_id().unwrap().as_str());
    assert_eq!(data["entries"].as_array().unwrap().len(), session.session_manager().with(|session| session.len()));
    assert_eq!(data["systemPrompt"], session.system_prompt());
    assert_eq!(data["tools"].as_array().unwrap().len(), session.active_tools().len());
    session.dispose().await.unwrap();
}

#[tokio::test]
async fn a_page_has_pictures_changes_calls_within_calls_and_the_branches_that_were_left() {
    let place = Place::new();
    let manager = SessionManager::in_memory();
    let image = |mime_type: &str, data: &str| {
        InputBlock::Image(ImageContent { mime_type: mime_type.into(), data: data.into() })
    };
    let first = manager.append_message(pi_ai::Message::user("first way")).await.unwrap();
    let answer =
        |text: &str| AssistantMessage { content: vec![pi_ai::AssistantBlock::text(text)], ..Default::default() };
    manager.append_message(answer("a dead end")).await.unwrap();
    manager.branch(&first.id).await.unwrap();
    manager.append_message(answer("the way that was taken")).await.unwrap();
    let result = ToolResultMessage {
        tool_name: "edit".into(),
        content: vec![image("image/png", "aGk="), image("image/svg+xml", "aGk="), image("image/png", "\"><b>")],
        details: Some(json!({"diff": "-1 old\n+1 <new>\n 2 same"})),
        nested_calls: Some(json!([{"name": "read"}])),
        ..Default::default()
    };
    manager.append_message(result).await.unwrap();
    let settings = SettingsManager::in_memory(json!({"theme": "light"}));
    let options = place.options(&FauxProvider::new([])).session_manager(manager).settings(settings);
    let session = create_agent_session(options).await.unwrap();

    let page = page(&session, &place, "page.htm").await;
    assert_eq!(page.matches("<img ").count(), 1);
    assert!(page.contains("src=\"data:image/png;base64,aGk=\""), "{page}");
    assert!(page.contains("A picture (image/svg+xml) that is not shown."), "{page}");
    assert!(page.contains("<span class=\"t-toolDiffAdded\">+1 &lt;new&gt;</span>"), "{page}");
    assert!(page.contains("Calls that it made itself"), "{page}");
    let taken = page.find("the way that was taken").unwrap();
    let side = page.find("<details class=\"branch\"").unwrap();
    assert!(taken < side && side < page.find("a dead end").unwrap(), "{page}");
    session.dispose().await.unwrap();
}

#[tokio::test]
async fn a_page_of_nothing_and_one_over_another_file_are_refused() {
    let place = Place::new();
    let options: SessionOptions = place.options(&FauxProvider::new([])).session_manager(SessionManager::in_memory());
    let session = create_agent_session(options).await.unwrap();
    let file = place.cwd().join("page.html");
    std::fs::write(&file, "mine").unwrap();
    let error = session.export_to(&file, ExportFormat::Html).await.unwrap_err();
    assert!(error.to_string().contains("exists already"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    let empty = SessionManager::in_memory();
    let (page, environment) = (place.cwd().join("empty.html"), empty.environment().clone());
    let refused = empty.with(|session| session.export_to(&page, ExportFormat::Html, &place.cwd(), &environment));
    assert!(matches!(refused, Err(SessionError::NothingToExport)), "{refused:?}");
    assert!(!page.exists());
    session.dispose().await.unwrap();
}
