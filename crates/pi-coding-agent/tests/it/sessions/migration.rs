//! Files of older versions.

use pi_coding_agent::session::{Access, Notice};

use super::{file, names_in, open, open_for_writing, said, say};

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
