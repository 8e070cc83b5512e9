//! Questions to git.

use super::text::{block_in, code, list, plural};
use crate::guide::{
    desk::{Ask, Desk, quote},
    intent::GitQuestion,
};

pub(super) fn answer(desk: &mut Desk<'_>, question: &GitQuestion) -> Ask<String> {
    desk.remark("Asking git.");
    let path = |file: &Option<String>| file.as_deref().map(|file| format!(" -- {}", quote(file))).unwrap_or_default();
    match question {
        GitQuestion::Changes { file } => changes(desk, &path(file), file.as_deref()),
        GitQuestion::Diff { file } => {
            let Some(text) = git(desk, &format!("diff HEAD{}", path(file)))? else { return no_repository(desk) };
            let place = file.as_deref().map(|file| format!(" in {}", code(file))).unwrap_or_default();
            Ok(if text.trim().is_empty() {
                format!("Nothing differs from the last commit{place}.")
            } else {
                block_in("diff", &text, 300)
            })
        }
        GitQuestion::Log { file } => {
            let Some(text) =
                git(desk, &format!("log -n 15 --date=short --pretty=format:'%h%x09%ad%x09%an%x09%s'{}", path(file)))?
            else {
                return no_repository(desk);
            };
            let items: Vec<String> = text.lines().filter_map(commit_line).collect();
            Ok(format!("The last {}:\n\n{}", plural(items.len(), "commit"), list(&items, 15)))
        }
        GitQuestion::LastCommit => {
            let Some(text) = git(desk, "show --stat --date=short --pretty=format:'%h%x09%ad%x09%an%x09%s' HEAD")?
            else {
                return no_repository(desk);
            };
            let mut lines = text.lines();
            let head = lines.next().and_then(commit_line).unwrap_or_default();
            let rest = lines.collect::<Vec<_>>().join("\n");
            Ok(format!("The last commit: {head}\n\n{}", block_in("", rest.trim_matches('\n'), 40)))
        }
        GitQuestion::Branch => {
            let Some(text) = git(desk, "branch --list --no-color")? else { return no_repository(desk) };
            let current = text.lines().find_map(|line| line.strip_prefix("* ")).unwrap_or("unknown").to_owned();
            let others: Vec<String> = text
                .lines()
                .filter(|line| !line.starts_with("* "))
                .map(|line| code(line.trim_start_matches(['+', ' ']).trim()))
                .collect();
            let others =
                if others.is_empty() { String::new() } else { format!("\n\nOther branches:\n\n{}", list(&others, 30)) };
            Ok(format!("The current branch is {}.{others}", code(current)))
        }
    }
}

/// What git prints, or `None` when it fails.
fn git(desk: &mut Desk<'_>, arguments: &str) -> Ask<Option<String>> {
    let output = desk.bash(&format!("git --no-pager -c core.quotePath=false {arguments}"), Some(60))?;
    Ok(output.succeeded().then_some(output.text))
}

fn no_repository(desk: &mut Desk<'_>) -> Ask<String> {
    let output = desk.bash("git rev-parse --is-inside-work-tree HEAD", Some(60))?;
    let text = output.text.to_lowercase();
    Ok(if text.contains("not a git repository") {
        "This folder is not in a git repository, so git knows nothing about it.".to_owned()
    } else if text.contains("command not found") || text.contains("not found") && text.contains("git:") {
        "Git is not installed here, so I cannot ask it.".to_owned()
    } else if text.contains("ambiguous argument 'head'") || text.contains("unknown revision") {
        "The git repository has no commit yet.".to_owned()
    } else {
        format!("Git failed: {}", super::text::shorten(output.text.trim(), 300))
    })
}

fn changes(desk: &mut Desk<'_>, path: &str, file: Option<&str>) -> Ask<String> {
    let Some(status) = git(desk, &format!("status --short --branch{path}"))? else { return no_repository(desk) };
    let branch = status
        .lines()
        .find_map(|line| line.strip_prefix("## "))
        .map(|line| line.split("...").next().unwrap_or(line).to_owned());
    let entries: Vec<&str> = status.lines().filter(|line| !line.starts_with("## ")).collect();
    let place = file.map(|file| format!(" in {}", code(file))).unwrap_or_default();
    let on = branch
        .map(|branch| format!(" (branch {})", code(branch.trim_start_matches("No commits yet on "))))
        .unwrap_or_default();
    if entries.is_empty() {
        return Ok(format!("Nothing is changed{place}: the working folder is as the last commit left it{on}."));
    }
    let counts = git(desk, &format!("diff --numstat HEAD{path}"))?.unwrap_or_default();
    let numbers = |name: &str| {
        let line = counts.lines().find(|line| line.split('\t').nth(2) == Some(name))?;
        let mut parts = line.split('\t');
        Some(format!(" (+{} −{})", parts.next()?, parts.next()?))
    };
    let items: Vec<String> = entries
        .iter()
        .map(|line| {
            let (state, name) = line.split_at_checked(3).unwrap_or((line, ""));
            let what = match state.trim() {
                "??" => "new, not yet known to git",
                "M" | "MM" | "AM" => "changed",
                "A" => "added",
                "D" => "deleted",
                "R" | "RM" => "renamed",
                "UU" | "AA" => "in conflict",
                _ => "changed",
            };
            format!("{}: {what}{}", code(name.trim_matches('"')), numbers(name).unwrap_or_default())
        })
        .collect();
    Ok(format!(
        "{} not committed{place}{on}:\n\n{}",
        if items.len() == 1 {
            "1 file has changes that are".to_owned()
        } else {
            format!("{} files have changes that are", items.len())
        },
        list(&items, 50)
    ))
}

fn commit_line(line: &str) -> Option<String> {
    let mut parts = line.splitn(4, '\t');
    let (hash, date, author, subject) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    Some(format!("{} {date}, {author}: {subject}", code(hash)))
}
