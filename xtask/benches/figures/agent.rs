//! What does the agent loop itself cost: per turn, per message, per delta, per agent?

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use pi_agent_core::{Agent, AgentEvent, AgentMessage, Tool, ToolArguments};
use pi_ai::stream::{Advance, MessageBuilder, Source};
use pi_ai::{AssistantStream, StopReason, StreamFn, Timestamp, ToolCall, ToolDeclaration, stream_fn};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use xtask::Error;
use xtask::measure::{median, peak_memory_of, process_cpu, thread_cpu};
use xtask::row::{Goal, Row};

use crate::{Finding, Size};

pub(crate) fn run(size: Size) -> Result<Vec<Finding>, Error> {
    let [turn_at_100, per_message] = turns(size)?;
    let (per_delta, delta_memory) = deltas(size)?;
    let rows = [turn_at_100, per_message, per_delta, delta_memory, idle_agents()?, running_agents(size)?];
    Ok(rows.into_iter().map(Finding::Row).collect())
}

/// What a turn with one tool call costs with a model that answers at once and both hooks set.
///
/// The goals are 20 µs per turn and 30 ns per message of the transcript, so a turn at 100 messages may cost 23 µs.
fn turns(size: Size) -> Result<[Row; 2], Error> {
    let runtime = current_thread()?;
    let (short, long) = (transcript(100), transcript(100_000));
    // One length after the other: a run over the long transcript leaves nothing of the short one in the caches.
    let at_short = turn(&runtime, &short, size.pick(201, 1001));
    let at_long = turn(&runtime, &long, size.pick(25, 101));
    let per_message = (at_long - at_short) / (long.len() - short.len()) as f64;
    Ok([
        Row::new("agent.turn_at_100_messages", at_short / 1000.0, "us").goal(Goal::Value(23.0)),
        Row::new("agent.both_hooks_per_message", per_message, "ns").goal(Goal::Value(30.0)),
    ])
}

/// Nanoseconds of CPU time per turn: what many turns cost more than few. What a run costs once is no part of it.
fn turn(runtime: &Runtime, transcript: &[AgentMessage], runs: usize) -> f64 {
    const FEW: usize = 10;
    const MANY: usize = 30;
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        few.push(run_of(runtime, transcript, FEW));
        many.push(run_of(runtime, transcript, MANY));
    }
    (median(many) - median(few)) / (MANY - FEW) as f64
}

/// Nanoseconds of CPU time of a run with so many tool calls, one after the other.
fn run_of(runtime: &Runtime, transcript: &[AgentMessage], calls: usize) -> f64 {
    let agent = Agent::builder(calls_a_tool(calls))
        .messages(transcript.iter().cloned())
        .tool(instant_tool())
        .transform_context(async |messages: Vec<AgentMessage>, _signal| black_box(messages))
        .build();
    let start = thread_cpu();
    runtime.block_on(async {
        let reply = agent.prompt("go").await;
        assert_eq!(reply.map(|reply| reply.messages().len()).unwrap_or_default(), 2 * calls + 2);
    });
    (thread_cpu() - start).as_nanos() as f64
}

const DELTAS: usize = 200_000;
const DELTA: &str = "word ";

