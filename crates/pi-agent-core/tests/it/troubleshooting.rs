//! The rows of the table in `docs/message-pipeline.md`: each symptom with its cause, and the remedy.

use std::{collections::HashSet, path::Path, sync::Arc};

use pi_agent_core::{Agent, AgentEvent, AgentMessage, AgentTool, CustomMessage, KeepRecent};
use pi_ai::{
    Message, SystemMessage,
    faux::{FauxProvider, FauxReply},
    transcript::{current_system_message, current_system_prompt, current_tools},
};
use serde::{Deserialize, Serialize};

use crate::{
    log::Log,
    support::{calls, says_its_name, soon, told},
};

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
enum Role {
    Notification { text: String },
    AuditNote { text: String },
}
impl CustomMessage for Role {}

fn notification() -> Role {
    Role::Notification { text: "mail".into() }
}

fn audit() -> Role {
    Role::AuditNote { text: "at 10:42".into() }
}

fn ok(times: usize) -> FauxProvider {
    FauxProvider::new((0..times).map(|_| FauxReply::text("ok")))
}

/// What the model was sent in its last request.
fn last_request(model: &FauxProvider) -> Vec<Message> {
    model.requests().last().unwrap().context.messages().to_vec()
}

fn texts(model: &FauxProvider) -> Vec<String> {
    told(&last_request(model).into_iter().map(AgentMessage::from).collect::<Vec<AgentMessage>>())
}

#[tokio::test]
async fn a_custom_message_that_the_model_does_not_see() {
    let log = Log::watch();
    let model = ok(2);
    let agent = Agent::with_roles::<Role>(model.clone()).build();
    soon(agent.prompt([notification().into(), AgentMessage::user("go")])).await.unwrap();
    assert_eq!(texts(&model), ["user: go"]);
    assert!(log.lines_with("convert_to_llm")[0].contains("notification"));
    // The remedy counts for messages that are in the transcript already.
    agent.set_convert_to_llm(|role| match role {
        Role::Notification { text } => Some(Message::user(text.as_str())),
        Role::AuditNote { .. } => None,
    });
    soon(agent.prompt("go on")).await.unwrap();
    assert_eq!(texts(&model), ["user: mail", "user: go", "assistant: ok", "user: go on"]);
}

#[tokio::test]
async fn an_audit_record_that_reached_the_model() {
    let model = ok(2);
    let translates_everything = |role: &Role| match role {
        Role::Notification { text } | Role::AuditNote { text } => Some(Message::user(text.as_str())),
    };
    let agent = Agent::with_roles::<Role>(model.clone()).convert_to_llm(translates_everything).build();
    soon(agent.prompt([audit().into(), AgentMessage::user("go")])).await.unwrap();
    assert_eq!(texts(&model), ["user: at 10:42", "user: go"]);
    agent.set_convert_to_llm(|role| match role {
        Role::Notification { text } => Some(Message::user(text.as_str())),
        Role::AuditNote { .. } => None,
    });
    soon(agent.prompt("go on")).await.unwrap();
    assert_eq!(texts(&model), ["user: go", "assistant: ok", "user: go on"]);
}

/// A provider that refuses a result without a call, as most do.
fn is_refused(messages: &[Message]) -> bool {
    let mut called = HashSet::new();
    messages.iter().any(|message| match message {
        Message::Assistant(answer) => {
            called.extend(answer.tool_calls().map(|call| call.id.clone()));
            false
        }
        Message::ToolResult(result) => !called.contains(&result.tool_call_id),
        _ => false,
    })
}

#[tokio::test]
async fn a_provider_that_refuses_a_format() {
    let talk = async |keep_together: bool| {
        let model = FauxProvider::new([calls(&["echo"]), FauxReply::text("ok")]);
        let mut agent = Agent::builder(model.clone()).tool(says_its_name("echo"));
        agent = match keep_together {
            false => agent.transform_context(async |messages: Vec<AgentMessage>, _| {
                let oldest = messages.len().saturating_sub(1);
                messages.into_iter().skip(oldest).collect()
            }),
            true => agent.transform_context_with(KeepRecent::at_most(3)),
        };
        soon(agent.build().prompt("go")).await.unwrap();
        model.requests().iter().any(|request| is_refused(request.context.messages()))
    };
    assert!(talk(false).await);
    assert!(!talk(true).await);
}

#[tokio::test]
async fn pruning_that_had_no_effect() {
    let model = ok(3);
    let agent = Agent::builder(model.clone())
        .transform_context(async |messages: Vec<AgentMessage>, _| {
            // Made, and thrown away.
            let _pruned: Vec<_> = messages.iter().skip(1).cloned().collect();
            messages
        })
        .build();
    soon(agent.prompt("one")).await.unwrap();
    soon(agent.prompt("two")).await.unwrap();
    assert_eq!(last_request(&model).len(), 3);
    agent.set_transform_context(async |messages, _| messages.into_iter().skip(1).collect());
    soon(agent.prompt("three")).await.unwrap();
    assert_eq!(last_request(&model).len(), 4);
    assert_eq!(agent.state().messages.len(), 6);
}

