#![cfg(feature = "search")]

use std::sync::Arc;

use pi_ai::CancellationToken;
use pi_coding_agent::tools::builtin::BuiltinTool::{Find, Grep};
use pi_coding_agent::workspace::local::{Access, LocalFiles};
use pi_coding_agent::workspace::{CaseRule, FindQuery, GrepQuery, Pattern, search_over_files};
use serde_json::json;

use super::Project;

/// A project with files that are found, hidden, ignored and not for searching.
fn tree() -> Project {
    let project = Project::new();
    for (path, content) in [
        ("src/main.rs", "fn main() {\n    // needle one\n}\n"),
        ("src/deep/lib.rs", "needle two\n"),
        ("README.md", "a needle\n"),
        (".github/ci.yml", "needle: hidden\n"),
        (".env.example", "NEEDLE=1\n"),
        (".git/config", "needle in git\n"),
        (".gitignore", "build/\n*.log\n!keep.log\n"),
        ("build/out.txt", "needle built\n"),
        ("a.log", "needle logged\n"),
        ("keep.log", "needle kept\n"),
        ("src/.ignore", "secret.rs\n"),
        ("src/secret.rs", "needle secret\n"),
    ] {
        project.put(path, content);
    }
    project
}

#[tokio::test]
async fn what_is_hidden_is_searched_and_what_is_ignored_is_not() {
    let project = tree();
    let text = project.text(Grep, json!({"pattern": "needle"})).await;
    assert_eq!(
        text,
        ".github/ci.yml:1: needle: hidden\nREADME.md:1: a needle\nkeep.log:1: needle kept\n\
         src/deep/lib.rs:1: needle two\nsrc/main.rs:2:     // needle one"
    );
    let text = project.text(Find, json!({"pattern": "*"})).await;
    assert_eq!(
        text,
        ".env.example\n.github/\n.github/ci.yml\n.gitignore\nREADME.md\nkeep.log\nsrc/\nsrc/.ignore\nsrc/deep/\n\
         src/deep/lib.rs\nsrc/main.rs"
    );
}

#[tokio::test]
async fn what_is_ignored_can_be_searched_when_it_is_named() {
    let project = tree();
    assert_eq!(
        project.text(Grep, json!({"pattern": "needle", "path": "build/out.txt"})).await,
        "out.txt:1: needle built"
    );
    assert_eq!(project.text(Grep, json!({"pattern": "needle", "path": "build"})).await, "out.txt:1: needle built");
    assert_eq!(project.text(Find, json!({"pattern": "*.txt", "path": "build"})).await, "out.txt");
    assert_eq!(project.text(Grep, json!({"pattern": "needle", "path": ".git"})).await, "config:1: needle in git");
}

#[tokio::test]
async fn ignore_files_count_outside_of_a_repository_too() {
    let project = tree();
    std::fs::remove_dir_all(project.path().join(".git")).unwrap();
    let text = project.text(Grep, json!({"pattern": "needle (logged|kept)"})).await;
    assert_eq!(text, "keep.log:1: needle kept");
}

#[tokio::test]
async fn rules_of_an_outer_repository_end_at_the_border_of_an_inner_one() {
    let project = tree();
    project.put("inner/.git/config", "");
    project.put("inner/a.log", "needle in a repository of its own\n");
    let text = project.text(Grep, json!({"pattern": "needle", "path": "inner"})).await;
    assert_eq!(text, "a.log:1: needle in a repository of its own");
}

#[tokio::test]
async fn patterns_globs_and_case() {
    let project = tree();
    let grep = async |arguments| project.text(Grep, arguments).await;
    assert_eq!(
        grep(json!({"pattern": "needle (one|two)", "glob": "./src/*.rs"})).await,
        "src/main.rs:2:     // needle one"
    );
    assert_eq!(grep(json!({"pattern": "NEEDLE", "glob": "!src/**"})).await, ".env.example:1: NEEDLE=1");
    assert_eq!(
        grep(json!({"pattern": "NEEDLE=", "ignoreCase": true, "literal": true})).await,
        ".env.example:1: NEEDLE=1"
    );
    assert_eq!(grep(json!({"pattern": "main() {", "literal": true})).await, "src/main.rs:1: fn main() {");
    assert_eq!(grep(json!({"pattern": "no such thing"})).await, "No matches found");
    let find = async |pattern: &str| project.text(Find, json!({"pattern": pattern})).await;
    assert_eq!(find("readme.*").await, "README.md");
    assert_eq!(find("Readme.*").await, "No files found matching pattern");
    assert_eq!(find("src/*.rs").await, "src/main.rs");
    assert_eq!(find("**/*.rs").await, "src/deep/lib.rs\nsrc/main.rs");
}

