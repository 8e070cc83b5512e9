//! A stored transcript → what one model may be shown of it. One pass for every wire and every request.
//!
//! A transcript that was started on one model goes on with any other, although each provider refuses something that
//! another one wrote. What is put right here, before a wire encodes:
//!
//! - Turns that failed or were aborted are left out, with the results of their calls.
//! - Each call has exactly one result, right after its turn: a missing one is made up, a surplus one is left out.
//! - System messages between a call and its results come after the results.
//! - Reasoning and signatures go back only to the model that wrote them.
//! - Tool-call ids of other models are mapped to what the wire takes, the same for call and result, and stay distinct.
//! - Pictures become a note where the model takes none.
//! - Blocks of unknown types are left out.
//!
//! The stored transcript is only borrowed: what need not change is not copied.

use std::{borrow::Cow, collections::HashSet, fmt};

use crate::{
    message::{
        AssistantBlock, AssistantMessage, Content, ImageContent, InputBlock, Message, SystemMessage, ThinkingContent,
        ToolCall, ToolResultMessage, UserMessage,
    },
    model::Model,
    transcript::{LaterSystemMessages, current_system_message},
};

const OMITTED_USER_IMAGE: &str = "[A picture was here; this model cannot see pictures.]";
const OMITTED_RESULT_IMAGE: &str = "[The tool gave a picture; this model cannot see pictures.]";
const MOVED_RESULT_IMAGE: &str = "[The picture follows after the tool results.]";
const NO_RESULT: &str = "No result: the call was interrupted before it finished.";

/// For whom a transcript is replayed.
#[derive(Clone, Copy)]
pub struct ReplayTarget<'a> {
    /// The model that will read it.
    pub model: &'a Model,
    /// Whether its wire can say something later: if not, all system messages are folded into the first.
    pub later_system_messages: LaterSystemMessages,
    /// The id that a call of another model gets on this wire; the message is the one that the call stands in.
    pub tool_call_id: &'a dyn for<'id> Fn(&'id str, &AssistantMessage) -> Cow<'id, str>,
    /// The longest id that the wire takes.
    pub max_id_length: usize,
}

impl fmt::Debug for ReplayTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayTarget")
            .field("model", &self.model.id)
            .field("later_system_messages", &self.later_system_messages)
            .field("max_id_length", &self.max_id_length)
            .finish_non_exhaustive()
    }
}

