//! From what was said to what is meant: follow-ups, several requests in one, patterns, keywords.

use super::{Intent, Subject, follow_up::Earlier, keywords, piped::Piped, table};
use crate::guide::utterance::{TokenKind, Utterance};

/// What a person means, or `None` when the rules do not know.
pub(in crate::guide) fn understand(text: &str, earlier: Option<&Earlier>) -> Option<Intent> {
    if text.trim_start().starts_with("<conversation>") {
        return Some(Intent::Summarize);
    }
    if let Some(piped) = Piped::split(text) {
        return piped.intent().or_else(|| whole(&Utterance::parse(piped.request), earlier));
    }
    let said = Utterance::parse(text);
    if said.tokens.is_empty() {
        return (!said.attachments.is_empty()).then_some(Intent::Explain { subject: Subject::Attached });
    }
    if let Some(intent) = whole(&said, earlier) {
        return Some(intent);
    }
    // Material that came through a pipe stands before or after the request, on lines of its own.
    let mut lines = said.text.lines().filter(|line| !line.trim().is_empty());
    let (first, last) = (lines.next()?, lines.next_back()?);
    [last, first].into_iter().find_map(|line| {
        let request = Utterance::parse(line);
        (request.tokens.len() <= 30).then(|| whole(&request, earlier)).flatten()
    })
}

fn whole(said: &Utterance, earlier: Option<&Earlier>) -> Option<Intent> {
    let before = || earlier.and_then(|earlier| earlier.resolve(said));
    let by_itself = || several(said).or_else(|| table::look_up(said));
    let spelled_out = || {
        let said = Utterance::parse(&earlier?.spell_out(said)?);
        several(&said).or_else(|| table::look_up(&said)).or_else(|| keywords::guess(&said))
    };
    // What came along is meant before what was spoken of earlier.
    if !said.continues
        && said.attachments.is_empty()
        && let Some(intent) = before()
    {
        return Some(intent);
    }
    match by_itself() {
        Some(Intent::Several(all)) => Some(Intent::Several(all)),
        // The same request about "it" says more when "it" has a name.
        Some(Intent::Project { folder: None } | Intent::Overview { folder: None }) if points_at_attachment(said) => {
            Some(Intent::Explain { subject: Subject::Attached })
        }
        Some(found) if !said.attachments.is_empty() => Some(found),
        Some(found) => {
            let same_kind = |other: &Intent| std::mem::discriminant(other) == std::mem::discriminant(&found);
            Some(spelled_out().filter(same_kind).unwrap_or(found))
        }
        None => before().or_else(spelled_out).or_else(|| keywords::guess(said)),
    }
}

/// "What is this?" with a file that came along.
fn points_at_attachment(said: &Utterance) -> bool {
    !said.attachments.is_empty()
        && said.has(&["this", "that", "it"])
        && !said.has(&["project", "repo", "repository", "codebase", "folder", "directory", "workspace"])
}

/// Several requests joined by "and", "then" or the end of a sentence; each must be understood by itself.
fn several(said: &Utterance) -> Option<Intent> {
    const MOST: usize = 4;
    let joints = said.tokens.iter().enumerate().skip(1).filter(|(index, token)| is_joint(said, *index, token.kind));
    for (index, token) in joints {
        let left = said.part(0..token.outer.start);
        let is_word = matches!(token.word.as_str(), "and" | "then") && token.kind == TokenKind::Word;
        let right = said.part(if is_word { token.outer.end } else { token.outer.start }..said.text.len());
        if left.tokens.len() < 2 || right.tokens.len() < 2 || index >= said.tokens.len() {
            continue;
        }
        let Some(first) = table::look_up(&left) else { continue };
        let Some(rest) = several(&right).or_else(|| table::look_up(&right)).or_else(|| about_the_same(&first, &right))
        else {
            continue;
        };
        let mut all = vec![first];
        match rest {
            Intent::Several(more) => all.extend(more),
            other => all.push(other),
        }
        all.dedup();
        if all.len() > MOST
            || all.iter().any(|intent| matches!(intent, Intent::Thanks | Intent::Greet | Intent::Missing { .. }))
        {
            return None;
        }
        return match all.len() {
            1 => all.pop(),
            _ => Some(Intent::Several(all)),
        };
    }
    None
}

/// "create x and then read it": the second request is about what the first one is about.
fn about_the_same(first: &Intent, said: &Utterance) -> Option<Intent> {
    let spelled_out = Earlier::new(first.clone(), "").spell_out(said)?;
    table::look_up(&Utterance::parse(&spelled_out))
}

fn is_joint(said: &Utterance, index: usize, kind: TokenKind) -> bool {
    let Some(token) = said.tokens.get(index) else { return false };
    if kind == TokenKind::Word && matches!(token.word.as_str(), "and" | "then") {
        return true;
    }
    // A new sentence begins after a full stop, a semicolon or on a new line.
    let Some(previous) = index.checked_sub(1).and_then(|index| said.tokens.get(index)) else { return false };
    let between = said.text.get(previous.inner.end..token.outer.start).unwrap_or_default();
    between.contains(['.', ';', '?', '!', '\n'])
}
