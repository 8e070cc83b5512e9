//! Requests.

use pi_ai::tool::ToolDeclaration;
use pi_ai::{
    AssistantBlock, AssistantMessage, Content, Context, InputBlock, Message, Model, StopReason, ThinkingContent,
    ToolCall, ToolResultMessage,
};
use serde_json::{Value, json};

use super::{body, data, encode, model, transcript};

const CHAT: &str = "openai-completions";
const ANTHROPIC: &str = "anthropic-messages";
const RESPONSES: &str = "openai-responses";
const GEMINI: &str = "google-generative-ai";

fn answer(model: &Model, content: Vec<AssistantBlock>) -> Message {
    let stop_reason = match content.iter().any(|block| block.as_tool_call().is_some()) {
        true => StopReason::ToolUse,
        false => StopReason::Stop,
    };
    AssistantMessage {
        content,
        api: model.api.clone(),
        provider: model.provider.clone(),
        model: model.id.clone(),
        stop_reason,
        ..AssistantMessage::default()
    }
    .into()
}

fn call(id: &str, name: &str) -> AssistantBlock {
    ToolCall::new(id, name, json!({})).into()
}

fn result(id: &str, content: Vec<InputBlock>) -> Message {
    ToolResultMessage { tool_call_id: id.into(), tool_name: "read".into(), content, ..ToolResultMessage::default() }
        .into()
}

fn roles(body: &Value) -> Vec<&str> {
    body["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect()
}

fn with_tool(tool: ToolDeclaration) -> pi_ai::TranscriptContext {
    Context { tools: vec![tool], ..Context::from(vec![Message::user("go")]) }.normalize()
}

#[test]
fn an_explicit_switch_beats_what_is_known_of_the_host() {
    let file: Value = serde_json::from_slice(&data("no_developer_role.models.json")).unwrap();
    let provider = &file["providers"]["example"];
    let changes = json!({ "provider": "example", "baseUrl": provider["baseUrl"], "compat": provider["compat"] });
    let prompt = |model: &Model| {
        let context = Context { system_prompt: Some("p".into()), ..Context::from(vec![Message::user("go")]) };
        let body: Value = serde_json::from_slice(&encode(model, &context.normalize()).body).unwrap();
        body["messages"][0]["role"].as_str().unwrap().to_owned()
    };
    assert_eq!(prompt(&model(CHAT, changes)), "system");
    assert_eq!(prompt(&model(CHAT, json!({"provider": "example"}))), "system");
    let openai = json!({"baseUrl": "https://api.openai.com/v1"});
    assert_eq!(prompt(&model(CHAT, openai.clone())), "developer");
    let mut off = openai;
    off["compat"] = json!({"supportsDeveloperRole": false});
    assert_eq!(prompt(&model(CHAT, off)), "system");
}

#[test]
fn fields_of_one_vendor_go_out_only_where_they_are_allowed() {
    let local = model(CHAT, json!({"provider": "local", "compat": {"supportsStore": false}}));
    let sent = body(&local, vec![Message::user("go")]);
    let mut names: Vec<&str> = sent.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["max_completion_tokens", "messages", "model", "stream", "stream_options"]);
    let bare = json!({
        "supportsStore": false, "supportsUsageInStreaming": false, "maxTokensField": "max_tokens",
    });
    let sent = body(&model(CHAT, json!({"provider": "local", "compat": bare})), vec![Message::user("go")]);
    assert!(sent.get("stream_options").is_none() && sent.get("store").is_none());
    assert_eq!(sent["max_tokens"], 1000);
    let xai =
        body(&model(CHAT, json!({"provider": "xai", "baseUrl": "https://api.x.ai/v1"})), vec![Message::user("go")]);
    assert!(xai.get("store").is_none());
    let forced = json!({"provider": "xai", "compat": {"supportsStore": true}});
    assert_eq!(body(&model(CHAT, forced), vec![Message::user("go")])["store"], false);
}

#[test]
fn refused_schema_keywords_are_left_out_at_all_depths_and_only_where_refused() {
    let tool: ToolDeclaration = serde_json::from_slice(&data("schemas/pattern_properties.json")).unwrap();
    let stored = tool.clone();
    let parameters = |compat: Value| {
        let body = encode(&model(CHAT, json!({"compat": compat})), &with_tool(tool.clone())).body;
        let body: Value = serde_json::from_slice(&body).unwrap();
        body["tools"][0]["function"]["parameters"].clone()
    };
    assert_eq!(parameters(json!({})), stored.parameters);
    let kept = parameters(json!({"refusedSchemaKeywords": ["patternProperties", "$schema", "default"]}));
    let expected = json!({
        "type": "object", "additionalProperties": false,
        "properties": {"m": {"type": "object"}, "k": {"anyOf": [{"const": "a"}, {"const": "b"}]}},
    });
    assert_eq!(kept, expected);
    assert_eq!(tool, stored);
}

