//! `cargo xtask wires`: what each wire can carry, and what the crate is built from, in the README of pi-ai.
//!
//! The table is found out, not written: each capability is one or two requests that a wire encodes, and a look at
//! whether the difference goes out.

use pi_ai::{
    AssistantBlock, AssistantMessage, CacheRetention, Content, Context, InputBlock, Message, Model, StopReason,
    StreamOptions, SystemMessage, ThinkingContent, ThinkingLevel, ToolCall, ToolChoice, ToolDeclaration,
    ToolResultMessage,
    api::{BuiltinWires, Concessions, EncodeRequest},
    model::InputKind,
    testing::conformance::provider_requests::shown,
    transcript::collapse,
};
use serde_json::{Map, Value, json};

use clap::{ArgMatches, Command};
use xtask::workspace;
use xtask::{Error, Outcome};

use crate::costs::third_party_crates;

const WIRES: &str = "wires";
const CRATES: &str = "crates";

pub(crate) fn command() -> Command {
    Command::new("wires")
        .about("Writes what each wire can carry, and the third-party crates, into the README of pi-ai")
        .arg(crate::check_switch())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<Outcome, Error> {
    let path = readme();
    let old = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let new = with_parts(&old, &parts()?)?;
    if old == new {
        return Ok(Outcome::Fine);
    }
    if matches.get_flag("check") {
        eprintln!("crates/pi-ai/README.md is not what the code says: run `cargo xtask wires`");
        return Ok(Outcome::Failed);
    }
    std::fs::write(&path, new)?;
    println!("wrote {}", path.display());
    Ok(Outcome::Fine)
}

fn readme() -> std::path::PathBuf {
    workspace::root().join("crates/pi-ai/README.md")
}

/// The generated parts of the README, by name.
fn parts() -> Result<Vec<(&'static str, String)>, Error> {
    Ok(vec![(WIRES, wires_table()?), (CRATES, crate_list()?)])
}

fn with_parts(document: &str, parts: &[(&str, String)]) -> Result<String, Error> {
    let mut document = document.to_owned();
    for (name, text) in parts {
        let begin = format!("<!-- generated: {name} -->\n");
        let end = "<!-- end of generated -->";
        let range = document.find(&begin).and_then(|start| {
            let start = start + begin.len();
            document[start..].find(end).map(|length| start..start + length)
        });
        let range = range.ok_or_else(|| format!("the README has no `{}` … `{end}`", begin.trim_end()))?;
        document.replace_range(range, text);
    }
    Ok(document)
}

fn crate_list() -> Result<String, Error> {
    let crates = third_party_crates("pi-ai")?;
    let names: std::collections::BTreeSet<&str> = crates.iter().filter_map(|one| one.split(' ').next()).collect();
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    let mut text = format!("\n{} crates: ", names.len());
    let mut width = text.len() - 1;
    for (number, name) in names.iter().enumerate() {
        let last = number + 1 == names.len();
        let piece = format!("{name}{}", if last { "." } else { "," });
        if width + piece.len() > 118 {
            text.pop();
            text.push('\n');
            width = 0;
        }
        width += piece.len() + 1;
        text.push_str(&piece);
        text.push(' ');
    }
    text.pop();
    text.push_str("\n\n");
    Ok(text)
}

fn wires_table() -> Result<String, Error> {
    let mut table = String::from("\n| |");
    let ids = BuiltinWires::IDS;
    for id in ids {
        table.push_str(&format!(" {} |", id.replace('-', " ")));
    }
    table.push_str("\n|---|");
    table.push_str(&"---|".repeat(ids.len()));
    table.push('\n');
    for capability in CAPABILITIES {
        let cells: Vec<&str> = ids.iter().map(|id| capability.of(id)).collect::<Result<_, _>>()?;
        table.push_str(&format!("| {} | {} |\n", capability.name, cells.join(" | ")));
    }
    table.push('\n');
    Ok(table)
}

/// Something that a request may carry.
struct Capability {
    name: &'static str,
    /// Compat switches that may allow it.
    switches: &'static [&'static str],
    /// Whether a wire carries it.
    goes_out: fn(&Prober<'_>) -> Result<bool, Error>,
}

impl Capability {
    fn of(&self, api: &str) -> Result<&'static str, Error> {
        let with = |switches: &[&str]| (self.goes_out)(&Prober { api, switches });
        Ok(match () {
            () if with(&[])? => "yes",
            () if !self.switches.is_empty() && with(self.switches)? => "switch",
            () => "–",
        })
    }
}

