//! The shape of `models.json`, and the check of a file against it.

use jsonc_parser::{
    ast,
    common::{Range, Ranged},
};

use super::Problem;

/// What a value must be. Keys that a shape does not name are let through.
#[derive(Debug)]
enum Shape {
    Anything,
    Text,
    FilledText,
    TextOrNull,
    Bool,
    Number,
    AboveZero,
    Whole { min: f64, max: f64 },
    OneOf(&'static [&'static str]),
    Object(&'static [Field]),
    MapOf(&'static Shape),
    ListOf(&'static Shape),
}

#[derive(Debug)]
struct Field {
    name: &'static str,
    shape: Shape,
    presence: Presence,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Presence {
    Required,
    Optional,
}

const fn required(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, presence: Presence::Required }
}

const fn optional(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, presence: Presence::Optional }
}

static FILE: Shape = Shape::Object(&[optional("$schema", Shape::Text), required("providers", Shape::MapOf(&PROVIDER))]);

static PROVIDER: Shape = Shape::Object(&[
    optional("name", Shape::FilledText),
    optional("baseUrl", Shape::FilledText),
    optional("apiKey", Shape::FilledText),
    optional("api", Shape::FilledText),
    optional("oauth", Shape::OneOf(&["radius"])),
    optional("headers", Shape::MapOf(&Shape::Text)),
    optional("compat", Shape::Object(COMPAT)),
    optional("authHeader", Shape::Bool),
    optional("models", Shape::ListOf(&MODEL)),
    optional("modelOverrides", Shape::MapOf(&OVERRIDE)),
]);

static MODEL: Shape = Shape::Object(&[
    required("id", Shape::FilledText),
    optional("name", Shape::FilledText),
    optional("api", Shape::FilledText),
    optional("baseUrl", Shape::FilledText),
    optional("reasoning", Shape::Bool),
    optional("thinkingLevelMap", Shape::Object(LEVEL_MAP)),
    optional("input", Shape::ListOf(&Shape::OneOf(&["text", "image"]))),
    optional("inputLimits", Shape::Object(INPUT_LIMITS)),
    optional("cost", Shape::Object(COST)),
    optional("promptCache", Shape::Object(PROMPT_CACHE)),
    optional("contextWindow", Shape::AboveZero),
    optional("maxTokens", Shape::AboveZero),
    optional("samplingParams", Shape::MapOf(&Shape::Anything)),
    optional("samplingParamsByThinkingLevel", Shape::Object(SAMPLING_BY_LEVEL)),
    optional("headers", Shape::MapOf(&Shape::Text)),
    optional("compat", Shape::Object(COMPAT)),
]);

static OVERRIDE: Shape = Shape::Object(&[
    optional("name", Shape::FilledText),
    optional("reasoning", Shape::Bool),
    optional("thinkingLevelMap", Shape::Object(LEVEL_MAP)),
    optional("input", Shape::ListOf(&Shape::OneOf(&["text", "image"]))),
    optional("inputLimits", Shape::Object(INPUT_LIMITS)),
    optional("cost", Shape::Object(PARTIAL_COST)),
    optional("promptCache", Shape::Object(PROMPT_CACHE)),
    optional("contextWindow", Shape::AboveZero),
    optional("maxTokens", Shape::AboveZero),
    optional("samplingParams", Shape::MapOf(&Shape::Anything)),
    optional("samplingParamsByThinkingLevel", Shape::Object(SAMPLING_BY_LEVEL)),
    optional("headers", Shape::MapOf(&Shape::Text)),
    optional("compat", Shape::Object(COMPAT)),
]);

/// One field per thinking level.
macro_rules! by_level {
    ($shape:expr) => {
        &[
            optional("off", $shape),
            optional("minimal", $shape),
            optional("low", $shape),
            optional("medium", $shape),
            optional("high", $shape),
            optional("xhigh", $shape),
            optional("max", $shape),
        ]
    };
}

const LEVEL_MAP: &[Field] = by_level!(Shape::TextOrNull);
const SAMPLING_BY_LEVEL: &[Field] = by_level!(Shape::MapOf(&Shape::Anything));

const COST: &[Field] = &[
    required("input", Shape::Number),
    required("output", Shape::Number),
    required("cacheRead", Shape::Number),
    required("cacheWrite", Shape::Number),
    optional("tiers", Shape::ListOf(&TIER)),
];

const PARTIAL_COST: &[Field] = &[
    optional("input", Shape::Number),
    optional("output", Shape::Number),
    optional("cacheRead", Shape::Number),
    optional("cacheWrite", Shape::Number),
    optional("tiers", Shape::ListOf(&TIER)),
];

static TIER: Shape = Shape::Object(&[
    required("inputTokensAbove", Shape::Number),
    required("input", Shape::Number),
    required("output", Shape::Number),
    required("cacheRead", Shape::Number),
    required("cacheWrite", Shape::Number),
]);

const PROMPT_CACHE: &[Field] = &[optional("short", Shape::AboveZero), optional("long", Shape::AboveZero)];

const COUNT: Shape = Shape::Whole { min: 1.0, max: f64::INFINITY };

const INPUT_LIMITS: &[Field] = &[
    optional("maxRequestBytes", COUNT),
    optional(
        "images",
        Shape::Object(&[
            optional("maxPerMessage", COUNT),
            optional("maxPerRequest", COUNT),
            optional(
                "resize",
                Shape::Object(&[
                    optional("maxWidth", COUNT),
                    optional("maxHeight", COUNT),
                    optional("maxBytes", COUNT),
                    optional("jpegQuality", Shape::Whole { min: 1.0, max: 100.0 }),
                ]),
            ),
        ]),
    ),
];

/// The switches of every wire: which of them a model's wire reads is not the file's business.
const COMPAT: &[Field] = &[
    optional("allowEmptySignature", Shape::Bool),
    optional(
        "allowedFallbackModels",
        Shape::ListOf(&Shape::Object(&[
            required("provider", Shape::FilledText),
            required("model", Shape::FilledText),
            required("cost", Shape::Object(COST)),
        ])),
    ),
    optional("cacheControlFormat", Shape::OneOf(&["anthropic"])),
    optional("chatTemplateArgs", Shape::MapOf(&Shape::Anything)),
    optional("chatTemplateKwargs", Shape::MapOf(&Shape::Anything)),
    optional("forceAdaptiveThinking", Shape::Bool),
    optional("maxTokensField", Shape::OneOf(&["max_completion_tokens", "max_tokens"])),
    optional("openRouterRouting", Shape::MapOf(&Shape::Anything)),
    optional("promptCacheKeyMode", Shape::OneOf(&["auto", "enabled", "disabled"])),
    optional("requiresAssistantAfterToolResult", Shape::Bool),
    optional("requiresNonNullAssistantContent", Shape::Bool),
    optional("requiresReasoningContentOnAssistantMessages", Shape::Bool),
    optional("requiresThinkingAsText", Shape::Bool),
    optional("requiresToolResultName", Shape::Bool),
    optional("requiresToolsWithToolHistory", Shape::Bool),
    optional("sendSessionAffinityHeaders", Shape::Bool),
    optional("sessionAffinityFormat", Shape::OneOf(&["openai", "openai-nosession", "openrouter"])),
    optional("supportsAdditionalTools", Shape::Bool),
    optional("supportsCacheControlOnTools", Shape::Bool),
    optional("supportsDeveloperRole", Shape::Bool),
    optional("supportsEagerToolInputStreaming", Shape::Bool),
    optional("supportsExplicitPromptCacheMode", Shape::Bool),
    optional("supportsFinishReason", Shape::Bool),
    optional("supportsLongCacheRetention", Shape::Bool),
    optional("supportsMaxOutputTokens", Shape::Bool),
    optional("supportsMessageThreads", Shape::Bool),
    optional("supportsMidConvoEffort", Shape::Bool),
    optional("supportsMidConvoSystemMessages", Shape::Bool),
    optional("supportsMidConvoToolAdditions", Shape::Bool),
    optional("supportsMidConvoToolChanges", Shape::Bool),
    optional("supportsOpenAIGrammarTools", Shape::Bool),
    optional("supportsReasoningEffort", Shape::Bool),
    optional("supportsStore", Shape::Bool),
    optional("supportsStrictMode", Shape::Bool),
    optional("supportsStrictTools", Shape::Bool),
    optional("supportsTemperature", Shape::Bool),
    optional("supportsThinkingTokenBudget", Shape::Bool),
    optional("supportsToolSearch", Shape::Bool),
    optional("supportsUsageInStreaming", Shape::Bool),
    optional(
        "thinkingFormat",
        Shape::OneOf(&[
            "openai",
            "openrouter",
            "deepseek",
            "together",
            "baseten",
            "zai",
            "qwen",
            "chat-template",
            "qwen-chat-template",
            "string-thinking",
            "ant-ling",
        ]),
    ),
    optional(
        "thinkingTokenBudgetField",
        Shape::OneOf(&["thinking_token_budget", "thinking_budget", "thinking_budget_tokens"]),
    ),
    optional("vercelGatewayRouting", Shape::MapOf(&Shape::Anything)),
    optional("vllmPriority", Shape::Number),
    optional("zaiToolStream", Shape::Bool),
];

/// What in a file is not as it must be; nothing when all is well.
pub(super) fn check(text: &str, file: &ast::Value<'_>) -> Vec<Problem> {
    let mut check = Check { text, problems: Vec::new() };
    check.value(&FILE, file, "");
    check.problems
}

struct Check<'a> {
    text: &'a str,
    problems: Vec<Problem>,
}

