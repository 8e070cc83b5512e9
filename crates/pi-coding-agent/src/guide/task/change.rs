//! Making, extending, moving and deleting files.

use super::text::{code, plural};
use crate::guide::{
    desk::{Ask, Desk, Settle, Stop, Trouble, line_count, quote},
    intent::{Existing, Place},
};

/// Makes a file. One that is there already is left alone unless that was asked for.
pub(super) fn create(desk: &mut Desk<'_>, file: &str, content: Option<&str>, existing: Existing) -> Ask<String> {
    let Some(content) = content else { return Ok("What should the file contain?".to_owned()) };
    desk.remark(format!("Writing {}.", code(file)));
    let was_there = match existing {
        Existing::Overwrite => false,
        Existing::Keep => match desk.read_start(file).settle()? {
            Ok(_) => true,
            Err(Trouble::NoTool { .. }) if !desk.has("write") => {
                return Err(Stop::Trouble(Trouble::NoTool { need: "to write a file", any_of: "write" }));
            }
            Err(_) => false,
        },
    };
    if was_there {
        return Ok(format!(
            "{} is there already, so I left it alone. Say \"overwrite {file} with …\" to replace it.",
            code(file)
        ));
    }
    let content = ending_in_newline(content);
    desk.write(file, &content)?;
    Ok(match line_count(&content) {
        0 => format!("I created the empty file {}.", code(file)),
        lines => format!("I wrote {} to {}.", plural(lines, "line"), code(file)),
    })
}

/// Text files end with a newline.
fn ending_in_newline(content: &str) -> String {
    if content.is_empty() || content.ends_with('\n') { content.to_owned() } else { format!("{content}\n") }
}

/// Adds text to a file.
pub(super) fn insert(desk: &mut Desk<'_>, text: &str, file: &str, place: &Place) -> Ask<String> {
    desk.remark(format!("Reading {}.", code(file)));
    let old = desk.read(file)?;
    if !old.complete {
        return Err(Stop::Trouble(Trouble::Failed {
            doing: format!("reading all of {file}"),
            message: "it is too long for me".to_owned(),
        }));
    }
    let old = old.text;
    let added = ending_in_newline(text);
    let (new, where_to) = match place {
        Place::Top => (format!("{added}{old}"), "at the top".to_owned()),
        Place::End => (format!("{}{added}", ending_in_newline(&old)), "at the end".to_owned()),
        Place::Before(anchor) | Place::After(anchor) => {
            let lines: Vec<&str> = old.split_inclusive('\n').collect();
            let Some(index) = lines.iter().position(|line| line.contains(anchor.as_str())) else {
                return Ok(format!("{} does not occur in {}, so I changed nothing.", code(anchor), code(file)));
            };
            let at = if matches!(place, Place::Before(_)) { index } else { index + 1 };
            let head = ending_in_newline(&lines[..at].concat());
            let side = if matches!(place, Place::Before(_)) { "before" } else { "after" };
            (format!("{head}{added}{}", lines[at..].concat()), format!("{side} line {}", index + 1))
        }
    };
    // With text to hold on to, an edit shows less than a whole new file.
    let anchor = last_unique_line(&old);
    match (place, anchor) {
        (Place::End, Some(line)) if desk.has("edit") => {
            let ending = if old.ends_with('\n') { "\n" } else { "" };
            let new_text = format!("{line}\n{}", added.trim_end_matches('\n'));
            desk.edit(file, &[(format!("{line}{ending}"), format!("{new_text}{ending}"))])?;
        }
        _ => drop(desk.write(file, &new)?),
    }
    Ok(format!("I added {} to {} {where_to}.", plural(line_count(&added), "line"), code(file)))
}

fn last_unique_line(text: &str) -> Option<&str> {
    let last = text.trim_end_matches('\n').rsplit('\n').next()?;
    let plain_end = text.ends_with(&format!("{last}\n")) || text.ends_with(last);
    (!last.trim().is_empty() && text.matches(last).count() == 1 && plain_end).then_some(last)
}

/// Makes a folder.
pub(super) fn make_folder(desk: &mut Desk<'_>, folder: &str) -> Ask<String> {
    desk.remark(format!("Making {}.", code(folder)));
    let output = desk.run(&format!("mkdir -p -- {}", quote(folder)), None)?;
    if output.succeeded() {
        Ok(format!("The folder {} is there.", code(folder)))
    } else {
        Ok(format!("I could not make {}: {}", code(folder), output.text.trim()))
    }
}

/// Moves a file, unless something of the new name is there.
pub(super) fn rename(desk: &mut Desk<'_>, from: &str, to: &str) -> Ask<String> {
    desk.remark(format!("Moving {}.", code(from)));
    let (quoted_from, quoted_to) = (quote(from), quote(to));
    let command = format!(
        "if [ -d {quoted_to} ]; then target={quoted_to}/$(basename -- {quoted_from}); else target={quoted_to}; fi; \
         if [ -e \"$target\" ]; then echo \"$target is there already\" >&2; exit 1; fi; mv -- {quoted_from} \"$target\""
    );
    let output = desk.run(&command, None)?;
    if output.succeeded() {
        return Ok(format!("I moved {} to {}.", code(from), code(to)));
    }
    Ok(format!(
        "I did not move {}: {}",
        code(from),
        super::text::sentence(&super::text::shorten(output.text.trim(), 300))
    ))
}

/// Deletes one file; never a folder.
pub(super) fn delete(desk: &mut Desk<'_>, file: &str) -> Ask<String> {
    desk.remark(format!("Deleting {}.", code(file)));
    let output = desk.run(&format!("rm -- {}", quote(file)), None)?;
    if output.succeeded() {
        return Ok(format!("I deleted {}.", code(file)));
    }
    Ok(format!(
        "I did not delete {}: {}",
        code(file),
        super::text::sentence(&super::text::shorten(output.text.trim(), 300))
    ))
}
