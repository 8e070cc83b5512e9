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
