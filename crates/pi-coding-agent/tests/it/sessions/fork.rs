//! Sessions made from sessions.

use std::path::Path;

use pi_coding_agent::session::{Access, Persistence, SessionEnvironment, SessionError, SessionFolder, SessionManager};

use super::{HEADER, answer, case, create, file, file_of, line, names_in, open_for_writing, said, say};

fn folder(path: &Path) -> SessionFolder {
    SessionFolder::chosen(path, Path::new("/agent"), Path::new("/here"))
}

#[tokio::test]
async fn a_fork_writes_to_its_own_file_from_the_first_entry() {
    let home = tempfile::tempdir().unwrap();
    let session = create(home.path());
    say(&session, "one").await;
    answer(&session, "two").await;
    let three = say(&session, "three").await;
    let parent = session.path().unwrap();
    let before = std::fs::read(&parent).unwrap();

    let fork = session.fork_before(&three).await.unwrap();
    assert_eq!(fork.text, "three");
    say(&fork.session, "another three").await;
    assert_eq!(said(&fork.session), ["one", "two", "another three"]);
    assert_ne!(fork.session.path().unwrap(), parent);
    assert_eq!(std::fs::read(&parent).unwrap(), before);
    let header = fork.session.with(|session| session.header().clone());
    assert_eq!(header.parent_session.as_deref(), parent.to_str());
    assert_eq!(header.cwd.as_deref(), Some("/project"));
}

#[tokio::test]
async fn a_fork_before_the_first_message_keeps_its_parent() {
    let home = tempfile::tempdir().unwrap();
    let session = create(home.path());
    let one = say(&session, "one").await;
    let fork = session.fork_before(&one).await.unwrap();
    assert!(matches!(fork.session.persistence(), Persistence::Buffered { .. }));
    say(&fork.session, "other").await;
    let path = fork.session.path().unwrap();
    drop(fork);
    let fork = open_for_writing(&path).await;
    assert_eq!(fork.with(|fork| fork.header().parent_session.clone()).as_deref(), session.path().unwrap().to_str());
}

#[tokio::test]
async fn what_is_not_saved_cannot_be_forked() {
    let home = tempfile::tempdir().unwrap();
    let session = create(home.path());
    let chosen = session.append_model_change("p", "m").await.unwrap();
    assert!(matches!(session.fork_before(&chosen.id).await, Err(SessionError::NotSaved)));
    assert!(matches!(session.clone_branch().await, Err(SessionError::NotSaved)));
    say(&session, "one").await;
    let refused = session.fork_before(&chosen.id).await.unwrap_err();
    assert!(matches!(refused, SessionError::NotAUserMessage { .. }), "{refused}");
}

#[tokio::test]
async fn a_clone_has_the_branch_and_its_labels_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let session = create(home.path());
    let one = say(&session, "one").await;
    session.append_label_change(&one, Some("start")).await.unwrap();
    let aside = say(&session, "aside").await;
    session.append_label_change(&aside, Some("aside")).await.unwrap();
    session.branch(&one).await.unwrap();
    say(&session, "two").await;
    let copy = session.clone_branch().await.unwrap();
    assert_eq!(said(&copy), ["one", "two"]);
    assert_eq!(copy.with(|copy| copy.len()), 3);
    let labels = |session: &SessionManager| {
        session.with(|session| session.labels().map(|(_, mark)| mark.clone()).collect::<Vec<_>>())
    };
    assert_eq!(labels(&copy), labels(&session)[..1]);
}

#[tokio::test]
async fn a_copy_hangs_children_of_damaged_entries_on_what_came_before() {
    let (_home, path) = file_of(&case("cut-line.jsonl"));
    let session = open_for_writing(&path).await;
    let copy = session.clone_branch().await.unwrap();
    assert_eq!(said(&copy), said(&session));
    assert_eq!(copy.branch_entries().len(), 3);
    assert_eq!(super::notices(&copy), [""; 0]);
}

