//! What a file, a place in a file or a name is.

mod data;
mod manifest;
mod prose;
mod source;

pub(super) use source::body;

use super::{
    find, overview, parts,
    text::{amount, block, block_in, code, enumerate, list, plural},
};
use crate::guide::{
    desk::{Amount, Ask, Desk, FileText, Settle, Stop, Trouble, line_count},
    intent::PIPED,
    language::{Language, definition_of},
    utterance::{has_extension, looks_like_path},
};

/// Where something that was named is.
pub(super) enum Located {
    File(String),
    Folder(String),
    /// It is not clear, or not there; this is what to say.
    Answer(String),
}

/// Explains what was named: a file, a folder, a part of the project or a name in its code.
pub(super) fn named(desk: &mut Desk<'_>, name: &str) -> Ask<String> {
    named_or(desk, name, "")
}

/// The same; when nothing of that name is found, `otherwise` is said, if it says anything.
pub(super) fn named_or(desk: &mut Desk<'_>, name: &str, otherwise: &str) -> Ask<String> {
    if let Some(attachment) =
        desk.conversation.attachments.iter().find(|file| file.name == name || file.name.ends_with(&format!("/{name}")))
    {
        return Ok(explain_attachment(&attachment.name, &attachment.content));
    }
    desk.remark(format!("Looking at {}.", code(name)));
    if matches!(name, "." | "./") {
        return overview::project(desk, None);
    }
    if name.ends_with('/') {
        return overview::folder(desk, Some(name));
    }
    if looks_like_path(name) {
        return match locate(desk, name)? {
            Located::File(path) => file(desk, &path),
            Located::Folder(path) => overview::folder(desk, Some(&path)),
            Located::Answer(answer) => Ok(answer),
        };
    }
    // A name: of a part of the project, of something in the code, of a folder or of a file without its extension.
    let found = parts::find(desk, ".").settle()?;
    if let Ok(found) = &found
        && let Some(part) = found.named(name)
    {
        return parts::describe(desk, &part.clone(), found.noun);
    }
    let definitions = find::definitions(desk, name)?;
    if let Some((place, _)) = definitions.first() {
        let (path, line) = (place.file.clone(), place.line);
        let more = if definitions.len() > 1 {
            let others: Vec<String> = definitions
                .iter()
                .skip(1)
                .take(8)
                .map(|(other, kind)| format!("{} ({kind})", code(format!("{}:{}", other.file, other.line))))
                .collect();
            format!("\n\nThe name is also defined in {}.", enumerate(&others))
        } else {
            String::new()
        };
        return Ok(self::place(desk, &path, line)? + &more);
    }
    let files = desk.find(&format!("{name}*")).settle()?.unwrap_or_default().items;
    let fitting: Vec<&String> = files
        .iter()
        .filter(|file| {
            file.rsplit('/')
                .next()
                .is_some_and(|last| last == name || last.rsplit_once('.').is_some_and(|(stem, _)| stem == name))
        })
        .collect();
    match fitting.as_slice() {
        [only] => file(desk, &(*only).clone()),
        [] if !otherwise.is_empty() => Ok(otherwise.to_owned()),
        [] => Ok(format!(
            "I found nothing called {}: no file, no folder, no part of the project and no definition.",
            code(name)
        )),
        several => Ok(format!(
            "Several files have that name: {}. Which one?",
            enumerate(&several.iter().take(10).map(code).collect::<Vec<_>>())
        )),
    }
}

/// Finds the file that a path means: where it says, else the one file of that name anywhere.
pub(super) fn locate(desk: &mut Desk<'_>, path: &str) -> Ask<Located> {
    let failure = match desk.read_start(path).settle()? {
        Ok(_) => return Ok(Located::File(path.to_owned())),
        Err(Trouble::Failed { message, .. }) => message,
        Err(other) => return Err(Stop::Trouble(other)),
    };
    if let Ok(entries) = desk.list(path).settle()?
        && !(entries.len() == 1 && entries[0].name == path)
    {
        return Ok(Located::Folder(path.to_owned()));
    }
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    let pattern = if has_extension(name) { name.to_owned() } else { format!("{name}*") };
    let found = desk.find(&pattern).settle()?.unwrap_or_default().items;
    let suffix = path.trim_start_matches("./").trim_start_matches('/');
    let ends_like: Vec<&String> = found.iter().filter(|file| file.ends_with(suffix) || !path.contains('/')).collect();
    Ok(match ends_like.as_slice() {
        [only] => Located::File((*only).clone()),
        [] => Located::Answer(format!("I cannot read {}: {}", code(path), brief_failure(&failure))),
        several => {
            let names: Vec<String> = several.iter().map(code).collect();
            Located::Answer(format!(
                "There is no {} right here, but {} of that name:\n\n{}",
                code(path),
                plural(several.len(), "file"),
                list(&names, 20)
            ))
        }
    })
}

fn brief_failure(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("the tool did not say why");
    super::text::sentence(&super::text::shorten(line, 200))
}

/// Explains a file.
pub(super) fn file(desk: &mut Desk<'_>, path: &str) -> Ask<String> {
    let text = desk.read(path)?;
    if let Some(line) = text.too_long
        && text.text.trim().is_empty()
    {
        return super::read::too_long_line(desk, path, line);
    }
    let lines = desk.lines_of(path, &text)?;
    Ok(explain_text(desk.shown(path), &text, lines))
}

