//! What handlers of `context` and `context_with_system` make of a request's messages: area `extension_context`.
//!
//! A handler of a vector works on JavaScript objects. An in-place change of the list counts as another list; an
//! in-place change of a message (`mutate_…`) is [`ContextOutcome::Edited`].

use std::sync::{Arc, Mutex, PoisonError};

use pi_ai::CancellationToken;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    extensions::{
        Extension, ExtensionApi, ExtensionError, ExtensionRunner, FailurePlace, FlagValues,
        event::{self, ContextEvent, ContextOutcome, ContextWithSystemOutcome},
        named,
    },
    messages::SessionMessage,
};

#[derive(Deserialize)]
struct Case {
    messages: Vec<SessionMessage>,
    handlers: Vec<Handler>,
}

#[derive(Clone, Deserialize)]
struct Handler {
    extension: String,
    event: String,
    op: String,
    index: Option<i64>,
    message: Option<SessionMessage>,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

/// The roles that each handler saw, in the order of the calls.
type Seen = Arc<Mutex<Vec<Vec<String>>>>;

/// What this crate makes of `input`; `None` for a file that is not known, or a case that cannot be read.
pub async fn run(file_stem: &str, input: &Value) -> Option<Value> {
    if file_stem != "emit_context" {
        return None;
    }
    let case: Case = serde_json::from_value(input.clone()).ok()?;
    let seen = Seen::default();
    let extensions = case.handlers.iter().map(|handler| extension(handler.clone(), seen.clone())).collect();
    let runner = ExtensionRunner::new(extensions, FlagValues::new());
    runner.load().await;
    let before = serde_json::to_value(&case.messages).ok()?;
    let messages = runner.context(case.messages.clone(), &CancellationToken::new()).await;
    let errors = runner.failures().into_iter().map(|failure| {
        let event = match failure.place {
            FailurePlace::Event(kind) => kind.as_str().to_owned(),
            other => other.to_string(),
        };
        json!({"extension": failure.extension, "event": event})
    });
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Some(json!({
        "messages": messages,
        "errors": errors.collect::<Vec<_>>(),
        "seen_roles": seen,
        "input_unchanged": serde_json::to_value(&case.messages).ok()? == before,
    }))
}

fn extension(handler: Handler, seen: Seen) -> Arc<dyn Extension> {
    let name = handler.extension.clone();
    Arc::new(named(name, move |pi: &mut ExtensionApi| {
        let (handler, seen) = (handler.clone(), seen.clone());
        let with_system = handler.event == "context_with_system";
        let work = async move |event: ContextEvent| {
            let roles = event.messages.iter().map(|message| message.role().into_owned()).collect();
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(roles);
            handler.work(event.messages)
        };
        if with_system {
            pi.on(event::ContextWithSystem, async move |event, _ctx| {
                Ok(match work(event).await? {
                    ContextOutcome::Edited(messages) | ContextOutcome::Replaced(messages) => {
                        ContextWithSystemOutcome::Replaced(messages)
                    }
                    _ => ContextWithSystemOutcome::Unchanged,
                })
            });
        } else {
            pi.on(event::Context, async move |event, _ctx| work(event).await);
        }
    }))
}

impl Handler {
    fn work(&self, mut messages: Vec<SessionMessage>) -> Result<ContextOutcome, ExtensionError> {
        let missing = || ExtensionError::new(format!("the operation {} lacks something", self.op));
        let count = messages.len();
        let at = || {
            let index = self.index.unwrap_or(-1);
            let at = if index < 0 { i64::try_from(count).ok()? + index } else { index };
            usize::try_from(at).ok().filter(|at| *at < count)
        };
        let message = || self.message.clone().ok_or_else(missing);
        let what = self.op.strip_suffix("_in_place").or_else(|| self.op.strip_prefix("return_")).unwrap_or(&self.op);
        match what {
            "throw" => return Err(ExtensionError::new("thrown by the test")),
            "nothing" | "object_without_messages" => return Ok(ContextOutcome::Unchanged),
            "shallow_copy" | "same" => {}
            "deep_copy" => messages = messages.iter().map(copied).collect::<Result<_, _>>()?,
            "without" | "splice" | "pop" | "shift" => {
                let at = match what {
                    "shift" => (count > 0).then_some(0),
                    _ => at(),
                };
                at.map(|at| messages.remove(at));
            }
            "appended" | "push" => messages.push(message()?),
            "prepended" | "unshift" => messages.insert(0, message()?),
            "inserted" | "insert" => messages.insert(at().unwrap_or(count), message()?),
            "replaced" | "replace" => {
                let at = at().ok_or_else(missing)?;
                messages[at] = message()?;
            }
            "reversed" | "reverse" => messages.reverse(),
            "empty" | "clear" => messages.clear(),
            "mutate_content" => {
                let at = at().ok_or_else(missing)?;
                let mut changed = serde_json::to_value(&messages[at])?;
                changed["content"] = self.fields.get("content").cloned().ok_or_else(missing)?;
                messages[at] = serde_json::from_value(changed)?;
                return Ok(ContextOutcome::Edited(messages));
            }
            _ => return Err(ExtensionError::new(format!("the operation {} is not known", self.op))),
        }
        Ok(ContextOutcome::Replaced(messages))
    }
}

/// The same message as another object.
fn copied(message: &SessionMessage) -> Result<SessionMessage, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(message)?)
}
