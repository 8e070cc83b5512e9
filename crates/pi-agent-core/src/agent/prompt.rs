//! What may be given to an agent as a prompt.

use pi_ai::{Clock, Content, InputBlock, Message, SystemMessage, UserMessage};

use crate::message::{AgentMessage, CustomMessage, NoCustom};

/// What may be given to an agent: text, one message, or several of any kind.
///
/// ```
/// use pi_agent_core::{AgentMessage, NoCustom, agent::Prompt};
/// use pi_ai::{InputBlock, Message, SystemMessage};
/// let from_text: Prompt<NoCustom> = "hi".into();
/// let with_a_picture: Prompt<NoCustom> = Prompt::text("What is this?").image(InputBlock::image("AA==", "image/png"));
/// let several: Prompt<NoCustom> = [Message::from(SystemMessage::new("Be brief.")), Message::user("go on")].into();
/// ```
#[derive(Debug)]
pub struct Prompt<C = NoCustom>(Vec<Item<C>>);

#[derive(Debug)]
enum Item<C> {
    /// Becomes a user message, stamped by whoever takes it in.
    Text(Vec<InputBlock>),
    Message(AgentMessage<C>),
}

impl<C> Prompt<C> {
    /// Text that a person wrote.
    pub fn text(text: impl Into<String>) -> Self {
        Self(vec![Item::Text(vec![InputBlock::text(text)])])
    }

    /// Adds a picture (or another block) to the text that was given last.
    #[must_use]
    pub fn image(mut self, image: InputBlock) -> Self {
        match self.0.last_mut() {
            Some(Item::Text(blocks)) => blocks.push(image),
            _ => self.0.push(Item::Text(vec![image])),
        }
        self
    }

    /// Adds another message.
    #[must_use]
    pub fn message(mut self, message: impl Into<AgentMessage<C>>) -> Self {
        self.0.push(Item::Message(message.into()));
        self
    }

    /// The messages. What was given as text is stamped with the time.
    pub fn into_messages(self, clock: &dyn Clock) -> Vec<AgentMessage<C>> {
        let message = |item| match item {
            Item::Text(blocks) => UserMessage { content: Content::Blocks(blocks), timestamp: clock.now() }.into(),
            Item::Message(message) => message,
        };
        self.0.into_iter().map(message).collect()
    }
}

impl<C> From<&str> for Prompt<C> {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl<C> From<String> for Prompt<C> {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl<C> From<&String> for Prompt<C> {
    fn from(text: &String) -> Self {
        Self::text(text)
    }
}

impl<C> From<AgentMessage<C>> for Prompt<C> {
    fn from(message: AgentMessage<C>) -> Self {
        Self(vec![Item::Message(message)])
    }
}

impl<C: CustomMessage> From<C> for Prompt<C> {
    fn from(custom: C) -> Self {
        AgentMessage::from(custom).into()
    }
}

impl<C> From<Message> for Prompt<C> {
    fn from(message: Message) -> Self {
        AgentMessage::from(message).into()
    }
}

impl<C> From<SystemMessage> for Prompt<C> {
    fn from(message: SystemMessage) -> Self {
        AgentMessage::from(message).into()
    }
}

impl<C> From<UserMessage> for Prompt<C> {
    fn from(message: UserMessage) -> Self {
        AgentMessage::from(message).into()
    }
}

impl<C, M: Into<AgentMessage<C>>> From<Vec<M>> for Prompt<C> {
    fn from(messages: Vec<M>) -> Self {
        messages.into_iter().collect()
    }
}

impl<C, M: Into<AgentMessage<C>>, const N: usize> From<[M; N]> for Prompt<C> {
    fn from(messages: [M; N]) -> Self {
        messages.into_iter().collect()
    }
}

impl<C, M: Into<AgentMessage<C>>> FromIterator<M> for Prompt<C> {
    fn from_iter<I: IntoIterator<Item = M>>(messages: I) -> Self {
        Self(messages.into_iter().map(|message| Item::Message(message.into())).collect())
    }
}
