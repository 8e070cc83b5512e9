//! What differs between servers that speak this wire.

use serde_json::{Map, Value};

use crate::{
    api::{compat::Switches, constraint::GrammarMode, headers::is_openrouter},
    model::Model,
    transcript::{LaterSystemMessages, ToolChangeSupport},
};

/// The switches of one model: what it sets itself, else what is known of its provider or host.
#[derive(Clone, Debug)]
pub(super) struct Compat<'a> {
    pub(super) store: bool,
    pub(super) developer_role: bool,
    pub(super) reasoning_effort: bool,
    pub(super) usage_in_streaming: bool,
    pub(super) finish_reason: bool,
    pub(super) max_tokens_field: &'a str,
    pub(super) tool_result_name: bool,
    pub(super) assistant_after_tool_result: bool,
    pub(super) non_null_assistant_content: bool,
    pub(super) tools_with_tool_history: bool,
    pub(super) thinking_as_text: bool,
    pub(super) reasoning_content_on_assistant_messages: bool,
    pub(super) thinking_format: &'a str,
    pub(super) thinking_budget_field: Option<&'a str>,
    pub(super) open_router_routing: Option<&'a Map<String, Value>>,
    pub(super) vercel_gateway_routing: Option<&'a Map<String, Value>>,
    pub(super) chat_template_kwargs: Option<&'a Map<String, Value>>,
    pub(super) chat_template_args: Option<&'a Map<String, Value>>,
    pub(super) vllm_priority: Option<&'a Value>,
    pub(super) zai_tool_stream: bool,
    pub(super) strict_mode: bool,
    pub(super) grammar_tools: GrammarMode,
    pub(super) later_system_messages: LaterSystemMessages,
    pub(super) tool_changes: ToolChangeSupport,
    pub(super) anthropic_cache_control: bool,
    pub(super) session_affinity: Option<SessionAffinity>,
    pub(super) long_cache_retention: bool,
    pub(super) prompt_cache_key: PromptCacheKey,
    /// Ours: servers whose chat template wants user and assistant to alternate.
    pub(super) alternating_roles: bool,
    /// Ours: JSON Schema keywords that the server refuses; they are left out of tools at all depths.
    pub(super) refused_schema_keywords: &'a [Value],
}

/// In which headers the conversation's name goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionAffinity {
    OpenRouter,
    OpenAi,
    /// As `OpenAi`, without the `session_id` header.
    NoSession,
}

/// When the prompt cache key is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptCacheKey {
    /// To OpenAI itself, and with long retention where that is supported.
    Auto,
    Enabled,
    Disabled,
}

impl<'a> Compat<'a> {
    pub(super) fn of(model: &'a Model) -> Self {
        let switches = Switches::of(model);
        let flag = |name, default| switches.flag(name).unwrap_or(default);
        let host = Host::of(model);
        let openrouter = is_openrouter(model);
        let later_system = flag("supportsMidConvoSystemMessages", false);
        let affinity = match switches.text("sessionAffinityFormat") {
            Some("openrouter") => SessionAffinity::OpenRouter,
            Some("openai") => SessionAffinity::OpenAi,
            Some(_) => SessionAffinity::NoSession,
            None if openrouter => SessionAffinity::OpenRouter,
            None => SessionAffinity::OpenAi,
        };
        let cache_format = switches.text("cacheControlFormat");
        Self {
            store: flag("supportsStore", !host.refuses_unknown_fields()),
            developer_role: flag("supportsDeveloperRole", host.openai),
            reasoning_effort: flag("supportsReasoningEffort", !host.has_own_effort()),
            usage_in_streaming: flag("supportsUsageInStreaming", true),
            finish_reason: flag("supportsFinishReason", true),
            max_tokens_field: switches.text("maxTokensField").unwrap_or(match host.takes_max_tokens() {
                true => "max_tokens",
                false => "max_completion_tokens",
            }),
            tool_result_name: flag("requiresToolResultName", false),
            assistant_after_tool_result: flag("requiresAssistantAfterToolResult", false),
            non_null_assistant_content: flag("requiresNonNullAssistantContent", false),
            tools_with_tool_history: flag("requiresToolsWithToolHistory", false),
            thinking_as_text: flag("requiresThinkingAsText", false),
            reasoning_content_on_assistant_messages: flag("requiresReasoningContentOnAssistantMessages", host.deepseek),
            thinking_format: switches.text("thinkingFormat").unwrap_or(host.thinking_format(openrouter)),
            thinking_budget_field: switches.text("thinkingTokenBudgetField").or(flag(
                "supportsThinkingTokenBudget",
                false,
            )
            .then_some("thinking_token_budget")),
            open_router_routing: switches.object("openRouterRouting"),
            vercel_gateway_routing: switches.object("vercelGatewayRouting"),
            chat_template_kwargs: switches.object("chatTemplateKwargs"),
            chat_template_args: switches.object("chatTemplateArgs"),
            vllm_priority: switches.get("vllmPriority"),
            zai_tool_stream: flag("zaiToolStream", false),
            strict_mode: flag("supportsStrictMode", false),
            grammar_tools: GrammarMode::from_flag(flag("supportsOpenAIGrammarTools", false)),
            later_system_messages: match later_system {
                true => LaterSystemMessages::Supported,
                false => LaterSystemMessages::Unsupported,
            },
            tool_changes: match later_system && flag("supportsMidConvoToolAdditions", false) {
                true => ToolChangeSupport::Additions,
                false => ToolChangeSupport::None,
            },
            anthropic_cache_control: match cache_format {
                Some(format) => format == "anthropic",
                None => model.provider == "openrouter" && model.id.starts_with("anthropic/"),
            },
            session_affinity: flag("sendSessionAffinityHeaders", openrouter).then_some(affinity),
            long_cache_retention: flag("supportsLongCacheRetention", !host.lacks_long_retention()),
            prompt_cache_key: match switches.text("promptCacheKeyMode") {
                Some("enabled") => PromptCacheKey::Enabled,
                Some("disabled") => PromptCacheKey::Disabled,
                _ => PromptCacheKey::Auto,
            },
            alternating_roles: flag("requiresAlternatingRoles", false),
            refused_schema_keywords: switches.list("refusedSchemaKeywords"),
        }
    }
}

