//! Responses.

use pi_ai::json::ArgumentsBuilder;
use pi_ai::recovery::is_retryable_assistant_error;
use pi_ai::{AssistantBlock, ErrorKind, StopReason, ToolCall};
use serde_json::{Map, Value, json};

use super::{data, model, read, read_file};

const CHAT: &str = "openai-completions";
const ANTHROPIC: &str = "anthropic-messages";
const RESPONSES: &str = "openai-responses";
const GEMINI: &str = "google-generative-ai";

/// Name and arguments of each call.
fn calls(api: &str, name: &str) -> Vec<(String, Value)> {
    let (message, _) = read_file(api, name);
    message.tool_calls().map(|call: &ToolCall| (call.name.clone(), json!(call.arguments))).collect()
}

#[track_caller]
fn says(name: &str, text: &str) {
    let (message, error) = read_file(CHAT, name);
    assert_eq!((message.text().as_str(), message.stop_reason), (text, StopReason::Stop), "{name}: {error:?}");
}

#[test]
fn a_read_may_end_anywhere_in_an_event() {
    let model = model(CHAT, json!({}));
    let body = data("streams/hello_world.sse");
    for cut in 0..=body.len() {
        let (before, after) = body.split_at(cut);
        let (message, error) = read(&model, &[before, after]);
        assert_eq!(message.text(), "Hello world", "cut after {cut} bytes: {error:?}");
        assert_eq!(message.usage.total_tokens, 10);
    }
}

#[test]
fn a_character_may_straddle_two_reads() {
    let body = data("streams/multi_byte_text.sse");
    let pieces: Vec<&[u8]> = body.chunks(1).collect();
    let (message, _) = read(&model(CHAT, json!({})), &pieces);
    assert_eq!(message.text(), "价格 — naïve 🦀 ok");
}

#[test]
fn the_space_after_the_colon_is_optional() {
    says("no_space_after_colon", "no space");
}

#[test]
fn comments_may_come_at_any_time() {
    says("comments", "after comments");
}

#[test]
fn the_answer_ends_at_the_terminator_whatever_the_socket_does() {
    use pi_ai::api::{Exchange, Progress};
    let model = model(CHAT, json!({}));
    let wire = super::wire(&model);
    let context = pi_ai::Context::from(vec![pi_ai::Message::user("go")]).normalize();
    let options = pi_ai::StreamOptions { api_key: Some("k".into()), ..Default::default() };
    let exchange = Exchange::new(wire, model.clone(), context, options);
    let mut answer = pi_ai::stream::MessageBuilder::new(&model, pi_ai::Timestamp::default());
    let mut reader = exchange.begin(&exchange.encode().unwrap(), &mut answer);
    reader.push(&data("streams/hello_world.sse"));
    let mut progress = Progress::Decoded;
    while progress == Progress::Decoded {
        progress = reader.advance(&mut answer);
    }
    // The body was never said to be over.
    assert_eq!(progress, Progress::Ended);
    assert_eq!(answer.message().stop_reason, StopReason::Stop);
}

#[test]
fn an_answer_that_breaks_off_is_an_error_and_keeps_what_came() {
    let (message, error) = read_file(CHAT, "broken_off");
    assert_eq!(message.stop_reason, StopReason::Error);
    assert_eq!(message.text(), "half an ans");
    assert_eq!(error.unwrap().kind(), ErrorKind::Protocol);
    assert!(is_retryable_assistant_error(&message), "{:?}", message.error_message);
}

#[test]
fn the_last_event_counts_without_its_blank_line() {
    let body = data("streams/last_event_unterminated.sse");
    let body = body.trim_ascii_end();
    for tail in ["", "\n"] {
        let (message, _) = read(&model(CHAT, json!({})), &[body, tail.as_bytes()]);
        assert_eq!((message.text().as_str(), message.stop_reason), ("tail", StopReason::Stop));
        assert_eq!(message.usage.output, 3);
    }
}

#[test]
fn a_half_event_at_the_end_does_not_spoil_a_complete_answer() {
    let mut body = data("streams/hello_world.sse");
    let end = String::from_utf8_lossy(&body).find("data: [DONE]").unwrap();
    body.truncate(end);
    body.extend_from_slice(b"data: {\"choices\":[{\"del");
    let (message, _) = read(&model(CHAT, json!({})), &[&body]);
    assert_eq!((message.text().as_str(), message.stop_reason), ("Hello world", StopReason::Stop));
}

