//! `cargo xtask mock`: the same conversation on each wire, against a mock server that others wrote.
//!
//! Our own fake server is ours: it might share a misunderstanding with the wires. This one cannot.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;

use clap::{Arg, ArgMatches, Command, value_parser};
use pi_ai::{
    AssistantMessage, Context, ErrorKind, InputBlock, Message, Model, Models, StopReason, StreamFn, StreamOptions,
    ThinkingLevel, ToolDeclaration, ToolResultMessage, models::Provider,
};
use serde_json::json;
use xtask::{Error, Outcome};

const DRIVER: &str = include_str!("driver.mjs");

/// The wires that the mock speaks, with the path of their base URL and a model's id.
const WIRES: [(&str, &str, &str); 8] = [
    ("openai-completions", "/v1", "gpt-4o"),
    ("openai-responses", "/v1", "gpt-5"),
    ("azure-openai-responses", "/v1", "gpt-5"),
    ("anthropic-messages", "", "claude-sonnet-4-5"),
    ("google-generative-ai", "/v1beta", "gemini-3-pro"),
    ("google-vertex", "/v1/projects/p/locations/l", "gemini-3-pro"),
    ("mistral-conversations", "", "mistral-large"),
    ("bedrock-converse-stream", "", "anthropic.claude-sonnet-4-5-v1:0"),
];

