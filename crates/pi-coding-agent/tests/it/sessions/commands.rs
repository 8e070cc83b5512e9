//! What `pi sessions …` does.

use std::path::Path;

use pi_ai::{AssistantBlock, AssistantMessage, Cost, Timestamp, ToolCall, Usage};
use pi_coding_agent::{
    compaction::{ContextUsage, context_usage},
    session::{
        Access, Compaction, Deleted, EntryKind, ExportFormat, ListOptions, Problem, SessionEnvironment, SessionError,
        SessionFolder, SessionManager, TextDetail, Trash, UsageEntry, commands, delete_session, diagnose_session,
        repair_session,
    },
};
use serde_json::json;

use super::{HEADER, answer, case, create, file, file_of, line, names_in, notices, open, open_for_writing, said, say};

fn paid(input: u64, output: u64) -> Usage {
    let cost = Cost { total: 0.25, ..Cost::default() };
    Usage { input, output, total_tokens: input + output, cost, ..Usage::default() }
}

async fn priced_session(folder: &Path) -> SessionManager {
    let session = create(folder);
    let first = say(&session, "one").await;
    let call = ToolCall::new("1", "read", json!({"path": "/a"}));
    let content = vec![AssistantBlock::text("let me look"), call.into()];
    session.append_message(AssistantMessage { content, usage: paid(10, 5), ..Default::default() }).await.unwrap();
    session
        .append_usage(UsageEntry { kind: "cache_warm".into(), usage: paid(1, 1), ..Default::default() })
        .await
        .unwrap();
    session.branch(&first).await.unwrap();
    let content = vec![AssistantBlock::text("another way")];
    session.append_message(AssistantMessage { content, usage: paid(20, 5), ..Default::default() }).await.unwrap();
    session
}

#[tokio::test]
async fn totals_run_over_all_branches() {
    let folder = tempfile::tempdir().unwrap();
    let session = priced_session(folder.path()).await;
    let compaction = Compaction { summary: "notes".into(), usage: Some(paid(3, 2)), ..Compaction::default() };
    session.append_compaction(compaction).await.unwrap();
    let stats = session.with(|session| session.stats().unwrap());
    assert_eq!((stats.user_messages, stats.assistant_messages, stats.tool_calls, stats.total_messages), (1, 2, 1, 3));
    assert_eq!((stats.usage.input, stats.usage.output, stats.tokens(), stats.usage.cost.total), (34, 13, 47, 1.0));
    let text = commands::stats_text(&stats);
    assert!(text.contains("compactions") && text.contains("$1.0000"), "{text}");
}

#[tokio::test]
async fn how_full_the_context_is_is_not_known_after_a_compaction_until_an_answer_tells() {
    let session = SessionManager::in_memory();
    let usage = |session: &SessionManager| session.with(|session| context_usage(session.projection(), 1_000));
    session.append_message(AssistantMessage { usage: paid(90, 10), ..Default::default() }).await.unwrap();
    say(&session, &"x".repeat(400)).await;
    let told = ContextUsage { tokens: Some(200), context_window: 1_000, percent: Some(20.0) };
    assert_eq!(usage(&session), Some(told));
    session.append_compaction(Compaction { summary: "notes".into(), ..Compaction::default() }).await.unwrap();
    assert_eq!(usage(&session), Some(ContextUsage { tokens: None, context_window: 1_000, percent: None }));
    session.append_message(AssistantMessage { usage: paid(40, 10), ..Default::default() }).await.unwrap();
    assert_eq!(usage(&session).unwrap().tokens, Some(50));
    assert_eq!(session.with(|session| context_usage(session.projection(), 0)), None);
}

#[tokio::test]
async fn a_branch_is_exported_as_a_session_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let session = priced_session(folder.path()).await;
    let leaf = session.leaf_id().unwrap();
    session.append_label_change(&leaf, Some("here")).await.unwrap();
    let path = folder.path().join("out/branch.jsonl");
    let export = |format| {
        session.with(|session| session.export_to(&path, format, Path::new("/project"), &SessionEnvironment::default()))
    };
    export(ExportFormat::of_name(&path)).unwrap();
    let copy = open(&path, Access::ReadOnly).await.unwrap();
    assert_eq!(said(&copy), ["one", "another way"]);
    assert_eq!(copy.id(), session.id());
    assert_eq!(copy.branch_entries().last().unwrap().kind, EntryKind::Label);
    assert!(matches!(export(ExportFormat::Jsonl), Err(SessionError::Exists { .. })));

    let markdown = session.with(|session| session.to_markdown().unwrap());
    assert!(markdown.contains("## User\n\none\n") && markdown.contains("another way"), "{markdown}");
    assert!(!markdown.contains("let me look"));
    assert_eq!(ExportFormat::of_name(Path::new("a.md")), ExportFormat::Markdown);
}

