//! The path patterns that manifests use.

/// Whether a path fits a pattern: `*` and `?` within one part, `**` any number of parts.
pub(super) fn glob_matches(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    parts_match(&pattern, &path)
}

fn parts_match(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => (0..=path.len()).any(|skipped| parts_match(rest, &path[skipped..])),
        (Some((first, rest)), Some((name, more))) => {
            name_matches(first.as_bytes(), name.as_bytes()) && parts_match(rest, more)
        }
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn name_matches(pattern: &[u8], name: &[u8]) -> bool {
    // The last `*` and where its match began: enough to go back to.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(b'?') => (p, n) = (p + 1, n + 1),
            Some(byte) if *byte == name[n] => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((at, begun)) => {
                    star = Some((at, begun + 1));
                    (p, n) = (at + 1, begun + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_manifests_fit_folders() {
        for (pattern, path, fits) in [
            ("crates/*", "crates/a", true),
            ("crates/*", "crates/a/b", false),
            ("crates/**", "crates/a/b", true),
            ("*", "xtask", true),
            ("pi-*", "pi-ai", true),
            ("pi-*-x", "pi-ai-y", false),
            ("a?c", "abc", true),
            ("crates/a", "crates/a", true),
            ("**/x", "x", true),
        ] {
            assert_eq!(glob_matches(pattern, path), fits, "{pattern} {path}");
        }
    }
}
