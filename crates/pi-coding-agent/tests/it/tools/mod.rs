//! The tools against a real file system and real processes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bash;
mod edit;
mod elsewhere;
mod files;
mod sandbox;
mod search;

use std::path::Path;
use std::time::Duration;

use pi_agent_core::{AgentTool, ToolContext, ToolOutput};
use pi_ai::CancellationToken;
use pi_coding_agent::tools::builtin::{BuiltinTool, ToolSetup};
use pi_coding_agent::workspace::Workspace;
use pi_coding_agent::workspace::local::{LocalOptions, ProcessOptions, local_workspace};
use serde_json::Value;
use tempfile::TempDir;

/// Tells only an end from a hang.
const DEADLINE: Duration = Duration::from_secs(10);

/// A project folder, a folder for large outputs, and the tools between them.
struct Project {
    folder: TempDir,
    temporary: TempDir,
    setup: ToolSetup,
}

impl Project {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(adjust: impl FnOnce(&mut LocalOptions)) -> Self {
        let folder = TempDir::new().expect("a folder");
        let temporary = TempDir::new().expect("a folder");
        let mut options = LocalOptions {
            cwd: folder.path().to_owned(),
            home: Some(folder.path().join("home")),
            temp_dir: temporary.path().to_owned(),
            processes: ProcessOptions {
                environment: [("PATH".into(), std::env::var_os("PATH").expect("a PATH"))].into(),
                ..ProcessOptions::default()
            },
            ..LocalOptions::default()
        };
        adjust(&mut options);
        let setup = ToolSetup::new(local_workspace(options));
        Self { folder, temporary, setup }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, content).expect("a file");
    }

    fn content(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.path().join(path)).expect("the file can be read")
    }

    fn workspace(&self) -> &Workspace {
        &self.setup.workspace
    }

    /// Calls a tool; its text, or the text of its error.
    async fn call(&self, tool: BuiltinTool, arguments: Value) -> Result<ToolOutput, String> {
        self.call_with(tool, arguments, CancellationToken::new()).await
    }

    async fn call_with(
        &self,
        tool: BuiltinTool,
        arguments: Value,
        signal: CancellationToken,
    ) -> Result<ToolOutput, String> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let tool = tool.build(&self.setup);
        let arguments = tool.prepare_arguments(arguments);
        let call = tool.execute(arguments, ToolContext::new("call", signal));
        let result = tokio::time::timeout(DEADLINE, call).await.expect("the tool returns");
        result.map_err(|error| error.to_string())
    }

    async fn text(&self, tool: BuiltinTool, arguments: Value) -> String {
        self.call(tool, arguments).await.expect("the tool succeeds").to_text()
    }

    async fn error(&self, tool: BuiltinTool, arguments: Value) -> String {
        self.call(tool, arguments).await.expect_err("the tool fails")
    }
}
