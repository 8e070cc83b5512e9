//! `pi sessions`: what was kept, seen and changed from outside.

use std::{fs, path::PathBuf};

use pretty_assertions::assert_eq;

use super::program::{Place, Ran, lines};

/// A session file of this folder with a question, an answer and another question.
fn session(place: &Place, id: &str, question: &str) -> PathBuf {
    let cwd = place.cwd();
    let folder = place.agent_dir().join(format!("sessions/--{}--", cwd.to_str().unwrap()[1..].replace('/', "-")));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("2026-01-01T00-00-00-000Z_{id}.jsonl"));
    fs::write(&path, text(id, cwd.to_str().unwrap(), question)).unwrap();
    path
}

fn text(id: &str, cwd: &str, question: &str) -> String {
    let time = "2026-01-01T00:00:00.000Z";
    let usage = serde_json::json!({
        "input": 100, "output": 20, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 120,
        "cost": {"input": 0.1, "output": 0.2, "cacheRead": 0, "cacheWrite": 0, "total": 0.3},
    });
    let answer = serde_json::json!({
        "role": "assistant", "content": [{"type": "text", "text": "It is the parser."}], "api": "anthropic-messages",
        "provider": "anthropic", "model": "claude-sonnet-4-5", "usage": usage, "stopReason": "stop", "timestamp": 2,
    });
    let lines = [
        serde_json::json!({"type": "session", "version": 3, "id": id, "timestamp": time, "cwd": cwd}),
        serde_json::json!({"type": "message", "id": "a", "parentId": null, "timestamp": time,
            "message": {"role": "user", "content": question, "timestamp": 1}}),
        serde_json::json!({"type": "message", "id": "b", "parentId": "a", "timestamp": time, "message": answer}),
        serde_json::json!({"type": "message", "id": "c", "parentId": "b", "timestamp": time,
            "message": {"role": "user", "content": "And then?", "timestamp": 3}}),
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

fn succeeds(place: &Place, words: &[&str]) -> Ran {
    let ran = place.run(words);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

#[test]
fn the_sessions_of_this_folder_are_listed_and_with_all_those_of_others() {
    let place = Place::new();
    assert_eq!(succeeds(&place, &["sessions", "list"]).stdout, "There are no sessions.\n");
    let path = session(&place, "mine", "Why does it \u{1b}[31mfail?");
    let other = place.agent_dir().join("sessions/--elsewhere--");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("x_theirs.jsonl"), text("theirs", "/elsewhere", "Another question")).unwrap();

    let listed = succeeds(&place, &["sessions", "list"]).stdout;
    assert!(listed.contains("mine") && listed.contains("Why does it [31mfail?"), "{listed}");
    assert!(!listed.contains("theirs") && !listed.contains('\u{1b}'), "{listed}");
    let listed = succeeds(&place, &["sessions", "list", "--all"]).stdout;
    assert!(listed.contains("mine") && listed.contains("theirs") && listed.contains("/elsewhere"), "{listed}");

    let listed = lines(&succeeds(&place, &["sessions", "list", "--json"]).stdout);
    assert_eq!(
        listed,
        [serde_json::json!({
            "path": path, "id": "mine", "cwd": place.cwd(), "created": "2026-01-01T00:00:00.000Z",
            "modified": "1970-01-01T00:00:00.003Z", "messageCount": 3, "firstMessage": "Why does it \u{1b}[31mfail?",
        })]
    );
    assert_eq!(lines(&succeeds(&place, &["sessions", "list", "--all", "--limit=1", "--json"]).stdout).len(), 1);
}

#[test]
fn a_session_dir_of_the_users_choice_is_looked_into() {
    let place = Place::new();
    let folder = place.cwd().join("kept");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("one.jsonl"), text("one", place.cwd().to_str().unwrap(), "Mine")).unwrap();
    fs::write(folder.join("two.jsonl"), text("two", "/elsewhere", "Theirs")).unwrap();
    let here = succeeds(&place, &["sessions", "list", "--session-dir", "kept"]).stdout;
    assert!(here.contains("one") && !here.contains("Theirs"), "{here}");
    let place = place.variable("PI_CODING_AGENT_SESSION_DIR", folder.to_str().unwrap());
    let all = succeeds(&place, &["sessions", "list", "--all"]).stdout;
    assert!(all.contains("one") && all.contains("Theirs"), "{all}");
    let shown = succeeds(&place, &["sessions", "show", "two"]).stdout;
    assert!(shown.contains("Theirs"), "{shown}");
}

#[test]
fn a_session_is_shown_by_a_part_of_its_id_its_path_or_as_the_last_one() {
    let place = Place::new();
    assert_eq!(place.run(&["sessions", "show"]).code, Some(1));
    let path = session(&place, "0193-abc", "Why does it fail?");
    let wanted = format!(
        "{}\n0193-abc\na         user       Why does it fail?\nb         assistant  It is the parser.\n\
         c         user       And then?\n",
        path.display()
    );
    for words in
        [&["sessions", "show"][..], &["sessions", "show", "0193"], &["sessions", "show", path.to_str().unwrap()]]
    {
        assert_eq!(succeeds(&place, words).stdout, wanted);
    }
    let full = succeeds(&place, &["sessions", "show", "--full", "--at", "b"]).stdout;
    assert!(full.contains("## User\n\nWhy does it fail?") && !full.contains("And then?"), "{full}");
    let failed = place.run(&["sessions", "show", "nothing"]);
    assert_eq!(failed.code, Some(1));
    assert!(failed.stderr.contains("there is no session nothing"), "{failed:?}");
    session(&place, "0193-abd", "Another one");
    let failed = place.run(&["sessions", "show", "0193"]);
    assert!(failed.stderr.contains("0193-abc, 0193-abd"), "{failed:?}");
}

#[cfg(feature = "search")]
#[test]
fn words_that_were_said_are_found() {
    let place = Place::new();
    assert_eq!(succeeds(&place, &["sessions", "search", "parser"]).stdout, "Nothing was found.\n");
    assert!(!place.agent_dir().join("sessions").exists(), "looking for something leaves nothing behind");
    session(&place, "one", "Why does it fail?");
    session(&place, "two", "Write a poem about Zürich");
    let found = succeeds(&place, &["sessions", "search", "poem", "zurich"]).stdout;
    assert!(found.contains("two") && found.contains("«poem»") && !found.contains("fail"), "{found}");
    let found = lines(&succeeds(&place, &["sessions", "search", "--json", "--all", "pars"]).stdout);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0]["excerpt"].as_str().unwrap().matches('«').count(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let index = fs::metadata(place.agent_dir().join("sessions/.search-index.sqlite")).unwrap();
        assert_eq!(index.permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_fork_copies_everything_or_a_part() {
    let place = Place::new();
    let source = session(&place, "one", "Why does it fail?");
    let before = fs::read(&source).unwrap();
    let made =
        |words: &[&str]| lines(&succeeds(&place, &[&["sessions", "fork", "--json"], words].concat()).stdout).remove(0);
    let whole = made(&["one", "--id", "copy"]);
    assert_eq!(whole["id"], "copy");
    let copied = lines(&fs::read_to_string(whole["path"].as_str().unwrap()).unwrap());
    assert_eq!((copied.len(), &copied[0]["parentSession"]), (4, &serde_json::json!(source)));
    let part = made(&["one", "--before", "c"]);
    assert_eq!(part["text"], "And then?");
    assert_eq!(lines(&fs::read_to_string(part["path"].as_str().unwrap()).unwrap()).len(), 3);
    let part = made(&["one", "--at", "a"]);
    assert_eq!(lines(&fs::read_to_string(part["path"].as_str().unwrap()).unwrap()).len(), 2);
    assert_eq!(fs::read(&source).unwrap(), before);

    assert_eq!(place.run(&["sessions", "fork", "one", "--before", "a"]).code, Some(1));
    let failed = place.run(&["sessions", "fork", "one", "--before", "b"]);
    assert!(failed.stderr.contains("entry b is not a message of the user"), "{failed:?}");
    assert_eq!(place.run(&["sessions", "fork", "one", "--id", "../x"]).code, Some(1));
}

#[test]
fn an_export_can_be_imported_again_and_overwrites_nothing() {
    let place = Place::new();
    session(&place, "one", "Why does it fail?");
    let printed = succeeds(&place, &["sessions", "export", "one", "--at", "b"]).stdout;
    assert_eq!(lines(&printed).len(), 3);
    succeeds(&place, &["sessions", "export", "one", "copy.jsonl"]);
    let failed = place.run(&["sessions", "export", "one", "copy.jsonl"]);
    assert_eq!(failed.code, Some(1));
    assert!(failed.stderr.contains("exists already"), "{failed:?}");
    let imported = succeeds(&place, &["sessions", "import", "copy.jsonl", "copy.jsonl"]).stdout;
    let imported: Vec<&str> = imported.lines().collect();
    assert_eq!((imported[0], imported[2]), ("one", "one"));
    assert!(imported[1].ends_with("/copy.jsonl") && imported[3].ends_with("/copy-1.jsonl"), "{imported:?}");

    succeeds(&place, &["sessions", "export", imported[1], "notes.md"]);
    let notes = fs::read_to_string(place.cwd().join("notes.md")).unwrap();
    assert!(notes.contains("## Assistant (claude-sonnet-4-5)\n\nIt is the parser."), "{notes}");
    let printed = succeeds(&place, &["sessions", "export", imported[1], "--format", "markdown"]).stdout;
    assert_eq!(printed, notes);
    succeeds(&place, &["sessions", "export", imported[1], "page.html"]);
    let page = fs::read_to_string(place.cwd().join("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("It is the parser."), "{page}");
    assert_eq!(succeeds(&place, &["sessions", "export", imported[1], "--format", "html"]).stdout, page);
    assert_eq!(place.run(&["sessions", "export", imported[1], "--format", "pdf"]).code, Some(1));
    place.write("other.jsonl", "{\"type\":\"something\"}\n");
    assert_eq!(place.run(&["sessions", "import", "other.jsonl"]).code, Some(1));
}

#[test]
fn a_session_file_becomes_a_page_without_a_model() {
    let place = Place::new();
    session(&place, "one", "Why does <b>it</b> fail?");
    succeeds(&place, &["sessions", "export", "one", "talk.jsonl"]);
    let said = succeeds(&place, &["--export", "talk.jsonl"]).stdout;
    let page = place.cwd().join("pi-session-talk.html");
    assert_eq!(said.trim_end(), format!("Exported to: {}", page.display()));
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("Why does &lt;b&gt;it&lt;/b&gt; fail?"), "{page}");
    succeeds(&place, &["--export", "talk.jsonl", "other.html"]);
    assert!(place.cwd().join("other.html").exists());
    // What is there already stays as it is, and what is not there is named.
    assert_eq!(place.run(&["--export", "talk.jsonl", "other.html"]).code, Some(1));
    let failed = place.run(&["--export", "nothing.jsonl"]);
    assert!(failed.code == Some(1) && failed.stderr.contains("nothing.jsonl"), "{failed:?}");
}

#[test]
fn totals_and_how_full_the_context_is_are_told() {
    let place = Place::new();
    session(&place, "one", "Why does it fail?");
    let told = succeeds(&place, &["sessions", "stats"]).stdout;
    assert!(told.contains("tokens                       120") && told.contains("$0.3000"), "{told}");
    let told = lines(&succeeds(&place, &["sessions", "stats", "one", "--json"]).stdout).remove(0);
    assert_eq!((&told["totalMessages"], &told["usage"]["input"], &told["id"]), (&3.into(), &100.into(), &"one".into()));
    assert_eq!(told["contextUsage"]["contextWindow"], 200_000);
}

#[test]
fn a_repair_says_first_what_it_would_do() {
    let place = Place::new();
    let path = session(&place, "one", "Why does it fail?");
    assert_eq!(succeeds(&place, &["sessions", "repair", "one"]).stdout, "The session is sound.\n");
    let damaged = fs::read_to_string(&path).unwrap() + "{\"type\":\"mess";
    fs::write(&path, &damaged).unwrap();

    let told = place.run(&["sessions", "repair", "one"]);
    assert_eq!(told.code, Some(1));
    assert!(told.stdout.contains("line 5, the last one, breaks off") && told.stdout.contains("--write"), "{told:?}");
    let told = place.run(&["sessions", "repair", "one", "--json"]);
    assert_eq!(lines(&told.stdout)[0]["diagnosis"]["problems"][0]["kind"], "tornEnd");
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged);

    let done = succeeds(&place, &["sessions", "repair", "one", "--write"]).stdout;
    assert!(done.contains("1 lines taken out") && done.contains(".damaged"), "{done}");
    assert_eq!(fs::read_to_string(path.with_extension("jsonl.damaged")).unwrap(), damaged);
    assert_eq!(succeeds(&place, &["sessions", "repair", "one"]).stdout, "The session is sound.\n");
}

#[test]
fn deleted_sessions_are_in_the_trash_unless_they_shall_be_gone() {
    let place = Place::new();
    let (one, two, three) = (session(&place, "one", "1"), session(&place, "two", "2"), session(&place, "three", "3"));
    assert_eq!(place.run(&["sessions", "delete", "one", "nothing"]).code, Some(1));
    place.write("precious.jsonl", "not a session");
    assert_eq!(place.run(&["sessions", "delete", "precious.jsonl"]).code, Some(1));
    assert!(one.exists() && place.cwd().join("precious.jsonl").exists());
    let place = place.variable("XDG_DATA_HOME", three.parent().unwrap().parent().unwrap().to_str().unwrap());
    let told = succeeds(&place, &["sessions", "delete", "one", two.to_str().unwrap()]).stdout;
    assert!(!one.exists() && !two.exists() && three.exists());
    if cfg!(target_os = "linux") {
        let trashed = place.agent_dir().join("sessions/Trash/files").join(one.file_name().unwrap());
        assert!(trashed.exists() && told.contains(trashed.to_str().unwrap()), "{told}");
    }
    succeeds(&place, &["sessions", "delete", "three", "--permanently"]);
    assert!(!three.exists());
}

#[test]
fn an_id_that_two_sessions_have_deletes_neither() {
    let place = Place::new();
    let one = session(&place, "twin", "1");
    let two = one.with_file_name("2026-02-02T00-00-00-000Z_twin.jsonl");
    fs::copy(&one, &two).unwrap();
    let ran = place.run(&["sessions", "delete", "twin", "--permanently"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains(one.to_str().unwrap()) && ran.stderr.contains(two.to_str().unwrap()), "{ran:?}");
    assert!(one.exists() && two.exists());
    succeeds(&place, &["sessions", "delete", two.to_str().unwrap(), "--permanently"]);
    assert!(one.exists() && !two.exists());
}

#[test]
fn going_on_says_which_newer_file_has_lost_its_header() {
    let place = Place::new();
    succeeds(&place, &["-p", "What can you do?"]);
    let broken = session(&place, "broken", "2");
    fs::write(&broken, "{\"type\":\"sess\n").unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    fs::File::options().append(true).open(&broken).unwrap().set_modified(later).unwrap();
    let ran = place.run(&["-p", "--continue", "What can you do?"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = format!("Warning: {} was written to later", broken.display());
    assert!(ran.stderr.contains(&told) && ran.stderr.contains("pi sessions repair"), "{ran:?}");
}

#[test]
fn wrong_words_are_explained() {
    let place = Place::new();
    let ran = place.run(&["sessions"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(2), ""));
    assert!(ran.stderr.contains("Usage: pi sessions COMMAND"), "{ran:?}");
    let ran = place.run(&["sessions", "lst"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.starts_with("pi: there is no command `sessions lst`"), "{ran:?}");
    let ran = place.run(&["sessions", "list", "--everything"]);
    assert_eq!((ran.code, ran.stderr.contains("pi sessions list --help")), (Some(1), true));
    for words in [&["sessions", "--help"][..], &["sessions", "repair", "--help"], &["--help"]] {
        assert!(succeeds(&place, words).stdout.contains("sessions"));
    }
    // Only the first word is a command.
    let ran = place.run(&["--no-session", "-p", "sessions"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
