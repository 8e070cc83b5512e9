//! What 200,000 text deltas in one answer cost `pi -p`, all in all, against the least that decoding them can cost.

use std::ffi::OsStr;

use fake_llm::{Answer, Script, Server, Wire};
use xtask::Error;
use xtask::measure::{children_cpu, median, nanos_per};
use xtask::row::{Goal, Row};

use crate::decode::{DELTAS, chat_body, chat_floor, deltas};
use crate::program::{self, Bench};
use crate::{Finding, Size};

/// What a process may have besides the answer, in bytes.
const MEMORY_BASE: u64 = 20_000_000;

/// How often a process may hold the answer's text.
const MEMORY_COPIES: u64 = 4;

pub(crate) fn run(size: Size) -> Result<Vec<Finding>, Error> {
    let text_bytes: usize = deltas().map(|text| text.len()).sum();
    let body = chat_body();
    let server = Server::start(Script::new(Wire::OpenAiCompletions).otherwise(Answer::new().text_deltas(deltas())));
    let bench = Bench::with_model_on(&server)?;
    let pi = program::pi()?;
    let prompt = ["-p", "--no-session", "--model", "local/m", "Count."].map(OsStr::new);
    program::run(bench.command(&pi, &prompt))?;
    let (mut nanos, mut least, mut peaks) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..size.pick(7, 21) {
        // By turns, so that a busy moment of the machine meets both.
        least.push(nanos_per(1, DELTAS, || chat_floor(&body)));
        let before = children_cpu()?;
        let run = program::run(bench.command(&pi, &prompt))?;
        nanos.push((children_cpu()? - before).as_nanos() as f64 / DELTAS as f64);
        peaks.extend(run.peak_memory.map(|bytes| bytes as f64 / 1e6));
    }
    let limit = (MEMORY_BASE + MEMORY_COPIES * text_bytes as u64) as f64 / 1e6;
    let speed =
        Row::new("stream.pi_200k_deltas", median(nanos), "CPU-ns/delta").floor(median(least)).goal(Goal::Ratio(2.0));
    let name = "stream.pi_200k_deltas_memory";
    let memory = if peaks.is_empty() {
        let reason = "this system has no /proc to read a process's peak memory from".to_owned();
        Finding::LeftOut { name: name.to_owned(), reason }
    } else {
        Finding::Row(Row::new(name, median(peaks), "MB").goal(Goal::Value(limit)))
    };
    Ok(vec![Finding::Row(speed), memory])
}
