//! Writing a log on threads where it may block.

use std::fs::File;
use std::future::Future as _;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;
use tokio::task::JoinHandle;

/// Bytes that one trip to a blocking thread carries; a trip costs about as much as writing a tenth of them.
const BATCH: usize = 1024 * 1024;

/// A file that is written in large pieces: what comes in is gathered while the piece before is written.
#[derive(Debug)]
pub(super) struct LogWriter {
    gathered: Vec<u8>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Waiting for more. The buffer is empty, and kept for its memory.
    Idle { file: File, spare: Vec<u8> },
    /// A piece is on its way.
    Writing(JoinHandle<Result<(File, Vec<u8>), io::Error>>),
    /// It could not be written; that was told.
    Failed,
}

impl LogWriter {
    pub(super) fn new(file: File) -> Self {
        Self { gathered: Vec::new(), state: State::Idle { file, spare: Vec::new() } }
    }

    /// Waits for the piece that is being written.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let State::Writing(writing) = &mut self.state {
            let written = ready!(Pin::new(writing).poll(cx)).unwrap_or_else(|panicked| Err(io::Error::other(panicked)));
            self.state = State::Failed;
            let (file, spare) = written?;
            self.state = State::Idle { file, spare };
        }
        Poll::Ready(Ok(()))
    }

    /// Sends off what was gathered.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_idle(cx))?;
        match std::mem::replace(&mut self.state, State::Failed) {
            State::Idle { mut file, spare } => {
                let mut piece = std::mem::replace(&mut self.gathered, spare);
                self.state = State::Writing(tokio::task::spawn_blocking(move || {
                    file.write_all(&piece)?;
                    piece.clear();
                    Ok((file, piece))
                }));
                Poll::Ready(Ok(()))
            }
            State::Writing(_) | State::Failed => Poll::Ready(Err(io::Error::other("an earlier write failed"))),
        }
    }
}

impl AsyncWrite for LogWriter {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.gathered.len() >= BATCH {
            ready!(self.poll_send(cx))?;
        }
        self.gathered.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_idle(cx))?;
        if !self.gathered.is_empty() {
            ready!(self.poll_send(cx))?;
        }
        self.poll_idle(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn a_log_of_several_batches_is_whole_after_the_shutdown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut writer = LogWriter::new(File::create(&path).unwrap());
        let mut expected = Vec::new();
        for number in 0..100_000_u32 {
            let line = format!("line {number}, as long as a line of a build's output may be\n");
            writer.write_all(line.as_bytes()).await.unwrap();
            expected.extend_from_slice(line.as_bytes());
        }
        assert!(expected.len() > 3 * BATCH);
        writer.shutdown().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), expected);
    }

    #[tokio::test]
    async fn a_file_that_takes_nothing_is_an_error_at_the_latest_when_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "").unwrap();
        // Opened for reading only.
        let mut writer = LogWriter::new(File::open(&path).unwrap());
        writer.write_all(b"a line\n").await.unwrap();
        writer.shutdown().await.unwrap_err();
        writer.write_all(&vec![b'x'; 2 * BATCH]).await.unwrap();
        writer.write_all(b"more").await.unwrap_err();
    }
}
