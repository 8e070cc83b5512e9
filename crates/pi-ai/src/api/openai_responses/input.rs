//! Transcript → the items of the input.

use std::borrow::Cow;

use indexmap::{IndexMap, IndexSet};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{
    body::{InputPart, Item, Output, OutputText, TypedItem, UserRole},
    tools::{Place, ToolSettings, tool_change_support},
};
use crate::{
    api::{EncodeRequest, compat::Switches, constraint, ids, json_text::JsonText},
    error::ProviderError,
    message::{AssistantMessage, SystemMessage},
    model::Model,
    replay::{
        AssistantPart, AssistantTurn, CallPart, Origin, Part, ReplayTarget, ToolResultTurn, Turn, UserContent, replay,
    },
    transcript::{
        LaterSystemMessages, ResolvedTools, ToolChangeSupport, declared_tools, render_full, render_update,
        resolve_tools,
    },
};

const MAX_ID_LENGTH: usize = 64;
/// An id of two parts.
const MAX_PAIR_LENGTH: usize = 2 * MAX_ID_LENGTH + 1;

const EMPTY_RESULT: &str = "(the tool gave no output)";

/// Models take the latest list of tools for the whole one once a removal was announced.
const INCREMENTAL_TOOLS: &str = "These tools come in addition: tools that were declared before stay available unless \
they were marked as unavailable. A tool that is declared again is available again, with its new definition.";

/// What an input is made with.
#[derive(Clone, Copy, Debug)]
pub(in crate::api) struct InputSettings<'a> {
    pub(in crate::api) tools: ToolSettings<'a>,
    pub(in crate::api) ids: ToolCallIds,
    /// The effort that is said inside the conversation.
    pub(in crate::api) effort: Option<&'a str>,
}

/// What a server takes as the id of a call that another model made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::api) enum ToolCallIds {
    /// The call's id and its item's.
    Pairs,
    /// The call's id.
    Single,
}

impl ToolCallIds {
    /// `Pairs` for these providers.
    pub(in crate::api) fn of(model: &Model, with_pairs: &[&str]) -> Self {
        if with_pairs.contains(&model.provider.as_str()) { Self::Pairs } else { Self::Single }
    }

    fn map<'id>(self, id: &'id str, model: &Model, source: &AssistantMessage) -> Cow<'id, str> {
        let Some((call, item)) = id.split_once('|').filter(|_| self == Self::Pairs) else { return part(id) };
        let foreign = source.provider != model.provider || source.api != model.api;
        let mut item = match foreign {
            true => format!("fc_{}", ids::short_hash(item)),
            false => part(item).into_owned(),
        };
        // The items of calls are named so.
        if !item.starts_with("fc_") {
            item = part(&format!("fc_{item}")).into_owned();
        }
        Cow::Owned(format!("{}|{item}", part(call)))
    }
}

fn part(id: &str) -> Cow<'_, str> {
    match ids::plain_clipped(id, MAX_ID_LENGTH) {
        Cow::Borrowed(id) => Cow::Borrowed(id.trim_end_matches('_')),
        Cow::Owned(id) => Cow::Owned(id.trim_end_matches('_').to_owned()),
    }
}

