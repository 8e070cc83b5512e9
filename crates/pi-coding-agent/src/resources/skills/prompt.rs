//! What the model is told about skills.

use super::Skill;

/// With which tool the model reads a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkillReader {
    /// `read`.
    Read,
    /// `bash`.
    Bash,
    /// A tool that is reached through another one.
    ThroughAnotherTool,
}

/// The prompt's section about skills, or `None` when the model may use none.
pub fn skills_prompt(skills: &[Skill], reader: SkillReader) -> Option<String> {
    let visible: Vec<String> = skills.iter().filter(|skill| !skill.disable_model_invocation).map(entry).collect();
    if visible.is_empty() {
        return None;
    }
    let how = match reader {
        SkillReader::Read => "With the read tool, load",
        SkillReader::Bash => "With bash, load",
        SkillReader::ThroughAnotherTool => "Load",
    };
    Some(format!(
        "A skill is a file with instructions for one kind of task. {how} the file of a skill before you do a task that \
         its description fits. Relative paths inside it start from the folder of that file; pass absolute paths to tools.\n\n\
         <available_skills>\n{}\n</available_skills>",
        visible.join("\n")
    ))
}

fn entry(skill: &Skill) -> String {
    format!(
        "  <skill>\n    <name>{}</name>\n    <description>{}</description>\n    <location>{}</location>\n  </skill>",
        escape(&skill.name),
        escape(&skill.description),
        escape(&skill.file_path.to_string_lossy())
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&apos;")
}
