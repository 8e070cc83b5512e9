//! Which providers there are.

use std::sync::OnceLock;

use super::{Ambient, CatalogProvider, KeyKind, KeyPlacement, KeyVariable};

/// All built-in providers, ordered by id.
pub fn providers() -> &'static [CatalogProvider] {
    &PROVIDERS
}

const fn key(name: &'static str) -> KeyVariable {
    KeyVariable { name, holds: KeyKind::Key }
}

const fn bearer(name: &'static str) -> KeyVariable {
    KeyVariable { name, holds: KeyKind::Bearer }
}

/// A provider and the data file of the same name.
macro_rules! provider {
    ($id:literal, $name:literal, $base_url:literal, $default_model:literal, [$($key:expr),*]) => {
        CatalogProvider {
            id: $id,
            name: $name,
            base_url: $base_url,
            default_model: $default_model,
            keys: &[$($key),*],
            required: &[],
            ambient: Ambient::None,
            placement: KeyPlacement::Wire,
            data: include_str!(concat!("data/", $id, ".tsv")),
            entries: OnceLock::new(),
        }
    };
}

impl CatalogProvider {
    const fn ambient(mut self, ambient: Ambient) -> Self {
        self.ambient = ambient;
        self
    }

    const fn required(mut self, variables: &'static [&'static str]) -> Self {
        self.required = variables;
        self
    }

    const fn placement(mut self, placement: KeyPlacement) -> Self {
        self.placement = placement;
        self
    }
}

