//! The agent's message: the model's four roles, the application's own, and those that nobody here knows.

use std::{borrow::Cow, fmt, marker::PhantomData, sync::Arc};

use pi_ai::{
    AssistantMessage, Content, Message, MessageIdentity, SystemMessage, Timestamp, ToolResultMessage, UserMessage,
    json::tagged::{Tagged, deserialize_tagged},
    transcript::TranscriptItem,
};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{
        self, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, Visitor,
        value::{MapAccessDeserializer, MapDeserializer, StrDeserializer},
    },
};
use serde_json::{Map, Value};

/// A message of a transcript: what a model understands, what the application adds, what is kept for others.
///
/// Payloads are [`Arc`]s, as in [`Message`]: cloning a list copies pointers. Written as JSON it is the message itself,
/// told apart by its `role`.
///
/// The enum is exhaustive on purpose: a `match` over it, or over `C`, is checked by the compiler.
///
/// ```
/// use pi_agent_core::{AgentMessage, CustomMessage};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Serialize, Deserialize)]
/// #[serde(tag = "role", rename_all = "camelCase")]
/// enum Role {
///     AuditNote { text: String },
/// }
/// impl CustomMessage for Role {}
///
/// let stored = [r#"{"role":"user","content":"hi"}"#, r#"{"role":"auditNote","text":"x"}"#, r#"{"role":"futuristic"}"#];
/// let read = stored.map(|line| serde_json::from_str::<AgentMessage<Role>>(line).unwrap());
/// assert!(matches!(read, [AgentMessage::Llm(_), AgentMessage::Custom(_), AgentMessage::Unknown(_)]));
/// ```
#[derive(Debug)]
pub enum AgentMessage<C = NoCustom> {
    /// One of the four roles that a model understands.
    Llm(Message),
    /// A role of the application.
    Custom(Arc<C>),
    /// A role that this program does not know, kept as it was. It never reaches a model by itself.
    Unknown(Arc<UnknownMessage>),
}

/// The application's own roles: an enum that serde tags with `role`.
///
/// Both methods are provided; they ask the `Serialize` and `Deserialize` implementations, so that no list of roles has
/// to be kept in step with the enum. Do not mark the enum `#[non_exhaustive]`: its converter should have to name every
/// role.
///
/// Converting it for the model is [`ConvertToLlm`](crate::ConvertToLlm); without a converter these messages stay in
/// the transcript and never reach a model.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a set of custom roles",
    note = "derive Debug, Serialize and Deserialize, add `#[serde(tag = \"role\")]` and `impl CustomMessage for {Self} {{}}`"
)]
pub trait CustomMessage: Serialize + DeserializeOwned + fmt::Debug + Send + Sync + 'static {
    /// Whether `role` is one of this type's.
    fn knows_role(role: &str) -> bool {
        let only_the_role = MapDeserializer::<_, Probe>::new([("role", role)].into_iter());
        !matches!(Self::deserialize(only_the_role), Err(Probe::UnknownRole))
    }

    /// The role, as it is written.
    fn role(&self) -> Cow<'_, str> {
        let written = serde_json::to_value(self).ok();
        let role = written.as_ref().and_then(|value| value.get("role")?.as_str());
        Cow::Owned(role.unwrap_or("custom").to_owned())
    }
}

/// No custom roles: a type without values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCustom {}

impl CustomMessage for NoCustom {
    fn knows_role(_role: &str) -> bool {
        false
    }

    fn role(&self) -> Cow<'_, str> {
        match *self {}
    }
}

impl Serialize for NoCustom {
    fn serialize<S: Serializer>(&self, _serializer: S) -> Result<S::Ok, S::Error> {
        match *self {}
    }
}

impl<'de> Deserialize<'de> for NoCustom {
    fn deserialize<D: Deserializer<'de>>(_deserializer: D) -> Result<Self, D::Error> {
        Err(de::Error::custom("there are no custom roles here"))
    }
}

