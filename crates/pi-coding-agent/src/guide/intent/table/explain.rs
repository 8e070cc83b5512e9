//! Requests for explanations.

use super::{Captures, Rule, words::*};
use crate::guide::intent::*;
use crate::guide::utterance::*;

pub(super) const RULES: &[Rule] = &[
    Rule {
        patterns: &[
            "what is|are|does the? purpose|point|meaning|job|role|idea of|behind the? file|folder|crate|module|function|class|struct|type? {subject}",
            "what does|do the? file|folder|crate|module|package|function|class|struct|type|method|program|script? {subject} do|mean|represent|provide|contain|handle|say|implement *",
            "what is|are the? file|folder|crate|module|package|function|class|struct|type? {subject} for|about|good|doing|used|there",
            "how does|do the? file|crate|module|package|function|class|struct|type|method|program|script? {subject} work|works|function|operate *",
            "explain|describe|summarize|summarise|clarify|document|analyze|analyse|interpret|review|outline to? me? what|how? the? file|folder|crate|module|package|function|class|struct|type|method|script? {subject} does|do|is|works|means|contains|to|for *",
            "explain|describe|summarize|summarise|clarify|document|analyze|analyse|interpret|review|outline|understand to? me? what|how? the|this|that? file|folder|crate|module|package|function|class|struct|type|method|script|code? {subject}",
            "walk|guide|take|talk|lead me|us through the? file|code|source? of|in? {subject}",
            "tell me about the? file|folder|crate|module|package|function|class|struct|type|method|script? {subject}",
            "give|show me? an|a|the? short|brief|quick? summary|explanation|description|overview|outline of|for the? file? {subject}",
            "what is|are in|inside the? {subject:p} *",
            "what is {subject:p}",
            "what is|are a|an|the? function|class|struct|type|trait|enum|method|file|folder|module {subject}",
            "{subject:p} explain|explained|describe|explanation|summary *",
        ],
        make: explain,
    },
    Rule {
        patterns: &["explain|describe|summarize|summarise|review *", "what is|does this|that|it do|about|mean? *"],
        make: |_, said| (!said.attachments.is_empty()).then_some(Intent::Explain { subject: Subject::Attached }),
    },
];

fn explain(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let subject = without_prefix(
        kept.text(said, "subject")?,
        &["the", "this", "a", "an", "file", "folder", "function", "class", "struct", "code", "module", "script"],
    );
    let subject = bare(subject.trim_end_matches(['.', '?', '!']));
    let mut words = subject.split_whitespace();
    let (first, more) = (words.next()?, words.collect::<Vec<_>>());
    let kind_word = |word: &str| {
        [
            "file",
            "function",
            "folder",
            "module",
            "class",
            "struct",
            "crate",
            "package",
            "directory",
            "script",
            "method",
            "trait",
            "enum",
            "type",
            "does",
            "do",
            "is",
            "works",
            "to",
            "in",
            "for",
        ]
        .contains(&word.to_lowercase().as_str())
    };
    let plausible = more.is_empty() || more.first().is_some_and(|word| kind_word(word));
    if !plausible {
        return None;
    }
    let pronoun = [
        "it", "this", "that", "them", "these", "they", "each", "every", "all", "one", "code", "file", "me", "you", "i",
        "we",
    ]
    .contains(&first.to_lowercase().as_str());
    if pronoun {
        return (!said.attachments.is_empty()).then_some(Intent::Explain { subject: Subject::Attached });
    }
    if let Some((file, line)) = first.rsplit_once(':')
        && let Ok(line) = line.parse()
        && looks_like_path(file)
    {
        return Some(Intent::Explain { subject: Subject::At { file: file.to_owned(), line } });
    }
    Some(Intent::Explain { subject: Subject::Named(bare(first).to_owned()) })
}
