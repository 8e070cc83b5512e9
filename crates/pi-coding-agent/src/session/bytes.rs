//! Where the bytes of a session's lines come from.

use std::{
    io,
    sync::{Arc, PoisonError, RwLock},
};

use crate::session::tree::Place;

/// Random access to the bytes of a session, for entries that are not in memory.
pub trait ReadRange: Send + Sync + 'static {
    /// Reads from a position until `into` is full.
    ///
    /// # Errors
    /// When the bytes cannot be read; [`io::ErrorKind::UnexpectedEof`] when there are too few.
    fn read_range(&self, at: u64, into: &mut [u8]) -> io::Result<()>;
}

/// A session's bytes in memory, shared by those who read and the one who appends.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryBytes(Arc<RwLock<Vec<u8>>>);

impl MemoryBytes {
    pub(crate) fn len(&self) -> u64 {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    /// Appends when the bytes end at `at`; otherwise says where they end.
    pub(crate) fn append_at(&self, at: u64, more: &[u8]) -> Result<(), u64> {
        let mut bytes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let end = bytes.len() as u64;
        if at != end {
            return Err(end);
        }
        bytes.extend_from_slice(more);
        Ok(())
    }

    /// Appends at the end, wherever that is.
    pub(crate) fn push(&self, more: &[u8]) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).extend_from_slice(more);
    }

    /// Hands out everything.
    pub(crate) fn read_all(&self, mut read: impl FnMut(&[u8])) {
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner));
    }

    /// A copy of everything from a position on.
    pub(crate) fn copy_from(&self, at: u64) -> Vec<u8> {
        let bytes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default().to_vec()
    }
}

impl From<Vec<u8>> for MemoryBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(RwLock::new(bytes)))
    }
}

impl ReadRange for MemoryBytes {
    fn read_range(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let bytes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let start = usize::try_from(at).ok();
        let range = start.and_then(|start| bytes.get(start..start.checked_add(into.len())?));
        into.copy_from_slice(range.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Lines that lie closer together than this are read at one go.
const GAP: u64 = 16 << 10;
/// The most that is read at one go, unless one line is longer.
const CHUNK: u64 = 1 << 20;

/// Reads lines in an order that is kind to a disk: neighbours at one go. `places` should be in the order of the file.
///
/// # Errors
/// When the bytes cannot be read. Lines before that have been handed out.
pub(crate) fn read_lines<T>(
    source: &dyn ReadRange,
    places: &[(T, Place)],
    mut line: impl FnMut(&T, &[u8]),
) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut rest = places;
    while let Some((_, first)) = rest.first() {
        let mut end = first.at + first.len;
        let mut count = 1;
        for (_, place) in &rest[1..] {
            let new_end = end.max(place.at.saturating_add(place.len));
            if place.at < first.at || place.at > end + GAP || new_end - first.at > CHUNK {
                break;
            }
            end = new_end;
            count += 1;
        }
        let length = usize::try_from(end - first.at).map_err(|_| io::ErrorKind::OutOfMemory)?;
        buffer.clear();
        buffer.resize(length, 0);
        source.read_range(first.at, &mut buffer)?;
        let (together, after) = rest.split_at(count);
        for (what, place) in together {
            let start = (place.at - first.at) as usize;
            line(what, &buffer[start..start + place.len as usize]);
        }
        rest = after;
    }
    Ok(())
}

/// Reads one line.
///
/// # Errors
/// When the bytes cannot be read.
pub(crate) fn read_line_at(source: &dyn ReadRange, place: Place) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; usize::try_from(place.len).map_err(|_| io::ErrorKind::OutOfMemory)?];
    source.read_range(place.at, &mut buffer)?;
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_in_whatever_pieces() {
        let text: Vec<u8> = (0..300_000u32).flat_map(|number| number.to_le_bytes()).collect();
        let source = MemoryBytes::from(text.clone());
        let places = [(0, 4), (4, 10), (5, 1), (70_000, 900_000), (980_000, 100_000), (1_100_000, 1), (8, 2), (12, 0)];
        let places: Vec<_> = places.map(|(at, len)| ((), Place { at, len })).into();
        let mut read = Vec::new();
        read_lines(&source, &places, |(), line| read.push(line.to_vec())).unwrap();
        let wanted: Vec<_> =
            places.iter().map(|(_, place)| text[place.at as usize..][..place.len as usize].to_vec()).collect();
        assert!(read == wanted);
        assert!(read_line_at(&source, Place { at: text.len() as u64 - 1, len: 2 }).is_err());
    }
}
