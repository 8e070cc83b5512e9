//! Path patterns as settings, manifests and ignore files use them.

/// A pattern for paths with `/`: `*` and `?` within one part, `**` for any number of parts, `[a-z]` and `[!a]` for one
/// character, `{a,b}` for either.
///
/// Small on purpose: the engine of the `search` feature is not there in every build, but patterns in settings are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    /// One list of parts per way of choosing between braces.
    alternatives: Vec<Vec<String>>,
}

/// Nested braces multiply; more than this is no honest pattern.
const MOST_ALTERNATIVES: usize = 256;

impl Glob {
    pub(crate) fn new(pattern: &str) -> Self {
        let mut alternatives = expand_braces(pattern);
        alternatives.truncate(MOST_ALTERNATIVES);
        Self { alternatives: alternatives.iter().map(|text| text.split('/').map(str::to_owned).collect()).collect() }
    }

    /// Whether the whole path fits.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let path: Vec<&str> = path.split('/').collect();
        self.alternatives.iter().any(|pattern| parts_match(pattern, &path))
    }
}

/// Whether a text has a sign that makes it a pattern.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

fn expand_braces(pattern: &str) -> Vec<String> {
    let Some((open, close, commas)) = first_braces(pattern) else { return vec![pattern.to_owned()] };
    let (before, after) = (&pattern[..open], &pattern[close + 1..]);
    let mut starts = vec![open + 1];
    starts.extend(commas.iter().map(|comma| comma + 1));
    let ends = commas.iter().copied().chain([close]);
    let mut expanded = Vec::new();
    for (start, end) in starts.into_iter().zip(ends) {
        let whole = format!("{before}{}{after}", &pattern[start..end]);
        expanded.extend(expand_braces(&whole));
        if expanded.len() > MOST_ALTERNATIVES {
            break;
        }
    }
    expanded
}

/// The first braces with a comma of their own between them.
fn first_braces(pattern: &str) -> Option<(usize, usize, Vec<usize>)> {
    let mut from = 0;
    while let Some(open) = pattern.get(from..)?.find('{').map(|at| from + at) {
        let (mut depth, mut commas) = (0, Vec::new());
        for (offset, c) in pattern.get(open..)?.char_indices() {
            match c {
                '{' => depth += 1,
                ',' if depth == 1 => commas.push(open + offset),
                '}' => {
                    depth -= 1;
                    if depth == 0 {
                        if commas.is_empty() {
                            break;
                        }
                        return Some((open, open + offset, commas));
                    }
                }
                _ => {}
            }
        }
        from = open + 1;
    }
    None
}

fn parts_match(pattern: &[String], path: &[&str]) -> bool {
    // Going back to the last `**` is enough: an earlier one cannot do better.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < path.len() {
        match pattern.get(p) {
            Some(part) if part == "**" => {
                star = Some((p, n));
                p += 1;
            }
            Some(part) if name_matches(part, path[n]) => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((at, begun)) => {
                    star = Some((at, begun + 1));
                    (p, n) = (at + 1, begun + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|part| part == "**")
}

fn name_matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<Sign> = signs(pattern);
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(Sign::Any) => {
                star = Some((p, n));
                p += 1;
            }
            Some(sign) if sign.fits(name[n]) => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((at, begun)) => {
                    star = Some((at, begun + 1));
                    (p, n) = (at + 1, begun + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|sign| matches!(sign, Sign::Any))
}

enum Sign {
    /// `*`
    Any,
    /// `?`
    One,
    Character(char),
    Class {
        not: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Sign {
    fn fits(&self, c: char) -> bool {
        match self {
            Self::Any => false,
            Self::One => true,
            Self::Character(own) => *own == c,
            Self::Class { not, ranges } => ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *not,
        }
    }
}

fn signs(pattern: &str) -> Vec<Sign> {
    let mut signs = Vec::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        signs.push(match c {
            '*' => Sign::Any,
            '?' => Sign::One,
            '\\' => match rest.chars().next() {
                Some(escaped) => {
                    rest = &rest[escaped.len_utf8()..];
                    Sign::Character(escaped)
                }
                None => Sign::Character('\\'),
            },
            '[' => match class(rest) {
                Some((sign, after)) => {
                    rest = after;
                    sign
                }
                None => Sign::Character('['),
            },
            other => Sign::Character(other),
        });
    }
    signs
}

fn class(text: &str) -> Option<(Sign, &str)> {
    let (not, body) = match text.strip_prefix(['!', '^']) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    // A bracket right at the start is meant as itself.
    let end = body.char_indices().skip(1).find(|(_, c)| *c == ']')?.0;
    let characters: Vec<char> = body.get(..end)?.chars().collect();
    let mut ranges = Vec::new();
    let mut index = 0;
    while let Some(from) = characters.get(index) {
        match (characters.get(index + 1), characters.get(index + 2)) {
            (Some('-'), Some(to)) => {
                ranges.push((*from, *to));
                index += 3;
            }
            _ => {
                ranges.push((*from, *from));
                index += 1;
            }
        }
    }
    Some((Sign::Class { not, ranges }, body.get(end + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_paths() {
        for (pattern, path, fits) in [
            ("crates/*", "crates/a", true),
            ("crates/*", "crates/a/b", false),
            ("crates/**", "crates/a/b", true),
            ("**/x", "x", true),
            ("**/x", "a/b/x", true),
            ("a/**/b/*.md", "a/x/b/y/b/z.md", true),
            ("*.{md,txt}", "a.txt", true),
            ("{a,b{c,d}}/x", "bd/x", true),
            ("{a}", "{a}", true),
            ("[a-c]?", "bz", true),
            ("[!a-c]", "b", false),
            ("[]]", "]", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("ä*", "äö", true),
            ("", "", true),
            ("*a*b*c*", "xxaxxbxxcxx", true),
            ("*a*b*c*", "xxaxxcxxbxx", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(path), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn hostile_patterns_take_no_time() {
        let stars = "*a".repeat(200);
        assert!(!Glob::new(&stars).matches(&"a".repeat(190)));
        let _ = Glob::new(&"{a,b}".repeat(60)).matches("x");
        for pattern in ["[", "[a", "{", "{,", "}", "\\", "[!", "[^]", "{{{{,}}"] {
            let _ = Glob::new(pattern).matches("a");
        }
    }
}
