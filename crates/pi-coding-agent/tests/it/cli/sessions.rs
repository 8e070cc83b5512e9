//! Which session a run goes on with.

use std::fs;

use super::program::Place;

#[test]
fn a_session_is_named_kept_and_found_by_the_beginning_of_its_id() {
    let place = Place::new();
    let first = place.run(&["-p", "--name", "greeting", "What can you do?"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let lines = place.session_lines();
    let id = lines[0]["id"].as_str().unwrap().to_owned();
    assert!(lines.iter().any(|line| line["type"] == "session_info" && line["name"] == "greeting"));

    let again = place.run(&["-p", "--session", &id[..13], "What can you do?"]);

    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(place.session_lines().len() > lines.len());
}

#[test]
fn no_session_leaves_nothing_behind() {
    let place = Place::new();
    assert_eq!(place.run(&["-p", "--no-session", "What can you do?"]).code, Some(0));
    assert!(place.session_files().is_empty());
}

#[test]
fn a_session_gets_the_id_that_was_asked_for() {
    let place = Place::new();
    let made = place.run(&["-p", "--session-id", "release-1.2", "What can you do?"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(made.stderr.contains("release-1.2"));
    assert_eq!(place.session_lines()[0]["id"], "release-1.2");
    assert_eq!(place.run(&["-p", "--session-id", "release-1.2", "What can you do?"]).code, Some(0));
    assert_eq!(place.session_files().len(), 1);
    assert_eq!(place.run(&["-p", "--session-id", "-bad-", "hi"]).code, Some(1));
}

#[test]
fn a_fork_copies_the_session_and_leaves_the_original_as_it_was() {
    let place = Place::new();
    assert_eq!(place.run(&["-p", "What can you do?"]).code, Some(0));
    let original = place.session_files().remove(0);
    let before = fs::read(&original).unwrap();

    let forked = place.run(&["-p", "--fork", original.to_str().unwrap(), "What can you do?"]);

    assert_eq!(forked.code, Some(0), "{forked:?}");
    assert_eq!(fs::read(&original).unwrap(), before);
    assert_eq!(place.session_files().len(), 2);
}

#[test]
fn the_guide_is_never_recorded_as_the_chosen_model() {
    let place = Place::new();
    let ran = place.run(&["-p", "What can you do?"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("not a language model"), "{ran:?}");
    let lines = place.session_lines();
    assert!(lines.iter().all(|line| line["type"] != "model_change"), "{lines:?}");
}

#[test]
fn a_session_whose_folder_is_gone_is_not_continued_elsewhere() {
    let place = Place::new();
    assert_eq!(place.run(&["-p", "What can you do?"]).code, Some(0));
    let file = place.session_files().remove(0);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(place.cwd().to_str().unwrap(), "/no/such/folder")).unwrap();

    let ran = place.run(&["-p", "--session", file.to_str().unwrap(), "hi"]);

    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("/no/such/folder") && ran.stderr.contains("--fork"), "{ran:?}");
}

/// Relative paths never change their meaning unseen: the session works where it began, and says so.
#[test]
fn a_session_that_is_resumed_from_elsewhere_works_in_its_own_folder() {
    let place = Place::new();
    place.write("where.txt", "the session's own folder\n");
    assert_eq!(place.run(&["-p", "What can you do?"]).code, Some(0));
    let file = place.session_files().remove(0);
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("where.txt"), "somewhere else\n").unwrap();

    let mut command = place.command(&["-p", "--session", file.to_str().unwrap(), "show where.txt"]);
    let ran = super::program::wait(command.current_dir(elsewhere.path()).spawn().unwrap());

    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("the session's own folder"), "{ran:?}");
    assert!(ran.stderr.contains(&format!("The session works in {}", place.cwd().display())), "{ran:?}");
}

/// What the command line names is not the session's: it is meant from where it was typed.
#[test]
fn what_the_command_line_names_is_found_where_it_was_typed_also_for_a_session_of_elsewhere() {
    let place = Place::new();
    assert_eq!(place.run(&["-p", "What can you do?"]).code, Some(0));
    let file = place.session_files().remove(0);
    let elsewhere = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = elsewhere.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("given/tides/SKILL.md", "---\ndescription: tells tides\n---\nLook at the moon.\n");
    write("ask.md", "Say where the moon is.\n");
    write("odd.json", r##"{"name": "odd", "colors": {"accent": "#00ff00"}}"##);
    write("words.md", "Words of a file.\n");
    write("more.md", "More words.\n");

    let words = ["-p", "--session", file.to_str().unwrap(), "--skill", "given", "--prompt-template", "./ask.md"];
    let more = ["--theme", "odd.json", "--system-prompt", "words.md", "--append-system-prompt", "more.md", "/ask"];
    let mut command = place.command(&[&words[..], &more[..]].concat());
    let ran = super::program::wait(command.current_dir(elsewhere.path()).spawn().unwrap());

    assert_eq!(ran.code, Some(0), "{ran:?}");
    let record = fs::read_to_string(&file).unwrap();
    for said in ["tells tides", "Say where the moon is.", "Words of a file.", "More words."] {
        assert!(record.contains(said), "{said} is not in {record}");
    }
    // A theme shows in nothing that is printed, but what is wrong with it does.
    let theme = elsewhere.path().join("odd.json");
    assert!(ran.stderr.contains(&format!("{}:1: the theme is not loaded", theme.display())), "{ran:?}");
}
