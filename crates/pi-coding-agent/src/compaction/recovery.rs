//! What is to be done about the context after an answer, or before a prompt.

use pi_ai::{
    AssistantMessage, Model, StopReason,
    recovery::{is_context_overflow, is_recoverable_length},
};

use super::{
    estimate::{context_tokens, estimate_context, estimate_projection},
    prepare::should_compact,
    run::CompactionReason,
    shrink::largest_parts,
};
use crate::{
    resources::CompactionSettings,
    session::{EditEffect, EntryId, EntryKind, MessageRole, ProjectedEntry, Projection},
};

/// What is known when the context is checked.
#[derive(Clone, Copy, Debug)]
pub struct ContextCheck<'a> {
    /// The answer.
    pub answer: &'a AssistantMessage,
    /// Its entry; `None` when it was not stored.
    pub entry: Option<&'a EntryId>,
    /// What the session's context is made of now.
    pub projection: &'a Projection,
    /// The model that answered, when it is (or stands for) the one that is asked next; `None` when the user has chosen
    /// another since, whose limits the answer says nothing about.
    pub answered_by: Option<&'a Model>,
    /// The tokens that fit into the context of the model that is asked next.
    pub context_window: u64,
    /// The limits.
    pub settings: &'a CompactionSettings,
    /// When the check is made.
    pub time: CheckTime,
    /// Whether a recovery was tried already.
    pub attempt: RecoveryAttempt,
}

/// When a context is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckTime {
    /// After a run. An answer that the user aborted is left alone.
    AfterRun,
    /// Before a prompt.
    BeforePrompt,
}

/// Whether a recovery was tried since the user said something or an answer came through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryAttempt {
    /// None was.
    #[default]
    Open,
    /// One was: there is no second.
    Made,
}

