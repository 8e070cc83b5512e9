//! What sessions cost: opening a long one, appending to it, listing many.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use pi_ai::{Message, StopReason, Usage};
use pi_coding_agent::messages::SessionMessage;
use pi_coding_agent::session::{
    Access, ListOptions, SessionEnvironment, SessionFolder, SessionManager, SyncPolicy, indexed_sessions,
    search_sessions,
};
use serde::Deserialize;
use serde_json::{Value, json};
use xtask::Error;
use xtask::measure::{median, process_cpu};
use xtask::row::{Goal, Row};

use crate::{Finding, Size};

const MESSAGES: usize = 20_000;
/// So that the file has 55 MB.
const RESULT_BYTES: usize = 7_000;
/// The compaction stands this many messages before the end.
const SINCE_COMPACTION: usize = 100;

pub(crate) fn run(size: Size) -> Result<Vec<Finding>, Error> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (compacted, whole) = (folder.path().join("compacted.jsonl"), folder.path().join("whole.jsonl"));
    write_session(&compacted, Some(MESSAGES - SINCE_COMPACTION))?;
    write_session(&whole, None)?;

    let mut findings = Vec::new();
    findings.push(Finding::Row(open_compacted(&compacted, &runtime, size)?));
    findings.push(Finding::Row(open_whole(&whole, &runtime, size)?));
    let active = |path: &Path, from: usize| -> Result<u64, Error> {
        Ok(fs::read_to_string(path)?.lines().skip(from).map(|line| line.len() as u64).sum())
    };
    findings.push(memory(
        "session.open_compacted_memory",
        &compacted,
        active(&compacted, MESSAGES - SINCE_COMPACTION)?,
    )?);
    findings.push(memory("session.open_whole_memory", &whole, active(&whole, 0)?)?);
    findings.extend(append(folder.path(), &whole, &runtime, size)?.map(Finding::Row));
    findings.extend(list(folder.path(), &runtime, size)?.map(Finding::Row));
    Ok(findings)
}

/// What `--open-session` does: opens a session, and prints the resident memory in bytes.
pub(crate) fn open_and_tell(path: &Path) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let session = open(path, &runtime)?;
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    println!("{}", kilobytes * 1024);
    drop(session);
    Ok(())
}

fn environment() -> SessionEnvironment {
    SessionEnvironment { sync: SyncPolicy::Never, ..SessionEnvironment::default() }
}

fn open(path: &Path, runtime: &tokio::runtime::Runtime) -> Result<SessionManager, Error> {
    Ok(runtime.block_on(SessionManager::open(path, Access::ReadOnly, Path::new("/"), environment()))?)
}

/// Milliseconds of CPU time of all threads, by turns, so that a busy moment of the machine meets both.
fn by_turns(
    runs: usize,
    mut work: impl FnMut() -> Result<(), Error>,
    mut floor: impl FnMut() -> Result<(), Error>,
) -> Result<(f64, f64), Error> {
    let timed = |work: &mut dyn FnMut() -> Result<(), Error>| -> Result<f64, Error> {
        let start = process_cpu();
        work()?;
        Ok((process_cpu() - start).as_secs_f64() * 1000.0)
    };
    let (mut works, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        works.push(timed(&mut work)?);
        floors.push(timed(&mut floor)?);
    }
    Ok((median(works), median(floors)))
}

fn open_compacted(path: &Path, runtime: &tokio::runtime::Runtime, size: Size) -> Result<Row, Error> {
    let (value, floor) = by_turns(
        size.pick(15, 61),
        || {
            let session = open(path, runtime)?;
            assert!(black_box(session.context()).messages.len() > SINCE_COMPACTION);
            Ok(())
        },
        || newlines(path).map(|_| ()),
    )?;
    Ok(Row::new("session.open_compacted", value, "CPU-ms").floor(floor).goal(Goal::Ratio(2.0)))
}

/// Reads a file in pieces and finds its line breaks.
fn newlines(path: &Path) -> Result<usize, Error> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 256 << 10];
    let mut count = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(black_box(count)),
            read => count += memchr::memchr_iter(b'\n', &buffer[..read]).count(),
        }
    }
}

fn open_whole(path: &Path, runtime: &tokio::runtime::Runtime, size: Size) -> Result<Row, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "what counts is that the fields are read")]
    struct Line {
        r#type: String,
        id: String,
        parent_id: Option<String>,
        timestamp: String,
        message: Option<SessionMessage>,
    }
    let (value, floor) = by_turns(
        size.pick(9, 31),
        || {
            let session = open(path, runtime)?;
            assert_eq!(black_box(session.context()).messages.len(), MESSAGES);
            Ok(())
        },
        || {
            let text = fs::read_to_string(path)?;
            let lines: Result<Vec<Line>, _> = text.lines().skip(1).map(serde_json::from_str).collect();
            assert_eq!(black_box(lines?).len(), MESSAGES);
            Ok(())
        },
    )?;
    Ok(Row::new("session.open_whole", value, "CPU-ms").floor(floor).goal(Goal::Ratio(1.2)))
}

