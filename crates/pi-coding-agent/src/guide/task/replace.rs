//! Replacing a text in one file or in many.

use super::text::{amount, code, enumerate, list, list_of, plural};
use crate::guide::{
    desk::{Ask, Desk, Listing, Query, QueryKind, Settle, Stop, Trouble},
    intent::{Scope, WholeWords},
};

/// Files that one request may change.
const MOST_FILES: usize = 24;

/// Replaces a text and says how often.
pub(super) fn replace(desk: &mut Desk<'_>, from: &str, to: &str, scope: &Scope, words: WholeWords) -> Ask<String> {
    if from == to {
        return Ok("Both texts are the same, so there is nothing to replace.".to_owned());
    }
    match scope {
        Scope::In(path) => {
            desk.remark(format!("Reading {}.", code(path)));
            match super::explain::locate(desk, path)? {
                super::explain::Located::File(path) => in_file(desk, &path, from, to, words),
                super::explain::Located::Folder(folder) => in_folder(desk, &folder, from, to, words),
                super::explain::Located::Answer(answer) => Ok(answer),
            }
        }
        Scope::Everywhere => in_folder(desk, ".", from, to, words),
        Scope::Unsaid => {
            desk.remark(format!("Searching for {}.", code(from)));
            let files = files_with(desk, ".", from, words)?;
            match files.items.as_slice() {
                [] => Ok(format!("{} does not occur in the files here.", code(from))),
                [only] => in_file(desk, &only.clone(), from, to, words),
                several => {
                    let items: Vec<String> = several.iter().map(code).collect();
                    Ok(format!(
                        "{} occurs in {}. In which one? Or say \"everywhere\".\n\n{}",
                        code(from),
                        amount(files.total, "file"),
                        list_of(&items, 30, files.total)
                    ))
                }
            }
        }
    }
}

fn files_with(desk: &mut Desk<'_>, folder: &str, text: &str, words: WholeWords) -> Ask<Listing<String>> {
    // A text of several lines is looked for by its longest one.
    let line = text.lines().max_by_key(|line| line.len()).unwrap_or(text);
    let kind = if words == WholeWords::Only { QueryKind::Word } else { QueryKind::Text };
    let counts = desk.count_matches(folder, &Query::new(line, kind))?;
    Ok(counts.filter_map(|(file, _)| Some(file)))
}

fn in_folder(desk: &mut Desk<'_>, folder: &str, from: &str, to: &str, words: WholeWords) -> Ask<String> {
    desk.remark(format!("Searching for {}.", code(from)));
    let files = files_with(desk, folder, from, words)?;
    if files.items.is_empty() {
        return Ok(format!("{} does not occur in the files here.", code(from)));
    }
    if files.total.number() > MOST_FILES {
        let items: Vec<String> = files.items.iter().map(code).collect();
        return Ok(format!(
            "{} occurs in {}; I change at most {MOST_FILES} at once. Name a folder or a file.\n\n{}",
            code(from),
            amount(files.total, "file"),
            list_of(&items, 20, files.total)
        ));
    }
    let files = files.items;
    let mut texts = Vec::new();
    let mut waits = false;
    for file in &files {
        match desk.read(file).settle() {
            Ok(text) => texts.push(text),
            Err(_) => waits = true,
        }
    }
    if waits {
        return Err(Stop::Wait);
    }
    let mut outcomes = Vec::new();
    for (file, text) in files.iter().zip(texts) {
        match text {
            Ok(text) if text.complete => match change(desk, file, &text.text, from, to, words).settle() {
                Ok(outcome) => outcomes.push((file, outcome)),
                Err(_) => waits = true,
            },
            Ok(_) => outcomes.push((file, Err(too_long()))),
            Err(trouble) => outcomes.push((file, Err(trouble))),
        }
    }
    if waits {
        return Err(Stop::Wait);
    }
    let changed: Vec<String> = outcomes
        .iter()
        .filter_map(|(file, outcome)| Some((file, *outcome.as_ref().ok()?)))
        .filter(|(_, count)| *count > 0)
        .map(|(file, count)| format!("{}: {}", code(file), plural(count, "time")))
        .collect();
    let total: usize = outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().ok()).sum();
    let failed: Vec<String> = outcomes
        .iter()
        .filter_map(|(file, outcome)| {
            Some(format!("{}: {}", code(file), super::explain_trouble(outcome.as_ref().err()?)))
        })
        .collect();
    let mut answer = if changed.is_empty() {
        "I replaced nothing.".to_owned()
    } else {
        format!(
            "I replaced {} by {} {} in {}:\n\n{}",
            code(from),
            shown(to),
            plural(total, "time"),
            plural(changed.len(), "file"),
            list(&changed, 40)
        )
    };
    if !failed.is_empty() {
        answer.push_str(&format!("\n\nThis did not work:\n\n{}", list(&failed, 20)));
    }
    Ok(answer)
}

fn shown(to: &str) -> String {
    if to.is_empty() { "nothing".to_owned() } else { code(to) }
}

fn too_long() -> Trouble {
    Trouble::Failed { doing: "reading the whole file".to_owned(), message: "it is too long for me".to_owned() }
}

