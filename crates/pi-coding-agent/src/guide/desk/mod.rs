//! Where a task asks for facts. What the transcript knows it gets at once; what it does not becomes a tool call.
//!
//! A task is a plain function that asks with `?`. On the first request of a prompt nothing is known, so it stops at
//! its first question, which becomes a call. On the next request it runs again from the start, gets that answer, and
//! stops at the next question, until none is left. So a task needs no state of its own: the transcript is its state.

mod files;
mod listing;
mod notices;
mod numbers;
mod shell;

use serde_json::{Map, Value, json};

use super::conversation::{Conversation, Outcome};

pub(super) use files::{Entry, FileText, Found, Query, QueryKind, escape_expression, line_count};
pub(super) use listing::{Amount, Listing};
pub(super) use numbers::LinesOfKind;
pub(super) use shell::quote;

/// Requests with tool calls that one prompt may cost.
pub(super) const MOST_ROUNDS: usize = 14;
/// Calls in one request.
const MOST_CALLS: usize = 12;

/// A tool call that the guide wants to make.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) arguments: Map<String, Value>,
}

/// Why an answer cannot be had.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Trouble {
    /// None of the tools that could do it is active.
    NoTool {
        /// What was to be done, as in "to read a file".
        need: &'static str,
        /// The tools that could do it.
        any_of: &'static str,
    },
    /// The tool failed.
    Failed { doing: String, message: String },
    /// The call was never carried out.
    Lost { doing: String },
    /// The prompt has cost as many rounds as it may.
    OutOfRounds,
}

/// Why a task stops.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stop {
    /// It waits for the answers to the calls it asked for.
    Wait,
    /// It cannot go on.
    Trouble(Trouble),
}

/// What a question gives.
pub(super) type Ask<T> = Result<T, Stop>;

/// Turns trouble into a value, for tasks that can do without an answer.
pub(super) trait Settle<T> {
    fn settle(self) -> Ask<Result<T, Trouble>>;
}

impl<T> Settle<T> for Ask<T> {
    fn settle(self) -> Ask<Result<T, Trouble>> {
        match self {
            Ok(value) => Ok(Ok(value)),
            Err(Stop::Trouble(trouble)) => Ok(Err(trouble)),
            Err(Stop::Wait) => Err(Stop::Wait),
        }
    }
}

/// Asks several questions at once: all that are open become calls of one request.
pub(super) fn all<T>(questions: impl IntoIterator<Item = Ask<T>>) -> Ask<Vec<Result<T, Trouble>>> {
    let mut answers = Vec::new();
    let mut waits = false;
    for question in questions {
        match question.settle() {
            Ok(answer) => answers.push(answer),
            Err(_) => waits = true,
        }
    }
    if waits { Err(Stop::Wait) } else { Ok(answers) }
}

/// What a task works at.
#[derive(Debug)]
pub(super) struct Desk<'c> {
    pub(super) conversation: &'c Conversation,
    wanted: Vec<Call>,
    /// Said before the first calls.
    remark: Option<String>,
    /// Facts before this one were there before the last change.
    passed: usize,
}

impl<'c> Desk<'c> {
    pub(super) fn new(conversation: &'c Conversation) -> Self {
        Self { conversation, wanted: Vec::new(), remark: None, passed: 0 }
    }

    /// The calls that were asked for, and what to say before them.
    pub(super) fn into_calls(self) -> (Option<String>, Vec<Call>) {
        let mut calls = self.wanted;
        calls.truncate(MOST_CALLS);
        (self.remark.filter(|_| self.conversation.rounds == 0), calls)
    }

    /// Whether a tool is active.
    pub(super) fn has(&self, tool: &str) -> bool {
        self.conversation.tools.iter().any(|name| name == tool)
    }

    /// What is said when the first calls are made.
    pub(super) fn remark(&mut self, text: impl Into<String>) {
        self.remark.get_or_insert(text.into());
    }

