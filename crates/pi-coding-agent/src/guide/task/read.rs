//! Showing the text of a file.

use super::text::{amount, block_in, code, plural, shorten};
use crate::guide::{
    desk::{Ask, Desk, FileText, line_count},
    intent::Lines,
    language::Language,
};

/// Lines that an answer shows at most.
const MOST_LINES: usize = 400;

pub(super) fn read(desk: &mut Desk<'_>, file: &str, lines: Lines) -> Ask<String> {
    desk.remark(format!("Reading {}.", code(file)));
    let path = match super::explain::locate(desk, file)? {
        super::explain::Located::File(path) => path,
        super::explain::Located::Folder(path) => return super::overview::folder(desk, Some(&path)),
        super::explain::Located::Answer(answer) => return Ok(answer),
    };
    let language =
        Language::of_path(&path).map(|language| language.name().to_lowercase().replace(' ', "")).unwrap_or_default();
    let (file, title) = match lines {
        Lines::All => {
            let file = desk.read_start(&path)?;
            let total = desk.lines_of(&path, &file)?;
            (file, format!("{} ({}):", code(&path), amount(total, "line")))
        }
        Lines::First(count) => {
            (desk.read_lines(&path, 1, count)?, format!("The first {} of {}:", plural(count, "line"), code(&path)))
        }
        Lines::Range(from, to) => {
            let (from, to) = (from.min(to).max(1), from.max(to).max(1));
            let file = desk.read_lines(&path, from, to - from + 1)?;
            let what = if from == to { format!("Line {from}") } else { format!("Lines {from} to {to}") };
            (file, format!("{what} of {}:", code(&path)))
        }
        Lines::Last(count) => {
            let file = desk.read_end(&path, count)?;
            let shown = line_count(&file.text).min(count);
            (file, format!("The last {} of {}:", plural(shown, "line"), code(&path)))
        }
    };
    let FileText { text, encoding, too_long, .. } = file;
    if let Some(line) = too_long {
        return too_long_line(desk, &path, line);
    }
    if text.trim().is_empty() {
        return Ok(format!("{} is empty there.", code(&path)));
    }
    let title = match encoding {
        Some(encoding) => format!("{title} (it is in {encoding})"),
        None => title,
    };
    Ok(format!("{title}\n\n{}", block_in(&language, &text, MOST_LINES)))
}

/// What there is to say about a line that no result can hold.
pub(super) fn too_long_line(desk: &mut Desk<'_>, path: &str, line: usize) -> Ask<String> {
    let told = format!("Line {line} of {} is too long to be shown", code(path));
    if !desk.has("bash") {
        return Ok(format!("{told}."));
    }
    let command = format!("sed -n {line}p -- {} | head -c 300", crate::guide::desk::quote(path));
    let beginning = desk.bash(&command, None)?.text;
    Ok(format!("{told}. It begins:\n\n{}", block_in("", &shorten(&beginning, 300), 1)))
}
