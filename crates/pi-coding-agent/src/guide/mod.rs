//! The model `offline/guide`: what pi runs on when no provider has a key.
//!
//! It is no language model. It recognises requests by rules, calls the tools that are active, and composes its answer
//! from what they return, over the same stream, loop, hooks and session as any provider. No answer belongs to a
//! particular question, file or project.
//!
//! Its one function is transcript → next message, with no memory beside the transcript: `conversation` reads the
//! transcript, `intent` understands the request, `task` fulfils it by asking the `desk` for facts. Facts that the
//! transcript has are given at once; each other one becomes a tool call, and the same task runs again when its result
//! is there. So a resumed session goes on where it stopped.

mod conversation;
mod desk;
mod intent;
mod language;
mod stream;
mod task;
mod utterance;

use std::sync::{Arc, LazyLock};

use pi_ai::{
    ApiId, AssistantStream, Message, Model, StreamFn, StreamOptions, ToolChoice, TranscriptContext,
    api::Api,
    model::InputKind,
    stream::MessageBuilder,
    time::{Clock, SystemClock},
};

use self::{
    conversation::Conversation,
    desk::{Desk, Stop},
    stream::{Reply, ReplySource, tokens},
};

/// The built-in model. See the [module](self).
///
/// ```
/// use pi_ai::{Context, Message, StreamFn, StreamOptions};
/// use pi_coding_agent::guide::GuideModel;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let context = Context::from(vec![Message::user("What can you do?")]).normalize();
/// let answer = GuideModel::default().stream(&GuideModel::model(), context, StreamOptions::default()).result().await;
/// assert!(answer.text().contains("no language model"));
/// # }
/// ```
#[derive(Clone)]
pub struct GuideModel {
    clock: Arc<dyn Clock>,
}

impl Default for GuideModel {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock) }
    }
}

impl std::fmt::Debug for GuideModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuideModel").finish_non_exhaustive()
    }
}

impl GuideModel {
    /// The provider that the model belongs to.
    pub const PROVIDER: &'static str = "offline";
    /// The model's name.
    pub const ID: &'static str = "guide";
    /// The name of its protocol.
    pub const API: &'static str = "offline-guide";

    /// One line for people who get the guide without having asked for it.
    pub const NOTICE: &'static str = "No provider has a key, so the built-in offline guide answers. It is not a language model: it \
                                      follows rules and uses the same tools. Set a provider's key (see `pi --help`) to use a model.";

    /// A guide that tells the time by this clock.
    pub fn with_clock(clock: impl Clock) -> Self {
        Self { clock: Arc::new(clock) }
    }

    /// What is known about the model.
    pub fn model() -> Arc<Model> {
        static MODEL: LazyLock<Arc<Model>> = LazyLock::new(|| {
            Arc::new(Model {
                id: GuideModel::ID.into(),
                name: "Guide (offline, by rules)".to_owned(),
                api: GuideModel::API.into(),
                provider: GuideModel::PROVIDER.into(),
                input: vec![InputKind::Text],
                context_window: 1_000_000,
                max_tokens: 32_000,
                ..Model::default()
            })
        });
        MODEL.clone()
    }

    /// Whether a model is the guide.
    pub fn is(model: &Model) -> bool {
        model.provider == Self::PROVIDER && model.id == Self::ID
    }

    fn answer(&self, model: &Arc<Model>, context: TranscriptContext, options: StreamOptions) -> AssistantStream {
        let messages = context.into_messages();
        let input = tokens(messages.iter().map(size).sum());
        let may_call = options.tool_choice != Some(ToolChoice::None);
        let think = move || next_message(&messages, may_call);
        let answer = MessageBuilder::new(model, self.clock.now());
        AssistantStream::from_source(answer, options.signal, ReplySource::new(think, input))
    }
}

impl StreamFn for GuideModel {
    fn stream(&self, model: &Arc<Model>, context: TranscriptContext, options: StreamOptions) -> AssistantStream {
        self.answer(model, context, options)
    }
}

impl Api for GuideModel {
    fn id(&self) -> ApiId {
        Self::API.into()
    }

    fn stream(&self, model: &Arc<Model>, context: TranscriptContext, options: StreamOptions) -> AssistantStream {
        self.answer(model, context, options)
    }
}

/// Transcript → next message.
fn next_message(messages: &[Message], may_call: bool) -> Reply {
    let mut conversation = Conversation::read(messages);
    if !may_call {
        conversation.tools.clear();
    }
    let number = conversation.answers + 1;
    let mut desk = Desk::new(&conversation);
    let text = match &conversation.intent {
        None => Some(task::not_understood(&desk)),
        Some(intent) => match task::perform(intent, &mut desk) {
            Ok(answer) => Some(answer),
            Err(Stop::Trouble(trouble)) => Some(task::explain_trouble(&trouble)),
            Err(Stop::Wait) => None,
        },
    };
    match text {
        Some(text) => Reply { text, calls: Vec::new(), number },
        None => {
            let (remark, calls) = desk.into_calls();
            Reply { text: remark.unwrap_or_default(), calls, number }
        }
    }
}

/// Bytes of what a model would read.
fn size(message: &Message) -> usize {
    let blocks =
        |blocks: &[pi_ai::InputBlock]| blocks.iter().filter_map(|block| block.as_text()).map(str::len).sum::<usize>();
    match message {
        Message::System(system) => {
            let tools: usize = system
                .tools_added
                .iter()
                .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len())
                .sum();
            let sections: usize = system.sections.values().flatten().map(String::len).sum();
            system.content.text().len() + sections + tools
        }
        Message::User(user) => user.content.text().len(),
        Message::Assistant(answer) => {
            answer.text().len()
                + answer
                    .tool_calls()
                    .map(|call| serde_json::Value::Object(call.arguments.clone()).to_string().len())
                    .sum::<usize>()
        }
        Message::ToolResult(result) => blocks(&result.content),
    }
}

#[cfg(test)]
mod tests;