impl Check<'_> {
    fn value(&mut self, shape: &Shape, value: &ast::Value<'_>, at: &str) {
        use ast::Value as Json;
        let fits = match (shape, value) {
            (Shape::Anything, _)
            | (Shape::Text, Json::StringLit(_))
            | (Shape::TextOrNull, Json::StringLit(_) | Json::NullKeyword(_))
            | (Shape::Bool, Json::BooleanLit(_)) => true,
            (Shape::FilledText, Json::StringLit(text)) => !text.value.is_empty(),
            (Shape::OneOf(names), Json::StringLit(text)) => names.contains(&&*text.value),
            (Shape::Number, Json::NumberLit(number)) => finite(number).is_some(),
            (Shape::AboveZero, Json::NumberLit(number)) => finite(number).is_some_and(|number| number > 0.0),
            (Shape::Whole { min, max }, Json::NumberLit(number)) => {
                finite(number).is_some_and(|number| number.fract() == 0.0 && (*min..=*max).contains(&number))
            }
            (Shape::Object(fields), Json::Object(object)) => return self.object(fields, object, at),
            (Shape::MapOf(shape), Json::Object(object)) => {
                for property in &object.properties {
                    self.value(shape, &property.value, &joined(at, property.name.as_str()));
                }
                true
            }
            (Shape::ListOf(shape), Json::Array(list)) => {
                for (index, element) in list.elements.iter().enumerate() {
                    self.value(shape, element, &format!("{at}[{index}]"));
                }
                true
            }
            _ => false,
        };
        if !fits {
            self.report(value.range(), at, shape.expectation(), found(shape, value));
        }
    }

    fn object(&mut self, fields: &[Field], object: &ast::Object<'_>, at: &str) {
        for field in fields {
            let mut found = object.properties.iter().filter(|property| property.name.as_str() == field.name).peekable();
            if found.peek().is_none() && field.presence == Presence::Required {
                self.report(object.range, &joined(at, field.name), field.shape.expectation(), "nothing".into());
            }
            for property in found {
                self.value(&field.shape, &property.value, &joined(at, field.name));
            }
        }
    }

    fn report(&mut self, range: Range, at: &str, expected: String, found: String) {
        let line = line_of(self.text, range.start);
        let at = if at.is_empty() { "the file".to_owned() } else { at.to_owned() };
        self.problems.push(Problem { line, at, expected, found });
    }
}

