//! From a prompt to a settled session.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pi_ai::{AssistantMessage, CancellationToken, Content, ImageContent, InputBlock, TextContent, UserMessage};
use tokio::task::JoinHandle;

use super::{
    Activity, AgentSession, AgentSessionError, Delivery, Inner, Queued, SessionEvent, Settled, compaction::AfterRun,
    lifetime::EndActivity,
};
use crate::{
    extensions::{
        CalledCommand, EventKind, RunStart,
        event::{self, AgentSettledEvent, BeforeAgentStartEvent, InputSource, RunTrigger},
    },
    messages::{CodingMessage, SessionMessage},
    resources::SystemPromptOptions,
};

/// What a person says: text, and pictures beside it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionPrompt {
    /// The text.
    pub text: String,
    /// Pictures.
    pub images: Vec<ImageContent>,
}

impl From<&str> for SessionPrompt {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), images: Vec::new() }
    }
}

impl From<String> for SessionPrompt {
    fn from(text: String) -> Self {
        Self { text, images: Vec::new() }
    }
}

/// What a prompt came to.
#[derive(Clone, Debug)]
pub struct SessionReply {
    /// The last answer.
    pub message: Option<Arc<AssistantMessage>>,
    /// What a person should know when the answer failed and nothing automatic helped.
    pub advice: Option<String>,
}

impl SessionReply {
    /// The text of the last answer, also when it failed.
    pub fn text(&self) -> String {
        self.message.as_ref().map(|message| message.text()).unwrap_or_default()
    }

    /// The text of the last answer.
    ///
    /// # Errors
    /// When the answer ended in error or was aborted.
    pub fn into_text(self) -> Result<String, AgentSessionError> {
        match self.message {
            Some(message) if message.is_failed() => {
                let text = message.error_message.clone().unwrap_or_else(|| "The answer was aborted.".to_owned());
                Err(AgentSessionError::Failed { message: text })
            }
            Some(message) => Ok(message.text()),
            None => Ok(String::new()),
        }
    }
}

/// A prompt that is being answered: await it for the [`SessionReply`]; drop it to abort.
///
/// It runs in a task of its own, so that its events are completed whatever happens to this handle.
#[must_use = "dropping a run aborts it"]
pub struct SessionRun {
    state: RunState,
    signal: Option<CancellationToken>,
}

enum RunState {
    Refused(Option<AgentSessionError>),
    Running(JoinHandle<Result<SessionReply, AgentSessionError>>),
}

impl SessionRun {
    /// Lets it go on without this handle.
    pub fn detach(mut self) {
        self.signal = None;
    }

    fn refused(error: AgentSessionError) -> Self {
        Self { state: RunState::Refused(Some(error)), signal: None }
    }
}

impl Future for SessionRun {
    type Output = Result<SessionReply, AgentSessionError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = match &mut self.state {
            RunState::Refused(error) => Err(error.take().unwrap_or(AgentSessionError::Busy)),
            RunState::Running(task) => match ready!(Pin::new(task).poll(cx)) {
                Ok(result) => result,
                Err(error) => Err(AgentSessionError::Failed { message: format!("the session's task ended: {error}") }),
            },
        };
        self.signal = None;
        Poll::Ready(result)
    }
}

impl Drop for SessionRun {
    fn drop(&mut self) {
        if let Some(signal) = self.signal.take() {
            signal.cancel();
        }
    }
}

impl fmt::Debug for SessionRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            RunState::Refused(_) => "SessionRun(refused)",
            RunState::Running(_) => "SessionRun(running)",
        })
    }
}

impl AgentSession {
    /// Says something and has it answered, tools and all. It begins at once; the result is for whoever waits.
    ///
    /// A command of an extension is run, also while another prompt is answered; the model does not see it.
    ///
    /// Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// The run's output is [`AgentSessionError::Busy`] while another prompt is answered, and
    /// [`AgentSessionError::NoModel`] when there is nobody to answer.
    pub fn prompt(&self, prompt: impl Into<SessionPrompt>) -> SessionRun {
        self.prompt_from(prompt, InputSource::Interactive)
    }

    /// As [`prompt`](Self::prompt), for a program that says who is speaking. Extensions learn of it.
    pub fn prompt_from(&self, prompt: impl Into<SessionPrompt>, source: InputSource) -> SessionRun {
        let prompt = prompt.into();
        match self.inner.extensions.command_of(&prompt.text) {
            Some(called) => self.run_command(called),
            None => self.start(Opening::Prompt(prompt, source)),
        }
    }

    /// Says something while a prompt is answered: after the current turn, or when the run would end.
    ///
    /// # Errors
    /// When it calls up a command of an extension, or a skill that cannot be read.
    pub async fn queue(
        &self,
        prompt: impl Into<SessionPrompt>,
        delivery: Delivery,
    ) -> Result<Queued, AgentSessionError> {
        let prompt = prompt.into();
        if let Some(called) = self.inner.extensions.command_of(&prompt.text) {
            return Err(AgentSessionError::CommandCannotWait { name: called.name });
        }
        let Some(prompt) = self.inner.take_input(prompt, InputSource::Interactive, Some(delivery)).await else {
            return Ok(Queued::Handled);
        };
        let prompt = self.inner.expand(prompt).await?;
        self.inner.enqueue(prompt, delivery).await;
        Ok(Queued::Waits)
    }

