//! A person's words as tokens: quotes, code and paths stay whole, spelling variants become one form.

use std::ops::Range;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    /// Text in quotes of any kind, or in backticks.
    Quoted,
    /// A fenced block.
    Block,
}

/// A piece of what was said.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// Lower case, without punctuation around it; the inner text as it is for quotes and blocks.
    pub(super) word: String,
    /// Where its text stands: without quotes, fences and punctuation.
    pub(super) inner: Range<usize>,
    /// Where it stands, quotes and punctuation included.
    pub(super) outer: Range<usize>,
}

impl Token {
    pub(super) fn is_quoted(&self) -> bool {
        self.kind != TokenKind::Word
    }
}

/// A file that came along with the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attachment {
    pub(super) name: String,
    pub(super) content: String,
}

/// What a person said: the words, and files that came along.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Utterance {
    pub(super) text: String,
    pub(super) tokens: Vec<Token>,
    pub(super) attachments: Vec<Attachment>,
    /// Whether it begins as a continuation ("and …", "what about …").
    pub(super) continues: bool,
}

/// More than this is no request but material.
const MOST_TOKENS: usize = 400;

impl Utterance {
    pub(super) fn parse(text: &str) -> Self {
        let (attachments, text) = take_attachments(text);
        Self::of_request(text, attachments)
    }

    fn of_request(text: &str, attachments: Vec<Attachment>) -> Self {
        let text = text.trim().to_owned();
        let mut tokens = tokenize(&text);
        tokens.truncate(MOST_TOKENS);
        tokens.retain(|token| token.is_quoted() || !matches!(token.word.as_str(), "please" | "kindly"));
        let mut continues = false;
        strip_leading(&mut tokens, &mut continues);
        strip_trailing(&mut tokens);
        Self { text, tokens, attachments, continues }
    }

    /// The same person saying only a part of it, with the same attachments.
    pub(super) fn part(&self, range: Range<usize>) -> Self {
        Self::of_request(self.text.get(range).unwrap_or_default(), self.attachments.clone())
    }

    /// The original text of some tokens: inner text when it is one quote, else everything between the first and the
    /// last.
    pub(super) fn slice(&self, range: Range<usize>) -> &str {
        let Some(tokens) = self.tokens.get(range) else { return "" };
        let span = match tokens {
            [] => return "",
            [one] => one.inner.clone(),
            [first, .., last] => first.outer.start..last.inner.end.max(last_outer_end(last)),
        };
        self.text.get(span).unwrap_or_default().trim()
    }

    /// Everything from a token on, punctuation included.
    pub(super) fn rest_from(&self, index: usize) -> &str {
        match self.tokens.get(index) {
            Some(token) => self.text.get(token.outer.start..).unwrap_or_default().trim(),
            None => "",
        }
    }

    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().filter(|token| token.kind == TokenKind::Word).map(|token| token.word.as_str())
    }

    pub(super) fn has(&self, words: &[&str]) -> bool {
        self.words().any(|word| words.contains(&word))
    }
}

fn last_outer_end(token: &Token) -> usize {
    if token.is_quoted() { token.outer.end } else { token.inner.end }
}

/// Takes `<file name="…">` and `<skill name="…">` blocks off the front, as the session puts them there.
fn take_attachments(mut text: &str) -> (Vec<Attachment>, &str) {
    let mut attachments = Vec::new();
    loop {
        let trimmed = text.trim_start();
        // A skill that was called up: instructions for a language model, before what is asked.
        if trimmed.starts_with("<skill name=\"")
            && let Some((_, rest)) = trimmed.split_once("</skill>")
        {
            text = rest;
            continue;
        }
        let Some(rest) = trimmed.strip_prefix("<file name=\"") else { return (attachments, text) };
        let Some((name, rest)) = rest.split_once("\">") else { return (attachments, text) };
        let Some((content, rest)) = rest.split_once("</file>") else { return (attachments, text) };
        attachments.push(Attachment { name: name.to_owned(), content: content.trim_matches('\n').to_owned() });
        text = rest;
    }
}

