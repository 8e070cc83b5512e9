//! What does an event of a session cost that nobody handles, and one that ten handlers get?

use std::hint::black_box;
use std::sync::Arc;

use pi_coding_agent::extensions::{Extension, ExtensionApi, ExtensionRunner, FlagValues, event, named};
use tokio::runtime::Runtime;

use xtask::Error;
use xtask::measure::{median, thread_cpu};
use xtask::row::{Goal, Row};

use crate::{Finding, Size};

/// How many handlers there are.
const HANDLERS: usize = 10;

pub(crate) fn run(size: Size) -> Result<Vec<Finding>, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let nobody = runner(&runtime, 0);
    let ten = runner(&runtime, HANDLERS);
    let count = size.pick(100_000, 1_000_000);
    let (mut unhandled, mut handled) = (Vec::new(), Vec::new());
    for _ in 0..size.pick(21, 101) {
        unhandled.push(per_event(&runtime, &nobody, count));
        handled.push(per_event(&runtime, &ten, count / 100) / HANDLERS as f64);
    }
    let unhandled = Row::new("extensions.event_without_handlers", median(unhandled), "ns").goal(Goal::Value(20.0));
    let handled = Row::new("extensions.event_per_handler", median(handled), "ns").goal(Goal::Value(1000.0));
    Ok(vec![Finding::Row(unhandled), Finding::Row(handled)])
}

fn runner(runtime: &Runtime, handlers: usize) -> ExtensionRunner {
    let counting = named("counting", move |pi: &mut ExtensionApi| {
        for _ in 0..handlers {
            pi.on(event::AgentStart, async |event, _ctx| {
                black_box(event);
            });
        }
    });
    let extensions: Vec<Arc<dyn Extension>> = vec![Arc::new(counting)];
    let runner = ExtensionRunner::new(extensions, FlagValues::new());
    runtime.block_on(runner.load());
    runner
}

/// Nanoseconds of CPU time per event.
fn per_event(runtime: &Runtime, runner: &ExtensionRunner, count: usize) -> f64 {
    let signal = pi_agent_core::CancellationToken::new();
    let start = thread_cpu();
    runtime.block_on(async {
        for _ in 0..count {
            runner.notify(event::AgentStart, &signal, || black_box(event::AgentStartEvent::default())).await;
        }
    });
    (thread_cpu() - start).as_nanos() as f64 / count as f64
}
