//! Cutting a byte stream into lines.

use memchr::memchr_iter;

/// A carried-over line may keep this much memory for the next one.
const KEPT_CAPACITY: usize = 1 << 20;

/// Cuts pieces of a file into lines at LF. Lines inside a piece are borrowed from it; one that goes on in the next
/// piece is carried over.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    carried: Vec<u8>,
    /// Where the current line begins.
    line_start: u64,
}

impl LineSplitter {
    /// A splitter for a stream whose first byte has this position.
    pub(crate) fn starting_at(position: u64) -> Self {
        Self { carried: Vec::new(), line_start: position }
    }

    /// Hands every line that ends in this piece to `line`, with the position of its first byte and without its LF.
    pub(crate) fn push(&mut self, piece: &[u8], mut line: impl FnMut(u64, &[u8])) {
        let mut start = 0;
        for end in memchr_iter(b'\n', piece) {
            let inside = &piece[start..end];
            if self.carried.is_empty() {
                line(self.line_start, inside);
                self.line_start += inside.len() as u64 + 1;
            } else {
                self.carried.extend_from_slice(inside);
                line(self.line_start, &self.carried);
                self.line_start += self.carried.len() as u64 + 1;
                self.carried.clear();
                self.carried.shrink_to(KEPT_CAPACITY);
            }
            start = end + 1;
        }
        self.carried.extend_from_slice(&piece[start..]);
    }

    /// Where the last whole line ended.
    pub(crate) fn position(&self) -> u64 {
        self.line_start
    }

    /// The line without an LF at the end, with the position of its first byte; `None` when the stream ends in one.
    pub(crate) fn rest(&self) -> Option<(u64, &[u8])> {
        (!self.carried.is_empty()).then_some((self.line_start, &*self.carried))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Lines = Vec<(u64, Vec<u8>)>;

    fn split(pieces: &[&[u8]]) -> (Lines, Option<(u64, Vec<u8>)>) {
        let mut splitter = LineSplitter::starting_at(7);
        let mut lines = Vec::new();
        for piece in pieces {
            splitter.push(piece, |at, line| lines.push((at, line.to_vec())));
        }
        (lines, splitter.rest().map(|(at, line)| (at, line.to_vec())))
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_the_pieces(text in "[ab\n]{0,40}", cuts in proptest::collection::vec(0usize..40, 0..6)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();

            let (lines, rest) = split(&pieces);
            prop_assert_eq!((&lines, &rest), (&split(&[bytes]).0, &split(&[bytes]).1));
            let mut whole = Vec::new();
            for (at, line) in &lines {
                prop_assert_eq!(*at, 7 + whole.len() as u64);
                whole.extend_from_slice(line);
                whole.push(b'\n');
            }
            whole.extend(rest.map(|(_, rest)| rest).unwrap_or_default());
            prop_assert_eq!(whole, bytes);
        }
    }
}
