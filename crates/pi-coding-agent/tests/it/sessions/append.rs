//! Appending, going back, and what the context is then.

use pi_ai::{Message, ThinkingLevel};
use pi_coding_agent::{
    messages::{BashExecution, BranchSummaryMessage, CodingMessage, CustomContent},
    session::{
        BranchSummary, Compaction, Durability, EntryKind, Persistence, Replacement, SessionError, SessionManager,
    },
};

use super::{HEADER, answer, create, file, line, open_for_writing, said, say};

#[tokio::test]
async fn a_session_gets_its_file_with_the_first_message() {
    let folder = tempfile::tempdir().unwrap();
    let session = create(&folder.path().join("not/there/yet"));
    let chosen = session.append_model_change("p", "m").await.unwrap();
    assert_eq!(chosen.durability, Durability::Memory);
    let path = session.path().unwrap();
    assert_eq!(session.persistence(), Persistence::Buffered { path: path.clone() });
    assert!(!path.exists());

    let first = session.append_message(Message::user("hi")).await.unwrap();
    assert_eq!(first.durability, Durability::Written);
    assert_eq!(session.persistence(), Persistence::File { path: path.clone() });
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 3);
    // Both are read from the file now.
    assert_eq!(session.entry(chosen.id.as_str()).unwrap().body.kind(), EntryKind::ModelChange);
    assert_eq!(session.entry(first.id.as_str()).unwrap().parent_id, Some(chosen.id));
}

#[cfg(unix)]
#[tokio::test]
async fn only_its_owner_can_read_a_session() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let session = create(&folder.path().join("sessions"));
    say(&session, "hi").await;
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&session.path().unwrap()), 0o600);
    assert_eq!(mode(&folder.path().join("sessions")), 0o700);
}

#[tokio::test]
async fn what_was_appended_is_there_when_the_session_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let session = create(folder.path());
    let one = say(&session, "one").await;
    answer(&session, "two").await;
    session.append_label_change(&one, Some("start")).await.unwrap();
    session.append_session_info(" my\nname ").await.unwrap();
    session.append_thinking_level_change(ThinkingLevel::High).await.unwrap();
    session.append_custom("state", Some(serde_json::json!({"k": 1}))).await.unwrap();
    let before = (said(&session), session.context(), session.with(|session| session.tree()), session.leaf_id());
    let path = session.path().unwrap();
    drop(session);

    let session = open_for_writing(&path).await;
    let after = (said(&session), session.context(), session.with(|session| session.tree()), session.leaf_id());
    assert_eq!(after, before);
    assert_eq!(session.name().as_deref(), Some("my name"));
    assert_eq!(session.with(|session| session.label(one.as_str()).unwrap().text.clone()), "start");
    assert_eq!(session.cwd(), std::path::Path::new("/project"));
}

#[tokio::test]
async fn a_session_goes_back_and_grows_another_branch() {
    let session = SessionManager::in_memory();
    let one = say(&session, "one").await;
    let two = answer(&session, "two").await;
    session.branch(&one).await.unwrap();
    answer(&session, "another two").await;
    assert_eq!(said(&session), ["one", "another two"]);
    session.branch(&two).await.unwrap();
    assert_eq!(said(&session), ["one", "two"]);
    session.reset_leaf().await.unwrap();
    assert_eq!(said(&session), [""; 0]);
    say(&session, "a new beginning").await;
    let tree = session.with(|session| session.tree());
    assert_eq!((tree.roots.len(), tree.nodes[0].children.len()), (2, 2));
    let unknown = session.branch(&"nope".into()).await.unwrap_err();
    assert!(matches!(unknown, SessionError::UnknownEntry { .. }), "{unknown}");
    assert_eq!(said(&session), ["a new beginning"]);
}

#[tokio::test]
async fn an_edit_counts_from_where_it_was_made() {
    let session = SessionManager::in_memory();
    let one = say(&session, "one").await;
    let two = answer(&session, "two").await;
    session.append_context_edit(&one, Some(Replacement::text("1"))).await.unwrap();
    let left_out = session.append_context_edit(&two, None).await.unwrap().id;
    assert_eq!(said(&session), ["1"]);
    session.append_context_edit(&two, Some(Replacement::text("2"))).await.unwrap();
    assert_eq!(said(&session), ["1", "2"]);
    session.branch(&two).await.unwrap();
    assert_eq!(said(&session), ["one", "two"]);
    let refused = session.append_context_edit(&left_out, None).await.unwrap_err();
    assert!(matches!(refused, SessionError::NotOnBranch { .. }), "{refused}");
    let label = session.append_label_change(&one, None).await.unwrap().id;
    let refused = session.append_context_edit(&label, None).await.unwrap_err();
    assert!(matches!(refused, SessionError::NotEditable { .. }), "{refused}");
}

#[tokio::test]
async fn a_compaction_keeps_what_it_names_and_takes_the_prompt_along() {
    let session = SessionManager::in_memory();
    session.append_message(Message::system("Be brief.")).await.unwrap();
    say(&session, "one").await;
    let two = say(&session, "two").await;
    session.append_message(Message::system("In French.")).await.unwrap();
    let compaction = |first_kept_entry_id| Compaction {
        summary: "notes".into(),
        first_kept_entry_id,
        tokens_before: 9,
        ..Compaction::default()
    };
    session.append_compaction(compaction(Some(two.clone()))).await.unwrap();
    say(&session, "three").await;
    assert_eq!(said(&session), ["Be brief.\n\nIn French.", "notes", "two", "three"]);
    // A second one keeps a part that the first one kept.
    session.append_compaction(compaction(Some(two))).await.unwrap();
    assert_eq!(said(&session), ["Be brief.\n\nIn French.", "notes", "two", "three"]);
    session.append_compaction(compaction(None)).await.unwrap();
    assert_eq!(said(&session), ["Be brief.\n\nIn French.", "notes"]);
}

