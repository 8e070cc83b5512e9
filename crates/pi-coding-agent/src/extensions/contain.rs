//! Code of extensions, contained: a panic is a value, and after an abort nothing is waited for without end.

use std::{any::Any, panic::AssertUnwindSafe, time::Duration};

use futures::FutureExt;
use pi_ai::CancellationToken;

use super::ExtensionError;

/// How long a handler may take after the run was aborted. It is shorter than what the loop grants its hooks, so that
/// the extension is named and not the loop's hook.
pub(super) const GRACE: Duration = Duration::from_secs(3);

/// Runs code of an extension. A panic counts while its future is built as well as while it is polled.
pub(super) async fn contained<T, F>(signal: &CancellationToken, make: impl FnOnce() -> F) -> Result<T, ExtensionError>
where
    F: Future<Output = Result<T, ExtensionError>>,
{
    let running = AssertUnwindSafe(async move { make().await }).catch_unwind();
    let mut running = std::pin::pin!(running);
    let ended = tokio::select! {
        biased;
        ended = &mut running => ended,
        () = signal.cancelled() => match tokio::time::timeout(GRACE, running).await {
            Ok(ended) => ended,
            Err(_) => {
                let seconds = GRACE.as_secs();
                return Err(ExtensionError::new(format!(
                    "did not return within {seconds} seconds after the abort and was dropped"
                )));
            }
        },
    };
    ended.unwrap_or_else(|panic| Err(ExtensionError::new(format!("panicked: {}", panic_text(&*panic)))))
}

/// Runs code of an extension that does not wait.
pub(super) fn contained_now<T>(run: impl FnOnce() -> T) -> Result<T, ExtensionError> {
    std::panic::catch_unwind(AssertUnwindSafe(run))
        .map_err(|panic| ExtensionError::new(format!("panicked: {}", panic_text(&*panic))))
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.filter(|text| !text.is_empty()).unwrap_or("a panic without a message")
}