fn in_file(desk: &mut Desk<'_>, path: &str, from: &str, to: &str, words: WholeWords) -> Ask<String> {
    let text = desk.read(path)?;
    if !text.complete {
        return Err(Stop::Trouble(too_long()));
    }
    let places = occurrences(&text.text, from, words);
    if places.is_empty() {
        return Ok(nothing_found(path, &text.text, from));
    }
    let count = change(desk, path, &text.text, from, to, words)?;
    let lines: Vec<String> = {
        let mut lines: Vec<usize> =
            places.iter().map(|at| text.text.get(..*at).unwrap_or_default().matches('\n').count() + 1).collect();
        lines.dedup();
        lines.iter().take(12).map(usize::to_string).collect()
    };
    let on = if lines.len() == 1 { "line" } else { "lines" };
    let done = if to.is_empty() {
        format!("I removed {}", code(from))
    } else {
        format!("I replaced {} by {}", code(from), code(to))
    };
    Ok(format!("{done} in {}: {} ({on} {}).", code(desk.shown(path)), plural(count, "time"), enumerate(&lines)))
}

fn nothing_found(path: &str, text: &str, from: &str) -> String {
    let lower = from.to_lowercase();
    let similar: Vec<String> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.to_lowercase().contains(&lower))
        .map(|(index, line)| format!("line {}: {}", index + 1, code(super::text::shorten(line.trim(), 120))))
        .collect();
    let hint = if similar.is_empty() {
        String::new()
    } else {
        format!(" With other upper and lower case it does:\n\n{}", list(&similar, 10))
    };
    format!("{} does not occur in {}, so I changed nothing.{hint}", code(from), code(path))
}

/// Where a text occurs, without overlaps.
fn occurrences(text: &str, from: &str, words: WholeWords) -> Vec<usize> {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(from)
        .map(|(at, _)| at)
        .filter(|at| {
            let before = text.get(..*at).and_then(|text| text.chars().next_back());
            let after = text.get(at + from.len()..).and_then(|text| text.chars().next());
            words == WholeWords::Anywhere || !is_word(before) && !is_word(after)
        })
        .collect()
}

/// Makes the change with the tools that are there, and says how many places it touched.
fn change(desk: &mut Desk<'_>, path: &str, text: &str, from: &str, to: &str, words: WholeWords) -> Ask<usize> {
    let places = occurrences(text, from, words);
    if places.is_empty() {
        return Ok(0);
    }
    if desk.has("edit") {
        desk.edit(path, &edits(text, from, to, &places))?;
    } else {
        desk.write(path, &replaced(text, from, to, &places, 0..text.len()))?;
    }
    Ok(places.len())
}

fn replaced(text: &str, from: &str, to: &str, places: &[usize], range: std::ops::Range<usize>) -> String {
    let mut new = String::new();
    let mut at = range.start;
    for place in places.iter().copied().filter(|place| range.contains(place)) {
        new.push_str(text.get(at..place).unwrap_or_default());
        new.push_str(to);
        at = place + from.len();
    }
    new.push_str(text.get(at..range.end).unwrap_or_default());
    new
}

/// Edits whose old texts occur once each: the lines that change where each of them is unlike all others, else one
/// stretch from the first place to the last, which is unlike any other because it holds every place.
fn edits(text: &str, from: &str, to: &str, places: &[usize]) -> Vec<(String, String)> {
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    for place in places {
        let start = text.get(..*place).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        let end_from = place + from.len();
        let end = text.get(end_from..).and_then(|rest| rest.find('\n')).map_or(text.len(), |at| end_from + at);
        match ranges.last_mut() {
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ => ranges.push(start..end),
        }
    }
    let unique = ranges.iter().all(|range| {
        let line = text.get(range.clone()).unwrap_or_default();
        !line.trim().is_empty()
            && text.matches(line).count() == 1
            && !text.get(range.end..).unwrap_or_default().contains(line)
    });
    if !unique && let (Some(first), Some(last)) = (ranges.first(), ranges.last()) {
        let whole = first.start..last.end;
        ranges.clear();
        ranges.push(whole);
    }
    ranges
        .into_iter()
        .map(|range| (text.get(range.clone()).unwrap_or_default().to_owned(), replaced(text, from, to, places, range)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(text: &str, from: &str, to: &str, words: WholeWords) -> String {
        let mut result = text.to_owned();
        for (old, new) in edits(text, from, to, &occurrences(text, from, words)) {
            assert_eq!(text.matches(&old).count(), 1, "{old:?} must occur once");
            result = result.replacen(&old, &new, 1);
        }
        result
    }

    #[test]
    fn every_place_is_changed_by_edits_that_each_fit_one_place() {
        for text in
            ["a foo b\nfoo c\n", "foo\nfoo\nfoo\n", "foo foo", "x\nfoo();\ny\nfoo();\nz\n", "foo", "xfoo\nfoo\n"]
        {
            assert_eq!(apply(text, "foo", "bar", WholeWords::Anywhere), text.replace("foo", "bar"), "{text:?}");
        }
        assert_eq!(apply("foo foobar\n", "foo", "x", WholeWords::Only), "x foobar\n");
        assert_eq!(apply("a\nb\nc\n", "a\nb", "", WholeWords::Anywhere), "\nc\n");
    }
}
