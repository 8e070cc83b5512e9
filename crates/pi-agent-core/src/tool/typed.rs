//! Tools from async closures.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures::future::BoxFuture;
use pi_ai::{ToolDeclaration, tool::ConstrainedSampling};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{AgentTool, ExecutionMode, ReplayPolicy, ToolArguments, ToolContext, ToolError, ToolOutput};
use crate::hooks::AsyncHook;

/// A tool from an async closure.
///
/// The type of the closure's first argument is the tool's schema; its doc comments are what the model reads about each
/// argument.
///
/// ```
/// use pi_agent_core::{AgentTool, Tool};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct CheckArguments {
///     /// Only this crate.
///     package: Option<String>,
/// }
///
/// let check = Tool::new("check", "Runs the project's checks.", async |arguments: CheckArguments, context| {
///     context.update("building …");
///     Ok(format!("{} is fine", arguments.package.as_deref().unwrap_or("everything")))
/// });
/// assert_eq!(check.declaration().parameters["properties"]["package"]["description"], "Only this crate.");
/// ```
#[derive(Clone)]
pub struct Tool {
    declaration: ToolDeclaration,
    label: Option<String>,
    execution_mode: ExecutionMode,
    replay_policy: ReplayPolicy,
    output_schema: Option<Value>,
    prepare: Option<Arc<dyn Fn(ToolArguments) -> ToolArguments + Send + Sync>>,
    run: Arc<Run>,
}

type Run = dyn Fn(ToolArguments, ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

impl Tool {
    /// A tool whose arguments are a Rust type.
    pub fn new<A, O>(
        name: impl Into<String>,
        description: impl Into<String>,
        run: impl AsyncHook<A, ToolContext, Result<O, ToolError>>,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        O: Into<ToolOutput> + 'static,
    {
        let run = move |arguments, context| {
            let read = serde_json::from_value::<A>(Value::Object(arguments));
            let call = read.map(|arguments| run.run(arguments, context));
            let call: BoxFuture<'static, _> = Box::pin(async move {
                match call {
                    Ok(call) => call.await.map(Into::into),
                    Err(error) => Err(ToolError::new(format!("The arguments do not fit the tool: {error}."))),
                }
            });
            call
        };
        Self::with_run(ToolDeclaration::typed::<A>(name, description), Arc::new(run))
    }

    /// A tool whose declaration, with a JSON Schema for the arguments, is at hand: for tools that are described at run
    /// time.
    pub fn from_declaration<O: Into<ToolOutput> + 'static>(
        declaration: ToolDeclaration,
        run: impl AsyncHook<ToolArguments, ToolContext, Result<O, ToolError>>,
    ) -> Self {
        let run = move |arguments, context| {
            let call = run.run(arguments, context);
            let call: BoxFuture<'static, _> = Box::pin(async move { call.await.map(Into::into) });
            call
        };
        Self::with_run(declaration, Arc::new(run))
    }

    fn with_run(declaration: ToolDeclaration, run: Arc<Run>) -> Self {
        Self {
            declaration,
            label: None,
            execution_mode: ExecutionMode::default(),
            replay_policy: ReplayPolicy::default(),
            output_schema: None,
            prepare: None,
            run,
        }
    }

    /// The tool's name for people; without one, its name.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// It never runs beside other calls of the same message.
    #[must_use]
    pub fn sequential(mut self) -> Self {
        self.execution_mode = ExecutionMode::Sequential;
        self
    }

    /// Its calls may be made again.
    #[must_use]
    pub fn replay_safe(mut self) -> Self {
        self.replay_policy = ReplayPolicy::Safe;
        self
    }

    /// What its structured content looks like: a JSON Schema.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// Repairs arguments before they are checked.
    #[must_use]
    pub fn prepare_arguments(
        mut self,
        prepare: impl Fn(ToolArguments) -> ToolArguments + Send + Sync + 'static,
    ) -> Self {
        self.prepare = Some(Arc::new(prepare));
        self
    }

    /// How strictly the provider should hold the model to the schema.
    #[must_use]
    pub fn constrained_sampling(mut self, constraint: ConstrainedSampling) -> Self {
        self.declaration.constrained_sampling = Some(constraint);
        self
    }
}

#[async_trait]
impl AgentTool for Tool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn label(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.declaration.name)
    }

    fn execution_mode(&self) -> ExecutionMode {
        self.execution_mode
    }

    fn replay_policy(&self) -> ReplayPolicy {
        self.replay_policy
    }

    fn output_schema(&self) -> Option<&Value> {
        self.output_schema.as_ref()
    }

    fn prepare_arguments(&self, arguments: ToolArguments) -> ToolArguments {
        match &self.prepare {
            Some(prepare) => prepare(arguments),
            None => arguments,
        }
    }

    async fn execute(&self, arguments: ToolArguments, context: ToolContext) -> Result<ToolOutput, ToolError> {
        (self.run)(arguments, context).await
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("declaration", &self.declaration)
            .field("execution_mode", &self.execution_mode)
            .field("replay_policy", &self.replay_policy)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use pi_ai::CancellationToken;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    struct Sum {
        /// The first number.
        a: i64,
        b: i64,
    }

    fn arguments(value: Value) -> ToolArguments {
        value.as_object().cloned().unwrap()
    }

    fn context() -> ToolContext {
        ToolContext::new("c1", CancellationToken::new())
    }

    #[tokio::test]
    async fn a_typed_closure_declares_itself_and_runs() {
        let tool = Tool::new("sum", "Adds.", async |sum: Sum, _context| Ok((sum.a + sum.b).to_string()));
        let parameters = &tool.declaration().parameters;
        assert_eq!(parameters["properties"]["a"]["description"], "The first number.");
        assert_eq!(parameters.get("$schema").or(parameters.get("title")), None);
        let output = tool.execute(arguments(json!({"a": 1, "b": 2})), context()).await.unwrap();
        assert_eq!(output, ToolOutput::text("3"));
    }

    #[tokio::test]
    async fn arguments_of_the_wrong_shape_are_an_error_that_names_the_field() {
        let tool = Tool::new("sum", "Adds.", async |sum: Sum, _context| Ok(sum.a.to_string()));
        let error = tool.execute(arguments(json!({"a": 1})), context()).await.unwrap_err().to_string();
        assert!(error.contains("`b`"), "{error}");
    }

    #[tokio::test]
    async fn a_tool_that_is_described_at_run_time_gets_its_arguments_as_json() {
        let declaration = ToolDeclaration::new("echo", "Repeats.", json!({"type": "object"}));
        let tool = Tool::from_declaration(declaration, async |arguments: ToolArguments, _context| {
            let text: String = serde_json::to_string(&arguments)?;
            Ok(text)
        });
        let output = tool.execute(arguments(json!({"x": [1]})), context()).await.unwrap();
        assert_eq!(output.to_text(), r#"{"x":[1]}"#);
    }
}