fn tokenize(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(next) = text.get(at..).and_then(|rest| rest.chars().next()) {
        if next.is_whitespace() {
            at += next.len_utf8();
        } else if let Some((token, end)) = quoted_at(text, at) {
            tokens.push(token);
            at = end;
        } else {
            let rest = text.get(at..).unwrap_or_default();
            let end = at + word_length(rest);
            push_word(text, at..end, &mut tokens);
            at = end;
        }
    }
    tokens
}

/// A word ends at a blank, or before a quote that opens after a bracket or a colon.
fn word_length(rest: &str) -> usize {
    let mut previous = '\0';
    for (index, character) in rest.char_indices() {
        let opens = index > 0 && matches!(previous, '(' | ':' | '=' | ',') && closing_of(character).is_some();
        if character.is_whitespace() || opens {
            return index;
        }
        previous = character;
    }
    rest.len()
}

fn closing_of(open: char) -> Option<char> {
    Some(match open {
        '"' => '"',
        '\'' => '\'',
        '`' => '`',
        '\u{201c}' | '\u{201e}' | '\u{201f}' => '\u{201d}',
        '\u{2018}' | '\u{201a}' => '\u{2019}',
        '\u{ab}' => '\u{bb}',
        '\u{bb}' => '\u{ab}',
        '\u{2039}' => '\u{203a}',
        _ => return None,
    })
}

fn quoted_at(text: &str, at: usize) -> Option<(Token, usize)> {
    let rest = text.get(at..)?;
    if let Some(after) = rest.strip_prefix("```") {
        let close = after.find("```")?;
        let body = after.get(..close)?;
        // The fence's first line names the language.
        let start = body.find('\n').map_or(0, |newline| newline + 1);
        let inner = at + 3 + start..at + 3 + close;
        let end = at + 3 + close + 3;
        let word = text.get(inner.clone())?.to_owned();
        return Some((Token { kind: TokenKind::Block, word, inner, outer: at..end }, end));
    }
    let open = rest.chars().next()?;
    let close = closing_of(open)?;
    let body = rest.get(open.len_utf8()..)?;
    let mut length = None;
    for (index, character) in body.char_indices() {
        // Writers mix the kinds of one family: „low“ and “high”.
        let closes = character == close
            || (close == '\u{201d}' && matches!(character, '\u{201c}' | '"'))
            || (close == '\u{2019}' && character == '\'');
        let after = body.get(index + character.len_utf8()..)?.chars().next();
        // An apostrophe inside a word closes nothing.
        let at_boundary = after.is_none_or(|next| !next.is_alphanumeric());
        if closes && index > 0 && at_boundary {
            length = Some((index, character.len_utf8()));
            break;
        }
        if closes && index == 0 && open != '\'' {
            length = Some((0, character.len_utf8()));
            break;
        }
    }
    let (length, closing) = length?;
    let inner = at + open.len_utf8()..at + open.len_utf8() + length;
    let end = inner.end + closing;
    let word = text.get(inner.clone())?.to_owned();
    Some((Token { kind: TokenKind::Quoted, word, inner, outer: at..end }, end))
}

fn push_word(text: &str, outer: Range<usize>, tokens: &mut Vec<Token>) {
    let raw = text.get(outer.clone()).unwrap_or_default();
    let trimmed = trim_punctuation(raw);
    if trimmed.is_empty() {
        // Something like `->` or a dash is a word of its own.
        // A full stop behind a quote is no path.
        let alone =
            text.get(..outer.start).is_none_or(|before| before.is_empty() || before.ends_with(char::is_whitespace));
        let keep = alone && matches!(raw, "->" | "=>" | "→" | "-" | "." | ".." | "?");
        if keep && raw != "-" && raw != "?" {
            let word = if raw == "→" || raw == "=>" { "->" } else { raw };
            tokens.push(Token { kind: TokenKind::Word, word: word.to_owned(), inner: outer.clone(), outer });
        }
        return;
    }
    let start = outer.start + raw.find(trimmed).unwrap_or(0);
    let inner = start..start + trimmed.len();
    let lower = trimmed.to_lowercase().replace(['\u{2019}', '\u{2018}'], "'");
    for word in expand(&lower) {
        let inner = if word.1 { inner.start..inner.end - "'s".len() } else { inner.clone() };
        tokens.push(Token { kind: TokenKind::Word, word: word.0, inner, outer: outer.clone() });
    }
}

