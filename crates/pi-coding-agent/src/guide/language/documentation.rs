//! What a file says about itself.

use super::Language;

/// The documentation at the head of a file: its first paragraph, on one line.
pub(in crate::guide) fn file_documentation(language: Language, text: &str) -> Option<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let documentation = match language {
        Language::Rust => lines_with_prefix(text, "//!"),
        Language::Python => python_docstring(text).or_else(|| leading_comment(text, "#"))?,
        Language::Go => go_package_comment(text)?,
        Language::Markdown => return first_paragraph(text),
        _ => block_comment(text)
            .or_else(|| language.line_comments().iter().find_map(|comment| leading_comment(text, comment)))?,
    };
    paragraph(&documentation)
}

/// The first paragraph of prose in a Markdown text, on one line.
pub(in crate::guide) fn first_paragraph(markdown: &str) -> Option<String> {
    let mut fenced = false;
    let mut front = markdown.starts_with("---\n");
    let mut lines: Vec<&str> = Vec::new();
    for (index, line) in markdown.lines().enumerate() {
        let line = line.trim();
        if front {
            front = index == 0 || line != "---";
            continue;
        }
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
            if !lines.is_empty() {
                break;
            }
            continue;
        }
        let prose = !fenced && !line.is_empty() && !is_decoration(line);
        match (prose, lines.is_empty()) {
            (true, _) => lines.push(line),
            (false, false) => break,
            (false, true) => {}
        }
    }
    one_line(&lines.join(" "))
}

/// Headings, pictures, badges, rules, tables and markup say nothing in prose.
fn is_decoration(line: &str) -> bool {
    line.starts_with('#')
        || line.starts_with("![")
        || line.starts_with("[![")
        || line.starts_with('<')
        || line.starts_with('|')
        || line.chars().all(|c| matches!(c, '=' | '-' | '*' | '_' | ' '))
        || line.starts_with("[") && line.contains("]:")
}

fn paragraph(documentation: &str) -> Option<String> {
    let lines = documentation.lines().map(str::trim).skip_while(|line| line.is_empty() || is_decoration(line));
    one_line(&lines.take_while(|line| !line.is_empty() && !line.starts_with("```")).collect::<Vec<_>>().join(" "))
}

fn one_line(text: &str) -> Option<String> {
    const MOST: usize = 400;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.trim_end_matches(':').to_owned();
    let short = match text.char_indices().nth(MOST) {
        Some((end, _)) => match text[..end].rfind(". ") {
            Some(stop) => text[..=stop].to_owned(),
            None => format!("{}…", &text[..end]),
        },
        None => text,
    };
    (!short.is_empty()).then_some(short)
}

fn lines_with_prefix(text: &str, prefix: &str) -> String {
    let lines = text.lines().map(str::trim_start).skip_while(|line| !line.starts_with(prefix));
    lines.map_while(|line| line.strip_prefix(prefix)).collect::<Vec<_>>().join("\n")
}

fn python_docstring(text: &str) -> Option<String> {
    let mut rest = text.trim_start();
    while rest.starts_with('#') {
        rest = rest.split_once('\n')?.1.trim_start();
    }
    let rest = rest.trim_start_matches(['r', 'u', 'R', 'U']);
    for quotes in ["\"\"\"", "'''"] {
        if let Some(inside) = rest.strip_prefix(quotes) {
            return Some(inside.split(quotes).next()?.to_owned());
        }
    }
    for quote in ['"', '\''] {
        if let Some(inside) = rest.strip_prefix(quote) {
            return inside.split(quote).next().filter(|inside| !inside.contains('\n')).map(str::to_owned);
        }
    }
    None
}

fn leading_comment(text: &str, prefix: &str) -> Option<String> {
    let mut lines = text.lines().map(str::trim).skip_while(|line| line.is_empty() || line.starts_with("#!")).peekable();
    lines.peek().filter(|line| line.starts_with(prefix))?;
    let strip = |line: &str| {
        line.trim_start_matches(prefix.chars().next()?).trim_start_matches('!').trim_start().to_owned().into()
    };
    let comment: Vec<String> = lines.take_while(|line| line.starts_with(prefix)).filter_map(strip).collect();
    let prose = comment.iter().filter(|line| {
        !line.starts_with("-*-") && !line.to_lowercase().starts_with("copyright") && !line.starts_with("SPDX")
    });
    Some(prose.cloned().collect::<Vec<_>>().join("\n")).filter(|comment| !comment.trim().is_empty())
}

fn block_comment(text: &str) -> Option<String> {
    let text = text.trim_start();
    let inside = text.strip_prefix("/*")?.split("*/").next()?;
    Some(inside.lines().map(|line| line.trim().trim_start_matches(['*', '!']).trim()).collect::<Vec<_>>().join("\n"))
}

fn go_package_comment(text: &str) -> Option<String> {
    let package = text.lines().position(|line| line.starts_with("package "))?;
    let lines: Vec<&str> = text.lines().take(package).collect();
    let comment: Vec<&str> = lines.iter().rev().map_while(|line| line.strip_prefix("//")).map(str::trim).collect();
    if comment.is_empty() {
        return block_comment(text);
    }
    Some(comment.into_iter().rev().collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_it_is_in_its_languages_way() {
        for (language, text) in [
            (Language::Rust, "#![allow(x)]\n//! Reads words.\n//!\n//! More."),
            (
                Language::Python,
                "#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\n\"\"\"Reads words.\n\nMore.\n\"\"\"\n",
            ),
            (Language::Go, "// Copyright x\n\n// Reads words.\npackage words\n"),
            (Language::JavaScript, "/**\n * Reads\n * words.\n *\n * More.\n */\n"),
            (Language::Shell, "#!/bin/sh\n# Reads words.\n\nset -e\n"),
            (Language::Markdown, "# Title\n\n[![badge](x)](y)\n\nReads\nwords.\n\nMore.\n"),
        ] {
            assert_eq!(file_documentation(language, text).as_deref(), Some("Reads words."), "{language:?}");
        }
        assert_eq!(file_documentation(Language::Rust, "fn main() {}"), None);
        assert_eq!(file_documentation(Language::Python, "import os\n"), None);
    }
}
