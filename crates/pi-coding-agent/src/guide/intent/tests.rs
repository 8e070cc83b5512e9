use super::*;

fn understood(text: &str) -> Option<Intent> {
    understand(text, None)
}

#[track_caller]
fn check(cases: &[(&str, Intent)]) {
    let wrong: Vec<String> = cases
        .iter()
        .map(|(text, intent)| (text, intent, understood(text)))
        .filter(|(_, intent, found)| found.as_ref() != Some(*intent))
        .map(|(text, intent, found)| format!("{text}\n  expected {intent:?}\n  found    {found:?}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn definition(name: &str) -> Intent {
    Intent::Definition { name: name.into() }
}

fn explain(name: &str) -> Intent {
    Intent::Explain { subject: Subject::Named(name.into()) }
}

fn replace(from: &str, to: &str, scope: Scope) -> Intent {
    Intent::Replace { from: from.into(), to: to.into(), scope, words: WholeWords::Anywhere }
}

fn tests() -> Intent {
    Intent::Tests { scope: None, command: None }
}

fn create(file: &str, content: &str) -> Intent {
    Intent::Create { file: file.into(), content: Some(content.into()), existing: Existing::Keep }
}

#[test]
fn questions_about_folders_projects_and_their_parts() {
    let here = || Intent::Overview { folder: None };
    let project = || Intent::Project { folder: None };
    let crates = || Intent::Members { kind: PartKind::Crates, named: None };
    check(&[
        ("what is in this folder", here()),
        ("What's in this directory?", here()),
        ("list the files", here()),
        ("Which files are here?", here()),
        ("show me the files in this folder", here()),
        ("ls", here()),
        ("Can you list all files, please?", here()),
        ("what do we have here?", here()),
        ("what is in src/", Intent::Overview { folder: Some("src/".into()) }),
        ("list the files in crates/pi-ai", Intent::Overview { folder: Some("crates/pi-ai".into()) }),
        ("what is this project?", project()),
        ("What does this project do?", project()),
        ("give me an overview", project()),
        ("explain this codebase to me", project()),
        ("What is this repo about", project()),
        ("Which crates does this workspace have, and what does each do?", crates()),
        ("what crates are in this workspace?", crates()),
        ("List the crates and explain each of them", crates()),
        ("Describe every crate of this workspace.", crates()),
        ("which crates are there", crates()),
        ("In this workspace, which crates exist and what are they for?", crates()),
        ("Which modules does this project have?", Intent::Members { kind: PartKind::Modules, named: None }),
        ("which packages does it have and what do they do?", Intent::Members { kind: PartKind::Packages, named: None }),
        ("what does the crate pi-ai do?", Intent::Members { kind: PartKind::Crates, named: Some("pi-ai".into()) }),
        ("explain the pi-ai crate", Intent::Members { kind: PartKind::Crates, named: Some("pi-ai".into()) }),
        ("which dependencies does it have?", Intent::Dependencies { of: None }),
        ("what language is this written in?", Intent::Languages),
        ("how do I run this?", Intent::HowTo(HowTo::Run)),
        ("how can I build the project", Intent::HowTo(HowTo::Build)),
        ("what version is this?", Intent::Fact { key: "version".into() }),
        ("what is the license?", Intent::Fact { key: "license".into() }),
        ("which are the largest files?", Intent::Largest),
    ]);
}

#[test]
fn questions_about_files_and_names() {
    let read = |file: &str, lines| Intent::Read { file: file.into(), lines };
    check(&[
        ("explain Cargo.toml", explain("Cargo.toml")),
        ("Explain `src/main.rs` to me", explain("src/main.rs")),
        ("what does src/main.rs do?", explain("src/main.rs")),
        ("Summarize README.md", explain("README.md")),
        ("please describe the file a/b.py", explain("a/b.py")),
        ("tell me about main.go", explain("main.go")),
        ("what is Makefile for", explain("Makefile")),
        ("walk me through src/lib.rs", explain("src/lib.rs")),
        ("what does parse_line do?", explain("parse_line")),
        ("explain the function parse_line", explain("parse_line")),
        ("Cargo.toml", explain("Cargo.toml")),
        ("read a.txt", read("a.txt", Lines::All)),
        ("show me src/main.rs", read("src/main.rs", Lines::All)),
        ("cat Cargo.toml", read("Cargo.toml", Lines::All)),
        ("What does notes.txt say?", read("notes.txt", Lines::All)),
        ("print the first 10 lines of a.txt", read("a.txt", Lines::First(10))),
        ("show the last five lines of a.txt", read("a.txt", Lines::Last(5))),
        ("show lines 10-20 of a.txt", read("a.txt", Lines::Range(10, 20))),
        ("show me lines 10 to 20 of a.txt", read("a.txt", Lines::Range(10, 20))),
        ("show line 7 of a.txt", read("a.txt", Lines::Range(7, 7))),
        ("show me the second line of a.txt", read("a.txt", Lines::Range(2, 2))),
        ("does src/pad.js exist?", Intent::FindFiles { pattern: "src/pad.js".into() }),
        ("find where X is defined", definition("X")),
        ("Where is parse_line defined?", definition("parse_line")),
        ("where's `HttpClient` declared", definition("HttpClient")),
        ("find the definition of foo::bar", definition("foo::bar")),
        ("which file defines Parser?", definition("Parser")),
        ("where is the struct Foo defined", definition("Foo")),
        ("go to the definition of run", definition("run")),
        ("find the function run", definition("run")),
        ("I want to know where the trait Api is defined.", definition("Api")),
        ("where do we define MAX_BYTES?", definition("MAX_BYTES")),
        ("parse_line()", definition("parse_line")),
        ("where is parse_line used?", Intent::Search { text: "parse_line".into(), scope: None, usage: Usage::Name }),
        ("who calls run?", Intent::Search { text: "run".into(), scope: None, usage: Usage::Name }),
        (
            "find all usages of Foo in src/a.rs",
            Intent::Search { text: "Foo".into(), scope: Some("src/a.rs".into()), usage: Usage::Name },
        ),
        ("search for \"hello world\"", Intent::Search { text: "hello world".into(), scope: None, usage: Usage::Text }),
        (
            "search for TODO in src/",
            Intent::Search { text: "TODO".into(), scope: Some("src/".into()), usage: Usage::Text },
        ),
        ("grep unwrap", Intent::Search { text: "unwrap".into(), scope: None, usage: Usage::Text }),
        (
            "which files contain 'deadline'?",
            Intent::Search { text: "deadline".into(), scope: None, usage: Usage::Text },
        ),
        ("find all TODOs", Intent::Search { text: "TODO".into(), scope: None, usage: Usage::Text }),
        ("find all *.md files", Intent::FindFiles { pattern: "*.md".into() }),
        ("find files named conftest.py", Intent::FindFiles { pattern: "conftest.py".into() }),
        ("where is deny.toml?", Intent::FindFiles { pattern: "deny.toml".into() }),
        ("list all python files", Intent::FindFiles { pattern: "*.py".into() }),
        ("is there a Dockerfile?", Intent::FindFiles { pattern: "Dockerfile".into() }),
    ]);
}

#[test]
fn requests_to_run_and_to_count() {
    let count = |what, scope: Option<&str>| Intent::Count { what, scope: scope.map(str::to_owned) };
    let scoped = |scope: &str| Intent::Tests { scope: Some(scope.into()), command: None };
    check(&[
        ("run the tests and tell me what failed", tests()),
        ("Run all tests!", tests()),
        ("do the tests pass?", tests()),
        ("which tests fail?", tests()),
        ("Are there any failing tests?", tests()),
        ("please run my test suite", tests()),
        ("test this", tests()),
        ("execute the unit tests, and say which of them failed", tests()),
        ("check whether the tests pass", tests()),
        ("run the tests in pi-ai", scoped("pi-ai")),
        ("run the tests of the crate pi-ai and tell me what failed", scoped("pi-ai")),
        ("run tests/test_a.py", Intent::Tests { scope: Some("tests/test_a.py".into()), command: None }),
        ("run `cargo test -p x`", Intent::Tests { scope: None, command: Some("cargo test -p x".into()) }),
        ("run cargo fmt --check", Intent::Run { command: "cargo fmt --check".into() }),
        ("run `ls -la`", Intent::Run { command: "ls -la".into() }),
        ("run hello.py", Intent::Run { command: "python3 hello.py".into() }),
        ("does it compile?", Intent::Build),
        ("build the project", Intent::Build),
        ("how many lines does a.txt have?", count(Countable::Lines, Some("a.txt"))),
        ("how many lines of code are there?", count(Countable::Lines, None)),
        ("count the lines in src/main.rs", count(Countable::Lines, Some("src/main.rs"))),
        ("how many files are in src/?", count(Countable::Files { extension: None }, Some("src/"))),
        ("how many rust files are there?", count(Countable::Files { extension: Some("rs".into()) }, None)),
        ("how many crates does this workspace have?", count(Countable::Members(PartKind::Crates), None)),
        ("how many functions are in a.py?", count(Countable::Functions, Some("a.py"))),
        ("how many times does foo occur in a.txt?", count(Countable::Occurrences("foo".into()), Some("a.txt"))),
        ("how often is \"the cat\" mentioned", count(Countable::Occurrences("the cat".into()), None)),
        ("how many tests are there?", count(Countable::Tests, None)),
        ("what changed?", Intent::Git(GitQuestion::Changes { file: None })),
        ("git status", Intent::Git(GitQuestion::Changes { file: None })),
        ("show me the diff", Intent::Git(GitQuestion::Diff { file: None })),
        ("show the last commits", Intent::Git(GitQuestion::Log { file: None })),
        ("what was the last commit?", Intent::Git(GitQuestion::LastCommit)),
        ("which branch am I on?", Intent::Git(GitQuestion::Branch)),
        ("hello", Intent::Greet),
        ("Hi there!", Intent::Greet),
        ("thanks!", Intent::Thanks),
        ("what can you do?", Intent::Help),
        ("who are you?", Intent::Help),
        ("help", Intent::Help),
    ]);
}

#[test]
fn requests_to_change_files() {
    let file = |name: &str| Scope::In(name.to_owned());
    check(&[
        ("replace A by B in file F.txt", replace("A", "B", file("F.txt"))),
        ("replace foo with bar in src/a.rs", replace("foo", "bar", file("src/a.rs"))),
        (
            "Replace all occurrences of \"old name\" with \"new name\" in notes.md, please.",
            replace("old name", "new name", file("notes.md")),
        ),
        ("in notes.md, replace “old” by “new”", replace("old", "new", file("notes.md"))),
        ("change 'x = 1' to 'x = 2' in a.py", replace("x = 1", "x = 2", file("a.py"))),
        ("replace `in` by `within` in a.txt", replace("in", "within", file("a.txt"))),
        ("Could you replace the word cat by dog in the file a.txt?", replace("cat", "dog", file("a.txt"))),
        ("replace foo by bar everywhere", replace("foo", "bar", Scope::Everywhere)),
        ("replace foo by bar in all files", replace("foo", "bar", Scope::Everywhere)),
        ("replace foo by bar", replace("foo", "bar", Scope::Unsaid)),
        ("substitute foo in a.txt with bar", replace("foo", "bar", file("a.txt"))),
        (
            "rename foo to bar in a.txt",
            Intent::Replace { from: "foo".into(), to: "bar".into(), scope: file("a.txt"), words: WholeWords::Only },
        ),
        ("rename a.txt to b.txt", Intent::Move { from: "a.txt".into(), to: "b.txt".into() }),
        ("remove \"debug\" from a.txt", replace("debug", "", file("a.txt"))),
        ("delete a.txt", Intent::Delete { file: "a.txt".into() }),
        ("create a file a.txt with \"hello\"", create("a.txt", "hello")),
        ("create a file called a.txt with the content hello world", create("a.txt", "hello world")),
        ("create a new file notes/a.md containing:\n```\n# Hi\n\nthere\n```", create("notes/a.md", "# Hi\n\nthere\n")),
        ("write \"hello\" to a.txt", create("a.txt", "hello")),
        ("create an empty file a.txt", create("a.txt", "")),
        ("make a file a.txt that says \"hi\"", create("a.txt", "hi")),
        ("create hello.py with the content print('hi')", create("hello.py", "print('hi')")),
        (
            "In src/pad.js, replace “padStart(3)” with “padEnd(4)”.",
            replace("padStart(3)", "padEnd(4)", file("src/pad.js")),
        ),
        ("append \"x\" to a.txt", Intent::Insert { text: "x".into(), file: "a.txt".into(), place: Place::End }),
        (
            "add the line \"x\" at the top of a.txt",
            Intent::Insert { text: "x".into(), file: "a.txt".into(), place: Place::Top },
        ),
        ("create a folder called docs", Intent::MakeFolder { folder: "docs".into() }),
        ("create a.txt with \"x\" and then run the tests", Intent::Several(vec![create("a.txt", "x"), tests()])),
    ]);
}

#[test]
fn what_needs_a_language_model_is_not_understood() {
    for text in [
        "write me a poem",
        "fix the bug in src/main.rs",
        "refactor the parser",
        "why is the sky blue?",
        "implement a binary tree in rust",
        "Translate README.md into French",
        "¿qué es esto?",
        "asdf qwer",
        "what should I have for dinner",
        "",
    ] {
        assert_eq!(understood(text), None, "{text}");
    }
}

#[test]
fn a_follow_up_leans_on_what_was_said_before() {
    let earlier = |asked: &str, answer: &str| Earlier::new(understood(asked).unwrap(), answer);
    let crates =
        earlier("which crates are there?", "It has 2 crates:\n\n- `one` (in `crates/one`): First.\n- `two`: Second.");
    let member = |name: &str| Some(Intent::Members { kind: PartKind::Crates, named: Some(name.into()) });
    for (text, name) in [
        ("and the second one?", "two"),
        ("What about two?", "two"),
        ("tell me more about the first", "one"),
        ("2", "two"),
        ("the last one", "two"),
        ("#1", "one"),
    ] {
        assert_eq!(understand(text, Some(&crates)), member(name), "{text}");
    }
    let file = earlier(
        "explain src/a.rs",
        "`src/a.rs` is a Rust file.\n\n- `run` (function, line 12)\n- `stop` (function, line 30)",
    );
    let at = |line| Some(Intent::Explain { subject: Subject::At { file: "src/a.rs".into(), line } });
    assert_eq!(understand("and the second?", Some(&file)), at(30));
    assert_eq!(understand("what about stop?", Some(&file)), at(30));
    assert_eq!(understand("show it", Some(&file)), Some(Intent::Read { file: "src/a.rs".into(), lines: Lines::All }));
    assert_eq!(
        understand("how many lines does it have?", Some(&file)),
        Some(Intent::Count { what: Countable::Lines, scope: Some("src/a.rs".into()) })
    );
    assert_eq!(
        understand("replace x by y in that file", Some(&file)),
        Some(replace("x", "y", Scope::In("src/a.rs".into())))
    );
    assert_eq!(understand("and src/b.rs?", Some(&file)), Some(explain("src/b.rs")));
    let tests_before = earlier("run the tests", "1 test failed.\n\n- `tests::bad` (`src/lib.rs:10`): assertion failed");
    assert_eq!(understand("run them again", Some(&tests_before)), Some(tests()));
    assert_eq!(understand("again", Some(&tests_before)), Some(tests()));
    assert_eq!(
        understand("show me the first one", Some(&tests_before)),
        Some(Intent::Explain { subject: Subject::At { file: "src/lib.rs".into(), line: 10 } })
    );
    let search = earlier("search for foo", "- `a.rs:3`: foo\n- `b.rs:9`: foo");
    assert_eq!(
        understand("explain the second one", Some(&search)),
        Some(Intent::Explain { subject: Subject::At { file: "b.rs".into(), line: 9 } })
    );
    let which = earlier("replace a by b", "`a` occurs in 2 files. In which one?\n\n- `x.txt`\n- `y.txt`");
    assert_eq!(understand("y.txt", Some(&which)), Some(replace("a", "b", Scope::In("y.txt".into()))));
    assert_eq!(understand("everywhere", Some(&which)), Some(replace("a", "b", Scope::Everywhere)));
    // A request of its own is none, whatever was said before.
    assert_eq!(understand("and run the tests", Some(&crates)), Some(tests()));
    assert_eq!(understand("what is in this folder?", Some(&file)), Some(Intent::Overview { folder: None }));
}

#[test]
fn any_text_is_understood_or_not_but_never_breaks_anything() {
    let words = [
        "replace", "\"", "a", "by", "in", "`", "x.rs", "the", "“", "second", "and", "```", "\n", "?", "#", "what", "é",
        "🦀", "run", "create", "with", ".", "lines", "12-", ":", "file",
    ];
    let mut seed = 7_u64;
    for _ in 0..1000 {
        let mut text = String::new();
        for _ in 0..12 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            text.push_str(words[(seed >> 33) as usize % words.len()]);
            if seed & 1 == 0 {
                text.push(' ');
            }
        }
        let earlier = Earlier::new(Intent::Greet, &text);
        let _ = understand(&text, Some(&earlier));
    }
}