/// Who serves a model, as far as this wire has to know.
#[derive(Clone, Copy, Debug)]
struct Host {
    openai: bool,
    zai: bool,
    together: bool,
    moonshot: bool,
    cloudflare_workers: bool,
    cloudflare_gateway: bool,
    nvidia: bool,
    ant_ling: bool,
    cerebras: bool,
    deepseek: bool,
    grok: bool,
    chutes: bool,
    opencode: bool,
}

impl Host {
    fn of(model: &Model) -> Self {
        let url = model.base_url.as_str();
        let is = |providers: &[&str], hosts: &[&str]| {
            providers.contains(&model.provider.as_str()) || hosts.iter().any(|host| url.contains(host))
        };
        Self {
            openai: is(&["openai"], &["api.openai.com"]),
            zai: is(&["zai", "zai-coding-cn"], &["api.z.ai", "open.bigmodel.cn"]),
            together: is(&["together"], &["api.together.ai", "api.together.xyz"]),
            moonshot: is(&["moonshotai", "moonshotai-cn"], &["api.moonshot."]),
            cloudflare_workers: is(&["cloudflare-workers-ai"], &["api.cloudflare.com"]),
            cloudflare_gateway: is(&["cloudflare-ai-gateway"], &["gateway.ai.cloudflare.com"]),
            nvidia: is(&["nvidia"], &["integrate.api.nvidia.com"]),
            ant_ling: is(&["ant-ling"], &["api.ant-ling.com"]),
            cerebras: is(&["cerebras"], &["cerebras.ai"]),
            deepseek: model.provider == "deepseek" || url.to_ascii_lowercase().contains("deepseek.com"),
            grok: is(&["xai"], &["api.x.ai"]),
            chutes: is(&[], &["chutes.ai"]),
            opencode: is(&["opencode"], &["opencode.ai"]),
        }
    }

    fn refuses_unknown_fields(self) -> bool {
        self.nvidia
            || self.cerebras
            || self.grok
            || self.together
            || self.chutes
            || self.deepseek
            || self.zai
            || self.moonshot
            || self.opencode
            || self.cloudflare_workers
            || self.cloudflare_gateway
            || self.ant_ling
    }

    fn takes_max_tokens(self) -> bool {
        self.chutes
            || self.deepseek
            || self.moonshot
            || self.cloudflare_gateway
            || self.together
            || self.nvidia
            || self.ant_ling
            || self.zai
    }

    /// Says effort in another way, or not at all.
    fn has_own_effort(self) -> bool {
        self.grok
            || self.zai
            || self.moonshot
            || self.together
            || self.cloudflare_gateway
            || self.nvidia
            || self.ant_ling
    }

    fn lacks_long_retention(self) -> bool {
        self.together || self.cloudflare_workers || self.cloudflare_gateway || self.nvidia || self.ant_ling
    }

    fn thinking_format(self, openrouter: bool) -> &'static str {
        match self {
            Self { deepseek: true, .. } => "deepseek",
            Self { zai: true, .. } => "zai",
            Self { together: true, .. } => "together",
            Self { ant_ling: true, .. } => "ant-ling",
            _ if openrouter => "openrouter",
            _ => "openai",
        }
    }
}
