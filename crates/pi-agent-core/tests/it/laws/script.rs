//! Random scripts, and how they are played.

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures::stream;
use pi_agent_core::{
    Agent, AgentEvent, AgentHooks, AgentMessage, AgentState, AgentTool, ExecutionMode, NoCustom, QueueMode, Tool,
    ToolError, ToolOutput, ToolSet, WeakAgent,
    hooks::{
        AfterToolCall, BeforeToolCall, HookError, NextTurn, Permission, PrepareRequest, RequestUpdate, ToolResultPatch,
        Turn, TurnDecision,
    },
};
use pi_ai::{
    AssistantBlock, AssistantEvent, AssistantStream, CancellationToken, ErrorKind, Message, Model, ProviderError,
    Secret, StopReason, StreamOptions, ThinkingLevel, ToolCall, TranscriptContext,
    stream::{BlockEnd, MessageBuilder},
    stream_fn,
};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{clock, quiet_panic, tool};

/// A loop that does not end is ended, and then breaks a law.
pub(super) const MOST_REQUESTS: usize = 50;

/// What everybody does.
#[derive(Clone, Debug)]
pub(super) struct Script {
    answers: Vec<Answer>,
    actions: Vec<(Moment, Action)>,
    hooks: Vec<HookAct>,
    finish: Vec<TurnDecision>,
    steering: QueueMode,
    follow_up: QueueMode,
    execution: ExecutionMode,
    converter: Converting,
    prompts: u8,
}

/// What the second hook is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Converting {
    /// The one that is there by itself.
    Default,
    /// One over the whole list, which does what hooks do.
    List,
}

/// What the model says to one request.
#[derive(Clone, Debug)]
struct Answer {
    blocks: Vec<Block>,
    ending: Ending,
}

#[derive(Clone, Debug)]
enum Block {
    Text,
    Call(Kind),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Done,
    Length,
    Fails,
    FailsAtOnce,
    /// Says nothing more until it is aborted.
    Hangs,
    /// Says nothing more, whatever happens.
    IgnoresAbort,
    /// The stream ends without an end.
    BreaksOff,
    PanicsMidStream,
    PanicsAtOnce,
}

/// What a tool does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Fine,
    Slow,
    Updates,
    Fails,
    Panics,
    Terminates,
    WaitsForAbort,
    IgnoresAbort,
    Sequential,
    Unknown,
}

impl Kind {
    const TOOLS: [Self; 9] = [
        Self::Fine,
        Self::Slow,
        Self::Updates,
        Self::Fails,
        Self::Panics,
        Self::Terminates,
        Self::WaitsForAbort,
        Self::IgnoresAbort,
        Self::Sequential,
    ];
}

/// The n-th event of a kind; of any kind, when no name is given.
#[derive(Clone, Debug)]
struct Moment {
    name: Option<&'static str>,
    nth: usize,
}

/// What happens at a moment.
#[derive(Clone, Debug)]
enum Action {
    Abort,
    Steer,
    FollowUp,
    Dawdle,
    Panic,
    ChangeHooks,
    ChangeTools,
}

/// What a hook does when it is its turn. One entry per call of any hook, then nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum HookAct {
    Nothing,
    Fails,
    Panics,
    Hangs,
    Decides,
}