#[tokio::test]
async fn an_injected_message_that_got_lost() {
    let model = ok(2);
    let agent = Agent::with_roles::<Role>(model.clone())
        .transform_context(async |mut messages: Vec<AgentMessage<Role>>, _| {
            messages.push(audit().into());
            messages
        })
        .convert_to_llm(|role| match role {
            Role::Notification { text } => Some(Message::user(text.as_str())),
            Role::AuditNote { .. } => None,
        })
        .build();
    soon(agent.prompt("go")).await.unwrap();
    assert_eq!(texts(&model), ["user: go"]);
    agent.set_transform_context(async |mut messages, _| {
        messages.push(notification().into());
        messages
    });
    soon(agent.prompt("go on")).await.unwrap();
    assert_eq!(texts(&model).last().unwrap(), "user: mail");
}

#[tokio::test]
async fn a_changed_prompt_without_effect() {
    let model = ok(2);
    let agent = Agent::builder(model.clone()).system_prompt("You help.").build();
    // A copy of the head, changed: the agent does not know of it.
    let mut copy = agent.state().system_message().unwrap();
    copy.content = "You refuse.".into();
    soon(agent.prompt("go")).await.unwrap();
    assert_eq!(current_system_prompt(&last_request(&model)), "You help.");
    let change = SystemMessage::new("Be brief.");
    soon(agent.prompt([change.into(), Message::user("go on")])).await.unwrap();
    assert_eq!(current_system_prompt(&last_request(&model)), "You help.\n\nBe brief.");
}

#[tokio::test]
async fn a_prompt_that_was_overwritten_as_a_whole() {
    let head = || SystemMessage::new("You help.").section("skills", "You can juggle.").section("tone", "formal");
    let model = ok(2);
    let agent = Agent::builder(model.clone()).messages([head()]).build();
    // The head is replaced to change the tone; the skills are gone.
    let replaced = SystemMessage::new("You help.").section("tone", "relaxed");
    agent.set_messages([replaced.into()]);
    soon(agent.prompt("go")).await.unwrap();
    assert!(!current_system_message(&last_request(&model)).unwrap().sections.contains_key("skills"));

    agent.set_messages([head().into()]);
    let patch = SystemMessage::default().section("tone", "relaxed");
    soon(agent.prompt([patch.into(), Message::user("go")])).await.unwrap();
    let sections = current_system_message(&last_request(&model)).unwrap().sections;
    assert_eq!(sections["skills"].as_deref(), Some("You can juggle."));
    assert_eq!(sections["tone"].as_deref(), Some("relaxed"));
}

#[tokio::test]
async fn a_tool_change_that_the_model_was_not_told_of() {
    let model = ok(2);
    let agent = Agent::builder(model.clone()).tool(says_its_name("read")).build();
    // Declaring a tool in the transcript does not make it one that can be run: the loop takes it back.
    let write = says_its_name("write");
    let declared = SystemMessage::default().with_tools([write.declaration().clone()]);
    soon(agent.prompt([declared.into(), Message::user("go")])).await.unwrap();
    let names = |model: &FauxProvider| {
        current_tools(&last_request(model)).into_iter().map(|tool| tool.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&model), ["read"]);

    let mut announced = 0;
    let (log, count) = tokio::sync::mpsc::unbounded_channel();
    agent
        .subscribe(async move |event: AgentEvent, _| {
            if let AgentEvent::MessageEnd { message } = event
                && message.is_system()
            {
                let _ = log.send(());
            }
        })
        .detach();
    agent.set_tools([Arc::new(says_its_name("read")) as Arc<dyn AgentTool>, Arc::new(write)]);
    soon(agent.prompt("go on")).await.unwrap();
    assert_eq!(names(&model), ["read", "write"]);
    let mut count = count;
    while count.try_recv().is_ok() {
        announced += 1;
    }
    assert_eq!(announced, 1);
}

/// What the coding agent does around the handlers of its `context` event, in small: the head is taken out before and
/// put back afterwards. A handler that replaces the whole list cannot lose the prompt, and cannot change it either.
#[tokio::test]
async fn system_messages_that_a_handler_does_not_get() {
    fn handler(messages: Vec<AgentMessage>) -> Vec<AgentMessage> {
        assert!(!messages.iter().any(AgentMessage::is_system));
        messages.into_iter().rev().take(1).collect()
    }
    let model = ok(2);
    let agent = Agent::builder(model.clone())
        .system_prompt("You help.")
        .transform_context(async |messages: Vec<AgentMessage>, _| {
            let head = current_system_message(&messages).map(AgentMessage::from);
            let rest = messages.into_iter().filter(|message| !message.is_system()).collect();
            head.into_iter().chain(handler(rest)).collect()
        })
        .build();
    soon(agent.prompt("one")).await.unwrap();
    soon(agent.prompt("two")).await.unwrap();
    assert_eq!(texts(&model), ["system: You help.", "user: two"]);
}

/// The page and the tests stay together.
#[test]
fn every_row_of_the_page_has_its_test_and_every_link_a_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/message-pipeline.md")).unwrap();
    let tests = include_str!("troubleshooting.rs");
    let rows: Vec<&str> = page
        .lines()
        .skip_while(|line| !line.starts_with("| Symptom |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert_eq!(rows.len(), 9);
    for row in rows {
        let name = row.trim_end_matches([' ', '|']).rsplit('`').nth(1).unwrap();
        assert!(tests.contains(&format!("async fn {name}()")), "no test named {name}");
    }
    let links = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    for link in links.filter(|link| link.starts_with("..")) {
        assert!(root.join("docs").join(link).exists(), "{link} leads nowhere");
    }
}
