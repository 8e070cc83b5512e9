//! 1. The model knows the time in every request, and the transcript does not fill up with clocks.
//!
//! It is about this request, so it is `transform_context`. The time goes to the end of the list: what stands before it
//! stays the same from request to request, and can be read from the provider's cache.

use pi_agent_core::{Agent, AgentError, AgentMessage};
use pi_ai::{
    Clock, Timestamp,
    faux::{FauxProvider, FauxReply},
    time::FixedClock,
};

use crate::line;

pub(crate) async fn solve() -> Result<Vec<String>, AgentError> {
    let clock = FixedClock(Timestamp::from_millis(1_700_000_000_000));
    let model = FauxProvider::new([FauxReply::text("Good morning."), FauxReply::text("A minute later.")]);
    let agent = Agent::builder(model.clone())
        .transform_context(async move |mut messages: Vec<AgentMessage>, _signal| {
            messages.push(AgentMessage::user(format!("(It is {} ms after 1970.)", clock.now().as_millis())));
            messages
        })
        .build();
    agent.prompt("Hello!").await?;
    agent.prompt("And now?").await?;
    let mut lines: Vec<_> = model
        .requests()
        .last()
        .into_iter()
        .flat_map(|request| request.context.messages().to_vec())
        .map(|message| line(&message))
        .collect();
    lines.push(format!("{} messages in the transcript", agent.state().messages.len()));
    Ok(lines)
}

#[cfg(test)]
#[tokio::test]
async fn the_last_request_has_one_clock_and_the_transcript_has_none() {
    let lines = solve().await.unwrap();
    assert_eq!(lines.iter().filter(|line| line.contains("after 1970")).count(), 1);
    assert!(lines[3].contains("after 1970"));
    assert_eq!(lines[4], "4 messages in the transcript");
}
