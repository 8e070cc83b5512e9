//! JSON as models and session files need it.

pub mod arguments;
pub mod number;
pub mod tagged;
