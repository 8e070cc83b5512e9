//! Message threads: the provider keeps a conversation, and a request sends only what is new.
//!
//! A thread is continued only when everything before is what the provider has: the settings and messages of the last
//! request and its reply, by their hash. Anything else (an edited history, other tools, a provider that forgot) sends
//! the conversation in full and begins a new thread.

use std::{borrow::Cow, sync::Arc};

use indexmap::IndexMap;
use serde_json::{Value, json, value::RawValue};
use sha2::{Digest, Sha256};

use super::{
    compat::Compat,
    oauth::Access,
    request::reply_messages,
    sessions::{Sessions, Thread},
};
use crate::{
    api::{Concession, EncodeRequest, HttpRequest, Note, headers},
    error::ProviderError,
    id::SessionId,
    message::AssistantMessage,
    model::Model,
    options::Continuation,
};

/// Of the fields that must stay the same within a thread.
const FIXED_FIELDS: [&str; 7] = ["model", "system", "tools", "thinking", "output_config", "tool_choice", "fallbacks"];

/// Refusals that a new thread gets around: it expired, another request was faster, or a fixed setting changed.
const NEEDS_NEW_THREAD: [&str; 4] =
    ["thread_not_found", "thread_already_continued", "thread_continue_in_flight", "thread_fingerprint_mismatch"];

/// What is known of a request that has a thread.
#[derive(Clone)]
pub(super) struct Sent {
    session: SessionId,
    /// Over everything that the provider has now, but the reply.
    hash: Sha256,
    messages: usize,
}

/// The conversation whose thread a request may use.
fn session(request: &EncodeRequest<'_>) -> Option<SessionId> {
    let allowed = request.options.continuation == Continuation::Allowed
        && Compat::of(request.model).message_threads
        && !request.concessions.contains(&Concession::NoThread);
    headers::affinity_session(request).filter(|_| allowed).map(SessionId::from)
}

/// Puts a request into its conversation's thread.
pub(super) fn apply(sessions: &Sessions, request: &EncodeRequest<'_>, http: HttpRequest) -> HttpRequest {
    let Some(session) = session(request).filter(|session| !sessions.refuses_threads(session)) else { return http };
    match threaded(sessions, request, &http, session) {
        Some((body, sent)) => HttpRequest { body, note: Note::new(sent), ..http },
        // A hook made something of the body that has no messages: it is sent as it is.
        None => http,
    }
}

fn threaded(
    sessions: &Sessions,
    request: &EncodeRequest<'_>,
    http: &HttpRequest,
    session: SessionId,
) -> Option<(Vec<u8>, Sent)> {
    let mut fields: IndexMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(&http.body).ok()?;
    let messages: Vec<&RawValue> = serde_json::from_str(fields.get("messages")?.get()).ok()?;
    let known = match request.concessions.contains(&Concession::NewThread) {
        true => None,
        false => sessions.take_thread(&session),
    };
    let mut hash = settings_hash(request.model, &fields, http);
    let mut continued = None;
    for (index, message) in messages.iter().enumerate() {
        if let Some(thread) = known.as_ref().filter(|thread| thread.messages == index)
            && thread.hash == *hash.clone().finalize()
        {
            continued = Some(thread);
        }
        add_message(&mut hash, &serde_json::from_str(message.get()).ok()?);
    }
    let sent = Sent { session, hash, messages: messages.len() };
    let raw = |value: &Value| serde_json::value::to_raw_value(value).ok();
    let thread = match continued {
        Some(thread) => raw(&json!({ "type": "continue", "previous_message_id": thread.reply })),
        None => raw(&json!({ "type": "create" })),
    }?;
    let rest;
    if let Some(known) = continued {
        // The thread has its own.
        fields.shift_remove("system");
        fields.shift_remove("tools");
        rest = serde_json::value::to_raw_value(&messages[known.messages..]).ok()?;
        fields.insert("messages".into(), &rest);
    }
    fields.insert("thread".into(), &thread);
    Some((serde_json::to_vec(&fields).ok()?, sent))
}

/// The settings that a thread is bound to: where it is, and the fixed fields as they are sent.
fn settings_hash(model: &Model, fields: &IndexMap<Cow<'_, str>, &RawValue>, http: &HttpRequest) -> Sha256 {
    let mut hash = Sha256::new();
    let betas = http.headers.iter().find(|(name, _)| name == "anthropic-beta").map(|(_, value)| value.as_str());
    let fixed = FIXED_FIELDS.iter().map(|name| fields.get(*name).map(|value| value.get()));
    for part in [Some(model.provider.as_str()), Some(model.base_url.as_str()), betas].into_iter().chain(fixed) {
        hash.update(part.map_or(u64::MAX, |part| part.len() as u64).to_le_bytes());
        hash.update(part.unwrap_or_default());
    }
    hash
}

/// Adds a message by its meaning: marks of what is to be cached move from request to request, and a text that is
/// marked stands in a block.
fn add_message(hash: &mut Sha256, message: &Value) {
    let text = normal(message).to_string();
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}

fn normal(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "cache_control");
            let fields = kept.map(|(name, value)| match value {
                Value::String(text) if name == "content" => {
                    (name.clone(), normal(&json!([{ "type": "text", "text": text }])))
                }
                value => (name.clone(), normal(value)),
            });
            // In one order, whoever wrote them.
            let mut fields: Vec<(String, Value)> = fields.collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(fields.into_iter().collect())
        }
        scalar => scalar.clone(),
    }
}

/// What a refusal says about threads.
pub(super) fn concession(sessions: &Sessions, sent: &HttpRequest, refusal: &ProviderError) -> Option<Concession> {
    let thread = sent.note.get::<Sent>()?;
    let body: Value = serde_json::from_str(refusal.body().unwrap_or_default()).unwrap_or_default();
    let code = body["error"]["details"]["error_code"].as_str();
    let unsupported = match code {
        Some(code) if NEEDS_NEW_THREAD.contains(&code) => return Some(Concession::NewThread),
        Some(code) => code == "thread_unsupported_request",
        // A server that does not know the field has no code for it.
        None => refusal.status() == Some(400) && refusal.message().contains("thread"),
    };
    unsupported.then(|| {
        sessions.refuse_threads(&thread.session);
        Concession::NoThread
    })
}

/// Remembers where a conversation can go on, once its reply is complete.
pub(super) struct Recorder {
    sessions: Arc<Sessions>,
    sent: Sent,
    model: Model,
    access: Access,
}

impl Recorder {
    pub(super) fn new(
        sessions: &Arc<Sessions>,
        request: &EncodeRequest<'_>,
        sent: &HttpRequest,
        access: Access,
    ) -> Option<Self> {
        let sent = sent.note.get::<Sent>()?.clone();
        Some(Self { sessions: sessions.clone(), sent, model: request.model.clone(), access })
    }

    pub(super) fn record(self, reply: &AssistantMessage) {
        // The provider does not keep what another model answered.
        let (Some(id), None) = (&reply.response_id, &reply.response_model) else { return };
        let Sent { session, mut hash, mut messages } = self.sent;
        for message in reply_messages(&self.model, self.access, reply) {
            add_message(&mut hash, &message);
            messages += 1;
        }
        self.sessions.keep_thread(&session, Thread { messages, hash: hash.finalize().into(), reply: id.clone() });
    }
}