/// Explains the files that came along with the request.
pub(super) fn attached(desk: &Desk<'_>) -> String {
    let files = &desk.conversation.attachments;
    files.iter().map(|file| explain_attachment(desk.shown(&file.name), &file.content)).collect::<Vec<_>>().join("\n\n")
}

fn explain_attachment(name: &str, text: &str) -> String {
    let file = FileText { text: text.to_owned(), complete: true, ..FileText::default() };
    explain_text(name, &file, Amount::Exactly(line_count(text)))
}

/// Explains a text by the kind of file it is.
fn explain_text(path: &str, file: &FileText, lines: Amount) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let size = match &file.encoding {
        Some(encoding) => format!("{} in {encoding}", amount(lines, "line")),
        None => amount(lines, "line"),
    };
    if is_binary(&file.text) {
        return format!("{} is no text file, so I cannot explain it.", code(path));
    }
    if file.text.trim().is_empty() {
        return format!("{} is empty.", code(path));
    }
    let language = Language::of_path(path).or_else(|| by_first_line(&file.text));
    let title = match (overview::file_purpose(name), language) {
        (Some(purpose), _) => format!("{} ({size}) is {purpose}.", code(path)),
        (None, Some(language)) => {
            format!("{} is {} {} file of {size}.", code(path), super::text::article(language.name()), language.name())
        }
        (None, None) if path == PIPED => format!("The piped text has {size}."),
        (None, None) => format!("{} is a text file of {size}.", code(path)),
    };
    let body = match (name, language) {
        ("Cargo.toml", _) => manifest::cargo(&file.text),
        ("package.json", _) => manifest::package_json(&file.text),
        ("pyproject.toml", _) => manifest::pyproject(&file.text),
        ("go.mod", _) => manifest::go_mod(&file.text),
        (name, _) if name.ends_with(".lock") || name == "package-lock.json" => data::lock_file(&file.text),
        (name, _) if name.ends_with(".csv") || name.ends_with(".tsv") => data::table(name, &file.text),
        (_, Some(Language::Toml)) => data::toml(&file.text),
        (_, Some(Language::Json)) => data::json(&file.text),
        (_, Some(Language::Yaml)) => data::yaml(&file.text),
        (_, Some(Language::Markdown)) => prose::markdown(&file.text),
        (_, Some(Language::Docker)) => data::dockerfile(&file.text),
        (_, Some(language)) => source::explain(language, &file.text),
        (_, None) => prose::plain(&file.text),
    };
    let cut = if file.complete { "" } else { "\n\n(It is long; this covers the part that I read.)" };
    format!("{title}\n\n{body}{cut}")
}

/// Whether a text was made from something else: it has NUL bytes or many signs that stand for bad bytes.
fn is_binary(text: &str) -> bool {
    text.contains('\0') || text.chars().filter(|c| *c == '\u{fffd}').count() * 20 > text.chars().count()
}

fn by_first_line(text: &str) -> Option<Language> {
    let first = text.lines().next()?.strip_prefix("#!")?;
    let program = first.split_whitespace().rev().find(|word| !word.starts_with('-'))?.rsplit('/').next()?;
    match program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "python" => Some(Language::Python),
        "node" | "deno" | "bun" => Some(Language::JavaScript),
        "sh" | "bash" | "zsh" | "dash" => Some(Language::Shell),
        "ruby" => Some(Language::Ruby),
        "perl" => Some(Language::Perl),
        _ => None,
    }
}

/// Shows a place in a file and says what stands there.
pub(super) fn place(desk: &mut Desk<'_>, path: &str, line: usize) -> Ask<String> {
    desk.remark(format!("Looking at {}.", code(format!("{path}:{line}"))));
    const BEFORE: usize = 40;
    const SHOWN: usize = 60;
    let from = line.saturating_sub(BEFORE).max(1);
    let text = desk.read_lines(path, from, BEFORE + SHOWN)?.text;
    let language = Language::of_path(path);
    let lines: Vec<&str> = text.lines().collect();
    let at = line.saturating_sub(from);
    let Some(own) = lines.get(at) else { return Ok(format!("{} has no line {line}.", code(path))) };
    let name = language.and_then(|language| crate::guide::language::items_of(language, own).into_iter().next());
    let fence = language.map(|language| language.name().to_lowercase()).unwrap_or_default();
    match name {
        Some(item) => {
            let kind = definition_of(language, own, &item.name).unwrap_or(item.kind);
            let documentation = language.and_then(|language| {
                crate::guide::language::items_of(language, &text)
                    .into_iter()
                    .find(|other| other.line == at + 1)
                    .and_then(|item| item.documentation)
            });
            let says =
                documentation.map(|text| format!(" It says: {}", super::text::sentence(&text))).unwrap_or_default();
            let body = body(language, &lines[at..]);
            Ok(format!(
                "{} is a {kind}, defined in {}.{says}\n\n{}",
                code(&item.name),
                code(format!("{path}:{line}")),
                block_in(&fence, &body.join("\n"), SHOWN)
            ))
        }
        None => {
            let (start, end) = (at.saturating_sub(4), (at + 8).min(lines.len()));
            Ok(format!("Around {}:\n\n{}", code(format!("{path}:{line}")), block(&lines[start..end].join("\n"), SHOWN)))
        }
    }
}