/// The projection that grew with the appends is the one that a reader builds from the file.
#[tokio::test]
async fn a_context_that_grew_is_the_context_that_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let session = create(folder.path());
    let mut ids = vec![say(&session, "start").await];
    for step in 0..60u32 {
        let pick = ids[(step * 7 % ids.len() as u32) as usize].clone();
        match step % 10 {
            3 => drop(session.append_context_edit(&pick, None).await),
            5 => drop(session.append_context_edit(&pick, Some(Replacement::text(format!("edit {step}")))).await),
            7 => {
                let first_kept_entry_id = Some(pick).filter(|_| step % 20 != 7);
                let summary = format!("notes {step}");
                let compaction = Compaction { summary, first_kept_entry_id, ..Compaction::default() };
                session.append_compaction(compaction).await.unwrap();
            }
            8 => session.branch(&pick).await.unwrap(),
            9 => {
                let summary = BranchSummary { summary: format!("branch {step}"), ..BranchSummary::default() };
                session.branch_with_summary(Some(&pick), summary).await.unwrap();
            }
            odd if odd % 2 == 1 => ids.push(answer(&session, &format!("answer {step}")).await),
            _ => ids.push(say(&session, &format!("say {step}")).await),
        }
        let grown = (session.context(), session.with(|session| session.projection().entries().len()));
        let leaf = session.leaf_id();
        let read = session.with(|session| {
            let projection = session.projection_at(leaf.as_ref().map(|leaf| leaf.as_str())).unwrap();
            (projection.context(), projection.entries().len())
        });
        assert_eq!(grown, read, "step {step}");
    }
}

#[tokio::test]
async fn messages_become_the_entries_that_are_made_for_them() {
    let session = SessionManager::in_memory();
    let custom = CodingMessage::Custom(CustomContent {
        custom_type: "note".into(),
        content: "remember".into(),
        display: true,
        details: None,
        timestamp: Default::default(),
    });
    let id = session.append_message(custom).await.unwrap().id;
    assert_eq!(session.entry(id.as_str()).unwrap().body.kind(), EntryKind::CustomMessage);
    let bash = CodingMessage::BashExecution(BashExecution { command: "ls".into(), ..BashExecution::default() });
    session.append_message(bash).await.unwrap();
    let summary = CodingMessage::BranchSummary(BranchSummaryMessage {
        summary: "x".into(),
        from_id: "root".into(),
        timestamp: Default::default(),
    });
    assert!(matches!(session.append_message(summary).await, Err(SessionError::SummaryMessage)));
}

#[tokio::test]
async fn nothing_unknown_is_lost() {
    let future =
        r#"{"type":"hologram","id":"h","parentId":"a","timestamp":"2026-01-01T00:00:00.000Z","beam":{"x":1.50}}"#;
    let odd = r#"{"type":"message","id":"b","parentId":"h","timestamp":"2026-01-01T00:00:00.000Z","mood":"fine","message":{"role":"telepath","thought":[1,2]}}"#;
    let (_folder, path) = file(&[HEADER, &line("a", None, "one"), future, odd]);
    let before = std::fs::read_to_string(&path).unwrap();
    let session = open_for_writing(&path).await;
    say(&session, "two").await;
    let after = std::fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(&before));
    assert_eq!(session.with(|session| session.line("h").unwrap()), future.as_bytes());
    let roles: Vec<String> = session.context().messages.iter().map(|message| message.role().into_owned()).collect();
    assert_eq!(roles, ["user", "telepath", "user"]);
}

#[tokio::test]
async fn appends_from_many_tasks_form_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let session = create(folder.path());
    let tasks: Vec<_> = (0..50)
        .map(|number| {
            let session = session.clone();
            // Some lines are long enough to be written on another thread.
            let text = "x".repeat(if number % 10 == 0 { 100_000 } else { 10 });
            tokio::spawn(async move { session.append_message(Message::user(text)).await.unwrap().id })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let branch = session.branch_entries();
    assert_eq!(branch.len(), 50);
    let path = session.path().unwrap();
    drop(session);
    assert_eq!(open_for_writing(&path).await.branch_entries(), branch);
}

#[tokio::test]
async fn a_caller_that_gives_up_does_not_tear_an_append() {
    let folder = tempfile::tempdir().unwrap();
    let session = create(folder.path());
    say(&session, "one").await;
    let long = "x".repeat(1 << 20);
    for _ in 0..20 {
        let append = session.append_message(Message::user(long.as_str()));
        let _ = tokio::time::timeout(std::time::Duration::ZERO, append).await;
    }
    let last = say(&session, "last").await;
    let path = session.path().unwrap();
    let branch = session.branch_entries();
    assert_eq!(session.leaf_id(), Some(last));
    drop(session);
    let session = open_for_writing(&path).await;
    assert_eq!(session.branch_entries(), branch);
    assert_eq!(super::notices(&session), [""; 0]);
}
