//! The loop without an agent: what its sources gave is not lost.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pi_agent_core::{
    AgentEvent, AgentHooks, AgentMessage, NoCustom,
    agent_loop::{AgentContext, LoopConfig, run_agent_loop},
    hooks::{HookError, NextTurn, PrepareRequest, RequestUpdate, Turn},
};
use pi_ai::{
    CancellationToken, StopReason,
    faux::{FauxProvider, FauxReply},
};

use crate::support::{quiet_panic, shared, soon, told};

/// A hook that ends the run after messages were taken from the queues.
#[derive(Clone, Copy)]
enum Ends {
    Fails,
    Panics,
    Aborts,
    FailsLater,
}

struct EndsTheRun(Ends, CancellationToken);

#[async_trait]
impl AgentHooks<NoCustom> for EndsTheRun {
    async fn prepare_next_turn(&self, _last: &Turn<'_, NoCustom>) -> Result<NextTurn<NoCustom>, HookError> {
        match self.0 {
            Ends::Fails => Err(HookError::new("it cannot go on")),
            Ends::Panics => quiet_panic("oh"),
            Ends::Aborts => {
                self.1.cancel();
                std::future::pending().await
            }
            Ends::FailsLater => {
                Ok(NextTurn { add_messages: vec![AgentMessage::user("prepared")], ..NextTurn::default() })
            }
        }
    }

    async fn prepare_request(
        &self,
        request: &PrepareRequest<'_, NoCustom>,
    ) -> Result<RequestUpdate<NoCustom>, HookError> {
        match (self.0, request.messages.len()) {
            (Ends::FailsLater, 2..) => Err(HookError::new("it cannot go on")),
            _ => Ok(RequestUpdate::default()),
        }
    }
}

/// A queue that an application keeps itself: what it gave is gone from it.
fn source(messages: &[&str]) -> Arc<dyn Fn() -> Vec<AgentMessage> + Send + Sync> {
    let waiting = Mutex::new(messages.iter().map(|text| AgentMessage::user(*text)).collect::<Vec<AgentMessage>>());
    let polls = Mutex::new(0);
    Arc::new(move || {
        *polls.lock().unwrap() += 1;
        // Nothing before the first request.
        if *polls.lock().unwrap() == 1 { Vec::new() } else { std::mem::take(&mut *waiting.lock().unwrap()) }
    })
}

#[tokio::test(start_paused = true)]
async fn messages_that_were_taken_from_a_queue_are_in_the_transcript_also_when_a_hook_ends_the_run() {
    for ends in [Ends::Fails, Ends::Panics, Ends::Aborts, Ends::FailsLater] {
        for follow_up in [false, true] {
            let signal = CancellationToken::new();
            let mut config = LoopConfig::new(FauxProvider::new([FauxReply::text("one")]), FauxProvider::model());
            config.hooks = Some(Arc::new(EndsTheRun(ends, signal.clone())));
            let queue = source(&["and this", "and that"]);
            match follow_up {
                true => {
                    // The first poll of this queue is when the run would end.
                    queue();
                    config.follow_up = Some(queue);
                }
                false => config.steering = Some(queue),
            }
            let heard = shared(Vec::new());
            let log = heard.clone();
            let produced = soon(run_agent_loop(
                "go",
                AgentContext::default(),
                config,
                signal,
                async move |event: AgentEvent, _context| log.lock().unwrap().push(event.name()),
            ))
            .await;

            let told = told(&produced);
            let count = |text: &str| told.iter().filter(|line| *line == text).count();
            assert_eq!((count("user: and this"), count("user: and that")), (1, 1), "{told:?}");
            let last = produced.last().unwrap().as_assistant().unwrap();
            assert!(matches!(last.stop_reason, StopReason::Error | StopReason::Aborted));
            let heard = heard.lock().unwrap();
            let count = |name: &str| heard.iter().filter(|heard| **heard == name).count();
            assert_eq!(count("message_start"), count("message_end"));
            assert_eq!((count("message_end"), count("turn_start")), (produced.len(), count("turn_end")));
            assert_eq!(heard.last(), Some(&"agent_end"));
        }
    }
}
