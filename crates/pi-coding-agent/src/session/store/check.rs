//! A check that a store keeps its promises, for the tests of whoever writes one.

use super::{AppendError, SessionStore};

/// Checks that a store keeps its promises. `open` gives a new handle to one session, which is empty at first; the
/// handle before is dropped each time.
///
/// It does not kill processes or cut the power: what was appended must survive that, too.
///
/// # Errors
/// Says which promise is broken.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), String> {
/// use pi_coding_agent::session::store::{MemoryStore, check_store};
/// let session = MemoryStore::default();
/// check_store(async || session.clone()).await
/// # }
/// ```
pub async fn check_store<S: SessionStore>(open: impl AsyncFn() -> S) -> Result<(), String> {
    let mut kept = Vec::new();
    let mut store = open().await;
    expect(&mut store, &kept, "a new session is empty").await?;

    for line in [b"one\n".to_vec(), b"two\n".to_vec(), vec![b'x'; 300_000], b"\n\0\xff\n".to_vec()] {
        let at = kept.len() as u64;
        store.append(at, &line).await.map_err(|error| format!("appending at the end failed: {error}"))?;
        kept.extend_from_slice(&line);
        expect(&mut store, &kept, "what was appended is there").await?;

        let after = store.append(at, b"late\n").await;
        if !matches!(after, Err(AppendError::Moved { end }) if end == kept.len() as u64) {
            return Err(format!("appending at {at}, which is not the end, gave {after:?} instead of where the end is"));
        }
        let beyond = store.append(kept.len() as u64 + 1, b"early\n").await;
        if beyond.is_ok() {
            return Err("bytes were appended after a gap".into());
        }
        expect(&mut store, &kept, "a refused append writes nothing").await?;

        drop(store);
        store = open().await;
        expect(&mut store, &kept, "another handle reads what was appended").await?;
    }
    store.sync().await.map_err(|error| format!("forcing it to the disk failed: {error}"))?;

    for from in [0, 1, 4, kept.len() - 1, kept.len()] {
        let mut read = Vec::new();
        let end = store.read(from as u64, &mut |piece| read.extend_from_slice(piece)).await;
        let end = end.map_err(|error| format!("reading from {from} failed: {error}"))?;
        if end != kept.len() as u64 || read != kept[from..] {
            return Err(format!("reading from {from} gave {} bytes that end at {end}", read.len()));
        }
    }
    if store.read(kept.len() as u64 + 1, &mut |_| {}).await.is_ok() {
        return Err("reading from after the end succeeded".into());
    }
    if let Some(reader) = store.reader() {
        for (from, to) in [(0, 3), (2, 9), (0, kept.len()), (kept.len(), kept.len())] {
            let mut range = vec![0; to - from];
            let read = reader.read_range(from as u64, &mut range);
            read.map_err(|error| format!("reading the range {from}..{to} failed: {error}"))?;
            if range != kept[from..to] {
                return Err(format!("the range {from}..{to} holds other bytes"));
            }
        }
        if reader.read_range(kept.len() as u64 - 1, &mut [0; 2]).is_ok() {
            return Err("reading a range beyond the end succeeded".into());
        }
    }
    Ok(())
}

async fn expect(store: &mut impl SessionStore, kept: &[u8], promise: &str) -> Result<(), String> {
    let mut read = Vec::new();
    match store.read(0, &mut |piece| read.extend_from_slice(piece)).await {
        Ok(end) if end == kept.len() as u64 && read == kept => Ok(()),
        Ok(end) => {
            Err(format!("{promise}: {} bytes were kept, {} were read, the end is at {end}", kept.len(), read.len()))
        }
        Err(error) => Err(format!("{promise}: reading failed: {error}")),
    }
}
