//! The area `tools`: each case runs in a folder of its own.

use std::path::Path;

use pi_agent_core::{AgentTool, ToolArguments, ToolContext, ToolOutput};
use pi_ai::CancellationToken;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::tools::bash::{BashOptions, BashTool};
use crate::tools::edit::{Edit, EditError, EditFileError, edit_file, normalize_tolerant, prepare_arguments};
use crate::tools::ls::LsTool;
use crate::tools::mutation_queue::MutationQueue;
use crate::tools::paths;
use crate::tools::read::{ImageOptions, ReadOutcome, ReadRequest, read_file};
use crate::tools::truncate::{Limits, Truncation, format_size, head_utf16, tail_utf16, truncate_head, truncate_tail};
use crate::tools::write::WriteTool;
use crate::workspace::Workspace;
use crate::workspace::local::{LocalOptions, ProcessOptions, local_workspace};

/// What this crate makes of `input`, a case of the file `file_stem`; `None` when there is no runner for that file.
pub async fn run(file_stem: &str, input: &Value) -> Option<Value> {
    match file_stem {
        "truncate" => truncate(input),
        "truncate_line" => line(input),
        "fuzzy_normalize" => Some(json!({"text": normalize_tolerant(input["text"].as_str()?)})),
        "paths" => path(input),
        "edit_prepare_arguments" => Some(Value::Object(prepare_arguments(input.as_object()?.clone()))),
        "edit" => edit(input).await,
        "read" => read(input).await,
        "write" => write(input).await,
        "ls" => ls(input).await,
        "bash" => bash(input).await,
        _ => None,
    }
}

/// A folder on disk, and the workspace in it.
struct Folder {
    project: TempDir,
    /// Where large outputs go.
    temporary: TempDir,
}

impl Folder {
    fn new() -> Option<Self> {
        Some(Self { project: TempDir::new().ok()?, temporary: TempDir::new().ok()? })
    }

