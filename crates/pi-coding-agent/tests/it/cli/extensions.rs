//! Extensions that are programs, through the real program.
#![cfg(unix)]

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::program::{Place, Ran};

/// A script that says that it ran, and answers everything.
const SCRIPT: &str = r#"
touch "$(dirname "$0")/ran"
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
    *'"method":"initialize"'*) printf '%s\n' "$line" > initialize; printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id";;
    *'"method":"event/project_trust"'*) printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$(cat answer)";;
    *'"method":"event/tool_call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"block":true,"reason":"Not here."}}\n' "$id";;
    *'"method":"event/agent_start"'*) printf '{"jsonrpc":"2.0","method":"ui/notify","params":{"message":"I am watching.","level":"warning"}}\n';;
    *'"method":"event/turn_start"'*|*'"method":"event/session_info_changed"'*) exit 5;;
    '{"jsonrpc":"2.0","id":'*) printf '{"jsonrpc":"2.0","id":%s,"result":null}\n' "$id";;
  esac
done
"#;

fn extension(folder: &Path, mut manifest: Value) {
    fs::create_dir_all(folder).unwrap();
    let fields = manifest.as_object_mut().unwrap();
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    fields.entry("name").or_insert_with(|| name.into());
    fields.insert("command".to_owned(), json!(["sh", "main.sh"]));
    fs::write(folder.join("extension.json"), manifest.to_string()).unwrap();
    fs::write(folder.join("main.sh"), SCRIPT).unwrap();
}

fn users(place: &Place, name: &str) -> std::path::PathBuf {
    place.agent_dir().join("extensions").join(name)
}

fn fails_with(ran: &Ran, parts: &[&str]) {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for part in parts {
        assert!(ran.stderr.contains(part), "{part} is not in {ran:?}");
    }
}

