//! One answer of many text deltas, as each service streams it.

use pi_ai::testing::aws_frame;

use super::DELTAS;

/// The deltas of the answer: four digits and a space each.
pub(crate) fn deltas() -> impl Iterator<Item = String> {
    (0..DELTAS).map(|number| format!("{:04} ", number % 10_000))
}

/// The answer as a chat completions service streams it.
pub(crate) fn chat_body() -> Vec<u8> {
    let event = |choice: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-0\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\",\
             \"choices\":[{{\"index\":0,{choice}}}]}}\n\n"
        )
    };
    let mut body: Vec<u8> = deltas()
        .flat_map(|text| event(&format!("\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null")).into_bytes())
        .collect();
    body.extend_from_slice(event("\"delta\":{},\"finish_reason\":\"stop\"").as_bytes());
    body.extend_from_slice(b"data: [DONE]\n\n");
    body
}

/// A chat completion with one delta, however long: the text as it stands in JSON.
pub(super) fn one_delta(text: &str) -> Vec<u8> {
    let first = format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let last = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    (first + last).into_bytes()
}

/// The answer as an Anthropic service streams it.
pub(super) fn messages_body() -> Vec<u8> {
    let event = |name: &str, fields: &str| format!("event: {name}\ndata: {{\"type\":\"{name}\"{fields}}}\n\n");
    let message = "\"id\":\"msg_0\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[]";
    let usage = "\"usage\":{\"input_tokens\":100,\"output_tokens\":1}";
    let mut body = event("message_start", &format!(",\"message\":{{{message},{usage}}}"));
    body += &event("content_block_start", ",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}");
    for text in deltas() {
        let delta = format!(",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}");
        body += &event("content_block_delta", &delta);
    }
    body += &event("content_block_stop", ",\"index\":0");
    let delta = "\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null}";
    body += &event("message_delta", &format!(",{delta},\"usage\":{{\"output_tokens\":20}}"));
    body += &event("message_stop", "");
    body.into_bytes()
}

/// The answer as OpenAI Responses streams it.
pub(super) fn responses_body() -> Vec<u8> {
    let mut number = 0;
    let mut event = |name: &str, fields: &str| {
        number += 1;
        format!("event: {name}\ndata: {{\"type\":\"{name}\",\"sequence_number\":{number}{fields}}}\n\n")
    };
    let item =
        |content: &str| format!("\"type\":\"message\",\"id\":\"msg_0\",\"role\":\"assistant\",\"content\":[{content}]");
    let place = "\"item_id\":\"msg_0\",\"output_index\":0,\"content_index\":0";
    let mut body = event("response.created", ",\"response\":{\"id\":\"resp_0\",\"status\":\"in_progress\"}");
    body += &event("response.output_item.added", &format!(",\"output_index\":0,\"item\":{{{}}}", item("")));
    let part = "\"part\":{\"type\":\"output_text\",\"text\":\"\",\"annotations\":[]}";
    body += &event("response.content_part.added", &format!(",{place},{part}"));
    for text in deltas() {
        body += &event("response.output_text.delta", &format!(",{place},\"delta\":\"{text}\",\"logprobs\":[]"));
    }
    let text: String = deltas().collect();
    let content = format!("{{\"type\":\"output_text\",\"text\":\"{text}\",\"annotations\":[]}}");
    body += &event("response.output_item.done", &format!(",\"output_index\":0,\"item\":{{{}}}", item(&content)));
    let usage = "\"usage\":{\"input_tokens\":100,\"output_tokens\":20,\"total_tokens\":120}";
    let response = format!("\"response\":{{\"id\":\"resp_0\",\"status\":\"completed\",{usage}}}");
    body += &event("response.completed", &format!(",{response}"));
    body.into_bytes()
}

/// The answer as Gemini streams it.
pub(super) fn gemini_body() -> Vec<u8> {
    let chunk = |parts: &str, more: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{parts}],\"role\":\"model\"}},\"index\":0{more}}}],\
             \"usageMetadata\":{{\"promptTokenCount\":100,\"totalTokenCount\":120}},\"modelVersion\":\"m\",\
             \"responseId\":\"r_0\"}}\n\n"
        )
    };
    let mut body: Vec<u8> =
        deltas().flat_map(|text| chunk(&format!("{{\"text\":\"{text}\"}}"), "").into_bytes()).collect();
    body.extend_from_slice(chunk("", ",\"finishReason\":\"STOP\"").as_bytes());
    body
}

/// The answer as Bedrock streams it.
pub(super) fn bedrock_body() -> Vec<u8> {
    let event = |name: &str, payload: &str| aws_frame("event", name, payload.as_bytes());
    let mut body = event("messageStart", "{\"role\":\"assistant\"}");
    for text in deltas() {
        let payload = format!("{{\"contentBlockIndex\":0,\"delta\":{{\"text\":\"{text}\"}},\"p\":\"abcdefgh\"}}");
        body.extend(event("contentBlockDelta", &payload));
    }
    body.extend(event("contentBlockStop", "{\"contentBlockIndex\":0}"));
    body.extend(event("messageStop", "{\"stopReason\":\"end_turn\"}"));
    body.extend(event("metadata", "{\"usage\":{\"inputTokens\":100,\"outputTokens\":20}}"));
    body
}

/// The answer in our own events.
pub(super) fn pi_body() -> Vec<u8> {
    let mut body = String::from("data: {\"type\":\"start\"}\n\ndata: {\"type\":\"text_start\",\"contentIndex\":0}\n\n");
    for text in deltas() {
        body += &format!("data: {{\"type\":\"text_delta\",\"contentIndex\":0,\"delta\":\"{text}\"}}\n\n");
    }
    body += "data: {\"type\":\"text_end\",\"contentIndex\":0}\n\n";
    body += "data: {\"type\":\"done\",\"reason\":\"stop\",\"usage\":{\"input\":100,\"output\":20}}\n\n";
    body.into_bytes()
}