pub(super) fn script() -> impl Strategy<Value = Script> {
    let kind = prop_oneof![prop::sample::select(&Kind::TOOLS[..]), Just(Kind::Unknown)];
    let block = prop_oneof![1 => Just(Block::Text), 2 => kind.prop_map(Block::Call)];
    let ending = prop_oneof![
        12 => Just(Ending::Done),
        1 => Just(Ending::Length),
        1 => prop::sample::select(vec![
            Ending::Fails, Ending::FailsAtOnce, Ending::Hangs, Ending::IgnoresAbort, Ending::BreaksOff,
            Ending::PanicsMidStream, Ending::PanicsAtOnce,
        ]),
    ];
    let answer = (prop::collection::vec(block, 0..5), ending).prop_map(|(blocks, ending)| Answer { blocks, ending });
    let action = prop_oneof![
        2 => Just(Action::Abort),
        3 => Just(Action::Steer),
        3 => Just(Action::FollowUp),
        1 => Just(Action::Dawdle),
        1 => Just(Action::Panic),
        1 => Just(Action::ChangeHooks),
        1 => Just(Action::ChangeTools),
    ];
    const NAMES: &[&str] =
        &["tool_execution_start", "tool_execution_update", "tool_execution_end", "message_end", "turn_end"];
    let moment = prop_oneof![
        (0..60usize).prop_map(|nth| Moment { name: None, nth }),
        (prop::sample::select(NAMES), 0..3usize).prop_map(|(name, nth)| Moment { name: Some(name), nth }),
    ];
    let hook = prop_oneof![
        12 => Just(HookAct::Nothing),
        3 => Just(HookAct::Decides),
        1 => prop::sample::select(vec![HookAct::Fails, HookAct::Panics, HookAct::Hangs]),
    ];
    let decision = prop_oneof![
        4 => Just(TurnDecision::Natural),
        1 => Just(TurnDecision::Continue),
        1 => Just(TurnDecision::End),
    ];
    let mode = || prop::sample::select(vec![QueueMode::OneAtATime, QueueMode::All]);
    (
        prop::collection::vec(answer, 0..6),
        prop::collection::vec((moment, action), 0..6),
        prop::collection::vec(hook, 0..32),
        prop::collection::vec(decision, 0..5),
        (mode(), mode(), prop::sample::select(vec![ExecutionMode::Parallel, ExecutionMode::Sequential])),
        prop::sample::select(vec![Converting::Default, Converting::List]),
        1..3u8,
    )
        .prop_map(|(answers, actions, hooks, finish, (steering, follow_up, execution), converter, prompts)| {
            Script { answers, actions, hooks, finish, steering, follow_up, execution, converter, prompts }
        })
}

impl Script {
    /// A plain run with two calls.
    pub(super) fn with_two_calls() -> Self {
        let calls = vec![Block::Text, Block::Call(Kind::Updates), Block::Call(Kind::Fine)];
        Self {
            answers: vec![Answer { blocks: calls, ending: Ending::Done }],
            actions: Vec::new(),
            hooks: Vec::new(),
            finish: Vec::new(),
            steering: QueueMode::All,
            follow_up: QueueMode::All,
            execution: ExecutionMode::Parallel,
            converter: Converting::Default,
            prompts: 1,
        }
    }
}

/// What came of a script.
pub(super) struct Played {
    pub(super) before: Arc<Vec<AgentMessage>>,
    pub(super) events: Vec<AgentEvent>,
    pub(super) requests: Vec<Request>,
    /// How often a key was asked for.
    pub(super) keys_given: usize,
    /// Every set of tools that the agent or one of its runs ever had.
    pub(super) tool_sets: Vec<ToolSet>,
    pub(super) queued: Vec<AgentMessage>,
    pub(super) left_in_queues: Vec<AgentMessage>,
    pub(super) state: AgentState,
}

/// What reached the stream function.
pub(super) struct Request {
    pub(super) messages: Vec<Message>,
    /// Which of the keys that were given.
    pub(super) key: Option<usize>,
}

impl Played {
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.events.iter().map(AgentEvent::name).collect()
    }
}