#[test]
fn a_choice_without_a_delta_does_nothing() {
    says("choice_without_delta", "ab");
}

#[test]
fn a_frame_without_choices_is_skipped() {
    says("frame_without_choices", "fine");
}

#[test]
fn an_error_in_the_middle_is_told_and_classed() {
    let (message, error) = read_file(CHAT, "error_object");
    assert_eq!((message.text().as_str(), message.stop_reason), ("par", StopReason::Error));
    let error = error.unwrap();
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    assert!(error.message().contains("engine overloaded, try later"), "{error}");
    assert!(error.message().contains("InternalServerError"), "{error}");
    for event in [
        r#"{"object":"error","message":"broken","type":"BadRequestError"}"#,
        r#"{"error":"broken"}"#,
        r#"{"choices":[],"error":{"message":"broken"}}"#,
        r#"{"error":["broken"]}"#,
    ] {
        let (message, error) = read(&model(CHAT, json!({})), &[format!("data: {event}\n\n").as_bytes()]);
        assert_eq!(message.stop_reason, StopReason::Error, "{event}");
        assert!(error.unwrap().message().contains("broken"), "{event}: {:?}", message.error_message);
    }
}

#[test]
fn reasoning_in_two_fields_is_taken_once() {
    let (message, _) = read_file(CHAT, "two_reasoning_fields");
    let [AssistantBlock::Thinking(thinking), AssistantBlock::Text(text)] = &message.content[..] else {
        panic!("{:?}", message.content);
    };
    assert_eq!((thinking.thinking.as_str(), text.text.as_str()), ("think", "answer"));
}

#[test]
fn counts_are_taken_from_any_chunk() {
    let (message, _) = read_file(CHAT, "no_model_and_repeated_usage");
    assert_eq!((message.text().as_str(), message.stop_reason), ("hi", StopReason::Stop));
    assert_eq!((message.usage.input, message.usage.output), (7, 3));
    assert_eq!((message.response_id, message.response_model), (None, None));
}

#[test]
fn calls_without_an_index_are_told_apart_by_their_ids() {
    let read = |path: &str| ("read".to_owned(), json!({ "path": path }));
    assert_eq!(calls(CHAT, "calls_without_index"), [read("a"), read("b")]);
}

#[test]
fn a_new_id_at_a_known_index_is_a_new_call() {
    let read = |path: &str| ("read".to_owned(), json!({ "path": path }));
    assert_eq!(calls(CHAT, "two_ids_at_one_index"), [read("a"), read("b")]);
}

#[test]
fn an_id_that_changes_without_a_name_is_the_same_call() {
    let chunk = |call: Value| format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": [call]}}]}));
    let body = [
        chunk(json!({"index": 0, "id": "x1", "function": {"name": "read", "arguments": "{\"path\":"}})),
        chunk(json!({"index": 0, "id": "x2", "function": {"name": null, "arguments": "\"a\"}"}})),
        "data: {\"choices\":[{\"finish_reason\":\"tool_calls\"}]}\n\n".to_owned(),
    ];
    let (message, _) = read(&model(CHAT, json!({})), &[body.concat().as_bytes()]);
    let calls: Vec<_> = message.tool_calls().collect();
    assert_eq!(calls, [&ToolCall::new("x1", "read", json!({"path": "a"}))]);
}

#[test]
fn arguments_may_come_as_an_object() {
    assert_eq!(calls(CHAT, "arguments_as_object"), [("bash".to_owned(), json!({"command": "printf ok"}))]);
}

#[test]
fn arguments_of_the_first_chunk_count() {
    let expected = json!({"path": "hello.txt", "content": "world"});
    assert_eq!(calls(CHAT, "whole_call_in_one_chunk"), [("write".to_owned(), expected)]);
}

#[test]
fn empty_arguments_are_none() {
    assert_eq!(calls(CHAT, "empty_arguments"), [("list".to_owned(), json!({}))]);
    assert_eq!(ArgumentsBuilder::default().finish().unwrap(), Map::new());
}