/// A message of a role that this program does not know. It is kept, so that whoever knows the role finds it again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnknownMessage {
    /// The role.
    pub role: String,
    /// Everything else, in its order.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl<C> AgentMessage<C> {
    /// A message of the application.
    pub fn custom(custom: C) -> Self {
        Self::Custom(Arc::new(custom))
    }

    /// A user message without a time.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::Llm(Message::user(content))
    }

    /// The model's message, when it is one.
    pub fn as_llm(&self) -> Option<&Message> {
        match self {
            Self::Llm(message) => Some(message),
            Self::Custom(_) | Self::Unknown(_) => None,
        }
    }

    /// The application's message, when it is one.
    pub fn as_custom(&self) -> Option<&C> {
        match self {
            Self::Custom(custom) => Some(custom),
            Self::Llm(_) | Self::Unknown(_) => None,
        }
    }

    /// The payload of an assistant message.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        self.as_llm()?.as_assistant()
    }

    /// The payload of a tool result.
    pub fn as_tool_result(&self) -> Option<&ToolResultMessage> {
        self.as_llm()?.as_tool_result()
    }

    /// Whether this is a system message.
    pub fn is_system(&self) -> bool {
        matches!(self, Self::Llm(Message::System(_)))
    }

    /// When a model's message was made; other messages keep their time in their own way.
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.as_llm().map(Message::timestamp)
    }

    /// Which message this is, by pointer.
    pub fn identity(&self) -> MessageIdentity {
        match self {
            Self::Llm(message) => message.identity(),
            Self::Custom(custom) => MessageIdentity::of(custom),
            Self::Unknown(unknown) => MessageIdentity::of(unknown),
        }
    }
}

impl<C: CustomMessage> AgentMessage<C> {
    /// The role, as it is written.
    pub fn role(&self) -> Cow<'_, str> {
        match self {
            Self::Llm(message) => message.role().into(),
            Self::Custom(custom) => custom.role(),
            Self::Unknown(unknown) => unknown.role.as_str().into(),
        }
    }
}

/// Copies a pointer. (A derive would ask for `C: Clone`.)
impl<C> Clone for AgentMessage<C> {
    fn clone(&self) -> Self {
        match self {
            Self::Llm(message) => Self::Llm(message.clone()),
            Self::Custom(custom) => Self::Custom(custom.clone()),
            Self::Unknown(unknown) => Self::Unknown(unknown.clone()),
        }
    }
}

impl<C: PartialEq> PartialEq for AgentMessage<C> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Llm(a), Self::Llm(b)) => a == b,
            (Self::Custom(a), Self::Custom(b)) => a == b,
            (Self::Unknown(a), Self::Unknown(b)) => a == b,
            _ => false,
        }
    }
}

impl<C> TranscriptItem for AgentMessage<C> {
    fn as_system(&self) -> Option<&SystemMessage> {
        self.as_llm()?.as_system()
    }
}

impl<C: CustomMessage> From<C> for AgentMessage<C> {
    fn from(custom: C) -> Self {
        Self::custom(custom)
    }
}

impl<C> From<Message> for AgentMessage<C> {
    fn from(message: Message) -> Self {
        Self::Llm(message)
    }
}

macro_rules! from_payload {
    ($($payload:ident),*) => {$(
        impl<C> From<$payload> for AgentMessage<C> {
            fn from(payload: $payload) -> Self {
                Self::Llm(payload.into())
            }
        }
    )*};
}

from_payload!(SystemMessage, UserMessage, AssistantMessage, ToolResultMessage);

impl<C: Serialize> Serialize for AgentMessage<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Llm(message) => message.serialize(serializer),
            Self::Custom(custom) => custom.serialize(serializer),
            Self::Unknown(unknown) => unknown.serialize(serializer),
        }
    }
}

impl<'de, C: CustomMessage> Tagged<'de> for AgentMessage<C> {
    const TAG: &'static str = "role";
    const EXPECTING: &'static str = "a message with a `role`";

