//! What a request must hold, and what is said when it does not.

use std::fmt;

/// The switches of the checks. Everything that is not a switch is always checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Whether two messages of the same role may follow each other.
    pub alternation: Alternation,
    /// Whether fields that the wire's official service does not know are refused.
    pub unknown_fields: UnknownFields,
    /// Whether system messages may stand after the first other message.
    pub later_system: LaterSystem,
    /// Whether a thinking block may carry an empty signature.
    pub signatures: Signatures,
}

/// Whether user and assistant messages must take turns, as many local chat templates ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alternation {
    /// Any order; the default.
    #[default]
    Free,
    /// User first, then by turns.
    Strict,
}

/// What happens to fields that the official service does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownFields {
    /// Vendors of the wire have their own; the default.
    #[default]
    Allowed,
    /// As strict services do.
    Refused,
}

/// Where system messages may stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaterSystem {
    /// Only before everything else; the default.
    #[default]
    Refused,
    /// Anywhere but between a call and its result.
    Allowed,
}

/// What the signature of a thinking block must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signatures {
    /// Not empty; the default.
    #[default]
    Required,
    /// Present, may be empty (vendors that accept unsigned thinking).
    MayBeEmpty,
}

/// A rule that a request broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which request, counted from 0.
    pub request: usize,
    /// Where in the request, e.g. `messages[3].content[0]`; `head` outside the body.
    pub at: String,
    /// What was expected and what was found.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "request {}, {}: {}", self.request, self.at, self.what)
    }
}
