//! Which reply goes to which request.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use crate::plan::Planned;
use crate::reply::Reply;
use crate::request::Request;
use crate::rules::{Alternation, LaterSystem, Rules, Signatures, UnknownFields};
use crate::wire::Wire;

/// The replies of a server: some for requests that match, some in order, one for all others.
///
/// ```
/// use fake_llm::{Reply, Script, Wire};
///
/// let script = Script::new(Wire::AnthropicMessages)
///     .reply(Reply::error(529, "overloaded"))           // first request
///     .reply("Hello")                                   // second request
///     .when(|request| request.tool_names().is_empty(), "A title")   // side requests
///     .otherwise("done");                               // all further requests
/// # let _ = script;
/// ```
///
/// A request that has no reply gets status 500 and counts as a violation.
pub struct Script {
    pub(crate) wire: Option<Wire>,
    pub(crate) rules: Rules,
    matching: Vec<(Predicate, Arc<Planned>)>,
    queue: VecDeque<Arc<Planned>>,
    otherwise: Option<Otherwise>,
}

type Predicate = Box<dyn Fn(&Request) -> bool + Send>;

enum Otherwise {
    Always(Arc<Planned>),
    Asked(Box<dyn Fn(&Request) -> Reply + Send>),
}

impl Script {
    /// A script for a server that speaks this wire and refuses the paths of all others.
    pub fn new(wire: Wire) -> Self {
        Self::with_wire(Some(wire))
    }

    /// A script for a server that speaks every wire, told by the request's path.
    pub fn any_wire() -> Self {
        Self::with_wire(None)
    }

    fn with_wire(wire: Option<Wire>) -> Self {
        Self { wire, rules: Rules::default(), matching: Vec::new(), queue: VecDeque::new(), otherwise: None }
    }

    /// Adds the reply to the next request.
    pub fn reply(mut self, reply: impl Into<Reply>) -> Self {
        let planned = plan(reply.into());
        self.queue.push_back(planned);
        self
    }

    /// Adds the replies to the next requests.
    pub fn replies<R: Into<Reply>>(self, replies: impl IntoIterator<Item = R>) -> Self {
        replies.into_iter().fold(self, Script::reply)
    }

    /// Replies so to every request that fits; asked first, uses up no other reply.
    pub fn when(mut self, fits: impl Fn(&Request) -> bool + Send + 'static, reply: impl Into<Reply>) -> Self {
        let planned = plan(reply.into());
        self.matching.push((Box::new(fits), planned));
        self
    }

    /// Replies so to every request past the last reply.
    pub fn otherwise(mut self, reply: impl Into<Reply>) -> Self {
        self.otherwise = Some(Otherwise::Always(plan(reply.into())));
        self
    }

    /// Asks for the reply to every request past the last reply.
    pub fn otherwise_with(mut self, reply: impl Fn(&Request) -> Reply + Send + 'static) -> Self {
        self.otherwise = Some(Otherwise::Asked(Box::new(reply)));
        self
    }

    /// Sets all switches of the checks.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Sets whether user and assistant must take turns.
    pub fn alternation(mut self, alternation: Alternation) -> Self {
        self.rules.alternation = alternation;
        self
    }

    /// Sets whether unknown fields are refused.
    pub fn unknown_fields(mut self, unknown_fields: UnknownFields) -> Self {
        self.rules.unknown_fields = unknown_fields;
        self
    }

    /// Sets where system messages may stand.
    pub fn later_system(mut self, later_system: LaterSystem) -> Self {
        self.rules.later_system = later_system;
        self
    }

    /// Sets what the signature of a thinking block must be.
    pub fn signatures(mut self, signatures: Signatures) -> Self {
        self.rules.signatures = signatures;
        self
    }

    /// The reply to this request.
    pub(crate) fn next(&mut self, request: &Request) -> Option<Arc<Planned>> {
        if let Some((_, planned)) = self.matching.iter().find(|(fits, _)| fits(request)) {
            return Some(planned.clone());
        }
        if let Some(planned) = self.queue.pop_front() {
            return Some(planned);
        }
        match &self.otherwise {
            Some(Otherwise::Always(planned)) => Some(planned.clone()),
            Some(Otherwise::Asked(ask)) => Some(plan(ask(request))),
            None => None,
        }
    }

    /// Whether one of the conditional replies fits this request.
    pub(crate) fn expects(&self, request: &Request) -> bool {
        self.matching.iter().any(|(fits, _)| fits(request))
    }

    /// How many replies have not been asked for.
    pub(crate) fn remaining(&self) -> usize {
        self.queue.len()
    }

    /// Adds a reply while the server runs.
    pub(crate) fn push(&mut self, reply: Reply) {
        self.queue.push_back(plan(reply));
    }
}

fn plan(reply: Reply) -> Arc<Planned> {
    Arc::new(Planned::new(reply))
}

impl fmt::Debug for Script {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Script")
            .field("wire", &self.wire)
            .field("rules", &self.rules)
            .field("conditional", &self.matching.len())
            .field("remaining", &self.queue.len())
            .field("otherwise", &self.otherwise.is_some())
            .finish()
    }
}
