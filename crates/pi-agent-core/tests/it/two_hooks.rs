//! The two hooks: their order, their forms, and what an empty answer of each means.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use futures::future::BoxFuture;
use pi_agent_core::{
    Agent, AgentError, AgentEvent, AgentMessage, ConvertToLlm, Converter, CustomMessage, RequestId, RequestObserver,
    Stage, TransformContext, UnknownMessage,
    observe::{Fate, provenance},
};
use pi_ai::{
    CancellationToken, ErrorKind, Message,
    faux::{FauxProvider, FauxReply},
};
use serde::{Deserialize, Serialize};

use crate::{
    log::Log,
    support::{calls, says_its_name, soon, told},
};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
enum Role {
    Notification { text: String },
    AuditNote { text: String },
}
impl CustomMessage for Role {}

fn note(text: &str) -> AgentMessage<Role> {
    Role::AuditNote { text: text.into() }.into()
}

fn notification(text: &str) -> AgentMessage<Role> {
    Role::Notification { text: text.into() }.into()
}

fn convert(message: &Role) -> Option<Message> {
    match message {
        Role::Notification { text } => Some(Message::user(format!("[notification] {text}"))),
        Role::AuditNote { .. } => None,
    }
}

/// What the model was sent, per request.
fn sent(model: &FauxProvider) -> Vec<Vec<String>> {
    let texts = |messages: &[Message]| {
        let messages: Vec<AgentMessage> = messages.iter().cloned().map(AgentMessage::from).collect();
        told(&messages)
    };
    model.requests().iter().map(|request| texts(request.context.messages())).collect()
}

#[tokio::test]
async fn what_the_first_hook_injects_is_converted_or_filtered_by_the_second() {
    let model = FauxProvider::new([FauxReply::text("ok")]);
    let agent = Agent::with_roles::<Role>(model.clone())
        .transform_context(async |mut messages: Vec<AgentMessage<Role>>, _| {
            messages.push(notification("mail"));
            messages.push(note("not for the model"));
            messages
        })
        .convert_to_llm(convert)
        .build();
    soon(agent.prompt("go")).await.unwrap();
    assert_eq!(sent(&model), [["user: go", "user: [notification] mail"]]);
    // The transcript has none of it.
    assert_eq!(told(&agent.state().messages), ["user: go", "assistant: ok"]);
}

#[tokio::test]
async fn an_empty_list_clears_the_context_and_nothing_is_sent() {
    let model = FauxProvider::new([FauxReply::text("never")]);
    let agent = Agent::builder(model.clone())
        .system_prompt("You help.")
        .transform_context(async |_messages, _| Vec::new())
        .build();
    let reply = soon(agent.prompt("go")).await.unwrap();
    assert!(model.requests().is_empty());
    assert_eq!(reply.error().unwrap().kind(), ErrorKind::InvalidRequest);
    assert!(matches!(reply.check(), Err(AgentError::Failed { message, .. }) if message.contains("nothing to send")));
}

#[tokio::test]
async fn roles_without_a_converter_are_dropped_and_said_so_once_each() {
    let log = Log::watch();
    let model = FauxProvider::new([FauxReply::text("one"), FauxReply::text("two")]);
    let agent = Agent::with_roles::<Role>(model.clone()).build();
    let unknown = UnknownMessage { role: "hologram".into(), fields: Default::default() };
    let prompt = [
        notification("a"),
        note("b"),
        notification("c"),
        AgentMessage::Unknown(unknown.into()),
        AgentMessage::user("go"),
    ];
    soon(agent.prompt(prompt)).await.unwrap();
    soon(agent.prompt("again")).await.unwrap();
    assert_eq!(sent(&model)[1], ["user: go", "assistant: one", "user: again"]);
    for role in ["notification", "auditNote", "hologram"] {
        assert_eq!(log.lines_with(role).len(), 1, "{role}");
    }
}

#[tokio::test]
async fn both_hooks_can_be_replaced_while_the_agent_runs() {
    let model = FauxProvider::new([calls(&["echo"]), FauxReply::text("ok")]);
    let agent = Agent::with_roles::<Role>(model.clone()).tool(says_its_name("echo")).build();
    let handle = agent.downgrade();
    agent
        .subscribe(async move |event: AgentEvent<Role>, _| {
            if let (AgentEvent::ToolExecutionEnd { .. }, Some(agent)) = (&event, handle.upgrade()) {
                agent.set_convert_to_llm(convert);
                agent.set_transform_context(async |mut messages, _| {
                    messages.push(AgentMessage::user("injected"));
                    messages
                });
            }
        })
        .detach();
    soon(agent.prompt([notification("mail"), AgentMessage::user("go")])).await.unwrap();
    let sent = sent(&model);
    assert_eq!(sent[0].iter().filter(|line| line.contains("mail") || line.contains("injected")).count(), 0);
    assert_eq!(sent[1].iter().filter(|line| line.contains("mail") || line.contains("injected")).count(), 2);
}

/// Hooks with state of their own are structs; both they and trait objects can be passed.
struct CountsAndKeeps(AtomicUsize);