/// The items, and the tools that the request's own list has.
pub(in crate::api) fn input<'a>(
    request: &EncodeRequest<'a>,
    settings: InputSettings<'a>,
) -> Result<(Vec<Item<'a>>, ResolvedTools), ProviderError> {
    let model = request.model;
    let messages = request.context.messages();
    let switches = Switches::of(model);
    let later_system = switches.flag("supportsMidConvoSystemMessages").unwrap_or(false);
    let turns = replay(
        messages,
        &ReplayTarget {
            model,
            later_system_messages: match later_system {
                true => LaterSystemMessages::Supported,
                false => LaterSystemMessages::Unsupported,
            },
            tool_call_id: &|id, source| settings.ids.map(id, model, source),
            max_id_length: MAX_PAIR_LENGTH,
        },
    );
    let support = tool_change_support(model);
    let tools = resolve_tools(messages, support);
    let developer = model.reasoning && switches.flag("supportsDeveloperRole").unwrap_or(true);
    let mut builder = Input {
        model,
        settings,
        support,
        folded: tools.folded_system_messages,
        instruction_role: if developer { "developer" } else { "system" },
        grammar_properties: constraint::grammar_properties(&declared_tools(messages), settings.tools.grammar)?,
        items: Vec::with_capacity(turns.len()),
        unavailable: IndexSet::new(),
        declared_additional: false,
        systems: 0,
        position: 0,
    };
    for (index, turn) in turns.into_iter().enumerate() {
        builder.turn(turn, index == 0)?;
    }
    builder.say_effort(settings.effort);
    Ok((builder.items, tools))
}

struct Input<'a> {
    model: &'a Model,
    settings: InputSettings<'a>,
    support: ToolChangeSupport,
    /// The tools of so many system messages are in the request's own list.
    folded: usize,
    instruction_role: &'static str,
    grammar_properties: IndexMap<String, String>,
    items: Vec<Item<'a>>,
    /// Tools that were announced as gone and not declared again since.
    unavailable: IndexSet<String>,
    declared_additional: bool,
    systems: usize,
    /// Counts the messages that were sent, the leading prompt apart.
    position: usize,
}

impl<'a> Input<'a> {
    fn turn(&mut self, turn: Turn<'a>, is_first: bool) -> Result<(), ProviderError> {
        match turn {
            Turn::System(message) => {
                self.system(&message, is_first)?;
                self.position += usize::from(!is_first);
            }
            Turn::User(content) => {
                let parts = match content {
                    UserContent::Text(text) => vec![InputPart::text(text)],
                    UserContent::Parts(parts) => parts.into_iter().map(input_part).collect(),
                };
                if !parts.is_empty() {
                    self.items.push(Item::User { role: UserRole::User, content: parts });
                    self.position += 1;
                }
            }
            Turn::Assistant(turn) => {
                if self.assistant(turn)? {
                    self.position += 1;
                }
            }
            Turn::ToolResult(turn) => {
                self.tool_result(turn);
                self.position += 1;
            }
        }
        Ok(())
    }

    fn instruct(&mut self, text: String) {
        if !text.is_empty() {
            self.items.push(Item::Instruction { role: self.instruction_role, content: text.into() });
        }
    }

    fn say_effort(&mut self, effort: Option<&str>) {
        if let Some(effort) = effort {
            let update = json!({ "type": "configuration_update", "reasoning": { "effort": effort } });
            self.items.push(Item::Other(update));
        }
    }

    fn system(&mut self, message: &SystemMessage, is_first: bool) -> Result<(), ProviderError> {
        self.systems += 1;
        let in_place = self.systems > self.folded;
        let mut parts = vec![if is_first { render_full(message) } else { render_update(message) }];
        if in_place {
            self.add_tools(message)?;
            let is_back = |name: &String| message.tools_added.iter().any(|added| added.name == *name);
            let removed = message.tools_removed.iter().map(|tool| tool.name.clone());
            let removed: Vec<String> = removed.filter(|name| !is_back(name)).collect();
            if !removed.is_empty() {
                let names: String = removed.iter().map(|name| format!("\n- {name}")).collect();
                parts.push(format!("These tools are no longer available; do not call them:{names}"));
            }
            self.unavailable.extend(removed);
        }
        parts.retain(|part| !part.is_empty());
        self.instruct(parts.join("\n\n"));
        Ok(())
    }

