//! Counting where the files are, so that no limit of a tool makes a number wrong.

use super::{Amount, Ask, Desk, FileText, Query, QueryKind, line_count, quote, shell};

/// The lines of the files whose names end alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::guide) struct LinesOfKind {
    /// A name that stands for them.
    pub(in crate::guide) example: String,
    pub(in crate::guide) files: usize,
    pub(in crate::guide) lines: usize,
}

impl Desk<'_> {
    /// How many lines a file has of which a text was read.
    pub(in crate::guide) fn lines_of(&mut self, path: &str, file: &FileText) -> Ask<Amount> {
        let known = line_count(&file.text);
        if file.complete {
            return Ok(Amount::Exactly(known));
        }
        if self.has("bash") {
            // Counts a last line without a newline too, unlike `wc`.
            let output = self.bash(&format!("grep -ac '' < {}", quote(path)), None)?;
            if let Ok(lines) = output.text.trim().parse() {
                return Ok(Amount::Exactly(lines));
            }
        }
        // The last line counts only when something stands in it.
        Ok(Amount::AtLeast(file.total_lines.map_or(known, |lines| lines.saturating_sub(1)).max(known)))
    }

    /// How many files there are below a folder, of those with an extension if one is given.
    pub(in crate::guide) fn count_files(&mut self, folder: &str, extension: Option<&str>) -> Ask<Amount> {
        if self.has("bash") {
            let suffix = extension.map(|extension| format!(".{extension}")).unwrap_or_default();
            let pattern = format!("{}$", super::escape_expression(&suffix));
            let command = format!("{} | sort -u | grep -cE {}", shell::list_files(folder), quote(&pattern));
            if let Ok(count) = self.bash(&command, None)?.text.trim().parse() {
                return Ok(Amount::Exactly(count));
            }
        }
        let files = self.files(folder)?;
        let fits = |file: &&String| extension.is_none_or(|extension| file.ends_with(&format!(".{extension}")));
        let fitting = files.items.iter().filter(fits).count();
        let is_all = files.total == Amount::Exactly(files.items.len());
        Ok(if is_all { Amount::Exactly(fitting) } else { Amount::AtLeast(fitting) })
    }

    /// How often a text occurs below a folder or in a file, and in how many files.
    pub(in crate::guide) fn occurrences(&mut self, place: &str, text: &str) -> Ask<(Amount, Amount)> {
        // A newline would be taken for several texts.
        if self.has("bash") && !text.contains('\n') {
            let command = format!(
                "{} | wc -l; {} | wc -l",
                shell::grep_bytes(place, "-ohIF", text),
                shell::grep_bytes(place, "-lIF", text)
            );
            if let [times, files] = numbers(&self.bash(&command, None)?.text)[..] {
                return Ok((Amount::Exactly(times), Amount::Exactly(files)));
            }
        }
        let query = Query { most: 1000, ..Query::new(text, QueryKind::Text) };
        let found = self.search(place, &query)?;
        let times = found.items.iter().map(|line| line.text.matches(text).count().max(1)).sum();
        let mut files: Vec<&str> = found.items.iter().map(|line| line.file.as_str()).collect();
        files.dedup();
        let amount = if matches!(found.total, Amount::Exactly(_)) { Amount::Exactly } else { Amount::AtLeast };
        Ok((amount(times), amount(files.len())))
    }

    /// How many lines match, and in how many files.
    pub(in crate::guide) fn matching_lines(&mut self, place: &str, query: &Query) -> Ask<(Amount, Amount)> {
        if self.has("bash") {
            let command = format!(
                "{} | grep -v ':0$' | sed 's/.*://' | awk '{{ lines += $1 }} END {{ print lines + 0, NR }}'",
                shell::grep(place, &format!("-cI {}", query.flags()), &query.text)
            );
            if let [lines, files] = numbers(&self.bash(&command, None)?.text)[..] {
                return Ok((Amount::Exactly(lines), Amount::Exactly(files)));
            }
        }
        let counts = self.count_matches(place, query)?;
        let lines = counts.items.iter().map(|(_, count)| count).sum();
        let amount = if matches!(counts.total, Amount::Exactly(_)) { Amount::Exactly } else { Amount::AtLeast };
        Ok((amount(lines), amount(counts.items.len())))
    }

    /// The lines of all text files below a folder, by the ends of their names. Without a shell `None`.
    pub(in crate::guide) fn lines_by_kind(&mut self, folder: &str) -> Ask<Option<Vec<LinesOfKind>>> {
        if !self.has("bash") {
            return Ok(None);
        }
        let command = format!(
            "{} | grep -v ':0$' | awk '{{ n = $0; sub(/.*:/, \"\", n); f = $0; sub(/:[0-9]+$/, \"\", f); \
             sub(/.*\\//, \"\", f); sub(/.*\\./, \"x.\", f); files[f]++; lines[f] += n }} \
             END {{ for (f in files) print files[f], lines[f], f }}' | sort",
            shell::grep_bytes(folder, "-cI", "")
        );
        let output = self.bash(&command, None)?;
        let kinds = output.text.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ' ');
            let (files, lines) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            Some(LinesOfKind { example: parts.next()?.to_owned(), files, lines })
        });
        Ok(Some(kinds.collect()))
    }

    /// The files with the most lines. Without a shell `None`.
    pub(in crate::guide) fn longest_files(&mut self, most: usize) -> Ask<Option<Vec<(String, usize)>>> {
        if !self.has("bash") {
            return Ok(None);
        }
        let command = format!(
            "{} | grep -v ':0$' | sed 's/^\\(.*\\):\\([0-9]*\\)$/\\2 \\1/' | sort -rn | head -n {most}",
            shell::grep_bytes(".", "-cI", "")
        );
        let output = self.bash(&command, None)?;
        let files = output.text.lines().filter_map(|line| {
            let (lines, file) = line.split_once(' ')?;
            Some((file.trim_start_matches("./").to_owned(), lines.parse().ok()?))
        });
        Ok(Some(files.collect()))
    }

    /// The last lines of a file.
    pub(in crate::guide) fn read_end(&mut self, path: &str, count: usize) -> Ask<FileText> {
        if self.has("bash") {
            let output = self.bash(&format!("tail -n {count} -- {}", quote(path)), None)?;
            if output.succeeded() {
                return Ok(FileText { text: output.text, complete: !output.cut, ..FileText::default() });
            }
        }
        let start = self.read_start(path)?;
        let end_of = |text: &str| {
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(count)..].join("\n")
        };
        match start.total_lines {
            Some(total) if !start.complete => {
                let end = self.read_lines(path, total.saturating_sub(count).max(1), count + 1)?;
                Ok(FileText { text: end_of(&end.text), ..end })
            }
            _ => Ok(FileText { text: end_of(&start.text), ..start }),
        }
    }
}

fn numbers(text: &str) -> Vec<usize> {
    text.split_whitespace().map_while(|word| word.parse().ok()).collect()
}
