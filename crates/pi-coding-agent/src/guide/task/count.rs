//! Counting.

use super::text::{code, list, plural};
use crate::guide::{
    desk::{Ask, Desk, Query, QueryKind, Settle, line_count, quote},
    intent::{Countable, PartKind},
    language::{Language, items_of},
    utterance::has_extension,
};

pub(super) fn count(desk: &mut Desk<'_>, what: &Countable, scope: Option<&str>) -> Ask<String> {
    desk.remark("Counting.");
    let place = scope.map(|scope| format!(" in {}", code(scope))).unwrap_or_default();
    match what {
        Countable::Lines => lines(desk, scope),
        Countable::Words => match scope {
            Some(file) => {
                let text = desk.read(file)?.text;
                Ok(format!("{} has {}.", code(file), plural(text.split_whitespace().count(), "word")))
            }
            None => Ok("In which file? Tell me its name.".to_owned()),
        },
        Countable::Files { extension } => {
            let files = desk.files(scope.unwrap_or("."))?;
            let fitting = files
                .iter()
                .filter(|file| extension.as_ref().is_none_or(|extension| file.ends_with(&format!(".{extension}"))))
                .count();
            let kind =
                extension.as_ref().map(|extension| format!("{} ", code(format!(".{extension}")))).unwrap_or_default();
            let verb = if fitting == 1 { "is" } else { "are" };
            let at_least = if files.len() >= 1900 { "at least " } else { "" };
            Ok(format!(
                "There {verb} {at_least}{fitting} {kind}file{}{place}, without what git ignores.",
                if fitting == 1 { "" } else { "s" }
            ))
        }
        Countable::Functions => functions(desk, scope),
        Countable::Tests => tests(desk, scope),
        Countable::Members(kind) => members(desk, *kind),
        Countable::Commits => {
            let output = desk.bash("git rev-list --count HEAD", None)?;
            Ok(match output.text.trim().parse::<usize>() {
                Ok(count) => format!("There are {} on the current branch.", plural(count, "commit")),
                Err(_) => format!("Git does not say: {}", super::text::shorten(output.text.trim(), 200)),
            })
        }
        Countable::Dependencies => super::project::dependencies(desk, scope),
        Countable::Occurrences(text) => {
            if let Some(file) = scope.filter(|scope| has_extension(scope)) {
                let content = desk.read(file)?.text;
                return Ok(format!(
                    "{} occurs {} in {}.",
                    code(text),
                    plural(content.matches(text.as_str()).count(), "time"),
                    code(file)
                ));
            }
            let query = Query { most: 1000, ..Query::new(text.as_str(), QueryKind::Text) };
            let found = desk.search(scope.unwrap_or("."), &query)?;
            let total: usize = found.iter().map(|line| line.text.matches(text.as_str()).count().max(1)).sum();
            let mut files: Vec<&str> = found.iter().map(|line| line.file.as_str()).collect();
            files.dedup();
            let at_least = if found.len() >= 1000 { "at least " } else { "" };
            Ok(match total {
                0 => format!("{} does not occur{place}.", code(text)),
                _ => format!(
                    "{} occurs {at_least}{}{place}, in {}.",
                    code(text),
                    plural(total, "time"),
                    plural(files.len(), "file")
                ),
            })
        }
    }
}

fn members(desk: &mut Desk<'_>, kind: PartKind) -> Ask<String> {
    super::parts::members(desk, kind, None)
}

fn lines(desk: &mut Desk<'_>, scope: Option<&str>) -> Ask<String> {
    if let Some(file) = scope.filter(|scope| has_extension(scope) || !scope.contains('/')) {
        let located = super::explain::locate(desk, file)?;
        match located {
            super::explain::Located::File(path) => {
                if desk.has("bash") {
                    let output = desk.bash(&format!("wc -l < {}", quote(&path)), None)?;
                    if let Ok(newlines) = output.text.trim().parse::<usize>() {
                        return Ok(format!("{} has {}.", code(&path), plural(newlines, "line")));
                    }
                }
                let text = desk.read(&path)?;
                return Ok(format!(
                    "{} has {}.",
                    code(&path),
                    plural(text.lines().max(line_count(&text.text)), "line")
                ));
            }
            super::explain::Located::Answer(answer) => return Ok(answer),
            super::explain::Located::Folder(_) => {}
        }
    }
    let folder = scope.unwrap_or(".");
    let every_line = Query { most: 1000, ..Query::new("", QueryKind::Text) };
    let counts = desk.count_matches(folder, &every_line)?;
    let mut by_language: Vec<(&'static str, usize, usize)> = Vec::new();
    for (file, count) in counts.iter().filter(|(file, _)| file != "/dev/null") {
        let name = Language::of_path(file).map_or("other text", Language::name);
        match by_language.iter_mut().find(|(known, _, _)| *known == name) {
            Some((_, files, lines)) => {
                *files += 1;
                *lines += count;
            }
            None => by_language.push((name, 1, *count)),
        }
    }
    by_language.sort_by_key(|(_, _, lines)| std::cmp::Reverse(*lines));
    let total: usize = by_language.iter().map(|(_, _, lines)| lines).sum();
    let files: usize = by_language.iter().map(|(_, files, _)| files).sum();
    let items: Vec<String> = by_language
        .iter()
        .map(|(name, files, lines)| format!("{name}: {} in {}", plural(*lines, "line"), plural(*files, "file")))
        .collect();
    let place = scope.map(|scope| format!(" in {}", code(scope))).unwrap_or_default();
    let at_least = if counts.len() >= 400 { "At least " } else { "" };
    Ok(format!("{at_least}{} in {}{place}:\n\n{}", plural(total, "line"), plural(files, "file"), list(&items, 20)))
}

fn functions(desk: &mut Desk<'_>, scope: Option<&str>) -> Ask<String> {
    let Some(file) = scope.filter(|scope| has_extension(scope)) else {
        return Ok("In which file? I count the functions of one file at a time.".to_owned());
    };
    let text = desk.read(file)?;
    let Some(language) = Language::of_path(file) else {
        return Ok(format!("I do not know the language of {}.", code(file)));
    };
    let items = items_of(language, &text.text);
    let count = items.iter().filter(|item| matches!(item.kind, "function" | "method")).count();
    Ok(format!("{} has {}.", code(file), plural(count, "function")))
}

fn tests(desk: &mut Desk<'_>, scope: Option<&str>) -> Ask<String> {
    const MARKS: &str =
        "^[[:space:]]*(#\\[([a-z_]+::)*test(\\(|\\])|(async )?def test_|func Test[A-Z_]|(it|test)\\(|@Test)";
    let query = Query { most: 1000, ..Query::new(MARKS, QueryKind::Expression) };
    let counts = desk.count_matches(scope.unwrap_or("."), &query).settle()?.unwrap_or_default();
    let total: usize = counts.iter().map(|(_, count)| count).sum();
    let place = scope.map(|scope| format!(" in {}", code(scope))).unwrap_or_default();
    Ok(match total {
        0 => format!("I see no tests{place}: no line marks one in a way that I know."),
        _ => format!(
            "I count {}{place} by their marks (such as `#[test]`, `def test_`, `func Test`), in {}.",
            plural(total, "test"),
            plural(counts.len(), "file")
        ),
    })
}
