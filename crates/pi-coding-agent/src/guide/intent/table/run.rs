//! Requests to run something: commands, tests, the build.

use super::{Captures, Rule, words::*};
use crate::guide::intent::*;
use crate::guide::utterance::*;

pub(super) const RULES: &[Rule] = &[
    Rule {
        patterns: &[
            "run|execute|launch the? command|commands|shell? {command:q} *",
            "run|execute the? command|shell {command}",
        ],
        make: run,
    },
    Rule { patterns: &["run|execute|launch|start|do? {command}", "{command}"], make: run_known_program },
    Rule { patterns: &["run|execute|launch|start the? script|program|file? {script:p}"], make: run_script },
    Rule {
        patterns: &[
            "run|execute|launch|start|rerun|repeat|try all? of? the|my|our|your|its? unit|integration|doc|all? tests|test|testsuite|specs suite|cases? in|of|for|from|under the? file|folder|crate|package|module? {scope}",
            "run|execute|rerun the? test|tests|spec called|named|for? {scope:p} *",
            "run|execute|rerun|test {scope:p} *",
            "run|execute|rerun|try the? {scope:1} tests|test *",
        ],
        make: scoped_tests,
    },
    Rule {
        patterns: &[
            "run|execute|launch|start|rerun|repeat|try|do * tests|test|testsuite|testing|pytest|specs *",
            "test it|this|everything|all|the|my|our *",
            "test",
            "tests",
            "* do|does|did|are|is|will|if|whether * tests|test|testsuite|suite pass|passing|passes|pass|green|work|working|succeed|fail|failing|fails|ok|okay|red|broken *",
            "which|what|any|how many tests|test are|do|does? fail|fails|failing|failed|broken|pass|red *",
            "are|is there any? failing|failed|broken tests|test *",
            "what * tests|test * fail|fails|failing|failed *",
        ],
        make: |_, _| Some(Intent::Tests { scope: None, command: None }),
    },
    Rule {
        patterns: &[
            "build|compile|check it|this|everything|the|my|our? project|code|crate|workspace|package|program? *",
            "does|do|will * build|compile|builds|compiles *",
            "is the? build|code * broken|green|ok|working *",
            "run|start|do the|a? build *",
        ],
        make: build,
    },
];

fn run(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let command = kept.text(said, "command")?;
    Some(command_intent(command))
}

/// Programs that are started when their name is the first word of a request.
const PROGRAMS: [&str; 34] = [
    "cargo", "npm", "npx", "pnpm", "yarn", "bun", "node", "deno", "python", "python3", "pytest", "pip", "uv", "go",
    "git", "make", "cmake", "ninja", "gradle", "mvn", "dotnet", "ruby", "bundle", "rake", "mix", "swift", "zig",
    "docker", "bash", "sh", "echo", "tox", "jest", "vitest",
];

/// Programs that are words of English, too, so that they are started only when somebody says "run".
const TOOLS: [&str; 30] = [
    "ls", "cat", "pwd", "wc", "head", "tail", "grep", "rg", "fd", "find", "tree", "du", "df", "date", "uname", "ps",
    "sed", "awk", "sort", "uniq", "diff", "file", "stat", "touch", "mkdir", "env", "printf", "sleep", "true", "false",
];

