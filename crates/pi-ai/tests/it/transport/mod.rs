//! The transport, over real sockets.

mod failures;
mod hooks;
mod network;
mod retries;
mod streaming;
mod telemetry;
mod timeouts;

use std::{sync::Arc, time::Duration};

use fake_llm::{Script, Server, Wire};
use futures::StreamExt;
use pi_ai::{
    AssistantEvent, AssistantMessage, Context, Message, Model, ProviderError, StreamOptions,
    models::{Environment, Models, Provider},
    options::{Limit, RetryPolicy, Timeouts},
};

/// A model server and a registry that knows it.
struct Setup {
    server: Server,
    models: Models,
    model: Arc<Model>,
}

impl Setup {
    fn new(script: Script) -> Self {
        let server = Server::start(script);
        let models = Models::builder().provider(provider(&server.base_url())).build();
        let model = models.find("local", "m").unwrap();
        Self { server, models, model }
    }

    fn replying(reply: impl Into<fake_llm::Reply>) -> Self {
        Self::new(chat().reply(reply))
    }

    fn stream(&self, options: StreamOptions) -> pi_ai::AssistantStream {
        self.models.ask(&self.model, question(), options)
    }

    /// Asks and waits for the end.
    async fn ask(&self, options: StreamOptions) -> Answer {
        finish(self.stream(options)).await
    }
}

fn chat() -> Script {
    Script::new(Wire::OpenAiCompletions)
}

fn provider(base_url: &str) -> Provider {
    let model = Model { id: "m".into(), max_tokens: 1000, context_window: 100_000, ..Model::default() };
    Provider::new("local", base_url).api("openai-completions").api_key("sk-test").model(model)
}

fn question() -> Context {
    Context::from(vec![Message::user("hi")])
}

/// What a stream came to.
struct Answer {
    message: AssistantMessage,
    error: Option<ProviderError>,
    events: Vec<AssistantEvent>,
}

impl Answer {
    #[track_caller]
    fn error(&self) -> &ProviderError {
        self.error.as_ref().unwrap_or_else(|| panic!("no error: {:?}", self.message))
    }

    /// The error's message, which is the message's, too.
    #[track_caller]
    fn said(&self) -> &str {
        let said = self.error().message();
        assert_eq!(self.message.error_message.as_deref(), Some(said));
        said
    }

    fn starts(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, AssistantEvent::Start)).count()
    }
}

/// Reads a stream to its end. A hang is a failure.
async fn finish(mut stream: pi_ai::AssistantStream) -> Answer {
    let mut events = Vec::new();
    let reading = async {
        while let Some(event) = stream.next().await {
            events.push(event);
        }
    };
    tokio::time::timeout(Duration::from_secs(10), reading).await.expect("the stream ends");
    Answer { error: stream.error().cloned(), message: stream.into_message(), events }
}

fn retrying(max_retries: u32) -> StreamOptions {
    StreamOptions { retry: RetryPolicy { max_retries, ..RetryPolicy::default() }, ..StreamOptions::default() }
}

fn limited(first_byte: Limit, idle: Limit) -> StreamOptions {
    StreamOptions { timeouts: Timeouts { first_byte, idle, ..Timeouts::default() }, ..StreamOptions::default() }
}

/// A registry whose process has these variables.
fn models_with<const COUNT: usize>(variables: [(&str, &str); COUNT], base_url: &str) -> (Models, Arc<Model>) {
    let models = Models::builder().environment(Environment::from(variables)).provider(provider(base_url)).build();
    let model = models.find("local", "m").unwrap();
    (models, model)
}
