//! Files of older versions.

use pi_coding_agent::session::{Access, Notice};

use super::{HEADER, file, line, names_in, notices, open, open_for_writing, said, say};

const OLD: [&str; 3] = [
    r#"{"type":"session","id":"s","timestamp":"2024-01-01T00:00:00.000Z","cwd":"/project"}"#,
    r#"{"type":"message","timestamp":"2024-01-01T00:00:00.000Z","message":{"role":"user","content":"one","timestamp":1}}"#,
    r#"{"type":"message","timestamp":"2024-01-01T00:00:00.000Z","message":{"role":"hookMessage","customType":"x","content":"note","display":true,"timestamp":3}}"#,
];

#[tokio::test]
async fn the_old_file_is_kept_under_a_name_that_is_no_session() {
    let (folder, path) = file(&OLD);
    let old = std::fs::read(&path).unwrap();
    let session = open_for_writing(&path).await;
    assert_eq!(said(&session), ["one", "note"]);
    let kept = folder.path().join("session.jsonl.v1");
    assert_eq!(std::fs::read(&kept).unwrap(), old);
    let migrated = Notice::Migrated { from: 1, old_file: kept };
    assert!(session.with(|session| session.notices().contains(&migrated)));
    say(&session, "two").await;
    drop(session);
    assert_eq!(names_in(folder.path()), ["session.jsonl", "session.jsonl.v1"]);
    assert_eq!(said(&open_for_writing(&path).await), ["one", "note", "two"]);
}

#[tokio::test]
async fn reading_an_old_file_changes_nothing() {
    let (folder, path) = file(&OLD);
    let old = std::fs::read(&path).unwrap();
    let session = open(&path, Access::ReadOnly).await.unwrap();
    assert_eq!(said(&session), ["one", "note"]);
    assert_eq!(std::fs::read(&path).unwrap(), old);
    assert_eq!(names_in(folder.path()), ["session.jsonl"]);
}

#[tokio::test]
async fn lines_that_cannot_be_read_are_not_dropped_by_a_rewrite() {
    let (_folder, path) = file(&[OLD[0], OLD[1], "{\"type\":\"mess", OLD[2]]);
    let session = open_for_writing(&path).await;
    assert_eq!(said(&session), ["one", "note"]);
    assert!(std::fs::read_to_string(&path).unwrap().contains("\n{\"type\":\"mess\n"));
}

#[tokio::test]
async fn a_file_whose_version_is_not_a_whole_number_is_not_rewritten() {
    let label = r#"{"type":"label","id":"l","parentId":"c","timestamp":"2026-01-01T00:00:00.000Z","targetId":"b","label":"mark"}"#;
    let entries = [&line("a", None, "one"), &line("b", Some("a"), "two"), &line("c", Some("a"), "other"), label];
    for (version, is_odd) in [("3.0", false), ("\"3\"", true), ("3.5", true), ("true", true), ("[]", true)] {
        let header = HEADER.replace("\"version\":3", &format!("\"version\":{version}"));
        let (folder, path) = file(&[&[header.as_str()], &entries[..]].concat());
        let before = std::fs::read(&path).unwrap();
        let session = open_for_writing(&path).await;
        assert_eq!(said(&session), ["one", "other"], "{version}");
        assert_eq!(session.with(|session| session.label("b").map(|mark| mark.text.clone())).as_deref(), Some("mark"));
        assert_eq!(std::fs::read(&path).unwrap(), before, "{version}");
        let notices = notices(&session);
        assert_eq!(
            notices.iter().filter(|notice| notice.contains(&format!(": {version}; "))).count(),
            usize::from(is_odd)
        );
        assert_eq!(notices.len(), usize::from(is_odd), "{version}: {notices:?}");
        say(&session, "more").await;
        drop(session);
        assert_eq!(said(&open_for_writing(&path).await), ["one", "other", "more"], "{version}");
        assert_eq!(names_in(folder.path()), ["session.jsonl"], "{version}");
    }
}
