//! What the tests of this workspace share. Not a public interface.

pub mod conformance;
