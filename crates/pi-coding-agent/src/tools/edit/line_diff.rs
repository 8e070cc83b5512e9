//! A line diff after Myers ("An O(ND) Difference Algorithm and Its Variations"): deletions in front of insertions, and
//! of the shortest scripts the one that follows the old text furthest, as the diffs of other implementations do.

use std::ops::Range;

/// Edit distance up to which the shortest script is looked for; work and memory grow with its square.
const MAX_DISTANCE: usize = 1000;

/// A run of lines with one fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// In both texts.
    Equal { old: Range<usize>, new: Range<usize> },
    /// Only in the old text.
    Removed(Range<usize>),
    /// Only in the new text.
    Added(Range<usize>),
}

/// Splits a text into lines that keep their line feed.
pub(super) fn split_lines(text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut start = 0;
    for at in memchr::memchr_iter(b'\n', text) {
        lines.push(&text[start..=at]);
        start = at + 1;
    }
    if start < text.len() {
        lines.push(&text[start..]);
    }
    lines
}

/// The runs that turn `old` into `new`. Texts that differ in very many lines get one removal and one
/// insertion between what they have in common at both ends.
pub(super) fn diff_lines(old: &[&[u8]], new: &[&[u8]]) -> Vec<Run> {
    shortest_script(old, new).unwrap_or_else(|| replace_middle(old, new))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Equal,
    Removed,
    Added,
}

/// A run of a path, linked to the run before it in the arena.
#[derive(Clone, Copy)]
struct Step {
    kind: Kind,
    count: usize,
    previous: Option<usize>,
}

/// The furthest point reached on one diagonal: how many old lines are used, and the last run.
#[derive(Clone, Copy)]
struct Path {
    old_used: usize,
    last: Option<usize>,
}

struct Search<'a> {
    old: &'a [&'a [u8]],
    new: &'a [&'a [u8]],
    steps: Vec<Step>,
}

fn shortest_script(old: &[&[u8]], new: &[&[u8]]) -> Option<Vec<Run>> {
    let mut search = Search { old, new, steps: Vec::new() };
    let mut start = Path { old_used: 0, last: None };
    if search.follow_equal(&mut start, 0) {
        return Some(search.runs(start.last));
    }

    // Diagonal k holds the paths that used k old lines more than new ones; `best[k + offset]`.
    let limit = MAX_DISTANCE.min(old.len() + new.len());
    let offset = limit as isize + 1;
    let mut best: Vec<Option<Path>> = vec![None; 2 * limit + 3];
    best[offset as usize] = Some(start);
    // Once the end of either text is reached on a diagonal, no path beyond that diagonal can be shorter.
    let (mut lowest, mut highest) = (isize::MIN, isize::MAX);
    for distance in 1..=limit as isize {
        let mut diagonal = first_diagonal(lowest, distance);
        while diagonal <= highest.min(distance) {
            let at = (diagonal + offset) as usize;
            let removing = best[at - 1].take();
            let adding = best[at + 1];
            let can_remove = removing.filter(|path| path.old_used < old.len());
            let can_add = adding.filter(|path| {
                let new_used = path.old_used as isize - diagonal - 1;
                (0..new.len() as isize).contains(&new_used)
            });
            let next = match (can_remove, can_add) {
                (None, None) => {
                    best[at] = None;
                    diagonal += 2;
                    continue;
                }
                (Some(remove), Some(add)) if remove.old_used < add.old_used => search.step(add, Kind::Added),
                (None, Some(add)) => search.step(add, Kind::Added),
                (Some(remove), _) => search.step(remove, Kind::Removed),
            };
            let mut next = next;
            if search.follow_equal(&mut next, diagonal) {
                return Some(search.runs(next.last));
            }
            best[at] = Some(next);
            if next.old_used >= old.len() {
                highest = highest.min(diagonal - 1);
            }
            if next.old_used as isize - diagonal >= new.len() as isize {
                lowest = lowest.max(diagonal + 1);
            }
            diagonal += 2;
        }
    }
    None
}

/// The lowest diagonal of this distance's parity that is not below `lowest`.
fn first_diagonal(lowest: isize, distance: isize) -> isize {
    lowest.max(-distance)
}