#[tokio::test]
async fn a_whole_session_moves_to_another_project() {
    let damaged = "{\"type\":\"mess";
    let (home, path) = file(&[HEADER, &line("a", None, "one"), damaged, &line("b", Some("a"), "two")]);
    let target = home.path().join("target");
    let session =
        SessionManager::fork_from(&path, &folder(&target), None, SessionEnvironment::default()).await.unwrap();
    assert_eq!(said(&session), ["one", "two"]);
    assert_eq!(session.cwd(), Path::new("/here"));
    let text = std::fs::read_to_string(session.path().unwrap()).unwrap();
    let original = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.split_once('\n').unwrap().1, original.split_once('\n').unwrap().1);
    let header = session.with(|session| session.header().clone());
    assert_eq!(header.parent_session.as_deref(), path.to_str());
    assert_ne!(header.id, "s");
    assert_eq!(names_in(&target).iter().filter(|name| name.ends_with(".tmp")).count(), 0);
}

#[tokio::test]
async fn an_old_session_is_migrated_while_it_is_forked() {
    let old = [
        r#"{"type":"session","id":"s","timestamp":"2024-01-01T00:00:00.000Z","cwd":"/project"}"#,
        r#"{"type":"message","timestamp":"2024-01-01T00:00:00.000Z","message":{"role":"user","content":"one","timestamp":1}}"#,
        r#"{"type":"message","timestamp":"2024-01-01T00:00:00.000Z","message":{"role":"user","content":"two","timestamp":1}}"#,
    ];
    let (home, path) = file(&old);
    let before = std::fs::read(&path).unwrap();
    let target = folder(&home.path().join("target"));
    let session = SessionManager::fork_from(&path, &target, None, SessionEnvironment::default()).await.unwrap();
    assert_eq!(said(&session), ["one", "two"]);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(session.with(|session| session.header().version), 3);
}

#[tokio::test]
async fn an_import_keeps_id_and_folder_and_gets_a_number_when_the_name_is_taken() {
    let (home, path) = file(&[HEADER, &line("a", None, "one")]);
    let target = home.path().join("target");
    for name in ["session.jsonl", "session-1.jsonl", "session-2.jsonl"] {
        let imported = SessionManager::import(&path, &folder(&target), SessionEnvironment::default()).await.unwrap();
        assert_eq!(imported, target.join(name));
        assert_eq!(std::fs::read(&imported).unwrap(), std::fs::read(&path).unwrap());
    }
    let (_other, no_session) = file_of(b"not a session");
    assert!(SessionManager::import(&no_session, &folder(&target), Default::default()).await.is_err());
    assert_eq!(names_in(&target).len(), 3);
}

#[tokio::test]
async fn the_last_session_is_continued_and_sessions_are_found_by_a_part_of_their_id() {
    let home = tempfile::tempdir().unwrap();
    let place = SessionFolder::usual(home.path(), Path::new("/project"));
    let environment = SessionEnvironment::default();
    let first = SessionManager::continue_recent(&place, environment.clone()).await.unwrap();
    say(&first, "first").await;
    let (id, path) = (first.id(), first.path().unwrap());
    drop(first);
    let again = SessionManager::continue_recent(&place, environment.clone()).await.unwrap();
    assert_eq!(again.id(), id);
    let second = create(place.path());
    say(&second, "second").await;

    assert_eq!(place.find(&id, &environment).await.unwrap(), Some(path.clone()));
    assert_eq!(place.find_by_prefix(&id, &environment).await.unwrap(), path);
    // Both ids begin with the time.
    let common: String = id.chars().zip(second.id().chars()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    let error = place.find_by_prefix(&common, &environment).await.unwrap_err();
    assert!(matches!(&error, SessionError::AmbiguousId { found, .. } if found.len() == 2), "{error}");
    let error = place.find_by_prefix("nope", &environment).await.unwrap_err();
    assert!(matches!(error, SessionError::NoSuchSession { .. }), "{error}");
    drop(again);
    let open = SessionManager::open(&path, Access::Write, Path::new("/"), environment).await.unwrap();
    assert_eq!(said(&open), ["first"]);
}
