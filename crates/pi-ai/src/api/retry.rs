//! Whether and when a failed request is sent again, below the agent.

use std::time::Duration;

use crate::{
    error::{ErrorKind, ProviderError},
    options::RetryPolicy,
};

const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(8);
/// The part of a delay that chance may take away, so that clients do not return all at once.
const JITTER: f64 = 0.25;

/// Whether the same request is worth sending again: the provider says so (`x-should-retry`), or the failure is one that
/// passes. A used-up quota does not pass.
pub fn is_retryable(error: &ProviderError) -> bool {
    match error.header("x-should-retry") {
        Some("true") => return true,
        Some("false") => return false,
        _ => {}
    }
    match error.status() {
        _ if matches!(error.kind(), ErrorKind::Quota | ErrorKind::Aborted) => false,
        Some(status) => matches!(status, 408 | 409 | 429 | 500..),
        None => error.kind().is_transient(),
    }
}

/// How long to wait before repetition `repetition` (from 0), when it is to be made at all: what the provider asks for,
/// else half a second doubled each time up to 8 s, less up to a quarter. `chance` in 0..1 chooses how much less.
///
/// # Errors
/// The error to give up with: the failure itself, or one that says that the provider asks for a longer wait than the
/// policy allows.
pub fn delay(
    error: &ProviderError,
    repetition: u32,
    policy: &RetryPolicy,
    chance: f64,
) -> Result<Duration, ProviderError> {
    if repetition >= policy.max_retries || !is_retryable(error) {
        return Err(error.clone());
    }
    match (error.retry_after(), policy.max_delay) {
        (Some(asked), Some(allowed)) if asked > allowed => Err(error.clone().with_message(format!(
            "The provider asks for a retry delay of {} s, and at most {} s are allowed. {}",
            asked.as_secs_f64().ceil(),
            allowed.as_secs_f64().ceil(),
            error.message(),
        ))),
        (Some(asked), _) => Ok(asked),
        (None, _) => {
            let doubled = FIRST_DELAY.saturating_mul(1_u32.checked_shl(repetition).unwrap_or(u32::MAX));
            Ok(doubled.min(LONGEST_DELAY).mul_f64(1.0 - JITTER * chance.clamp(0.0, 1.0)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::errors::from_response;

    fn failed(status: u16, headers: &[(&str, &str)]) -> ProviderError {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        from_response(&"acme".into(), status, headers, b"")
    }

    const THREE: RetryPolicy = RetryPolicy { max_retries: 3, max_delay: Some(Duration::from_secs(60)) };

    #[test]
    fn what_passes_is_retried_and_what_does_not_is_not() {
        for status in [408, 409, 429, 500, 503, 529] {
            assert!(is_retryable(&failed(status, &[])), "{status}");
        }
        for status in [400, 401, 403, 404, 413, 422] {
            assert!(!is_retryable(&failed(status, &[])), "{status}");
        }
        assert!(is_retryable(&failed(400, &[("x-should-retry", "true")])));
        assert!(!is_retryable(&failed(500, &[("x-should-retry", "false")])));
        let quota = from_response(&"acme".into(), 429, Vec::new(), br#"{"error":{"code":"insufficient_quota"}}"#);
        assert!(!is_retryable(&quota));
        assert!(is_retryable(&ProviderError::new(ErrorKind::Network, "connection error")));
        assert!(!is_retryable(&ProviderError::aborted()));
    }

    #[test]
    fn delays_double_up_to_a_limit_and_chance_shortens_them() {
        let policy = RetryPolicy { max_retries: 99, ..THREE };
        let millis = |repetition, chance| delay(&failed(500, &[]), repetition, &policy, chance).unwrap().as_millis();
        assert_eq!([0, 1, 2, 3, 4, 5, 40].map(|n| millis(n, 0.0)), [500, 1000, 2000, 4000, 8000, 8000, 8000]);
        assert_eq!(millis(0, 1.0), 375);
    }

    #[test]
    fn the_providers_word_counts_up_to_the_cap() {
        let wait = |headers: &[(&str, &str)], policy| delay(&failed(429, headers), 0, &policy, 0.0);
        assert_eq!(wait(&[("retry-after", "2")], THREE).unwrap(), Duration::from_secs(2));
        let refused = wait(&[("retry-after", "120")], THREE).unwrap_err();
        assert!(refused.message().contains("120 s") && refused.message().contains("60 s"), "{refused}");
        let uncapped = RetryPolicy { max_delay: None, ..THREE };
        assert_eq!(wait(&[("retry-after", "120")], uncapped).unwrap(), Duration::from_secs(120));
    }

    #[test]
    fn the_number_of_retries_is_limited() {
        assert!(delay(&failed(500, &[]), 2, &THREE, 0.0).is_ok());
        assert!(delay(&failed(500, &[]), 3, &THREE, 0.0).is_err());
        assert!(delay(&failed(500, &[]), 0, &RetryPolicy::default(), 0.0).is_err());
    }
}
