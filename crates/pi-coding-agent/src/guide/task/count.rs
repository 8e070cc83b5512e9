//! Counting.

use super::text::{amount, code, list, plural};
use crate::guide::{
    desk::{Amount, Ask, Desk, LinesOfKind, Query, QueryKind, Settle},
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
                let text = desk.read(file)?;
                let words = text.text.split_whitespace().count();
                let words = if text.complete { Amount::Exactly(words) } else { Amount::AtLeast(words) };
                Ok(format!("{} has {}.", code(file), amount(words, "word")))
            }
            None => Ok("In which file? Tell me its name.".to_owned()),
        },
        Countable::Files { extension } => {
            let fitting = desk.count_files(scope.unwrap_or("."), extension.as_deref())?;
            let noun = match extension {
                Some(extension) => format!("{} file", code(format!(".{extension}"))),
                None => "file".to_owned(),
            };
            let verb = if fitting.number() == 1 { "is" } else { "are" };
            Ok(format!("There {verb} {}{place}, without what git ignores.", amount(fitting, &noun)))
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
            let (times, files) = desk.occurrences(scope.unwrap_or("."), text)?;
            let times_said = amount(times, "time");
            Ok(match times {
                Amount::Exactly(0) => format!("{} does not occur{place}.", code(text)),
                _ if scope.is_some_and(has_extension) => format!("{} occurs {times_said}{place}.", code(text)),
                _ => format!("{} occurs {times_said}{place}, in {}.", code(text), amount(files, "file")),
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
                let text = desk.read_start(&path)?;
                let lines = desk.lines_of(&path, &text)?;
                return Ok(format!("{} has {}.", code(&path), amount(lines, "line")));
            }
            super::explain::Located::Answer(answer) => return Ok(answer),
            super::explain::Located::Folder(_) => {}
        }
    }
    let folder = scope.unwrap_or(".");
    let (kinds, is_all) = match desk.lines_by_kind(folder)? {
        Some(kinds) => (kinds, true),
        None => {
            let counts = desk.count_matches(folder, &Query::new("", QueryKind::Text))?;
            let is_all = matches!(counts.total, Amount::Exactly(_));
            let kinds = counts.items.into_iter().map(|(example, lines)| LinesOfKind { example, files: 1, lines });
            (kinds.collect(), is_all)
        }
    };
    let mut by_language: Vec<(&'static str, usize, usize)> = Vec::new();
    for kind in &kinds {
        let name = Language::of_path(&kind.example).map_or("other text", Language::name);
        match by_language.iter_mut().find(|(known, _, _)| *known == name) {
            Some((_, files, lines)) => {
                *files += kind.files;
                *lines += kind.lines;
            }
            None => by_language.push((name, kind.files, kind.lines)),
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
    let at_least = if is_all { "" } else { "At least " };
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
    let count = if text.complete { Amount::Exactly(count) } else { Amount::AtLeast(count) };
    Ok(format!("{} has {}.", code(file), amount(count, "function")))
}

fn tests(desk: &mut Desk<'_>, scope: Option<&str>) -> Ask<String> {
    const MARKS: &str =
        "^[[:space:]]*(#\\[([a-z_]+::)*test(\\(|\\])|(async )?def test_|func Test[A-Z_]|(it|test)\\(|@Test)";
    let query = Query { most: 1000, ..Query::new(MARKS, QueryKind::Expression) };
    let none = (Amount::Exactly(0), Amount::Exactly(0));
    let (total, files) = desk.matching_lines(scope.unwrap_or("."), &query).settle()?.unwrap_or(none);
    let place = scope.map(|scope| format!(" in {}", code(scope))).unwrap_or_default();
    Ok(match total {
        Amount::Exactly(0) => format!("I see no tests{place}: no line marks one in a way that I know."),
        _ => format!(
            "I count {}{place} by their marks (such as `#[test]`, `def test_`, `func Test`), in {}.",
            amount(total, "test"),
            amount(files, "file")
        ),
    })
}
