//! Signals that end the program in order.

use std::io;

/// What the shell is told when a signal ended the program: 128 and the signal's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended(pub(super) u8);

/// Waits for signals that end the program. After the first one was taken, a second one ends the process at once.
#[derive(Debug)]
pub(super) struct Signals {
    #[cfg(unix)]
    streams: [(tokio::signal::unix::Signal, Ended); 3],
}

impl Signals {
    /// Begins to wait. From here on these signals no longer end the process by themselves.
    ///
    /// # Errors
    /// When the operating system refuses.
    #[cfg(unix)]
    pub(super) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let of = |kind: SignalKind, code| Ok::<_, io::Error>((signal(kind)?, Ended(code)));
        Ok(Self {
            streams: [
                of(SignalKind::interrupt(), 130)?,
                of(SignalKind::terminate(), 143)?,
                of(SignalKind::hangup(), 129)?,
            ],
        })
    }

    /// Waits for the next one.
    #[cfg(unix)]
    pub(super) async fn next(&mut self) -> Ended {
        let [interrupt, terminate, hangup] = &mut self.streams;
        tokio::select! {
            _ = interrupt.0.recv() => interrupt.1,
            _ = terminate.0.recv() => terminate.1,
            _ = hangup.0.recv() => hangup.1,
        }
    }

    /// Begins to wait.
    ///
    /// # Errors
    /// Never on this platform.
    #[cfg(not(unix))]
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next one.
    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) -> Ended {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Ended(130),
            // Without a handler there is nothing to wait for.
            Err(_) => std::future::pending().await,
        }
    }
}