    /// Says something after the current turn and all its tool calls.
    ///
    /// # Errors
    /// As [`queue`](Self::queue).
    pub async fn steer(&self, prompt: impl Into<SessionPrompt>) -> Result<Queued, AgentSessionError> {
        self.queue(prompt, Delivery::Steer).await
    }

    /// Says something when the run would end.
    ///
    /// # Errors
    /// As [`queue`](Self::queue).
    pub async fn follow_up(&self, prompt: impl Into<SessionPrompt>) -> Result<Queued, AgentSessionError> {
        self.queue(prompt, Delivery::FollowUp).await
    }

    /// Whether something waits to be said.
    pub fn has_queued(&self) -> bool {
        self.inner.state().queued.len() > 0 || self.inner.agent.has_queued_messages()
    }

    /// Takes back what waits, and gives the texts: steering, then follow-up.
    pub async fn clear_queue(&self) -> (Vec<String>, Vec<String>) {
        self.inner.agent.clear_all_queues();
        let texts = self.inner.state().queued.clear();
        self.inner.tell_queue().await;
        texts
    }

    pub(super) fn start(&self, opening: Opening) -> SessionRun {
        if let Err(error) = self.inner.begin(Activity::Running) {
            return SessionRun::refused(error);
        }
        let signal = self.inner.lifetime.child_token();
        self.inner.state().run.begin(signal.clone());
        let (inner, running, session) = (self.inner.clone(), signal.clone(), self.downgrade());
        let task = tokio::spawn(async move {
            // Ends the activity whatever happens in here.
            let activity = EndActivity(inner.clone());
            let answered = inner.answer(opening, &running).await;
            drop(activity);
            inner.answer_late_messages(&session);
            answered
        });
        SessionRun { state: RunState::Running(task), signal: Some(signal) }
    }

    /// Runs a command of an extension beside whatever the session is doing.
    fn run_command(&self, called: CalledCommand) -> SessionRun {
        let (extensions, signal) = (self.inner.extensions.clone(), self.inner.lifetime.child_token());
        let task = tokio::spawn(async move {
            extensions.run_command(called, &signal).await;
            Ok(SessionReply { message: None, advice: None })
        });
        SessionRun { state: RunState::Running(task), signal: None }
    }
}

/// What a run begins with.
pub(super) enum Opening {
    /// What a person says; it may be a command that stands for a text.
    Prompt(SessionPrompt, InputSource),
    /// What is said in a person's place, as it is.
    Said(SessionPrompt),
    /// Messages as they are.
    Messages(Vec<SessionMessage>),
}

impl Inner {
    /// Answers: runs the loop, and again as long as something automatic remains.
    async fn answer(&self, opening: Opening, signal: &CancellationToken) -> Result<SessionReply, AgentSessionError> {
        let answered = self.try_answer(opening, signal).await;
        // A run that did not come to its end may have left something.
        self.add_deferred().await?;
        answered
    }

    async fn try_answer(
        &self,
        opening: Opening,
        signal: &CancellationToken,
    ) -> Result<SessionReply, AgentSessionError> {
        let prompt = match opening {
            Opening::Prompt(prompt, source) => match self.take_input(prompt, source, None).await {
                Some(prompt) => Opening::Said(self.expand(prompt).await?),
                // An extension dealt with it.
                None => return Ok(SessionReply { message: None, advice: None }),
            },
            other => other,
        };
        if self.state().selection.model.is_none() {
            return Err(AgentSessionError::NoModel);
        }
        self.make_room(signal).await?;
        let prompt = self.begin_run(prompt, signal).await?;
        self.record_level().await?;
        let ran = self.run_until_settled(prompt, signal).await;
        self.state().run.prompt = None;
        if let Err(error) = self.add_deferred().await {
            self.state().run.failure.get_or_insert(error);
        }
        self.settle(signal).await;
        if let Some(failure) = self.state().run.failure.take() {
            return Err(failure.into());
        }
        let advice = ran?;
        let message = self.state().run.last_turn.answer.as_ref().map(|(_, answer)| answer.clone());
        Ok(SessionReply { message, advice })
    }

    /// What a run begins with: what changed in the prompt, what was said, and what extensions say about it.
    async fn begin_run(
        &self,
        opening: Opening,
        signal: &CancellationToken,
    ) -> Result<Vec<SessionMessage>, AgentSessionError> {
        let added = self.before_agent_start(&opening, signal).await?;
        let said = match opening {
            Opening::Prompt(prompt, _) | Opening::Said(prompt) => {
                vec![user_message(prompt, self.clock.now())]
            }
            Opening::Messages(messages) => messages,
        };
        self.add_deferred().await?;
        let head = self.prompt_update()?.map(SessionMessage::from);
        let waiting = self.take_next_prompt();
        Ok(head.into_iter().chain(said).chain(waiting).chain(added).collect())
    }

