//! Drives the fuzz entry points from a fixed seed for about two seconds each.
//!
//! `PI_FUZZ_SECONDS` sets another time, `PI_FUZZ_SEED` another seed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use pi_ai::testing::fuzz;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Calls `entry` with texts made of `words` and of bytes at random; a text that breaks it is made smaller and shown.
fn drive(entry: fn(&[u8]), words: &'static [&'static str]) {
    let setting = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let time = Duration::from_secs(setting("PI_FUZZ_SECONDS").unwrap_or(2));
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&setting("PI_FUZZ_SEED").unwrap_or(1).to_le_bytes());
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let word = prop_oneof![
        8 => proptest::sample::select(words).prop_map(|word| word.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 1..4),
    ];
    let texts = (any::<u8>(), vec(word, 0..40)).prop_map(|(first, words)| {
        let mut text = vec![first];
        text.extend(words.concat());
        text
    });

    let breaks = |text: &[u8]| catch_unwind(AssertUnwindSafe(|| entry(text))).is_err();
    let start = Instant::now();
    while start.elapsed() < time {
        let mut tree = texts.new_tree(&mut runner).unwrap();
        if breaks(&tree.current()) {
            let mut smallest = tree.current();
            while tree.simplify() {
                if breaks(&tree.current()) {
                    smallest = tree.current();
                } else if !tree.complicate() {
                    break;
                }
            }
            panic!("broken by b\"{}\"", smallest.escape_ascii());
        }
    }
}

#[test]
fn arguments() {
    drive(
        fuzz::arguments,
        &[
            "{",
            "}",
            "[",
            "]",
            "{",
            "}",
            "\"",
            "\"",
            "\"",
            ":",
            ",",
            ",",
            " ",
            "\n",
            "{\"a\":",
            "\"b\":",
            "\"a\"",
            "\"a\": 1",
            "[[",
            "]]",
            "{\"x\": {\"x\": [",
            "}}",
            "\"\":",
            "\\",
            "\\\"",
            "\\u",
            "\\u00e9",
            "\\ud83d",
            "\\ude00",
            "\\n",
            "\\d",
            "\t",
            "true",
            "false",
            "null",
            "tru",
            "nul",
            "0",
            "1",
            "-",
            "-0",
            "12",
            "1.5",
            ".",
            "e",
            "E+",
            "1e400",
            "0123",
            "12345678901234567890",
            "oops",
            "'",
            "é",
            "😀",
            "//",
            "\u{feff}",
        ],
    );
}

#[test]
fn schema() {
    drive(
        fuzz::schema,
        &[
            "[{",
            "}",
            "]",
            "},{",
            ",",
            ":",
            "{",
            "[",
            "}}",
            "]}",
            "\"a\":",
            "\"b\":",
            "\"a\"",
            "\"b\"",
            "\"x\"",
            "1",
            "2.5",
            "-1",
            "true",
            "false",
            "null",
            "\"type\":\"object\",",
            "\"type\":\"array\",",
            "\"type\":\"string\",",
            "\"type\":\"integer\",",
            "\"type\":[\"number\",\"null\"],",
            "\"properties\":{\"a\":{",
            "\"items\":{",
            "\"prefixItems\":[{",
            "\"additionalProperties\":{",
            "\"patternProperties\":{\"^a\":{",
            "\"required\":[\"a\"],",
            "\"anyOf\":[{",
            "\"oneOf\":[{",
            "\"allOf\":[{",
            "\"not\":{",
            "\"if\":{",
            "\"then\":{",
            "\"else\":{",
            "\"$ref\":\"#\",",
            "\"$ref\":\"#/properties/a\",",
            "\"$ref\":\"#/anyOf/0\",",
            "\"$ref\":\"#/nope\",",
            "\"enum\":[1,\"a\",null],",
            "\"const\":1,",
            "\"pattern\":\"^a+$\",",
            "\"pattern\":\"[\",",
            "\"format\":\"date-time\",",
            "\"minLength\":1,",
            "\"multipleOf\":0.1,",
            "\"minimum\":1,",
            "\"uniqueItems\":true,",
            "\"contains\":{",
            "\"minItems\":1,",
        ],
    );
}

/// What every event stream is made of.
macro_rules! events {
    ($($word:literal),* $(,)?) => {
        &["data: ", "data:", "event: ", "\n", "\n\n", "\n\n", "\r\n\r\n", "\r", ": x\n", "{", "}", "[", "]", ",", ":", "null", "7", "\"\"",
          "\\ud83d", "\u{feff}", "😀", $($word),*]
    };
}