#[tokio::test]
async fn errors_say_what_is_wrong() {
    let project = tree();
    let error = project.error(Grep, json!({"pattern": "a("})).await;
    assert!(error.contains("literal"), "{error}");
    let error = project.error(Grep, json!({"pattern": "a", "path": "nope"})).await;
    assert!(error.contains("Path not found: \"nope\""), "{error}");
    let error = project.error(Find, json!({"pattern": "*", "path": "README.md"})).await;
    assert!(error.contains("Not a directory"), "{error}");
    let error = project.error(Find, json!({"pattern": "a[", "path": "."})).await;
    assert!(error.contains("glob"), "{error}");
}

#[tokio::test]
async fn limits_say_what_was_left_out() {
    let project = Project::new();
    project.put("b", "x1\nc1\nx2\nc2\nc3\n");
    project.put("a", "c0\nx0\n");
    let grep = async |arguments| {
        let output = project.call(Grep, arguments).await.unwrap();
        (output.to_text(), output.details)
    };
    let (text, details) = grep(json!({"pattern": "x", "limit": 2, "context": 1})).await;
    assert!(text.starts_with("a-1- c0\na:2: x0\nb:1: x1\nb-2- c1\n\n["), "{text}");
    assert!(text.contains("limit=4"), "{text}");
    assert_eq!(details.unwrap(), json!({"matchLimitReached": 2}));
    // A match within the last one's context is shown as context.
    let (text, _) = grep(json!({"pattern": "x", "limit": 2, "context": 2, "path": "b"})).await;
    assert_eq!(text, "b:1: x1\nb-2- c1\nb:3: x2\nb-4- c2\nb-5- c3");
    let (text, _) = grep(json!({"pattern": "x", "limit": 1, "context": 2, "path": "b"})).await;
    assert!(text.starts_with("b:1: x1\nb-2- c1\nb-3- x2\n\n["), "{text}");
    // All were shown: nothing was left out.
    let (text, details) = grep(json!({"pattern": "x", "limit": 3})).await;
    assert_eq!((text.as_str(), details), ("a:2: x0\nb:1: x1\nb:3: x2", None));

    let output = project.call(Find, json!({"pattern": "*", "limit": 1})).await.unwrap();
    assert!(output.to_text().starts_with("a\n\n["), "{}", output.to_text());
    assert_eq!(output.details.unwrap(), json!({"resultLimitReached": 1}));
    assert_eq!(project.text(Find, json!({"pattern": "*", "limit": 2.9})).await, "a\nb");
}

#[tokio::test]
async fn too_much_text_is_cut_and_counted() {
    let project = Project::new();
    let line = "x".repeat(99) + "\n";
    for name in ["a", "b", "c"] {
        project.put(name, line.repeat(400));
    }
    let output = project.call(Grep, json!({"pattern": "x", "limit": 1100})).await.unwrap();
    let details = output.details.clone().unwrap();
    assert_eq!(details["truncation"]["totalLines"], 1100);
    // `a:1: ` to `c:300: ` in front of each line, and a line break between two.
    let heads: usize = [(9, 5), (90, 6), (301, 7)].iter().map(|(count, head)| count * head).sum::<usize>() * 2
        + [(9, 5), (90, 6), (201, 7)].iter().map(|(count, head)| count * head).sum::<usize>();
    assert_eq!(details["truncation"]["totalBytes"], 1100 * 99 + heads + 1099);
    assert_eq!(details["matchLimitReached"], 1100);
    assert!(output.to_text().len() < 52_000);
}

#[tokio::test]
async fn a_long_line_of_wide_characters_is_cut_between_two_of_them() {
    let project = Project::new();
    project.put("minified.js", "漢".repeat(350_000) + "needle" + &"字".repeat(10));
    let output = project.call(Grep, json!({"pattern": "needle"})).await.unwrap();
    let text = output.to_text();
    let expected = format!("minified.js:1: {}... [truncated]\n\n[", "漢".repeat(500));
    assert!(text.starts_with(&expected), "{}", &text[..200]);
    assert_eq!(output.details.unwrap(), json!({"linesTruncated": true}));
    let sample = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/wide-characters.txt")).unwrap();
    project.put("wide.txt", sample);
    assert!(project.text(Grep, json!({"pattern": ".", "path": "wide.txt"})).await.contains("[truncated]"));
}

#[tokio::test]
async fn binary_files_are_passed_over_unless_they_are_named() {
    let project = Project::new();
    project.put("binary", b"\0\0needle\n");
    project.put("late", [b"needle\n".as_slice(), &b"text\n".repeat(40_000), b"\0needle\n"].concat());
    let text = project.text(Grep, json!({"pattern": "needle"})).await;
    assert!(text.starts_with("late:1: needle\n\n[Binary") && text.contains("late"), "{text}");
    let text = project.text(Grep, json!({"pattern": "needle", "path": "binary"})).await;
    assert!(text.starts_with("No matches found\n\n[Binary"), "{text}");
}