pub(super) async fn play(script: &Script) -> Played {
    let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
    let all_tools: ToolSet = tools(Kind::TOOLS.len()).collect();
    let tool_sets = Arc::new(Mutex::new(vec![all_tools.clone()]));
    let hooks = Hooks {
        acts: Arc::new(Mutex::new(script.hooks.clone())),
        finish: script.finish.clone().into(),
        tool_sets: tool_sets.clone(),
    };
    let (in_the_two, converting, for_keys) = (hooks.clone(), hooks.clone(), hooks.clone());
    let keys_given = Arc::new(AtomicUsize::new(0));
    let count = keys_given.clone();
    let builder = Agent::builder(stream_fn(model(script.answers.clone(), requests.clone())))
        .system_prompt("You are tested.")
        .tools(tools(Kind::TOOLS.len()))
        .tool_execution(script.execution)
        .steering_mode(script.steering)
        .follow_up_mode(script.follow_up)
        .transform_context(async move |messages: Vec<AgentMessage>, _signal| match in_the_two.act() {
            HookAct::Panics | HookAct::Fails => quiet_panic("transform_context"),
            HookAct::Hangs => pending().await,
            HookAct::Decides => {
                // Injects a message.
                let mut messages = messages;
                messages.push(AgentMessage::user("injected"));
                messages
            }
            HookAct::Nothing => messages,
        })
        .key_source(async move |_provider, _signal| match for_keys.act() {
            HookAct::Panics | HookAct::Fails => quiet_panic("the key source"),
            HookAct::Hangs => pending().await,
            HookAct::Decides | HookAct::Nothing => {
                let number = count.fetch_add(1, Ordering::Relaxed) + 1;
                Some(Secret::from(number.to_string()))
            }
        })
        .hooks(hooks)
        .clock(clock());
    let builder = match script.converter {
        Converting::Default => builder,
        Converting::List => builder.convert_list_to_llm(async move |messages: Vec<AgentMessage>, _signal| {
            let mut converted: Vec<Message> = messages.iter().filter_map(|m| m.as_llm().cloned()).collect();
            match converting.act() {
                HookAct::Panics | HookAct::Fails => quiet_panic("convert_to_llm"),
                HookAct::Hangs => pending().await,
                HookAct::Decides => converted.push(Message::user("converted")),
                HookAct::Nothing => {}
            }
            converted
        }),
    };
    let agent = builder.build();
    let before = agent.state().messages;
    let events: Arc<Mutex<Vec<AgentEvent>>> = Arc::default();
    let queued: Arc<Mutex<Vec<AgentMessage>>> = Arc::default();
    let person = Person {
        agent: agent.downgrade(),
        actions: script.actions.clone().into(),
        heard: Arc::default(),
        queued: queued.clone(),
        tool_sets: tool_sets.clone(),
    };
    agent.subscribe(async move |event: AgentEvent, _| person.hear(event.name()).await).detach();
    let log = events.clone();
    agent.subscribe(async move |event: AgentEvent, _| log.lock().unwrap().push(event)).detach();

    for number in 0..script.prompts {
        let run = match number {
            0 => agent.prompt("go"),
            _ => agent.continue_run(),
        };
        // What hangs until it is aborted is aborted, late.
        let late = tokio::time::timeout(Duration::from_secs(3600), run).await;
        // Several grace periods may have to pass.
        tokio::time::timeout(Duration::from_secs(3600), agent.wait_for_idle()).await.expect("the run does not end");
        if let Ok(Ok(reply)) = late {
            assert!(!reply.messages().is_empty());
        }
    }
    let (mut left, follow_up) = agent.queued_messages();
    left.extend(follow_up);
    Played {
        before,
        events: std::mem::take(&mut events.lock().unwrap()),
        requests: std::mem::take(&mut requests.lock().unwrap()),
        keys_given: keys_given.load(Ordering::Relaxed),
        tool_sets: std::mem::take(&mut tool_sets.lock().unwrap()),
        queued: std::mem::take(&mut queued.lock().unwrap()),
        left_in_queues: left,
        state: agent.state(),
    }
}

