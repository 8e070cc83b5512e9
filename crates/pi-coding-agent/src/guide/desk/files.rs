//! Reading, listing, finding, searching and changing files with whatever tools are active.

use serde_json::{Value, json};

use super::{
    Amount, Ask, Desk, Effect, Listing, Outcome, Stop, Trouble, all, brief,
    listing::{first_and_total, lines_and_total},
    quote, shell,
};
use crate::{guide::utterance::has_extension, tools::read::take_remarks};

/// The text of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::guide) struct FileText {
    pub(in crate::guide) text: String,
    /// The lines of the whole file as `read` counts them: a newline at the end begins another one.
    pub(in crate::guide) total_lines: Option<usize>,
    /// Whether this is all of it.
    pub(in crate::guide) complete: bool,
    /// The encoding that it was decoded from, when it is not UTF-8.
    pub(in crate::guide) encoding: Option<String>,
    /// The line, from 1, at which reading stopped because it is too long.
    pub(in crate::guide) too_long: Option<usize>,
}

/// A newline at the end begins no line.
pub(in crate::guide) fn line_count(text: &str) -> usize {
    text.lines().count()
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::guide) struct Entry {
    pub(in crate::guide) name: String,
    pub(in crate::guide) is_folder: bool,
}

/// A line that a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::guide) struct Found {
    pub(in crate::guide) file: String,
    pub(in crate::guide) line: usize,
    pub(in crate::guide) text: String,
}

/// Parts of one file that are read one after the other.
const MOST_PARTS: usize = 8;
/// Files of which one call asks for the first lines.
const HEADS_AT_ONCE: usize = 24;
/// Files that are listed: what an output of the shell tool holds.
const MOST_FILES: usize = 1900;
/// Files that are listed by name.
const MOST_FOUND: usize = 300;
/// Files that the tool for finding files gives.
const FIND_LIMIT: usize = 1000;