impl TransformContext<Role> for CountsAndKeeps {
    fn transform_context<'a>(
        &'a self,
        messages: Vec<AgentMessage<Role>>,
        _signal: &'a CancellationToken,
    ) -> BoxFuture<'a, Vec<AgentMessage<Role>>> {
        Box::pin(async move {
            self.0.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            messages
        })
    }
}

struct HidesPictures;

impl ConvertToLlm<Role> for HidesPictures {
    fn convert(&self, custom: &Role) -> Vec<Message> {
        convert(custom).into_iter().collect()
    }

    fn convert_model(&self, message: Message) -> Option<Message> {
        (message.role() != "user").then_some(message)
    }

    fn convert_unknown(&self, unknown: &UnknownMessage) -> Vec<Message> {
        vec![Message::user(format!("({})", unknown.role))]
    }
}

#[tokio::test]
async fn structs_and_trait_objects_are_hooks_too() {
    let model = FauxProvider::new([FauxReply::text("one"), FauxReply::text("two")]);
    let counts = Arc::new(CountsAndKeeps(AtomicUsize::new(0)));
    let transform: Arc<dyn TransformContext<Role>> = counts.clone();
    let convert: Arc<dyn ConvertToLlm<Role>> = Arc::new(HidesPictures);
    let agent =
        Agent::with_roles::<Role>(model.clone()).transform_context_with(transform).convert_to_llm_with(convert).build();
    let unknown = UnknownMessage { role: "hologram".into(), fields: Default::default() };
    soon(agent.prompt([AgentMessage::user("hidden"), AgentMessage::Unknown(unknown.into())])).await.unwrap();
    assert_eq!(sent(&model), [["user: (hologram)"]]);
    assert_eq!(counts.0.load(Ordering::Relaxed), 1);
    agent.set_transform_context_with(CountsAndKeeps(AtomicUsize::new(0)));
    soon(agent.prompt("more")).await.unwrap();
    assert_eq!(counts.0.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_converter_of_the_whole_list_may_wait_and_sees_neighbours() {
    let model = FauxProvider::new([FauxReply::text("ok")]);
    let agent = Agent::with_roles::<Role>(model.clone())
        .convert_list_to_llm(async |messages: Vec<AgentMessage<Role>>, _signal| {
            tokio::task::yield_now().await;
            vec![Message::user(format!("{} messages", messages.len()))]
        })
        .build();
    soon(agent.prompt([note("a"), note("b")])).await.unwrap();
    assert_eq!(sent(&model), [["user: 2 messages"]]);
}

/// What the observer noted: a line per stage.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl RequestObserver<Role> for Notes {
    fn stage(&self, request: RequestId, stage: Stage<'_, Role>) {
        let line = match stage {
            Stage::Transformed { before, after } => {
                let fates = provenance(before, after);
                let kept = fates.fates().filter(|fate| matches!(fate, Fate::Kept { .. })).count();
                format!("transformed: {kept} of {} kept, {} in all", before.len(), after.len())
            }
            Stage::Converted { before, after, origins } => {
                format!("converted: {} to {}, from {origins:?}", before.len(), after.len())
            }
            Stage::Normalized(context) => format!("normalized: {}", context.messages().len()),
            _ => "a stage of the future".to_owned(),
        };
        self.0.lock().unwrap().push(format!("{} {line}", request.0));
    }
}

#[tokio::test]
async fn an_observer_sees_what_each_stage_did_with_each_message() {
    let notes = Notes::default();
    let agent = Agent::with_roles::<Role>(FauxProvider::new([FauxReply::text("ok")]))
        .system_prompt("You help.")
        .transform_context(async |messages: Vec<AgentMessage<Role>>, _| {
            let mut messages: Vec<_> = messages.into_iter().skip(1).collect();
            messages.push(notification("new"));
            messages
        })
        .convert_to_llm(convert)
        .observer(notes.clone())
        .build();
    soon(agent.prompt([note("audit"), AgentMessage::user("go")])).await.unwrap();
    assert_eq!(
        *notes.0.lock().unwrap(),
        ["1 transformed: 2 of 3 kept, 3 in all", "1 converted: 3 to 2, from Some([1, 2])", "1 normalized: 2",]
    );
}

#[tokio::test]
async fn hooks_move_pointers_and_never_copy_contents() {
    let seen: Arc<Mutex<Vec<_>>> = Arc::default();
    let log = seen.clone();
    let model = FauxProvider::new([FauxReply::text("ok")]);
    let agent = Agent::builder(model.clone())
        .transform_context(async move |messages: Vec<AgentMessage>, _| {
            log.lock().unwrap().extend(messages.iter().map(AgentMessage::identity));
            messages
        })
        .build();
    soon(agent.prompt("go")).await.unwrap();
    let transcript: Vec<_> = agent.state().messages.iter().take(1).map(AgentMessage::identity).collect();
    let requested: Vec<_> = model.requests()[0].context.messages().iter().map(Message::identity).collect();
    assert_eq!(transcript, *seen.lock().unwrap());
    assert_eq!(transcript, requested);
}

#[test]
fn a_converter_can_be_made_without_an_agent() {
    let converter = Converter::<Role>::each(convert);
    assert!(format!("{converter:?}").contains("Each"));
}
