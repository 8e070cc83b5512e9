//! The guide on scripted transcripts and on real folders.

use std::{fs, path::Path, sync::Arc};

use pi_agent_core::{Agent, AgentTool};
use pi_ai::{StopReason, SystemMessage, ToolDeclaration, ToolResultMessage};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{
    tools::builtin::{BuiltinTool, ToolSetup},
    workspace::local::{LocalOptions, ProcessOptions, local_workspace},
};

/// A folder with a few files, and an agent on the guide that works in it.
struct Desktop {
    dir: TempDir,
    agent: Agent,
}

impl Desktop {
    fn new(files: &[(&str, &str)]) -> Self {
        Self::with_tools(files, &["read", "bash", "edit", "write"])
    }

    fn with_tools(files: &[(&str, &str)], tools: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let agent = agent(dir.path(), tools);
        Self { dir, agent }
    }

    async fn ask(&self, prompt: &str) -> String {
        let reply = self.agent.prompt(prompt).await.unwrap();
        let text = reply.text();
        reply.into_text().unwrap();
        text
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(name)).unwrap()
    }
}

fn agent(cwd: &Path, tools: &[&str]) -> Agent {
    let options = LocalOptions {
        cwd: cwd.to_owned(),
        temp_dir: std::env::temp_dir(),
        processes: ProcessOptions { environment: std::env::vars_os().collect(), ..Default::default() },
        ..LocalOptions::default()
    };
    let setup = ToolSetup::new(local_workspace(options));
    let tools: Vec<Arc<dyn AgentTool>> =
        tools.iter().filter_map(|name| BuiltinTool::from_name(name)).map(|tool| tool.build(&setup)).collect();
    let head = SystemMessage::default().section("cwd", format!("<cwd>\n{}\n</cwd>", cwd.display()));
    Agent::builder(GuideModel::default())
        .model(GuideModel::model())
        .messages([Message::from(head)])
        .tools(tools)
        .build()
}

#[track_caller]
fn assert_says(answer: &str, parts: &[&str]) {
    for part in parts {
        assert!(answer.contains(part), "expected {part:?} in:\n{answer}");
    }
}

