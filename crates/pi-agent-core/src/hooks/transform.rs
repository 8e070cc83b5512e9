//! The first hook: which messages a request is made from.

use std::{marker::PhantomData, sync::Arc};

use futures::future::BoxFuture;
use pi_ai::CancellationToken;

use super::AsyncHook;
use crate::message::AgentMessage;

/// Prunes and injects: takes the transcript, gives the list that a request is made from. Optional.
///
/// It runs before every request, before [`ConvertToLlm`](super::ConvertToLlm). The transcript itself does not change.
/// An empty list clears the context, and a request without messages is an error before anything is sent. It cannot
/// fail: give the messages back as they came. When `signal` is cancelled, return soon.
pub trait TransformContext<C>: Send + Sync + 'static {
    /// Gives the messages that the request is made from.
    fn transform_context<'a>(
        &'a self,
        messages: Vec<AgentMessage<C>>,
        signal: &'a CancellationToken,
    ) -> BoxFuture<'a, Vec<AgentMessage<C>>>;
}

impl<C, T: TransformContext<C> + ?Sized> TransformContext<C> for Arc<T> {
    fn transform_context<'a>(
        &'a self,
        messages: Vec<AgentMessage<C>>,
        signal: &'a CancellationToken,
    ) -> BoxFuture<'a, Vec<AgentMessage<C>>> {
        (**self).transform_context(messages, signal)
    }
}

/// Makes a [`TransformContext`] from an async closure.
///
/// ```
/// use pi_agent_core::{AgentMessage, TransformContext, transform_fn};
/// fn last_ten() -> impl TransformContext<pi_agent_core::NoCustom> {
///     transform_fn(async |messages: Vec<AgentMessage>, _signal| {
///         let oldest = messages.len().saturating_sub(10);
///         messages.into_iter().skip(oldest).collect()
///     })
/// }
/// # let _ = last_ten();
/// ```
pub fn transform_fn<C: Send + Sync + 'static>(
    hook: impl AsyncHook<Vec<AgentMessage<C>>, CancellationToken, Vec<AgentMessage<C>>>,
) -> impl TransformContext<C> {
    Closure { hook, message: PhantomData::<fn(C)> }
}

struct Closure<F, C> {
    hook: F,
    message: PhantomData<fn(C)>,
}

impl<C, F> TransformContext<C> for Closure<F, C>
where
    C: Send + Sync + 'static,
    F: AsyncHook<Vec<AgentMessage<C>>, CancellationToken, Vec<AgentMessage<C>>>,
{
    fn transform_context<'a>(
        &'a self,
        messages: Vec<AgentMessage<C>>,
        signal: &'a CancellationToken,
    ) -> BoxFuture<'a, Vec<AgentMessage<C>>> {
        self.hook.run(messages, signal.clone())
    }
}
