//! The second hook: what the model sees of each message.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use futures::future::BoxFuture;
use pi_ai::{CancellationToken, Message};

use super::AsyncHook;
use crate::message::{AgentMessage, CustomMessage, UnknownMessage};

/// Says what the model sees of each message. It runs after [`TransformContext`](super::TransformContext), for every
/// request, and is the only way from an [`AgentMessage`] to the model.
///
/// The loop calls it message by message, so that a converter cannot lose one of the model's own messages by accident
/// and the origin of every output is known. No output for a message means that the model does not see it. It cannot
/// fail.
///
/// A closure over the application's roles is one; its `match` has to name every role:
///
/// ```
/// # use pi_agent_core::{ConvertToLlm, CustomMessage};
/// # use pi_ai::Message;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, Serialize, Deserialize)]
/// # #[serde(tag = "role", rename_all = "camelCase")]
/// # enum Role { Notification { text: String }, AuditNote { text: String } }
/// # impl CustomMessage for Role {}
/// fn converter() -> impl ConvertToLlm<Role> {
///     |message: &Role| match message {
///         Role::Notification { text } => Some(Message::user(format!("[notification] {text}"))),
///         Role::AuditNote { .. } => None,
///     }
/// }
/// # assert_eq!(converter().convert(&Role::AuditNote { text: String::new() }).len(), 0);
/// ```
///
/// A role that is forgotten does not compile:
///
/// ```compile_fail,E0004
/// # use pi_agent_core::{ConvertToLlm, CustomMessage};
/// # use pi_ai::Message;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, Serialize, Deserialize)]
/// # #[serde(tag = "role", rename_all = "camelCase")]
/// # enum Role { Notification { text: String }, AuditNote { text: String } }
/// # impl CustomMessage for Role {}
/// fn converter() -> impl ConvertToLlm<Role> {
///     |message: &Role| match message {
///         Role::Notification { text } => Some(Message::user(format!("[notification] {text}"))),
///     }
/// }
/// ```
///
/// A role that no provider knows cannot reach one: what the model sees are [`Message`]s, which have four roles and no
/// other, so that a message of the application is nothing that could be handed on:
///
/// ```compile_fail,E0271
/// # use pi_agent_core::{ConvertToLlm, CustomMessage};
/// # use pi_ai::Message;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Clone, Debug, Serialize, Deserialize)]
/// # #[serde(tag = "role", rename_all = "camelCase")]
/// # enum Role { Notification { text: String } }
/// # impl CustomMessage for Role {}
/// fn converter() -> impl ConvertToLlm<Role> {
///     |message: &Role| match message {
///         Role::Notification { .. } => Some(message.clone()),
///     }
/// }
/// ```
pub trait ConvertToLlm<C>: Send + Sync + 'static {
    /// What the model sees of a message of the application.
    fn convert(&self, custom: &C) -> Vec<Message>;

    /// What it sees of one of its own messages: by default that message.
    fn convert_model(&self, message: Message) -> Option<Message> {
        Some(message)
    }

    /// What it sees of a message whose role this program does not know: by default nothing.
    fn convert_unknown(&self, _unknown: &UnknownMessage) -> Vec<Message> {
        Vec::new()
    }
}

impl<C: 'static, F, I> ConvertToLlm<C> for F
where
    F: Fn(&C) -> I + Send + Sync + 'static,
    I: IntoIterator<Item = Message>,
{
    fn convert(&self, custom: &C) -> Vec<Message> {
        self(custom).into_iter().collect()
    }
}

impl<C: 'static, T: ConvertToLlm<C> + ?Sized> ConvertToLlm<C> for Arc<T> {
    fn convert(&self, custom: &C) -> Vec<Message> {
        (**self).convert(custom)
    }

    fn convert_model(&self, message: Message) -> Option<Message> {
        (**self).convert_model(message)
    }

    fn convert_unknown(&self, unknown: &UnknownMessage) -> Vec<Message> {
        (**self).convert_unknown(unknown)
    }
}

/// The default converter: keeps the model's four roles, drops the rest and says so once per role, as a warning in the
/// log.
#[derive(Debug, Default)]
pub struct KeepModelRoles {
    warned: Mutex<HashSet<String>>,
}

impl KeepModelRoles {
    fn warn(&self, role: &str) {
        let first = self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(role.to_owned());
        if first {
            tracing::warn!(
                role,
                "messages of role `{role}` do not reach the model: give the agent a converter (`convert_to_llm`) that \
                 says what the model sees of them"
            );
        }
    }
}

impl<C: CustomMessage> ConvertToLlm<C> for KeepModelRoles {
    fn convert(&self, custom: &C) -> Vec<Message> {
        self.warn(&custom.role());
        Vec::new()
    }

    fn convert_unknown(&self, unknown: &UnknownMessage) -> Vec<Message> {
        self.warn(&unknown.role);
        Vec::new()
    }
}

/// A converter, in either form.
pub enum Converter<C> {
    /// Message by message.
    Each(Arc<dyn ConvertToLlm<C>>),
    /// The whole list at once, for a converter that has to wait or to see a message's neighbours. Where its outputs
    /// came from is not known.
    List(Arc<ListConverter<C>>),
}

