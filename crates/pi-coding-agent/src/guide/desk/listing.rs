//! How many there are: exactly, or at least, when not all could be seen.

use super::CommandOutput;

/// A number that is told as what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::guide) enum Amount {
    Exactly(usize),
    AtLeast(usize),
}

impl Amount {
    /// The number, or the least that it is.
    pub(in crate::guide) fn number(self) -> usize {
        match self {
            Amount::Exactly(number) | Amount::AtLeast(number) => number,
        }
    }
}

/// Things that were found, as many as an answer needs, and how many there are in all.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::guide) struct Listing<T> {
    pub(in crate::guide) items: Vec<T>,
    pub(in crate::guide) total: Amount,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self { items: Vec::new(), total: Amount::Exactly(0) }
    }
}

impl<T> Listing<T> {
    /// What a tool gave that stops at `most`.
    pub(super) fn up_to(most: usize, items: Vec<T>) -> Self {
        let count = items.len();
        Self { items, total: if count < most { Amount::Exactly(count) } else { Amount::AtLeast(count) } }
    }

    pub(in crate::guide) fn filter_map<U>(self, keep: impl FnMut(T) -> Option<U>) -> Listing<U> {
        Listing { items: self.items.into_iter().filter_map(keep).collect(), total: self.total }
    }
}

/// Ends a pipeline: passes the first lines on, and says at the end how many there were.
pub(super) fn first_and_total(most: usize) -> String {
    format!("awk 'NR <= {most}; END {{ print NR }}'")
}

/// What such a pipeline printed. The total comes last, so it is there even when the beginning was left out.
pub(super) fn lines_and_total(output: &CommandOutput) -> Listing<String> {
    let mut lines: Vec<String> = output.text.lines().map(str::to_owned).collect();
    let total = lines.last().and_then(|last| last.trim().parse().ok()).filter(|total| *total + 1 >= lines.len());
    match total {
        Some(total) => {
            lines.pop();
            Listing { items: lines, total: Amount::Exactly(total) }
        }
        None => Listing { total: Amount::AtLeast(lines.len()), items: lines },
    }
}
