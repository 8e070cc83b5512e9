//! The vectors of the area `modes`.

use std::path::Path;

use pi_ai::testing::{expect::Comparer, vectors};
use pi_coding_agent::testing::conformance::modes;
use proptest::prelude::*;

fn check(stem: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/vectors/modes/{stem}.json"));
    let mut failures = Vec::new();
    for case in vectors::load(&path).expect("the vectors can be read") {
        let actual = modes::run(stem, &case.input).unwrap_or_else(|| panic!("{} has no runner", case.name));
        if let Some(difference) = Comparer::for_area("modes").mismatch(&case.expected, &actual) {
            failures.push(format!("{}: {difference}", case.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn events_are_written_as_json_without_the_message_so_far() {
    check("json_event");
}

#[test]
fn lines_end_at_lf_only_and_do_not_depend_on_the_pieces() {
    check("jsonl_lines");
}

/// Events that the recorded vectors do not show, in the form in which they are written.
#[test]
fn every_kind_of_event_is_read_and_written_alike() {
    let message = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm"}],"api":"a","provider":"p","model":"m",
        "usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,
        "cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop","timestamp":2}"#;
    for event in [
        r#"{"type":"turn_start"}"#.to_owned(),
        format!(r#"{{"type":"message_start","message":{message}}}"#),
        r#"{"type":"message_start","message":{"role":"custom","customType":"x","content":"c","display":true,"timestamp":1}}"#
            .to_owned(),
        r#"{"type":"tool_execution_start","toolCallId":"c","toolName":"read","args":{"path":"a"}}"#.to_owned(),
        r#"{"type":"tool_execution_update","toolCallId":"c","toolName":"read","args":{},
            "partialResult":{"content":[{"type":"text","text":"so far"}],"details":{"a":1}}}"#
            .to_owned(),
        r#"{"type":"tool_execution_end","toolCallId":"c","toolName":"read","isError":false,"durationMs":12,
            "result":{"content":[{"type":"text","text":"all"}]}}"#
            .to_owned(),
        format!(
            r#"{{"type":"turn_end","message":{message},"toolResults":[{{"role":"toolResult","toolCallId":"c",
            "toolName":"read","content":[{{"type":"text","text":"all"}}],"isError":false,"timestamp":3}}]}}"#
        ),
        format!(r#"{{"type":"agent_end","messages":[{message}],"willRetry":true}}"#),
        r#"{"type":"agent_settled","aborted":false}"#.to_owned(),
        r#"{"type":"queue_update","steering":["a"],"followUp":[]}"#.to_owned(),
        r#"{"type":"session_info_changed","name":"n"}"#.to_owned(),
        r#"{"type":"session_info_changed"}"#.to_owned(),
        r#"{"type":"thinking_level_changed","level":"high"}"#.to_owned(),
        r#"{"type":"compaction_start","reason":"threshold"}"#.to_owned(),
        r#"{"type":"compaction_end","reason":"manual","aborted":true,"willRetry":false}"#.to_owned(),
        r#"{"type":"compaction_end","reason":"overflow","aborted":false,"willRetry":true,"errorMessage":"e"}"#.to_owned(),
        r#"{"type":"compaction_end","reason":"manual","aborted":false,"willRetry":false,"result":{"summary":"s",
            "firstKeptEntryId":"e1","tokensBefore":9,"estimatedTokensAfter":3}}"#
            .to_owned(),
        r#"{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"e"}"#.to_owned(),
        r#"{"type":"auto_retry_end","success":true,"attempt":1}"#.to_owned(),
        r#"{"type":"auto_retry_end","success":false,"attempt":3,"finalError":"e"}"#.to_owned(),
        r#"{"type":"summarization_retry_scheduled","attempt":1,"maxAttempts":3,"delayMs":5,"errorMessage":"e"}"#.to_owned(),
        r#"{"type":"summarization_retry_attempt_start","source":"compaction","reason":"manual"}"#.to_owned(),
        r#"{"type":"summarization_retry_attempt_start","source":"branchSummary"}"#.to_owned(),
        r#"{"type":"summarization_retry_finished"}"#.to_owned(),
        r#"{"type":"bash_execution_update","delta":"out"}"#.to_owned(),
        r#"{"type":"extension_error","extensionPath":"x","event":"context","error":"e"}"#.to_owned(),
        r#"{"type":"entry_appended","entry":{"type":"label","id":"e2","parentId":"e1","timestamp":"2023-11-14T22:13:20.000Z",
            "targetId":"e1","label":"l"}}"#
            .to_owned(),
    ] {
        let event: serde_json::Value = serde_json::from_str(&event).expect("JSON");
        let written = modes::run("json_event", &serde_json::json!({ "event": event }));
        pretty_assertions::assert_eq!(written.as_ref(), Some(&event));
    }
}

proptest! {
    #[test]
    fn a_line_is_the_same_however_its_bytes_arrive(
        lines in proptest::collection::vec("[a-z\u{2028}\u{2029}\u{85}\u{e9}\u{1f600}]{0,6}", 0..5),
        pieces in 1usize..9,
    ) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let mut reader = pi_coding_agent::modes::jsonl::Lines::default();
        let mut read: Vec<String> = text.as_bytes().chunks(pieces).flat_map(|piece| reader.push(piece)).collect();
        read.extend(reader.finish());
        prop_assert_eq!(read, lines);
    }
}
