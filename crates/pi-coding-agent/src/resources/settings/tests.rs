use std::fs;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::resources::AgentDir;

struct Folders {
    _dir: TempDir,
    locations: Locations,
}

fn folders(global: Option<&str>, project: Option<&str>) -> Folders {
    let dir = tempfile::tempdir().unwrap();
    let locations =
        Locations { agent_dir: AgentDir::new(dir.path().join("agent")), home: None, cwd: dir.path().join("work") };
    for (path, text) in
        [(locations.agent_dir.settings_file(), global), (locations.project_dir().join("settings.json"), project)]
    {
        if let Some(text) = text {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
    Folders { _dir: dir, locations }
}

#[test]
fn a_projects_settings_count_only_when_it_is_trusted_but_for_the_session_folder() {
    let folders = folders(
        Some(r#"{"theme": "dark", "httpProxy": "http://user", "skills": ["a"]}"#),
        Some(r#"{"theme": "light", "httpProxy": "http://project", "skills": ["b"], "sessionDir": "s"}"#),
    );
    let manager = SettingsManager::load(&folders.locations, ProjectTrust::Untrusted);
    assert_eq!(manager.settings().theme.as_deref(), Some("dark"));
    assert_eq!(manager.settings().session_dir, None);
    assert_eq!(manager.session_dir().as_deref(), Some("s"));
    manager.set_project_trust(ProjectTrust::Trusted);
    let settings = manager.settings();
    assert_eq!(settings.theme.as_deref(), Some("light"));
    assert_eq!(settings.http_proxy.as_deref(), Some("http://user"));
    assert_eq!(settings.resources.user.skills, ["a"]);
    assert_eq!(settings.resources.project.skills, ["b"]);
}

#[tokio::test]
async fn a_file_with_a_trailing_comma_is_named_with_its_line_and_never_overwritten() {
    let text = "{\n  \"theme\": \"dark\",\n  \"futureKey\": {\"a\": 1},\n}\n";
    let folders = folders(Some(text), None);
    let file = folders.locations.agent_dir.settings_file();
    let manager = SettingsManager::load(&folders.locations, ProjectTrust::Trusted);
    let diagnostics = manager.diagnostics();
    assert_eq!(diagnostics.len(), 1);
    assert_eq!((diagnostics[0].file.as_ref(), diagnostics[0].line), (Some(&file), Some(3)));
    let edit = SettingsEdit::default().set(&["theme"], "light");
    let error = manager.update(SettingsScope::Global, edit).await.unwrap_err();
    assert!(matches!(error, SettingsError::Syntax { line: 3, .. }), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[tokio::test]
async fn a_write_keeps_comments_unknown_keys_and_what_others_wrote_meanwhile() {
    let folders = folders(Some("{\n  // mine\n  \"futureKey\": {\"a\": 1}\n}\n"), None);
    let file = folders.locations.agent_dir.settings_file();
    let manager = SettingsManager::load(&folders.locations, ProjectTrust::Trusted);
    fs::write(&file, "{\n  // mine\n  \"futureKey\": {\"a\": 2},\n  \"theme\": \"other\"\n}\n").unwrap();
    let edit = SettingsEdit::default().set(&["compaction", "enabled"], false);
    manager.update(SettingsScope::Global, edit).await.unwrap();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("// mine") && text.contains("\"a\": 2") && text.contains("other"), "{text}");
    assert!(!manager.settings().compaction.enabled);
    assert_eq!(manager.settings().theme.as_deref(), Some("other"));
    assert_eq!(fs::read_dir(folders.locations.agent_dir.as_path()).unwrap().count(), 1);
}

#[tokio::test]
async fn many_writers_lose_nothing() {
    let folders = folders(None, None);
    let writers = (0..8).map(|number| {
        let manager = SettingsManager::load(&folders.locations, ProjectTrust::Trusted);
        async move {
            let key = format!("p/{number}");
            manager
                .update(SettingsScope::Global, SettingsEdit::default().set(&["modelThinkingLevels", &key], "low"))
                .await
        }
    });
    for result in futures::future::join_all(writers).await {
        result.unwrap();
    }
    let manager = SettingsManager::load(&folders.locations, ProjectTrust::Trusted);
    assert_eq!(manager.settings().model_thinking_levels.len(), 8);
}

#[tokio::test]
async fn an_untrusted_projects_file_is_not_written() {
    let folders = folders(None, Some("{}"));
    let manager = SettingsManager::load(&folders.locations, ProjectTrust::Untrusted);
    let error = manager.update(SettingsScope::Project, SettingsEdit::default().set(&["theme"], "x")).await.unwrap_err();
    assert!(matches!(error, SettingsError::Untrusted { .. }));
    manager.set_project_trust(ProjectTrust::Trusted);
    manager.update(SettingsScope::Project, SettingsEdit::default().set(&["theme"], "x")).await.unwrap();
    assert_eq!(manager.settings().theme.as_deref(), Some("x"));
}

#[test]
fn a_wrong_value_is_reported_where_it_stands() {
    let folders = folders(Some("{\n  \"theme\": 1\n}"), Some("{\n\n\n  \"theme\": 2\n}"));
    let manager = SettingsManager::load(&folders.locations, ProjectTrust::Trusted);
    let diagnostics = manager.diagnostics();
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    assert_eq!(diagnostics[0].line, Some(4));
    assert!(diagnostics[0].file.as_ref().unwrap().starts_with(folders.locations.project_dir()));
}

#[tokio::test]
async fn settings_in_memory_follow_edits_and_overrides() {
    let manager = SettingsManager::in_memory(json!({"theme": "dark", "queueMode": "all"}));
    assert_eq!(manager.settings().steering_mode, QueueMode::All);
    manager.update(SettingsScope::Global, SettingsEdit::default().set(&["theme"], "light")).await.unwrap();
    assert_eq!(manager.settings().theme.as_deref(), Some("light"));
    manager.set_overrides(json!({"theme": "blue"}));
    assert_eq!(manager.settings().theme.as_deref(), Some("blue"));
}

#[test]
fn reload_keeps_the_last_good_values_of_a_file_that_broke() {
    let folders = folders(Some(r#"{"theme": "dark"}"#), None);
    let manager = SettingsManager::load(&folders.locations, ProjectTrust::Trusted);
    fs::write(folders.locations.agent_dir.settings_file(), "{,}").unwrap();
    manager.reload();
    assert_eq!(manager.settings().theme.as_deref(), Some("dark"));
    assert_eq!(manager.diagnostics().len(), 1);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_cannot_be_read_is_named_and_never_overwritten() {
    // A folder in its place is as unreadable for root as for anybody else; bytes that are no text are, too.
    let folders = folders(None, None);
    let file = folders.locations.agent_dir.settings_file();
    fs::create_dir_all(&file).unwrap();
    let edit = || SettingsEdit::default().set(&["theme"], "light");
    let refuses = async || {
        let manager = SettingsManager::load(&folders.locations, ProjectTrust::Trusted);
        let diagnostics = manager.diagnostics();
        assert_eq!(diagnostics.iter().map(|problem| problem.file.as_ref()).collect::<Vec<_>>(), [Some(&file)]);
        manager.update(SettingsScope::Global, edit()).await.unwrap_err().to_string()
    };
    let error = refuses().await;
    assert!(error.contains("settings.json") && file.is_dir(), "{error}");
    fs::remove_dir(&file).unwrap();
    let bytes = b"{\"theme\": \"caf\xe9\"}";
    fs::write(&file, bytes).unwrap();
    let error = refuses().await;
    assert!(error.contains("settings.json"), "{error}");
    assert_eq!(fs::read(&file).unwrap(), bytes);
}