#[rustfmt::skip]
static PROVIDERS: [CatalogProvider; 41] = [
    provider!("amazon-bedrock", "Amazon Bedrock", "", "us.anthropic.claude-opus-5-5",
        []).ambient(Ambient::Aws),
    provider!("ant-ling", "Ant Ling", "https://api.ant-ling.com/v1", "Ring-2.6-1T",
        [key("ANT_LING_API_KEY")]),
    provider!("anthropic", "Anthropic", "https://api.anthropic.com", "claude-opus-5-5",
        [bearer("ANTHROPIC_AUTH_TOKEN"), key("ANTHROPIC_OAUTH_TOKEN"), key("ANTHROPIC_API_KEY")]),
    provider!("azure", "Azure", "", "gpt-6.2-sol",
        [key("AZURE_OPENAI_API_KEY")]),
    provider!("baseten", "Baseten", "https://inference.baseten.co/v1", "zai-org/GLM-5.3",
        [key("BASETEN_API_KEY")]),
    provider!("cerebras", "Cerebras", "https://api.cerebras.ai/v1", "gpt-oss-120b",
        [key("CEREBRAS_API_KEY")]),
    provider!("cloudflare-ai-gateway", "Cloudflare AI Gateway", "", "workers-ai/@cf/moonshotai/kimi-k2.7-code",
        [key("CLOUDFLARE_API_KEY")])
        .required(&["CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_GATEWAY_ID"]).placement(KeyPlacement::CloudflareGateway),
    provider!("cloudflare-workers-ai", "Cloudflare Workers AI", "https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1", "@cf/moonshotai/kimi-k2.7-code",
        [key("CLOUDFLARE_API_KEY")]).required(&["CLOUDFLARE_ACCOUNT_ID"]),
    provider!("deepseek", "DeepSeek", "https://api.deepseek.com", "deepseek-v4-pro",
        [key("DEEPSEEK_API_KEY")]),
    provider!("fireworks", "Fireworks", "https://api.fireworks.ai/inference", "accounts/fireworks/models/kimi-k3",
        [key("FIREWORKS_API_KEY")]),
    provider!("github-copilot", "GitHub Copilot", "https://api.individual.githubcopilot.com", "gpt-6.1-sol",
        [key("COPILOT_GITHUB_TOKEN")]),
    provider!("google", "Google", "https://generativelanguage.googleapis.com/v1beta", "gemini-4-argon",
        [key("GEMINI_API_KEY")]),
    provider!("google-vertex", "Google Vertex AI", "", "gemini-4-argon",
        [key("GOOGLE_CLOUD_API_KEY")]).ambient(Ambient::GoogleCloud),
    provider!("groq", "Groq", "https://api.groq.com/openai/v1", "openai/gpt-oss-120b",
        [key("GROQ_API_KEY")]),
    provider!("huggingface", "Hugging Face", "https://router.huggingface.co/v1", "moonshotai/Kimi-K2.7-Code",
        [key("HF_TOKEN")]),
    provider!("kimi-coding", "Kimi For Coding", "https://api.kimi.com/coding/v1", "kimi-for-coding",
        [key("KIMI_API_KEY")]),
    provider!("meta", "Meta", "https://api.meta.ai/v1", "muse-spark-1.3",
        [key("META_API_KEY")]),
    provider!("minimax", "MiniMax", "https://api.minimax.io/anthropic", "MiniMax-M3",
        [key("MINIMAX_API_KEY")]),
    provider!("minimax-cn", "MiniMax CN", "https://api.minimaxi.com/anthropic", "MiniMax-M3",
        [key("MINIMAX_CN_API_KEY")]),
    provider!("mistral", "Mistral", "https://api.mistral.ai", "devstral-medium-latest",
        [key("MISTRAL_API_KEY")]),
    provider!("moonshotai", "Moonshot AI", "https://api.moonshot.ai/v1", "kimi-k2.7-code",
        [key("MOONSHOT_API_KEY")]),
    provider!("moonshotai-cn", "Moonshot AI CN", "https://api.moonshot.cn/v1", "kimi-k2.7-code",
        [key("MOONSHOT_API_KEY")]),
    provider!("nvidia", "NVIDIA", "https://integrate.api.nvidia.com/v1", "nvidia/nemotron-3.5-super-vl-120b-a12b",
        [key("NVIDIA_API_KEY")]),
    provider!("openai", "OpenAI", "https://api.openai.com/v1", "gpt-6.2-sol",
        [key("OPENAI_API_KEY")]),
    provider!("openai-codex", "OpenAI Codex", "https://chatgpt.com/backend-api", "gpt-6.2-sol",
        []),
    provider!("opencode", "OpenCode Zen", "", "kimi-k2.7-code",
        [key("OPENCODE_API_KEY")]),
    provider!("opencode-go", "OpenCode Go", "", "kimi-k3.1-pro",
        [key("OPENCODE_API_KEY")]),
    provider!("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "moonshotai/kimi-k2.7-code",
        [key("OPENROUTER_API_KEY")]),
    provider!("qwen-token-plan", "Qwen Token Plan Team", "https://token-plan.maas.qwencloudapi.com/compatible-mode/v1", "qwen3.8-max",
        [key("QWEN_TOKEN_PLAN_TEAM_API_KEY"), key("QWEN_TOKEN_PLAN_API_KEY")]),
    provider!("qwen-token-plan-cn", "Qwen Token Plan Team CN", "https://token-plan.maas.qianwenaiapi.com/compatible-mode/v1", "qwen3.8-max",
        [key("QWEN_TOKEN_PLAN_TEAM_CN_API_KEY"), key("QWEN_TOKEN_PLAN_CN_API_KEY")]),
    provider!("qwen-token-plan-individual", "Qwen Token Plan Individual", "https://token-plan.maas.qwencloudapi.com/compatible-mode/v1", "qwen3.8-max",
        [key("QWEN_TOKEN_PLAN_INDIVIDUAL_API_KEY"), key("QWEN_TOKEN_PLAN_API_KEY")]),
    provider!("qwen-token-plan-individual-cn", "Qwen Token Plan Individual CN", "https://token-plan.maas.qianwenaiapi.com/compatible-mode/v1", "qwen3.8-max",
        [key("QWEN_TOKEN_PLAN_INDIVIDUAL_CN_API_KEY"), key("QWEN_TOKEN_PLAN_CN_API_KEY")]),
    provider!("together", "Together", "https://api.together.ai/v1", "moonshotai/Kimi-K3",
        [key("TOGETHER_API_KEY")]),
    provider!("vercel-ai-gateway", "Vercel AI Gateway", "https://ai-gateway.vercel.sh", "zai/glm-5.3",
        [key("AI_GATEWAY_API_KEY")]),
    provider!("xai", "xAI", "https://api.x.ai/v1", "grok-4.7",
        [key("XAI_API_KEY")]),
    provider!("xiaomi", "Xiaomi", "https://api.xiaomimimo.com/v1", "mimo-v2.6-pro",
        [key("XIAOMI_API_KEY")]),
    provider!("xiaomi-token-plan-ams", "Xiaomi Token Plan AMS", "https://token-plan-ams.xiaomimimo.com/v1", "mimo-v2.6-pro",
        [key("XIAOMI_TOKEN_PLAN_AMS_API_KEY")]),
    provider!("xiaomi-token-plan-cn", "Xiaomi Token Plan CN", "https://token-plan-cn.xiaomimimo.com/v1", "mimo-v2.6-pro",
        [key("XIAOMI_TOKEN_PLAN_CN_API_KEY")]),
    provider!("xiaomi-token-plan-sgp", "Xiaomi Token Plan SGP", "https://token-plan-sgp.xiaomimimo.com/v1", "mimo-v2.6-pro",
        [key("XIAOMI_TOKEN_PLAN_SGP_API_KEY")]),
    provider!("zai", "Z.AI", "https://api.z.ai/api/coding/paas/v4", "glm-5.3",
        [key("ZAI_API_KEY")]),
    provider!("zai-coding-cn", "Z.AI Coding CN", "https://open.bigmodel.cn/api/coding/paas/v4", "glm-5.3",
        [key("ZAI_CODING_CN_API_KEY")]),
];

/// The order in which providers are tried when nobody says which model to use.
#[rustfmt::skip]
pub const PREFERENCE: [&str; 41] = [
    "amazon-bedrock", "ant-ling", "anthropic", "openai", "azure", "openai-codex", "nvidia", "deepseek", "google",
    "google-vertex", "github-copilot", "openrouter", "vercel-ai-gateway", "xai", "groq", "cerebras", "zai",
    "zai-coding-cn", "mistral", "minimax", "minimax-cn", "moonshotai", "moonshotai-cn", "huggingface", "fireworks",
    "together", "baseten", "opencode", "opencode-go", "kimi-coding", "meta", "cloudflare-workers-ai",
    "cloudflare-ai-gateway", "qwen-token-plan", "qwen-token-plan-cn", "qwen-token-plan-individual",
    "qwen-token-plan-individual-cn", "xiaomi", "xiaomi-token-plan-cn", "xiaomi-token-plan-ams",
    "xiaomi-token-plan-sgp",
];