    /// Asks the extensions about a run that is about to begin. Gives what they say.
    async fn before_agent_start(
        &self,
        opening: &Opening,
        signal: &CancellationToken,
    ) -> Result<Vec<SessionMessage>, AgentSessionError> {
        if !self.extensions.has_handlers(EventKind::BeforeAgentStart) {
            return Ok(Vec::new());
        }
        let trigger = match opening {
            Opening::Prompt(prompt, _) | Opening::Said(prompt) => {
                RunTrigger::User { prompt: prompt.text.clone(), images: prompt.images.clone() }
            }
            Opening::Messages(messages) => match messages.iter().rev().find_map(SessionMessage::as_custom) {
                Some(CodingMessage::Custom(content)) => RunTrigger::Custom { message: content.clone() },
                _ => return Ok(Vec::new()),
            },
        };
        let options = self.prompt_options();
        let render = |options: &SystemPromptOptions| self.rendered_prompt(options);
        let event = BeforeAgentStartEvent::new(render(&options), options.clone(), trigger);
        let RunStart { messages, options: changed } = self.extensions.before_agent_start(signal, event, render).await;
        if changed.selected_tools != options.selected_tools {
            self.activate_tools(changed.selected_tools.clone());
        }
        if changed != options {
            self.state().run.prompt = Some(changed);
        }
        Ok(messages.into_iter().map(|message| CodingMessage::Custom(self.stamped(message)).into()).collect())
    }

    /// Tells everybody that nothing automatic remains.
    async fn settle(&self, signal: &CancellationToken) {
        self.state().said.is_settling = true;
        let outcome = if signal.is_cancelled() { Settled::Aborted } else { Settled::Finished };
        let payload = || AgentSettledEvent::new(outcome == Settled::Aborted);
        self.extensions.notify(event::AgentSettled, &self.lifetime, payload).await;
        self.tell(SessionEvent::AgentSettled { outcome }).await;
    }

    /// Has a message wait until it can be said.
    pub(super) async fn enqueue(&self, prompt: SessionPrompt, delivery: Delivery) {
        let message = user_message(prompt, self.clock.now());
        self.state().queued.push(delivery, message.clone());
        match delivery {
            Delivery::Steer => self.agent.steer(message),
            Delivery::FollowUp => self.agent.follow_up(message),
        }
        self.tell_queue().await;
    }

    /// Whether nothing may follow the run that just ended.
    fn is_over(&self, signal: &CancellationToken) -> bool {
        signal.is_cancelled() || self.state().run.failure.is_some()
    }

    /// Runs the loop, and again as long as a failed turn should be tried again or a recovery calls for it. Gives what
    /// a person should know when nothing helped.
    async fn run_until_settled(
        &self,
        prompt: Vec<SessionMessage>,
        signal: &CancellationToken,
    ) -> Result<Option<String>, AgentSessionError> {
        self.agent.set_messages(self.manager.context().messages);
        self.watch_provider();
        self.run(self.agent.prompt(prompt), signal).await?;
        loop {
            if self.is_over(signal) {
                return Ok(None);
            }
            let advice = match self.planned_retry() {
                Some(planned) if self.prepare_retry(&planned, signal).await? => None,
                Some(_) => return Ok(None),
                None => {
                    // What a recovery tries is no retry any more.
                    self.give_up().await;
                    match self.recover(signal).await? {
                        AfterRun::AskAgain => None,
                        AfterRun::Settle => Some(None),
                        AfterRun::Advise(advice) => Some(Some(advice)),
                    }
                }
            };
            if let Some(advice) = advice
                && (self.is_over(signal) || !self.before_settle(signal).await?)
            {
                return Ok(advice);
            }
            if self.is_over(signal) {
                return Ok(None);
            }
            self.agent.set_messages(self.manager.context().messages);
            self.watch_provider();
            self.run(self.agent.continue_run(), signal).await?;
        }
    }

    /// One run of the loop, aborted by the session's signal.
    async fn run(
        &self,
        run: pi_agent_core::Run<CodingMessage>,
        signal: &CancellationToken,
    ) -> Result<(), AgentSessionError> {
        let mut run = std::pin::pin!(run);
        tokio::select! {
            result = &mut run => return result.map(drop).map_err(AgentSessionError::from),
            () = signal.cancelled() => self.agent.abort(),
        }
        run.await.map(drop).map_err(AgentSessionError::from)
    }
}

fn user_message(prompt: SessionPrompt, timestamp: pi_ai::Timestamp) -> SessionMessage {
    let text = InputBlock::Text(TextContent { text: prompt.text, text_signature: None });
    let images = prompt.images.into_iter().map(InputBlock::Image);
    let content = Content::Blocks(std::iter::once(text).chain(images).collect());
    let message: pi_ai::Message = UserMessage { content, timestamp }.into();
    message.into()
}
