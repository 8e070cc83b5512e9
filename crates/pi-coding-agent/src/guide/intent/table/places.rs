//! Questions where something is: definitions, uses, texts, files.

use super::{Captures, Rule, words::*};
use crate::guide::intent::*;
use crate::guide::language::Language;
use crate::guide::utterance::*;

pub(super) const RULES: &[Rule] = &[
    Rule {
        patterns: &[
            "* where|wherever is|are|was|does|do? the|a? <kind>? {x} is|are|was|get|gets|being? defined|declared|implemented|introduced|located|live|lives|coming|come *",
            "* where is|are the|a? definition|declaration|implementation|source|code of|for the? <kind>? {x}",
            "* definition|declaration|implementation of|for the? <kind>? {x}",
            "* which|what file|files|module|crate|class|place|line defines|define|declares|declare|implements|implement the? <kind>? {x}",
            "* who|what defines|declares|implements the? <kind>? {x}",
            "go|jump|take to the? definition? of? {x:1}",
            "find|locate|show|where|get me? is? the? definition|declaration|implementation? of? the|a? function|fn|method|struct|class|enum|trait|type|interface|constant|const|macro|variable|symbol|module {x:1}",
            "find|locate|where|get is? the? {x:1} function|fn|method|struct|class|enum|trait|type|interface|constant|const|macro|variable|symbol",
            "where do|does|did we|you|i|it|they|the? code|program|project? define|declare|implement|set the? <kind>? {x}",
            "define|definition|def {x:1}",
        ],
        make: definition,
    },
    Rule {
        patterns: &[
            "* entry point|points *",
            "* entrypoint *",
            "where does|is the? program|main|app|application|it|execution start|starts|begin|begins|function *",
        ],
        make: |_, _| Some(Intent::Definition { name: "main".into() }),
    },
    Rule {
        patterns: &[
            "* where|how is|are|do|does|did we|you|i|it|they? the|a? <kind>? {x} is|are|get|gets|being? used|called|referenced|invoked|imported|mentioned|use|call *",
            "* where|wherever the|a? <kind>? {x} is|are|get|gets used|called|referenced|invoked|imported|mentioned *",
            "* usages|usage|uses|references|reference|callers|caller|calls of|to|for the|a? <kind>? {x}",
            "* who|what|which files|file|code|place|places|modules|module|functions|tests? uses|use|calls|call|references|reference|imports|import|invokes the|a? <kind>? {x}",
        ],
        make: |kept, said| {
            let (text, scope) = split_scope(kept.text(said, "x")?);
            Some(Intent::Search { text: bare(text).to_owned(), scope, usage: Usage::Name })
        },
    },
    Rule {
        patterns: &[
            "find|list|show|search|count|look me? for? all? the|any? files|file named|called|matching|like|with the|a? name|extension? {pattern:1} *",
            "find|list|show|search me? for? all|every|the|any? {pattern:1} files|file *",
            "find|locate|search|look for? the? file|folder {pattern:1}",
            "where is|are the? file|folder|directory? {pattern:p}",
            "where can|do i|we find the? file|folder|directory? {pattern:p}",
            "is|are there a|an|any? file|files|folder? called|named? {pattern:p} *",
            "do|does we|you|it|this|the? project|repo? have a|an? {pattern:p} *",
            "find|locate {pattern:p}",
            "does|do the? file|folder? {pattern:p} exist",
            "is the? file|folder? {pattern:p} there|here|present",
        ],
        make: find_files,
    },
    Rule {
        patterns: &[
            "search|grep|look|scan|hunt|query|find in|through|inside {scope:p} for all? the? word|text|string|occurrences|phrase? of? {text}",
            "in {scope:p} search|grep|look|find for? the? word|text|string? {text}",
            "search|grep|look|scan|hunt|query the|this|whole|entire? project|code|codebase|repo|repository|files|folder? for all? the? word|text|string|occurrences|phrase|pattern|term? of? {text}",
            "grep {text}",
            "search {text}",
            "find|list|show|get me? all|every|any|the? occurrences|occurrence|mentions|mention|instances|places|matches|lines of|with|containing|where|that|for? contain|mention|match? the? word|text|string? {text}",
            "which|what|list|find|show all? the? files|file|lines|places contain|contains|mention|mentions|include|includes|have|has|containing|mentioning|with the? word|text|string? {text}",
            "where does|do|is|are the? word|text|string|message|error|phrase|comment {text} occur|appear|appears|stand|come|mentioned|written|from|found|printed|in? *",
            "where does|do|is|are * {text:q} occur|appear|appears|stand|come|mentioned|written|from|found|printed *",
            "find|locate * {text:q} in|inside|within {scope}",
            "find|locate * {text:q}",
            "find|locate {text} in|inside|within the? {scope:p} *",
            "find|locate|show|list all? the|any? todo|todos|fixme|fixmes *",
            "are|is there any? todo|todos|fixme|fixmes *",
        ],
        make: search,
    },
];

