//! Files that are not as they should be.

use pi_coding_agent::session::{
    Access, EntryBody, EntryKind, Problem, SessionEnvironment, SessionError, diagnose_session, repair_session,
};

use super::{HEADER, case, file, file_of, line, notices, open, open_for_writing, said, say};

#[tokio::test]
async fn a_damaged_header_is_never_overwritten() {
    let (_folder, path) = file_of(&case("damaged-header.jsonl"));
    for access in [Access::Write, Access::ReadOnly] {
        let error = open(&path, access).await.unwrap_err();
        assert!(matches!(error, SessionError::NotASession { .. }), "{error}");
        assert!(error.to_string().contains("pi sessions repair"), "{error}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), case("damaged-header.jsonl"));
}

#[tokio::test]
async fn a_line_that_is_cut_keeps_its_place_in_the_tree() {
    let (_folder, path) = file_of(&case("cut-line.jsonl"));
    let session = open_for_writing(&path).await;
    let branch = session.branch_entries();
    let ids: Vec<&str> = branch.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, ["a1", "a2", "a3", "a4"]);
    assert_eq!(branch[1].kind, EntryKind::Unreadable);
    assert_eq!(session.entry("a2").unwrap().body, EntryBody::Unreadable);
    assert_eq!(said(&session), ["one", "three", "four"]);
    let notices = notices(&session);
    assert!(notices[0].contains("line 3") && notices[0].contains("a2"), "{notices:?}");
    assert_eq!(notices.len(), 1);
    // Nothing is written over it.
    say(&session, "five").await;
    assert!(std::fs::read(&path).unwrap().starts_with(&case("cut-line.jsonl")));
}

#[tokio::test]
async fn children_of_a_line_that_lost_its_ids_hang_on_the_entry_before_it() {
    let (_folder, path) = file(&[HEADER, &line("a", None, "one"), "{\"type\":\"mess", &line("c", Some("b"), "three")]);
    let session = open_for_writing(&path).await;
    assert_eq!(said(&session), ["one", "three"]);
    assert_eq!(session.with(|session| session.tree().roots.len()), 1);
    assert!(notices(&session)[0].contains("line 3"));
}

#[tokio::test]
async fn damage_inside_a_line_shows_when_it_is_read() {
    let broken = line("b", Some("a"), "two").replace("\"content\":\"two\"", "\"content\":\"tw\u{0}");
    let broken = broken.replace('\u{0}', "");
    let broken = format!("{}}}", broken.trim_end_matches('}'));
    let (_folder, path) = file(&[HEADER, &line("a", None, "one"), &broken, &line("c", Some("b"), "three")]);
    let session = open_for_writing(&path).await;
    assert_eq!(said(&session), ["one", "three"]);
    assert!(notices(&session).iter().any(|notice| notice.contains("entry b is damaged")), "{:?}", notices(&session));
}

#[tokio::test]
async fn a_session_never_goes_on_from_a_damaged_entry() {
    let whole = line("b", Some("a"), "two");
    for cut in 1..whole.len() {
        let torn = &whole[..cut];
        let text = format!("{HEADER}\n{}\n{torn}\n", line("a", None, "one"));
        let (_folder, path) = file_of(text.as_bytes());
        let session = open_for_writing(&path).await;
        assert_eq!(session.leaf_id().unwrap(), "a", "{torn}");
        assert_eq!(said(&session), ["one"], "{torn}");
        assert_eq!(notices(&session).len(), 1, "{torn}: {:?}", notices(&session));
        say(&session, "three").await;
        drop(session);
        let session = open_for_writing(&path).await;
        assert_eq!(said(&session), ["one", "three"], "{torn}");
    }
}

#[tokio::test]
async fn a_torn_end_is_closed_once_and_never_glued_to() {
    let torn = case("torn-end.jsonl");
    let (_folder, path) = file_of(&torn);
    let reading = open(&path, Access::ReadOnly).await.unwrap();
    assert!(notices(&reading)[0].contains("breaks off"));
    assert_eq!(std::fs::read(&path).unwrap(), torn);

    let session = open_for_writing(&path).await;
    assert!(notices(&session)[0].contains("line 4"), "{:?}", notices(&session));
    assert_eq!(std::fs::read(&path).unwrap(), [&torn[..], b"\n"].concat());
    say(&session, "three").await;
    assert_eq!(said(&session), ["one", "two", "three"]);
    drop(session);
    let session = open_for_writing(&path).await;
    assert_eq!(said(&session), ["one", "two", "three"]);
}

#[tokio::test]
async fn a_last_line_that_only_lacks_its_end_counts() {
    let text = format!("{HEADER}\n{}", line("a", None, "one"));
    let (_folder, path) = file_of(text.as_bytes());
    let session = open_for_writing(&path).await;
    assert_eq!(said(&session), ["one"]);
    assert_eq!(notices(&session), [""; 0]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text + "\n");
}

#[tokio::test]
async fn stored_messages_are_read_tolerantly() {
    let (_folder, path) = file_of(&case("odd-messages.jsonl"));
    let session = open_for_writing(&path).await;
    assert_eq!(said(&session), ["", "plain string", "x", "end"]);
    assert_eq!(notices(&session), [""; 0]);
    let copy = session.branched(&"a5".into()).await.unwrap();
    assert_eq!(said(&copy), said(&session));
    let stored = String::from_utf8(session.with(|session| session.line("a3").unwrap())).unwrap();
    assert_eq!(copy.with(|copy| String::from_utf8(copy.line("a3").unwrap()).unwrap()), stored);
}

#[tokio::test]
async fn half_a_surrogate_pair_does_not_cost_the_line() {
    let (_folder, path) = file_of(&case("half-surrogates.jsonl"));
    let session = open_for_writing(&path).await;
    assert_eq!(said(&session), ["x", "", "cut ", "next"]);
    assert_eq!(notices(&session), [""; 0]);
    // The file keeps the half.
    let copy = session.clone_branch().await.unwrap();
    let copied = std::fs::read_to_string(copy.path().unwrap()).unwrap();
    assert!(copied.contains(r"cut \ud83e"), "{copied}");
}

#[tokio::test]
async fn bytes_that_are_no_text_cost_only_themselves() {
    let text = line("a", None, "caf?").into_bytes();
    let text: Vec<u8> = text.into_iter().map(|byte| if byte == b'?' { 0xe9 } else { byte }).collect();
    let bytes = [HEADER.as_bytes(), b"\n", &text, b"\n"].concat();
    let (_folder, path) = file_of(&bytes);
    let session = open_for_writing(&path).await;
    assert_eq!(said(&session), ["caf\u{fffd}"]);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[tokio::test]
async fn a_result_whose_call_was_compacted_away_is_left_out() {
    let (_folder, path) = file_of(&case("result-of-compacted-call.jsonl"));
    let session = open_for_writing(&path).await;
    let roles: Vec<String> = session.context().messages.iter().map(|message| message.role().into_owned()).collect();
    assert_eq!(roles, ["compactionSummary", "assistant", "toolResult", "user", "user"]);
    let calls: Vec<String> = session
        .context()
        .messages
        .iter()
        .filter_map(|message| Some(message.as_tool_result()?.tool_call_id.to_string()))
        .collect();
    assert_eq!(calls, ["call_B"]);
}

#[tokio::test]
async fn an_entry_that_does_not_fit_its_type_is_kept_out_of_the_context() {
    let unfit = r#"{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":{"what":"is this"}}}"#;
    let (_folder, path) = file(&[HEADER, &line("a", None, "one"), unfit, &line("c", Some("b"), "three")]);
    let session = open_for_writing(&path).await;
    assert_eq!(said(&session), ["one", "three"]);
    assert!(notices(&session)[0].contains("entry b"), "{:?}", notices(&session));
    assert!(matches!(session.entry("b").unwrap().body, EntryBody::Unknown(_)));
}

#[tokio::test]
async fn circles_and_repeated_ids_do_not_hang() {
    let lines = [
        line("a", Some("b"), "one"),
        line("b", Some("a"), "two"),
        line("x", Some("x"), "self"),
        line("d", None, "first"),
        line("e", Some("d"), "middle"),
        line("d", Some("e"), "second"),
    ];
    let mut text = vec![HEADER];
    text.extend(lines.iter().map(String::as_str));
    let (_folder, path) = file(&text);
    let session = open_for_writing(&path).await;
    for entry in ["a", "b", "x", "d", "e"] {
        session.branch(&entry.into()).await.unwrap();
        assert!(said(&session).len() <= 3);
    }
    assert_eq!(session.with(|session| session.tree().nodes.len()), 6);
}

#[tokio::test]
async fn an_empty_file_becomes_a_session_and_a_folder_does_not() {
    let (folder, path) = file_of(b"");
    let session = open_for_writing(&path).await;
    assert_eq!(session.cwd(), std::path::Path::new("/elsewhere"));
    say(&session, "one").await;
    drop(session);
    assert_eq!(said(&open_for_writing(&path).await), ["one"]);
    assert!(open(folder.path(), Access::Write).await.is_err());
    let missing = folder.path().join("missing.jsonl");
    assert!(open(&missing, Access::Write).await.unwrap_err().to_string().contains("missing.jsonl"));
    assert_eq!(super::names_in(folder.path()), ["session.jsonl"]);
}

/// Sixty megabytes of small entries and one line of ten: opened for reading, only the branch is in memory.
#[tokio::test]
async fn a_large_session_opens() {
    let mut text = format!("{HEADER}\n").into_bytes();
    let filler = "x".repeat(900);
    for number in 0..6_000u32 {
        let parent = number.checked_sub(1).map(|parent| parent.to_string());
        text.extend_from_slice(line(&number.to_string(), parent.as_deref(), &filler).as_bytes());
        text.push(b'\n');
    }
    text.extend_from_slice(line("big", Some("5999"), &"y".repeat(10 << 20)).as_bytes());
    text.push(b'\n');
    let compaction = r#"{"type":"compaction","id":"k","parentId":"big","timestamp":"2026-01-01T00:00:00.000Z","summary":"notes","firstKeptEntryId":"k","tokensBefore":1}"#;
    text.extend_from_slice(compaction.as_bytes());
    let (_folder, path) = file_of(&text);
    let session = open(&path, Access::ReadOnly).await.unwrap();
    assert_eq!(said(&session), ["notes"]);
    assert_eq!(session.with(|session| session.len()), 6_002);
    session.branch(&"big".into()).await.unwrap();
    assert_eq!(said(&session).last().unwrap().len(), 10 << 20);
}

#[tokio::test]
async fn json_that_nests_too_deep_to_be_read_stays_as_it_is_and_is_not_called_damaged() {
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    let custom = format!(
        r#"{{"type":"custom","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:00.000Z","customType":"x","data":{deep}}}"#
    );
    let huge = custom.replace(&deep, "1e999").replace(r#""id":"b","parentId":"a""#, r#""id":"c","parentId":"b""#);
    let (_folder, path) = file(&[HEADER, &line("a", None, "one"), &custom, &huge, &line("d", Some("c"), "four")]);
    let session = open_for_writing(&path).await;
    assert_eq!(said(&session), ["one", "four"]);
    for (id, line) in [("b", &custom), ("c", &huge)] {
        assert_eq!(session.with(|session| session.line(id).unwrap()), line.as_bytes());
    }
    assert!(notices(&session).iter().all(|notice| !notice.contains("damaged")), "{:?}", notices(&session));
    drop(session);
    assert!(diagnose_session(&path, &SessionEnvironment::default()).unwrap().is_sound());
}

#[tokio::test]
async fn what_could_not_be_read_back_is_not_written() {
    let (_folder, path) = file(&[HEADER, &line("a", None, "one")]);
    let session = open_for_writing(&path).await;
    let nested = |levels: usize| (0..levels).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
    let before = std::fs::read(&path).unwrap();
    let error = session.append_custom("x", Some(nested(101))).await.unwrap_err();
    assert!(matches!(error, SessionError::TooDeep { levels: 100, .. }), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let appended = session.append_custom("x", Some(nested(100))).await.unwrap();
    drop(session);
    let session = open_for_writing(&path).await;
    let EntryBody::Custom(custom) = session.entry(appended.id.as_str()).unwrap().body else { panic!("another entry") };
    assert_eq!(custom.data, Some(nested(100)));
}

#[tokio::test]
async fn a_header_in_the_middle_is_told_and_taken_out_by_a_repair() {
    let (_folder, path) = file(&[HEADER, &line("a", None, "one"), HEADER, &line("b", Some("a"), "two")]);
    let reading = open(&path, Access::ReadOnly).await.unwrap();
    assert_eq!(said(&reading), ["one", "two"]);
    assert!(notices(&reading)[0].contains("line 3 is another session header"), "{:?}", notices(&reading));
    let environment = SessionEnvironment::default();
    let repaired = repair_session(&path, std::path::Path::new("/"), &environment).unwrap();
    assert_eq!(repaired.diagnosis.problems, [Problem::StrayHeader { line: 3 }]);
    assert!(diagnose_session(&path, &environment).unwrap().is_sound());
}

#[test]
fn a_file_that_is_nothing_of_a_session_is_not_made_one() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [("notes.txt", "# Shopping\n\n- milk\n"), ("data.json", "{\"a\": 1}\n[2]\n")] {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let error = repair_session(&path, std::path::Path::new("/"), &SessionEnvironment::default()).unwrap_err();
        assert!(matches!(error, SessionError::NoSessionLeft { .. }), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    }
    assert_eq!(super::names_in(folder.path()), ["data.json", "notes.txt"]);
}

#[test]
fn a_version_that_is_none_is_in_the_diagnosis() {
    let header = HEADER.replace("\"version\":3", "\"version\":\"three\"");
    let (_folder, path) = file(&[&header, &line("a", None, "one")]);
    let diagnosis = diagnose_session(&path, &SessionEnvironment::default()).unwrap();
    assert_eq!(diagnosis.problems, [Problem::OddVersion { stated: "\"three\"".into() }]);
    assert!(!diagnosis.needs_repair());
}