fn memory(name: &str, path: &Path, active: u64) -> Result<Finding, Error> {
    if !cfg!(target_os = "linux") {
        let reason = "this system has no /proc to read a process's memory from".to_owned();
        return Ok(Finding::LeftOut { name: name.to_owned(), reason });
    }
    let output = Command::new(std::env::current_exe()?).arg("--open-session").arg(path).output()?;
    let bytes: u64 = String::from_utf8(output.stdout)?.trim().parse()?;
    let limit = 25e6 + 1.5 * active as f64;
    Ok(Finding::Row(Row::new(name, bytes as f64 / 1e6, "MB").goal(Goal::Value(limit / 1e6))))
}

fn append(folder: &Path, long: &Path, runtime: &tokio::runtime::Runtime, size: Size) -> Result<[Row; 2], Error> {
    const APPENDS: usize = 500;
    let message: Message = serde_json::from_value(spoken(1)["message"].clone())?;
    let (short_path, long_path, bare_path) =
        (folder.join("short.jsonl"), folder.join("long.jsonl"), folder.join("bare"));
    fs::copy(long, &long_path)?;
    fs::write(&short_path, header())?;
    let open = |path: &Path| runtime.block_on(SessionManager::open(path, Access::Write, Path::new("/"), environment()));
    let (short, long) = (open(&short_path)?, open(&long_path)?);
    let line = {
        runtime.block_on(long.append_message(message.clone()))?;
        let text = fs::read(&long_path)?;
        let start = text[..text.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap_or_default();
        text[start + 1..].to_vec()
    };
    let bare = std::cell::RefCell::new(fs::OpenOptions::new().create(true).append(true).open(bare_path)?);
    let appends = |session: &SessionManager| -> Result<(), Error> {
        runtime.block_on(async {
            for _ in 0..APPENDS {
                session.append_message(message.clone()).await?;
                black_box(session.with(|session| session.projection().messages().len()));
            }
            Ok(())
        })
    };
    let runs = size.pick(21, 101);
    let (value, floor) = by_turns(
        runs,
        || appends(&long),
        || {
            for _ in 0..APPENDS {
                bare.borrow_mut().write_all(&line)?;
            }
            Ok(())
        },
    )?;
    let (at_length, at_start) = by_turns(runs, || appends(&long), || appends(&short))?;
    let micros = |millis: f64| millis * 1000.0 / APPENDS as f64;
    Ok([
        Row::new("session.append", micros(value), "CPU-us").floor(micros(floor)).goal(Goal::Ratio(2.0)),
        Row::new("session.append_at_20k", micros(at_length), "CPU-us").floor(micros(at_start)).goal(Goal::Ratio(1.3)),
    ])
}

fn list(folder: &Path, runtime: &tokio::runtime::Runtime, size: Size) -> Result<[Row; 4], Error> {
    /// The limit at 10,000 sessions.
    const LATER_MILLIS: f64 = 100.0;
    let sessions = folder.join("many");
    fs::create_dir(&sessions)?;
    let files: Vec<PathBuf> =
        (0..size.pick(2_000, 10_000)).map(|number| sessions.join(format!("{number:05}_s.jsonl"))).collect();
    for file in &files {
        let mut text = header();
        let mut number = 0;
        while text.len() < 20_000 {
            push_line(&mut text, &message(number, 1_500));
            number += 1;
        }
        fs::write(file, text)?;
    }
    let folder = SessionFolder::chosen(&sessions, Path::new("/agent"), Path::new("/project"));
    let (value, floor) = by_turns(
        size.pick(9, 15),
        || {
            let listed = runtime.block_on(folder.sessions(ListOptions::default(), &environment()))?;
            assert_eq!(listed.len(), files.len());
            Ok(())
        },
        || {
            for file in &files {
                black_box(fs::read(file)?);
            }
            Ok(())
        },
    )?;
    let first = Row::new("session.first_list", value, "CPU-ms").floor(floor).goal(Goal::Ratio(1.5));
    let limit = LATER_MILLIS * files.len() as f64 / 10_000.0;
    let indexed = || -> Result<(), Error> {
        let listed = runtime.block_on(indexed_sessions(&sessions, ListOptions::default(), &environment()))?;
        assert_eq!(listed.len(), files.len());
        Ok(())
    };
    let (with_index, floor) = by_turns(
        size.pick(5, 9),
        || {
            for ending in ["", "-wal", "-shm"] {
                let _ = fs::remove_file(sessions.join(format!(".search-index.sqlite{ending}")));
            }
            indexed()
        },
        || {
            for file in &files {
                black_box(fs::read(file)?);
            }
            Ok(())
        },
    )?;
    let with_index =
        Row::new("session.first_list_with_index", with_index, "CPU-ms").floor(floor).goal(Goal::Ratio(1.5));
    let found = || -> Result<(), Error> {
        let (options, query) = (ListOptions::default(), "parser keep");
        let hits = runtime.block_on(search_sessions(&sessions, query, 20, options, &environment()))?;
        assert_eq!(hits.len(), 20);
        Ok(())
    };
    // The first search reads the words; it is not a later one.
    found()?;
    let nothing = || Ok(());
    let (later, _) = by_turns(size.pick(9, 15), indexed, nothing)?;
    let (search, _) = by_turns(size.pick(9, 15), found, nothing)?;
    Ok([
        first,
        with_index,
        Row::new("session.later_list", later, "CPU-ms").goal(Goal::Value(limit)),
        Row::new("session.search", search, "CPU-ms").goal(Goal::Value(limit)),
    ])
}

fn header() -> Vec<u8> {
    let new = json!({"type": "session", "version": 3, "id": "s", "timestamp": TIME, "cwd": "/project"});
    format!("{new}\n").into_bytes()
}

const TIME: &str = "2026-01-01T00:00:00.000Z";

fn push_line(text: &mut Vec<u8>, line: &Value) {
    text.extend_from_slice(line.to_string().as_bytes());
    text.push(b'\n');
}

fn write_session(path: &Path, compaction_at: Option<usize>) -> Result<(), Error> {
    let mut text = header();
    for number in 0..MESSAGES {
        let mut line = message(number, RESULT_BYTES);
        if compaction_at == Some(number) {
            push_line(
                &mut text,
                &json!({
                    "type": "compaction", "id": "compaction", "parentId": id(number - 1), "timestamp": TIME,
                    "summary": "What happened before.", "firstKeptEntryId": id(number - 1), "tokensBefore": 150_000,
                }),
            );
            line["parentId"] = json!("compaction");
        }
        push_line(&mut text, &line);
    }
    Ok(fs::write(path, text)?)
}

fn id(number: usize) -> String {
    format!("{number:08x}")
}

/// A conversation of turns with two calls each, whose results are code.
fn message(number: usize, result_bytes: usize) -> Value {
    let mut line = spoken(number);
    line["message"] = match number % 6 {
        0 => json!({"role": "user", "content": [{"type": "text", "text": words(number, 200)}], "timestamp": 1}),
        1 | 3 => json!({
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": words(number, 600), "thinkingSignature": "c2lnbmF0dXJl".repeat(20)},
                {"type": "text", "text": words(number, 150)},
                {"type": "toolCall", "id": format!("call_{number}"), "name": "read", "arguments": {"path": "src/main.rs", "offset": number}},
            ],
            "api": "anthropic-messages", "provider": "anthropic", "model": "m", "usage": usage(), "stopReason": StopReason::ToolUse, "timestamp": 1,
        }),
        2 | 4 => json!({
            "role": "toolResult", "toolCallId": format!("call_{}", number - 1), "toolName": "read",
            "content": [{"type": "text", "text": code(number, result_bytes)}], "isError": false, "timestamp": 1,
        }),
        _ => json!({
            "role": "assistant", "content": [{"type": "text", "text": words(number, 800)}],
            "api": "anthropic-messages", "provider": "anthropic", "model": "m", "usage": usage(), "stopReason": StopReason::Stop, "timestamp": 1,
        }),
    };
    line
}

fn spoken(number: usize) -> Value {
    json!({
        "type": "message", "id": id(number), "parentId": number.checked_sub(1).map(id), "timestamp": TIME,
        "message": {"role": "user", "content": [{"type": "text", "text": words(number, 400)}], "timestamp": 1},
    })
}

fn usage() -> Usage {
    Usage { input: 1_000, output: 200, total_tokens: 1_200, ..Usage::default() }
}

fn words(seed: usize, bytes: usize) -> String {
    const WORDS: [&str; 8] = ["the", "parser", "reads", "each line,", "and", "keeps", "what it", "does not know."];
    let mut text = String::new();
    let mut number = seed;
    while text.len() < bytes {
        text.push_str(WORDS[number % WORDS.len()]);
        text.push(' ');
        number = number.wrapping_mul(5).wrapping_add(3);
    }
    text
}

fn code(seed: usize, bytes: usize) -> String {
    let mut text = String::new();
    let mut number = seed;
    while text.len() < bytes {
        text.push_str(&format!("    let value_{number} = read(\"{}\", {number})?;\n", words(number, 20)));
        number += 1;
    }
    text
}
