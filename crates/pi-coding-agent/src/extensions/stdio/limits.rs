//! How much a program may want before it is stopped.

use std::time::Duration;

/// Bytes of a line, in both directions.
pub(super) const MAX_LINE: usize = 16 << 20;
/// Bytes of a manifest.
pub(super) const MAX_MANIFEST: u64 = 1 << 20;
/// Bytes that are kept of what a program writes to standard error.
pub(super) const STDERR_TAIL: usize = 4 << 10;
/// Lines that are no messages, before the program is ended.
pub(super) const MAX_BAD_LINES: usize = 100;
/// Requests of a program that are answered at once.
pub(super) const MAX_OPEN_REQUESTS: usize = 64;
/// Requests of a program that wait for their turn.
pub(super) const MAX_QUEUED_REQUESTS: usize = 256;
/// Lines that wait to be written.
pub(super) const MAX_UNWRITTEN: usize = 64;
/// Calls whose answer nobody waits for any more, and that may still come.
pub(super) const MAX_ABANDONED: usize = 1024;
/// Messages that a program may send at once; after that it is read more slowly.
pub(super) const BURST: f64 = 1000.0;
/// Messages that it may send in a second, for long.
pub(super) const MESSAGES_PER_SECOND: f64 = 500.0;

/// How long a call that was aborted may take to answer; shorter than what a handler is granted.
pub(super) const ABORT_GRACE: Duration = Duration::from_secs(2);
/// From the end of its input to the polite signal.
pub(super) const INPUT_CLOSED_GRACE: Duration = Duration::from_millis(500);
/// From the polite signal to the other one.
pub(super) const TERMINATE_GRACE: Duration = Duration::from_millis(500);
/// How long output of a program is read that has ended, while nothing comes.
pub(super) const IDLE_AFTER_EXIT: Duration = Duration::from_millis(100);
/// How long it is read at most.
pub(super) const DRAIN_AFTER_EXIT: Duration = Duration::from_secs(1);
/// How long what a program asked for is still done after its end.
pub(super) const FINISH_REQUESTS: Duration = Duration::from_millis(500);
/// How long a program may live on after it closed its output.
pub(super) const EXIT_AFTER_OUTPUT: Duration = Duration::from_millis(300);
/// The longest wait before a program is started again.
pub(super) const MAX_BACK_OFF: Duration = Duration::from_secs(10);

/// What a time of the manifest may be, in milliseconds.
pub(super) const TIMES: std::ops::RangeInclusive<u64> = 50..=3_600_000;
/// What the time for the shutdown may be: the session waits for it.
pub(super) const SHUTDOWN_TIMES: std::ops::RangeInclusive<u64> = 50..=5_000;
