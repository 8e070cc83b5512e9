//! `cargo xtask sessions`: pi's own loader reads sessions that were written here.

use std::path::{Path, PathBuf};
use std::process::Command as Process;

use clap::{Arg, ArgMatches, Command, value_parser};
use pi_ai::testing::expect::mismatch;
use pi_ai::{
    AssistantBlock, AssistantMessage, InputBlock, Message, SystemMessage, ThinkingLevel, ToolCall, ToolResultMessage,
};
use pi_coding_agent::messages::{BashExecution, CodingMessage};
use pi_coding_agent::session::{
    BranchSummary, Compaction, CustomMessageEntry, EntryId, ExportFormat, NewSession, Replacement, SessionEnvironment,
    SessionManager,
};
use serde_json::{Value, json};

use crate::{Error, Outcome};

/// Reads each file with the reference's loader and prints what it makes of it, as one JSON array.
const SCRIPT: &str = "\
const [loader, ...files] = process.argv.slice(2);
const { SessionManager } = await import(loader);
console.log(JSON.stringify(files.map((file) => {
    const session = SessionManager.open(file);
    const labels = Object.fromEntries(session.getEntries().map((entry) => [entry.id, session.getLabel(entry.id)]).filter(([, label]) => label));
    return {
        context: session.buildSessionContext(),
        branch: session.getBranch().map((entry) => entry.id),
        leaf: session.getLeafId(),
        name: session.getSessionName() ?? null,
        labels,
    };
})));
";