fn trim_punctuation(raw: &str) -> &str {
    if raw == "." || raw == ".." {
        return "";
    }
    let start = raw.trim_start_matches(['(', '[', '{', '<', ',', ';', '¿', '¡', '"', '\u{201c}']);
    // `foo()` keeps its brackets: they say that it is a function.
    let mut end = start.trim_end_matches([',', ';', ':', '!', '?', ']', '}', '>', '"', '\u{201d}', '…']);
    if !end.ends_with("()") {
        let open = end.matches('(').count();
        while end.ends_with(')') && end.matches(')').count() > open {
            end = end.trim_end_matches(')');
        }
    }
    let mut end = end.trim_end_matches([',', ';', ':', '!', '?']);
    while end.ends_with('.') && !end.ends_with("..") && end.len() > 1 {
        end = &end[..end.len() - 1];
    }
    if end.chars().all(|c| !c.is_alphanumeric() && !matches!(c, '.' | '/' | '~' | '*' | '_' | '$' | '@' | '#' | '-')) {
        return "";
    }
    if end.chars().all(|c| matches!(c, '-' | '.' | '…')) && end != "." && end != ".." { "" } else { end }
}

/// Contractions become two words; a possessive loses its ending (marked by `true`).
fn expand(word: &str) -> Vec<(String, bool)> {
    let plain = |parts: &[&str]| parts.iter().map(|part| ((*part).to_owned(), false)).collect();
    match word {
        "what's" | "whats" => plain(&["what", "is"]),
        "where's" | "wheres" => plain(&["where", "is"]),
        "who's" => plain(&["who", "is"]),
        "how's" => plain(&["how", "is"]),
        "it's" => plain(&["it", "is"]),
        "that's" => plain(&["that", "is"]),
        "there's" => plain(&["there", "is"]),
        "here's" => plain(&["here", "is"]),
        "let's" | "lets" => plain(&["let", "us"]),
        "i'd" => plain(&["i", "would"]),
        "i'm" => plain(&["i", "am"]),
        "i've" => plain(&["i", "have"]),
        "you'd" => plain(&["you", "would"]),
        "don't" | "dont" => plain(&["do", "not"]),
        "doesn't" => plain(&["does", "not"]),
        "didn't" => plain(&["did", "not"]),
        "isn't" => plain(&["is", "not"]),
        "aren't" => plain(&["are", "not"]),
        "can't" | "cannot" => plain(&["can", "not"]),
        "won't" => plain(&["will", "not"]),
        "wanna" => plain(&["want", "to"]),
        "pls" | "plz" => plain(&["please"]),
        _ => match word.strip_suffix("'s") {
            Some(owner) if !owner.is_empty() => vec![(owner.to_owned(), true)],
            _ => plain(&[word]),
        },
    }
}

/// Phrases before a request that do not change what is asked.
const LEADING: &[&[&str]] = &[
    &["please"],
    &["kindly"],
    &["hey"],
    &["hi"],
    &["hello"],
    &["ok"],
    &["okay"],
    &["alright"],
    &["great"],
    &["good"],
    &["perfect"],
    &["thanks"],
    &["so"],
    &["now"],
    &["then"],
    &["next"],
    &["well"],
    &["just"],
    &["quickly"],
    &["also"],
    &["pi"],
    &["guide"],
    &["there"],
    &["do", "you", "know"],
    &["do", "you", "think", "you", "can"],
    &["would", "you", "mind"],
    &["would", "you", "be", "so", "kind"],
    &["can", "i", "ask"],
    &["may", "i", "ask"],
    &["can", "you"],
    &["could", "you"],
    &["would", "you"],
    &["will", "you"],
    &["can", "we"],
    &["could", "we"],
    &["i", "want", "you", "to"],
    &["i", "need", "you", "to"],
    &["i", "would", "like", "you", "to"],
    &["i", "would", "like", "to"],
    &["i", "would", "love", "to"],
    &["i", "want", "to"],
    &["i", "need", "to"],
    &["i", "wonder"],
    &["i", "am", "wondering"],
    &["i", "was", "wondering"],
    &["i", "am", "trying", "to"],
    &["if", "you", "can"],
    &["let", "us"],
    &["let", "me", "know"],
    &["let", "me", "see"],
    &["help", "me", "to"],
    &["help", "me"],
    &["tell", "me", "about", "it"],
    &["know"],
    &["see"],
    &["understand"],
    &["to"],
];

