//! The replay of system messages: the vectors of the area `transcript`, and the laws behind them.

use std::path::Path;

use pi_ai::testing::{conformance::transcript::run, vectors};
use pi_ai::tool::{ToolDeclaration, ToolReference};
use pi_ai::transcript::{
    ToolChangeSupport, TranscriptItem, TranscriptState, collapse, current_system_message, current_system_prompt,
    current_tools, resolve_tools,
};
use pi_ai::{Content, InputBlock, Message, SystemMessage, Timestamp};
use proptest::prelude::*;
use serde_json::json;

#[track_caller]
fn check(file_stem: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/vectors/transcript/{file_stem}.json"));
    let failures = vectors::failures(&path, "transcript", |input| run(file_stem, input)).unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn system_messages_are_replayed() {
    check("replay");
}

#[test]
fn system_messages_collapse_into_one() {
    check("collapse");
}

#[test]
fn differences_between_tool_sets_are_told() {
    check("tool_state_changes");
}

#[test]
fn prompt_and_tools_make_a_leading_message() {
    check("create_initial");
    check("normalize_context");
}

#[test]
fn system_messages_are_rendered_as_text() {
    check("render");
}

#[test]
fn additions_after_a_removal_are_said_in_place() {
    let tool = |name: &str| ToolDeclaration::new(name, "", json!({}));
    let without = |name: &str| SystemMessage {
        tools_removed: vec![ToolReference { name: name.into() }],
        ..SystemMessage::default()
    };
    let messages: [Message; 5] = [
        SystemMessage::new("p").with_tools([tool("a"), tool("b")]).into(),
        SystemMessage::default().with_tools([tool("c")]).into(),
        without("a").into(),
        Message::user("go on"),
        SystemMessage::default().with_tools([tool("d")]).into(),
    ];
    let resolved = resolve_tools(&messages, ToolChangeSupport::Additions);
    let names: Vec<_> = resolved.request_tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!((names, resolved.folded_system_messages), (vec!["b", "c"], 3));
}

/// A message of a transcript in which prompts, sections and tools come and go.
fn message() -> impl Strategy<Value = Message> {
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    let section = (name(), prop::option::of("[xy]{0,2}"));
    let tool = (name(), "[xy]{0,1}").prop_map(|(name, text)| ToolDeclaration::new(name, text, json!({})));
    let removed = name().prop_map(|name| ToolReference { name: name.into() });
    let content = prop_oneof![
        "[xy]{0,2}".prop_map(Content::from),
        prop::collection::vec("[xy]{0,2}".prop_map(InputBlock::text), 0..3).prop_map(Content::from),
    ];
    let system = (
        content,
        prop::collection::vec(section, 0..3),
        prop::collection::vec(tool, 0..3),
        prop::collection::vec(removed, 0..2),
        0..9u64,
    )
        .prop_map(|(content, sections, tools_added, tools_removed, time)| {
            let sections = sections.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
            let timestamp = Timestamp::from_millis(time);
            SystemMessage { content, sections, tools_added, tools_removed, timestamp }.into()
        });
    prop_oneof![3 => system, 1 => Just(Message::user("hi"))]
}

/// The replay by its definition: what each name was last said to be, in the order of when it last came to be.
fn by_definition(messages: &[Message]) -> Option<SystemMessage> {
    let systems: Vec<&SystemMessage> = messages.iter().filter_map(TranscriptItem::as_system).collect();
    let mut sections: Vec<(String, Option<String>)> = Vec::new();
    let mut tools: Vec<ToolDeclaration> = Vec::new();
    for system in &systems {
        for (name, text) in &system.sections {
            match sections.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) if text.is_some() => known.clone_from(text),
                Some(_) => sections.retain(|(known, _)| known != name),
                None if text.is_some() => sections.push((name.clone(), text.clone())),
                None => {}
            }
        }
        tools.retain(|tool| !system.tools_removed.iter().any(|removed| removed.name == tool.name));
        for added in &system.tools_added {
            match tools.iter_mut().find(|tool| tool.name == added.name) {
                Some(known) => known.clone_from(added),
                None => tools.push(added.clone()),
            }
        }
    }
    let texts: Vec<String> = systems.iter().map(|system| system.content.text().into_owned()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    Some(SystemMessage {
        content: texts.join("\n\n").into(),
        sections: sections.into_iter().collect(),
        tools_added: tools,
        timestamp: systems.first()?.timestamp,
        ..SystemMessage::default()
    })
}

proptest! {
    #[test]
    fn the_incremental_fold_is_the_replay(messages in prop::collection::vec(message(), 0..12)) {
        let mut state = TranscriptState::default();
        for end in 0..=messages.len() {
            let so_far = &messages[..end];
            let expected = by_definition(so_far);
            prop_assert_eq!(&state.system_message(), &expected);
            prop_assert_eq!(&current_system_message(so_far), &expected);
            prop_assert_eq!(state.prompt(), current_system_prompt(so_far));
            prop_assert_eq!(current_tools(so_far), expected.map(|head| head.tools_added).unwrap_or_default());
            prop_assert_eq!(state.has_system_message(), so_far.iter().any(|message| message.as_system().is_some()));
            if let Some(message) = messages.get(end) {
                state.push(message);
            }
        }
    }

    #[test]
    fn a_collapsed_transcript_says_the_same(messages in prop::collection::vec(message(), 0..12)) {
        let collapsed = collapse(&messages);
        prop_assert_eq!(current_system_message(&collapsed), current_system_message(&messages));
        let systems = collapsed.iter().filter(|message| message.as_system().is_some()).count();
        prop_assert!(systems <= 1);
        prop_assert_eq!(collapse(&collapsed), collapsed);
    }
}
