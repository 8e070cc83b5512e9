//! Declaring the built-in tools.

use pi_ai::ToolDeclaration;
use pi_ai::tool::{ConstrainedSampling, Constraint, Strictness};
use serde_json::Value;

/// A tool whose arguments the provider should hold to the schema while it samples, where it can.
pub(super) fn declare_strict(name: &str, description: &str, parameters: Value) -> ToolDeclaration {
    ToolDeclaration {
        constrained_sampling: Some(ConstrainedSampling::On(Constraint::JsonSchema { strict: Strictness::Prefer })),
        ..ToolDeclaration::new(name, description, parameters)
    }
}
