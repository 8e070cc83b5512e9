//! Showing the text of a file.

use super::text::{block_in, code, plural};
use crate::guide::{
    desk::{Ask, Desk, line_count},
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
    let (text, title) = match lines {
        Lines::All => {
            let file = desk.read_start(&path)?;
            let total = file.lines();
            (file.text, format!("{} ({}):", code(&path), plural(total, "line")))
        }
        Lines::First(count) => {
            (desk.read_lines(&path, 1, count)?.text, format!("The first {} of {}:", plural(count, "line"), code(&path)))
        }
        Lines::Range(from, to) => {
            let (from, to) = (from.min(to).max(1), from.max(to).max(1));
            let text = desk.read_lines(&path, from, to - from + 1)?.text;
            let what = if from == to { format!("Line {from}") } else { format!("Lines {from} to {to}") };
            (text, format!("{what} of {}:", code(&path)))
        }
        Lines::Last(count) => {
            let file = desk.read(&path)?;
            let total = line_count(&file.text);
            let text = file.text.lines().skip(total.saturating_sub(count)).collect::<Vec<_>>().join("\n");
            (text, format!("The last {} of {}:", plural(count.min(total), "line"), code(&path)))
        }
    };
    if text.trim().is_empty() {
        return Ok(format!("{} is empty there.", code(&path)));
    }
    Ok(format!("{title}\n\n{}", block_in(&language, &text, MOST_LINES)))
}