#[test]
fn a_call_without_a_result_is_answered_before_what_comes_next() {
    let messages = transcript("unanswered_call");
    let sent = body(&model(ANTHROPIC, json!({"id": "m1"})), messages.clone());
    let answers = sent["messages"][2]["content"].as_array().unwrap();
    let ids: Vec<_> = answers.iter().map(|block| block["tool_use_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["toolu_1", "toolu_2"]);
    assert_eq!((&answers[0]["is_error"], &answers[1]["is_error"]), (&json!(false), &json!(true)));
    assert_eq!(roles(&sent), ["user", "assistant", "user", "user"]);
    assert_eq!(roles(&body(&model(CHAT, json!({})), messages)), ["user", "assistant", "tool", "tool", "user"]);
}

#[test]
fn a_result_without_a_call_is_not_sent() {
    for api in [CHAT, ANTHROPIC] {
        let model = model(api, json!({}));
        let late = vec![
            Message::user("go"),
            answer(&model, vec![call("c1", "read")]),
            Message::user("never mind"),
            result("c1", vec![InputBlock::text("too late")]),
            result("c9", vec![InputBlock::text("whose?")]),
            Message::user("next"),
        ];
        let text = body(&model, late).to_string();
        assert!(!text.contains("too late") && !text.contains("whose?"), "{api}: {text}");
    }
}

#[test]
fn blank_text_is_never_sent_where_it_is_refused() {
    let sent = body(&model(ANTHROPIC, json!({"id": "m1"})), transcript("blank_text"));
    assert_eq!(roles(&sent), ["user", "assistant", "user", "user"]);
    assert_eq!(sent["messages"][1]["content"].as_array().unwrap().len(), 1);
    let picture = vec![InputBlock::text(" "), InputBlock::image("aGk=", "image/png")];
    let sent = body(&model(ANTHROPIC, json!({})), vec![Message::user(Content::from(picture.clone()))]);
    assert_eq!(sent["messages"][0]["content"].as_array().unwrap().len(), 1);
    let model = model(ANTHROPIC, json!({}));
    let sent = body(&model, vec![Message::user("go"), answer(&model, vec![call("c", "read")]), result("c", picture)]);
    let texts = sent["messages"][2]["content"][0]["content"].as_array().unwrap();
    assert!(texts.iter().all(|block| block["text"].as_str().is_none_or(|text| !text.trim().is_empty())), "{texts:?}");
}

#[test]
fn half_surrogate_pairs_are_read_and_do_not_go_out() {
    let messages = transcript("half_surrogates");
    for api in [CHAT, ANTHROPIC] {
        let text = body(&model(api, json!({"id": "m1"})), messages.clone()).to_string();
        assert!(text.contains("echo  end") && text.contains("cut "), "{text}");
    }
}

#[test]
fn long_ids_are_mapped_for_call_and_result_alike() {
    let messages = transcript("long_call_ids");
    let stored = messages.clone();
    let sent = body(&model(ANTHROPIC, json!({})), messages.clone());
    let calls = sent["messages"][1]["content"].as_array().unwrap();
    let results = sent["messages"][2]["content"].as_array().unwrap();
    assert_eq!(calls.len(), 2);
    for (call, result) in calls.iter().zip(results) {
        let id = call["id"].as_str().unwrap();
        assert_eq!(result["tool_use_id"], id);
        assert!(id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{id}");
    }
    let chat = body(&model(CHAT, json!({"baseUrl": "https://api.openai.com/v1"})), messages.clone());
    for (call, result) in chat["messages"][1]["tool_calls"].as_array().unwrap().iter().zip([2, 3]) {
        assert_eq!(chat["messages"][result]["tool_call_id"], call["id"]);
        assert!(call["id"].as_str().unwrap().len() <= 40);
    }
    assert_eq!(messages, stored);
}

#[test]
fn ids_that_become_equal_stay_apart() {
    let other = model(CHAT, json!({"id": "other"}));
    let messages = vec![
        Message::user("go"),
        answer(&other, vec![call("a.b", "read"), call("a:b", "read"), call("", "read")]),
        result("a:b", vec![InputBlock::text("second")]),
        result("a.b", vec![InputBlock::text("first")]),
        answer(&other, vec![call("a.b", "read")]),
        result("a.b", vec![InputBlock::text("third")]),
    ];
    let sent = body(&model(ANTHROPIC, json!({})), messages);
    let blocks = |at: usize| sent["messages"][at]["content"].as_array().unwrap().clone();
    let ids: Vec<Value> = [blocks(1), blocks(3)].concat().iter().map(|call| call["id"].clone()).collect();
    let distinct: std::collections::HashSet<_> = ids.iter().map(Value::to_string).collect();
    assert_eq!(distinct.len(), 4, "{ids:?}");
    let answered = |text: &str| {
        let all = [blocks(2), blocks(4)].concat();
        all.into_iter().find(|block| block["content"] == text).unwrap()["tool_use_id"].clone()
    };
    assert_eq!(
        [answered("first"), answered("second"), answered("third")],
        [ids[0].clone(), ids[1].clone(), ids[3].clone()]
    );
}

#[test]
fn pictures_of_results_follow_after_all_results_of_the_turn() {
    let model = model(CHAT, json!({}));
    let picture = vec![InputBlock::text("a"), InputBlock::image("aGk=", "image/png")];
    let messages = vec![
        Message::user("go"),
        answer(&model, vec![call("c1", "read"), call("c2", "read")]),
        result("c1", picture.clone()),
        result("c2", vec![InputBlock::text("b")]),
    ];
    let sent = body(&model, messages.clone());
    assert_eq!(roles(&sent), ["user", "assistant", "tool", "tool", "user"]);
    assert_eq!(sent["messages"][4]["content"][1]["image_url"]["url"], "data:image/png;base64,aGk=");
    let blind = super::model(CHAT, json!({"input": ["text"]}));
    let sent = body(&blind, messages);
    assert_eq!(roles(&sent), ["user", "assistant", "tool", "tool"]);
    assert!(!sent.to_string().contains("aGk="));
}

#[test]
fn adjacent_user_messages_are_merged_only_when_a_server_needs_it() {
    let messages = vec![
        Message::user("one"),
        Message::user("two"),
        Message::user(Content::from(vec![InputBlock::image("aGk=", "image/png")])),
    ];
    assert_eq!(roles(&body(&model(CHAT, json!({})), messages.clone())), ["user", "user", "user"]);
    let strict = model(CHAT, json!({"compat": {"requiresAlternatingRoles": true}}));
    let sent = body(&strict, messages.clone());
    assert_eq!(roles(&sent), ["user"]);
    assert_eq!(sent["messages"][0]["content"][0]["text"], "one\n\ntwo");
    assert_eq!(sent["messages"][0]["content"][1]["type"], "image_url");
    assert_eq!(body(&strict, messages[..2].to_vec())["messages"][0]["content"], "one\n\ntwo");
}

#[test]
fn a_server_may_want_an_assistant_message_between_result_and_user() {
    let model = model(CHAT, json!({"compat": {"requiresAssistantAfterToolResult": true}}));
    let messages = vec![
        Message::user("go"),
        answer(&model, vec![call("c1", "read")]),
        result("c1", vec![InputBlock::text("a")]),
        Message::user("and now?"),
    ];
    assert_eq!(roles(&body(&model, messages)), ["user", "assistant", "tool", "assistant", "user"]);
}

#[test]
fn failed_turns_are_not_sent() {
    for api in [CHAT, ANTHROPIC] {
        let sent = body(&model(api, json!({"id": "m1"})), transcript("aborted_thinking"));
        assert_eq!(roles(&sent), ["user", "user"], "{api}");
    }
}

#[test]
fn reasoning_goes_back_in_the_field_that_it_came_in() {
    for field in ["reasoning_content", "reasoning", "reasoning_text"] {
        let model = model(CHAT, json!({}));
        let thinking = ThinkingContent {
            thinking: "hm".into(),
            thinking_signature: Some(field.into()),
            ..ThinkingContent::default()
        };
        let content = vec![AssistantBlock::Thinking(thinking), call("c1", "read")];
        let sent = body(&model, vec![Message::user("go"), answer(&model, content)]);
        assert_eq!(sent["messages"][1][field], "hm");
    }
    let deepseek = model(CHAT, json!({"provider": "deepseek", "baseUrl": "https://api.deepseek.com"}));
    let sent = body(&deepseek, vec![Message::user("go"), answer(&deepseek, vec![call("c1", "read")])]);
    assert_eq!(sent["messages"][1]["reasoning_content"], "");
}

#[test]
fn reasoning_goes_back_encrypted_and_in_its_place_before_its_call() {
    let reasoning = model(RESPONSES, json!({"id": "m1"}));
    let sent = body(&reasoning, transcript("reasoning_before_call"));
    let kinds: Vec<_> = sent["input"].as_array().unwrap().iter().filter_map(|item| item["type"].as_str()).collect();
    assert_eq!(kinds, ["reasoning", "function_call", "function_call_output"]);
    assert_eq!((&sent["store"], &sent["input"][1]["encrypted_content"]), (&json!(false), &json!("ZW5j")));
    // For another model neither reasoning nor the id that belongs to it.
    let other = body(&model(RESPONSES, json!({"id": "m2"})), transcript("reasoning_before_call"));
    assert!(!other.to_string().contains("ZW5j") && !other.to_string().contains("rs_1"), "{other}");
}

#[test]
fn reasoning_that_nobody_has_stored_is_not_referred_to() {
    for model in [model(RESPONSES, json!({})), model(RESPONSES, json!({"reasoning": false}))] {
        let thinking = ThinkingContent {
            thinking: "hm".into(),
            thinking_signature: Some(json!({"type": "reasoning", "id": "rs_9", "summary": []}).to_string()),
            ..ThinkingContent::default()
        };
        let content = vec![AssistantBlock::Thinking(thinking), call("c1|fc_1", "read")];
        let sent = body(&model, vec![Message::user("go"), answer(&model, content)]);
        assert!(!sent.to_string().contains("rs_9"), "{sent}");
    }
    // What is thought is asked for in a form that can come back.
    let options = pi_ai::StreamOptions {
        api_key: Some("k".into()),
        reasoning: Some(pi_ai::ThinkingLevel::High),
        ..pi_ai::StreamOptions::default()
    };
    let context = Context::from(vec![Message::user("go")]).normalize();
    let model = model(RESPONSES, json!({}));
    let request = pi_ai::api::EncodeRequest {
        model: &model,
        context: &context,
        options: &options,
        concessions: &pi_ai::api::Concessions::default(),
    };
    let sent: Value = serde_json::from_slice(&super::wire(&model).encode(&request).unwrap().body).unwrap();
    assert_eq!(sent["include"], json!(["reasoning.encrypted_content"]));
}

#[test]
fn a_schema_reaches_gemini_in_the_form_that_its_server_takes() {
    let schema: Value = serde_json::from_slice(&data("schemas/beyond_openapi.json")).unwrap();
    let tool = ToolDeclaration::new("t", "d", schema.clone());
    let declared = |compat: Value| {
        let body = encode(&model(GEMINI, json!({"compat": compat})), &with_tool(tool.clone())).body;
        let body: Value = serde_json::from_slice(&body).unwrap();
        body["tools"][0]["functionDeclarations"][0].clone()
    };
    let whole = &declared(json!({}))["parametersJsonSchema"];
    let mut expected = schema.clone();
    expected["properties"]["u"]["items"] = json!({"enum": ["x"]});
    assert_eq!(*whole, expected);
    let subset = declared(json!({"requiresOpenApiSchema": true}))["parameters"].to_string();
    for refused in ["exclusiveMinimum", "multipleOf", "propertyNames", "additionalProperties", "uniqueItems", "const"] {
        assert!(!subset.contains(refused), "{refused}: {subset}");
    }
    assert!(subset.contains(r#""minimum":1"#), "{subset}");
    assert_eq!(tool.parameters, schema);
}

#[test]
fn ids_come_back_as_they_were_after_a_detour_over_another_model() {
    let messages = transcript("long_call_ids");
    let home = match &messages[1] {
        Message::Assistant(message) => {
            let fields = json!({"id": message.model, "provider": message.provider});
            model(&message.api, fields)
        }
        other => panic!("{other:?}"),
    };
    let before = body(&home, messages.clone());
    let _ = body(&model(ANTHROPIC, json!({})), messages.clone());
    assert_eq!(body(&home, messages), before);
}

#[test]
fn a_tool_that_comes_later_is_declared_whatever_the_server_can_be_told_in_the_middle() {
    let switches = ["supportsMidConvoSystemMessages", "supportsToolSearch", "supportsAdditionalTools"];
    for combination in 0..1 << switches.len() {
        let on = switches.iter().enumerate().filter(|(bit, _)| combination >> bit & 1 == 1);
        let compat: serde_json::Map<_, _> = on.map(|(_, name)| ((*name).to_owned(), json!(true))).collect();
        for api in [RESPONSES, CHAT, ANTHROPIC] {
            let model = model(api, json!({ "compat": compat }));
            let tool = |name: &str| ToolDeclaration::new(name, "d", json!({"type": "object"}));
            let with = |name: &str| -> Message {
                pi_ai::SystemMessage { tools_added: vec![tool(name)], ..pi_ai::SystemMessage::default() }.into()
            };
            let messages = vec![with("early"), Message::user("go"), with("later"), Message::user("on")];
            let sent = body(&model, messages).to_string();
            assert!(sent.contains("early") && sent.contains("later"), "{api} {compat:?}: {sent}");
        }
    }
}
