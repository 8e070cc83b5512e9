//! Running one command and keeping what it writes.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::OutputAccumulator;
use crate::tools::truncate::Limits;
use crate::workspace::{ProcessEnd, ProcessError, ShellCommand, Workspace};

/// Between two updates at least.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// Pieces of output that wait to be taken in; then the command waits.
const PIECES_WAITING: usize = 16;

/// Sees the output while it comes.
pub(crate) trait Watch: Send {
    /// The next piece of text.
    fn text(&mut self, _text: &str) {}

    /// There is more output than at the last update; not called too often.
    fn update(&mut self, _output: &OutputAccumulator) {}
}

/// A command that is over.
pub(crate) struct Execution {
    pub(crate) end: Result<ProcessEnd, ProcessError>,
    pub(crate) output: OutputAccumulator,
    pub(crate) wall_time: Duration,
}

/// Runs a command to its end, whatever the end is.
pub(crate) async fn execute(
    workspace: &Workspace,
    command: ShellCommand,
    cancel: CancellationToken,
    watch: &mut dyn Watch,
) -> Execution {
    let started = Instant::now();
    let files = workspace.files().as_ref();
    let mut output = OutputAccumulator::new(Limits::default());
    let (sender, mut pieces) = mpsc::channel(PIECES_WAITING);
    let mut run = workspace.processes().run(command, sender, cancel);
    let mut end = None;
    let mut last_update = started;
    let mut news = false;
    loop {
        let due = last_update + UPDATE_INTERVAL;
        tokio::select! {
            piece = pieces.recv() => match piece {
                Some(piece) => {
                    let take = output.push(&piece, files, |text| watch.text(text));
                    meanwhile(&mut run, &mut end, take).await;
                    news = true;
                }
                None if end.is_some() => break,
                // Nothing more will come; only the end is missing.
                None => {
                    end = Some(run.await);
                    break;
                }
            },
            ended = &mut run, if end.is_none() => end = Some(ended),
            () = tokio::time::sleep_until(due), if news => {
                meanwhile(&mut run, &mut end, output.flush()).await;
                watch.update(&output);
                last_update = Instant::now();
                news = false;
            }
        }
    }
    output
        .finish(files, |rest| {
            watch.text(rest);
            news |= !rest.is_empty();
        })
        .await;
    if news {
        watch.update(&output);
    }
    Execution {
        // The loop ends only with it.
        end: end.unwrap_or(Err(ProcessError::Unsupported)),
        output,
        wall_time: started.elapsed(),
    }
}

/// Does something while the command goes on: a slow disk must not keep it from meeting its deadline.
async fn meanwhile<T>(
    run: &mut (impl Future<Output = T> + Unpin),
    end: &mut Option<T>,
    work: impl Future<Output = ()>,
) {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            () = &mut work => break,
            ended = &mut *run, if end.is_none() => *end = Some(ended),
        }
    }
}