#[test]
fn openai_completions() {
    drive(
        fuzz::openai_completions,
        events![
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"reasoning\":\"r\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"t\"}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\":1}\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"b\",\"custom\":{\"name\":\"g\",\"input\":\"i\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":{\"y\":2}}}]}}]}\n\n",
            "data: {\"choices\":[{\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3}}\n\n",
            "data: {\"error\":{\"message\":\"e\"}}\n\n",
            "data: [DONE]\n\n",
            "{\"choices\":[{\"delta\":",
            "\"tool_calls\":[",
            "\"index\":",
            "\"content\":",
        ],
    );
}

#[test]
fn anthropic_messages() {
    drive(
        fuzz::anthropic_messages,
        events![
            "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"usage\":{\"input_tokens\":3}}}\n\n",
            "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"thinking\"}}\n\n",
            "data: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}}\n\n",
            "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"redacted_thinking\",\"data\":\"d\"}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"b\"}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"s\"}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"x\"}}\n\n",
            "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
            "data: {\"type\":\"content_block_stop\",\"index\":2}\n\n",
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":4}}\n\n",
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
            "event: error\n",
            "\"delta\":{",
            "{\"type\":",
        ],
    );
}

#[test]
fn openai_responses() {
    drive(
        fuzz::openai_responses,
        events![
            "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n",
            "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"m\"}}\n\n",
            "data: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"type\":\"reasoning\",\"id\":\"rs\"}}\n\n",
            "data: {\"type\":\"response.output_item.added\",\"output_index\":2,\"item\":{\"type\":\"function_call\",\"id\":\"f\",\"call_id\":\"c\",\"name\":\"n\",\"arguments\":\"\"}}\n\n",
            "data: {\"type\":\"response.output_item.added\",\"output_index\":3,\"item\":{\"type\":\"custom_tool_call\",\"call_id\":\"c\",\"name\":\"n\",\"input\":\"\"}}\n\n",
            "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"a\"}\n\n",
            "data: {\"type\":\"response.refusal.delta\",\"output_index\":0,\"delta\":\"a\"}\n\n",
            "data: {\"type\":\"response.reasoning_summary_text.delta\",\"output_index\":1,\"delta\":\"b\"}\n\n",
            "data: {\"type\":\"response.reasoning_summary_part.done\",\"output_index\":1}\n\n",
            "data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":2,\"delta\":\"{\\\"x\"}\n\n",
            "data: {\"type\":\"response.function_call_arguments.done\",\"output_index\":2,\"arguments\":\"{\\\"x\\\":1}\"}\n\n",
            "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"m\",\"content\":[{\"type\":\"output_text\",\"text\":\"ab\"}]}}\n\n",
            "data: {\"type\":\"response.output_item.done\",\"output_index\":2,\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"n\",\"arguments\":\"{}\"}}\n\n",
            "data: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"type\":\"reasoning\",\"id\":\"rs\",\"summary\":[{\"text\":\"s\"}]}}\n\n",
            "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":3}}}\n\n",
            "data: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}\n\n",
            "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"message\":\"e\"}}}\n\n",
            "data: {\"type\":\"error\",\"message\":\"e\"}\n\n",
            "\"output_index\":",
            "\"item\":{",
        ],
    );
}

#[test]
fn google_generative_ai() {
    drive(
        fuzz::google_generative_ai,
        events![
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n",
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"b\",\"thought\":true,\"thoughtSignature\":\"s\"}]}}]}\n\n",
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"f\",\"args\":{\"x\":1}},\"thoughtSignature\":\"s\"}]}}]}\n\n",
            "data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":3}}\n\n",
            "data: {\"candidates\":[{\"finishReason\":\"SAFETY\"}]}\n\n",
            "data: {\"promptFeedback\":{\"blockReason\":\"OTHER\"}}\n\n",
            "data: {\"error\":{\"code\":503,\"message\":\"e\"}}\n\n",
            "{\"candidates\":[{\"content\":{\"parts\":[",
            "\"functionCall\":",
            "\"text\":",
        ],
    );
}

