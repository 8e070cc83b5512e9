//! Does appending to a transcript, and reading its prompt and tools, cost the same at any length?

use std::hint::black_box;

use pi_ai::transcript::TranscriptState;
use pi_ai::{Message, SystemMessage, ToolDeclaration};
use serde_json::json;

use xtask::Error;
use xtask::measure::{median, nanos_per};
use xtask::row::{Goal, Row};

use crate::{Finding, Size};

/// Appends per timed run.
const APPENDS: usize = 2_000;

pub(crate) fn run(size: Size) -> Result<Vec<Finding>, Error> {
    let runs = size.pick(15, 51);
    let (mut short, mut long) = (Vec::new(), Vec::new());
    // By turns, so that a busy moment of the machine meets both.
    for _ in 0..runs {
        short.push(append_and_read(100));
        long.push(append_and_read(100_000));
    }
    let row =
        Row::new("transcript.append_and_read_at_100k", median(long), "ns").floor(median(short)).goal(Goal::Ratio(1.5));
    Ok(vec![Finding::Row(row)])
}

/// Nanoseconds to append a message to a transcript of this length and read its prompt and tools.
fn append_and_read(length: usize) -> f64 {
    let mut state = TranscriptState::default();
    state.push(&head());
    for number in 1..length {
        state.push(&message(number));
    }
    let next = message(length);
    nanos_per(1, APPENDS, || {
        for _ in 0..APPENDS {
            state.push(black_box(&next));
            black_box(state.prompt());
            black_box(state.tools().count());
        }
    })
}

fn head() -> Message {
    let tools = ["read", "bash", "edit", "write"].map(|name| {
        let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        ToolDeclaration::new(name, "A tool.", parameters)
    });
    SystemMessage::new("You help.").section("tone", "plain").with_tools(tools.to_vec()).into()
}

fn message(number: usize) -> Message {
    // Now and then the prompt changes, as it does in a long session.
    match number % 1_000 {
        0 => SystemMessage::default().section("tone", format!("tone {number}")).into(),
        _ => Message::user(format!("message {number}")),
    }
}
