//! Patterns for model ids, as shells have them.

/// A pattern: `*` and `?` stay within a part between slashes, `**` as a whole part stands for any number of parts,
/// `[a-z]`, `[!a-z]` and `[[:digit:]]` are classes, `{a,b}` alternatives, `@(a|b)` `?(…)` `*(…)` `+(…)` `!(…)` groups,
/// a leading `!` turns the whole around, a leading `#` makes it a comment, and `\` takes the next character as it is.
/// Case does not count.
#[derive(Clone, Debug)]
pub(super) struct Glob {
    /// One for each way to read the braces; each is its parts between slashes.
    alternatives: Vec<Vec<String>>,
    negated: bool,
}

/// More alternatives than anybody writes; braces beyond that are plain text.
const MAX_ALTERNATIVES: usize = 1000;

impl Glob {
    /// Whether a text is to be read as a pattern.
    pub(super) fn is_pattern(text: &str) -> bool {
        text.contains(['*', '?', '['])
    }

    pub(super) fn new(pattern: &str) -> Self {
        if pattern.starts_with('#') {
            return Self { alternatives: Vec::new(), negated: false };
        }
        let bangs = pattern.len() - pattern.trim_start_matches('!').len();
        let mut alternatives = vec![pattern[bangs..].to_lowercase()];
        while alternatives.len() < MAX_ALTERNATIVES {
            let Some((at, expanded)) =
                alternatives.iter().enumerate().find_map(|(at, text)| Some((at, expand_braces(text)?)))
            else {
                break;
            };
            alternatives.splice(at..=at, expanded);
        }
        let parts = |text: &String| split(text, '/').into_iter().map(str::to_owned).collect();
        Self { alternatives: alternatives.iter().map(parts).collect(), negated: bangs % 2 == 1 }
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let parts: Vec<Vec<char>> =
            text.split('/').filter(|part| !part.is_empty()).map(|part| part.chars().collect()).collect();
        let fits = self.alternatives.iter().any(|pattern| {
            // A slash at the end asks for a folder, which no model is.
            let open = pattern.last().is_some_and(String::is_empty);
            let pattern: Vec<Vec<char>> =
                pattern.iter().filter(|part| !part.is_empty()).map(|part| part.chars().collect()).collect();
            !open && parts_match(&pattern, &parts)
        });
        fits != self.negated
    }
}

fn parts_match(pattern: &[Vec<char>], text: &[Vec<char>]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((first, rest)) if first[..] == ['*', '*'] => {
            let hidden = text.iter().position(|part| part.first() == Some(&'.')).unwrap_or(text.len());
            let least = usize::from(rest.is_empty());
            (least..=hidden).any(|taken| parts_match(rest, &text[taken..]))
        }
        Some((first, rest)) => match text.split_first() {
            Some((part, after)) => {
                // A wildcard does not stand for a leading dot.
                let hidden = part.first() == Some(&'.') && matches!(first.first(), Some('*' | '?' | '['));
                !hidden && matches_here(first, part) && parts_match(rest, after)
            }
            None => false,
        },
    }
}

/// Whether a pattern stands for the whole text; no slashes in either.
fn matches_here(pattern: &[char], text: &[char]) -> bool {
    let Some((first, rest)) = pattern.split_first() else { return text.is_empty() };
    if let ('@' | '?' | '*' | '+' | '!', Some('(')) = (first, rest.first())
        && let Some(group) = Group::read(*first, rest)
    {
        return group.matches(text);
    }
    match (first, text.split_first()) {
        ('*', _) => (0..=text.len()).any(|taken| matches_here(rest, &text[taken..])),
        ('?', Some((_, after))) => matches_here(rest, after),
        ('[', Some((c, after))) => match Class::read(rest) {
            Some((class, length)) => class.holds(*c) && matches_here(&rest[length..], after),
            None => *c == '[' && matches_here(rest, after),
        },
        ('\\', Some((c, after))) if !rest.is_empty() => rest[0] == *c && matches_here(&rest[1..], after),
        (literal, Some((c, after))) => literal == c && matches_here(rest, after),
        (_, None) => false,
    }
}

/// `@(a|b)` and its like, and the pattern behind it.
struct Group<'p> {
    kind: char,
    choices: Vec<&'p [char]>,
    rest: &'p [char],
}

impl<'p> Group<'p> {
    /// Reads what follows the kind; `None` when no bracket closes it.
    fn read(kind: char, pattern: &'p [char]) -> Option<Self> {
        let mut depth = 0;
        let mut choices = Vec::new();
        let mut start = 1;
        for (at, c) in pattern.iter().enumerate() {
            match c {
                '(' => depth += 1,
                '|' if depth == 1 => {
                    choices.push(&pattern[start..at]);
                    start = at + 1;
                }
                ')' if depth == 1 => {
                    choices.push(&pattern[start..at]);
                    return Some(Self { kind, choices, rest: &pattern[at + 1..] });
                }
                ')' => depth -= 1,
                _ => {}
            }
        }
        None
    }

    fn matches(&self, text: &[char]) -> bool {
        let one = |text: &[char]| self.choices.iter().any(|choice| matches_here(choice, text));
        let mut splits = (0..=text.len()).map(|at| text.split_at(at));
        match self.kind {
            '@' => splits.any(|(head, tail)| one(head) && matches_here(self.rest, tail)),
            '?' => splits.any(|(head, tail)| (head.is_empty() || one(head)) && matches_here(self.rest, tail)),
            '!' => splits.any(|(head, tail)| !one(head) && matches_here(self.rest, tail)),
            kind => {
                let none = kind == '*' && matches_here(self.rest, text);
                none || splits.any(|(head, tail)| {
                    let again = Group { kind: '*', choices: self.choices.clone(), rest: self.rest };
                    !head.is_empty() && one(head) && again.matches(tail)
                        || head.is_empty() && one(head) && matches_here(self.rest, tail)
                })
            }
        }
    }
}