/// One step of a conversation, as a model may be shown it.
#[derive(Clone, Debug)]
pub enum Turn<'a> {
    /// Instructions and tools.
    System(Cow<'a, SystemMessage>),
    /// What a person said.
    User(UserContent<'a>),
    /// What the model said.
    Assistant(AssistantTurn<'a>),
    /// What a tool gave back.
    ToolResult(ToolResultTurn<'a>),
}

/// What a person said: wires tell plain text from a list with one text.
#[derive(Clone, Debug, PartialEq)]
pub enum UserContent<'a> {
    /// Plain text.
    Text(&'a str),
    /// Texts and pictures.
    Parts(Vec<Part<'a>>),
}

/// A text or a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part<'a> {
    /// Text, possibly empty.
    Text(&'a str),
    /// A picture.
    Image(&'a ImageContent),
}

/// What the model said.
#[derive(Clone, Debug)]
pub struct AssistantTurn<'a> {
    /// The stored message.
    pub message: &'a AssistantMessage,
    /// Who wrote it.
    pub origin: Origin,
    /// What is left of its content.
    pub parts: Vec<AssistantPart<'a>>,
}

/// Who wrote a turn, as seen by the model that will read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The same model, at the same provider, over the same wire.
    SameModel,
    /// Another one.
    OtherModel,
}

/// A part of what the model said.
#[derive(Clone, Debug, PartialEq)]
pub enum AssistantPart<'a> {
    /// Text.
    Text {
        /// The text, possibly empty.
        text: &'a str,
        /// The signature that this model's provider gave it.
        signature: Option<&'a str>,
    },
    /// Reasoning of this same model: signed, redacted, or at least not blank.
    Thinking(&'a ThinkingContent),
    /// A tool call.
    ToolCall(CallPart<'a>),
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallPart<'a> {
    /// The id on this wire.
    pub id: Cow<'a, str>,
    /// The call. Its own id may be another one.
    pub call: &'a ToolCall,
    /// The signature that this model's provider gave it.
    pub signature: Option<&'a str>,
}

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResultTurn<'a> {
    /// The call's id on this wire.
    pub id: Cow<'a, str>,
    /// The tool's name.
    pub name: &'a str,
    /// What the tool said.
    pub parts: Vec<Part<'a>>,
    /// Whether it failed.
    pub is_error: bool,
}

/// Replays a transcript for a model.
pub fn replay<'a>(messages: &'a [Message], target: &ReplayTarget<'_>) -> Vec<Turn<'a>> {
    let mut replay = Replay {
        target,
        turns: Vec::with_capacity(messages.len() + 1),
        pending: Vec::new(),
        held: Vec::new(),
        used_ids: HashSet::new(),
    };
    let in_place = match target.later_system_messages {
        LaterSystemMessages::Supported => true,
        LaterSystemMessages::Unsupported => {
            replay.turns.extend(current_system_message(messages).map(|head| Turn::System(Cow::Owned(head))));
            false
        }
    };
    for message in messages {
        match message {
            Message::System(message) if in_place => replay.system(message),
            Message::System(_) => {}
            Message::User(message) => replay.user(message),
            Message::Assistant(message) => replay.assistant(message),
            Message::ToolResult(message) => replay.tool_result(message),
        }
    }
    replay.close_calls();
    replay.turns
}

struct Replay<'a, 't> {
    target: &'t ReplayTarget<'t>,
    turns: Vec<Turn<'a>>,
    /// The calls of the last assistant turn.
    pending: Vec<PendingCall<'a>>,
    /// System messages that came before all of them were answered.
    held: Vec<Turn<'a>>,
    /// Ids that calls have on the wire so far.
    used_ids: HashSet<Cow<'a, str>>,
}

struct PendingCall<'a> {
    stored_id: &'a str,
    wire_id: Cow<'a, str>,
    name: &'a str,
    answered: bool,
}

impl<'a> Replay<'a, '_> {
    fn system(&mut self, message: &'a SystemMessage) {
        let turn = Turn::System(Cow::Borrowed(message));
        match self.pending.is_empty() {
            true => self.turns.push(turn),
            false => self.held.push(turn),
        }
    }

    fn user(&mut self, message: &'a UserMessage) {
        self.close_calls();
        self.turns.push(Turn::User(match &message.content {
            Content::Text(text) => UserContent::Text(text),
            Content::Blocks(blocks) => UserContent::Parts(self.parts(blocks, OMITTED_USER_IMAGE)),
        }));
    }

    fn assistant(&mut self, message: &'a AssistantMessage) {
        self.close_calls();
        if message.is_failed() {
            return;
        }
        let model = self.target.model;
        let same = message.provider == model.provider && message.api == model.api && message.model == model.id;
        let origin = if same { Origin::SameModel } else { Origin::OtherModel };
        let mut parts = Vec::with_capacity(message.content.len());
        for block in &message.content {
            match block {
                AssistantBlock::Text(block) => parts.push(AssistantPart::Text {
                    text: &block.text,
                    signature: block.text_signature.as_deref().filter(|_| same),
                }),
                AssistantBlock::Thinking(block) if same && says_something(block) => {
                    parts.push(AssistantPart::Thinking(block));
                }
                AssistantBlock::ToolCall(call) => {
                    let id = self.wire_id(call, message, origin);
                    let signature = call.thought_signature.as_deref().filter(|_| same);
                    self.pending.push(PendingCall {
                        stored_id: &call.id,
                        wire_id: id.clone(),
                        name: &call.name,
                        answered: false,
                    });
                    parts.push(AssistantPart::ToolCall(CallPart { id, call, signature }));
                }
                AssistantBlock::Thinking(_) | AssistantBlock::Unknown(_) => {}
            }
        }
        self.turns.push(Turn::Assistant(AssistantTurn { message, origin, parts }));
    }

    fn tool_result(&mut self, message: &'a ToolResultMessage) {
        let answers = |call: &&mut PendingCall<'a>| !call.answered && message.tool_call_id == *call.stored_id;
        let Some(call) = self.pending.iter_mut().find(answers) else {
            tracing::debug!(id = %message.tool_call_id, tool = message.tool_name, "a tool result without a call is not sent");
            return;
        };
        call.answered = true;
        let id = call.wire_id.clone();
        let parts = self.parts(&message.content, OMITTED_RESULT_IMAGE);
        let (name, is_error) = (message.tool_name.as_str(), message.is_error);
        self.turns.push(Turn::ToolResult(ToolResultTurn { id, name, parts, is_error }));
    }

    /// Answers the calls that were not, and lets go of what waited for that.
    fn close_calls(&mut self) {
        for call in self.pending.drain(..).filter(|call| !call.answered) {
            let parts = vec![Part::Text(NO_RESULT)];
            let turn = ToolResultTurn { id: call.wire_id, name: call.name, parts, is_error: true };
            self.turns.push(Turn::ToolResult(turn));
        }
        self.turns.append(&mut self.held);
    }

    fn parts(&self, blocks: &'a [InputBlock], placeholder: &'static str) -> Vec<Part<'a>> {
        let parts = blocks.iter().filter_map(|block| match block {
            InputBlock::Text(text) => Some(Part::Text(&text.text)),
            InputBlock::Image(image) => Some(Part::Image(image)),
            InputBlock::Unknown(_) => None,
        });
        match self.target.model.reads_images() {
            true => parts.collect(),
            false => without_images(parts, placeholder),
        }
    }

    fn wire_id(&mut self, call: &'a ToolCall, message: &AssistantMessage, origin: Origin) -> Cow<'a, str> {
        if origin == Origin::SameModel {
            self.used_ids.insert(Cow::Borrowed(call.id.as_str()));
            return Cow::Borrowed(call.id.as_str());
        }
        let mut id = (self.target.tool_call_id)(&call.id, message);
        if id.is_empty() {
            id = Cow::Borrowed("call");
        }
        // Providers mint ids that are distinct to them only, and mapping may make two of them one.
        let mut count = 1;
        let wanted = id.clone();
        while self.used_ids.contains(&id) {
            count += 1;
            let suffix = count.to_string();
            let room = self.target.max_id_length.saturating_sub(suffix.len());
            let kept = wanted.char_indices().nth(room).map_or(wanted.len(), |(at, _)| at);
            id = Cow::Owned(format!("{}{suffix}", &wanted[..kept]));
        }
        self.used_ids.insert(id.clone());
        id
    }
}

/// Whether there is anything to give back: a signature counts even without text.
fn says_something(block: &ThinkingContent) -> bool {
    block.redacted == Some(true)
        || block.thinking_signature.as_ref().is_some_and(|signature| !signature.is_empty())
        || !block.thinking.trim().is_empty()
}

/// Each run of pictures becomes one note.
fn without_images<'a>(parts: impl Iterator<Item = Part<'a>>, placeholder: &'static str) -> Vec<Part<'a>> {
    let mut kept = Vec::new();
    for part in parts {
        match part {
            Part::Image(_) if kept.last() == Some(&Part::Text(placeholder)) => {}
            Part::Image(_) => kept.push(Part::Text(placeholder)),
            text => kept.push(text),
        }
    }
    kept
}

impl<'a> ToolResultTurn<'a> {
    /// The texts, joined by line breaks.
    pub fn text(&self) -> Cow<'a, str> {
        let mut texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(*text),
            Part::Image(_) => None,
        });
        let first = texts.next().unwrap_or_default();
        texts.fold(Cow::Borrowed(first), |joined, text| Cow::Owned(format!("{joined}\n{text}")))
    }

    /// The pictures.
    pub fn images(&self) -> impl Iterator<Item = &'a ImageContent> {
        self.parts.iter().filter_map(|part| match part {
            Part::Image(image) => Some(*image),
            Part::Text(_) => None,
        })
    }

    /// For wires that refuse pictures in the result of a failed call: takes them out, to follow after all results of
    /// the turn.
    pub fn split_error_images(&mut self) -> Option<MovedImages<'a>> {
        let images: Vec<_> = self.images().collect();
        if !self.is_error || images.is_empty() {
            return None;
        }
        self.parts = without_images(self.parts.drain(..), MOVED_RESULT_IMAGE);
        let caption = format!("The pictures of the failed call {} ({}):", self.id, self.name);
        Some(MovedImages { caption, images })
    }
}

/// Pictures that were taken out of a tool result.
#[derive(Clone, Debug, PartialEq)]
pub struct MovedImages<'a> {
    /// Says whose they are.
    pub caption: String,
    /// The pictures.
    pub images: Vec<&'a ImageContent>,
}