fn model(
    answers: Vec<Answer>,
    requests: Arc<Mutex<Vec<Request>>>,
) -> impl Fn(&Arc<Model>, TranscriptContext, StreamOptions) -> AssistantStream + Send + Sync + 'static {
    let answers = Mutex::new(answers.into_iter());
    let calls = AtomicUsize::new(0);
    move |model, context, options| {
        let count = {
            let mut requests = requests.lock().unwrap();
            let key = options.api_key.as_ref().and_then(|key| key.expose().parse().ok());
            requests.push(Request { messages: context.into_messages(), key });
            requests.len()
        };
        let answer = answers.lock().unwrap().next();
        let answer = answer.unwrap_or(Answer { blocks: vec![Block::Text], ending: Ending::Done });
        let now = Default::default();
        let failure = || ProviderError::new(ErrorKind::Other, "the script fails");
        match answer.ending {
            Ending::PanicsAtOnce => quiet_panic("the stream function"),
            _ if count > MOST_REQUESTS => return AssistantStream::failed(model, now, failure()),
            Ending::FailsAtOnce => return AssistantStream::failed(model, now, failure()),
            _ => {}
        }
        let mut made = MessageBuilder::new(model, now);
        made.start();
        for block in &answer.blocks {
            match block {
                Block::Text => {
                    let text = made.start_text();
                    made.push_text(text, "some ");
                    made.push_text(text, "text");
                    made.end_text(text, BlockEnd::default());
                }
                Block::Call(kind) => {
                    let id = format!("call{}", calls.fetch_add(1, Ordering::Relaxed));
                    let call = ToolCall::new(id, format!("{kind:?}"), json!({}));
                    let index = made.start_tool_call(call.clone());
                    made.end_tool_call_with(index, call);
                }
            }
        }
        let has_calls = made.message().content.iter().any(|block| matches!(block, AssistantBlock::ToolCall(_)));
        match answer.ending {
            Ending::Done => made.done(if has_calls { StopReason::ToolUse } else { StopReason::Stop }),
            Ending::Length => made.done(StopReason::Length),
            Ending::Fails => made.fail(failure()),
            _ => {}
        }
        let events: Vec<AssistantEvent> = std::iter::from_fn(|| made.pop_event()).collect();
        let ending = answer.ending;
        let rest = stream::once(async move {
            match ending {
                Ending::Hangs | Ending::IgnoresAbort => pending().await,
                Ending::PanicsMidStream => quiet_panic("the stream"),
                _ => None,
            }
        });
        let events = futures::StreamExt::chain(stream::iter(events.into_iter().map(Some)), rest);
        let events = futures::StreamExt::filter_map(events, std::future::ready);
        let signal = match ending {
            Ending::IgnoresAbort => CancellationToken::new(),
            _ => options.signal,
        };
        AssistantStream::from_events(model, now, signal, events)
    }
}

/// The first tools that there are.
fn tools(count: usize) -> impl Iterator<Item = Arc<dyn AgentTool>> {
    Kind::TOOLS.into_iter().take(count).map(|kind| -> Arc<dyn AgentTool> { Arc::new(tool_of(kind)) })
}

fn tool_of(kind: Kind) -> Tool {
    let made = tool(&format!("{kind:?}"), async move |_, context| {
        match kind {
            Kind::Slow => tokio::time::sleep(Duration::from_millis(50)).await,
            Kind::Updates => {
                context.update("first");
                tokio::task::yield_now().await;
                context.update("second");
            }
            Kind::Fails => return Err(ToolError::new("it fails")),
            Kind::Panics => quiet_panic("the tool"),
            Kind::Terminates => return Ok(ToolOutput::text("the end").terminate()),
            Kind::WaitsForAbort => context.signal.cancelled().await,
            Kind::IgnoresAbort => pending().await,
            Kind::Fine | Kind::Sequential | Kind::Unknown => {}
        }
        Ok(ToolOutput::text("fine"))
    });
    if kind == Kind::Sequential { made.sequential() } else { made }
}

/// Somebody who listens and acts.
#[derive(Clone)]
struct Person {
    agent: WeakAgent,
    actions: Arc<[(Moment, Action)]>,
    heard: Arc<Mutex<Vec<&'static str>>>,
    queued: Arc<Mutex<Vec<AgentMessage>>>,
    tool_sets: Arc<Mutex<Vec<ToolSet>>>,
}