/// A set of characters.
struct Class {
    members: Vec<Member>,
    negated: bool,
}

enum Member {
    Range(char, char),
    Named(Holds),
}

type Holds = fn(char) -> bool;

impl Class {
    /// Reads what follows a `[`; gives the class and how long it is with its `]`. `None` when it has no end.
    fn read(pattern: &[char]) -> Option<(Self, usize)> {
        let negated = matches!(pattern.first(), Some('!' | '^'));
        let first = usize::from(negated);
        let mut members = Vec::new();
        let mut at = first;
        loop {
            let rest = pattern.get(at..)?;
            if let Some((named, length)) = named(rest) {
                members.push(Member::Named(named));
                at += length;
                continue;
            }
            match rest {
                // A `]` that comes first is a member.
                [']', ..] if at > first => return Some((Self { members, negated }, at + 1)),
                ['\\', escaped, ..] => {
                    members.push(Member::Range(*escaped, *escaped));
                    at += 2;
                }
                [from, '-', to, ..] if *to != ']' => {
                    members.push(Member::Range(*from, *to));
                    at += 3;
                }
                [member, ..] => {
                    members.push(Member::Range(*member, *member));
                    at += 1;
                }
                [] => return None,
            }
        }
    }

    fn holds(&self, c: char) -> bool {
        let found = self.members.iter().any(|member| match member {
            Member::Range(from, to) => (from..=to).contains(&&c),
            Member::Named(named) => named(c),
        });
        found != self.negated
    }
}

/// `[:alpha:]` and its like, and how long it is.
fn named(pattern: &[char]) -> Option<(Holds, usize)> {
    let classes: [(&str, Holds); 6] = [
        ("[:alpha:]", char::is_alphabetic),
        ("[:digit:]", |c| c.is_ascii_digit()),
        ("[:alnum:]", char::is_alphanumeric),
        ("[:lower:]", char::is_alphabetic),
        ("[:upper:]", char::is_alphabetic),
        ("[:punct:]", |c| c.is_ascii_punctuation()),
    ];
    let begins = |name: &str| name.chars().zip(pattern).filter(|(a, b)| a == *b).count() == name.len();
    classes.into_iter().find(|(name, _)| begins(name)).map(|(name, holds)| (holds, name.len()))
}

/// Reads the first pair of braces that has a comma; `None` when there is none.
fn expand_braces(text: &str) -> Option<Vec<String>> {
    for (open, _) in text.match_indices('{') {
        let mut depth = 0;
        let Some(length) = text[open..].char_indices().find_map(|(at, c)| {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(at)
        }) else {
            continue;
        };
        let inside = &text[open + 1..open + length];
        let choices = split(inside, ',');
        if choices.len() > 1 {
            let (before, after) = (&text[..open], &text[open + length + 1..]);
            return Some(choices.into_iter().map(|choice| format!("{before}{choice}{after}")).collect());
        }
    }
    None
}

/// Splits at a character that is in no brackets.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut depth = 0_i32;
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' | '(' => depth += 1,
            '}' | ')' => depth -= 1,
            c if c == separator && depth <= 0 => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_shells_do() {
        for (pattern, yes, no) in [
            ("*", &["abc", "ABC"][..], &["a/b", ".hidden"][..]),
            ("a*c", &["ac", "abbc"], &["abcd", "a/c"]),
            ("g?t-5", &["gpt-5"], &["gt-5", "gppt-5"]),
            ("one/*", &["one/a", "One/B"], &["one", "one/a/b"]),
            ("one/**", &["one/a", "one/a/b"], &["two/a", "one"]),
            ("**", &["a", "a/b"], &[".a"]),
            ("a**", &["ab"], &["a/b"]),
            ("**/b", &["b", "a/b", "a/a/b"], &["a/c"]),
            ("[a-c]*[!0-9]", &["abx", "cz"], &["dx", "ab9"]),
            ("[]x]", &["]", "x"], &["y"]),
            ("[a", &["[a"], &["a"]),
            ("a{b,c{d,e}}f", &["abf", "acdf", "acef"], &["acf", "af"]),
            ("@(gpt|claude)-*", &["gpt-5", "claude-x"], &["gemini-1"]),
            ("x+(ab)", &["xab", "xabab"], &["x", "xa"]),
            ("x*(ab)y", &["xy", "xababy"], &["xay"]),
            ("?(x)y", &["y", "xy"], &["xxy"]),
            ("x!(ab)", &["xac", "x"], &["xab"]),
            ("[[:digit:]_]*", &["1x", "_x"], &["ax"]),
            ("[\\]]", &["]"], &["\\"]),
            ("[a-]x", &["-x", "ax"], &["bx"]),
            ("*/", &[], &["a"]),
            ("#a*", &[], &["#ab"]),
            ("http://*/**", &["http://host/v1/llama"], &["https://host/v1"]),
            ("!*mini*", &["gpt-5"], &["gpt-5-mini"]),
            ("a\\*", &["a*"], &["ab"]),
            ("{a}*", &["{a}b"], &["ab"]),
        ] {
            let glob = Glob::new(pattern);
            for text in yes {
                assert!(glob.matches(text), "{pattern} should match {text}");
            }
            for text in no {
                assert!(!glob.matches(text), "{pattern} should not match {text}");
            }
        }
    }
}
