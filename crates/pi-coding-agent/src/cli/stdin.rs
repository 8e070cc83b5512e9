//! Text on standard input.

use std::{io, time::Duration};

use tokio::io::{AsyncRead, AsyncReadExt};

/// How long a silent pipe is waited for before the person is told.
pub const NOTICE_AFTER: Duration = Duration::from_secs(2);

/// Reads a pipe to its end and trims it. A slow producer is waited for; `notice` is called once when nothing has come
/// for [`NOTICE_AFTER`], since a pipe that was inherited and never closed looks like a hang.
///
/// # Errors
/// When reading fails, or what came is not UTF-8.
pub async fn read(mut pipe: impl AsyncRead + Unpin, notice: impl FnOnce()) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut notice = Some(notice);
    loop {
        let read = pipe.read_buf(&mut bytes);
        let count = match notice.take() {
            Some(tell) => {
                tokio::pin!(read);
                tokio::select! {
                    count = &mut read => {
                        notice = Some(tell);
                        count?
                    }
                    () = tokio::time::sleep(NOTICE_AFTER) => {
                        tell();
                        read.await?
                    }
                }
            }
            None => read.await?,
        };
        if count == 0 {
            break;
        }
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("expected UTF-8 text, found another byte at offset {at}"))
    })?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_pipe_is_announced_once_and_its_text_is_not_lost() {
        let (mut writer, reader) = tokio::io::duplex(64);
        let told = AtomicUsize::new(0);
        let write = async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            writer.write_all(b"  late ").await.unwrap();
            tokio::time::sleep(Duration::from_secs(30)).await;
            writer.write_all(b"text\n").await.unwrap();
            drop(writer);
        };
        let notice = || {
            told.fetch_add(1, Ordering::Relaxed);
        };
        let (text, ()) = tokio::join!(read(reader, notice), write);
        assert_eq!((text.unwrap().as_str(), told.load(Ordering::Relaxed)), ("late text", 1));
    }

    #[tokio::test]
    async fn bytes_that_are_not_text_are_an_error_with_their_place() {
        let error = read(&b"ok \xff"[..], || {}).await.unwrap_err();
        assert!(error.to_string().contains("offset 3"), "{error}");
    }
}
