//! How full the context is, for people.

use serde::Serialize;

use super::estimate::estimate_projection;
use crate::session::Projection;

/// How full the context is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// Its tokens; `None` after a compaction, until an answer tells.
    pub tokens: Option<u64>,
    /// The tokens that fit.
    pub context_window: u64,
    /// The part that is used, in percent.
    pub percent: Option<f64>,
}

/// How full the context is. `None` for a model whose window is not known (0).
pub fn context_usage(projection: &Projection, context_window: u64) -> Option<ContextUsage> {
    if context_window == 0 {
        return None;
    }
    let is_told = projection.compaction().is_none() || {
        let since = projection.entries_since_compaction().iter().flat_map(|entry| entry.messages());
        since
            .filter_map(|message| message.as_assistant())
            .any(|answer| !answer.is_failed() && super::estimate::context_tokens(&answer.usage) > 0)
    };
    let tokens = is_told.then(|| estimate_projection(projection).tokens);
    let percent = tokens.map(|tokens| tokens as f64 / context_window as f64 * 100.0);
    Some(ContextUsage { tokens, context_window, percent })
}