/// Words that say that the request goes on from the one before.
const CONTINUING: &[&[&str]] =
    &[&["and", "what", "about"], &["and", "how", "about"], &["what", "about"], &["how", "about"], &["and"]];

fn strip_leading(tokens: &mut Vec<Token>, continues: &mut bool) {
    loop {
        if let Some(length) = prefix(tokens, CONTINUING) {
            *continues = true;
            tokens.drain(..length);
        } else if let Some(length) = prefix(tokens, LEADING) {
            tokens.drain(..length);
        } else if prefix(tokens, &[&["tell", "me", "about"]]).is_none()
            && let Some(length) = prefix(tokens, &[&["tell", "me"]])
        {
            tokens.drain(..length);
        } else {
            return;
        }
    }
}

/// The length of a phrase that the tokens begin with; at least one token must be left.
fn prefix(tokens: &[Token], phrases: &[&[&str]]) -> Option<usize> {
    phrases.iter().map(|phrase| (phrase, phrase.len())).find_map(|(phrase, length)| {
        let matches = tokens.len() > length
            && phrase.iter().zip(tokens).all(|(word, token)| token.kind == TokenKind::Word && token.word == *word);
        matches.then_some(length)
    })
}

const TRAILING: &[&[&str]] = &[
    &["please"],
    &["thanks"],
    &["thank", "you"],
    &["for", "me"],
    &["for", "us"],
    &["right", "now"],
    &["if", "you", "can"],
    &["if", "possible"],
    &["now"],
    &["too"],
    &["as", "well"],
    &["then"],
];

fn strip_trailing(tokens: &mut Vec<Token>) {
    while let Some(length) = TRAILING.iter().find_map(|phrase| {
        let start = tokens.len().checked_sub(phrase.len()).filter(|start| *start > 0)?;
        let same = phrase.iter().zip(&tokens[start..]).all(|(word, token)| !token.is_quoted() && token.word == *word);
        same.then_some(phrase.len())
    }) {
        tokens.truncate(tokens.len() - length);
    }
}

/// Whether a word looks like the path of a file or folder.
pub(super) fn looks_like_path(text: &str) -> bool {
    let text = text.trim();
    if text.is_empty() || text.len() > 400 || text.contains(['\n', '\t', '(', '"', '\'', '=', ';', '|']) {
        return false;
    }
    if text.contains("::") || text.contains("://") {
        return false;
    }
    let name = text.trim_end_matches('/').rsplit('/').next().unwrap_or(text);
    if text.contains('/') {
        return !text.contains("//") && text.chars().any(char::is_alphanumeric) && !text.contains(' ')
            || text.starts_with('/') && !text.contains(' ');
    }
    if matches!(name, "." | ".." | "~") || is_known_file(name) {
        return true;
    }
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let plain_extension = (1..=12).contains(&extension.len())
        && extension.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        && extension.chars().any(|c| c.is_ascii_alphabetic());
    let hidden_file = stem.is_empty() && name.len() > 1;
    // `e.g` and `i.e` are not files, nor is a number such as 1.5x.
    (plain_extension && !name.contains(' ') && (stem.len() > 1 || known_extension(extension)) || hidden_file)
        && !matches!(name, "e.g" | "i.e" | "etc")
}

fn is_known_file(name: &str) -> bool {
    matches!(
        name.to_ascii_lowercase().as_str(),
        "makefile"
            | "dockerfile"
            | "containerfile"
            | "rakefile"
            | "gemfile"
            | "procfile"
            | "justfile"
            | "vagrantfile"
            | "jenkinsfile"
            | "brewfile"
            | "cmakelists.txt"
            | "readme"
            | "license"
            | "licence"
            | "changelog"
            | "contributing"
            | "authors"
            | "copying"
            | "notice"
    )
}

