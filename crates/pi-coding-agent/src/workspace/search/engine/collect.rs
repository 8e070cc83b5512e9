//! Keeping what many threads find in order of the paths, and no more of it than the limits ask for.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::{GrepFile, GrepLineKind, GrepResult, GrepStop};
use super::file::{GrepMatcher, Searched};

/// A path below the root as it is sorted: part by part, so that a directory's entries stand together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::workspace) struct PathKey(Vec<u8>);

impl PathKey {
    pub(in crate::workspace) fn new(path: &str) -> Self {
        Self(path.bytes().map(|byte| if byte == b'/' { 0 } else { byte }).collect())
    }
}

/// Takes the files of one search from all threads.
pub(in crate::workspace) struct Collector {
    limit: usize,
    context: usize,
    text_bytes: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    files: BTreeMap<PathKey, Kept>,
    matches: usize,
    /// Files behind this one cannot be in the result any more.
    last: Option<PathKey>,
    text: usize,
    /// Text of files behind this one is beyond the limit.
    last_text: Option<PathKey>,
    stopped: BTreeMap<PathKey, (String, GrepStop)>,
}

struct Kept {
    file: GrepFile,
    matches: usize,
    text: usize,
    more: bool,
}

impl Collector {
    pub(in crate::workspace) fn new(matcher: &GrepMatcher) -> Self {
        Self {
            limit: matcher.limit(),
            context: matcher.context(),
            text_bytes: matcher.text_bytes(),
            state: Mutex::default(),
        }
    }

    /// Whether a file of this path can still be in the result.
    pub(in crate::workspace) fn wants(&self, path: &PathKey) -> bool {
        self.state().last.as_ref().is_none_or(|last| path <= last)
    }

    pub(in crate::workspace) fn add(&self, key: PathKey, searched: Searched) {
        let Searched { file, more } = searched;
        if file.lines.is_empty() {
            if let Some(stop) = file.stopped {
                self.add_stopped(key, file.path, stop);
            }
            return;
        }
        let matches = file.lines.iter().filter(|line| line.kind == GrepLineKind::Match).count();
        let text = file.lines.iter().filter(|line| line.text.is_some()).map(|line| line.len).sum();
        let mut state = self.state();
        state.matches += matches;
        state.text += text;
        state.files.insert(key, Kept { file, matches, text, more });
        state.forget_files(self.limit);
        state.forget_texts(self.text_bytes);
    }

    /// A file without lines to give that was not searched to its end.
    pub(in crate::workspace) fn add_stopped(&self, key: PathKey, path: String, stop: GrepStop) {
        self.state().stopped.insert(key, (path, stop));
    }

    pub(in crate::workspace) fn finish(self) -> GrepResult {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut result = GrepResult { stopped: state.stopped.into_values().collect(), ..GrepResult::default() };
        let mut left = self.limit;
        for kept in state.files.into_values() {
            if left == 0 {
                result.more = true;
                break;
            }
            result.more |= kept.more || kept.matches > left;
            let mut file = kept.file;
            if kept.matches >= left {
                cut_behind(&mut file, left, self.context);
            }
            left -= kept.matches.min(left);
            result.files.push(file);
        }
        result
    }

    /// The state is whole after every statement that changes it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Lets go of the last files while there are enough matches, and one more to prove it, without them.
    fn forget_files(&mut self, limit: usize) {
        while let Some(last) = self.files.last_entry()
            && self.matches - last.get().matches > limit
        {
            let (_, kept) = last.remove_entry();
            self.matches -= kept.matches;
            self.text -= kept.text;
            self.last = self.files.last_key_value().map(|(key, _)| key.clone());
        }
    }

    /// Lets go of the texts of the last files while there is enough text without them; their counts stay.
    fn forget_texts(&mut self, limit: usize) {
        let files = match &self.last_text {
            Some(last) => {
                // What came in behind is beyond the limit, wherever the limit is.
                let behind = (std::ops::Bound::Excluded(last.clone()), std::ops::Bound::Unbounded);
                for (_, kept) in self.files.range_mut(behind) {
                    self.text -= kept.forget_text();
                }
                self.files.range_mut(..=last.clone())
            }
            None => self.files.range_mut::<PathKey, _>(..),
        };
        for (key, kept) in files.rev() {
            if self.text - kept.text < limit {
                break;
            }
            self.text -= kept.forget_text();
            self.last_text = Some(key.clone());
        }
    }
}

impl Kept {
    fn forget_text(&mut self) -> usize {
        for line in &mut self.file.lines {
            line.text = None;
        }
        std::mem::take(&mut self.text)
    }
}

