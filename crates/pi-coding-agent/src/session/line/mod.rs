//! A session file's lines, as bytes: what a line's beginning says, where lines end, how a line is written.

mod head;
mod members;
mod split;
mod write;

pub(crate) use head::{Head, Line, read_line};
pub(crate) use members::{Members, Step};
pub(crate) use split::LineSplitter;
pub(crate) use write::{rechained, write_line};

use pi_ai::json::from_slice_lossy;
use serde::de::IgnoredAny;

/// Whether a whole line is valid JSON. Half surrogate pairs are fine: JavaScript writes them.
pub(crate) fn is_json(line: &[u8]) -> bool {
    from_slice_lossy::<IgnoredAny>(line).is_ok()
}
