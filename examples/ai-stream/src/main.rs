//! pi-ai alone: asks a model one question and prints the answer as it comes.
//!
//! ```text
//! cargo run -p example-ai-stream -- "Why is the sky blue?"
//! cargo run -p example-ai-stream -- --model groq/gpt-oss-120b:low "Why is the sky blue?"
//! ```
//!
//! It finds models as `pi` does: keys in the environment, and `models.json` and `auth.json` in `~/.pi/agent`.

use std::{
    error::Error,
    io::{self, Write},
    process::ExitCode,
    sync::Arc,
};

use futures::StreamExt;
use pi_ai::{
    AssistantEvent, AssistantMessage, Context, Message, Model, Models, ProviderError, StreamFn, StreamOptions,
    models::ModelChoice,
};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut wanted = None;
    if words.first().is_some_and(|word| word == "--model") && words.len() > 1 {
        wanted = Some(words.remove(1));
        words.remove(0);
    }
    if words.is_empty() {
        return Err("usage: ai-stream [--model provider/model] QUESTION".into());
    }

    let models = Models::from_env();
    for problem in models.problems().iter() {
        eprintln!("{problem}");
    }
    let (model, level) = match wanted {
        Some(model) => {
            let selected = models.select(&ModelChoice { model, ..ModelChoice::default() }).await?;
            (selected.model, selected.level)
        }
        None => {
            let model = models.default_model().await?;
            (model.ok_or("no model can be used: set a key, such as ANTHROPIC_API_KEY, or name one with --model")?, None)
        }
    };
    let options = StreamOptions { reasoning: level, ..StreamOptions::default() };
    let message = print_answer(&models, &model, &words.join(" "), options, &mut io::stdout()).await?;
    eprintln!("{}: {} tokens, ${:.4}", model.name, message.usage.total_tokens, message.usage.cost.total);
    Ok(())
}

/// Asks and writes the text of the answer as it comes.
async fn print_answer(
    models: &impl StreamFn,
    model: &Arc<Model>,
    question: &str,
    options: StreamOptions,
    out: &mut impl Write,
) -> Result<AssistantMessage, Box<dyn Error>> {
    let context = Context {
        system_prompt: Some("Answer in a few plain sentences.".into()),
        ..Context::from(vec![Message::user(question)])
    };
    let mut stream = models.stream(model, context.normalize(), options);
    while let Some(event) = stream.next().await {
        match event {
            AssistantEvent::TextDelta { delta, .. } => {
                write!(out, "{delta}")?;
                out.flush()?;
            }
            AssistantEvent::Error { error, .. } => return Err(Box::<ProviderError>::new(error)),
            _ => {}
        }
    }
    writeln!(out)?;
    Ok(stream.into_message())
}

#[cfg(test)]
mod tests {
    use fake_llm::{Answer, Reply, Script, Server, Wire};
    use pi_ai::{
        faux::{FauxProvider, FauxReply},
        models::Provider,
    };

    use super::*;

    async fn asked(models: &impl StreamFn, model: &Arc<Model>) -> (Result<AssistantMessage, Box<dyn Error>>, String) {
        let mut out = Vec::new();
        let outcome = print_answer(models, model, "Why?", StreamOptions::default(), &mut out).await;
        (outcome, String::from_utf8(out).unwrap())
    }

    #[tokio::test]
    async fn an_answer_is_printed_as_it_comes() {
        let provider = FauxProvider::new([FauxReply::text("Because the light is scattered.")]);
        let (message, printed) = asked(&provider, &FauxProvider::model()).await;
        assert_eq!(printed, "Because the light is scattered.\n");
        assert!(message.unwrap().usage.output > 0);
        assert_eq!(provider.requests()[0].context.messages().len(), 2);
    }

    #[tokio::test]
    async fn the_same_over_a_socket_on_both_wires() {
        for (wire, api) in
            [(Wire::OpenAiCompletions, "openai-completions"), (Wire::AnthropicMessages, "anthropic-messages")]
        {
            let script =
                Script::new(wire).reply(Answer::new().text("Be").text("cause.")).reply(Reply::error(401, "who?"));
            let server = Server::start(script);
            let provider = Provider::new("local", server.base_url()).api(api).api_key("sk-1").model(Model {
                id: "m".into(),
                max_tokens: 1000,
                ..Model::default()
            });
            let models = Models::builder().provider(provider).build();
            let model = models.find("local", "m").unwrap();
            let (message, printed) = asked(&models, &model).await;
            assert_eq!((message.unwrap().text().as_str(), printed.as_str()), ("Because.", "Because.\n"));
            assert!(server.request(0).await.system_text().contains("plain sentences"));
            let (failed, _) = asked(&models, &model).await;
            assert!(failed.unwrap_err().to_string().contains("who?"));
        }
    }
}