/// A converter of whole lists.
pub type ListConverter<C> =
    dyn Fn(Vec<AgentMessage<C>>, CancellationToken) -> BoxFuture<'static, Vec<Message>> + Send + Sync;

impl<C: CustomMessage> Default for Converter<C> {
    fn default() -> Self {
        Self::each(KeepModelRoles::default())
    }
}

impl<C: 'static> Converter<C> {
    /// A converter message by message.
    pub fn each(converter: impl ConvertToLlm<C>) -> Self {
        Self::Each(Arc::new(converter))
    }

    /// A converter of the whole list.
    pub fn list(convert: impl AsyncHook<Vec<AgentMessage<C>>, CancellationToken, Vec<Message>>) -> Self {
        Self::List(Arc::new(move |messages, signal| convert.run(messages, signal)))
    }

    /// Converts a list. With `origins`, `origins[i]` becomes the index that output `i` came from; they are left empty
    /// by a list converter, which does not say.
    pub async fn convert(
        &self,
        messages: Vec<AgentMessage<C>>,
        signal: &CancellationToken,
        origins: Option<&mut Vec<usize>>,
    ) -> Vec<Message> {
        match self {
            Self::Each(converter) => convert_each(&**converter, messages, origins),
            Self::List(convert) => convert(messages, signal.clone()).await,
        }
    }
}

impl<C> Clone for Converter<C> {
    fn clone(&self) -> Self {
        match self {
            Self::Each(converter) => Self::Each(converter.clone()),
            Self::List(convert) => Self::List(convert.clone()),
        }
    }
}

impl<C> fmt::Debug for Converter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Each(_) => "Converter::Each",
            Self::List(_) => "Converter::List",
        })
    }
}

fn convert_each<C: 'static>(
    converter: &dyn ConvertToLlm<C>,
    messages: Vec<AgentMessage<C>>,
    origins: Option<&mut Vec<usize>>,
) -> Vec<Message> {
    let Some(origins) = origins else {
        if messages.iter().all(|message| message.as_llm().is_some()) {
            // Collecting from `into_iter().filter_map(…)` reuses the list's allocation.
            let keep = |message| match message {
                AgentMessage::Llm(message) => converter.convert_model(message),
                AgentMessage::Custom(_) | AgentMessage::Unknown(_) => None,
            };
            return messages.into_iter().filter_map(keep).collect();
        }
        let mut converted = Vec::with_capacity(messages.len());
        messages.into_iter().for_each(|message| convert_one(converter, message, &mut converted));
        return converted;
    };
    let mut converted = Vec::with_capacity(messages.len());
    origins.reserve(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        convert_one(converter, message, &mut converted);
        origins.resize(converted.len(), index);
    }
    converted
}

fn convert_one<C: 'static>(converter: &dyn ConvertToLlm<C>, message: AgentMessage<C>, converted: &mut Vec<Message>) {
    match message {
        AgentMessage::Llm(message) => converted.extend(converter.convert_model(message)),
        AgentMessage::Custom(custom) => converted.extend(converter.convert(&custom)),
        AgentMessage::Unknown(unknown) => converted.extend(converter.convert_unknown(&unknown)),
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    #[serde(tag = "role", rename_all = "camelCase")]
    enum Role {
        Notification { text: String },
        AuditNote,
    }
    impl CustomMessage for Role {}

    fn transcript() -> Vec<AgentMessage<Role>> {
        let unknown = UnknownMessage { role: "hologram".into(), fields: Default::default() };
        vec![
            AgentMessage::user("one"),
            Role::AuditNote.into(),
            Role::Notification { text: "two".into() }.into(),
            AgentMessage::Unknown(Arc::new(unknown)),
            AgentMessage::user("four"),
        ]
    }

    async fn convert(converter: &Converter<Role>, origins: Option<&mut Vec<usize>>) -> Vec<String> {
        let converted = converter.convert(transcript(), &CancellationToken::new(), origins).await;
        converted.iter().map(|message| message.as_user().unwrap().content.text().into_owned()).collect()
    }

    #[tokio::test]
    async fn the_default_converter_keeps_what_a_model_understands() {
        assert_eq!(convert(&Converter::default(), None).await, ["one", "four"]);
    }

    #[tokio::test]
    async fn every_output_knows_where_it_came_from() {
        let converter = Converter::each(|role: &Role| match role {
            Role::Notification { text } => vec![Message::user(text.as_str()), Message::user("(end)")],
            Role::AuditNote => vec![],
        });
        let mut origins = Vec::new();
        assert_eq!(convert(&converter, Some(&mut origins)).await, ["one", "two", "(end)", "four"]);
        assert_eq!(origins, [0, 2, 2, 4]);
    }

    #[tokio::test]
    async fn a_list_converter_may_wait_and_does_not_tell_origins() {
        let converter = Converter::list(async |messages: Vec<AgentMessage<Role>>, _signal| {
            tokio::task::yield_now().await;
            vec![Message::user(format!("{} messages", messages.len()))]
        });
        let mut origins = Vec::new();
        assert_eq!(convert(&converter, Some(&mut origins)).await, ["5 messages"]);
        assert!(origins.is_empty());
    }
}