fn run_known_program(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let range = kept.range("command")?;
    let first = said.tokens.get(range.start)?;
    let local_script = first.word.starts_with("./") && range.start > 0;
    let tool = range.start > 0 && TOOLS.contains(&first.word.as_str());
    if first.is_quoted() || !(PROGRAMS.contains(&first.word.as_str()) || local_script || tool) {
        return None;
    }
    // `go to …` and `make a file …` are English.
    let next = said.tokens.get(range.start + 1).map(|token| token.word.as_str());
    let english = matches!(
        (first.word.as_str(), next),
        ("go", Some("to" | "on" | "ahead" | "through" | "and" | "back"))
            | ("go" | "make" | "node" | "echo" | "ruby" | "swift" | "python" | "docker", None)
            | ("make", Some("a" | "an" | "the" | "it" | "sure" | "me" | "this" | "that" | "my" | "new"))
            | ("git", Some("status" | "diff" | "log" | "show" | "branch"))
            | (
                "node" | "ruby" | "swift" | "python" | "bundle",
                Some("is" | "files" | "code" | "modules" | "module" | "packages")
            )
    );
    if english && range.start == 0 {
        return None;
    }
    let command = said.slice(range).split(" and tell ").next()?.split(" and show ").next()?;
    Some(command_intent(command.trim_end_matches(['.', '?', '!'])))
}

/// A script that its language's own program runs.
fn run_script(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let script = kept.text(said, "script")?;
    let name = script.rsplit('/').next()?.to_lowercase();
    let program = match name.rsplit_once('.')?.1 {
        "py" => "python3",
        "js" | "mjs" | "cjs" => "node",
        "sh" | "bash" => "bash",
        "rb" => "ruby",
        "pl" => "perl",
        "lua" => "lua",
        "go" => "go run",
        _ => return None,
    };
    let is_test = name.contains("test") || name.contains("spec");
    let command = format!("{program} {}", crate::guide::desk::quote(script));
    (!is_test).then_some(Intent::Run { command })
}

fn command_intent(command: &str) -> Intent {
    let command = command.trim().trim_start_matches("$ ").to_owned();
    if is_test_command(&command) {
        Intent::Tests { scope: None, command: Some(command) }
    } else {
        Intent::Run { command }
    }
}

fn is_test_command(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["pytest" | "tox" | "jest" | "vitest" | "rspec" | "phpunit" | "ctest", ..] => true,
        [
            "cargo" | "npm" | "pnpm" | "yarn" | "bun" | "go" | "make" | "dotnet" | "mvn" | "gradle" | "./gradlew"
            | "mix" | "swift" | "deno",
            rest @ ..,
        ] => {
            rest.iter()
                .find(|word| !word.starts_with(['-', '+']))
                .is_some_and(|word| matches!(*word, "test" | "t" | "nextest"))
                || rest.first() == Some(&"run") && rest.get(1) == Some(&"test")
        }
        ["python" | "python3", "-m", "pytest" | "unittest", ..] => true,
        ["uv" | "poetry", "run", "pytest", ..] => true,
        ["node", "--test", ..] => true,
        _ => false,
    }
}

fn scoped_tests(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let scope = kept.text(said, "scope")?;
    // `run x.py` runs the tests only when the file is one.
    let name = scope.rsplit('/').next().unwrap_or(scope).to_lowercase();
    if !said.has(&["test", "tests", "testsuite", "spec", "specs"]) && !name.contains("test") && !name.contains("spec") {
        return None;
    }
    let scope = scope.split(" and ").next()?.trim();
    let scope = without_prefix(scope, &["the", "crate", "package", "module", "file", "folder"]);
    let general = [
        "this",
        "all",
        "the",
        "unit",
        "integration",
        "my",
        "our",
        "project",
        "this project",
        "here",
        "me",
        "repo",
        "it",
        "failing",
        "and",
        "workspace",
    ];
    let vague = general.contains(&scope.to_lowercase().as_str()) || scope.starts_with("this ");
    let scope = (!vague && scope.split_whitespace().count() == 1).then(|| bare(scope).to_owned());
    Some(Intent::Tests { scope, command: None })
}

fn build(_: &Captures, said: &Utterance) -> Option<Intent> {
    let first = said.tokens.first()?.word.as_str();
    // "check the tests", "check a.txt", "check what …" are not builds.
    let other = first == "check"
        && (said.tokens.len() < 2
            || first_path(said).is_some()
            || said.has(&["what", "whether", "if", "for", "where", "how"]));
    (!other).then_some(Intent::Build)
}
