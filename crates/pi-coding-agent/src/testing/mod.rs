//! What the tests of this workspace share with this crate's own. Not a public interface.

pub mod conformance;
pub mod fuzz;