    fn add_tools(&mut self, message: &SystemMessage) -> Result<(), ProviderError> {
        let added = &message.tools_added;
        for tool in added {
            self.unavailable.shift_remove(&tool.name);
        }
        if added.is_empty() {
            return Ok(());
        }
        match self.support {
            ToolChangeSupport::Changes => {
                if self.declared_additional {
                    let mut notice = INCREMENTAL_TOOLS.to_owned();
                    if !self.unavailable.is_empty() {
                        let names: Vec<&str> = self.unavailable.iter().map(String::as_str).collect();
                        notice.push_str(&format!("\nStill unavailable: {}.", names.join(", ")));
                    }
                    self.instruct(notice);
                }
                self.declared_additional = true;
                let tools = self.settings.tools.convert(added)?;
                let item = json!({ "type": "additional_tools", "role": "developer", "tools": tools });
                self.items.push(Item::Other(item));
            }
            ToolChangeSupport::Additions => {
                let names: Vec<&str> = added.iter().map(|tool| tool.name.as_str()).collect();
                let seed = format!("system:{}:{}", self.position, names.join(","));
                let call_id = format!("pi_tool_load_{}", ids::short_hash(&seed));
                let tools = self.settings.tools.convert_at(added, Place::SearchResult)?;
                self.items.push(Item::Other(json!({
                    "type": "tool_search_call",
                    "call_id": call_id,
                    "execution": "client",
                    "status": "completed",
                    "arguments": { "query": names.join(" "), "limit": names.len() },
                })));
                self.items.push(Item::Other(json!({
                    "type": "tool_search_output",
                    "call_id": call_id,
                    "execution": "client",
                    "status": "completed",
                    "tools": tools,
                })));
            }
            ToolChangeSupport::None => {}
        }
        Ok(())
    }

    /// Whether there was anything to say.
    fn assistant(&mut self, turn: AssistantTurn<'a>) -> Result<bool, ProviderError> {
        let source = turn.message;
        let same_model = turn.origin == Origin::SameModel;
        let sibling = !same_model && source.provider == self.model.provider && source.api == self.model.api;
        let mut output = Vec::with_capacity(turn.parts.len());
        // Nothing is stored at the provider: reasoning counts only with its encrypted content, and the ids of what
        // followed it only with the reasoning.
        let lost_reasoning = turn.parts.iter().any(|part| match part {
            AssistantPart::Thinking(block) => block.thinking_signature.as_deref().is_some_and(is_lost),
            _ => false,
        });
        let mut texts = 0;
        for part in turn.parts {
            match part {
                AssistantPart::Thinking(block) => {
                    output.extend(block.thinking_signature.as_deref().and_then(reasoning_item).map(Item::Raw));
                }
                AssistantPart::Text { text, signature } => {
                    let signature = signature.map(TextSignature::read).filter(|signature| !signature.id.is_empty());
                    let fallback = match texts {
                        0 => format!("msg_pi_{}", self.position),
                        index => format!("msg_pi_{}_{index}", self.position),
                    };
                    texts += 1;
                    let (id, phase) = match signature {
                        Some(signature) if !lost_reasoning => (signature.short_id(), signature.phase),
                        Some(signature) => (fallback.into(), signature.phase),
                        None => (fallback.into(), None),
                    };
                    output.push(Item::Typed(TypedItem::Message {
                        role: "assistant",
                        content: [OutputText::new(text)],
                        status: "completed",
                        id: Some(id),
                        phase,
                    }));
                }
                AssistantPart::ToolCall(part) => {
                    output.push(Item::Typed(self.tool_call(part, same_model, sibling || lost_reasoning)?));
                }
            }
        }
        if output.is_empty() {
            return Ok(false);
        }
        if self.settings.effort.is_some() && same_model {
            self.say_effort(source.provider_thinking_level.as_deref());
        }
        self.items.append(&mut output);
        Ok(true)
    }

