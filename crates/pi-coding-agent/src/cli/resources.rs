//! What the command line, the user and the project bring along, and whether the project may.

use std::sync::Arc;

use super::{arguments::Arguments, extensions};
use crate::resources::{
    DefaultResourceLoader, Diagnostic, Discovery, Locations, ProjectTrust, ResourceLoader, ResourceLoaderOptions,
    SettingsManager, StartupOutput, TrustCheck, TrustStore,
};

/// Whether the project's own settings and resources are used. Nobody but the user's extensions is asked here: without
/// their answer, a flag, a stored decision or a default of the settings it is no, and a notice says so.
async fn project_trust(place: &extensions::Place<'_>, notices: &mut Vec<String>) -> ProjectTrust {
    let locations = place.locations;
    let store = TrustStore::new(locations.agent_dir.trust_file());
    let mut check = TrustCheck::begin(locations, place.arguments.trusted(), &store);
    if let Ok(TrustCheck::AskExtensions) = check {
        // The user's settings only: what the project says of itself counts for nothing.
        let user = SettingsManager::load(locations, ProjectTrust::Untrusted);
        check = match place.decide_trust(&user, &store, notices).await {
            Some(decided) => Ok(TrustCheck::Decided(decided)),
            None => TrustCheck::from_store(locations, &store, user.settings().default_project_trust),
        };
    }
    match check {
        Ok(check) => {
            if check == TrustCheck::AskUser {
                notices.push(
                    "This project has settings or resources of its own, which are not used because it is not trusted; \
                     --approve uses them."
                        .to_owned(),
                );
            }
            check.without_user()
        }
        Err(error) => {
            notices.push(format!("Warning: {error}; this project is not trusted"));
            ProjectTrust::Untrusted
        }
    }
}

/// Loads what the session takes from files. Its notices are for standard error.
///
/// # Errors
/// The first problem that keeps what was asked for from being used.
pub(super) async fn load(
    arguments: &Arguments,
    locations: Locations,
    settings: &SettingsManager,
    notices: &mut Vec<String>,
) -> Result<Arc<dyn ResourceLoader>, Diagnostic> {
    let discovery = |off: bool| if off { Discovery::Off } else { Discovery::On };
    let loader = DefaultResourceLoader::open(ResourceLoaderOptions {
        skill_paths: arguments.skills.clone(),
        prompt_template_paths: arguments.prompt_templates.clone(),
        theme_paths: arguments.themes.clone(),
        skills: discovery(arguments.no_skills),
        prompt_templates: discovery(arguments.no_prompt_templates),
        themes: discovery(arguments.no_themes),
        context_files: discovery(arguments.no_context_files),
        system_prompt: arguments.system_prompt.clone(),
        append_system_prompt: arguments.append_system_prompt.clone(),
        ..ResourceLoaderOptions::new(locations, settings.clone())
    })
    .await;
    let resources = loader.resources();
    if let Some(error) = resources.diagnostics.iter().find(|problem| problem.is_error()) {
        return Err(error.clone());
    }
    notices.extend(resources.diagnostics.iter().map(|problem| format!("Warning: {problem}")));
    let listed = |what: &str, path: &std::path::Path| format!("{what}: {}", path.display());
    // They reach the model whether or not the project is trusted, so nobody should have to ask which ones do.
    if arguments.verbose || settings.settings().interface.startup == StartupOutput::Full {
        notices.extend(resources.context_files.iter().map(|file| listed("Instructions", &file.path)));
    }
    if arguments.verbose {
        notices.extend(resources.skills.iter().map(|skill| listed("Skill", &skill.file_path)));
        notices
            .extend(resources.prompt_templates.iter().map(|template| listed("Prompt template", &template.file_path)));
    }
    Ok(Arc::new(loader))
}

/// The settings that hold in a folder, the project's among them when it is trusted.
pub(super) async fn settings_for(place: &extensions::Place<'_>, notices: &mut Vec<String>) -> Arc<SettingsManager> {
    let trust = project_trust(place, notices).await;
    let settings = SettingsManager::load(place.locations, trust);
    notices.extend(settings.diagnostics().iter().map(|problem| format!("Warning: {problem}")));
    Arc::new(settings)
}