#[test]
fn indexes_may_have_gaps_and_other_choices_do_not_mix_in() {
    let (message, _) = read_file(CHAT, "odd_indexes");
    assert_eq!(message.text(), "");
    let expected = [("ls".to_owned(), json!({})), ("read".to_owned(), json!({"path": "z"}))];
    assert_eq!(calls(CHAT, "odd_indexes"), expected);
    let text = String::from_utf8(data("streams/odd_indexes.sse")).unwrap().replace("\"index\":3", "\"index\":\"1\"");
    let (message, _) = read(&model(CHAT, json!({})), &[text.as_bytes()]);
    assert_eq!(message.tool_calls().nth(1).unwrap().arguments, *json!({"path": "z"}).as_object().unwrap());
}

#[test]
fn a_call_that_the_limit_cut_is_marked() {
    let (message, _) = read_file(CHAT, "call_cut_by_length");
    assert_eq!(message.stop_reason, StopReason::Length);
    let call = message.tool_calls().next().unwrap();
    assert!(call.arguments.is_empty() && call.arguments_error.is_some(), "{call:?}");
}

#[test]
fn fields_of_the_wrong_type_do_not_cost_the_answer() {
    let chunk = json!({
        "id": 7, "model": null, "created": "soon", "usage": [], "error": null,
        "choices": [{"index": null, "finish_reason": 3, "delta": {
            "role": {}, "content": "ok", "reasoning": 1, "tool_calls": "none", "reasoning_details": [null, 1, {"type": "x"}],
        }}],
    });
    let body =
        format!("data: {chunk}\n\ndata: [1]\n\ndata: 7\n\ndata: {{\"choices\":[{{\"finish_reason\":\"stop\"}}]}}\n\n");
    let (message, error) = read(&model(CHAT, json!({})), &[body.as_bytes()]);
    assert_eq!((message.text().as_str(), message.stop_reason), ("ok", StopReason::Stop), "{error:?}");
}

#[test]
fn half_a_surrogate_pair_in_a_delta_is_left_out() {
    let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\\ud83d\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}\n\n";
    let (message, _) = read(&model(CHAT, json!({})), &[body]);
    assert_eq!(message.text(), "ab");
}

#[test]
fn fragments_replace_the_empty_input() {
    assert_eq!(calls(ANTHROPIC, "fragments_after_empty_input"), [("read".to_owned(), json!({"path": "a.rs"}))]);
}

#[test]
fn no_fragments_mean_no_arguments() {
    let (message, _) = read_file(ANTHROPIC, "call_without_fragments");
    assert_eq!((message.text().as_str(), message.stop_reason), ("ok", StopReason::ToolUse));
    assert_eq!(calls(ANTHROPIC, "call_without_fragments"), [("list".to_owned(), json!({}))]);
}

#[test]
fn reasoning_with_nothing_but_a_signature_goes_back_to_its_model() {
    let model = model(ANTHROPIC, json!({}));
    let (message, _) = read(&model, &[&data("streams/signature_without_thinking.sse")]);
    let body = super::body(&model, vec![pi_ai::Message::user("go"), message.into()]);
    let expected = json!({"type": "thinking", "thinking": "", "signature": "c2ln"});
    assert_eq!(body["messages"][1]["content"][0], expected);
}

#[test]
fn overload_inside_a_stream_may_be_tried_again() {
    let (message, error) = read_file(ANTHROPIC, "overloaded_event");
    assert_eq!(message.stop_reason, StopReason::Error);
    assert_eq!(error.unwrap().kind(), ErrorKind::Overloaded);
    assert!(is_retryable_assistant_error(&message));
}

#[test]
fn events_without_a_name_are_known_by_their_type() {
    let body = String::from_utf8(data("streams/fragments_after_empty_input.sse")).unwrap();
    let nameless: String =
        body.lines().filter(|line| !line.starts_with("event:")).map(|line| format!("{line}\n")).collect();
    let (message, _) = read(&model(ANTHROPIC, json!({})), &[nameless.as_bytes()]);
    assert_eq!(message.tool_calls().count(), 1);
    assert_eq!(message.stop_reason, StopReason::ToolUse);
}