impl Desk<'_> {
    /// The text of a file, as much as a few reads give.
    pub(in crate::guide) fn read(&mut self, path: &str) -> Ask<FileText> {
        self.read_parts(path, MOST_PARTS)
    }

    /// The beginning of a file: what one read gives.
    pub(in crate::guide) fn read_start(&mut self, path: &str) -> Ask<FileText> {
        self.read_parts(path, 1)
    }

    fn read_parts(&mut self, path: &str, most: usize) -> Ask<FileText> {
        if !self.has("read") {
            return self.read_by_shell(path);
        }
        let mut file = FileText::default();
        let mut next = None;
        for part in 0..most {
            let arguments = match next {
                None => json!({"path": path}),
                Some(line) => json!({"path": path, "offset": line}),
            };
            let text = self.done("read", arguments, || format!("reading {path}"))?;
            let (body, remarks) = take_remarks(&text);
            if part > 0 && !file.text.ends_with('\n') {
                file.text.push('\n');
            }
            file.text.push_str(body);
            file.total_lines = remarks.total_lines.or(file.total_lines);
            file.encoding = remarks.encoding.or(file.encoding);
            file.too_long = remarks.too_long;
            match remarks.next_line {
                Some(line) => next = Some(line),
                None => return Ok(FileText { complete: file.too_long.is_none(), ..file }),
            }
        }
        Ok(file)
    }

    fn read_by_shell(&mut self, path: &str) -> Ask<FileText> {
        if !self.has("bash") {
            return Err(Stop::Trouble(Trouble::NoTool { need: "to read a file", any_of: "read or bash" }));
        }
        let output = self.bash(&format!("cat -- {}", quote(path)), None)?;
        if !output.succeeded() {
            let message = output.text.trim().to_owned();
            return Err(Stop::Trouble(Trouble::Failed { doing: format!("reading {path}"), message }));
        }
        // The shell tool drops the newline at the end, which text files have.
        Ok(FileText { text: output.text + "\n", complete: !output.cut, ..FileText::default() })
    }

    /// Some lines of a file, from 1.
    pub(in crate::guide) fn read_lines(&mut self, path: &str, from: usize, count: usize) -> Ask<FileText> {
        if self.has("read") {
            let text = self.done("read", json!({"path": path, "offset": from.max(1), "limit": count}), || {
                format!("reading {path}")
            })?;
            let (body, remarks) = take_remarks(&text);
            return Ok(FileText {
                text: body.to_owned(),
                total_lines: remarks.total_lines,
                complete: remarks.next_line.is_none() && remarks.too_long.is_none(),
                encoding: remarks.encoding,
                too_long: remarks.too_long,
            });
        }
        let command = format!(
            "sed -n {}p -- {}",
            quote(&format!("{},{}", from.max(1), from.max(1) + count.saturating_sub(1))),
            quote(path)
        );
        let output = self.bash(&command, None)?;
        if !output.succeeded() {
            return Err(Stop::Trouble(Trouble::Failed { doing: format!("reading {path}"), message: output.text }));
        }
        Ok(FileText { text: output.text, ..FileText::default() })
    }

    /// The entries of a folder, hidden ones included.
    pub(in crate::guide) fn list(&mut self, folder: &str) -> Ask<Vec<Entry>> {
        let folder = if folder.is_empty() { "." } else { folder };
        let text = if self.has("ls") {
            self.done("ls", json!({"path": folder}), || format!("listing {folder}"))?
        } else if self.has("bash") {
            let output = self.bash(&format!("ls -Ap -- {}", quote(folder)), None)?;
            if !output.succeeded() {
                let message = output.text.trim().to_owned();
                return Err(Stop::Trouble(Trouble::Failed { doing: format!("listing {folder}"), message }));
            }
            output.text
        } else {
            return Err(Stop::Trouble(Trouble::NoTool { need: "to list a folder", any_of: "ls or bash" }));
        };
        let names = text
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty() && !line.starts_with('[') && *line != "(empty directory)");
        // Links, pipes and sockets may carry a mark of their own.
        Ok(names
            .map(|name| Entry {
                name: name.trim_end_matches(['/', '@', '|', '=']).to_owned(),
                is_folder: name.ends_with('/'),
            })
            .collect())
    }

    /// The first lines of several files, `None` for those that are not there.
    pub(in crate::guide) fn heads(&mut self, paths: &[String], lines: usize) -> Ask<Vec<Option<String>>> {
        if !self.has("bash") {
            if !self.has("read") {
                return Err(Stop::Trouble(Trouble::NoTool { need: "to read files", any_of: "read or bash" }));
            }
            let questions: Vec<_> = paths.iter().take(48).map(|path| self.read_lines(path, 1, lines)).collect();
            return Ok(all(questions)?.into_iter().map(|file| file.ok().map(|file| file.text)).collect());
        }
        // Several calls at once, each with an output that most likely fits.
        let questions: Vec<_> = paths.chunks(HEADS_AT_ONCE).map(|paths| self.heads_by_shell(paths, lines)).collect();
        let mut heads = Vec::new();
        for answer in all(questions)? {
            heads.extend(answer.map_err(Stop::Trouble)?);
        }
        Ok(heads)
    }

    fn heads_by_shell(&mut self, paths: &[String], lines: usize) -> Ask<Vec<Option<String>>> {
        let mut heads: Vec<Option<String>> = vec![None; paths.len()];
        let mut open: Vec<usize> = (0..paths.len()).collect();
        // Output that grows too long loses its beginning; what is missing then is asked for again.
        while !open.is_empty() {
            let names: Vec<String> = open.iter().map(|index| quote(&paths[*index])).collect();
            let command = format!("head -n {lines} {} /dev/null 2>/dev/null | cut -c1-400", names.join(" "));
            let output = self.bash(&command, None)?;
            for (index, part) in split_heads(&output.text, paths) {
                heads[index] = Some(part);
            }
            if !output.cut {
                break;
            }
            let left: Vec<usize> = open.iter().copied().filter(|index| heads[*index].is_none()).collect();
            if left.len() == open.len() {
                break;
            }
            open = left;
        }
        Ok(heads)
    }

    /// The files below a folder, as git or the file system knows them.
    pub(in crate::guide) fn files(&mut self, folder: &str) -> Ask<Listing<String>> {
        if self.has("bash") {
            let command = format!("{} | sort -u | {}", shell::list_files(folder), first_and_total(MOST_FILES));
            return Ok(lines_and_total(&self.bash(&command, None)?));
        }
        if self.has("find") {
            let text = self.done(
                "find",
                json!({"pattern": "*", "path": if folder.is_empty() { "." } else { folder }}),
                || "finding files".to_owned(),
            )?;
            let files = plain_lines(&text).map(str::to_owned).collect();
            return Ok(Listing::up_to(FIND_LIMIT, files)
                .filter_map(|line| (!line.ends_with('/')).then(|| under(folder, &line))));
        }
        Err(Stop::Trouble(Trouble::NoTool { need: "to find files", any_of: "find or bash" }))
    }

    /// Files whose name fits a pattern with `*` and `?`, in any folder.
    pub(in crate::guide) fn find(&mut self, pattern: &str) -> Ask<Listing<String>> {
        if self.has("find") {
            let text = self.done("find", json!({"pattern": pattern}), || format!("finding {pattern}"))?;
            return Ok(Listing::up_to(FIND_LIMIT, plain_lines(&text).map(str::to_owned).collect()));
        }
        if !self.has("bash") {
            return Err(Stop::Trouble(Trouble::NoTool { need: "to find files", any_of: "find or bash" }));
        }
        let command = format!(
            "{} | sort -u | grep -iE {} | {}",
            shell::list_files("."),
            quote(&name_expression(pattern)),
            first_and_total(MOST_FOUND)
        );
        Ok(lines_and_total(&self.bash(&command, None)?))
    }

    /// Lines with a text, in the files below a folder or in one file.
    pub(in crate::guide) fn search(&mut self, folder: &str, query: &Query) -> Ask<Listing<Found>> {
        if self.has("grep") {
            let pattern = query.expression();
            let mut arguments = json!({"pattern": pattern, "limit": query.most});
            if query.kind == QueryKind::Text {
                arguments["literal"] = true.into();
            }
            if query.ignore_case {
                arguments["ignoreCase"] = true.into();
            }
            if !folder.is_empty() && folder != "." {
                arguments["path"] = folder.into();
            }
            let text = self.done("grep", arguments, || format!("searching for {}", brief(&query.text)))?;
            return Ok(Listing::up_to(query.most, text.lines().filter_map(|line| found(line, folder)).collect()));
        }
        if !self.has("bash") {
            return Err(Stop::Trouble(Trouble::NoTool { need: "to search", any_of: "grep or bash" }));
        }
        let command = format!(
            "{} | cut -c1-300 | {}",
            shell::grep(folder, &format!("-nI {}", query.flags()), &query.text),
            first_and_total(query.most)
        );
        Ok(lines_and_total(&self.bash(&command, None)?).filter_map(|line| found(&line, "")))
    }

    /// Files with matching lines, and how many each has.
    pub(in crate::guide) fn count_matches(&mut self, folder: &str, query: &Query) -> Ask<Listing<(String, usize)>> {
        if !self.has("bash") {
            let found = self.search(folder, &Query { most: 1000, ..query.clone() })?;
            let is_all = found.total == Amount::Exactly(found.items.len());
            let mut counts: Vec<(String, usize)> = Vec::new();
            for line in found.items {
                match counts.last_mut() {
                    Some((file, count)) if *file == line.file => *count += 1,
                    _ => counts.push((line.file, 1)),
                }
            }
            return Ok(Listing::up_to(if is_all { usize::MAX } else { 0 }, counts));
        }
        let command = format!(
            "{} | grep -v ':0$' | {}",
            shell::grep(folder, &format!("-cI {}", query.flags()), &query.text),
            first_and_total(400)
        );
        Ok(lines_and_total(&self.bash(&command, None)?).filter_map(|line| {
            let (file, count) = line.rsplit_once(':')?;
            Some((file.trim_start_matches("./").to_owned(), count.parse().ok()?))
        }))
    }

    /// Replaces texts in a file, each of which occurs once.
    pub(in crate::guide) fn edit(&mut self, path: &str, edits: &[(String, String)]) -> Ask<String> {
        let edits: Vec<_> = edits.iter().map(|(old, new)| json!({"oldText": old, "newText": new})).collect();
        if !self.has("edit") {
            return Err(Stop::Trouble(Trouble::NoTool { need: "to change a file", any_of: "edit or write" }));
        }
        self.change("edit", json!({"path": path, "edits": edits}), || format!("changing {path}"))
    }

    /// Writes a file.
    pub(in crate::guide) fn write(&mut self, path: &str, content: &str) -> Ask<String> {
        if !self.has("write") {
            return Err(Stop::Trouble(Trouble::NoTool { need: "to write a file", any_of: "write" }));
        }
        self.change("write", json!({"path": path, "content": content}), || format!("writing {path}"))
    }

    fn done(&mut self, tool: &str, arguments: Value, doing: impl FnOnce() -> String) -> Ask<String> {
        text_of(self.call(tool, arguments, Effect::Looks)?, doing)
    }

    fn change(&mut self, tool: &str, arguments: Value, doing: impl FnOnce() -> String) -> Ask<String> {
        text_of(self.call(tool, arguments, Effect::Changes)?, doing)
    }
}

