//! Prompts whose answer is a value of a type.

use std::sync::{Arc, Mutex, PoisonError};

use pi_agent_core::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};

use super::{Activity, AgentSession, AgentSessionError, SessionPrompt, SessionTool};

/// The name of the tool by which the model gives its answer.
const TOOL: &str = "final_answer";

const DESCRIPTION: &str = "Gives the answer to the task, in the form that is asked for, and ends the task. Call it \
                           once, alone, when everything else is done: what is said beside it is not read.";

/// Said when the model only talked.
const REMINDER: &str = "Give the answer now, by calling final_answer. Text beside it is not read.";

/// How often the model is asked, the reminders included.
const ATTEMPTS: usize = 3;

/// What the tool takes. The wrapper makes an object of whatever the answer is: tools take nothing else.
#[derive(Deserialize, JsonSchema)]
struct Given<T> {
    /// The answer.
    answer: T,
}

impl AgentSession {
    /// Says something and has it answered by a value of type `T`, tools and all.
    ///
    /// While it is answered, the model is offered a tool that takes the answer, described by `T`'s schema; a value that
    /// does not fit goes back to the model with the reason. A model that only talks is reminded, twice at most. The
    /// record has the calls and reminders as any others.
    ///
    /// ```
    /// use pi_ai::faux::{FauxProvider, FauxReply};
    /// use pi_coding_agent::{sdk::{SessionOptions, create_agent_session}, session::SessionManager};
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Verdict {
    ///     /// Whether the change can be merged.
    ///     approved: bool,
    ///     reasons: Vec<String>,
    /// }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let reply = serde_json::json!({"answer": {"approved": true, "reasons": ["it is tested"]}});
    /// # let options = SessionOptions::default().stream_fn(FauxProvider::new([FauxReply::tool_call("final_answer", reply)]))
    /// #     .model(FauxProvider::model()).session_manager(SessionManager::in_memory());
    /// let session = create_agent_session(options).await?;
    /// let verdict: Verdict = session.prompt_as("Review the change.").await?;
    /// assert!(verdict.approved, "{:?}", verdict.reasons);
    /// # session.dispose().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`prompt`](Self::prompt); [`AgentSessionError::NoAnswer`] when the model gave no value of the type.
    pub async fn prompt_as<T>(&self, prompt: impl Into<SessionPrompt>) -> Result<T, AgentSessionError>
    where
        T: DeserializeOwned + JsonSchema + Send + 'static,
    {
        let given = Arc::new(Mutex::new(None::<T>));
        let offered = Offered::new(self, answer_tool(given.clone()))?;
        let mut prompt = prompt.into();
        let mut said = String::new();
        for _ in 0..ATTEMPTS {
            let reply = self.prompt(prompt).await?;
            if let Some(answer) = given.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return Ok(answer);
            }
            said = reply.into_text()?;
            prompt = REMINDER.into();
        }
        drop(offered);
        Err(AgentSessionError::NoAnswer { said })
    }
}

fn answer_tool<T>(given: Arc<Mutex<Option<T>>>) -> SessionTool
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
{
    let tool = Tool::new(TOOL, DESCRIPTION, async move |arguments: Given<T>, _context: ToolContext| {
        *given.lock().unwrap_or_else(PoisonError::into_inner) = Some(arguments.answer);
        Ok::<_, ToolError>(ToolOutput::text("The answer was taken.").terminate())
    });
    SessionTool::custom(tool)
}

/// A tool that is offered until this is dropped.
struct Offered<'a> {
    session: &'a AgentSession,
    /// A tool of the application that has the name otherwise.
    replaced: Option<SessionTool>,
    /// What was offered before.
    active: Vec<String>,
}

impl<'a> Offered<'a> {
    fn new(session: &'a AgentSession, tool: SessionTool) -> Result<Self, AgentSessionError> {
        let mut state = session.inner.state();
        match session.activity() {
            Activity::Idle if state.answer_is_typed => return Err(AgentSessionError::Busy),
            Activity::Idle => {}
            Activity::Running => return Err(AgentSessionError::Busy),
            Activity::Compacting => return Err(AgentSessionError::Compacting),
            Activity::Ended => return Err(AgentSessionError::Ended),
        }
        state.answer_is_typed = true;
        let replaced = state.tools.unregister(TOOL);
        let active = state.tools.active().to_vec();
        drop(state);
        session.register_tools([tool]);
        Ok(Self { session, replaced, active })
    }
}

impl Drop for Offered<'_> {
    fn drop(&mut self) {
        let names: Vec<String> = {
            let mut state = self.session.inner.state();
            state.answer_is_typed = false;
            state.tools.unregister(TOOL);
            state.tools.register(self.replaced.take());
            // Tools that were chosen meanwhile stay chosen; the application's own one comes back.
            let is_back = self.active.iter().any(|name| name == TOOL);
            let own = is_back.then(|| TOOL.to_owned());
            let others = state.tools.active().iter().filter(|name| *name != TOOL).cloned();
            others.chain(own).collect()
        };
        self.session.set_active_tools(names);
    }
}