/// Leaves the first matches of a file and their context; later matches in it count as context.
fn cut_behind(file: &mut GrepFile, matches: usize, context: usize) {
    let mut seen = 0;
    let mut end = u64::MAX;
    file.lines.retain_mut(|line| {
        if line.kind == GrepLineKind::Match {
            seen += 1;
            if seen == matches {
                end = line.number.saturating_add(context as u64);
            } else if seen > matches {
                line.kind = GrepLineKind::Context;
            }
        }
        line.number <= end
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio_util::sync::CancellationToken;

    use super::super::super::{CaseRule, GrepQuery, Pattern};
    use super::super::file::FileSearch;
    use super::*;

    fn query(limit: usize, context: usize, text_bytes: usize) -> GrepQuery {
        GrepQuery {
            pattern: Pattern::Literal("x".to_owned()),
            case: CaseRule::Sensitive,
            root: "/".into(),
            glob: None,
            context,
            limit,
            line_units: 500,
            text_bytes,
        }
    }

    fn grep(files: &[(String, String)], query: &GrepQuery) -> GrepResult {
        let matcher = GrepMatcher::new(query, CancellationToken::new()).unwrap();
        let collector = Collector::new(&matcher);
        let mut search = FileSearch::new(matcher);
        for (path, content) in files {
            let key = PathKey::new(path);
            if collector.wants(&key) {
                collector.add(key, search.search(path.clone(), content.as_bytes()));
            }
        }
        collector.finish()
    }

    /// The definition: all lines of all files in order, and where the limit cuts them.
    fn by_definition(
        files: &[(String, String)],
        limit: usize,
        context: usize,
    ) -> (Vec<(String, u64, GrepLineKind)>, bool) {
        let mut files = files.to_vec();
        files.sort_by_key(|(path, _)| PathKey::new(path));
        let (mut lines, mut left, mut more) = (Vec::new(), limit, false);
        for (path, content) in files {
            let all: Vec<&str> = content.lines().collect();
            let matches: Vec<usize> = (0..all.len()).filter(|at| all[*at].contains('x')).collect();
            more |= matches.len() > left;
            let allowed = &matches[..matches.len().min(left)];
            left -= allowed.len();
            for at in 0..all.len() {
                let near = allowed.iter().any(|found| found.abs_diff(at) <= context);
                if near {
                    let kind = if allowed.contains(&at) { GrepLineKind::Match } else { GrepLineKind::Context };
                    lines.push((path.clone(), at as u64 + 1, kind));
                }
            }
        }
        (lines, more)
    }

    proptest! {
        #[test]
        fn the_result_does_not_depend_on_the_order_in_which_files_were_searched(
            contents in proptest::collection::btree_map("[ab](/[ab]){0,2}\\.?", "([x-]\n){0,8}", 0..8),
            order in any::<u64>(), limit in 1_usize..8, context in 0_usize..3,
        ) {
            let mut files: Vec<(String, String)> = contents.into_iter().collect();
            let mut state = order;
            for at in (1..files.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                files.swap(at, (state >> 33) as usize % (at + 1));
            }
            let result = grep(&files, &query(limit, context, 1_000_000));
            let found: Vec<(String, u64, GrepLineKind)> = result
                .files
                .iter()
                .flat_map(|file| file.lines.iter().map(|line| (file.path.clone(), line.number, line.kind)))
                .collect();
            prop_assert_eq!((found, result.more), by_definition(&files, limit, context));
        }

        #[test]
        fn text_is_kept_from_the_front_and_counted_to_the_end(
            contents in proptest::collection::btree_map("[a-d]", "(x[a-z]{0,9}\n){0,8}", 0..5), text_bytes in 0_usize..60,
        ) {
            let files: Vec<(String, String)> = contents.into_iter().rev().collect();
            let whole = grep(&files, &query(1000, 0, 1_000_000));
            let cut = grep(&files, &query(1000, 0, text_bytes));
            let lines = |result: &GrepResult| -> Vec<_> { result.files.iter().flat_map(|file| file.lines.clone()).collect() };
            let mut before = 0;
            for (line, kept) in lines(&whole).iter().zip(lines(&cut)) {
                prop_assert_eq!(line.len, kept.len);
                if before < text_bytes {
                    prop_assert_eq!(&line.text, &kept.text);
                }
                before += line.len;
            }
            prop_assert_eq!(lines(&whole).len(), lines(&cut).len());
        }
    }
}
