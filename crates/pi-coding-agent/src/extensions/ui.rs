//! Asking and telling the user.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use pi_ai::CancellationToken;
use serde::{Deserialize, Serialize};

use super::{
    ExtensionRunner,
    event::{self, PromptKind, UiPromptEvent},
};
use crate::styled_text::StyledText;

/// What shows the user something: the terminal, or a program that drives the session. It is plain data on both sides.
#[async_trait]
pub trait ExtensionUi: Send + Sync + 'static {
    /// Asks a question and waits for the answer. `None`: the user gave none, or went away. When `signal` is cancelled,
    /// nobody waits any more and the question should disappear.
    async fn ask(&self, question: UiQuestion, signal: CancellationToken) -> Option<UiAnswer>;

    /// Shows something without waiting.
    fn show(&self, update: UiUpdate);

    /// Whether anybody is there to answer.
    fn has_user(&self) -> bool {
        true
    }

    /// How the program shows the session.
    fn mode(&self) -> Mode;
}

/// How a program shows a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Mode {
    /// On a terminal, with an editor.
    Tui,
    /// To a program that drives it.
    Rpc,
    /// As JSON lines.
    Json,
    /// By its last answer, or not at all.
    Print,
}

#[async_trait]
impl<T: ExtensionUi + ?Sized> ExtensionUi for Arc<T> {
    async fn ask(&self, question: UiQuestion, signal: CancellationToken) -> Option<UiAnswer> {
        (**self).ask(question, signal).await
    }

    fn show(&self, update: UiUpdate) {
        (**self).show(update);
    }

    fn has_user(&self) -> bool {
        (**self).has_user()
    }

    fn mode(&self) -> Mode {
        (**self).mode()
    }
}

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "camelCase")]
#[non_exhaustive]
pub enum UiQuestion {
    /// One of several.
    Select {
        /// The question.
        title: String,
        /// What can be chosen.
        options: Vec<String>,
    },
    /// Yes or no.
    Confirm {
        /// The question.
        title: String,
        /// What it is about.
        message: String,
    },
    /// A line of text.
    Input {
        /// The question.
        title: String,
        /// What stands there as long as nothing is typed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        placeholder: Option<String>,
    },
    /// A longer text.
    Editor {
        /// The question.
        title: String,
        /// What stands there to begin with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefill: Option<String>,
    },
}

impl UiQuestion {
    fn kind(&self) -> PromptKind {
        match self {
            Self::Select { .. } => PromptKind::Select,
            Self::Confirm { .. } => PromptKind::Confirm,
            Self::Input { .. } => PromptKind::Input,
            Self::Editor { .. } => PromptKind::Editor,
        }
    }

    fn title(&self) -> &str {
        match self {
            Self::Select { title, .. }
            | Self::Confirm { title, .. }
            | Self::Input { title, .. }
            | Self::Editor { title, .. } => title,
        }
    }
}

/// What the user answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UiAnswer {
    /// Yes or no.
    Confirmed(bool),
    /// A text, or what was chosen.
    Value(String),
}

/// Something that is shown without waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "camelCase")]
#[non_exhaustive]
pub enum UiUpdate {
    /// A notice.
    Notify {
        /// The text.
        message: String,
        /// How much it matters.
        level: NoticeLevel,
    },
    /// A word on the status line.
    SetStatus {
        /// Whose it is; a later one takes its place.
        key: String,
        /// The text; `None` takes it away.
        text: Option<String>,
    },
    /// Lines beside the editor.
    SetWidget {
        /// Whose they are; later ones take their place.
        key: String,
        /// The lines; `None` takes them away.
        lines: Option<StyledText>,
        /// Where they stand.
        placement: WidgetPlacement,
    },
    /// The terminal's title.
    SetTitle {
        /// The title.
        title: String,
    },
    /// What stands in the editor.
    SetEditorText {
        /// The text.
        text: String,
    },
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NoticeLevel {
    /// Good to know.
    #[default]
    Info,
    /// Something may be wrong.
    Warning,
    /// Something is wrong.
    Error,
}

/// Where a widget stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WidgetPlacement {
    /// Above the editor.
    #[default]
    AboveEditor,
    /// Below it.
    BelowEditor,
}

/// Nobody is there: questions have no answer, and nothing is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoUi;

#[async_trait]
impl ExtensionUi for NoUi {
    async fn ask(&self, _question: UiQuestion, _signal: CancellationToken) -> Option<UiAnswer> {
        None
    }

    fn show(&self, _update: UiUpdate) {}

    fn has_user(&self) -> bool {
        false
    }

    fn mode(&self) -> Mode {
        Mode::Print
    }
}

/// The user, as an extension reaches them. A question ends without an answer when the run is aborted, when its time is
/// up, and when there is nobody to ask.
#[derive(Clone)]
pub struct Ui {
    runner: ExtensionRunner,
    signal: CancellationToken,
    timeout: Option<Duration>,
}

