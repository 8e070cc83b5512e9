//! What differs between servers that speak this wire.

use serde_json::Value;

use crate::{
    api::{compat::Switches, headers::is_openrouter},
    model::{Model, ModelCost},
    transcript::LaterSystemMessages,
};

/// The switches of one model: what it sets itself, else what is known of its host.
#[derive(Clone, Debug)]
pub(super) struct Compat<'a> {
    pub(super) eager_tool_input_streaming: bool,
    pub(super) long_cache_retention: bool,
    /// The header that the conversation's name goes into.
    pub(super) session_header: Option<&'static str>,
    pub(super) cache_control_on_tools: bool,
    pub(super) temperature: bool,
    pub(super) empty_signature: bool,
    pub(super) strict_tools: bool,
    pub(super) later_system_messages: LaterSystemMessages,
    pub(super) tool_changes_in_place: bool,
    pub(super) message_threads: bool,
    /// Effort is said inside the conversation.
    pub(super) managed_effort: bool,
    pub(super) adaptive_thinking: bool,
    pub(super) fallback_models: &'a [Value],
    /// Ours: JSON Schema keywords that the server refuses; they are left out of tools at all depths.
    pub(super) refused_schema_keywords: &'a [Value],
}

impl<'a> Compat<'a> {
    pub(super) fn of(model: &'a Model) -> Self {
        let switches = Switches::of(model);
        let flag = |name, default| switches.flag(name).unwrap_or(default);
        let openrouter = is_openrouter(model);
        let session_header = match switches.text("sessionAffinityFormat") {
            Some("openrouter") => "x-session-id",
            None if openrouter => "x-session-id",
            _ => "x-session-affinity",
        };
        let later_system = flag("supportsMidConvoSystemMessages", false);
        Self {
            eager_tool_input_streaming: flag("supportsEagerToolInputStreaming", true),
            long_cache_retention: flag("supportsLongCacheRetention", true),
            session_header: flag("sendSessionAffinityHeaders", openrouter).then_some(session_header),
            cache_control_on_tools: flag("supportsCacheControlOnTools", true),
            temperature: flag("supportsTemperature", true),
            empty_signature: flag("allowEmptySignature", false),
            strict_tools: flag("supportsStrictTools", false),
            later_system_messages: match later_system {
                true => LaterSystemMessages::Supported,
                false => LaterSystemMessages::Unsupported,
            },
            tool_changes_in_place: later_system && flag("supportsMidConvoToolChanges", false),
            // A gateway that drops the field would answer without the earlier conversation.
            message_threads: flag("supportsMessageThreads", model.base_url.contains("api.anthropic.com")),
            managed_effort: flag("supportsMidConvoEffort", false),
            adaptive_thinking: flag("forceAdaptiveThinking", false),
            fallback_models: switches.list("allowedFallbackModels"),
            refused_schema_keywords: switches.list("refusedSchemaKeywords"),
        }
    }

    /// The prices of the model that answered in place of the one that was asked.
    pub(super) fn fallback_cost(&self, model: &Model, answered: &str) -> Option<ModelCost> {
        let is_it =
            |fallback: &&Value| fallback["provider"] == *model.provider.as_str() && fallback["model"] == answered;
        let cost = &self.fallback_models.iter().find(is_it)?["cost"];
        serde_json::from_value(cost.clone()).ok()
    }
}