    /// A call. The provider remembers which reasoning an item's id goes with, so the id of a sibling model's item is
    /// left out; so is one that does not look like one of this kind of item.
    fn tool_call(
        &self,
        part: CallPart<'a>,
        same_model: bool,
        without_id: bool,
    ) -> Result<TypedItem<'a>, ProviderError> {
        let (call_id, item) = split(&part.id);
        let call = part.call;
        let property = self.grammar_properties.get(&call.name);
        let prefix = if property.is_some() { "ctc_" } else { "fc_" };
        let id = item.filter(|item| !without_id && item.starts_with(prefix)).map(str::to_owned);
        let call_id = call_id.to_owned();
        let namespace = call.namespace.as_deref().filter(|_| same_model);
        let name = call.name.as_str();
        Ok(match property {
            Some(property) => {
                let input = constraint::grammar_input(name, &call.arguments, property)?;
                TypedItem::CustomToolCall { id, call_id, name, input, namespace }
            }
            None => TypedItem::FunctionCall { id, call_id, name, arguments: JsonText(&call.arguments), namespace },
        })
    }

    fn tool_result(&mut self, turn: ToolResultTurn<'a>) {
        let call_id = split(&turn.id).0.to_owned();
        let text = turn.text();
        let has_text = !text.trim().is_empty();
        let images: Vec<_> = turn.images().map(InputPart::image).collect();
        let output = match (images.is_empty(), has_text) {
            (true, true) => Output::Text(text),
            (true, false) => Output::Text(EMPTY_RESULT.into()),
            (false, _) => {
                let text = has_text.then(|| InputPart::text(text));
                Output::Parts(text.into_iter().chain(images).collect())
            }
        };
        self.items.push(Item::Typed(match self.grammar_properties.contains_key(turn.name) {
            true => TypedItem::CustomToolCallOutput { call_id, output },
            false => TypedItem::FunctionCallOutput { call_id, output },
        }));
    }
}

/// The call's id and its item's.
fn split(id: &str) -> (&str, Option<&str>) {
    match id.split_once('|') {
        Some((call, item)) => (call, Some(item)),
        None => (id, None),
    }
}

fn input_part(part: Part<'_>) -> InputPart<'_> {
    match part {
        Part::Text(text) => InputPart::text(text),
        Part::Image(image) => InputPart::image(image),
    }
}

/// The part of a reasoning item that decides whether it can be given back.
#[derive(Deserialize)]
struct ReasoningItem<'a> {
    #[serde(borrow, default)]
    encrypted_content: Option<&'a RawValue>,
}

impl ReasoningItem<'_> {
    fn is_encrypted(&self) -> bool {
        self.encrypted_content.is_some_and(|content| !matches!(content.get(), "null" | "\"\""))
    }
}

/// Reasoning that was kept as an item of this wire and can be given back.
fn reasoning_item(signature: &str) -> Option<&RawValue> {
    let item: ReasoningItem<'_> = serde_json::from_str(signature).ok()?;
    item.is_encrypted().then(|| serde_json::from_str(signature).ok())?
}

/// Reasoning of this wire that cannot be given back.
fn is_lost(signature: &str) -> bool {
    serde_json::from_str::<ReasoningItem<'_>>(signature).is_ok_and(|item| !item.is_encrypted())
}

/// What a text block's signature says of its item. Older sessions hold the bare id.
struct TextSignature<'a> {
    id: Cow<'a, str>,
    phase: Option<String>,
}

impl<'a> TextSignature<'a> {
    fn read(signature: &'a str) -> Self {
        #[derive(Deserialize)]
        struct Fields {
            v: u64,
            id: String,
            phase: Option<String>,
        }
        match serde_json::from_str::<Fields>(signature) {
            Ok(Fields { v: 1, id, phase }) => {
                let phase = phase.filter(|phase| matches!(phase.as_str(), "commentary" | "final_answer"));
                Self { id: id.into(), phase }
            }
            _ => Self { id: signature.into(), phase: None },
        }
    }

    fn short_id(&self) -> Cow<'a, str> {
        match self.id.chars().count() > MAX_ID_LENGTH {
            true => Cow::Owned(format!("msg_{}", ids::short_hash(&self.id))),
            false => self.id.clone(),
        }
    }
}