#[test]
fn an_extension_is_named_by_its_folder_or_its_manifest_and_gates_tools() {
    let place = Place::new();
    let folder = place.cwd().join("guard");
    extension(&folder, json!({"events": {"tool_call": {}}}));
    for named in ["guard", "guard/extension.json"] {
        let ran = place.run(&["-p", "--no-session", "-e", named, "run `touch touched`"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!place.cwd().join("touched").exists(), "{ran:?}");
        assert!(folder.join("ran").exists());
    }
    let ran = place.run(&["-p", "--no-session", "run `touch touched`"]);
    assert!(place.cwd().join("touched").exists(), "{ran:?}");
}

#[test]
fn a_notice_of_an_extension_goes_to_standard_error_and_leaves_the_answer_alone() {
    let place = Place::new();
    extension(&place.cwd().join("watcher"), json!({"events": {"agent_start": {}}}));
    for mode in ["text", "json"] {
        let ran = place.run(&["-p", "--no-session", "--mode", mode, "-e", "watcher", "What can you do?"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("Warning: I am watching."), "{ran:?}");
        assert!(!ran.stdout.contains("I am watching."), "{ran:?}");
    }
}

#[test]
fn an_extension_that_is_named_and_cannot_be_used_ends_the_start() {
    let place = Place::new();
    place.write("broken/extension.json", "{\n  \"name\": \"broken\",\n}");
    fails_with(&place.run(&["-p", "-e", "broken", "hello"]), &["broken/extension.json:2"]);
    fails_with(&place.run(&["-p", "-e", "missing", "hello"]), &["missing", "there is no extension at this path"]);
    fails_with(&place.run(&["-p", "-e", "npm:some-package", "hello"]), &["npm:some-package", "extension.json"]);
    assert!(place.session_files().is_empty());
}

#[test]
fn a_manifest_that_is_no_file_is_refused_and_not_waited_for() {
    let place = Place::new();
    let folder = users(&place, "piped");
    fs::create_dir_all(&folder).unwrap();
    let manifest = folder.join("extension.json");
    assert!(std::process::Command::new("mkfifo").arg(&manifest).status().unwrap().success());
    fails_with(&place.run(&["-p", "-e", folder.to_str().unwrap(), "hello"]), &["piped/extension.json", "named pipe"]);
}

#[test]
fn one_of_the_user_that_is_broken_ends_the_start_too_for_it_may_be_a_gate() {
    let place = Place::new();
    extension(&users(&place, "good"), json!({"tools": {"look": {"description": "Looks."}}}));
    fs::write(users(&place, "good").join("extension.json"), "{\"name\": \"good\",\n\"events\": {\"tool_cal\": {}}}")
        .unwrap();
    let ran = place.run(&["-p", "hello"]);
    fails_with(&ran, &["good/extension.json:1", "--no-extensions"]);
    let ran = place.run(&["-p", "--no-extensions", "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn two_that_bring_the_same_tool_or_flag_are_refused_with_both_files() {
    let place = Place::new();
    for name in ["one", "two"] {
        extension(&users(&place, name), json!({"flags": {"plan": {}}}));
    }
    fails_with(&place.run(&["-p", "hello"]), &["two/extension.json", "`plan`", "one/extension.json"]);
}

#[test]
fn nothing_of_an_untrusted_projects_extensions_is_executed_or_even_read() {
    let place = Place::new();
    let folder = place.cwd().join(".pi/extensions/helper");
    extension(&folder, json!({"events": {"session_start": {}, "project_trust": {}}, "flags": {"plan": {}}}));
    fs::write(folder.join("answer"), r#"{"trusted":"yes"}"#).unwrap();
    place.write(".pi/settings.json", json!({"extensions": ["elsewhere"]}).to_string());
    extension(&place.cwd().join(".pi/elsewhere"), json!({"events": {"session_start": {}}}));
    let marks = || [folder.join("ran"), place.cwd().join(".pi/elsewhere/ran")].map(|mark| mark.exists());

    let ran = place.run(&["-p", "--no-session", "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("not trusted"), "{ran:?}");
    let help = place.run(&["--help"]);
    assert!(!help.stdout.contains("--plan"), "{help:?}");
    fails_with(&place.run(&["-p", "--plan", "hello"]), &["unknown option --plan"]);
    assert_eq!(marks(), [false, false], "a program of an untrusted project ran");

    let ran = place.run(&["-p", "--no-session", "--approve", "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(marks(), [true, true]);
    let help = place.run(&["--help", "--approve"]);
    assert!(help.stdout.contains("--plan"), "{help:?}");
}

#[test]
fn the_users_extensions_decide_about_trust_and_the_decision_is_kept_when_they_say_so() {
    let place = Place::new();
    place.write(".pi/SYSTEM.md", "The project's words.");
    let folder = users(&place, "judge");
    extension(&folder, json!({"events": {"project_trust": {}}}));
    let prompts = |words: &[&str]| {
        let ran = place.run(words);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stderr.contains("not trusted")
    };
    fs::write(folder.join("answer"), r#"{"trusted":"undecided"}"#).unwrap();
    assert!(prompts(&["-p", "--no-session", "hello"]), "nobody decides");
    fs::write(folder.join("answer"), r#"{"trusted":"yes"}"#).unwrap();
    assert!(!prompts(&["-p", "hello"]));
    let lines = place.session_lines();
    let head = lines.iter().find(|line| line["message"]["role"] == "system").unwrap();
    assert_eq!(head["message"]["sections"]["preamble"], "The project's words.");
    assert!(!place.agent_dir().join("trust.json").exists());
    fs::write(folder.join("answer"), r#"{"trusted":"yes","remember":true}"#).unwrap();
    assert!(!prompts(&["-p", "--no-session", "hello"]));
    assert!(fs::read_to_string(place.agent_dir().join("trust.json")).unwrap().contains("true"));

    // The command line's word counts before that of extensions, and one that fails does not trust.
    fs::remove_file(place.agent_dir().join("trust.json")).unwrap();
    fs::remove_file(folder.join("ran")).unwrap();
    prompts(&["-p", "--no-session", "--no-approve", "hello"]);
    assert!(!folder.join("ran").exists());
    fs::write(folder.join("answer"), "nonsense").unwrap();
    let ran = place.run(&["-p", "--no-session", "hello"]);
    assert!(ran.stderr.contains("judge"), "{ran:?}");
}

#[test]
fn flags_of_extensions_work_on_the_command_line_and_stand_in_the_help() {
    let place = Place::new();
    let folder = users(&place, "planner");
    let flags = json!({"plan": {"description": "Plan first"}, "depth": {"type": "string", "description": "How deep"}});
    extension(&folder, json!({"flags": flags, "events": {"session_start": {}}}));

    let help = place.run(&["--help"]);
    assert!(help.stdout.contains("--plan ") && help.stdout.contains("Plan first"), "{help:?}");
    assert!(help.stdout.contains("--depth TEXT"), "{help:?}");
    assert!(!folder.join("ran").exists(), "the help starts nothing");

    let ran = place.run(&["-p", "--plan", "hello", "--depth", "3"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = fs::read_to_string(folder.join("initialize")).unwrap();
    assert!(told.contains(r#""flags":{"plan":true,"depth":"3"}"#), "{told}");
    let said = place.session_lines().into_iter().find(|line| line["message"]["role"] == "user").unwrap();
    assert_eq!(said["message"]["content"][0]["text"], "hello", "a flag without a value leaves the prompt alone");

    fails_with(&place.run(&["-p", "--plam", "hello"]), &["unknown option --plam", "did you mean --plan?"]);
    fails_with(&place.run(&["-p", "hello", "--depth"]), &["--depth needs a value"]);
    fails_with(&place.run(&["-p", "-ne", "--plan", "hello"]), &["unknown option --plan"]);
}

#[test]
fn an_extension_whose_program_fails_is_named_once_and_the_answer_comes_all_the_same() {
    let place = Place::new();
    extension(&users(&place, "fragile"), json!({"events": {"turn_start": {}}, "restart": {"policy": "never"}}));
    let ran = place.run(&["-p", "--no-session", "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stdout.is_empty(), "{ran:?}");
    assert!(ran.stderr.contains("extension `fragile`, program: the program ended with exit code 5"), "{ran:?}");
    assert_eq!(ran.stderr.matches("fragile`, program").count(), 1, "{ran:?}");
}

#[test]
fn what_fails_before_the_first_prompt_is_said_too() {
    let place = Place::new();
    extension(&users(&place, "early"), json!({"events": {"session_info_changed": {}}, "restart": {"policy": "never"}}));
    let ran = place.run(&["-p", "--name", "a name", "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("extension `early`, program: the program ended with exit code 5"), "{ran:?}");
}

#[test]
fn the_same_extension_in_two_ways_is_one_and_settings_name_and_leave_out_others() {
    let place = Place::new();
    let flags = |name: &str| json!({"flags": {name: {}}});
    extension(&users(&place, "one"), flags("one"));
    extension(&users(&place, "two"), flags("two"));
    extension(&place.agent_dir().join("more/three"), flags("three"));
    let folder = users(&place, "one");
    let named = folder.join("extension.json");
    let ran = place.run(&["-p", "-e", folder.to_str().unwrap(), "-e", named.to_str().unwrap(), "--one", "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    place.agent_file("settings.json", &json!({"extensions": ["more/three", "-extensions/two"]}).to_string());
    let help = place.run(&["--help"]);
    assert!(help.stdout.contains("--one") && help.stdout.contains("--three"), "{help:?}");
    assert!(!help.stdout.contains("--two"), "{help:?}");
    place.agent_file("settings.json", &json!({"extensions": ["missing"]}).to_string());
    fails_with(&place.run(&["-p", "hello"]), &["missing", "the settings name an extension that is not there"]);
}

#[test]
fn extensions_of_upstream_are_named_and_left_out() {
    let place = Place::new();
    fs::create_dir_all(place.agent_dir().join("extensions")).unwrap();
    place.agent_file("extensions/old.ts", "export default () => {}");
    let ran = place.run(&["-p", "--no-session", "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("extensions/old.ts") && ran.stderr.contains("TypeScript"), "{ran:?}");
}

/// A script whose command asks for a new session, and is over when that is there.
const ANEW: &str = r#"
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id";;
    *'"method":"command/run"'*) asked=$id; printf '{"jsonrpc":"2.0","id":"n1","method":"session/new","params":{}}\n';;
    *'"id":"n1"'*) printf '{"jsonrpc":"2.0","id":%s,"result":null}\n' "$asked";;
    *'"method"'*) printf '{"jsonrpc":"2.0","id":%s,"result":null}\n' "$id";;
  esac
done
"#;

#[test]
fn a_command_of_an_extension_puts_another_session_in_the_place_of_the_one_that_is_there() {
    let place = Place::new();
    let folder = place.cwd().join("anew");
    extension(&folder, json!({"commands": {"anew": {"description": "Begins anew."}}}));
    fs::write(folder.join("main.sh"), ANEW).unwrap();
    let ran = place.run(&["-p", "-e", "anew", "hello there", "/anew", "hello again"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stdout.is_empty(), "{ran:?}");
    let mut said: Vec<Vec<String>> = place
        .session_files()
        .iter()
        .map(|file| {
            let lines = super::program::lines(&fs::read_to_string(file).unwrap());
            let user = lines.iter().filter(|line| line["message"]["role"] == "user");
            user.map(|line| line["message"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()).collect()
        })
        .collect();
    said.sort();
    assert_eq!(said, [["hello again"], ["hello there"]]);
}