    fn workspace(&self) -> Workspace {
        local_workspace(LocalOptions {
            cwd: self.project.path().to_owned(),
            temp_dir: self.temporary.path().to_owned(),
            processes: ProcessOptions {
                environment: [("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())].into(),
                ..ProcessOptions::default()
            },
            ..LocalOptions::default()
        })
    }

    fn put(&self, path: &str, content: &str) -> Option<()> {
        let path = self.project.path().join(path);
        std::fs::create_dir_all(path.parent()?).ok()?;
        std::fs::write(path, content).ok()
    }

    fn content(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.project.path().join(path)).ok()
    }
}

async fn call(tool: &dyn AgentTool, arguments: ToolArguments) -> Result<ToolOutput, String> {
    let context = ToolContext::new("call", CancellationToken::new());
    tool.execute(arguments, context).await.map_err(|error| error.to_string())
}

fn truncate(input: &Value) -> Option<Value> {
    let usize_of = |name: &str| input["options"][name].as_u64().map(|number| number as usize);
    let defaults = Limits::default();
    let limits = Limits {
        lines: usize_of("maxLines").unwrap_or(defaults.lines),
        bytes: usize_of("maxBytes").unwrap_or(defaults.bytes),
    };
    let content = input["content"].as_str()?;
    let truncation = match input["side"].as_str()? {
        "head" => truncate_head(content, limits),
        "tail" => truncate_tail(content, limits),
        _ => return None,
    };
    serde_json::to_value(truncation).ok()
}

fn line(input: &Value) -> Option<Value> {
    if let Some(bytes) = input["bytes"].as_u64() {
        return Some(json!({"text": format_size(bytes)}));
    }
    let (text, max) = (input["text"].as_str()?, input["max"].as_u64()? as usize);
    let head = head_utf16(text, max);
    Some(json!({"head": head, "tail": tail_utf16(text, max), "was_truncated": head.len() < text.len()}))
}

fn path(input: &Value) -> Option<Value> {
    let text = |name: &str| input[name].as_str();
    let resolved = paths::lexical(text("path")?, Path::new(text("cwd")?), text("home").map(Path::new));
    Some(match resolved {
        Ok(resolved) => json!({"resolved": resolved.to_str()?}),
        Err(_) => json!({"error": true}),
    })
}

async fn edit(input: &Value) -> Option<Value> {
    let folder = Folder::new()?;
    let path = input["path"].as_str()?;
    let before = input["file"].as_str();
    if let Some(before) = before {
        folder.put(path, before)?;
    }
    let edits: Vec<Edit> = serde_json::from_value(input["edits"].clone()).ok()?;
    let never = CancellationToken::new();
    match edit_file(&folder.workspace(), &MutationQueue::default(), path, edits, &never).await {
        Ok(diff) => Some(json!({"file": folder.content(path)?, "details": diff})),
        Err(error) => {
            let mut facts = edit_error(&error)?;
            if before.is_some() {
                facts.insert("file_unchanged".to_owned(), (folder.content(path).as_deref() == before).into());
            }
            Some(Value::Object(facts))
        }
    }
}

/// The kind of an error, and what its text must show.
fn edit_error(error: &EditFileError) -> Option<Map<String, Value>> {
    let EditFileError::Edit { error, .. } = error else {
        return json!({"error": "file_unreadable"}).as_object().cloned();
    };
    let index = |index: usize, total: usize| (total > 1).then_some(index);
    let (kind, index, occurrences) = match error {
        EditError::NoEdits => ("no_edits", None, None),
        EditError::EmptyOldText { position } => ("empty_old_text", index(position.index, position.total), None),
        EditError::NotFound { position, .. } => ("not_found", index(position.index, position.total), None),
        EditError::NotUnique { position, occurrences, .. } => {
            ("not_unique", index(position.index, position.total), Some(*occurrences))
        }
        EditError::Overlap { .. } => ("overlap", None, None),
        EditError::NoChange => ("no_change", None, None),
        EditError::Encoding { .. } => ("encoding", None, None),
    };
    let mut facts = Map::from_iter([("error".to_owned(), kind.into())]);
    facts.extend(index.map(|index| ("edit_index".to_owned(), index.into())));
    facts.extend(occurrences.map(|occurrences| ("occurrences".to_owned(), occurrences.into())));
    Some(facts)
}

async fn read(input: &Value) -> Option<Value> {
    let folder = Folder::new()?;
    let arguments = &input["args"];
    let path = arguments["path"].as_str()?;
    folder.put(path, &file_content(&input["file"])?)?;
    let request =
        ReadRequest { path: path.to_owned(), offset: arguments["offset"].as_f64(), limit: arguments["limit"].as_f64() };
    let never = CancellationToken::new();
    let read = match read_file(&folder.workspace(), &request, &ImageOptions::Default, &never).await {
        Ok(ReadOutcome::Text(read)) => read,
        Ok(_) => return None,
        Err(error) => return Some(json!({"error": true, "numbers": numbers(&error.to_string())})),
    };
    let mut facts = Map::new();
    if read.body.len() > LONG_BODY {
        let lines: Vec<&str> = read.body.split('\n').collect();
        facts.insert("body_lines".to_owned(), lines.len().into());
        facts.insert("body_first_line".to_owned(), lines.first().copied().into());
        facts.insert("body_last_line".to_owned(), lines.last().copied().into());
    } else {
        facts.insert("body".to_owned(), read.body.into());
    }
    let notice = read.notice.map(|notice| numbers(&notice.replace(path, "")));
    facts.insert("notice_numbers".to_owned(), notice.into());
    facts.insert("truncation".to_owned(), read.truncation.as_ref().map(truncation_facts).into());
    Some(Value::Object(facts))
}

/// Longer bodies are described by their lines.
const LONG_BODY: usize = 4000;

fn file_content(file: &Value) -> Option<String> {
    if let Some(text) = file.as_str() {
        return Some(text.to_owned());
    }
    let repeat = &file["repeat"];
    let line = repeat["line"].as_str()?;
    Some((1..=repeat["count"].as_u64()?).map(|n| line.replace("{n}", &n.to_string()) + "\n").collect())
}

/// All of a truncation but the text, which is compared elsewhere.
fn truncation_facts(truncation: &Truncation) -> Value {
    let mut facts = json!(truncation);
    if let Some(facts) = facts.as_object_mut() {
        facts.shift_remove("content");
    }
    facts
}

/// The numbers in a text, with their unit where they are sizes.
fn numbers(text: &str) -> Vec<String> {
    let mut numbers = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
        let is_part = |character: char| character.is_ascii_digit() || character == '.';
        let end = rest[start..].find(|character| !is_part(character)).map_or(rest.len(), |length| start + length);
        let number = rest[start..end].trim_end_matches('.');
        let behind = &rest[end..];
        let unit = ["KB", "MB", "B"].into_iter().find(|unit| behind.starts_with(unit)).unwrap_or_default();
        numbers.push(format!("{number}{unit}"));
        rest = &behind[unit.len()..];
    }
    numbers
}

