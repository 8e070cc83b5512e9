use std::fs;

use serde_json::json;

use super::*;
use crate::resources::{AgentDir, ProjectTrust};

struct Folders {
    dir: tempfile::TempDir,
    locations: Locations,
}

impl Folders {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let locations = Locations {
            agent_dir: AgentDir::new(root.join("home/.pi/agent")),
            home: Some(root.join("home")),
            cwd: root.join("work/repo/sub"),
        };
        let folders = Self { locations, dir };
        fs::create_dir_all(&folders.locations.cwd).unwrap();
        for (name, text) in files {
            folders.write(name, text);
        }
        folders
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn options(&self, trust: ProjectTrust) -> ResourceLoaderOptions {
        ResourceLoaderOptions::new(self.locations.clone(), SettingsManager::load(&self.locations, trust))
    }

    async fn load(&self, options: ResourceLoaderOptions) -> Arc<Resources> {
        let loader = DefaultResourceLoader::new(options);
        assert_eq!(*loader.resources(), Resources::default());
        loader.reload().await;
        loader.resources()
    }
}

fn skill(description: &str) -> String {
    format!("---\ndescription: {description}\n---\nDo it.\n")
}

fn names(resources: &Resources) -> Vec<&str> {
    resources.skills.iter().map(|skill| skill.name.as_str()).collect()
}

#[tokio::test]
async fn a_projects_resources_load_only_when_it_is_trusted() {
    let folders = Folders::new(&[
        ("home/.pi/agent/skills/mine/SKILL.md", &skill("user")),
        ("home/.agents/skills/shared/SKILL.md", &skill("user's shared")),
        ("work/repo/sub/.pi/skills/theirs/SKILL.md", &skill("project")),
        ("work/repo/.agents/skills/above/SKILL.md", &skill("project's shared")),
        ("work/repo/.git/HEAD", ""),
        ("work/.agents/skills/outside/SKILL.md", &skill("not of this repository")),
        ("work/repo/sub/.pi/prompts/theirs.md", "text"),
        ("home/.pi/agent/prompts/mine.md", "text"),
        ("work/repo/sub/.pi/SYSTEM.md", "project prompt"),
        ("home/.pi/agent/SYSTEM.md", "user prompt"),
        ("work/repo/sub/AGENTS.md", "rules"),
    ]);
    let untrusted = folders.load(folders.options(ProjectTrust::Untrusted)).await;
    assert_eq!(names(&untrusted), ["mine", "shared"]);
    assert_eq!(untrusted.prompt_templates.len(), 1);
    assert_eq!(untrusted.system_prompt.as_ref().unwrap().text, "user prompt");
    assert!(untrusted.context_files.iter().any(|file| file.content == "rules"), "instructions load regardless");
    let trusted = folders.load(folders.options(ProjectTrust::Trusted)).await;
    assert_eq!(names(&trusted), ["theirs", "above", "mine", "shared"]);
    assert_eq!(trusted.system_prompt.as_ref().unwrap().text, "project prompt");
}

#[tokio::test]
async fn of_two_with_one_name_the_first_counts_and_the_other_is_reported() {
    let folders = Folders::new(&[
        ("home/.pi/agent/skills/twin/SKILL.md", &skill("user")),
        ("work/repo/sub/.pi/skills/twin/SKILL.md", &skill("project")),
        ("work/repo/sub/given/twin/SKILL.md", &skill("command line")),
    ]);
    let options = folders.options(ProjectTrust::Trusted);
    let resources = folders.load(options.clone()).await;
    assert_eq!(resources.skills[0].description, "project");
    let collision = resources.diagnostics.iter().find_map(|problem| problem.collision.as_ref()).unwrap();
    assert!(collision.loser_path.starts_with(folders.locations.agent_dir.as_path()));
    let resources = folders.load(ResourceLoaderOptions { skill_paths: vec!["given".into()], ..options }).await;
    assert_eq!(resources.skills[0].description, "command line");
    assert_eq!(resources.diagnostics.len(), 2);
}

#[tokio::test]
async fn settings_add_and_leave_out() {
    let folders = Folders::new(&[
        (
            "home/.pi/agent/settings.json",
            r#"{"skills": ["~/more", "!no-*", "+skills/no-but-yes", "-skills/never/SKILL.md", "missing"], "prompts": ["packs/*/p*.md"]}"#,
        ),
        ("home/.pi/agent/skills/yes/SKILL.md", &skill("d")),
        ("home/.pi/agent/skills/no-way/SKILL.md", &skill("d")),
        ("home/.pi/agent/skills/no-but-yes/SKILL.md", &skill("d")),
        ("home/.pi/agent/skills/never/SKILL.md", &skill("d")),
        ("home/more/extra/SKILL.md", &skill("d")),
        ("home/more/no-more/SKILL.md", &skill("d")),
        ("home/.pi/agent/packs/a/pick.md", "x"),
        ("home/.pi/agent/packs/a/other.md", "x"),
    ]);
    let resources = folders.load(folders.options(ProjectTrust::Untrusted)).await;
    assert_eq!(names(&resources), ["extra", "no-but-yes", "yes"]);
    assert_eq!(resources.prompt_templates.iter().map(|prompt| prompt.name.as_str()).collect::<Vec<_>>(), ["pick"]);
    assert!(resources.diagnostics.iter().any(|problem| problem.message.contains("not there") && !problem.is_error()));
}

#[tokio::test]
async fn what_the_command_line_names_must_be_there_and_loads_even_when_nothing_is_looked_for() {
    let folders = Folders::new(&[
        ("home/.pi/agent/skills/mine/SKILL.md", &skill("d")),
        ("work/repo/sub/one.md", &skill("given")),
        ("work/repo/sub/prompt.txt", "From a file."),
    ]);
    let options = ResourceLoaderOptions {
        skills: Discovery::Off,
        context_files: Discovery::Off,
        skill_paths: vec!["one.md".into(), "nowhere".into()],
        system_prompt: Some("prompt.txt".into()),
        append_system_prompt: vec!["First.".into(), "Second.".into()],
        ..folders.options(ProjectTrust::Untrusted)
    };
    let resources = folders.load(options).await;
    assert_eq!(resources.skills.len(), 1);
    assert!(resources.diagnostics.iter().any(Diagnostic::is_error));
    assert_eq!(resources.system_prompt.as_ref().unwrap().text, "From a file.");
    assert_eq!(resources.addendum(), "First.\n\nSecond.");
    assert_eq!(resources.context_files, []);
}

#[tokio::test]
async fn a_reload_sees_what_changed_and_forgets_what_extensions_found() {
    let folders = Folders::new(&[("ext/found/SKILL.md", &skill("by an extension"))]);
    let loader = DefaultResourceLoader::new(folders.options(ProjectTrust::Untrusted));
    loader.reload().await;
    loader.extend(DiscoveredPaths { skills: vec![folders.dir.path().join("ext")], ..Default::default() }).await;
    assert_eq!(names(&loader.resources()), ["found"]);
    folders.write("home/.pi/agent/skills/new/SKILL.md", &skill("d"));
    folders.write("home/.pi/agent/settings.json", &json!({"theme": "dark"}).to_string());
    loader.reload().await;
    assert_eq!(names(&loader.resources()), ["new"]);
    assert_eq!(loader.options.settings.settings().theme.as_deref(), Some("dark"));
}
