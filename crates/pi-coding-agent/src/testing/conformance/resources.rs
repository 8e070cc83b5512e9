//! The area `resources`.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::resources::{
    Diagnostic, Loaded, PromptTemplate, Sections, Skill, SkillReader, SystemPromptOptions, build_system_message, diff,
    expand_prompt_template, load_skills_from_dir, load_templates_from_dir, parse_arguments, parse_frontmatter,
    skills_prompt, substitute_arguments,
};

/// What this crate makes of `input`, a case of the file `file_stem`; `None` when there is no runner for that file.
pub fn run(file_stem: &str, input: &Value) -> Option<Value> {
    match file_stem {
        "command_args" => Some(json!(parse_arguments(input["text"].as_str()?))),
        "expand_template" => expand_template(input),
        "frontmatter" => frontmatter(input),
        "load_templates" => in_folder(input, load_templates),
        "skills" => in_folder(input, load_skills),
        "substitute_args" => substitute_args(input),
        "skills_prompt" => skills_section(input),
        "system_prompt" => system_prompt(input),
        "system_prompt_diff" => system_prompt_diff(input),
        _ => None,
    }
}

fn read<T: serde::de::DeserializeOwned>(input: &Value) -> Option<T> {
    T::deserialize(input).ok()
}

fn expand_template(input: &Value) -> Option<Value> {
    let templates: Vec<PromptTemplate> = read(&input["templates"])?;
    Some(json!({"text": expand_prompt_template(input["text"].as_str()?, &templates)}))
}

fn substitute_args(input: &Value) -> Option<Value> {
    let arguments: Vec<String> = read(&input["args"])?;
    Some(json!({"text": substitute_arguments(input["content"].as_str()?, &arguments)}))
}

/// Writes the case's files and runs it on their folder.
fn in_folder(input: &Value, run: fn(&Path) -> Value) -> Option<Value> {
    let folder = tempfile::tempdir().ok()?;
    for (name, text) in input["files"].as_object()? {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent()?).ok()?;
        std::fs::write(path, text.as_str()?).ok()?;
    }
    Some(run(folder.path()))
}

fn below(folder: &Path, file: &Path) -> Value {
    file.strip_prefix(folder).unwrap_or(file).to_string_lossy().into()
}

fn diagnostics(folder: &Path, diagnostics: &[Diagnostic]) -> Value {
    let shown = |problem: &Diagnostic| json!({"type": problem.severity, "file": problem.file.as_deref().map(|file| below(folder, file))});
    diagnostics.iter().map(shown).collect()
}

fn load_templates(folder: &Path) -> Value {
    let Loaded { items, diagnostics: problems } = load_templates_from_dir(folder);
    let shown = |template: &PromptTemplate| {
        let mut shown = json!({
            "name": template.name, "description": template.description, "content": template.content,
        });
        if let Some(hint) = &template.argument_hint {
            shown["argumentHint"] = json!(hint);
        }
        shown
    };
    let templates: Vec<Value> = items.iter().map(shown).collect();
    json!({"templates": templates, "diagnostics": diagnostics(folder, &problems)})
}

fn load_skills(folder: &Path) -> Value {
    let Loaded { mut items, diagnostics: problems } = load_skills_from_dir(folder);
    items.sort_by(|a, b| a.file_path.cmp(&b.file_path));
    let shown = |skill: &Skill| {
        json!({
            "name": skill.name,
            "description": skill.description,
            "file": below(folder, &skill.file_path),
            "disableModelInvocation": skill.disable_model_invocation,
        })
    };
    let skills: Vec<Value> = items.iter().map(shown).collect();
    json!({"skills": skills, "diagnostics": diagnostics(folder, &problems)})
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
