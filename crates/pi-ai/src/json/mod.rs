//! Reading JSON that models and other programs write, and writing numbers the way they do.
//!
//! - [`ArgumentsBuilder`] reads the arguments of a tool call while they stream in.
//! - [`from_str_lenient`] reads JSON with half surrogate pairs, which strict readers refuse.
//! - [`from_str_repaired`] also accepts string literals that break JSON's rules in the ways models do.
//! - [`tagged`] reads objects whose first key says what they are.
//! - [`number`] holds the serde helpers for numbers.

pub mod arguments;
mod lenient;
pub mod number;
mod repair;
mod streaming;
mod string_literal;
pub mod tagged;

pub use arguments::{ArgumentsBuilder, MalformedArguments, Replaced, parse_arguments};
pub(crate) use lenient::without_unpaired_escapes;
pub use lenient::{from_slice_lenient, from_slice_lossy, from_str_lenient};
pub use repair::{from_str_repaired, repair_strings};
pub use streaming::{MAX_DEPTH, StreamingJson};