const PICTURE: &str = "cGljdHVyZQ==";
const THOUGHT: &str = "dGhvdWdodA==";

const LATER: &[&str] = &["supportsMidConvoSystemMessages"];
const LATER_TOOLS: &[&str] = &[
    "supportsMidConvoSystemMessages",
    "supportsMidConvoToolChanges",
    "supportsMidConvoToolAdditions",
    "supportsAdditionalTools",
];

const CAPABILITIES: &[Capability] = &[
    Capability {
        name: "pictures from people",
        switches: &[],
        goes_out: |wire| wire.has(vec![Message::user(picture())], StreamOptions::default(), PICTURE),
    },
    Capability {
        name: "pictures from tools",
        switches: &[],
        goes_out: |wire| {
            let messages = vec![
                Message::user("go"),
                wire.answer(vec![ToolCall::new("call1abcd", "read", json!({})).into()]),
                result("call1abcd", vec![InputBlock::image(PICTURE, "image/png")]),
            ];
            wire.has(messages, StreamOptions::default(), PICTURE)
        },
    },
    Capability {
        name: "several calls at once",
        switches: &[],
        goes_out: |wire| {
            let calls = ["call1abcd", "call2abcd"].map(|id| ToolCall::new(id, "read", json!({})).into());
            let messages = vec![
                Message::user("go"),
                wire.answer(calls.to_vec()),
                result("call1abcd", vec![InputBlock::text("first-result")]),
                result("call2abcd", vec![InputBlock::text("second-result")]),
            ];
            let sent = wire.sent(Context::from(messages), StreamOptions::default())?.to_string();
            Ok(sent.contains("first-result") && sent.contains("second-result"))
        },
    },
    Capability {
        name: "choice of tools",
        switches: &[],
        goes_out: |wire| {
            wire.differs(StreamOptions { tool_choice: Some(ToolChoice::None), ..StreamOptions::default() })
        },
    },
    Capability {
        name: "thinking by level",
        switches: &[],
        goes_out: |wire| {
            let at = |level| StreamOptions { reasoning: Some(level), ..StreamOptions::default() };
            let low = wire.sent(with_tool(None), at(ThinkingLevel::Low))?;
            Ok(low != wire.sent(with_tool(None), at(ThinkingLevel::High))?)
        },
    },
    Capability {
        name: "thinking goes back, signed",
        switches: &["requiresReasoningContentOnAssistantMessages"],
        goes_out: |wire| {
            let thinking = ThinkingContent {
                thinking: "I-weigh-it".into(),
                thinking_signature: Some(wire.signature()),
                redacted: None,
            };
            let messages = vec![
                Message::user("go"),
                wire.answer(vec![thinking.into(), AssistantBlock::text("well")]),
                Message::user("on"),
            ];
            let sent = wire.sent(Context::from(messages), StreamOptions::default())?.to_string();
            Ok(sent.contains("I-weigh-it") || sent.contains(THOUGHT))
        },
    },
    Capability {
        name: "hidden thinking goes back",
        switches: &[],
        goes_out: |wire| {
            let hidden = ThinkingContent {
                thinking: "[hidden]".into(),
                thinking_signature: Some(match wire.api {
                    "openai-responses" | "azure-openai-responses" | "openai-codex-responses" => wire.signature(),
                    _ => THOUGHT.to_owned(),
                }),
                redacted: Some(true),
            };
            let messages = vec![
                Message::user("go"),
                wire.answer(vec![hidden.into(), AssistantBlock::text("well")]),
                Message::user("on"),
            ];
            wire.has(messages, StreamOptions::default(), THOUGHT)
        },
    },
    Capability {
        name: "longest answer",
        switches: &[],
        goes_out: |wire| {
            let options = StreamOptions { max_tokens: Some(1234), ..StreamOptions::default() };
            wire.has(vec![Message::user("go")], options, "1234")
        },
    },
    Capability {
        name: "temperature",
        switches: &[],
        goes_out: |wire| wire.differs(StreamOptions { temperature: Some(0.125), ..StreamOptions::default() }),
    },
    Capability {
        name: "other sampling parameters",
        switches: &[],
        goes_out: |wire| {
            let params = Map::from_iter([("top_k".to_owned(), json!(7))]);
            wire.differs(StreamOptions { sampling_params: Some(params), ..StreamOptions::default() })
        },
    },
    Capability {
        name: "prompt caching that is asked for",
        switches: &["supportsLongCacheRetention"],
        goes_out: |wire| wire.differs_from(of_session(CacheRetention::Short), of_session(CacheRetention::None)),
    },
    Capability {
        name: "long caching",
        switches: &["supportsLongCacheRetention"],
        goes_out: |wire| wire.differs_from(of_session(CacheRetention::Long), of_session(CacheRetention::Short)),
    },
    Capability {
        name: "session affinity",
        switches: &["sendSessionAffinityHeaders"],
        goes_out: |wire| wire.differs(of_session(CacheRetention::Short)),
    },
    Capability {
        name: "strict tools",
        switches: &["supportsStrictMode", "supportsStrictTools"],
        goes_out: |wire| {
            let wish = json!({"type": "json_schema", "strict": "prefer"});
            let plain = wire.sent(with_tool(None), StreamOptions::default())?;
            Ok(plain != wire.sent(with_tool(Some(wish)), StreamOptions::default())?)
        },
    },
    Capability {
        name: "tools with a grammar",
        switches: &["supportsOpenAIGrammarTools"],
        goes_out: |wire| {
            let wish = json!({"type": "grammar", "variants": {"openai_lark": "start: LETTER"}});
            Ok(wire.sent(with_tool(Some(wish)), StreamOptions::default())?.to_string().contains("start: LETTER"))
        },
    },
    Capability {
        name: "later instructions in place",
        switches: LATER,
        goes_out: |wire| {
            let note = SystemMessage { content: "a later note".into(), ..SystemMessage::default() };
            wire.keeps_in_place(note)
        },
    },
    Capability {
        name: "later tools in place",
        switches: LATER_TOOLS,
        goes_out: |wire| {
            let tools_added = vec![ToolDeclaration::new("late", "Comes later.", schema())];
            wire.keeps_in_place(SystemMessage { tools_added, ..SystemMessage::default() })
        },
    },
];

