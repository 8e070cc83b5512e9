//! Calls one built-in tool in the working directory, as an agent would, and prints the length of its text. For the
//! benches that look at a process from outside.
//!
//! `tool_call NAME ARGUMENTS`

use std::error::Error;

use pi_agent_core::{CancellationToken, ToolContext};
use pi_coding_agent::tools::builtin::{BuiltinTool, ToolSetup};
use pi_coding_agent::workspace::local::{LocalOptions, ProcessOptions, local_workspace};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(json)) = (arguments.next(), arguments.next()) else {
        return Err("usage: tool_call NAME ARGUMENTS".into());
    };
    let tool = BuiltinTool::from_name(&name).ok_or("there is no tool of that name")?;
    let setup = ToolSetup::new(local_workspace(LocalOptions {
        cwd: std::env::current_dir()?,
        temp_dir: std::env::temp_dir(),
        processes: ProcessOptions { environment: std::env::vars_os().collect(), ..ProcessOptions::default() },
        ..LocalOptions::default()
    }));
    let context = ToolContext::new("call", CancellationToken::new());
    let output = tool.build(&setup).execute(serde_json::from_str(&json)?, context).await;
    let output = output.map_err(|error| error.to_string())?;
    println!("{} bytes", output.to_text().len());
    // Large outputs leave a file; a bench must not fill the disk.
    let details = output.details.unwrap_or_default();
    if let Some(path) = details["fullOutputPath"].as_str() {
        std::fs::remove_file(path)?;
    }
    Ok(())
}