async fn write(input: &Value) -> Option<Value> {
    let folder = Folder::new()?;
    let tool = WriteTool::new(folder.workspace(), MutationQueue::default());
    let output = match call(&tool, input.as_object()?.clone()).await {
        Ok(output) => output,
        Err(_) => return Some(json!({"error": true})),
    };
    let mut files = Vec::new();
    list_files(folder.project.path(), "", &mut files)?;
    let [file] = files.as_slice() else { return None };
    Some(json!({"file": file, "content": folder.content(file)?, "text": output.to_text()}))
}

fn list_files(folder: &Path, prefix: &str, files: &mut Vec<String>) -> Option<()> {
    for entry in std::fs::read_dir(folder).ok()? {
        let entry = entry.ok()?;
        let name = format!("{prefix}{}", entry.file_name().to_str()?);
        if entry.path().is_dir() {
            list_files(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.push(name);
        }
    }
    Some(())
}

async fn ls(input: &Value) -> Option<Value> {
    let folder = Folder::new()?;
    for file in input["files"].as_array()? {
        folder.put(file.as_str()?, "")?;
    }
    let tool = LsTool::new(folder.workspace());
    Some(match call(&tool, input["args"].as_object()?.clone()).await {
        Ok(output) => json!({"text": output.to_text(), "details": output.details}),
        Err(_) => json!({"error": true}),
    })
}

async fn bash(input: &Value) -> Option<Value> {
    let folder = Folder::new()?;
    let tool = BashTool::new(folder.workspace(), BashOptions::default());
    let output = match call(&tool, input.as_object()?.clone()).await {
        Ok(output) => output,
        Err(text) => return Some(json!({"thrown": true, "text": text})),
    };
    let details = output.details.clone().unwrap_or_default();
    let truncation: Option<Truncation> = serde_json::from_value(details["truncation"].clone()).ok();
    let text = output.to_text();
    let mut facts = Map::from_iter([("isError".to_owned(), json!(output.is_error.unwrap_or(false)))]);
    let mut structured = output.structured_content?.as_object()?.clone();
    structured.shift_remove("wall_time_seconds");
    let full_output_path = structured.shift_remove("full_output_path");
    structured.insert("has_full_output_path".to_owned(), full_output_path.is_some().into());
    if let Some(truncation) = &truncation {
        // A long text is described by its lines.
        let path = details["fullOutputPath"].as_str()?;
        let (body, notice) = text.rsplit_once("\n\n")?;
        facts.insert("text_lines".to_owned(), (body.split('\n').count() + 2).into());
        facts.insert("first_line".to_owned(), body.split('\n').next().into());
        facts.insert("notice_numbers".to_owned(), numbers(&notice.replace(path, "")).into());
        facts.insert("truncation".to_owned(), truncation_facts(truncation));
        let length = structured.shift_remove("output")?.as_str()?.encode_utf16().count();
        structured.insert("output_length".to_owned(), length.into());
    } else {
        facts.insert("text".to_owned(), text.into());
        facts.insert("truncation".to_owned(), Value::Null);
    }
    facts.insert("structured".to_owned(), structured.into());
    facts.insert("has_full_output_path".to_owned(), details["fullOutputPath"].is_string().into());
    Some(Value::Object(facts))
}
