//! How long from the start of `pi -p …` to the first byte of its request, against a bare program that posts the same.

use std::ffi::OsStr;
use std::path::Path;

use fake_llm::{Script, Server, Wire};
use xtask::Error;
use xtask::measure::{children_cpu, median};
use xtask::row::{Goal, Row};

use crate::program::{self, Bench};
use crate::{Finding, Size};

pub(crate) fn run(size: Size) -> Result<Vec<Finding>, Error> {
    let (pi, bare_post) = (program::pi()?, program::bare_post()?);
    let server = Server::start(Script::new(Wire::OpenAiCompletions).otherwise("ok"));
    let bench = Bench::with_model_on(&server)?;
    let prompt = ["-p", "--no-session", "--model", "local/m", "Say ok."].map(OsStr::new);

    // One run that is not counted warms the caches and tells what pi sends.
    program::run(bench.command(&pi, &prompt))?;
    let requests = server.requests();
    let first = requests.last().ok_or("pi sent no request")?;
    let body = bench.path().join("body.json");
    std::fs::write(&body, first.body())?;
    let url = server.url(first.target());
    let post = [OsStr::new(&url), body.as_os_str()];
    program::run(bench.command(&bare_post, &post))?;

    let (mut ours, mut floor) = (Measured::default(), Measured::default());
    // By turns, so that a busy moment of the machine meets both.
    for _ in 0..size.pick(40, 200) {
        ours.run(&server, &bench, &pi, &prompt)?;
        floor.run(&server, &bench, &bare_post, &post)?;
    }
    let request = Row::new("start.first_request_byte", median(ours.millis), "ms")
        .floor(median(floor.millis))
        .goal(Goal::Ratio(3.0));
    let runs = size.pick(40, 200) as f64;
    let cpu = Row::new("start.whole_run_cpu", ours.cpu * 1e3 / runs, "CPU-ms").floor(floor.cpu * 1e3 / runs);
    Ok(vec![Finding::Row(request), Finding::Row(cpu)])
}

/// What the runs of one program took.
#[derive(Default)]
struct Measured {
    /// From the start to the first byte of the request, each.
    millis: Vec<f64>,
    /// CPU-seconds of all runs.
    cpu: f64,
}

impl Measured {
    fn run(&mut self, server: &Server, bench: &Bench, program: &Path, arguments: &[&OsStr]) -> Result<(), Error> {
        let before = children_cpu()?;
        let run = program::run(bench.command(program, arguments))?;
        self.cpu += (children_cpu()? - before).as_secs_f64();
        let requests = server.requests();
        let request = requests.last().ok_or("the program sent no request")?;
        self.millis.push((request.first_byte_at - run.started).as_secs_f64() * 1e3);
        Ok(())
    }
}
