//! Which files the conversation read and changed: summaries name them exactly.

use std::collections::BTreeSet;

use pi_ai::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::messages::SessionMessage;

/// The files that tool calls named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileOperations {
    read: BTreeSet<String>,
    modified: BTreeSet<String>,
}

/// The files as a summary's entry keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileLists {
    /// Files that were only read, sorted.
    pub read_files: Vec<String>,
    /// Files that were written or edited, sorted.
    pub modified_files: Vec<String>,
}

impl FileOperations {
    /// Takes the calls of a message: those of an answer, and those that a tool made itself.
    pub fn add_message(&mut self, message: &SessionMessage) {
        match message {
            SessionMessage::Llm(Message::Assistant(assistant)) => {
                for call in assistant.tool_calls() {
                    self.add_call(&call.name, call.arguments.get("path"));
                }
            }
            SessionMessage::Llm(Message::ToolResult(result)) => {
                let calls = result.nested_calls.as_ref().and_then(|nested| nested["calls"].as_array());
                for call in calls.into_iter().flatten() {
                    self.add_call(call["name"].as_str().unwrap_or_default(), call["arguments"].get("path"));
                }
            }
            _ => {}
        }
    }

    /// Takes one call.
    pub fn add_call(&mut self, tool: &str, path: Option<&Value>) {
        let Some(path) = path.and_then(Value::as_str).filter(|path| !path.is_empty()) else { return };
        match tool {
            "read" => self.read.insert(path.to_owned()),
            "write" | "edit" => self.modified.insert(path.to_owned()),
            _ => false,
        };
    }

    /// Takes what an earlier summary's entry kept. Details of another shape say nothing.
    pub fn add_details(&mut self, details: &Value) {
        let paths = |key: &str| details[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        self.read.extend(paths("readFiles").map(str::to_owned));
        self.modified.extend(paths("modifiedFiles").map(str::to_owned));
    }

    /// The files, each in one list only.
    pub fn lists(&self) -> FileLists {
        FileLists {
            read_files: self.read.difference(&self.modified).cloned().collect(),
            modified_files: self.modified.iter().cloned().collect(),
        }
    }
}

impl FileLists {
    /// The lists as the end of a summary; empty when there are no files.
    pub fn text(&self) -> String {
        let list = |tag: &str, files: &[String]| match files {
            [] => String::new(),
            files => format!("\n\n<{tag}>\n{}\n</{tag}>", files.join("\n")),
        };
        list("read-files", &self.read_files) + &list("modified-files", &self.modified_files)
    }
}