impl Search<'_> {
    fn step(&mut self, path: Path, kind: Kind) -> Path {
        self.push(Path { old_used: path.old_used + usize::from(kind == Kind::Removed), last: path.last }, kind, 1)
    }

    fn push(&mut self, path: Path, kind: Kind, count: usize) -> Path {
        let step = match path.last.map(|last| self.steps[last]) {
            Some(last) if last.kind == kind => Step { count: last.count + count, ..last },
            _ => Step { kind, count, previous: path.last },
        };
        self.steps.push(step);
        Path { last: Some(self.steps.len() - 1), ..path }
    }

    /// Moves along equal lines; true when both texts are used up.
    fn follow_equal(&mut self, path: &mut Path, diagonal: isize) -> bool {
        let new_used = (path.old_used as isize - diagonal) as usize;
        let common = self.old[path.old_used..]
            .iter()
            .zip(self.new.get(new_used..).unwrap_or_default())
            .take_while(|(old, new)| old == new)
            .count();
        if common > 0 {
            *path = self.push(Path { old_used: path.old_used + common, last: path.last }, Kind::Equal, common);
        }
        path.old_used >= self.old.len() && new_used + common >= self.new.len()
    }

    fn runs(&self, mut last: Option<usize>) -> Vec<Run> {
        let mut steps = Vec::new();
        while let Some(at) = last {
            steps.push(self.steps[at]);
            last = self.steps[at].previous;
        }
        let (mut old, mut new) = (0, 0);
        steps
            .iter()
            .rev()
            .map(|step| {
                let (old_start, new_start) = (old, new);
                match step.kind {
                    Kind::Equal => {
                        old += step.count;
                        new += step.count;
                        Run::Equal { old: old_start..old, new: new_start..new }
                    }
                    Kind::Removed => {
                        old += step.count;
                        Run::Removed(old_start..old)
                    }
                    Kind::Added => {
                        new += step.count;
                        Run::Added(new_start..new)
                    }
                }
            })
            .collect()
    }
}

fn replace_middle(old: &[&[u8]], new: &[&[u8]]) -> Vec<Run> {
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_tail, new_tail) = (old.len() - tail, new.len() - tail);
    let runs = [
        Run::Equal { old: 0..head, new: 0..head },
        Run::Removed(head..old_tail),
        Run::Added(head..new_tail),
        Run::Equal { old: old_tail..old.len(), new: new_tail..new.len() },
    ];
    runs.into_iter().filter(|run| !run.is_empty()).collect()
}

impl Run {
    fn is_empty(&self) -> bool {
        match self {
            Self::Equal { old, .. } => old.is_empty(),
            Self::Removed(range) | Self::Added(range) => range.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rebuilt(runs: &[Run], old: &[&[u8]], new: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for run in runs {
            match run {
                Run::Equal { old: range, new: other } => {
                    before.extend(old[range.clone()].concat());
                    after.extend(new[other.clone()].concat());
                }
                Run::Removed(range) => before.extend(old[range.clone()].concat()),
                Run::Added(range) => after.extend(new[range.clone()].concat()),
            }
        }
        (before, after)
    }

    #[test]
    fn texts_that_share_little_still_give_a_diff() {
        let old: Vec<Vec<u8>> = (0..3000).map(|n| format!("old {n}\n").into_bytes()).collect();
        let new: Vec<Vec<u8>> = (0..3000).map(|n| format!("new {n}\n").into_bytes()).collect();
        let (mut old, mut new): (Vec<&[u8]>, Vec<&[u8]>) =
            (old.iter().map(Vec::as_slice).collect(), new.iter().map(Vec::as_slice).collect());
        old.insert(0, b"same\n");
        new.insert(0, b"same\n");
        let runs = diff_lines(&old, &new);
        assert_eq!(runs.len(), 3);
        assert_eq!(rebuilt(&runs, &old, &new), (old.concat(), new.concat()));
    }

    proptest! {
        #[test]
        fn the_runs_spell_both_texts(old in proptest::collection::vec(0_u8..4, 0..30), new in proptest::collection::vec(0_u8..4, 0..30)) {
            let old: Vec<&[u8]> = old.iter().map(std::slice::from_ref).collect();
            let new: Vec<&[u8]> = new.iter().map(std::slice::from_ref).collect();
            prop_assert_eq!(rebuilt(&diff_lines(&old, &new), &old, &new), (old.concat(), new.concat()));
        }
    }
}