    /// Only a role that is unknown makes an unknown message; a known one that lacks a field is an error.
    fn from_tag<D: Deserializer<'de>>(role: &str, rest: D) -> Result<Self, D::Error> {
        if Message::ROLES.contains(&role) {
            return Message::with_role(role, rest)?
                .map(Self::Llm)
                .ok_or_else(|| de::Error::unknown_variant(role, &Message::ROLES));
        }
        if C::knows_role(role) {
            return rest.deserialize_map(WithRole { role, target: PhantomData }).map(Self::custom);
        }
        let fields = Map::deserialize(rest)?;
        Ok(Self::Unknown(Arc::new(UnknownMessage { role: role.to_owned(), fields })))
    }
}

impl<'de, C: CustomMessage> Deserialize<'de> for AgentMessage<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_tagged(deserializer)
    }
}

/// Puts the role back in front of the fields, for the application's own `Deserialize`.
struct WithRole<'a, T> {
    role: &'a str,
    target: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for WithRole<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the fields of a `{}` message", self.role)
    }

    fn visit_map<A: MapAccess<'de>>(self, rest: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(RoleFirst { role: Some(self.role), value: None, rest }))
    }
}

struct RoleFirst<'a, A> {
    role: Option<&'a str>,
    value: Option<&'a str>,
    rest: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for RoleFirst<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        match self.role.take() {
            Some(role) => {
                self.value = Some(role);
                let key: StrDeserializer<'_, A::Error> = "role".into_deserializer();
                seed.deserialize(key).map(Some)
            }
            None => self.rest.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.value.take() {
            Some(role) => {
                let value: StrDeserializer<'_, A::Error> = role.into_deserializer();
                seed.deserialize(value)
            }
            None => self.rest.next_value_seed(seed),
        }
    }
}

/// Why a message that has nothing but a role was refused.
#[derive(Debug)]
enum Probe {
    UnknownRole,
    Other,
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("probing a role")
    }
}

impl std::error::Error for Probe {}

impl de::Error for Probe {
    fn custom<T: fmt::Display>(_message: T) -> Self {
        Self::Other
    }

    fn unknown_variant(_variant: &str, _expected: &'static [&'static str]) -> Self {
        Self::UnknownRole
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "role", rename_all = "camelCase")]
    enum Role {
        Notification { text: String, timestamp: u64 },
        AuditNote { text: String },
        Ping,
    }
    impl CustomMessage for Role {}

    fn read(value: Value) -> Result<AgentMessage<Role>, serde_json::Error> {
        serde_json::from_str(&value.to_string())
    }

    #[test]
    fn every_kind_of_role_survives_a_round_trip_byte_for_byte() {
        for line in [
            r#"{"role":"user","content":"hi","timestamp":1}"#,
            r#"{"role":"notification","text":"new mail","timestamp":2}"#,
            r#"{"role":"ping"}"#,
            r#"{"role":"hologram","z":1,"a":{"deep":null}}"#,
        ] {
            let message: AgentMessage<Role> = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&message).unwrap(), line);
        }
    }

    #[test]
    fn a_role_is_found_wherever_it_stands() {
        let message = read(json!({"text": "x", "role": "auditNote"})).unwrap();
        assert_eq!(message, Role::AuditNote { text: "x".into() }.into());
    }

    #[test]
    fn a_known_role_that_lacks_a_field_is_an_error_that_names_it() {
        let error = read(json!({"role": "notification", "text": "x"})).unwrap_err().to_string();
        assert!(error.contains("timestamp"), "{error}");
    }

    #[test]
    fn without_custom_roles_foreign_messages_are_carried_through() {
        let stored = json!({"role": "notification", "text": "x"});
        let message: AgentMessage = serde_json::from_value(stored.clone()).unwrap();
        assert!(matches!(message, AgentMessage::Unknown(_)));
        assert_eq!(message.role(), "notification");
        assert_eq!(serde_json::to_value(&message).unwrap(), stored);
    }

    #[test]
    fn a_custom_role_is_told_by_its_serialisation() {
        let message = AgentMessage::from(Role::AuditNote { text: String::new() });
        assert_eq!(message.role(), "auditNote");
    }

    #[test]
    fn a_message_is_two_words_long() {
        assert_eq!(size_of::<AgentMessage>(), 16);
        assert_eq!(size_of::<AgentMessage<Role>>(), 16);
    }
}
