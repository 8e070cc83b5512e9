//! Standard output that may be closed at any time.

use std::{
    io::{self, IsTerminal, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use pi_ai::CancellationToken;

use crate::screen::for_screen;

/// Standard output. When the reader goes away, writing stops quietly and [`closed`](Self::closed) is cancelled, so
/// that the work behind it can stop too.
#[derive(Clone, Debug)]
pub(super) struct Output {
    closed: CancellationToken,
    failed: Arc<AtomicBool>,
}

impl Output {
    /// This process's standard output.
    pub(super) fn stdout() -> Self {
        Self { closed: CancellationToken::new(), failed: Arc::default() }
    }

    /// Is cancelled when nobody reads any more.
    pub(super) fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Whether something could not be written although somebody reads (a full disk).
    pub(super) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Writes text and hands it on at once.
    pub(super) fn write(&self, text: &str) {
        self.write_bytes(text.as_bytes());
    }

    /// Writes bytes and hands them on at once.
    pub(super) fn write_bytes(&self, bytes: &[u8]) {
        if self.closed.is_cancelled() || bytes.is_empty() {
            return;
        }
        let mut stdout = io::stdout().lock();
        if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            if error.kind() != io::ErrorKind::BrokenPipe {
                self.failed.store(true, Ordering::Relaxed);
                say(&format!("pi: standard output cannot be written: {error}"));
            }
            self.closed.cancel();
        }
    }

    /// Writes text of models and files. A terminal gets nothing that it would obey.
    pub(super) fn text(&self, text: &str) {
        match io::stdout().is_terminal() {
            true => self.write(&for_screen(text)),
            false => self.write(text),
        }
    }

    /// Writes a line.
    pub(super) fn line(&self, line: &str) {
        self.write(&format!("{line}\n"));
    }
}

/// Writes a line to standard error, with nothing in it that a terminal would obey: it may quote models, servers and
/// files. A log is read on a terminal too, later. Nobody can be told when that fails.
pub(super) fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", for_screen(line));
}
