//! The area `resources`.

use serde_json::{Map, Value, json};

use crate::resources::{
    Sections, Skill, SkillReader, SystemPromptOptions, build_system_message, diff, parse_frontmatter, skills_prompt,
};

/// What this crate makes of `input`, a case of the file `file_stem`; `None` when there is no runner for that file.
pub fn run(file_stem: &str, input: &Value) -> Option<Value> {
    match file_stem {
        "frontmatter" => frontmatter(input),
        "skills_prompt" => skills_section(input),
        "system_prompt" => system_prompt(input),
        "system_prompt_diff" => system_prompt_diff(input),
        _ => None,
    }
}

fn read<T: serde::de::DeserializeOwned>(input: &Value) -> Option<T> {
    T::deserialize(input).ok()
}

fn frontmatter(input: &Value) -> Option<Value> {
    Some(match parse_frontmatter(input["content"].as_str()?) {
        Ok(file) => json!({"frontmatter": file.facts, "body": file.body}),
        Err(_) => json!({"error": true}),
    })
}

fn skills_section(input: &Value) -> Option<Value> {
    let skills: Vec<Skill> = read(&input["skills"])?;
    let section = skills_prompt(&skills, SkillReader::Read);
    let list = section.as_deref().and_then(|section| Some(&section[section.find("<available_skills>")?..]));
    Some(json!({"empty": section.is_none(), "list": list}))
}

fn system_prompt(input: &Value) -> Option<Value> {
    let options: SystemPromptOptions = read(input)?;
    let Ok(message) = build_system_message(&options, Default::default()) else {
        return Some(json!({"error": true}));
    };
    if options.force_system_prompt.is_some() {
        return Some(json!({"content": message.content.text(), "section_names": null, "sections": null}));
    }
    let names: Vec<&String> = message.sections.keys().collect();
    let sections: Map<String, Value> =
        message.sections.iter().map(|(name, text)| (name.clone(), untagged(name, text.as_deref()))).collect();
    Some(json!({"content": message.content.text(), "section_names": names, "sections": sections}))
}

/// Takes a section's tag off its body.
fn untagged(name: &str, text: Option<&str>) -> Value {
    let text = text.unwrap_or_default();
    let inner = text
        .strip_prefix(&format!("<{name}>\n"))
        .and_then(|rest| rest.strip_suffix(&format!("\n</{name}>")))
        .map(|body| json!({"tag": name, "body": body}));
    inner.unwrap_or_else(|| json!({"tag": null, "body": text}))
}

fn system_prompt_diff(input: &Value) -> Option<Value> {
    let (previous, current): (Sections, Sections) = (read(&input["previous"])?, read(&input["current"])?);
    Some(json!(diff(&previous, &current)))
}
