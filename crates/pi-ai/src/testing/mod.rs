//! What the tests of this workspace share: vector files, their comparison, and the runners behind them.
//!
//! Not a public interface. It is compiled into the library because integration tests, the other crates and
//! `cargo xtask conformance` all run the same vectors, and each must judge them the same way.

pub mod conformance;
pub mod expect;
pub mod fuzz;
pub mod vectors;

#[cfg(feature = "bedrock")]
mod aws_frames;
#[cfg(feature = "bedrock")]
pub use aws_frames::aws_frame;
