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
    let spoken = Message::user("one more");
    let patch = SystemMessage::default().section("tone", "plainer").into();
    Ok(vec![
        Finding::Row(row("transcript.append_and_read_at_100k", &spoken, size)),
        Finding::Row(row("transcript.patch_and_read_at_100k", &patch, size)),
    ])
}

/// What appending `next` and reading costs in a transcript of 100,000 messages, against one of 100.
fn row(name: &str, next: &Message, size: Size) -> Row {
    let (mut short, mut long) = (transcript(100), transcript(100_000));
    let (mut short_nanos, mut long_nanos) = (Vec::new(), Vec::new());
    // By turns, so that a busy moment of the machine meets both.
    for _ in 0..size.pick(51, 501) {
        short_nanos.push(append_and_read(&mut short, next));
        long_nanos.push(append_and_read(&mut long, next));
    }
    Row::new(name, median(long_nanos), "ns").floor(median(short_nanos)).goal(Goal::Ratio(1.5))
}

/// The replayed state of a transcript of this length.
fn transcript(length: usize) -> TranscriptState {
    let mut state = TranscriptState::default();
    state.push(&head());
    for number in 1..length {
        state.push(&message(number));
    }
    state
}

/// Nanoseconds to append a message and read the prompt and the tools.
fn append_and_read(state: &mut TranscriptState, next: &Message) -> f64 {
    nanos_per(1, APPENDS, || {
        for _ in 0..APPENDS {
            state.push(black_box(next));
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
