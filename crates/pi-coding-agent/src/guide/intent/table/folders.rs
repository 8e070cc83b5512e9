//! Questions about a folder or a project as a whole.

use super::{Captures, Rule, words::*};
use crate::guide::intent::*;
use crate::guide::utterance::*;

pub(super) const RULES: &[Rule] = &[
    Rule {
        patterns: &[
            "what is this|the|that|your|our|my? project|repo|repository|codebase|code|program|app|application|tool|package|thing|software for|about|all|doing|here|supposed? *",
            "what is this",
            "what does this|the|our|my? whole? project|repo|repository|codebase|code|program|app|application|tool|software|it do|contain|offer *",
            "what is this|the|it about|for",
            "explain|describe|summarize|summarise|introduce|document|overview|analyze|analyse|review|understand me? this|the|our|my|to|through? whole|entire? project|repo|repository|codebase|code|program|app|application|workspace|structure|architecture|layout *",
            "* overview|structure|architecture|layout|organization|organisation of|in this|the|our|my? project|repo|repository|codebase|code|program|app|application|workspace *",
            "give|show me? an|a? short|brief|quick|high|high-level? level? overview|summary|introduction|tour *",
            "walk|guide|show|take me|us through|around this|the|our? project|repo|repository|codebase|code *",
            "how is this|the|our? project|repo|repository|codebase|code|program organized|organised|structured|laid|built *",
            "overview|summary *",
            "tell me about this|the|our? project|repo|repository|codebase|code *",
        ],
        make: |_, said| Some(Intent::Project { folder: first_path(said) }),
    },
    Rule {
        patterns: &[
            "what is|are in|inside|under the? {folder:1} folder|directory|dir",
            "what is|are in|inside|under the? folder|directory|dir? {folder:1}",
            "list|show|ls the? {folder:1} folder|directory|dir",
            "what does the? {folder:1} folder|directory|dir contain|hold|have",
        ],
        make: named_folder,
    },
    Rule {
        patterns: &[
            "what is|are|do|does|can * in|inside|under|at|here this|the|that|my|our|current? working|current? folder|directory|dir|here *",
            "what|which * files|folders|directories|things|stuff|items *",
            "list|show|ls|dir|display|print|give|tree me? all|the? files|folders|directories|contents|content|entries|everything|directory|folder|tree *",
            "list|ls|tree|dir the? files? in|of|under? {folder:p}",
            "what is in|inside|under|at the? folder|directory|dir? {folder:p} *",
            "what does the? folder|directory|dir? {folder:p} contain|hold|have *",
            "what is|do we have? here|there",
            "what do we|you|i have|see|find here|there *",
            "look|have a? look around|here|there|into? *",
            "ls|dir|tree",
            "ls -la|-l|-a|-al *",
            "show me around|everything *",
        ],
        make: overview,
    },
];

/// A folder whose name says only in its place that it is one.
fn named_folder(kept: &Captures, said: &Utterance) -> Option<Intent> {
    const VAGUE: [&str; 17] = [
        "this",
        "that",
        "the",
        "here",
        "there",
        "it",
        "them",
        "my",
        "our",
        "current",
        "working",
        "same",
        "root",
        "top",
        "folder",
        "directory",
        "whole",
    ];
    const WHOLE: [&str; 6] = ["project", "repo", "repository", "codebase", "workspace", "code"];
    let folder = bare(kept.text(said, "folder")?);
    let lower = folder.to_lowercase();
    let names_one = !VAGUE.contains(&lower.as_str()) && !WHOLE.contains(&lower.as_str()) && !has_extension(folder);
    names_one.then(|| Intent::Overview { folder: Some(folder.to_owned()) })
}

fn overview(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let folder = kept.text(said, "folder").map(str::to_owned).or_else(|| first_path(said));
    // A file's content, not a folder's.
    if let Some(file) = folder.as_deref().filter(|path| has_extension(path)) {
        return Some(Intent::Explain { subject: Subject::Named(file.to_owned()) });
    }
    if said.has(&["changed", "import", "contain", "mention", "use", "uses", "fail", "failed", "tests"]) {
        return None;
    }
    Some(Intent::Overview { folder })
}