#[test]
fn a_call_that_was_never_ended_is_finished_before_it_may_run() {
    let body = String::from_utf8(data("streams/fragments_after_empty_input.sse")).unwrap();
    let open = body.replace("event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n", "");
    let cut = open.replace("th\\\":\\\"a.rs\\\"}", "th\\\":\\\"a.r");
    let (message, _) = read(&model(ANTHROPIC, json!({})), &[open.as_bytes()]);
    assert_eq!(message.tool_calls().next().unwrap().arguments_error, None);
    let (message, _) = read(&model(ANTHROPIC, json!({})), &[cut.as_bytes()]);
    let call = message.tool_calls().next().unwrap();
    assert!(call.arguments_error.is_some() && call.arguments.is_empty(), "{call:?}");
}

#[test]
fn events_of_unknown_types_are_passed_over() {
    let (message, error) = read_file(RESPONSES, "unknown_events");
    assert_eq!((message.text().as_str(), message.stop_reason), ("alive", StopReason::Stop), "{error:?}");
    assert_eq!(message.usage.total_tokens, 6);
    let named = |body: Vec<u8>| {
        let text = String::from_utf8(body).unwrap();
        format!(
            "event: ping\ndata: {{\"type\":\"ping\"}}\n\nevent: future\ndata: {{\"type\":\"future\",\"index\":9}}\n\n{text}"
        )
    };
    let body = named(data("streams/fragments_after_empty_input.sse"));
    let (message, error) = read(&model(ANTHROPIC, json!({})), &[body.as_bytes()]);
    assert_eq!((message.tool_calls().count(), message.stop_reason), (1, StopReason::ToolUse), "{error:?}");
}

#[test]
fn content_of_unknown_types_is_passed_over() {
    let (message, error) = read_file(RESPONSES, "unknown_content_part");
    assert_eq!((message.text().as_str(), message.stop_reason), ("done", StopReason::Stop), "{error:?}");
    let parts = json!([{"text": "a"}, {"executableCode": {"code": "1"}}, {"futurePart": 1}, 7, {"text": "b"}]);
    let chunk = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]});
    let (message, error) = read(&model(GEMINI, json!({})), &[format!("data: {chunk}\n\n").as_bytes()]);
    assert_eq!(message.text(), "ab", "{error:?}");
}

#[test]
fn the_signature_of_a_call_is_kept_on_it_and_goes_back_with_it() {
    let model = model(GEMINI, json!({}));
    let (message, _) = read(&model, &[&data("streams/signed_function_call.sse")]);
    let signatures: Vec<_> = message.tool_calls().map(|call| call.thought_signature.as_deref()).collect();
    assert_eq!(signatures, [Some("c2lnMQ=="), None]);
    let stored: pi_ai::Message = serde_json::from_value(json!(pi_ai::Message::from(message))).unwrap();
    let sent = super::body(&model, vec![pi_ai::Message::user("go"), stored]);
    let parts = &sent["contents"][1]["parts"];
    assert_eq!((&parts[0]["thoughtSignature"], parts[1].get("thoughtSignature")), (&json!("c2lnMQ=="), None));
}

/// The events of a chat answer with these choices.
fn chat(choices: impl IntoIterator<Item = Value>) -> String {
    choices.into_iter().map(|choice| format!("data: {}\n\n", json!({ "choices": [choice] }))).collect()
}

#[test]
fn content_may_come_as_a_list_of_parts() {
    let body = chat([
        json!({"delta": {"content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
            {"type": "text", "text": "Hel"}, null, 7, {"type": "future", "text": "x"}, "lo",
        ]}}),
        json!({"delta": {"content": [{"text": " wor"}, {"type": "refusal", "refusal": "ld"}]}, "finish_reason": "stop"}),
    ]);
    let (message, error) = read(&model(CHAT, json!({})), &[body.as_bytes()]);
    assert_eq!((message.text().as_str(), message.stop_reason), ("Hello world", StopReason::Stop), "{error:?}");
    let AssistantBlock::Thinking(thinking) = &message.content[0] else { panic!("{:?}", message.content) };
    assert_eq!(thinking.thinking, "hm");
}

#[test]
fn a_refusal_is_an_answer() {
    let body = chat([
        json!({"delta": {"content": null, "refusal": "I can"}}),
        json!({"delta": {"refusal": "not."}, "finish_reason": "stop"}),
    ]);
    let (message, error) = read(&model(CHAT, json!({})), &[body.as_bytes()]);
    assert_eq!((message.text().as_str(), message.stop_reason), ("I cannot.", StopReason::Stop), "{error:?}");
}