fn cargo_workspace() -> Desktop {
    Desktop::new(&[
        (
            "Cargo.toml",
            "[workspace]\nresolver = \"2\"\nmembers = [\"crates/*\", \"tools/extra\"]\nexclude = [\"crates/old\"]\n",
        ),
        (
            "crates/words/Cargo.toml",
            "[package]\nname = \"words\"\nversion = \"0.1.0\"\nedition = \"2021\"\ndescription = \"splits text into words\"\n",
        ),
        (
            "crates/words/src/lib.rs",
            "/// Splits a text.\npub fn split_words(text: &str) -> Vec<&str> {\n    text.split(' ').collect()\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn one_and_one_is_three() {\n        assert_eq!(1 + 1, 3, \"arithmetic\");\n    }\n\n    #[test]\n    fn it_splits() {\n        assert_eq!(super::split_words(\"a b\").len(), 2);\n    }\n}\n",
        ),
        ("crates/shapes/Cargo.toml", "[package]\nname = \"shapes\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("crates/shapes/src/lib.rs", "//! Areas of plane figures.\n\npub struct Circle {\n    pub radius: f64,\n}\n"),
        ("crates/old/Cargo.toml", "[package]\nname = \"old\"\nversion = \"0.1.0\"\n"),
        ("tools/extra/Cargo.toml", "[package]\nname = \"extra\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("tools/extra/README.md", "# extra\n\nA tool that does a bit more.\n"),
        ("tools/extra/src/main.rs", "fn main() {\n    println!(\"{:?}\", 1);\n}\n"),
    ])
}

fn python_folder() -> Desktop {
    Desktop::new(&[
        ("pyproject.toml", "[project]\nname = \"weather\"\ndescription = \"Forecasts.\"\n"),
        ("src/weather/__init__.py", "\"\"\"Weather of the next days.\"\"\"\n"),
        (
            "src/weather/rain.py",
            "\"\"\"Says when it rains.\"\"\"\n\n\ndef will_it_rain(day):\n    \"\"\"Whether a day is wet.\"\"\"\n    return day == 'monday'\n",
        ),
        ("src/weather/wind/__init__.py", "'''Wind and storms.'''\n"),
        (
            "tests/test_rain.py",
            "import sys, unittest\nsys.path.insert(0, 'src')\nfrom weather.rain import will_it_rain\n\n\nclass Rain(unittest.TestCase):\n    def test_monday(self):\n        self.assertTrue(will_it_rain('monday'))\n\n    def test_sunday(self):\n        self.assertTrue(will_it_rain('sunday'))\n",
        ),
    ])
}

#[tokio::test]
async fn it_says_which_crates_a_workspace_has_and_what_each_does() {
    let desktop = cargo_workspace();
    let answer = desktop.ask("Which crates does this workspace have, and what does each do?").await;
    assert_says(
        &answer,
        &[
            "3 crates",
            "`shapes`",
            "Areas of plane figures.",
            "`words`",
            "Splits text into words.",
            "`extra`",
            "A tool that does a bit more.",
        ],
    );
    assert!(!answer.contains("`old`"), "{answer}");
    let second = desktop.ask("and the second one?").await;
    assert_says(&second, &["`words`", "Splits text into words."]);
    let named = desktop.ask("What about extra?").await;
    assert_says(&named, &["A tool that does a bit more."]);
}

#[tokio::test]
async fn it_says_which_packages_and_modules_a_python_folder_has() {
    let desktop = python_folder();
    let answer = desktop.ask("Which packages does this project have, and what does each do?").await;
    assert_says(
        &answer,
        &["`weather`", "Weather of the next days.", "`rain`", "Says when it rains.", "`wind`", "Wind and storms."],
    );
    let answer = desktop.ask("Which crates does this workspace have?").await;
    assert_says(&answer, &["no crates", "`weather`"]);
}

#[tokio::test]
async fn it_finds_definitions_and_uses() {
    let desktop = cargo_workspace();
    let answer = desktop.ask("find where split_words is defined").await;
    assert_says(&answer, &["crates/words/src/lib.rs:2", "function", "pub fn split_words"]);
    let answer = desktop.ask("Where is the struct Circle defined?").await;
    assert_says(&answer, &["crates/shapes/src/lib.rs:3"]);
    let answer = desktop.ask("where is split_words used?").await;
    assert_says(&answer, &["crates/words/src/lib.rs:15"]);
    let answer = desktop.ask("find where NoSuchThing is defined").await;
    assert_says(&answer, &["no definition", "does not occur"]);
}

#[tokio::test]
async fn it_runs_the_tests_of_a_python_folder_and_says_what_failed() {
    let desktop = python_folder();
    let answer = desktop.ask("run the tests and tell me what failed").await;
    assert_says(&answer, &["1 test failed", "test_sunday", "1 passed"]);
    assert!(!answer.contains("test_monday"), "{answer}");
    fs::write(desktop.dir.path().join("src/weather/rain.py"), "def will_it_rain(day):\n    return True\n").unwrap();
    let answer = desktop.ask("run them again").await;
    assert_says(&answer, &["All tests pass"]);
}

#[tokio::test]
async fn it_replaces_creates_and_appends() {
    let desktop = Desktop::new(&[("notes.txt", "one cat\ntwo cats\none cat\n"), ("sub/other.txt", "a cat\n")]);
    let answer = desktop.ask("replace “cat” by ‘dog’ in notes.txt").await;
    assert_says(&answer, &["3 times"]);
    assert_eq!(desktop.text("notes.txt"), "one dog\ntwo dogs\none dog\n");
    let answer = desktop.ask("In other.txt, please replace cat with bird").await;
    assert_says(&answer, &["1 time"]);
    assert_eq!(desktop.text("sub/other.txt"), "a bird\n");
    let answer = desktop.ask("create a file todo.md with \"- buy milk\" and then read it").await;
    assert_says(&answer, &["todo.md", "- buy milk"]);
    assert_eq!(desktop.text("todo.md"), "- buy milk\n");
    let answer = desktop.ask("create todo.md with \"x\"").await;
    assert_says(&answer, &["there already"]);
    desktop.ask("append \"- buy bread\" to todo.md").await;
    assert_eq!(desktop.text("todo.md"), "- buy milk\n- buy bread\n");
}

#[tokio::test]
async fn without_the_tools_that_a_request_needs_it_says_so() {
    let desktop = Desktop::with_tools(&[("a.txt", "x\n")], &["read"]);
    assert_says(&desktop.ask("read a.txt").await, &["x"]);
    assert_says(&desktop.ask("run the tests").await, &["need a tool", "bash"]);
    assert_says(&desktop.ask("replace x by y in a.txt").await, &["need a tool"]);
    assert_eq!(desktop.text("a.txt"), "x\n");
}

#[tokio::test]
async fn the_other_tools_do_the_same_work() {
    let files = [
        ("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n"),
        ("a/Cargo.toml", "[package]\nname = \"a\"\ndescription = \"does a\"\n"),
        ("a/src/lib.rs", "pub fn only_here() {}\n"),
    ];
    let desktop = Desktop::with_tools(&files, &["read", "grep", "find", "ls"]);
    assert_says(&desktop.ask("what is in this folder?").await, &["`a/`", "`Cargo.toml`"]);
    assert_says(&desktop.ask("which crates are there?").await, &["Does a."]);
    assert_says(&desktop.ask("where is only_here defined?").await, &["a/src/lib.rs:1"]);
    assert_says(&desktop.ask("search for only_here").await, &["a/src/lib.rs:1"]);
}

#[tokio::test]
async fn what_it_does_not_understand_it_says_with_what_it_can_do() {
    let desktop = Desktop::new(&[]);
    let answer = desktop.ask("Write me a poem about the sea.").await;
    assert_says(&answer, &["do not understand", "What I can do"]);
    assert_says(&desktop.ask("read nothing-there.txt").await, &["cannot read"]);
    assert_says(&desktop.ask("what is in this folder?").await, &["empty"]);
    assert_says(&desktop.ask("what changed?").await, &["git"]);
}

/// A transcript that a program wrote down, and what the guide does next.
fn next(messages: &[Message]) -> Reply {
    next_message(messages, true)
}

fn tools(names: &[&str]) -> Message {
    let tools = names.iter().map(|name| ToolDeclaration::new(*name, "", json!({})));
    SystemMessage::default().with_tools(tools).into()
}

fn with_results(mut messages: Vec<Message>, reply: &Reply, results: &[&str]) -> Vec<Message> {
    let mut answer = pi_ai::AssistantMessage { stop_reason: StopReason::ToolUse, ..Default::default() };
    for (index, call) in reply.calls.iter().enumerate() {
        let id = format!("guide-{}-{}", reply.number, index + 1);
        answer.content.push(pi_ai::AssistantBlock::ToolCall(pi_ai::ToolCall {
            id: id.into(),
            name: call.tool.clone(),
            arguments: call.arguments.clone(),
            ..Default::default()
        }));
    }
    messages.push(answer.into());
    for (index, text) in results.iter().enumerate() {
        messages.push(
            ToolResultMessage {
                tool_call_id: format!("guide-{}-{}", reply.number, index + 1).into(),
                content: vec![pi_ai::InputBlock::text(*text)],
                ..Default::default()
            }
            .into(),
        );
    }
    messages
}

#[test]
fn a_request_whose_call_was_lost_is_not_repeated_for_ever() {
    let messages = vec![tools(&["read"]), Message::user("read a.txt")];
    let reply = next(&messages);
    assert_eq!(reply.calls.len(), 1);
    let answer = next(&with_results(messages, &reply, &[]));
    assert_eq!(answer.calls, []);
    assert_says(&answer.text, &["interrupted"]);
}

#[test]
fn a_note_in_a_persons_role_does_not_take_the_place_of_the_request() {
    let messages = vec![tools(&["read"]), Message::user("read a.txt")];
    let reply = next(&messages);
    let mut messages = with_results(messages, &reply, &["hello\n"]);
    messages.push(Message::user("(note: the build server is slow today)"));
    assert_says(&next(&messages).text, &["hello"]);
}

#[test]
fn a_prompt_costs_a_bounded_number_of_rounds_whatever_the_tools_say() {
    for prompt in [
        "which crates does this have?",
        "replace a by b everywhere",
        "what is this project?",
        "explain x.rs",
        "run the tests",
    ] {
        let mut messages = vec![tools(&["read", "bash", "edit", "write"]), Message::user(prompt)];
        let mut rounds = 0;
        loop {
            let reply = next(&messages);
            if reply.calls.is_empty() {
                break;
            }
            rounds += 1;
            assert!(rounds <= desk::MOST_ROUNDS, "{prompt}");
            // A tool that answers with nonsense that is never complete.
            let nonsense = "Cargo.toml\nx\n\n[Showing lines 1-2 of 90000. Use offset=3 to continue.]";
            let results = vec![nonsense; reply.calls.len()];
            messages = with_results(messages, &reply, &results);
        }
    }
}

#[tokio::test]
async fn an_aborted_answer_ends_aborted() {
    let options = StreamOptions::default();
    options.signal.cancel();
    let context = pi_ai::Context::from(vec![Message::user("help")]).normalize();
    let answer = StreamFn::stream(&GuideModel::default(), &GuideModel::model(), context, options).result().await;
    assert_eq!(answer.stop_reason, StopReason::Aborted);
}

#[tokio::test]
async fn an_answer_comes_in_small_pieces_costs_nothing_and_estimates_its_tokens() {
    use futures::StreamExt;
    let context = pi_ai::Context::from(vec![Message::user("help")]).normalize();
    let mut stream = StreamFn::stream(&GuideModel::default(), &GuideModel::model(), context, StreamOptions::default());
    let mut pieces = 0;
    while let Some(event) = stream.next().await {
        pieces += usize::from(matches!(event, pi_ai::AssistantEvent::TextDelta { .. }));
    }
    let answer = stream.into_message();
    assert!(pieces > 20, "{pieces}");
    assert!(answer.usage.output > 50 && answer.usage.input > 0 && answer.usage.cost.total == 0.0);
}

/// A workspace whose crates say more about themselves than one result of the shell tool holds.
fn talkative_workspace(crates: usize) -> Desktop {
    let manifest = "[workspace]\nmembers = [\"crates/*\", \"examples/*\"]\n".to_owned();
    let mut files = vec![("Cargo.toml".to_owned(), manifest)];
    let prose: String = (0..58).map(|line| format!("//! Line {line} says {}\n", "much ".repeat(18))).collect();
    for number in 0..crates {
        let folder = if number % 2 == 0 { "examples" } else { "crates" };
        let manifest = format!("[package]\nname = \"part-{number:02}\"\ndescription = \"does thing {number}\"\n");
        files.push((format!("{folder}/part-{number:02}/Cargo.toml"), manifest));
        files.push((format!("{folder}/part-{number:02}/src/lib.rs"), prose.clone()));
        files.push((format!("{folder}/part-{number:02}/README.md"), prose.replace("//! ", "")));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    Desktop::new(&files)
}

#[tokio::test]
async fn no_crate_is_missing_when_they_say_more_than_one_result_holds() {
    let desktop = talkative_workspace(40);
    let answer = desktop.ask("Which crates does this workspace have, and what does each do?").await;
    assert_says(&answer, &["40 crates"]);
    for number in 0..40 {
        assert_says(&answer, &[&format!("`part-{number:02}`"), &format!("Does thing {number}.")]);
    }
    assert!(answer.find("part-39") < answer.find("part-00"), "examples come last: {answer}");
    assert_says(&desktop.ask("what does part-31 do?").await, &["Does thing 31."]);
    assert_says(&desktop.ask("explain the crate part-02").await, &["Does thing 2."]);
}

#[tokio::test]
async fn heads_of_files_are_asked_for_again_when_the_output_loses_its_beginning() {
    let long = format!("{}\n", "word ".repeat(78)).repeat(60);
    let files: Vec<(String, String)> =
        (0..8).map(|n| (format!("part{n}.py"), format!("\"\"\"Part {n}.\"\"\"\n{long}"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let answer = Desktop::new(&files).ask("which modules are there?").await;
    for n in 0..8 {
        assert_says(&answer, &[&format!("Part {n}.")]);
    }
}

#[tokio::test]
async fn numbers_are_right_for_files_that_no_result_holds() {
    let log: String =
        (0..20_000).map(|n| if n % 4 == 0 { "a TARGET and a TARGET\n" } else { "nothing to see\n" }).collect();
    let desktop = Desktop::new(&[("big.log", &(log + "the end"))]);
    assert_says(&desktop.ask("how many times does TARGET occur in big.log?").await, &["10000 times"]);
    assert_says(&desktop.ask("how many times does TARGET occur?").await, &["10000 times", "1 file"]);
    assert_says(&desktop.ask("search for TARGET").await, &["5000 lines", "… and 4960 more"]);
    for question in
        ["how many lines does big.log have?", "read big.log", "explain big.log", "how many lines of code are here?"]
    {
        assert_says(&desktop.ask(question).await, &["20001 line"]);
    }
    let end = desktop.ask("show the last 3 lines of big.log").await;
    assert_says(&end, &["nothing to see\nnothing to see\nthe end"]);
}

#[tokio::test]
async fn files_are_counted_beyond_what_a_list_shows() {
    let mut files: Vec<(String, String)> =
        (0..2501).map(|n| (format!("src/part{n}.py"), "TOKEN\n".to_owned())).collect();
    files.push(("zz_long.txt".to_owned(), "x\n".repeat(5000)));
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let desktop = Desktop::new(&files);
    assert_says(&desktop.ask("list the python files").await, &["2501 files", "… and 2441 more"]);
    assert_says(&desktop.ask("how many python files are there?").await, &["2501"]);
    assert_says(&desktop.ask("replace TOKEN by TOK everywhere").await, &["2501 files", "at most 24"]);
    assert_says(&desktop.ask("what is the largest file?").await, &["`zz_long.txt` — 5000 lines"]);
}

#[tokio::test]
async fn without_a_shell_numbers_that_may_be_too_small_say_so() {
    let log = "TARGET\n".repeat(3000);
    let desktop = Desktop::with_tools(&[("big.log", &log)], &["read", "grep", "find", "ls"]);
    assert_says(&desktop.ask("how many times does TARGET occur?").await, &["at least 1000 times"]);
    assert_says(&desktop.ask("show the last 2 lines of big.log").await, &["TARGET\nTARGET\n```"]);
}

#[tokio::test]
async fn dependencies_that_an_explanation_leaves_out_are_counted() {
    let names: String = (0..60).map(|n| format!("dep{n} = \"1\"\n")).collect();
    let manifest = format!("[package]\nname = \"x\"\n\n[dependencies]\n{names}");
    let answer = Desktop::new(&[("Cargo.toml", &manifest)]).ask("explain Cargo.toml").await;
    assert_says(&answer, &["60 dependencies", "and 20 others"]);
}

#[tokio::test]
async fn notices_of_tools_are_not_taken_for_text() {
    let desktop = Desktop::new(&[("huge.txt", &"long ".repeat(600_000))]);
    fs::write(desktop.dir.path().join("latin.txt"), b"caf\xe9 au lait\nd\xe9j\xe0 vu\n").unwrap();
    for question in ["read latin.txt", "explain latin.txt"] {
        let answer = desktop.ask(question).await;
        assert_says(&answer, &["café au lait", "windows-1252", "2 lines"]);
        assert!(!answer.contains("Decoded"), "{answer}");
    }
    for question in ["read huge.txt", "explain huge.txt"] {
        let answer = desktop.ask(question).await;
        assert_says(&answer, &["too long", "long long long"]);
        assert!(!answer.contains("alone has"), "{answer}");
    }
    for question in ["explain this", "what is this?"] {
        let answer = desktop.ask(&format!("<file name=\"/x/bin.dat\">\nab\0\u{1}\0cd\n</file>\n{question}")).await;
        assert_says(&answer, &["no text file"]);
    }
}

#[tokio::test]
async fn a_command_that_a_signal_ended_still_has_its_exit_code() {
    let desktop = Desktop::new(&[("a.txt", "x\n")]);
    let answer = desktop.ask("run `echo said; kill -9 $$`").await;
    assert_says(&answer, &["said", "137"]);
}

#[tokio::test]
async fn piped_output_is_read_instead_of_running_the_tests() {
    let output = "running 2 tests\ntest tests::a ... ok\ntest tests::adds ... FAILED\n\nfailures:\n\n---- tests::adds stdout ----\n\
                  thread 'tests::adds' (1) panicked at src/lib.rs:7:9:\nassertion `left == right` failed: sums\n  left: 3\n right: 4\n\n\n\
                  failures:\n    tests::adds\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; finished in 0.00s";
    // A folder whose tests would say something else.
    let desktop = python_folder();
    for request in ["Explain the first failure", "\nexplain the first failure"] {
        let answer = desktop.ask(&format!("{output}{request}")).await;
        assert_says(&answer, &["tests::adds", "src/lib.rs:7", "left: 3"]);
        assert!(!answer.contains("test_sunday"), "{answer}");
    }
    let answer =
        desktop.ask("warning: odd\nerror[E0425]: cannot find value `x`\n --> src/main.rs:2:5What is the error?").await;
    assert_says(&answer, &["cannot find value", "src/main.rs:2"]);
    assert_says(&desktop.ask("one\ntwo\nthree.Summarize this").await, &["piped text has 3 lines", "one"]);
    assert_says(&desktop.ask("one\ntwo\nthree.How many lines are there?").await, &["3 lines"]);
}

#[tokio::test]
async fn everyday_ways_to_ask_are_understood() {
    let desktop = Desktop::new(&[
        ("Cargo.toml", "[package]\nname = \"x\"\nlicense = \"MIT\"\n"),
        (
            "src/lib.rs",
            "pub struct Counter;\n\npub fn add(a: u8) -> u8 {\n    a\n}\n\npub fn twice() -> u8 {\n    add(1)\n}\n",
        ),
    ]);
    for question in ["what is in src", "what is in the src folder", "what's in the folder src?"] {
        assert_says(&desktop.ask(question).await, &["`lib.rs`"]);
    }
    for question in ["what licence does it have", "What license does this project use?"] {
        assert_says(&desktop.ask(question).await, &["MIT"]);
    }
    let answer = desktop.ask("how do I run the tests?").await;
    assert_says(&answer, &["To test it", "`cargo test`"]);
    assert_says(&desktop.ask("find where add is used").await, &["is used on 1 line", "src/lib.rs:8"]);
    assert_says(&desktop.ask("run ls -la").await, &["Cargo.toml", "src"]);
    assert_says(&desktop.ask("find where counter is defined").await, &["`Counter`", "src/lib.rs:1"]);
}
