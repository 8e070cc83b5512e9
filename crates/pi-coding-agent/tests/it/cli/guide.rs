//! The built-in guide, on folders that it has never seen.

use super::program::Place;

#[test]
fn the_guide_tells_the_crates_of_a_workspace_and_what_each_does() {
    let place = Place::new();
    place.write("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n");
    for (name, description) in [("tide-table", "Computes the tides of a harbour."), ("harbour-map", "Draws maps.")] {
        let manifest = format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\ndescription = \"{description}\"\n");
        place.write(&format!("crates/{name}/Cargo.toml"), manifest);
        place.write(&format!("crates/{name}/src/lib.rs"), "//! Nothing yet.\n");
    }

    let ran = place.run(&["-p", "Which crates does this workspace have, and what does each do?"]);

    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in ["tide-table", "Computes the tides of a harbour", "harbour-map", "Draws maps"] {
        assert!(ran.stdout.contains(part), "`{part}` is missing: {}", ran.stdout);
    }
    assert!(ran.stderr.contains("not a language model"), "{ran:?}");
    let tool_results = place.session_lines().iter().filter(|line| line["message"]["role"] == "toolResult").count();
    assert!(tool_results > 0, "the answer comes from the folder");
}

#[test]
fn the_guide_finds_its_way_in_a_python_folder_and_goes_on_from_there() {
    let place = Place::new();
    place.write("pyproject.toml", "[project]\nname = \"ferry\"\ndescription = \"Plans ferry crossings.\"\n");
    place.write("ferry/__init__.py", "\"\"\"Plans ferry crossings.\"\"\"\n");
    place.write("ferry/timetable.py", "\"\"\"Reads timetables.\"\"\"\n\n\ndef next_departure(now):\n    return now\n");

    let first = place.run(&["-p", "What is this project, and which modules does it have?"]);
    let second = place.run(&["-p", "--continue", "Where is next_departure defined?"]);

    assert_eq!((first.code, second.code), (Some(0), Some(0)), "{first:?} {second:?}");
    assert!(first.stdout.contains("ferry"), "{}", first.stdout);
    assert!(second.stdout.contains("ferry/timetable.py"), "{}", second.stdout);
    assert_eq!(place.session_files().len(), 1);
}

#[test]
fn the_guide_replaces_text_in_a_file() {
    let place = Place::new();
    place.write("notes.txt", "red door\nred roof\n");
    let ran = place.run(&["-p", "Replace \"red door\" by \"blue door\" in notes.txt"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(std::fs::read_to_string(place.cwd().join("notes.txt")).unwrap(), "blue door\nred roof\n");
}
