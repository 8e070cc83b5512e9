use std::path::Path;

use pi_coding_agent::tools::builtin::BuiltinTool::Edit;
use pi_coding_agent::tools::edit::{Edit as Replacement, MAX_FILE_BYTES, apply_edits};
use serde_json::{Value, json};

use super::Project;

fn case(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cases/{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn bytes(case: &Value, key: &str) -> Vec<u8> {
    let hex = case[key].as_str().unwrap();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Runs a recorded case; the error, if there is one. A file that is not edited is as it was.
async fn run(name: &str) -> (Result<String, String>, Vec<u8>, Value) {
    let case = case(name);
    let project = Project::new();
    project.put("file", bytes(&case, "file_hex"));
    let result = project.call(Edit, json!({"path": "file", "edits": case["edits"]})).await;
    (result.map(|output| output.to_text()), project.content("file"), case)
}

#[tokio::test]
async fn a_byte_order_mark_and_windows_line_breaks_stay() {
    let (result, file, case) = run("edit-bom-and-crlf").await;
    assert!(result.is_ok());
    assert_eq!(file, bytes(&case, "expect_file_hex"));
}

#[tokio::test]
async fn a_loose_match_changes_nothing_around_it() {
    let (result, file, case) = run("edit-trailing-blanks").await;
    assert!(result.is_ok());
    assert_eq!(file, bytes(&case, "expect_file_hex"));
}

#[tokio::test]
async fn overlapping_occurrences_are_two() {
    let (result, file, case) = run("edit-overlapping-matches").await;
    assert!(result.unwrap_err().contains("2 times, at lines 1, 2"));
    assert_eq!(file, bytes(&case, "expect_file_hex"));
}

#[tokio::test]
async fn bytes_that_are_not_text_survive() {
    let (result, file, _) = run("edit-bytes-that-are-no-text").await;
    assert!(result.is_ok());
    assert_eq!(file, b"const x = 2;\n// caf\xe9 note\n");
}

#[tokio::test]
async fn one_edit_that_does_not_fit_stops_all() {
    let (result, file, case) = run("edit-batch").await;
    let error = result.unwrap_err();
    assert!(error.contains("edit 2 of 2 (edits[1])"), "{error}");
    assert_eq!(file, bytes(&case, "expect_file_hex"));
}

#[tokio::test]
async fn errors_tell_what_is_probably_wrong() {
    let project = Project::new();
    project.put("f", "fn a() {\n    b();\n}\n");
    let error =
        async |old: &str| project.error(Edit, json!({"path": "f", "edits": [{"oldText": old, "newText": "x"}]})).await;
    assert!(error(r"fn a() {\n    b();").await.contains("backslash"));
    assert!(error("fn a() {\n\tb();\n}").await.contains("line 1 with different indentation"));
    project.put("latin", b"caf\xe9\nx\n");
    let error =
        project.error(Edit, json!({"path": "latin", "edits": [{"oldText": "caf\u{e9}", "newText": "x"}]})).await;
    assert!(error.contains("not valid UTF-8 (first at line 1)"), "{error}");
    project.put("wide", b"\xff\xfea\0");
    let error = project.error(Edit, json!({"path": "wide", "edits": [{"oldText": "a", "newText": "x"}]})).await;
    assert!(error.contains("UTF-16LE"), "{error}");
    let error = project.error(Edit, json!({"path": "nope", "edits": [{"oldText": "a", "newText": "x"}]})).await;
    assert!(error.contains("ENOENT"), "{error}");
}

#[test]
fn blanks_at_the_end_of_the_old_text_are_not_found_in_the_middle_of_a_word() {
    let edit = |old: &str| apply_edits(b"returned\nreturn \t\n", &[Replacement::new(old, "x")], "f");
    assert_eq!(edit("return  ").unwrap_err().to_string().split(' ').nth(5), Some("`oldText`"));
    let unique = apply_edits(b"done\nreturn \t\n", &[Replacement::new("return  ", "x")], "f").unwrap();
    assert_eq!(unique.to_bytes(b"done\nreturn \t\n"), b"done\nx\n");
    assert!(apply_edits(b"returned\n", &[Replacement::new("return ", "x")], "f").is_err());
}

#[test]
fn half_of_a_ligature_is_kept() {
    let file = "\u{fb01}ne day\n".as_bytes();
    let edited = apply_edits(file, &[Replacement::new("ine day", "une night")], "f").unwrap();
    assert_eq!(edited.to_bytes(file), "fune night\n".as_bytes());
}

#[test]
fn old_macintosh_line_breaks_stay() {
    let file = b"a\rb\rc";
    let edited = apply_edits(file, &[Replacement::new("b\n", "B\nB2\n")], "f").unwrap();
    assert_eq!(edited.to_bytes(file), b"a\rB\rB2\rc");
}

#[test]
fn two_line_breaks_do_not_melt_into_one() {
    // Deleting `x` would join a CR that stands alone with the LF behind it.
    let file = b"one\n a\rx\nb\n";
    let edited = apply_edits(file, &[Replacement::new("x", "")], "f").unwrap();
    assert_eq!(edited.to_bytes(file), b"one\n a\r\n\nb\n");
}

fn edited(file: &str, old: &str, new: &str) -> String {
    let edited = apply_edits(file.as_bytes(), &[Replacement::new(old, new)], "f").unwrap();
    String::from_utf8(edited.to_bytes(file.as_bytes())).unwrap()
}

#[test]
fn lines_that_the_old_and_the_new_text_share_keep_their_line_breaks() {
    let file = "a\r\nb\nc\r\nd";
    assert_eq!(edited(file, "a\nb\nc", "a\nb\nC"), "a\r\nb\nC\r\nd");
    assert_eq!(edited(file, "a\nb\nc", "A\nb\nc"), "A\r\nb\nc\r\nd");
    assert_eq!(edited(file, "a\nb\nc\nd", "A\nb\nC\nd"), "A\r\nb\nC\r\nd");
    // Changed lines take the line break of the line whose place they take.
    assert_eq!(edited(file, "a\nb\nc\n", "A\nB\nC\n"), "A\r\nB\nC\r\nd");
    assert_eq!(edited(file, "b\nc", "B\nB2\nB3"), "a\r\nB\nB2\r\nB3\r\nd");
    // Lines that come and go take nothing of their neighbours with them.
    assert_eq!(edited(file, "a\nb\nc", "a\nc"), "a\r\nc\r\nd");
    assert_eq!(edited(file, "a\nb\n", "a\nx\nb\n"), "a\r\nx\nb\nc\r\nd");
    assert_eq!(edited(file, "c\nd", "c"), "a\r\nb\nc");
    assert_eq!(edited(file, "c\nd", "c\nd\ne"), "a\r\nb\nc\r\nd\r\ne");
    assert_eq!(edited(file, "c\nd", "d"), "a\r\nb\nd");
}

#[test]
fn a_loose_match_leaves_lines_alone_that_do_not_change() {
    let file = "say \u{201c}hi\u{201d}  \nx = \u{2018}1\u{2019}\nbye \u{2014} \u{201c}now\u{201d}\n";
    let old = "say \"hi\"\nx = '1'\nbye - \"now\"";
    assert_eq!(
        edited(file, old, "say \"hi\"\nx = '2'\nbye - \"now\""),
        "say \u{201c}hi\u{201d}  \nx = '2'\nbye \u{2014} \u{201c}now\u{201d}\n"
    );
    assert_eq!(
        edited(file, old, "say \"hi\"\nx = '1'\nand\nbye - \"now\""),
        "say \u{201c}hi\u{201d}  \nx = \u{2018}1\u{2019}\nand\nbye \u{2014} \u{201c}now\u{201d}\n"
    );
    assert!(apply_edits(file.as_bytes(), &[Replacement::new(old, old)], "f").is_err());
}

proptest::proptest! {
    #[test]
    fn an_edit_changes_the_text_as_asked_and_lines_that_stay_keep_their_bytes(
        lines in proptest::collection::vec(("[ab]{0,2}", proptest::sample::select(&["\n", "\r\n"][..])), 1..8),
        new in proptest::collection::vec("[ab]{0,2}", 1..8),
        partly in 0_usize..2,
    ) {
        let file: String = lines.iter().map(|(line, ending)| format!("{line}{ending}")).collect();
        let text = file.replace("\r\n", "\n");
        proptest::prop_assume!(text.len() > 2 * partly);
        let old = &text[partly..text.len() - partly];
        let new = new.join("\n");
        proptest::prop_assume!(!old.is_empty() && old != new);
        let Ok(edited) = apply_edits(file.as_bytes(), &[Replacement::new(old, &*new)], "f") else { return Ok(()) };
        let bytes = String::from_utf8(edited.to_bytes(file.as_bytes())).unwrap();
        let expected = format!("{}{new}{}", &text[..partly], &text[text.len() - partly..]);
        proptest::prop_assert_eq!(bytes.replace("\r\n", "\n"), expected);
        // What both have in front is not touched.
        let shared = old.split('\n').zip(new.split('\n')).take_while(|(old, new)| old == new).count();
        let in_front: String = lines.iter().take(shared).map(|(line, ending)| format!("{line}{ending}")).collect();
        proptest::prop_assert!(bytes.starts_with(in_front.trim_end_matches(['\r', '\n'])));
    }
}

#[tokio::test]
async fn parallel_edits_of_one_file_are_all_made() {
    let project = Project::new();
    let lines: String = (0..20).map(|n| format!("line {n};\n")).collect();
    project.put("f", &lines);
    let edits = (0..20).map(|n| {
        let edit = json!({"oldText": format!("line {n};"), "newText": format!("LINE {n};")});
        project.call(Edit, json!({"path": if n % 2 == 0 { "f" } else { "./f" }, "edits": [edit]}))
    });
    for result in futures::future::join_all(edits).await {
        result.unwrap();
    }
    assert_eq!(String::from_utf8(project.content("f")).unwrap(), lines.replace("line", "LINE"));
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_before_it_is_read() {
    let project = Project::new();
    let file = std::fs::File::create(project.path().join("huge")).unwrap();
    // Without content: it takes no space.
    file.set_len(MAX_FILE_BYTES + 1).unwrap();
    let error = project.error(Edit, json!({"path": "huge", "edits": [{"oldText": "a", "newText": "x"}]})).await;
    assert!(error.contains("huge was not changed") && error.contains("512.0MB") && error.contains("sed"), "{error}");
    assert_eq!(file.metadata().unwrap().len(), MAX_FILE_BYTES + 1);
}
