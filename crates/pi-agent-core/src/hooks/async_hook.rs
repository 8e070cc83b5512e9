//! One trait for every closure of this API.

use futures::future::BoxFuture;

/// What every hook, listener and tool closure is: `async |a, b| …`, `async move |a, b| …` or an `async fn`.
///
/// Arguments come by value. A call owns a clone of the captures, so that its future is `Send` and borrows nothing:
/// captures must be `Clone` (put shared state behind an [`Arc`](std::sync::Arc)). State that cannot be cloned lives in
/// a struct that implements the hook's own trait.
///
/// Write `async |…| …`, not `|…| async move { … }`: only the former lets the compiler infer the arguments.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a usable hook",
    note = "pass `async |…| …` or `async move |…| …`; captures must be `Clone + Send + Sync + 'static`"
)]
pub trait AsyncHook<A, B, R>: AsyncFn(A, B) -> R + Clone + Send + Sync + 'static {
    /// Calls it.
    fn run(&self, a: A, b: B) -> BoxFuture<'static, R>;
}

// `AsyncFn` alone cannot say that its future is `Send`; `FnOnce + Clone` names the future and proves it. Both bounds
// are needed: the former lets the compiler infer a closure's arguments and refuses one that mutates its captures.
impl<F, A, B, R, Fut> AsyncHook<A, B, R> for F
where
    F: AsyncFn(A, B) -> R + FnOnce(A, B) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
{
    fn run(&self, a: A, b: B) -> BoxFuture<'static, R> {
        Box::pin(self.clone()(a, b))
    }
}
