//! Letting extensions see what goes to a provider and what comes back.

use std::sync::Weak;

use pi_ai::{
    CancellationToken,
    options::{Headers, ProviderHooks, RawStreamEvent, ResponseHead, provider_hook},
};
use serde_json::Value;

use super::Inner;
use crate::extensions::{
    EventKind,
    event::{self, AfterProviderResponseEvent, ProviderStreamEventEvent},
};

impl Inner {
    /// Has requests of the next run tell what extensions handle; what nobody handles costs nothing. Handlers that are
    /// registered during a run count from the next one on.
    pub(super) fn watch_provider(&self) {
        let has = |kind| self.extensions.has_handlers(kind);
        let mut options = self.agent.stream_options();
        let hooks = &options.hooks;
        let is_as_wanted = hooks.on_payload.is_some() == has(EventKind::BeforeProviderRequest)
            && hooks.on_headers.is_some() == has(EventKind::BeforeProviderHeaders)
            && hooks.on_response.is_some() == has(EventKind::AfterProviderResponse)
            && hooks.on_stream_event.is_some() == has(EventKind::ProviderStreamEvent);
        if is_as_wanted {
            return;
        }
        let this = || self.this.clone();
        options.hooks = ProviderHooks {
            on_payload: has(EventKind::BeforeProviderRequest).then(|| on_payload(this())),
            on_headers: has(EventKind::BeforeProviderHeaders).then(|| on_headers(this())),
            on_response: has(EventKind::AfterProviderResponse).then(|| on_response(this())),
            on_stream_event: has(EventKind::ProviderStreamEvent).then(|| on_stream_event(this())),
            on_retry: options.hooks.on_retry.take(),
        };
        self.agent.set_stream_options(options);
    }

    fn signal(&self) -> CancellationToken {
        self.state().run.signal.clone()
    }
}

fn on_payload(inner: Weak<Inner>) -> pi_ai::options::ProviderHook<Value, Option<Value>> {
    provider_hook(async move |payload: Value| {
        let Some(inner) = inner.upgrade() else { return Ok(None) };
        Ok(inner.extensions.provider_request(&inner.signal(), payload).await)
    })
}

fn on_headers(inner: Weak<Inner>) -> pi_ai::options::ProviderHook<Headers, Headers> {
    provider_hook(async move |headers: Headers| {
        let Some(inner) = inner.upgrade() else { return Ok(headers) };
        Ok(inner.extensions.provider_headers(&inner.signal(), headers).await)
    })
}

fn on_response(inner: Weak<Inner>) -> pi_ai::options::ProviderHook<ResponseHead> {
    provider_hook(async move |head: ResponseHead| {
        if let Some(inner) = inner.upgrade() {
            let payload = || AfterProviderResponseEvent::new(head.status, head.headers);
            inner.extensions.notify(event::AfterProviderResponse, &inner.signal(), payload).await;
        }
        Ok(())
    })
}

fn on_stream_event(inner: Weak<Inner>) -> pi_ai::options::ProviderHook<RawStreamEvent> {
    provider_hook(async move |raw: RawStreamEvent| {
        let Some(inner) = inner.upgrade() else { return Ok(()) };
        let Some(model) = inner.state().selection.model.clone() else { return Ok(()) };
        let names = (model.provider.clone(), model.api.clone(), model.id.clone());
        let payload = || ProviderStreamEventEvent::new(names, raw.name, raw.data);
        inner.extensions.notify(event::ProviderStreamEvent, &inner.signal(), payload).await;
        Ok(())
    })
}
