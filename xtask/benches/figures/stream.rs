//! What 200,000 text deltas in one answer cost, against the least that decoding them can cost.

use std::ffi::OsStr;
use std::hint::black_box;

use fake_llm::{Answer, Script, Server, Wire};
use memchr::memmem;
use serde::Deserialize;
use xtask::Error;
use xtask::measure::{children_cpu, median, nanos_per};
use xtask::row::{Goal, Row};

use crate::program::{self, Bench};
use crate::{Finding, Size};

/// Deltas in the answer.
const DELTAS: usize = 200_000;

/// What a process may have besides the answer, in bytes.
const MEMORY_BASE: u64 = 20_000_000;

/// How often a process may hold the answer's text.
const MEMORY_COPIES: u64 = 4;

pub(crate) fn run(size: Size) -> Result<Vec<Finding>, Error> {
    let texts: Vec<String> = (0..DELTAS).map(|number| format!("{:04} ", number % 10_000)).collect();
    let text_bytes: usize = texts.iter().map(String::len).sum();
    let body = body(&texts);
    let floor = nanos_per(size.pick(9, 31), DELTAS, || floor(&body));

    let server = Server::start(Script::new(Wire::OpenAiCompletions).otherwise(Answer::new().text_deltas(texts)));
    let bench = Bench::with_model_on(&server)?;
    let pi = program::pi()?;
    let prompt = ["-p", "--no-session", "--model", "local/m", "Count."].map(OsStr::new);
    program::run(bench.command(&pi, &prompt))?;
    let (mut nanos, mut peaks) = (Vec::new(), Vec::new());
    for _ in 0..size.pick(7, 21) {
        let before = children_cpu()?;
        let run = program::run(bench.command(&pi, &prompt))?;
        nanos.push((children_cpu()? - before).as_nanos() as f64 / DELTAS as f64);
        peaks.extend(run.peak_memory.map(|bytes| bytes as f64 / 1e6));
    }
    let limit = (MEMORY_BASE + MEMORY_COPIES * text_bytes as u64) as f64 / 1e6;
    let speed = Row::new("stream.pi_200k_deltas", median(nanos), "CPU-ns/delta").floor(floor).goal(Goal::Ratio(2.0));
    let name = "stream.pi_200k_deltas_memory";
    let memory = if peaks.is_empty() {
        let reason = "this system has no /proc to read a process's peak memory from".to_owned();
        Finding::LeftOut { name: name.to_owned(), reason }
    } else {
        Finding::Row(Row::new(name, median(peaks), "MB").goal(Goal::Value(limit)))
    };
    Ok(vec![Finding::Row(speed), memory])
}

/// The event stream of an answer with these deltas, as a service sends it.
fn body(texts: &[String]) -> Vec<u8> {
    let events = texts.iter().map(|text| {
        format!(
            "data: {{\"id\":\"chatcmpl-0\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\",\
             \"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
        )
    });
    events.flat_map(String::into_bytes).collect()
}

/// The floor: events found by their blank lines, each read into typed fields, and nothing done with them.
fn floor(mut body: &[u8]) {
    while let Some(end) = memmem::find(body, b"\n\n") {
        let (event, rest) = body.split_at(end);
        let chunk: Result<Chunk, _> = serde_json::from_slice(event.strip_prefix(b"data: ").unwrap_or(event));
        // A broken event would make the floor too low without anybody noticing.
        black_box(chunk.expect("the body above is JSON"));
        body = &rest[2..];
    }
}

/// The fields of a chunk that a client has to know.
#[derive(Deserialize)]
#[expect(dead_code, reason = "reading them is what is measured")]
struct Chunk {
    id: Option<String>,
    model: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "reading them is what is measured")]
struct Choice {
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "reading them is what is measured")]
struct Delta {
    content: Option<String>,
    reasoning_content: Option<String>,
    tool_calls: Option<Vec<ToolCall>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "reading them is what is measured")]
struct ToolCall {
    index: Option<usize>,
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "reading them is what is measured")]
struct Function {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "reading them is what is measured")]
struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}
