//! Several programs and one session.

use std::io::Write;

use pi_coding_agent::session::{Access, SessionError};

use super::{HEADER, create, file, line, notices, open, open_for_writing, said, say};

fn append(path: &std::path::Path, text: &str) {
    std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[tokio::test]
async fn a_second_writer_is_told_who_has_the_session_and_may_read() {
    let folder = tempfile::tempdir().unwrap();
    let first = create(folder.path());
    say(&first, "one").await;
    let path = first.path().unwrap();
    let error = open(&path, Access::Write).await.unwrap_err();
    assert!(matches!(error, SessionError::InUse { .. }), "{error}");
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");

    let reader = open(&path, Access::ReadOnly).await.unwrap();
    assert_eq!(said(&reader), ["one"]);
    assert!(matches!(reader.append_session_info("x").await, Err(SessionError::ReadOnly)));
    say(&first, "two").await;
    assert_eq!(reader.refresh().await.unwrap(), 1);
    assert_eq!(reader.with(|session| session.len()), 2);
    drop(first);
    say(&open_for_writing(&path).await, "three").await;
}

#[tokio::test]
async fn what_others_append_is_read_in_and_not_overwritten() {
    let (_folder, path) = file(&[HEADER, &line("a", None, "one")]);
    let session = open_for_writing(&path).await;
    append(&path, &format!("{}\n", line("b", Some("a"), "theirs")));
    say(&session, "ours").await;
    // The session goes on from where it was; what the other wrote is another branch.
    assert_eq!(said(&session), ["one", "ours"]);
    assert!(notices(&session)[0].contains("1 entries"), "{:?}", notices(&session));
    session.branch(&"b".into()).await.unwrap();
    assert_eq!(said(&session), ["one", "theirs"]);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 4);
}

#[tokio::test]
async fn what_others_left_half_written_is_closed_first() {
    let (_folder, path) = file(&[HEADER, &line("a", None, "one")]);
    let session = open_for_writing(&path).await;
    append(&path, "{\"type\":\"message\",\"id\":\"b\",\"par");
    say(&session, "ours").await;
    assert_eq!(said(&session), ["one", "ours"]);
    drop(session);
    assert_eq!(said(&open_for_writing(&path).await), ["one", "ours"]);
}

#[tokio::test]
async fn a_reader_takes_in_a_line_that_it_first_saw_half_of() {
    let (_folder, path) = file(&[HEADER, &line("a", None, "one")]);
    let theirs = line("b", Some("a"), "theirs");
    append(&path, &theirs[..40]);
    let reader = open(&path, Access::ReadOnly).await.unwrap();
    append(&path, &format!("{}\n", &theirs[40..]));
    assert_eq!(reader.refresh().await.unwrap(), 1);
    reader.branch(&"b".into()).await.unwrap();
    assert_eq!(said(&reader), ["one", "theirs"]);
}

#[tokio::test]
async fn a_file_that_was_replaced_or_cut_short_is_not_written_to() {
    let changes: [fn(&std::path::Path); 3] = [
        |path| {
            let other = path.with_extension("other");
            std::fs::write(&other, std::fs::read(path).unwrap()).unwrap();
            std::fs::rename(other, path).unwrap();
        },
        |path| std::fs::write(path, format!("{HEADER}\n")).unwrap(),
        |path| std::fs::remove_file(path).unwrap(),
    ];
    for change in changes {
        let (_folder, path) = file(&[HEADER, &line("a", None, "one")]);
        let session = open_for_writing(&path).await;
        change(&path);
        let before = std::fs::read(&path).ok();
        let error = session.append_session_info("x").await.unwrap_err();
        assert!(matches!(&error, SessionError::Replaced { path: Some(named) } if *named == path), "{error}");
        assert_eq!(std::fs::read(&path).ok(), before);
        assert_eq!(said(&session).len(), 1);
    }
}

#[tokio::test]
async fn a_new_session_does_not_take_a_name_that_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.jsonl");
    let new = Default::default();
    let session = pi_coding_agent::session::SessionManager::create_at(&path, new, Default::default()).unwrap();
    std::fs::write(&path, "somebody else's").unwrap();
    let error = session.append_message(pi_ai::Message::user("x")).await.unwrap_err();
    assert!(matches!(error, SessionError::Exists { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody else's");
    assert_eq!(said(&session), [""; 0]);
    assert_eq!(super::names_in(folder.path()), ["mine.jsonl"]);
}