/// What a delta costs on its way through an agent with two listeners, and how much memory a long answer takes.
///
/// The goals are two million events per second, and 20 MB with four times the text.
fn deltas(size: Size) -> Result<(Row, Row), Error> {
    let runtime = current_thread()?;
    let (mut nanos, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..size.pick(7, 31) {
        let before = reset_peak_memory();
        nanos.push(stream_deltas(&runtime) / DELTAS as f64);
        memory
            .extend(before.and_then(|before| Some(peak_memory_of(std::process::id())?.saturating_sub(before) as f64)));
    }
    let text = (DELTAS * DELTA.len()) as f64 / 1e6;
    Ok((
        Row::new("agent.delta_with_two_listeners", median(nanos), "ns").goal(Goal::Value(500.0)),
        Row::new("agent.memory_of_200k_deltas", median(memory) / 1e6, "MB").goal(Goal::Value(20.0 + 4.0 * text)),
    ))
}

fn stream_deltas(runtime: &Runtime) -> f64 {
    let agent = Agent::builder(stream_fn(|model, _context, options| {
        let answer = MessageBuilder::new(model, Timestamp::default());
        AssistantStream::from_source(answer, options.signal, Words { left: DELTAS })
    }))
    .build();
    let heard = Arc::new(AtomicUsize::new(0));
    for _ in 0..2 {
        let heard = heard.clone();
        agent
            .subscribe(async move |event: AgentEvent, _context| {
                heard.fetch_add(usize::from(event.text_delta().is_some()), Ordering::Relaxed);
            })
            .detach();
    }
    let start = thread_cpu();
    let length = runtime.block_on(async { agent.prompt("go").await.map(|reply| reply.text().len()) });
    let nanos = (thread_cpu() - start).as_nanos() as f64;
    assert_eq!(length.unwrap_or_default(), DELTAS * DELTA.len());
    assert_eq!(heard.load(Ordering::Relaxed), 2 * DELTAS);
    nanos
}

struct Words {
    left: usize,
}

impl Source for Words {
    fn poll_advance(&mut self, _cx: &mut Context<'_>, answer: &mut MessageBuilder) -> Poll<Advance> {
        if !answer.has_started() {
            answer.start();
            answer.start_text();
        } else if self.left == 0 {
            answer.done(StopReason::Stop);
        } else {
            self.left -= 1;
            answer.push_text(0, DELTA);
        }
        Poll::Ready(Advance::More)
    }
}

/// What an agent that does nothing takes: a prompt, four tools, a short transcript.
fn idle_agents() -> Result<Row, Error> {
    const AGENTS: usize = 10_000;
    let model = Arc::new(calls_a_tool(1));
    let shared_tools: Vec<Arc<dyn pi_agent_core::AgentTool>> = (0..4).map(|_| Arc::new(instant_tool()) as _).collect();
    let before = memory().ok_or("/proc/self/status has no VmRSS")?;
    let agents: Vec<Agent> = (0..AGENTS)
        .map(|_| Agent::builder(model.clone()).system_prompt("You help.").tools(shared_tools.iter().cloned()).build())
        .collect();
    let grown = memory().ok_or("/proc/self/status has no VmRSS")?.saturating_sub(before);
    let per_agent = grown as f64 / black_box(agents).len() as f64 / 1000.0;
    Ok(Row::new("agent.memory_of_an_idle_agent", per_agent, "kB").goal(Goal::Value(10.0)))
}

/// How fairly a thousand agents share two threads: the latest end of ten turns, against the mean one.
fn running_agents(size: Size) -> Result<Row, Error> {
    const AGENTS: usize = 1_000;
    const TURNS: usize = 10;
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut ratios = Vec::new();
    for _ in 0..size.pick(5, 15) {
        let agents: Vec<Agent> =
            (0..AGENTS).map(|_| Agent::builder(calls_a_tool(TURNS - 1)).tool(instant_tool()).build()).collect();
        let cpu = process_cpu();
        let ends = runtime.block_on(async {
            let start = Instant::now();
            let runs = agents.iter().map(|agent| {
                let run = agent.prompt("go");
                tokio::spawn(async move { run.await.map(|_| start.elapsed().as_nanos() as f64) })
            });
            futures::future::join_all(runs).await
        });
        black_box(process_cpu() - cpu);
        let ends: Vec<f64> = ends.into_iter().flatten().flatten().collect();
        if ends.len() != AGENTS {
            return Err(format!("only {} of {AGENTS} agents finished", ends.len()).into());
        }
        let mean = ends.iter().sum::<f64>() / ends.len() as f64;
        ratios.push(ends.iter().copied().fold(0.0, f64::max) / mean);
    }
    Ok(Row::new("agent.latest_of_1000_to_mean", median(ratios), "x").goal(Goal::Value(2.0)))
}

/// A model that answers at once: with so many tool calls, one per answer, and then with a word.
fn calls_a_tool(times: usize) -> impl StreamFn {
    let asked = AtomicUsize::new(0);
    stream_fn(move |model, context, options| {
        black_box(context.messages().len());
        let mut answer = MessageBuilder::new(model, Timestamp::default());
        answer.start();
        let asked = asked.fetch_add(1, Ordering::Relaxed);
        if asked < times {
            let call = ToolCall::new(format!("call{asked}"), "instant", json!({"path": "src"}));
            let index = answer.start_tool_call(call.clone());
            answer.end_tool_call_with(index, call);
            answer.done(StopReason::ToolUse);
        } else {
            let text = answer.start_text();
            answer.push_text(text, "done");
            answer.end_text(text, Default::default());
            answer.done(StopReason::Stop);
        }
        AssistantStream::from_source(answer, options.signal, Written)
    })
}

/// A source that has written everything already.
struct Written;

impl Source for Written {
    fn poll_advance(&mut self, _cx: &mut Context<'_>, _answer: &mut MessageBuilder) -> Poll<Advance> {
        Poll::Ready(Advance::Exhausted)
    }
}

fn instant_tool() -> Tool {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let declaration = ToolDeclaration::new("instant", "Answers at once.", parameters);
    Tool::from_declaration(declaration, async |_arguments: ToolArguments, _context| Ok("done"))
}

fn transcript(length: usize) -> Vec<AgentMessage> {
    (0..length).map(|number| AgentMessage::user(format!("message {number}"))).collect()
}

fn current_thread() -> Result<Runtime, Error> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Resident memory of this process.
fn memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Makes peak memory count from now. Gives what there is now; `None` where that cannot be done.
fn reset_peak_memory() -> Option<u64> {
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    memory()
}