impl Person {
    async fn hear(&self, event: &'static str) {
        let Some(agent) = self.agent.upgrade() else { return };
        let (now, same) = {
            let mut heard = self.heard.lock().unwrap();
            let counts = (heard.len(), heard.iter().filter(|before| **before == event).count());
            heard.push(event);
            counts
        };
        let is_due = |moment: &Moment| match moment.name {
            Some(name) => name == event && moment.nth == same,
            None => moment.nth == now,
        };
        let mut panics = false;
        for (_, action) in self.actions.iter().filter(|(moment, _)| is_due(moment)) {
            match action {
                Action::Abort => agent.abort(),
                Action::Steer | Action::FollowUp => {
                    let message = AgentMessage::user(format!("said at {now}"));
                    self.queued.lock().unwrap().push(message.clone());
                    match action {
                        Action::Steer => agent.steer(message),
                        _ => agent.follow_up(message),
                    }
                }
                Action::Dawdle => tokio::time::sleep(Duration::from_millis(200)).await,
                Action::ChangeTools => {
                    let count = 1 + now % Kind::TOOLS.len();
                    self.tool_sets.lock().unwrap().push(tools(count).collect());
                    agent.set_tools(tools(count));
                }
                Action::ChangeHooks => agent.set_transform_context(async |messages, _signal| messages),
                Action::Panic => panics = true,
            }
        }
        if panics {
            quiet_panic("a listener");
        }
    }
}

#[derive(Clone)]
struct Hooks {
    acts: Arc<Mutex<Vec<HookAct>>>,
    finish: Arc<[TurnDecision]>,
    tool_sets: Arc<Mutex<Vec<ToolSet>>>,
}

impl Hooks {
    fn act(&self) -> HookAct {
        self.acts.lock().unwrap().pop().unwrap_or(HookAct::Nothing)
    }

    async fn decide<T>(&self, nothing: T, decided: T) -> Result<T, HookError> {
        match self.act() {
            HookAct::Nothing => Ok(nothing),
            HookAct::Decides => Ok(decided),
            HookAct::Fails => Err(HookError::new("the hook fails")),
            HookAct::Panics => quiet_panic("the hook"),
            HookAct::Hangs => pending().await,
        }
    }
}

#[async_trait]
impl AgentHooks<NoCustom> for Hooks {
    async fn before_tool_call(&self, _call: &mut BeforeToolCall<'_, NoCustom>) -> Result<Permission, HookError> {
        self.decide(Permission::Allow, Permission::block("not this one")).await
    }

    async fn after_tool_call(&self, _call: &AfterToolCall<'_, NoCustom>) -> Result<ToolResultPatch, HookError> {
        let patch = ToolResultPatch { terminate: Some(true), ..ToolResultPatch::default() };
        self.decide(ToolResultPatch::default(), patch).await
    }

    async fn prepare_request(
        &self,
        request: &PrepareRequest<'_, NoCustom>,
    ) -> Result<RequestUpdate<NoCustom>, HookError> {
        // Other tools, or other messages that requests are made from: without the head, so that it is said again.
        let decided = match request.messages.len() % 3 {
            0 => {
                let fewer: ToolSet = tools(request.messages.len() % Kind::TOOLS.len()).collect();
                self.tool_sets.lock().unwrap().push(fewer.clone());
                RequestUpdate { tools: Some(fewer), ..RequestUpdate::default() }
            }
            1 => {
                let body = request.messages.iter().filter(|message| !message.is_system()).cloned();
                let messages = body.chain([AgentMessage::user("prepared for the request")]).collect();
                RequestUpdate { messages: Some(messages), ..RequestUpdate::default() }
            }
            _ => RequestUpdate { thinking_level: Some(ThinkingLevel::High), ..RequestUpdate::default() },
        };
        self.decide(RequestUpdate::default(), decided).await
    }

    async fn finish_turn(&self, turn: &Turn<'_, NoCustom>) -> Result<TurnDecision, HookError> {
        let answers = turn.new_messages.iter().filter(|message| message.as_assistant().is_some()).count();
        let decided = self.finish.get(answers).copied().unwrap_or_default();
        self.decide(TurnDecision::Natural, decided).await
    }

    async fn prepare_next_turn(&self, _last: &Turn<'_, NoCustom>) -> Result<NextTurn<NoCustom>, HookError> {
        let next = NextTurn { add_messages: vec![AgentMessage::user("prepared")], ..NextTurn::default() };
        self.decide(NextTurn::default(), next).await
    }
}