fn picture() -> Content {
    Content::from(vec![InputBlock::text("look"), InputBlock::image(PICTURE, "image/png")])
}

fn result(id: &str, content: Vec<InputBlock>) -> Message {
    ToolResultMessage { tool_call_id: id.into(), tool_name: "read".into(), content, ..ToolResultMessage::default() }
        .into()
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})
}

fn with_tool(constrained_sampling: Option<Value>) -> Context {
    let mut tool = ToolDeclaration::new("read", "Reads.", schema());
    tool.constrained_sampling = constrained_sampling.and_then(|wish| serde_json::from_value(wish).ok());
    Context { tools: vec![tool], system_prompt: Some("be brief".into()), ..Context::from(vec![Message::user("go")]) }
}

fn of_session(cache_retention: CacheRetention) -> StreamOptions {
    StreamOptions { session_id: Some("session".into()), cache_retention, ..StreamOptions::default() }
}

/// Looks at what a wire sends for a model with some switches on.
struct Prober<'a> {
    api: &'a str,
    switches: &'a [&'a str],
}

impl Prober<'_> {
    fn model(&self) -> Model {
        let id = match self.api {
            "bedrock-converse-stream" => "anthropic.claude-sonnet-4-5-v1:0",
            "google-generative-ai" | "google-vertex" => "gemini-3-pro",
            _ => "m",
        };
        let switches = self.switches.iter().map(|name| ((*name).to_owned(), Value::Bool(true)));
        Model {
            id: id.into(),
            name: "M".into(),
            api: self.api.into(),
            provider: "local".into(),
            base_url: "http://127.0.0.1:9/v1".into(),
            reasoning: true,
            input: vec![InputKind::Text, InputKind::Image],
            context_window: 200_000,
            max_tokens: 32_000,
            thinking_level_map: [ThinkingLevel::Low, ThinkingLevel::High]
                .map(|level| (level, Some(level.as_str().to_owned())))
                .into_iter()
                .collect(),
            compat: (!self.switches.is_empty()).then(|| switches.collect()),
            ..Model::default()
        }
    }

    /// A signature that the wire's own decoder might have made.
    fn signature(&self) -> String {
        match self.api {
            "openai-completions" => "reasoning_content".to_owned(),
            "openai-responses" | "azure-openai-responses" | "openai-codex-responses" => {
                json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": THOUGHT}).to_string()
            }
            _ => THOUGHT.to_owned(),
        }
    }

    fn answer(&self, content: Vec<AssistantBlock>) -> Message {
        let model = self.model();
        let stop_reason = match content.iter().any(|block| block.as_tool_call().is_some()) {
            true => StopReason::ToolUse,
            false => StopReason::Stop,
        };
        AssistantMessage {
            content,
            api: model.api,
            provider: model.provider,
            model: model.id,
            stop_reason,
            ..AssistantMessage::default()
        }
        .into()
    }

    /// Headers and body of a request.
    fn sent(&self, context: Context, options: StreamOptions) -> Result<Value, Error> {
        // ChatGPT's key names the account inside; to all others it is a text like any other.
        let key = "e30.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYSJ9fQ.s";
        let options = StreamOptions { api_key: Some(key.into()), ..options };
        let model = self.model();
        let context = context.normalize();
        let request =
            EncodeRequest { model: &model, context: &context, options: &options, concessions: &Concessions::default() };
        let wire = BuiltinWires::default().get(&model.api)?;
        let encoded = wire.encode(&request).map_err(|error| format!("{}: {error}", self.api))?;
        let shown = shown(&encoded);
        Ok(json!({ "headers": shown["headers"], "body": shown["body"] }))
    }

    fn has(&self, messages: Vec<Message>, options: StreamOptions, text: &str) -> Result<bool, Error> {
        Ok(self.sent(Context::from(messages), options)?.to_string().contains(text))
    }

    /// Whether these options change a request.
    fn differs(&self, options: StreamOptions) -> Result<bool, Error> {
        self.differs_from(options, StreamOptions::default())
    }

    fn differs_from(&self, one: StreamOptions, other: StreamOptions) -> Result<bool, Error> {
        Ok(self.sent(with_tool(None), one)? != self.sent(with_tool(None), other)?)
    }

    /// Whether a system message in the middle is sent in another way than folded into the first.
    fn keeps_in_place(&self, later: SystemMessage) -> Result<bool, Error> {
        let mut messages = with_tool(None).normalize().into_messages();
        messages.push(self.answer(vec![AssistantBlock::text("well")]));
        messages.push(later.into());
        messages.push(Message::user("on"));
        let folded = collapse(&messages);
        let sent = |messages: Vec<Message>| self.sent(Context::from(messages), StreamOptions::default());
        Ok(sent(messages)? != sent(folded)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_says_what_the_code_does() {
        let document = std::fs::read_to_string(readme()).unwrap();
        let fresh = with_parts(&document, &parts().unwrap()).unwrap();
        assert!(document == fresh, "crates/pi-ai/README.md is not what the code says: run `cargo xtask wires`");
    }

    #[test]
    fn what_a_wire_cannot_carry_is_told_from_what_a_switch_allows() {
        let named = |name: &str| CAPABILITIES.iter().find(|capability| capability.name == name).unwrap();
        assert_eq!(named("later instructions in place").of("google-generative-ai").unwrap(), "–");
        assert_eq!(named("later instructions in place").of("anthropic-messages").unwrap(), "switch");
        assert_eq!(named("temperature").of("openai-completions").unwrap(), "yes");
    }
}