fn definition(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let name = kept.text(said, "x")?;
    let name = without_prefix(
        name,
        &[
            "the",
            "a",
            "an",
            "function",
            "fn",
            "method",
            "struct",
            "class",
            "enum",
            "trait",
            "type",
            "interface",
            "constant",
            "const",
            "macro",
            "variable",
            "symbol",
            "module",
            "field",
            "name",
        ],
    );
    let mut words = name.split_whitespace();
    let first = words.next()?;
    let rest: Vec<&str> = words.collect();
    // "the parse function", "Foo struct": the kind may follow.
    let kind_follows = rest.first().is_some_and(|word| {
        [
            "function",
            "fn",
            "method",
            "struct",
            "class",
            "enum",
            "trait",
            "type",
            "interface",
            "constant",
            "macro",
            "variable",
            "symbol",
            "module",
            "in",
        ]
        .contains(&word.to_lowercase().as_str())
    });
    if !rest.is_empty() && !kind_follows {
        return None;
    }
    let name = bare(first);
    let vague = ["it", "this", "that", "they", "i", "we", "you", "the", "project", "file", "files"];
    let is_file = looks_like_path(name) && !looks_like_identifier(name);
    (!name.is_empty() && !is_file && !vague.contains(&name.to_lowercase().as_str()))
        .then(|| Intent::Definition { name: name.to_owned() })
}

fn search(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let (text, scope) = match kept.text(said, "text") {
        Some(text) => split_scope(text),
        None if said.has(&["fixme", "fixmes"]) => ("FIXME", scope_after_in(said)),
        None if said.has(&["todo", "todos"]) => ("TODO", scope_after_in(said)),
        None => return None,
    };
    let scope = kept
        .text(said, "scope")
        .map(|scope| scope_text(scope).to_owned())
        .or(scope)
        .filter(|scope| !is_everywhere(scope));
    let text = if kept_is_quoted(kept, said, "text") { text } else { bare(text) };
    (!text.is_empty()).then(|| Intent::Search { text: text.to_owned(), scope, usage: Usage::Text })
}

fn find_files(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let pattern = kept.text(said, "pattern")?.trim_matches(['`', '"', '\'']);
    let lower = pattern.to_lowercase();
    if let Some(language) = Language::of_name(&lower)
        && said.has(&["files", "file"])
        && let Some(extension) = language.extensions().first()
    {
        return Some(Intent::FindFiles { pattern: format!("*.{extension}") });
    }
    if Language::of_extension(&lower).is_some() && said.has(&["files"]) {
        return Some(Intent::FindFiles { pattern: format!("*.{lower}") });
    }
    let pattern = if pattern.starts_with('.')
        && !pattern.contains('/')
        && Language::of_extension(pattern.trim_start_matches('.')).is_some()
    {
        format!("*{pattern}")
    } else {
        pattern.to_owned()
    };
    let plausible = looks_like_path(&pattern) || pattern.contains(['*', '?']) || said.has(&["named", "called", "file"]);
    let vague = [
        "the",
        "all",
        "these",
        "those",
        "source",
        "in",
        "that",
        "which",
        "containing",
        "with",
        "my",
        "changed",
        "failing",
    ]
    .contains(&lower.as_str());
    (plausible && !vague).then_some(Intent::FindFiles { pattern })
}