#[tokio::test]
async fn a_session_is_outlined_with_its_labels() {
    let folder = tempfile::tempdir().unwrap();
    let session = priced_session(folder.path()).await;
    let leaf = session.leaf_id().unwrap();
    session.append_label_change(&leaf, Some("here")).await.unwrap();
    let outline = session.with(|session| commands::outline_text(session).unwrap());
    let lines: Vec<&str> = outline.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[1].contains("user") && lines[2].contains("assistant") && lines[2].contains("[here]  another way"));
}

#[tokio::test]
async fn a_sound_session_is_left_alone() {
    let (folder, path) = file(&[HEADER, &line("a", None, "one")]);
    let environment = SessionEnvironment::default();
    assert!(diagnose_session(&path, &environment).unwrap().is_sound());
    let repaired = repair_session(&path, Path::new("/"), &environment).unwrap();
    assert_eq!(repaired.old_file, None);
    assert_eq!(names_in(folder.path()), ["session.jsonl"]);
}

#[tokio::test]
async fn a_damaged_session_is_repaired_and_the_old_file_kept() {
    let inside = line("d", Some("c"), "four").replace("\"four\"", "\"fo");
    let inside = format!("{inside}}}}}");
    let lines = [
        line("a", None, "one"),
        line("b", Some("a"), "two")[..60].to_owned(),
        line("c", Some("b"), "three"),
        inside,
        line("e", Some("d"), "five"),
        r#"{"type":"hologram","id":"h","parentId":"e","x":1.50}"#.into(),
    ];
    let text = format!("{HEADER}\n{}\n{{\"torn", lines.join("\n"));
    let (folder, path) = file_of(text.as_bytes());
    let environment = SessionEnvironment::default();
    let diagnosis = diagnose_session(&path, &environment).unwrap();
    let lost_parent =
        |entry: &str, parent: &str| Problem::LostParent { entry: entry.into(), parent: Some(parent.into()) };
    assert_eq!(
        diagnosis.problems,
        [
            Problem::DamagedLine { line: 3, entry: Some("b".into()) },
            Problem::TornEnd { line: 8 },
            lost_parent("c", "a"),
            Problem::DamagedLine { line: 5, entry: Some("d".into()) },
            lost_parent("e", "c"),
        ]
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);

    // Nobody may be writing.
    let writer = open_for_writing(&path).await;
    assert!(matches!(repair_session(&path, Path::new("/"), &environment), Err(SessionError::InUse { .. })));
    drop(writer);
    let before = std::fs::read(&path).unwrap();
    let repaired = repair_session(&path, Path::new("/"), &environment).unwrap();
    assert_eq!(std::fs::read(repaired.old_file.unwrap()).unwrap(), before);
    assert_eq!(names_in(folder.path()), ["session.jsonl", "session.jsonl.damaged"]);
    assert!(diagnose_session(&path, &environment).unwrap().is_sound());
    let session = open_for_writing(&path).await;
    assert_eq!(said(&session), ["one", "three", "five"]);
    assert_eq!(notices(&session), [""; 0]);
    assert_eq!(session.with(|session| session.line("h").unwrap()), lines[5].as_bytes());
}

#[tokio::test]
async fn a_lost_header_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("2026-01-01T00-00-00-000Z_my-session.jsonl");
    std::fs::write(&path, case("damaged-header.jsonl")).unwrap();
    let environment = SessionEnvironment::default();
    let diagnosis = diagnose_session(&path, &environment).unwrap();
    assert_eq!(diagnosis.problems[0], Problem::NoHeader);
    assert_eq!(diagnosis.entries, 2);
    repair_session(&path, Path::new("/project"), &environment).unwrap();
    let session = open_for_writing(&path).await;
    assert_eq!(session.id(), *"my-session");
    assert_eq!(session.cwd(), Path::new("/project"));
    assert_eq!(said(&session), ["recover me", "ok"]);
}

