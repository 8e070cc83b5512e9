//! The tools in a workspace that is nowhere on disk, and with capabilities that a host brings.

use std::sync::Arc;

use bytes::Bytes;
use pi_ai::{CancellationToken, InputBlock};
use pi_coding_agent::tools::builtin::BuiltinTool::{self, Bash, Edit, Find, Grep, Ls, Read, Write};
use pi_coding_agent::tools::builtin::ToolSetup;
use pi_coding_agent::tools::session_facts::{FactsSource, ModelFacts, ModelImages, SessionFacts};
use pi_coding_agent::workspace::memory::{MemoryFiles, ScriptedProcesses, memory_workspace};
use pi_coding_agent::workspace::{ProcessError, search_over_files};
use serde_json::{Value, json};

async fn call(setup: &ToolSetup, tool: BuiltinTool, arguments: Value) -> Result<String, String> {
    let context = pi_agent_core::ToolContext::new("call", CancellationToken::new());
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let result = tool.build(setup).execute(arguments, context).await;
    result.map(|output| output.to_text()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn the_same_tools_work_in_memory() {
    let files = [("/p/src/a.rs", "fn one() {}\n"), ("/p/.gitignore", "target\n"), ("/p/target/b.rs", "fn two() {}\n")];
    let setup = ToolSetup::new(memory_workspace("/p", files).with_home("/home/u"));
    let call = |tool, arguments| call(&setup, tool, arguments);
    assert_eq!(call(Read, json!({"path": "src/a.rs"})).await.unwrap(), "fn one() {}\n");
    let edits = json!([{"oldText": "one", "newText": "uno"}]);
    call(Edit, json!({"path": "src/a.rs", "edits": edits})).await.unwrap();
    call(Write, json!({"path": "~/notes/n.txt", "content": "note\n"})).await.unwrap();
    assert_eq!(call(Read, json!({"path": "/home/u/notes/n.txt"})).await.unwrap(), "note\n");
    assert_eq!(call(Ls, json!({})).await.unwrap(), ".gitignore\nsrc/\ntarget/");
    assert!(call(Read, json!({"path": "src"})).await.unwrap_err().contains("EISDIR"));
    assert!(call(Write, json!({"path": "src/a.rs/x", "content": ""})).await.is_err());
    if cfg!(feature = "search") {
        assert_eq!(call(Grep, json!({"pattern": "fn"})).await.unwrap(), "src/a.rs:1: fn uno() {}");
        assert_eq!(call(Find, json!({"pattern": "*.rs"})).await.unwrap(), "src/a.rs");
    }
    let error = call(Bash, json!({"command": "true"})).await.unwrap_err();
    assert_eq!(error, ProcessError::Unsupported.to_string());
}

#[tokio::test]
async fn a_host_brings_its_own_processes_and_the_output_goes_to_its_files() {
    let files = MemoryFiles::new([("/p/a", "")]);
    let lines: String = (1..=3000).map(|n| format!("{n}\n")).collect();
    let written = lines.clone();
    let processes = ScriptedProcesses::new(move |command| match command.script.as_str() {
        "many" => (Bytes::from(written.clone()), 0),
        other => (Bytes::from(format!("cannot run {other} in {}\n", command.cwd.display())), 127),
    });
    let shared: Arc<MemoryFiles> = Arc::new(files.clone());
    let workspace = memory_workspace("/p", [("/p/b", "")])
        .with_search(search_over_files(shared.clone()))
        .with_files(shared)
        .with_processes(Arc::new(processes));
    let setup = ToolSetup::new(workspace);
    let text = call(&setup, Bash, json!({"command": "other"})).await.unwrap();
    assert!(text.starts_with("cannot run other in /p\n") && text.contains("127"), "{text}");
    let text = call(&setup, Bash, json!({"command": "many"})).await.unwrap();
    let path = text.rsplit_once("Full output: ").unwrap().1.trim_end_matches(']');
    assert_eq!(files.content(path.as_ref()).unwrap(), lines);
    assert!(call(&setup, Read, json!({"path": path, "limit": 1})).await.unwrap().starts_with("1\n"));
}

#[cfg(feature = "images")]
#[tokio::test]
async fn an_image_goes_to_the_model_and_a_model_without_eyes_is_named() {
    // A red pixel.
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";
    let files = [
        ("/p/text-by-name.txt", Bytes::from_static(png)),
        ("/p/photo.heic", Bytes::from_static(b"\0\0\0\x18ftypheic\0\0")),
    ];
    let mut setup = ToolSetup::new(memory_workspace("/p", files));
    setup.bash.facts = FactsSource::new(|| SessionFacts {
        model: Some(ModelFacts { provider: "p".to_owned(), id: "blind".to_owned(), images: ModelImages::NotTaken }),
        ..SessionFacts::default()
    });
    let context = pi_agent_core::ToolContext::new("call", CancellationToken::new());
    let arguments = json!({"path": "text-by-name.txt"}).as_object().cloned().unwrap();
    let output = Read.build(&setup).execute(arguments, context).await.unwrap();
    assert_eq!(output.to_text(), "Read image file [image/png]");
    assert!(matches!(output.content.as_slice(), [InputBlock::Text(_), InputBlock::Image(_)]), "{:?}", output.content);
    assert_eq!(output.details, Some(json!({"imageUnsupportedByModel": "blind"})));
    assert_eq!(output.structured_content.unwrap()["mimeType"], "image/png");
    assert!(call(&setup, Read, json!({"path": "photo.heic"})).await.unwrap_err().contains("HEIC"));
}