#[test]
fn mistral_conversations() {
    drive(
        fuzz::mistral_conversations,
        events![
            "data: {\"id\":\"i\",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"t\"}]}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":[\"a\",{\"type\":\"text\",\"text\":\"b\"},null]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\":1}\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"null\",\"function\":{\"arguments\":{\"y\":2}}}]}}]}\n\n",
            "data: {\"choices\":[{\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":3}}\n\n",
            "data: {\"choices\":[{\"finish_reason\":\"error\"}]}\n\n",
            "data: {\"object\":\"error\",\"message\":\"e\"}\n\n",
            "data: [DONE]\n\n",
            "{\"choices\":[{\"delta\":",
            "\"tool_calls\":[",
            "\"content\":[",
        ],
    );
}

#[test]
fn pi_messages() {
    drive(
        fuzz::pi_messages,
        events![
            "data: {\"type\":\"start\"}\n\n",
            "data: {\"type\":\"text_start\",\"contentIndex\":0}\n\n",
            "data: {\"type\":\"text_delta\",\"contentIndex\":0,\"delta\":\"a\"}\n\n",
            "data: {\"type\":\"text_end\",\"contentIndex\":0,\"content\":\"b\",\"contentSignature\":\"s\"}\n\n",
            "data: {\"type\":\"thinking_start\",\"contentIndex\":1,\"content\":\"x\",\"redacted\":true}\n\n",
            "data: {\"type\":\"thinking_start\",\"contentIndex\":0}\n\n",
            "data: {\"type\":\"thinking_delta\",\"contentIndex\":0,\"delta\":\"a\"}\n\n",
            "data: {\"type\":\"thinking_end\",\"contentIndex\":0,\"redacted\":true,\"contentSignature\":\"s\"}\n\n",
            "data: {\"type\":\"toolcall_start\",\"contentIndex\":1,\"id\":\"c\",\"toolName\":\"n\"}\n\n",
            "data: {\"type\":\"toolcall_delta\",\"contentIndex\":1,\"delta\":\"{\\\"x\"}\n\n",
            "data: {\"type\":\"toolcall_end\",\"contentIndex\":1}\n\n",
            "data: {\"type\":\"toolcall_end\",\"contentIndex\":1,\"toolCall\":{\"id\":\"c\",\"name\":\"n\",\"arguments\":{}}}\n\n",
            "data: {\"type\":\"done\",\"reason\":\"stop\",\"usage\":{\"input\":1},\"lateSignatures\":[[0,\"s\"]]}\n\n",
            "data: {\"type\":\"done\",\"reason\":\"toolUse\",\"rewrite\":{\"a\":1}}\n\n",
            "data: {\"type\":\"error\",\"reason\":\"aborted\"}\n\n",
            "\"contentIndex\":",
            "{\"type\":",
        ],
    );
}

#[cfg(feature = "bedrock")]
#[test]
fn bedrock_converse_stream() {
    drive(
        fuzz::bedrock_converse_stream,
        &[
            "event messageStart {\"role\":\"assistant\"}\n",
            "event contentBlockStart {\"contentBlockIndex\":1,\"start\":{\"toolUse\":{\"toolUseId\":\"t\",\"name\":\"n\"}}}\n",
            "event contentBlockDelta {\"contentBlockIndex\":0,\"delta\":{\"text\":\"a\"}}\n",
            "event contentBlockDelta {\"contentBlockIndex\":1,\"delta\":{\"toolUse\":{\"input\":\"{\\\"x\"}}}\n",
            "event contentBlockDelta {\"contentBlockIndex\":2,\"delta\":{\"reasoningContent\":{\"text\":\"r\"}}}\n",
            "event contentBlockDelta {\"contentBlockIndex\":2,\"delta\":{\"reasoningContent\":{\"signature\":\"s\"}}}\n",
            "event contentBlockDelta {\"contentBlockIndex\":2,\"delta\":{\"reasoningContent\":{\"redactedContent\":\"YWI=\"}}}\n",
            "event contentBlockStop {\"contentBlockIndex\":0}\n",
            "event contentBlockStop {\"contentBlockIndex\":1}\n",
            "event contentBlockStop {\"contentBlockIndex\":2}\n",
            "event messageStop {\"stopReason\":\"tool_use\"}\n",
            "event metadata {\"usage\":{\"inputTokens\":3,\"cacheDetails\":[{\"ttl\":\"1h\",\"inputTokens\":2}]}}\n",
            "exception throttlingException {\"message\":\"m\"}\n",
            "error x y\n",
            "event ",
            "\n",
            "{",
            "\"delta\":",
            "\u{0}\u{0}\u{0}\u{10}",
        ],
    );
}
