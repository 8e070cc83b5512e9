//! Code of others, contained: a panic becomes a value, and after an abort nothing is waited for without end.

use std::{any::Any, panic::AssertUnwindSafe, time::Duration};

use futures::FutureExt;
use pi_ai::CancellationToken;

/// The text of a panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Panicked(pub(crate) String);

impl Panicked {
    pub(crate) fn from_payload(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Self(text.filter(|text| !text.is_empty()).unwrap_or_else(|| "a panic without a message".to_owned()))
    }
}

/// Calls code of others.
pub(crate) fn contain<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    std::panic::catch_unwind(AssertUnwindSafe(call)).map_err(|payload| Panicked::from_payload(&*payload))
}

/// Builds and polls a future of others: either may panic.
pub(crate) async fn contain_async<T, F: Future<Output = T>>(make: impl FnOnce() -> F) -> Result<T, Panicked> {
    let built_and_polled = AssertUnwindSafe(async move { make().await });
    built_and_polled.catch_unwind().await.map_err(|payload| Panicked::from_payload(&*payload))
}

/// Why there is no answer from code of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Panicked(Panicked),
    /// The run was aborted, and the grace period is over.
    Overdue,
}

/// How long code of others may take: as long as it likes, and after an abort only for a while.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    pub(crate) signal: CancellationToken,
    pub(crate) grace: Duration,
}

impl Patience {
    /// Waits for a future that looks at the signal itself, if it is well behaved. `None`: it did not.
    pub(crate) async fn wait<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = std::pin::pin!(future);
        tokio::select! {
            biased;
            output = &mut future => return Some(output),
            () = self.signal.cancelled() => {}
        }
        tokio::time::timeout(self.grace, future).await.ok()
    }

    /// Runs a hook.
    pub(crate) async fn run<T, F: Future<Output = T>>(&self, make: impl FnOnce() -> F) -> Result<T, Fault> {
        match self.wait(contain_async(make)).await {
            Some(output) => output.map_err(Fault::Panicked),
            None => Err(Fault::Overdue),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_caught_while_a_future_is_built_and_while_it_is_polled() {
        #[expect(unreachable_code, reason = "the future is never built")]
        let building = contain_async(|| {
            panic!("building");
            async {}
        });
        assert_eq!(building.await, Err(Panicked("building".into())));
        let polling = contain_async(|| async { panic!("{}", "polling") });
        assert_eq!(polling.await, Err::<(), _>(Panicked("polling".into())));
    }

    #[tokio::test(start_paused = true)]
    async fn after_an_abort_patience_ends() {
        let patience = Patience { signal: CancellationToken::new(), grace: Duration::from_secs(5) };
        patience.signal.cancel();
        let tidying_up = async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            "done"
        };
        assert_eq!(patience.wait(tidying_up).await, Some("done"));
        assert_eq!(patience.wait(std::future::pending::<()>()).await, None);
    }
}