pub(crate) fn command() -> Command {
    Command::new("sessions")
        .about("Has pi's own loader read sessions that were written here, and compares the contexts")
        .long_about(
            "Writes sessions with everything in them, has the loader of pi read them, and compares what each makes of \
             them: the context, the branch, the labels, the name.\n\nPi is taken from DIR, where \
             `npm install @earendil-works/pi-coding-agent@1.6.0` was run; a folder outside the repository will do. \
             Without Node or without DIR the command does nothing and says so.",
        )
        .arg(Arg::new("dir").value_name("DIR").value_parser(value_parser!(PathBuf)).help("Where pi is installed"))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<Outcome, Error> {
    let Some(dir) = matches.get_one::<PathBuf>("dir") else {
        println!("skipped: say in which folder `npm install @earendil-works/pi-coding-agent@1.6.0` was run");
        return Ok(Outcome::Fine);
    };
    let loader = dir.join("node_modules/@earendil-works/pi-coding-agent/dist/core/session-manager.js");
    if !loader.exists() {
        return Err(format!("{} does not exist; is pi installed in {}?", loader.display(), dir.display()).into());
    }
    if Process::new("node").arg("--version").output().is_err() {
        println!("skipped: there is no `node`");
        return Ok(Outcome::Fine);
    }
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut files = Vec::new();
    for seed in 1..=40 {
        files.extend(runtime.block_on(write_sessions(folder.path(), seed))?);
    }
    let script = folder.path().join("read.mjs");
    std::fs::write(&script, SCRIPT)?;
    let output = Process::new("node").arg(&script).arg(loader.canonicalize()?).args(&files).output()?;
    if !output.status.success() {
        return Err(format!("the loader failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let theirs: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let mut differing = 0;
    for (file, theirs) in files.iter().zip(theirs) {
        let ours = runtime.block_on(read(file))?;
        if let Some(difference) = mismatch(&theirs, &ours) {
            differing += 1;
            println!("{}: {difference}", file.display());
            let kept = std::env::temp_dir().join(file.file_name().unwrap_or_default());
            std::fs::copy(file, &kept)?;
            println!("  kept as {}", kept.display());
        }
    }
    println!("{} sessions, {differing} read differently", files.len());
    Ok(if differing == 0 { Outcome::Fine } else { Outcome::Failed })
}

async fn read(file: &Path) -> Result<Value, Error> {
    let access = pi_coding_agent::session::Access::ReadOnly;
    let session = SessionManager::open(file, access, Path::new("/"), SessionEnvironment::default()).await?;
    Ok(session.with(|session| {
        // A label may be on an entry of a branch that was not exported.
        let labels = session.labels().filter(|(id, _)| session.contains(id.as_str()));
        let labels: serde_json::Map<String, Value> =
            labels.map(|(id, mark)| (id.to_string(), json!(mark.text))).collect();
        let branch: Vec<EntryId> = session.branch().into_iter().map(|entry| entry.id).collect();
        let projection = session.projection();
        json!({
            "context": {
                "messages": projection.messages(),
                "thinkingLevel": projection.thinking_level(),
                "model": projection.model(),
            },
            "branch": branch,
            "leaf": session.leaf_id(),
            "name": session.name(),
            "labels": labels,
        })
    }))
}

/// A session of operations at random, its clone and its export.
async fn write_sessions(folder: &Path, seed: u64) -> Result<Vec<PathBuf>, Error> {
    let mut random = Random(seed);
    let new = NewSession { cwd: "/project".into(), ..NewSession::default() };
    let session = SessionManager::create(folder, new, SessionEnvironment::default())?;
    session.append_model_change("local", "m1").await?;
    let prompt = SystemMessage::new("").section("rules", "Be brief.").section("tone", "plain");
    session.append_message(prompt).await?;
    let mut ids = vec![session.append_message(Message::user("the beginning é漢😀")).await?.id];
    for step in 0..60 {
        let picked = ids[random.below(ids.len())].clone();
        match random.below(16) {
            0..4 => ids.push(session.append_message(Message::user(format!("say {step}"))).await?.id),
            4..7 => ids.push(session.append_message(answer(&format!("answer {step}"))).await?.id),
            // Only the result may be edited: the reference sends results whose calls were left out.
            7 | 8 => ids.push(call_tool(&session, step).await?),
            9 => drop(session.append_context_edit(&picked, None).await),
            10 => drop(session.append_context_edit(&picked, Some(Replacement::text(format!("edit {step}")))).await),
            11 => {
                session.append_label_change(&picked, Some(["", "a mark", "another"][random.below(3)])).await?;
            }
            12 => {
                session.append_thinking_level_change(ThinkingLevel::ALL[random.below(7)]).await?;
                session.append_session_info(&format!(" name\n{step} ")).await?;
            }
            13 => {
                session.append_custom("state", Some(json!({"step": step, "text": "\u{2028}\"\\"}))).await?;
                let content = vec![InputBlock::text("look"), InputBlock::image("aGk=", "image/png")].into();
                let message = CustomMessageEntry { custom_type: "note".into(), content, display: true, details: None };
                ids.push(session.append_custom_message(message).await?.id);
                let bash = BashExecution { command: "ls".into(), exit_code: Some(0), ..BashExecution::default() };
                session.append_message(CodingMessage::BashExecution(bash)).await?;
            }
            14 => {
                let summary = BranchSummary { summary: format!("left at {step}"), ..BranchSummary::default() };
                session.branch_with_summary(Some(&picked), summary).await?;
            }
            _ => {
                // Only where no result can lose its call: the reference sends such results.
                let first_kept_entry_id = Some(session.append_message(Message::user("keep from here")).await?.id);
                let summary = format!("notes {step}");
                session.append_compaction(Compaction { summary, first_kept_entry_id, ..Compaction::default() }).await?;
            }
        }
    }
    let path = session.path().ok_or("the session has no file")?;
    let clone = session.clone_branch().await?.path().ok_or("the clone has no file")?;
    let export = folder.join(format!("export-{seed}.jsonl"));
    session.with(|session| {
        session.export_to(&export, ExportFormat::Jsonl, Path::new("/project"), &SessionEnvironment::default())
    })?;
    Ok(vec![path, clone, export])
}

fn answer(text: &str) -> Message {
    let content = vec![AssistantBlock::thinking("hm"), AssistantBlock::text(text)];
    AssistantMessage { content, provider: "local".into(), model: "m2".into(), ..AssistantMessage::default() }.into()
}

async fn call_tool(session: &SessionManager, step: usize) -> Result<EntryId, Error> {
    let id = format!("call_{step}");
    let call = ToolCall::new(id.as_str(), "read", json!({"path": "/a", "number": 1.5, "nothing": null}));
    let asked =
        AssistantMessage { content: vec![call.into()], provider: "local".into(), ..AssistantMessage::default() };
    let result = ToolResultMessage {
        tool_call_id: id.into(),
        tool_name: "read".into(),
        content: vec![InputBlock::text("line\nline\t\u{1}")],
        details: Some(json!({"lines": 2})),
        ..ToolResultMessage::default()
    };
    session.append_message(asked).await?;
    Ok(session.append_message(result).await?.id)
}

/// Numbers that are the same on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % limit
    }
}