#[tokio::test]
async fn wide_encodings_with_a_mark_are_searched() {
    let project = Project::new();
    let wide: Vec<u8> = "\u{feff}one\r\nneedle\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    project.put("wide.txt", wide);
    assert_eq!(project.text(Grep, json!({"pattern": "needle$"})).await, "No matches found");
    assert_eq!(project.text(Grep, json!({"pattern": "needle"})).await, "wide.txt:2: needle");
}

#[cfg(unix)]
#[tokio::test]
async fn links_are_not_followed_and_loops_end() {
    let project = tree();
    std::os::unix::fs::symlink(".", project.path().join("src/loop")).unwrap();
    std::os::unix::fs::symlink("main.rs", project.path().join("src/link.rs")).unwrap();
    let text = project.text(Grep, json!({"pattern": "needle", "path": "src"})).await;
    assert_eq!(text, "deep/lib.rs:1: needle two\nmain.rs:2:     // needle one");
    assert_eq!(project.text(Find, json!({"pattern": "l*", "path": "src"})).await, "deep/lib.rs\nlink.rs\nloop");
}

#[tokio::test]
async fn an_abort_ends_a_search() {
    let project = tree();
    let signal = CancellationToken::new();
    signal.cancel();
    for tool in [Grep, Find] {
        let error = project.call_with(tool, json!({"pattern": "needle"}), signal.clone()).await.unwrap_err();
        assert_eq!(error, "Operation aborted");
    }
}

/// A tree below which the paths are longer than the system takes, so that not even root can read all of it.
#[cfg(target_os = "linux")]
fn deep_tree() -> (Project, String) {
    let project = Project::new();
    let part = |letter: &str| vec![letter.repeat(200); 12].join("/");
    project.put(&format!("{}/found.txt", part("a")), "needle\n");
    project.put(&format!("{}/lost.txt", part("b")), "needle\n");
    std::fs::rename(project.path().join("b".repeat(200)), project.path().join(part("a")).join("inner")).unwrap();
    let found = part("a");
    (project, found)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn directories_that_cannot_be_read_are_named() {
    let (project, found) = deep_tree();
    let text = project.text(Grep, json!({"pattern": "needle"})).await;
    assert!(text.starts_with(&format!("{found}/found.txt:1: needle\n\n[Could not be read: {found}/inner/b")), "{text}");
    assert!(text.ends_with("b/]"), "{text}");
    let text = project.text(Find, json!({"pattern": "*.txt"})).await;
    assert!(text.starts_with(&format!("{found}/found.txt\n\n[Could not be read: {found}/inner/b")), "{text}");
    let text = project.text(Find, json!({"pattern": "nothing"})).await;
    assert!(text.starts_with("No files found matching pattern\n\n[Could not be read: "), "{text}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_name_cannot_pass_for_another_line() {
    use pi_coding_agent::tools::builtin::BuiltinTool::Ls;

    let project = Project::new();
    project.put("a\nforged.txt:1: b\x1b[2J", "needle\n");
    let shown = r"a\nforged.txt:1: b\u{1b}[2J";
    assert_eq!(project.text(Grep, json!({"pattern": "needle"})).await, format!("{shown}:1: needle"));
    assert_eq!(project.text(Find, json!({"pattern": "*"})).await, shown);
    assert_eq!(project.text(Ls, json!({})).await, shown);
}

#[tokio::test]
async fn any_files_are_searched_as_those_of_this_machine_are() {
    let project = tree();
    project.put("inner/.git/config", "");
    project.put("inner/a.log", "needle inside\n");
    project.put("a/b", "needle\nx\nneedle\n");
    project.put("a.b", "needle\n");
    let files = Arc::new(LocalFiles::new(Access::Unrestricted, project.path().to_owned()));
    let over_files = search_over_files(files);
    let here = project.workspace().search();
    for (root, glob, context, limit) in [
        ("", None, 0, 100),
        ("", Some("*.rs"), 1, 2),
        ("src", None, 1, 1),
        ("build", None, 0, 9),
        ("", Some("!src/**"), 2, 4),
        ("a/b", None, 0, 1),
    ] {
        let query = GrepQuery {
            pattern: Pattern::Regex("needle".to_owned()),
            case: CaseRule::Insensitive,
            root: project.path().join(root),
            glob: glob.map(str::to_owned),
            context,
            limit,
            line_units: 500,
            text_bytes: 1000,
        };
        let never = CancellationToken::new();
        let one = here.grep(query.clone(), never.clone()).await.unwrap();
        let other = over_files.grep(query, never).await.unwrap();
        assert_eq!(one, other, "{root} {glob:?}");
        assert!(!one.files.is_empty());
    }
    for pattern in ["*", "*.rs", "src/**", "**/*.LOG"] {
        let query = FindQuery { pattern: pattern.to_owned(), root: project.path().to_owned(), limit: 5 };
        let never = CancellationToken::new();
        let one = here.find(query.clone(), never.clone()).await.unwrap();
        assert_eq!(one, over_files.find(query, never).await.unwrap(), "{pattern}");
    }
}