impl Ui {
    pub(super) fn new(runner: ExtensionRunner, signal: CancellationToken) -> Self {
        Self { runner, signal, timeout: None }
    }

    /// Waits for an answer no longer than this.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Whether anybody is there to answer.
    pub fn has_user(&self) -> bool {
        self.runner.ui().has_user()
    }

    /// How the program shows the session.
    pub fn mode(&self) -> Mode {
        self.runner.ui().mode()
    }

    /// Has the user choose.
    pub async fn select(
        &self,
        title: impl Into<String>,
        options: impl IntoIterator<Item = impl Into<String>>,
    ) -> Option<String> {
        let options = options.into_iter().map(Into::into).collect();
        self.ask_for_text(UiQuestion::Select { title: title.into(), options }).await
    }

    /// Asks for a yes. Without an answer it is a no.
    pub async fn confirm(&self, title: impl Into<String>, message: impl Into<String>) -> bool {
        let question = UiQuestion::Confirm { title: title.into(), message: message.into() };
        self.ask(question).await == Some(UiAnswer::Confirmed(true))
    }

    /// Asks for a line of text.
    pub async fn input(&self, title: impl Into<String>, placeholder: Option<&str>) -> Option<String> {
        let placeholder = placeholder.map(str::to_owned);
        self.ask_for_text(UiQuestion::Input { title: title.into(), placeholder }).await
    }

    /// Asks for a longer text.
    pub async fn editor(&self, title: impl Into<String>, prefill: Option<&str>) -> Option<String> {
        let prefill = prefill.map(str::to_owned);
        self.ask_for_text(UiQuestion::Editor { title: title.into(), prefill }).await
    }

    async fn ask_for_text(&self, question: UiQuestion) -> Option<String> {
        match self.ask(question).await? {
            UiAnswer::Value(text) => Some(text),
            UiAnswer::Confirmed(_) => None,
        }
    }

    /// Asks a question.
    pub async fn ask(&self, question: UiQuestion) -> Option<UiAnswer> {
        let ui = self.runner.ui();
        if !ui.has_user() {
            return None;
        }
        let open = OpenPrompt::begin(&self.runner, question.kind(), question.title());
        let gone = self.signal.child_token();
        let _gone = gone.clone().drop_guard();
        let asked = ui.ask(question, gone);
        let answer = tokio::select! {
            answer = asked => answer,
            () = self.signal.cancelled() => None,
            () = elapsed(self.timeout) => None,
        };
        drop(open);
        answer
    }

    /// Shows a notice.
    pub fn notify(&self, message: impl Into<String>) {
        self.notify_as(message, NoticeLevel::Info);
    }

    /// Shows a notice that matters more or less.
    pub fn notify_as(&self, message: impl Into<String>, level: NoticeLevel) {
        self.show(UiUpdate::Notify { message: message.into(), level });
    }

    /// Puts a word on the status line, or takes it away.
    pub fn set_status(&self, key: impl Into<String>, text: Option<&str>) {
        self.show(UiUpdate::SetStatus { key: key.into(), text: text.map(str::to_owned) });
    }

    /// Puts lines beside the editor, or takes them away.
    pub fn set_widget(&self, key: impl Into<String>, lines: Option<StyledText>, placement: WidgetPlacement) {
        self.show(UiUpdate::SetWidget { key: key.into(), lines, placement });
    }

    /// Sets the terminal's title.
    pub fn set_title(&self, title: impl Into<String>) {
        self.show(UiUpdate::SetTitle { title: title.into() });
    }

    /// Puts a text into the editor.
    pub fn set_editor_text(&self, text: impl Into<String>) {
        self.show(UiUpdate::SetEditorText { text: text.into() });
    }

    /// Shows something.
    pub fn show(&self, update: UiUpdate) {
        self.runner.ui().show(update);
    }
}

impl fmt::Debug for Ui {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ui").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

async fn elapsed(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => std::future::pending().await,
    }
}

/// A question that is open, also when whoever asked goes away. Handlers are told beside it: nobody waits for them.
struct OpenPrompt {
    runner: ExtensionRunner,
    event: UiPromptEvent,
}

impl OpenPrompt {
    fn begin(runner: &ExtensionRunner, kind: PromptKind, title: &str) -> Self {
        let event = UiPromptEvent::new(kind, Some(title.to_owned()));
        if runner.count_prompts(1) {
            let (runner, event) = (runner.clone(), event.clone());
            runner.clone().spawn(async move {
                runner.notify(event::UiPromptStart, &CancellationToken::new(), || event).await;
            });
        }
        Self { runner: runner.clone(), event }
    }
}

impl Drop for OpenPrompt {
    fn drop(&mut self) {
        if self.runner.count_prompts(-1) {
            let (runner, event) = (self.runner.clone(), self.event.clone());
            self.runner.spawn(async move {
                runner.notify(event::UiPromptEnd, &CancellationToken::new(), || event).await;
            });
        }
    }
}