impl RecoveryAttempt {
    /// What it is after an answer: open again, unless the answer failed or stopped at its length limit.
    #[must_use]
    pub fn after(self, answer: &AssistantMessage) -> Self {
        match answer.stop_reason {
            StopReason::Error | StopReason::Length => self,
            _ => Self::Open,
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextAction {
    /// Nothing.
    Nothing,
    /// Compact. The answer stays, and nothing is asked again.
    Compact(CompactionReason),
    /// Leave the attempt out of the context (by context edits of these entries), compact for
    /// [`CompactionReason::Overflow`], and ask again. The attempt is [made](RecoveryAttempt::Made) then.
    Recover {
        /// The answer's entry and those of the results of its calls.
        leave_out: Vec<EntryId>,
    },
    /// Say this, and do nothing: a recovery was tried already.
    GiveUp {
        /// What failed, and which parts of the context are largest.
        message: String,
    },
}

/// Decides what is to be done about the context.
///
/// A request that was larger than the model's context, and an answer that stopped short of its length, are recovered
/// from once. A complete answer whose token counts say that the context is too large, or nearly so, only leads to a
/// compaction. An answer from before the latest compaction says nothing.
pub fn check_context(check: &ContextCheck<'_>) -> ContextAction {
    let answer = check.answer;
    let is_aborted = answer.stop_reason == StopReason::Aborted;
    if !check.settings.enabled || (is_aborted && check.time == CheckTime::AfterRun) || is_older_than_compaction(check) {
        return ContextAction::Nothing;
    }
    match overflow(check) {
        None => threshold(check),
        Some(_) if answer.stop_reason == StopReason::Stop => ContextAction::Compact(CompactionReason::Overflow),
        Some(kind) if check.attempt == RecoveryAttempt::Made => ContextAction::GiveUp { message: give_up(kind, check) },
        Some(_) => ContextAction::Recover { leave_out: attempt_entries(check) },
    }
}

fn is_older_than_compaction(check: &ContextCheck<'_>) -> bool {
    check.projection.compacted_at().is_some_and(|compacted| check.answer.timestamp <= compacted)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overflow {
    Context,
    Length,
}

fn overflow(check: &ContextCheck<'_>) -> Option<Overflow> {
    let model = check.answered_by?;
    let place = Place::of(check);
    let says_so = check.answer.stop_reason == StopReason::Error && is_context_overflow(check.answer, None);
    let counts_say_so = || is_context_overflow(check.answer, Some(model.context_window));
    if (says_so && place.may_be_recovered) || (place.is_in_context && !place.is_edited_since && counts_say_so()) {
        return Some(Overflow::Context);
    }
    (place.is_in_context && is_recoverable_length(check.answer, model.max_tokens)).then_some(Overflow::Length)
}

/// How the answer stands in the context.
struct Place {
    is_in_context: bool,
    /// Whether something was edited after it, so that its token counts describe the context no more.
    is_edited_since: bool,
    /// Whether it was neither left out nor compacted away since.
    may_be_recovered: bool,
}

impl Place {
    fn of(check: &ContextCheck<'_>) -> Self {
        let Some(id) = check.entry else {
            return Self { is_in_context: true, is_edited_since: false, may_be_recovered: true };
        };
        let entries = check.projection.entries();
        let Some(at) = entries.iter().rposition(|entry| entry.id == *id) else {
            return Self { is_in_context: false, is_edited_since: false, may_be_recovered: false };
        };
        let edits = || entries[at + 1..].iter().filter_map(|entry| entry.edit.as_ref());
        let last_edit = edits()
            .rfind(|edit| matches!(edit, EditEffect::Omits(target) | EditEffect::Replaces(target) if target == id));
        let since_compaction = entries.len() - check.projection.entries_since_compaction().len();
        Self {
            is_in_context: !entries[at].messages().is_empty(),
            is_edited_since: edits().next().is_some(),
            may_be_recovered: at >= since_compaction && !matches!(last_edit, Some(EditEffect::Omits(_))),
        }
    }
}

fn threshold(check: &ContextCheck<'_>) -> ContextAction {
    let projection = check.projection;
    let direct = context_tokens(&check.answer.usage);
    let has_edits = projection.entries().iter().any(|entry| entry.kind == EntryKind::ContextEdit);
    let tokens = if has_edits {
        estimate_projection(projection).tokens
    } else if check.answer.stop_reason == StopReason::Error || direct == 0 {
        let estimate = estimate_context(projection.messages());
        let counted = estimate.counted_up_to.and_then(|at| projection.messages()[at].as_assistant());
        // What was counted before a compaction would call for another one at once.
        if counted
            .is_some_and(|answer| projection.compacted_at().is_some_and(|compacted| answer.timestamp <= compacted))
        {
            return ContextAction::Nothing;
        }
        estimate.tokens
    } else {
        direct
    };
    let window = check.answered_by.map_or(check.context_window, |model| model.context_window);
    match should_compact(tokens, window, check.settings) {
        true => ContextAction::Compact(CompactionReason::Threshold),
        false => ContextAction::Nothing,
    }
}

/// The answer's entry, and the entries of the results of its calls.
fn attempt_entries(check: &ContextCheck<'_>) -> Vec<EntryId> {
    let Some(id) = check.entry else { return Vec::new() };
    let entries = check.projection.entries();
    let after = entries.iter().rposition(|entry| entry.id == *id).map_or(entries.len(), |at| at + 1);
    let is_answer = |entry: &&ProjectedEntry| entry.kind == EntryKind::Message(MessageRole::Assistant);
    let results = entries[after..].iter().take_while(|entry| !is_answer(entry)).filter(|entry| {
        let result = entry.messages().iter().find_map(|message| message.as_tool_result());
        result.is_some_and(|result| check.answer.tool_calls().any(|call| call.id == result.tool_call_id))
    });
    std::iter::once(id.clone()).chain(results.map(|entry| entry.id.clone())).collect()
}

fn give_up(kind: Overflow, check: &ContextCheck<'_>) -> String {
    const NAMED: usize = 3;
    let parts: Vec<String> = largest_parts(check.projection, NAMED).iter().map(ToString::to_string).collect();
    let largest =
        if parts.is_empty() { String::new() } else { format!(" The largest parts are: {}.", parts.join("; ")) };
    match kind {
        Overflow::Context => format!(
            "The request is still larger than the model's context after one compaction, so it is not tried again.\
             {largest} Shorten or leave out one of them, or choose a model with a larger context."
        ),
        Overflow::Length => format!(
            "The answer was cut short again after one compaction, so it is not tried again.{largest} Ask for less at \
             once, or choose a model that may answer at greater length."
        ),
    }
}
