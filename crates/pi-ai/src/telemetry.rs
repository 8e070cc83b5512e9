//! A `tracing` span around each request, with the names of OpenTelemetry's conventions for generative AI.
//!
//! When nobody listens, it costs a check of a flag. No text of the conversation is recorded.

use std::task::{Context, Poll};

use tracing::{Span, field::Empty};

use crate::{
    model::Model,
    options::StreamOptions,
    stream::{Advance, MessageBuilder, Source},
};

/// The span of one request.
pub(crate) struct Telemetry {
    span: Span,
}

impl Telemetry {
    pub(crate) fn new(model: &Model, options: &StreamOptions) -> Self {
        let span = tracing::info_span!(
            target: "pi_ai",
            "chat",
            otel.name = Empty,
            otel.kind = "client",
            otel.status_code = Empty,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = provider_name(&model.provider),
            gen_ai.request.model = &*model.id,
            gen_ai.request.max_tokens = options.max_tokens,
            gen_ai.request.temperature = options.temperature,
            gen_ai.conversation.id = options.session_id.as_deref(),
            server.address = Empty,
            server.port = Empty,
            gen_ai.response.id = Empty,
            gen_ai.response.model = Empty,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.cache_creation.input_tokens = Empty,
            error.type = Empty,
        );
        if !span.is_disabled() {
            span.record("otel.name", format!("chat {}", model.id));
            if let Ok(server) = reqwest::Url::parse(&model.base_url) {
                span.record("server.address", server.host_str());
                span.record("server.port", server.port_or_known_default());
            }
        }
        Self { span }
    }

    /// Records what a source does.
    pub(crate) fn around<S: Source>(self, source: S) -> Recorded<S> {
        Recorded { telemetry: self, source }
    }

    fn finish(&self, answer: &MessageBuilder) {
        if self.span.is_disabled() {
            return;
        }
        let (span, message) = (&self.span, answer.message());
        span.record("gen_ai.response.id", message.response_id.as_deref());
        span.record("gen_ai.response.model", message.response_model.as_deref().unwrap_or(&message.model));
        span.record(
            "gen_ai.response.finish_reasons",
            tracing::field::debug([message.raw_stop_reason.as_deref().unwrap_or_default()]),
        );
        span.record("gen_ai.usage.input_tokens", message.usage.all_input());
        span.record("gen_ai.usage.output_tokens", message.usage.output);
        span.record("gen_ai.usage.cache_read.input_tokens", message.usage.cache_read);
        span.record("gen_ai.usage.cache_creation.input_tokens", message.usage.cache_write);
        if let Some(error) = answer.error() {
            span.record("otel.status_code", "ERROR");
            match error.status() {
                Some(status) => span.record("error.type", status),
                None => span.record("error.type", tracing::field::debug(error.kind())),
            };
        }
    }
}

/// A source within a span.
pub(crate) struct Recorded<S> {
    telemetry: Telemetry,
    source: S,
}

impl<S: Source> Source for Recorded<S> {
    fn poll_advance(&mut self, cx: &mut Context<'_>, answer: &mut MessageBuilder) -> Poll<Advance> {
        if self.telemetry.span.is_disabled() {
            return self.source.poll_advance(cx, answer);
        }
        let advance = {
            let _entered = self.telemetry.span.enter();
            self.source.poll_advance(cx, answer)
        };
        if answer.has_ended() {
            self.telemetry.finish(answer);
        }
        advance
    }
}

/// The provider's name in the conventions, where it differs from ours.
fn provider_name(provider: &str) -> &str {
    match provider {
        "amazon-bedrock" => "aws.bedrock",
        "azure" => "azure.ai.openai",
        "google" => "gcp.gemini",
        "google-vertex" => "gcp.vertex_ai",
        "mistral" => "mistral_ai",
        "openai-codex" => "openai",
        "xai" => "x_ai",
        other => other,
    }
}