    /// The name of the working folder.
    pub(super) fn folder_name(&self) -> &str {
        let cwd = self.conversation.cwd.as_deref().unwrap_or_default();
        cwd.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
    }

    /// A path as it is shown: relative to the working folder when it lies inside.
    pub(super) fn shown<'p>(&self, path: &'p str) -> &'p str {
        let inside = self.conversation.cwd.as_deref().and_then(|cwd| path.strip_prefix(cwd)?.strip_prefix('/'));
        let path = inside.unwrap_or(path);
        path.strip_prefix("./").filter(|rest| !rest.is_empty()).unwrap_or(path)
    }

    /// Looks around with a shell command. Output comes back even when the command fails.
    pub(super) fn bash(&mut self, command: &str, timeout: Option<u64>) -> Ask<CommandOutput> {
        self.shell(command, timeout, Effect::Looks)
    }

    /// Runs a shell command that may change things.
    pub(super) fn run(&mut self, command: &str, timeout: Option<u64>) -> Ask<CommandOutput> {
        self.shell(command, timeout, Effect::Changes)
    }

    fn shell(&mut self, command: &str, timeout: Option<u64>, effect: Effect) -> Ask<CommandOutput> {
        if !self.has("bash") {
            return Err(Stop::Trouble(Trouble::NoTool { need: "to run a command", any_of: "bash" }));
        }
        let mut arguments = json!({"command": command});
        if let Some(seconds) = timeout {
            arguments["timeout"] = seconds.into();
        }
        match self.call("bash", arguments, effect)? {
            Outcome::Done(text) => Ok(notices::command_output(&text, Some(0))),
            Outcome::Failed(text) => {
                let output = notices::command_output(&text, None);
                if output.exit_code.is_some() || output.ending.is_some() {
                    return Ok(output);
                }
                // The tool itself failed, or something stood in its way.
                let message = output.text.trim().to_owned();
                Err(Stop::Trouble(Trouble::Failed { doing: format!("`{}`", brief(command)), message }))
            }
            Outcome::Lost => Err(Stop::Trouble(Trouble::Lost { doing: format!("`{}`", brief(command)) })),
        }
    }

    /// Calls a tool: the outcome when the transcript has it, else a wish.
    ///
    /// Tasks ask in the same order each time they run. What was seen before a change is no answer to a question that
    /// is asked after it; so each change that is passed moves the place from which on answers count.
    fn call(&mut self, tool: &str, arguments: Value, effect: Effect) -> Ask<Outcome> {
        let Value::Object(arguments) = arguments else { return Err(Stop::Wait) };
        let facts = self.conversation.facts.iter().enumerate().skip(self.passed);
        let known = facts.into_iter().find(|(_, fact)| fact.tool == tool && fact.arguments == arguments);
        if let Some((index, fact)) = known {
            if effect == Effect::Changes {
                self.passed = index + 1;
            }
            return Ok(fact.outcome.clone());
        }
        if self.conversation.rounds >= MOST_ROUNDS {
            return Err(Stop::Trouble(Trouble::OutOfRounds));
        }
        let call = Call { tool: tool.to_owned(), arguments };
        if !self.wanted.contains(&call) {
            self.wanted.push(call);
        }
        Err(Stop::Wait)
    }
}

/// Whether a call may change what later calls see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Looks,
    Changes,
}

/// What a command printed and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CommandOutput {
    /// Standard output and error, as they came, without the tool's own notices.
    pub(super) text: String,
    /// `None` when it did not end by itself.
    pub(super) exit_code: Option<i32>,
    /// How it ended when not by itself: "timed out after 600 seconds", "aborted".
    pub(super) ending: Option<String>,
    /// Whether the tool left out the beginning.
    pub(super) cut: bool,
}

impl CommandOutput {
    pub(super) fn succeeded(&self) -> bool {
        self.exit_code == Some(0)
    }
}

/// The beginning of a long text on one line.
pub(super) fn brief(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if text.lines().count() > 1 => format!("{line} …"),
        None => line.to_owned(),
    }
}
