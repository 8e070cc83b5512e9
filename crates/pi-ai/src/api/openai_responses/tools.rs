//! Tools, and how later changes of them are said.

use serde_json::{Value, json};

use crate::{
    api::{
        compat::Switches,
        constraint::{self, ANY_KEYWORD, GrammarMode, StrictMode},
        tool_schema::without_keywords,
    },
    error::ProviderError,
    model::Model,
    tool::ToolDeclaration,
    transcript::ToolChangeSupport,
};

/// How tools are written.
#[derive(Clone, Copy, Debug)]
pub(in crate::api) struct ToolSettings<'a> {
    pub(in crate::api) strictness: Strictness,
    pub(in crate::api) grammar: GrammarMode,
    /// Ours: JSON Schema keywords that the server refuses; they are left out at all depths.
    pub(in crate::api) refused_keywords: &'a [Value],
}

/// What a server knows of strict tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::api) enum Strictness {
    Unknown,
    /// A tool that does not ask for it says `false`.
    OffByDefault,
    /// A tool that does not ask for it says `null`.
    #[cfg_attr(not(feature = "codex"), expect(dead_code, reason = "ChatGPT is off"))]
    NullByDefault,
}

/// Where a tool's definition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Declared,
    /// In the result of a tool search.
    SearchResult,
}

impl<'a> ToolSettings<'a> {
    /// The model's settings; `strict` is what its server is expected to know unless the model says otherwise.
    pub(in crate::api) fn of(model: &'a Model, strict: Strictness, default: Strictness) -> Self {
        let switches = Switches::of(model);
        Self {
            strictness: match switches.flag("supportsStrictMode") {
                Some(true) => strict,
                Some(false) => Strictness::Unknown,
                None => default,
            },
            grammar: grammar_mode(model),
            refused_keywords: switches.list("refusedSchemaKeywords"),
        }
    }

    pub(in crate::api) fn convert(&self, tools: &[ToolDeclaration]) -> Result<Vec<Value>, ProviderError> {
        self.convert_at(tools, Place::Declared)
    }

    pub(super) fn convert_at(&self, tools: &[ToolDeclaration], place: Place) -> Result<Vec<Value>, ProviderError> {
        tools.iter().map(|tool| self.convert_one(tool, place)).collect()
    }

    fn convert_one(&self, tool: &ToolDeclaration, place: Place) -> Result<Value, ProviderError> {
        let mut converted = match constraint::grammar(tool, self.grammar)? {
            Some(grammar) => json!({
                "type": "custom",
                "name": tool.name,
                "description": tool.description,
                "format": { "type": "grammar", "syntax": grammar.syntax, "definition": grammar.definition },
            }),
            None => self.function(tool)?,
        };
        if place == Place::SearchResult {
            converted["defer_loading"] = true.into();
        }
        Ok(converted)
    }

    fn function(&self, tool: &ToolDeclaration) -> Result<Value, ProviderError> {
        let mode = match self.strictness {
            Strictness::Unknown => StrictMode::Unsupported,
            Strictness::OffByDefault | Strictness::NullByDefault => ANY_KEYWORD,
        };
        let sampled = constraint::sampled_schema(tool, mode)?;
        let mut function = json!({
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": without_keywords(&sampled.schema, self.refused_keywords),
        });
        match self.strictness {
            Strictness::Unknown => {}
            Strictness::OffByDefault => function["strict"] = sampled.strict.into(),
            Strictness::NullByDefault => function["strict"] = sampled.strict.then_some(true).into(),
        }
        Ok(function)
    }
}

pub(in crate::api) fn grammar_mode(model: &Model) -> GrammarMode {
    GrammarMode::from_flag(Switches::of(model).flag("supportsOpenAIGrammarTools").unwrap_or(false))
}

/// What a model's server can say about tools in mid-conversation.
pub(in crate::api) fn tool_change_support(model: &Model) -> ToolChangeSupport {
    let flag = |name| Switches::of(model).flag(name).unwrap_or(false);
    if !flag("supportsMidConvoSystemMessages") {
        // What comes later is folded into the beginning, tools included.
        ToolChangeSupport::None
    } else if flag("supportsAdditionalTools") {
        ToolChangeSupport::Changes
    } else if flag("supportsToolSearch") {
        ToolChangeSupport::Additions
    } else {
        ToolChangeSupport::None
    }
}