pub(crate) fn command() -> Command {
    Command::new("mock")
        .about("Runs the same conversation on each wire against a mock server that others wrote")
        .long_about(
            "Runs the same conversation on each wire against aimock, a mock server that others wrote, and prints \
             where an answer is not what it was told to say. Needs Node.js and a folder in which `npm install \
             @copilotkit/aimock` was run; without either it is skipped.",
        )
        .arg(
            Arg::new("package")
                .long("package")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("The folder whose node_modules hold @copilotkit/aimock"),
        )
        .arg(Arg::new("node").long("node").value_name("PROGRAM").default_value("node").help("Node.js"))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<Outcome, Error> {
    let node = matches.get_one::<String>("node").map_or("node", String::as_str);
    let Some(folder) = matches.get_one::<PathBuf>("package") else {
        println!("skipped: say with --package where @copilotkit/aimock is installed");
        return Ok(Outcome::Fine);
    };
    let mock = match Mock::start(node, folder) {
        Ok(mock) => mock,
        Err(reason) => {
            println!("skipped: {reason}");
            return Ok(Outcome::Fine);
        }
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let mut failed = 0;
    for (api, path, id) in WIRES {
        let talk = Talk::new(api, &format!("{}{path}", mock.url), id)?;
        match runtime.block_on(talk.hold()) {
            Ok(()) => println!("{api}: as told"),
            Err(difference) => {
                failed += 1;
                println!("{api}: {difference}");
            }
        }
    }
    println!("{} wires, {failed} differ", WIRES.len());
    Ok(if failed == 0 { Outcome::Fine } else { Outcome::Failed })
}

/// The mock server. Dropping it stops it.
struct Mock {
    process: Child,
    url: String,
}

impl Mock {
    fn start(node: &str, folder: &Path) -> Result<Self, String> {
        let package = folder.join("node_modules/@copilotkit/aimock");
        if !package.is_dir() {
            return Err(format!("{} is not there", package.display()));
        }
        let mut process = Process::new(node)
            .args(["--input-type=module", "--eval", DRIVER, "--"])
            .arg(folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{node}: {error}"))?;
        let mut url = String::new();
        let output = process.stdout.take().ok_or("no output")?;
        let read = BufReader::new(output).read_line(&mut url);
        let mock = Self { process, url: url.trim().to_owned() };
        match read {
            Ok(_) if mock.url.starts_with("http") => Ok(mock),
            _ => Err(format!("the mock server did not start: it said `{}`", mock.url)),
        }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // It is gone already when that fails.
        let _ = self.process.wait();
    }
}

/// A conversation with one model.
struct Talk {
    models: Models,
    model: Arc<Model>,
}

impl Talk {
    fn new(api: &str, base_url: &str, id: &str) -> Result<Self, Error> {
        let model = Model {
            id: id.into(),
            name: "M".into(),
            reasoning: true,
            max_tokens: 4000,
            context_window: 100_000,
            ..Model::default()
        };
        let provider = Provider::new("mock", base_url).api(api).api_key("key").model(model);
        let models = Models::builder().provider(provider).build();
        let model = models.find("mock", id).ok_or("the model was just added")?;
        Ok(Self { models, model })
    }

    async fn ask(
        &self,
        messages: &[Message],
        reasoning: Option<ThinkingLevel>,
    ) -> (AssistantMessage, Option<ErrorKind>) {
        use futures::StreamExt as _;
        let parameters = json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "lines": {"type": "array", "items": {"type": "integer"}}},
            "required": ["path"],
        });
        let context = Context {
            system_prompt: Some("be brief".into()),
            tools: vec![ToolDeclaration::new("read", "Reads a file.", parameters)],
            ..Context::from(messages.to_vec())
        };
        let options = StreamOptions { reasoning, ..StreamOptions::default() };
        let mut stream = self.models.stream(&self.model, context.normalize(), options);
        while stream.next().await.is_some() {}
        let kind = stream.error().map(pi_ai::ProviderError::kind);
        (stream.into_message(), kind)
    }

    /// Says what was not as it should be.
    async fn hold(&self) -> Result<(), String> {
        let say = |text: &str| vec![Message::user(text)];
        let (answer, _) = self.ask(&say("hi"), None).await;
        expect("a long text", &answer, "Hello to you. ".repeat(40).trim(), StopReason::Stop)?;
        // The mock plays chat completions for Mistral, too, and counts only for who asks for it in a field of that wire.
        if answer.usage.total_tokens == 0 && self.model.api != "mistral-conversations" {
            return Err("no tokens were counted".into());
        }

        let mut messages = say("what is in it");
        let (answer, _) = self.ask(&messages, None).await;
        expect("a tool call", &answer, "I look, Grüße 🦀.", StopReason::ToolUse)?;
        let Some(call) = answer.tool_calls().next().cloned() else { return Err("there is no call".into()) };
        let arguments = json!({"path": "a \"b\".txt", "lines": [1, 2]});
        if call.name != "read" || json!(call.arguments) != arguments {
            return Err(format!("the call is {call:?}"));
        }
        messages.push(answer.into());
        messages.push(
            ToolResultMessage {
                tool_call_id: call.id,
                tool_name: call.name,
                content: vec![InputBlock::text("hello")],
                ..ToolResultMessage::default()
            }
            .into(),
        );
        let (answer, _) = self.ask(&messages, None).await;
        expect("the answer to a result", &answer, "It says hello.", StopReason::Stop)?;

        let (answer, _) = self.ask(&say("think"), Some(ThinkingLevel::High)).await;
        expect("an answer with thinking", &answer, "Yes.", StopReason::Stop)?;

        let (answer, kind) = self.ask(&say("too fast"), None).await;
        if (answer.stop_reason, kind) != (StopReason::Error, Some(ErrorKind::RateLimit)) {
            return Err(format!("a rate limit came as {kind:?}: {:?}", answer.error_message));
        }
        Ok(())
    }
}

fn expect(what: &str, answer: &AssistantMessage, text: &str, reason: StopReason) -> Result<(), String> {
    if let Some(error) = &answer.error_message {
        return Err(format!("{what}: {error}"));
    }
    match answer.text() == text && answer.stop_reason == reason {
        true => Ok(()),
        false => Err(format!("{what}: `{}`, {:?}", answer.text(), answer.stop_reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_package_it_is_skipped() {
        for arguments in [vec!["mock"], vec!["mock", "--package", "/nowhere"]] {
            let matches = command().get_matches_from(arguments);
            assert_eq!(run(&matches).unwrap(), Outcome::Fine);
        }
    }
}