fn text_of(outcome: Outcome, doing: impl FnOnce() -> String) -> Ask<String> {
    match outcome {
        Outcome::Done(text) => Ok(text),
        Outcome::Failed(message) => Err(Stop::Trouble(Trouble::Failed { doing: doing(), message })),
        Outcome::Lost => Err(Stop::Trouble(Trouble::Lost { doing: doing() })),
    }
}

/// What a search looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::guide) struct Query {
    pub(in crate::guide) text: String,
    pub(in crate::guide) kind: QueryKind,
    pub(in crate::guide) ignore_case: bool,
    pub(in crate::guide) most: usize,
}

/// How the text of a query is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::guide) enum QueryKind {
    /// As it is.
    Text,
    /// As a whole word.
    Word,
    /// As an extended regular expression.
    Expression,
}

impl Query {
    pub(in crate::guide) fn new(text: impl Into<String>, kind: QueryKind) -> Self {
        Self { text: text.into(), kind, ignore_case: false, most: 200 }
    }

    fn expression(&self) -> String {
        match self.kind {
            QueryKind::Text | QueryKind::Expression => self.text.clone(),
            QueryKind::Word => format!("\\b{}\\b", escape_expression(&self.text)),
        }
    }

    pub(super) fn flags(&self) -> &'static str {
        match (self.kind, self.ignore_case) {
            (QueryKind::Text, false) => "-F",
            (QueryKind::Text, true) => "-Fi",
            (QueryKind::Word, false) => "-Fw",
            (QueryKind::Word, true) => "-Fwi",
            (QueryKind::Expression, false) => "-E",
            (QueryKind::Expression, true) => "-Ei",
        }
    }
}