#[tokio::test]
async fn a_deleted_session_can_be_got_out_of_the_trash() {
    let home = tempfile::tempdir().unwrap();
    let environment = SessionEnvironment::default();
    let trash = Trash::FreeDesktop(home.path().join("Trash"));
    for name in ["s.jsonl", "s.2.jsonl"] {
        let (folder, path) = file(&[HEADER, &line("a", None, "one")]);
        let path_of_session = folder.path().join("s.jsonl");
        std::fs::rename(path, &path_of_session).unwrap();
        let before = std::fs::read(&path_of_session).unwrap();
        let trashed = home.path().join("Trash/files").join(name);
        assert_eq!(delete_session(&path_of_session, &trash, &environment).unwrap(), Deleted::Trashed(trashed.clone()));
        assert_eq!(std::fs::read(trashed).unwrap(), before);
        assert_eq!(names_in(folder.path()), [""; 0]);
        let note = std::fs::read_to_string(home.path().join(format!("Trash/info/{name}.trashinfo"))).unwrap();
        assert!(note.starts_with("[Trash Info]\nPath=/") && note.contains("\nDeletionDate=20"), "{note}");
    }
    let (_folder, path) = file(&[HEADER]);
    let writer = open_for_writing(&path).await;
    assert!(matches!(delete_session(&path, &Trash::None, &environment), Err(SessionError::InUse { .. })));
    drop(writer);
    assert_eq!(delete_session(&path, &Trash::None, &environment).unwrap(), Deleted::Removed);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_list_shows_what_was_used_last_first() {
    let home = tempfile::tempdir().unwrap();
    let place = SessionFolder::chosen(home.path(), Path::new("/agent"), Path::new("/project"));
    for (time, text) in [(1_000, "older"), (9_000, "newer")] {
        let session = create(home.path());
        let message = pi_ai::UserMessage { content: text.into(), timestamp: Timestamp::from_millis(time) };
        session.append_message(message).await.unwrap();
        answer(&session, "reply").await;
    }
    let seen = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = seen.clone();
    let options = ListOptions {
        text: TextDetail::All,
        progress: Some(std::sync::Arc::new(move |progress| {
            counted.fetch_max(progress.done, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(progress.total, 2);
        })),
        ..ListOptions::default()
    };
    let listed = place.sessions(options, &SessionEnvironment::default()).await.unwrap();
    let firsts: Vec<_> = listed.iter().map(|session| session.first_message.as_deref().unwrap()).collect();
    assert_eq!(firsts, ["newer", "older"]);
    assert_eq!(listed[0].text, "newer reply");
    assert_eq!(seen.load(std::sync::atomic::Ordering::Relaxed), 2);
    let text = commands::list_text(&listed, Timestamp::from_millis(69_000));
    assert!(text.starts_with("    1 min  ") && text.contains("2 messages in /project"), "{text}");

    let ended = ListOptions::default();
    ended.signal.cancel();
    let error = place.sessions(ended, &SessionEnvironment::default()).await.unwrap_err();
    assert!(matches!(error, SessionError::Cancelled), "{error}");
}

#[cfg(feature = "search")]
mod search {
    use pi_coding_agent::session::{Hit, all_sessions, indexed_sessions, search_sessions};

    use super::*;

    async fn find(folder: &Path, query: &str) -> Vec<Hit> {
        let options = ListOptions::default();
        search_sessions(folder, query, 10, options, &SessionEnvironment::default()).await.unwrap()
    }

    #[tokio::test]
    async fn sessions_are_found_by_words_that_were_said_in_them() {
        let home = tempfile::tempdir().unwrap();
        let one = create(&home.path().join("--one--"));
        say(&one, "Why does the Zürich parser fail?").await;
        answer(&one, "Because of the umlaut").await;
        let two = create(&home.path().join("--two--"));
        say(&two, "Write a poem").await;
        two.append_session_info("Parser poem").await.unwrap();

        let hits = find(home.path(), "zurich pars").await;
        assert_eq!(hits.len(), 1);
        assert_eq!(hits[0].session.id, one.id());
        assert!(hits[0].excerpt.contains("«Zürich» «parser»"), "{}", hits[0].excerpt);
        // A name counts more than a text.
        let ids: Vec<_> = find(home.path(), "parser").await.into_iter().map(|hit| hit.session.id).collect();
        assert_eq!(ids, [two.id(), one.id()]);
        for odd in ["\"", "a\"b OR", "*", "NEAR(", "", "  "] {
            find(home.path(), odd).await;
        }
        assert!(commands::hits_text(&hits, Timestamp::default()).contains("«parser»"));
    }

    #[tokio::test]
    async fn the_index_follows_the_files_and_can_be_thrown_away() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("--one--");
        let session = create(&folder);
        say(&session, "first words").await;
        assert_eq!(find(home.path(), "second").await.len(), 0);
        say(&session, "second words").await;
        assert_eq!(find(home.path(), "second").await.len(), 1);
        let environment = SessionEnvironment::default();
        // A list that saw the file first does not keep a search from reading its words.
        say(&session, "third words").await;
        indexed_sessions(home.path(), ListOptions::default(), &environment).await.unwrap();
        assert_eq!(find(home.path(), "third").await.len(), 1);
        let indexed = indexed_sessions(home.path(), ListOptions::default(), &environment).await.unwrap();
        let listed = all_sessions(home.path(), ListOptions::default(), &environment).await.unwrap();
        assert_eq!(indexed, listed);

        std::fs::write(home.path().join(".search-index.sqlite"), "not a database, but quite a lot of bytes").unwrap();
        assert_eq!(find(home.path(), "second").await.len(), 1);
        std::fs::remove_file(session.path().unwrap()).unwrap();
        assert_eq!(find(home.path(), "second").await.len(), 0);
    }
    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_in_the_place_of_the_index_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let precious = home.path().join("precious.db");
        std::fs::write(&precious, "no database").unwrap();
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let link = home.path().join(format!(".search-index.sqlite{suffix}"));
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(&precious, &link).unwrap();
        }
        let environment = SessionEnvironment::default();
        indexed_sessions(home.path(), ListOptions::default(), &environment).await.unwrap();
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "no database");
        let index = std::fs::symlink_metadata(home.path().join(".search-index.sqlite")).unwrap();
        assert!(index.is_file(), "the index was made anew in the place of the link");
    }
}
