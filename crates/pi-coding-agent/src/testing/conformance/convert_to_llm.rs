//! The area `convert_to_llm`.

use pi_agent_core::AgentMessage;
use pi_ai::Message;
use serde_json::{Value, json};

use crate::messages::{BashExecution, CodingConverter, CodingMessage, SessionMessage, bash_text};

/// What this crate makes of `input`, a case of the file `file_stem`; `None` when there is no runner for that file.
pub fn run(file_stem: &str, input: &Value) -> Option<Value> {
    match file_stem {
        "coding_agent" => coding_agent(input),
        _ => None,
    }
}

fn coding_agent(input: &Value) -> Option<Value> {
    let messages: Vec<SessionMessage> = serde_json::from_value(input["messages"].clone()).ok()?;
    let converted = CodingConverter.convert_all(&messages);
    let facts: Vec<Value> = messages.iter().filter_map(bash_facts).collect();
    Some(json!({"messages": converted, "bash_facts": facts}))
}

/// What the text of a bash execution shows, when the model sees one at all.
fn bash_facts(message: &SessionMessage) -> Option<Value> {
    let AgentMessage::Custom(custom) = message else { return None };
    let CodingMessage::BashExecution(bash) = &**custom else { return None };
    let converted = CodingConverter.convert_all(std::slice::from_ref(message));
    let [Message::User(user)] = &converted[..] else { return None };
    let text = user.content.text().into_owned();
    let plain = BashExecution {
        command: "ls -la".into(),
        output: "file-a\nfile-b".into(),
        exit_code: Some(0),
        ..BashExecution::default()
    };
    let names = |part: String| text.replace(&bash.output, "").replace(&bash.command, "").contains(&part);
    Some(json!({
        "names_exit_code": bash.exit_code.is_some_and(|code| names(code.to_string())),
        "names_full_output_path": bash.full_output_path.clone().is_some_and(names),
        "output_in_a_code_fence": text.contains(&format!("```\n{}\n```", bash.output)),
        "same_text_as_plain_success": text == bash_text(&plain),
    }))
}