fn known_extension(extension: &str) -> bool {
    super::language::Language::of_extension(extension).is_some() || matches!(extension, "txt" | "md" | "log" | "lock")
}

/// Whether a path names a file with an extension.
pub(super) fn has_extension(path: &str) -> bool {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    !path.ends_with('/')
        && name
            .rsplit_once('.')
            .is_some_and(|(stem, extension)| !stem.is_empty() && !extension.is_empty() && stem != ".")
}

/// Whether a word looks like a name in a program.
pub(super) fn looks_like_identifier(text: &str) -> bool {
    let bare = text.trim_end_matches("()").trim_end_matches('!');
    let well_formed = !bare.is_empty()
        && bare.len() <= 120
        && bare.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '.' | '$' | '#'))
        && bare.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_' || c == '$');
    if !well_formed {
        return false;
    }
    let inner_capital = bare.chars().skip(1).any(char::is_uppercase) && bare.chars().any(char::is_lowercase);
    let all_capitals = bare.len() > 2 && bare.chars().all(|c| c.is_uppercase() || c == '_' || c.is_numeric());
    bare.contains('_') || bare.contains("::") || text.ends_with("()") || inner_capital || all_capitals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        Utterance::parse(text).tokens.into_iter().map(|token| token.word).collect()
    }

    #[test]
    fn polite_forms_and_contractions_do_not_matter() {
        let plain = words("what is in this folder");
        for text in [
            "What's in this folder?",
            "Could you please tell me what is in this folder?",
            "hey, I'd like to know what’s in this folder, please!",
            "Hi pi, can you tell me what is in this folder, thanks",
        ] {
            assert_eq!(words(text), plain, "{text}");
        }
    }

    #[test]
    fn quotes_of_every_kind_keep_their_text_whole() {
        for text in [
            "replace \"old name\" by 'new one' in a.txt",
            "replace “old name” by ‘new one’ in a.txt.",
            "replace „old name“ by «new one» in a.txt!",
            "replace `old name` by `new one` in a.txt",
        ] {
            assert_eq!(words(text), ["replace", "old name", "by", "new one", "in", "a.txt"], "{text}");
        }
        assert_eq!(words("it's the user's file"), ["it", "is", "the", "user", "file"]);
    }

    #[test]
    fn a_block_and_attachments_are_kept_apart_from_the_request() {
        let said = Utterance::parse("<file name=\"/p/a.rs\">\nfn main() {}\n</file>\nexplain this");
        assert_eq!(said.attachments, [Attachment { name: "/p/a.rs".into(), content: "fn main() {}".into() }]);
        assert_eq!(said.tokens.len(), 2);
        let said = Utterance::parse("create x.py with:\n```python\nprint(1)\n\nprint(2)\n```");
        let block = said.tokens.last().unwrap();
        assert_eq!((block.kind, block.word.as_str()), (TokenKind::Block, "print(1)\n\nprint(2)\n"));
    }

    #[test]
    fn paths_and_identifiers_are_told_from_words() {
        for path in ["Cargo.toml", "src/main.rs", "./x", "README", "a.py", ".gitignore", "/etc/hosts", "crates/pi-ai/"]
        {
            assert!(looks_like_path(path), "{path}");
        }
        for word in ["folder", "e.g", "Foo::bar", "foo()", "1.5", "and/or it", "http://x.y/z", ""] {
            assert!(!looks_like_path(word), "{word}");
        }
        for name in ["parse_line", "HttpClient", "Foo::bar", "main()", "MAX", "camelCase"] {
            assert!(looks_like_identifier(name), "{name}");
        }
        for word in ["where", "Folder", "a-b", "12"] {
            assert!(!looks_like_identifier(word), "{word}");
        }
    }

    #[test]
    fn any_text_can_be_taken_apart() {
        for text in ["", "'", "\"", "``` ```", "“", "...", "?", "'a", "( ( )", "->", "\u{200d}", "```\nopen"] {
            let said = Utterance::parse(text);
            for index in 0..=said.tokens.len() {
                let _ = said.slice(0..index);
                let _ = said.rest_from(index);
            }
        }
    }
}
