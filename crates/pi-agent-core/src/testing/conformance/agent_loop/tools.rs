//! Scripted tools and hooks.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use pi_ai::{InputBlock, Model, ToolDeclaration};
use serde_json::{Value, json};

use super::{
    fields, lock,
    script::{After, Before, Behavior, Case, ToolScript, Update},
};
use crate::{
    AgentHooks, AgentTool, ExecutionMode, NoCustom, ToolArguments, ToolContext, ToolError, ToolOutput,
    hooks::{
        AfterBlock, AfterToolCall, BeforeToolCall, HookError, NextTurn, Permission, PrepareRequest, RequestUpdate,
        ToolResultPatch, Turn, TurnDecision,
    },
};

/// The case's tools of these names.
pub(super) fn tool_set(case: &Case, names: &[String]) -> Vec<Arc<dyn AgentTool>> {
    let tool = |name: &String| -> Option<Arc<dyn AgentTool>> {
        let script: ToolScript = serde_json::from_value(case.tools.get(name)?.clone()).ok()?;
        let parameters = script.parameters.unwrap_or_else(|| json!({"type": "object", "properties": {}}));
        Some(Arc::new(ScriptedTool {
            declaration: ToolDeclaration::new(name, format!("The tool {name}."), parameters),
            mode: script.execution_mode.unwrap_or_default().into(),
            behavior: script.behavior,
        }))
    };
    names.iter().filter_map(tool).collect()
}

struct ScriptedTool {
    declaration: ToolDeclaration,
    mode: ExecutionMode,
    behavior: Behavior,
}

#[async_trait]
impl AgentTool for ScriptedTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn execution_mode(&self) -> ExecutionMode {
        self.mode
    }

    async fn execute(&self, arguments: ToolArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let behavior = &self.behavior;
        for update in &behavior.updates {
            context.update(ToolOutput::text(update).details(json!({})));
        }
        if let Some(millis) = behavior.delay_ms {
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        if behavior.wait_abort {
            context.signal.cancelled().await;
        }
        match &behavior.throw {
            Some(text) => return Err(ToolError::new(text)),
            None if behavior.wait_abort => return Err(ToolError::new("the call was aborted")),
            None => {}
        }
        let (text, details) = match behavior.echo {
            true => (serde_json::to_string(&arguments)?, json!({"args": arguments})),
            false => (behavior.text.clone().unwrap_or_else(|| "ok".to_owned()), json!({})),
        };
        Ok(ToolOutput {
            content: if behavior.no_content { Vec::new() } else { vec![InputBlock::text(text)] },
            details: Some(behavior.details.clone().unwrap_or(details)),
            structured_content: behavior.structured_content.clone(),
            usage: behavior.usage.clone(),
            is_error: behavior.is_error,
            terminate: behavior.terminate,
        })
    }
}

/// Hooks that answer as the case says.
pub(super) struct ScriptedHooks {
    case: Arc<Case>,
    finish_turn: Mutex<VecDeque<Value>>,
    prepare_request: Mutex<VecDeque<Value>>,
    prepare_next_turn: Mutex<VecDeque<Value>>,
}

impl ScriptedHooks {
    pub(super) fn new(case: Arc<Case>) -> Self {
        let queue = |values: &Vec<Value>| Mutex::new(values.iter().cloned().collect());
        Self {
            finish_turn: queue(&case.options.finish_turn),
            prepare_request: queue(&case.options.prepare_request),
            prepare_next_turn: queue(&case.options.prepare_next_turn),
            case,
        }
    }

    fn next_update(&self, values: &Mutex<VecDeque<Value>>) -> Result<Option<Update>, HookError> {
        match lock(values).pop_front() {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.get("throw").and_then(Value::as_str) {
                Some(text) => Err(HookError::new(text)),
                None => Ok(Some(serde_json::from_value(value)?)),
            },
        }
    }

    fn request_update(&self, update: &Update) -> Result<RequestUpdate<NoCustom>, HookError> {
        let context = update.context.as_ref();
        let tools = context.and_then(|context| context.tools.as_ref());
        Ok(RequestUpdate {
            messages: context.and_then(|context| context.messages.clone()),
            tools: tools.map(|names| tool_set(&self.case, names).into_iter().collect()),
            model: update.model.as_ref().map(|model| self.model(model)).transpose()?.map(Arc::new),
            thinking_level: update.thinking_level,
        })
    }

    fn model(&self, change: &Value) -> Result<Model, serde_json::Error> {
        let change = match change {
            Value::String(id) => json!({"id": id}),
            other => other.clone(),
        };
        let mut model = fields(serde_json::to_value(&self.case.model)?);
        model.extend(fields(change));
        serde_json::from_value(Value::Object(model))
    }
}

#[async_trait]
impl AgentHooks<NoCustom> for ScriptedHooks {
    async fn before_tool_call(&self, call: &mut BeforeToolCall<'_, NoCustom>) -> Result<Permission, HookError> {
        let Some(answer) = self.case.options.before_tool_call.get(call.call.id.as_str()) else {
            return Ok(Permission::Allow);
        };
        let answer: Before = serde_json::from_value(answer.clone())?;
        match answer {
            Before { throw: Some(text), .. } => Err(HookError::new(text)),
            Before { block: true, reason, terminate, .. } => {
                let then = if terminate { AfterBlock::Terminate } else { AfterBlock::Continue };
                Ok(Permission::Block { reason, then })
            }
            _ => Ok(Permission::Allow),
        }
    }

    async fn after_tool_call(&self, call: &AfterToolCall<'_, NoCustom>) -> Result<ToolResultPatch, HookError> {
        let Some(answer) = self.case.options.after_tool_call.get(call.call.id.as_str()) else {
            return Ok(ToolResultPatch::default());
        };
        let After { content, details, structured_content, is_error, usage, terminate, throw } =
            serde_json::from_value(answer.clone())?;
        match throw {
            Some(text) => Err(HookError::new(text)),
            None => Ok(ToolResultPatch { content, details, structured_content, is_error, usage, terminate }),
        }
    }

    async fn prepare_request(
        &self,
        _request: &PrepareRequest<'_, NoCustom>,
    ) -> Result<RequestUpdate<NoCustom>, HookError> {
        match self.next_update(&self.prepare_request)? {
            Some(update) => self.request_update(&update),
            None => Ok(RequestUpdate::default()),
        }
    }

    async fn finish_turn(&self, _turn: &Turn<'_, NoCustom>) -> Result<TurnDecision, HookError> {
        let decision = lock(&self.finish_turn).pop_front().unwrap_or_default();
        match (decision.get("action").and_then(Value::as_str), decision.get("throw").and_then(Value::as_str)) {
            (_, Some(text)) => Err(HookError::new(text)),
            (Some("end"), _) => Ok(TurnDecision::End),
            (Some("continue"), _) => Ok(TurnDecision::Continue),
            _ => Ok(TurnDecision::Natural),
        }
    }

    async fn prepare_next_turn(&self, _last: &Turn<'_, NoCustom>) -> Result<NextTurn<NoCustom>, HookError> {
        match self.next_update(&self.prepare_next_turn)? {
            Some(update) => {
                Ok(NextTurn { update: self.request_update(&update)?, add_messages: update.messages.clone() })
            }
            None => Ok(NextTurn::default()),
        }
    }
}