impl Shape {
    fn expectation(&self) -> String {
        match self {
            Self::Anything => "any value".into(),
            Self::Text => "text".into(),
            Self::FilledText => "text that is not empty".into(),
            Self::TextOrNull => "text or null".into(),
            Self::Bool => "true or false".into(),
            Self::Number => "a number".into(),
            Self::AboveZero => "a number above 0".into(),
            Self::Whole { min, max } if max.is_finite() => format!("a whole number from {min} to {max}"),
            Self::Whole { min, .. } => format!("a whole number from {min} on"),
            Self::OneOf([name]) => format!("\"{name}\""),
            Self::OneOf(names) => format!("one of \"{}\"", names.join("\", \"")),
            Self::Object(_) | Self::MapOf(_) => "an object".into(),
            Self::ListOf(_) => "a list".into(),
        }
    }
}

/// What was found. Free text is not quoted: it may be a key.
fn found(shape: &Shape, value: &ast::Value<'_>) -> String {
    match value {
        ast::Value::StringLit(text) if matches!(shape, Shape::OneOf(_)) => format!("{:?}", text.value),
        ast::Value::StringLit(text) if text.value.is_empty() => "empty text".into(),
        ast::Value::StringLit(_) => "text".into(),
        ast::Value::NumberLit(number) => format!("the number {}", number.value),
        ast::Value::BooleanLit(boolean) => boolean.value.to_string(),
        ast::Value::Object(_) => "an object".into(),
        ast::Value::Array(_) => "a list".into(),
        ast::Value::NullKeyword(_) => "null".into(),
    }
}

fn finite(number: &ast::NumberLit<'_>) -> Option<f64> {
    number.value.parse().ok().filter(|number: &f64| number.is_finite())
}

fn joined(at: &str, key: &str) -> String {
    if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") }
}

/// The line of a byte, counted from 1.
pub(super) fn line_of(text: &str, byte: usize) -> usize {
    1 + text.as_bytes()[..byte.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}