/// A text as a regular expression that matches just it.
pub(in crate::guide) fn escape_expression(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let special =
                matches!(c, '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' | '\\');
            special.then_some('\\').into_iter().chain([c])
        })
        .collect()
}

/// A file pattern as an expression for paths.
fn name_expression(pattern: &str) -> String {
    let body: String = pattern
        .trim_start_matches("./")
        .chars()
        .map(|c| match c {
            '*' => "[^/]*".to_owned(),
            '?' => "[^/]".to_owned(),
            other => escape_expression(&other.to_string()),
        })
        .collect();
    format!("(^|/){}$", body.replace("[^/]*[^/]*/", "(.*/)?"))
}

fn plain_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('[') && !line.starts_with("No files found"))
}

fn under(folder: &str, path: &str) -> String {
    let folder = folder.trim_start_matches("./").trim_end_matches('/');
    if folder.is_empty() || folder == "." { path.to_owned() } else { format!("{folder}/{path}") }
}

/// `file:line:text`, with or without a blank before the text.
fn found(line: &str, folder: &str) -> Option<Found> {
    let mut from = 0;
    loop {
        let at = from + line.get(from..)?.find(':')?;
        let rest = line.get(at + 1..)?;
        if let Some((number, text)) = rest.split_once(':')
            && let Ok(number) = number.parse()
        {
            let file = line.get(..at)?.trim_start_matches("./");
            // A search in one file names only its last part.
            let file = if has_extension(folder) { folder.to_owned() } else { under(folder, file) };
            return Some(Found { file, line: number, text: text.strip_prefix(' ').unwrap_or(text).to_owned() });
        }
        from = at + 1;
    }
}

/// Takes the output of `head` on several files apart.
fn split_heads(output: &str, paths: &[String]) -> Vec<(usize, String)> {
    let mut parts: Vec<(usize, String)> = Vec::new();
    let mut current: Option<usize> = None;
    for line in output.lines() {
        let name = line.strip_prefix("==> ").and_then(|rest| rest.strip_suffix(" <=="));
        if let Some(name) = name {
            let index = paths.iter().position(|path| path == name);
            if index.is_some() || name == "/dev/null" {
                current = index;
                if let Some(index) = index {
                    parts.push((index, String::new()));
                }
                continue;
            }
        }
        if let (Some(_), Some((_, part))) = (current, parts.last_mut()) {
            part.push_str(line);
            part.push('\n');
        }
    }
    for (_, part) in &mut parts {
        // `head` sets the next heading off by a blank line.
        while part.ends_with("\n\n") {
            part.pop();
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_files_are_told_apart() {
        let paths = ["a/x.md".to_owned(), "b.md".to_owned(), "none".to_owned()];
        let output = "==> a/x.md <==\none\n==> not a file <==\n\n==> b.md <==\n\n==> /dev/null <==\n";
        let parts = split_heads(output, &paths);
        assert_eq!(
            parts,
            [(0, "one\n==> not a file <==\n".to_owned()), (1, "\n".to_owned())]
                .map(|(i, t)| (i, if i == 1 { "\n".into() } else { t }))
        );
    }

    #[test]
    fn lines_that_a_search_found_are_taken_apart() {
        let line = found("./src/a.rs:12:let x: u8 = 1;", "").unwrap();
        assert_eq!(line, Found { file: "src/a.rs".into(), line: 12, text: "let x: u8 = 1;".into() });
        let line = found("a:b.rs:3: text", "src").unwrap();
        assert_eq!((line.file.as_str(), line.line), ("src/a:b.rs", 3));
        assert_eq!(found("no match here", ""), None);
        assert_eq!(found("Binary file x matches", ""), None);
    }

    #[test]
    fn file_patterns_become_expressions() {
        assert_eq!(name_expression("*.md"), "(^|/)[^/]*\\.md$");
        assert_eq!(name_expression("Cargo.toml"), "(^|/)Cargo\\.toml$");
    }
}
