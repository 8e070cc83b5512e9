//! Every tool call has exactly one result, and no result is without its call.

use super::Check;

/// The calls of the last assistant message and which of them have their result.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    open: Vec<String>,
    answered: Vec<String>,
}

impl Pairing {
    /// The calls of an assistant message.
    pub(crate) fn calls(&mut self, ids: Vec<String>, at: &str, check: &mut Check) {
        let names: Vec<&str> = ids.iter().map(String::as_str).collect();
        check.unique(&names, at);
        self.answered.clear();
        self.open = ids;
    }

    /// A result for `id`.
    pub(crate) fn result(&mut self, id: &str, at: &str, check: &mut Check) {
        if let Some(position) = self.open.iter().position(|open| open == id) {
            self.answered.push(self.open.remove(position));
        } else if self.answered.iter().any(|answered| answered == id) {
            check.fail(at, format!("a second result for the call `{id}`"));
        } else {
            check.fail(at, format!("a result for `{id}`, which the message before it does not call"));
        }
    }

    /// The place where no result may be missing any more.
    pub(crate) fn close(&mut self, at: &str, check: &mut Check) {
        for id in self.open.drain(..) {
            check.fail(at, format!("the call `{id}` before this has no result"));
        }
        self.answered.clear();
    }

    /// Whether a result is still missing.
    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }
}