#[test]
fn a_message_in_place_of_deltas_is_taken_and_one_after_them_is_not() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}});
    let whole =
        json!({"message": {"role": "assistant", "content": "all", "tool_calls": [call]}, "finish_reason": "stop"});
    for (choices, text) in [
        (vec![whole.clone()], "all"),
        (vec![json!({"delta": {"role": "assistant", "content": ""}}), whole.clone()], "all"),
        (vec![json!({"delta": {"content": "al"}}), json!({"delta": {"content": "l."}}), whole.clone()], "all."),
    ] {
        let (message, error) = read(&model(CHAT, json!({})), &[chat(choices.clone()).as_bytes()]);
        assert_eq!(message.text(), text, "{choices:?} {error:?}");
        assert_eq!(message.tool_calls().count(), usize::from(text == "all"));
    }
}

/// The events of a Responses or Anthropic answer.
fn typed(events: impl IntoIterator<Item = Value>) -> String {
    events.into_iter().map(|event| format!("data: {event}\n\n")).collect()
}

#[test]
fn items_that_only_the_last_event_has_are_the_answer() {
    let message =
        |text: &str| json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": text}]});
    let call = json!({"type": "function_call", "id": "f", "call_id": "c", "name": "ls", "arguments": "{\"a\":1}"});
    let reasoning = json!({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]});
    let end =
        |output: Value| json!({"type": "response.completed", "response": {"status": "completed", "output": output}});
    let (answer, error) =
        read(&model(RESPONSES, json!({})), &[typed([end(json!([reasoning, message("all"), call]))]).as_bytes()]);
    assert_eq!((answer.text().as_str(), answer.stop_reason), ("all", StopReason::ToolUse), "{error:?}");
    assert_eq!(answer.content.len(), 3);
    assert_eq!(answer.tool_calls().next().unwrap().arguments, *json!({"a": 1}).as_object().unwrap());
    let begun =
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m"}});
    let (answer, error) =
        read(&model(RESPONSES, json!({})), &[typed([begun, end(json!([message("all")]))]).as_bytes()]);
    assert_eq!((answer.text().as_str(), answer.content.len()), ("all", 1), "{error:?}");
    let piece = json!({"type": "response.output_text.delta", "output_index": 0, "delta": "all"});
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": message("all")});
    let (answer, error) =
        read(&model(RESPONSES, json!({})), &[typed([piece, done, end(json!([message("all")]))]).as_bytes()]);
    assert_eq!((answer.text().as_str(), answer.content.len()), ("all", 1), "{error:?}");
}

#[test]
fn pieces_of_items_that_were_never_begun_are_the_answer_when_nothing_else_is() {
    let piece = |text: &str| json!({"type": "response.output_text.delta", "output_index": 0, "delta": text});
    let end = json!({"type": "response.completed", "response": {"status": "completed", "output": []}});
    let body = typed([piece("Hello "), piece("world"), end]);
    let (message, error) = read(&model(RESPONSES, json!({})), &[body.as_bytes()]);
    assert_eq!((message.text().as_str(), message.stop_reason), ("Hello world", StopReason::Stop), "{error:?}");
}

#[test]
fn pieces_of_blocks_that_were_never_begun_are_the_answer_when_nothing_else_is() {
    let start = json!({"type": "message_start", "message": {"id": "m"}});
    let piece = |index: u64, kind: &str, text: &str| {
        let field = kind.trim_end_matches("_delta");
        json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, field: text}})
    };
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}});
    let stop = json!({"type": "message_stop"});
    let pieces = [piece(0, "thinking_delta", "hm"), piece(1, "text_delta", "Hello "), piece(1, "text_delta", "world")];
    let body = typed([start.clone()].into_iter().chain(pieces).chain([end.clone(), stop.clone()]));
    let (message, error) = read(&model(ANTHROPIC, json!({})), &[body.as_bytes()]);
    assert_eq!((message.text().as_str(), message.stop_reason), ("Hello world", StopReason::Stop), "{error:?}");
    assert_eq!(message.content.len(), 2);
    // What a block of an unknown kind says is not the answer.
    let unknown = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "future"}});
    let body = typed([start, unknown, piece(0, "text_delta", "x"), end, stop]);
    let (message, error) = read(&model(ANTHROPIC, json!({})), &[body.as_bytes()]);
    assert_eq!((message.text().as_str(), message.stop_reason), ("", StopReason::Stop), "{error:?}");
}
