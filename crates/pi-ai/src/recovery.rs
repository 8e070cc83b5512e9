//! What can be done about an answer that did not come to its end: shorten the transcript, try again, or tell a person.
//!
//! These judge a finished [`AssistantMessage`], also one that another program stored: by its stop reason, its token
//! counts and the words of its error.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{
    api::phrases,
    message::{AssistantMessage, StopReason},
};

/// The longest wait between two attempts of an agent, unless a policy says otherwise.
pub const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Whether the request was larger than the model's context: the provider said so, or it answered with token counts
/// that say so (`context_window` is in tokens; without it, or with 0, only words count).
///
/// ```
/// use pi_ai::{AssistantMessage, StopReason, recovery::is_context_overflow};
/// let message = AssistantMessage {
///     stop_reason: StopReason::Error,
///     error_message: Some("prompt is too long: 210000 tokens > 200000 maximum".into()),
///     ..AssistantMessage::default()
/// };
/// assert!(is_context_overflow(&message, None));
/// ```
pub fn is_context_overflow(message: &AssistantMessage, context_window: Option<u64>) -> bool {
    let window = context_window.unwrap_or(0);
    let input = message.usage.input.saturating_add(message.usage.cache_read);
    match message.stop_reason {
        StopReason::Error => message.error_message.as_deref().is_some_and(|text| {
            phrases::says_overflow(text) || (message.provider == "cerebras" && phrases::says_bodiless_refusal(text))
        }),
        // Some servers cut the input silently, and count what they were sent.
        StopReason::Stop => window > 0 && input > window,
        // Others fill the window with input and have no room left to answer.
        StopReason::Length => {
            window > 0 && message.usage.output == 0 && u128::from(input) * 100 >= u128::from(window) * 99
        }
        _ => false,
    }
}

/// Whether an answer stopped short of the length that was wanted (in tokens, before any clamping to the context): one
/// attempt with a shorter transcript may help.
pub fn is_recoverable_length(message: &AssistantMessage, desired_max_output: u64) -> bool {
    message.stop_reason == StopReason::Length && message.usage.output < desired_max_output
}

/// Whether a failed answer may succeed when the turn is tried again. Check [`is_context_overflow`] first.
pub fn is_retryable_assistant_error(message: &AssistantMessage) -> bool {
    message.stop_reason == StopReason::Error
        && message
            .error_message
            .as_deref()
            .is_some_and(|text| !phrases::says_quota(text) && phrases::says_transient(text))
}

/// How long an agent waits before its `attempt`th repetition (from 1): `base` doubled each time, at most `cap`.
pub fn retry_delay(base: Duration, attempt: u32, cap: Duration) -> Duration {
    let doublings = attempt.saturating_sub(1);
    let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
    base.checked_mul(factor).unwrap_or(cap).min(cap)
}

/// How often, and how long after one another, a failed turn is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts after the first one.
    pub max_retries: u32,
    /// The wait before the first of them; doubled each time.
    pub base_delay: Duration,
    /// The longest wait.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: 3, base_delay: Duration::from_secs(2), max_delay: MAX_RETRY_DELAY }
    }
}

/// What happens while a call is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryEvent {
    /// An attempt failed and another one will follow.
    Scheduled {
        /// The repetition that will follow, from 1.
        attempt: u32,
        /// How many repetitions there may be.
        max_attempts: u32,
        /// How long until then.
        delay: Duration,
        /// Why the attempt failed.
        error: String,
    },
    /// The wait is over.
    AttemptStart,
    /// There was at least one repetition, and there will be no more.
    Finished {
        /// Whether the last attempt succeeded.
        success: bool,
        /// How many repetitions there were.
        attempt: u32,
        /// Why the last attempt failed.
        error: Option<String>,
    },
}

/// Calls a model, and again while its answer is an error [that may pass](is_retryable_assistant_error) and the policy
/// allows it. Without a policy it is called once. An abort during a wait makes the answer an aborted one.
///
/// `observe` is awaited for each step. A loop that shows its attempts otherwise (an agent's) has its own.
///
/// The two are plain closures that give futures, not `AsyncFnMut`: of those the compiler cannot tell that they may run
/// in a task.
pub async fn retry_assistant_call<Call, Seen>(
    mut produce: impl FnMut() -> Call,
    policy: Option<&RetryPolicy>,
    signal: &CancellationToken,
    mut observe: impl FnMut(RetryEvent) -> Seen,
) -> AssistantMessage
where
    Call: Future<Output = AssistantMessage>,
    Seen: Future<Output = ()>,
{
    let mut attempt = 0;
    loop {
        let mut message = produce().await;
        let again = policy.filter(|policy| attempt < policy.max_retries && is_retryable_assistant_error(&message));
        let Some(policy) = again else {
            if attempt > 0 {
                let error = message.error_message.clone();
                observe(RetryEvent::Finished { success: !message.is_failed(), attempt, error }).await;
            }
            return message;
        };
        attempt += 1;
        let delay = retry_delay(policy.base_delay, attempt, policy.max_delay);
        let error = message.error_message.clone().unwrap_or_default();
        let max_attempts = policy.max_retries;
        observe(RetryEvent::Scheduled { attempt, max_attempts, delay, error: error.clone() }).await;
        if signal.run_until_cancelled(tokio::time::sleep(delay)).await.is_none() {
            observe(RetryEvent::Finished { success: false, attempt, error: Some(error) }).await;
            message.stop_reason = StopReason::Aborted;
            message.error_message = None;
            return message;
        }
        observe(RetryEvent::AttemptStart).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overloaded() -> AssistantMessage {
        AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some("overloaded".into()),
            ..AssistantMessage::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_abort_during_a_wait_ends_it_at_once() {
        let signal = CancellationToken::new();
        let policy = RetryPolicy { base_delay: Duration::from_secs(3600), ..RetryPolicy::default() };
        let mut events = Vec::new();
        let message = retry_assistant_call(
            || std::future::ready(overloaded()),
            Some(&policy),
            &signal,
            |event| {
                signal.cancel();
                events.push(event);
                std::future::ready(())
            },
        )
        .await;
        assert_eq!((message.stop_reason, message.error_message), (StopReason::Aborted, None));
        assert!(matches!(events[..], [RetryEvent::Scheduled { .. }, RetryEvent::Finished { success: false, .. }]));
    }

    #[test]
    fn known_overflow_texts_are_told_from_their_look_alikes() {
        for line in include_str!("../tests/data/overflow_texts.txt").lines() {
            let (expected, text) = line.split_once('\t').unwrap();
            let message = AssistantMessage { error_message: Some(text.into()), ..overloaded() };
            assert_eq!(is_context_overflow(&message, None), expected == "overflow", "{text}");
        }
    }
}
