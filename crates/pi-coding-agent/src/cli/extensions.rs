//! Extensions that are programs, as the command line, the user and the project name them.

use std::sync::Arc;

use super::arguments::{Arguments, ExtensionFlag};
use crate::{
    extensions::{
        EventKind, Extension, ExtensionRunner, FlagValues,
        event::{ProjectTrustEvent, Remember, TrustDecision},
        stdio::{FindExtensions, FoundExtensions, StdioExtension, find_extensions},
    },
    host::Host,
    resources::{Discovery, Locations, ProjectTrust, SettingsManager, TrustCheck, TrustStore, TrustUpdate},
    workspace::local::Environment,
};

/// Where extensions are looked for, and what their programs get.
pub(super) struct Place<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) locations: &'a Locations,
    pub(super) environment: Arc<Environment>,
}

impl<'a> Place<'a> {
    pub(super) fn new(arguments: &'a Arguments, host: &Host, locations: &'a Locations) -> Self {
        Self { arguments, locations, environment: Arc::new(host.variables.clone()) }
    }

    fn find(&self, settings: &SettingsManager, trust: ProjectTrust) -> FoundExtensions {
        find_extensions(&FindExtensions {
            locations: self.locations,
            trust,
            entries: &settings.settings().resources,
            named: &self.arguments.extensions,
            discovery: if self.arguments.no_extensions { Discovery::Off } else { Discovery::On },
            environment: self.environment.clone(),
        })
    }

    /// The extensions that a session gets. Nothing is started.
    ///
    /// # Errors
    /// The first one that cannot be used. A session without it would go on ungated where it is a gate.
    pub(super) fn load(
        &self,
        settings: &SettingsManager,
        notices: &mut Vec<String>,
    ) -> Result<Vec<Arc<StdioExtension>>, String> {
        self.check_sources()?;
        let found = self.find(settings, settings.project_trust());
        for problem in &found.diagnostics {
            if problem.is_error() {
                return Err(format!("{problem}\n{}", self.way_out()));
            }
            notices.push(format!("Warning: {problem}"));
        }
        if self.arguments.verbose {
            let listed = found.extensions.iter().map(|extension| extension.manifest());
            notices.extend(listed.map(|manifest| format!("Extension: {}", manifest.file().display())));
        }
        Ok(found.extensions)
    }

    /// What helps when an extension cannot be used.
    fn way_out(&self) -> &'static str {
        match self.arguments.no_extensions {
            true => "Correct the extension, or leave its --extension out.",
            false => "Correct the extension; --no-extensions loads none but those that --extension names.",
        }
    }

    /// Sources that upstream loads, and this program does not.
    fn check_sources(&self) -> Result<(), String> {
        match self.arguments.extensions.iter().find(|text| is_package_source(text)) {
            None => Ok(()),
            Some(source) => Err(format!(
                "--extension {source}: packages and built-in extensions cannot be loaded; name a folder with an \
                 extension.json, or the file itself"
            )),
        }
    }

    /// The flags that extensions bring, where it is known without asking anybody. For the help.
    pub(super) fn flags(&self) -> Vec<(ExtensionFlag, Option<String>)> {
        let store = TrustStore::new(self.locations.agent_dir.trust_file());
        let user = SettingsManager::load(self.locations, ProjectTrust::Untrusted);
        let check = TrustCheck::begin(self.locations, self.arguments.trusted(), &store).and_then(|check| match check {
            TrustCheck::AskExtensions => {
                TrustCheck::from_store(self.locations, &store, user.settings().default_project_trust)
            }
            other => Ok(other),
        });
        let trust = check.map_or(ProjectTrust::Untrusted, TrustCheck::without_user);
        let settings = SettingsManager::load(self.locations, trust);
        let found = self.find(&settings, trust);
        found.extensions.iter().flat_map(|extension| flags_of(extension)).collect()
    }

    /// Asks the extensions of the user, and those that the command line names, whether the project may be trusted. The
    /// project's own have no say.
    pub(super) async fn decide_trust(
        &self,
        user: &SettingsManager,
        store: &TrustStore,
        notices: &mut Vec<String>,
    ) -> Option<ProjectTrust> {
        // What is wrong with them is said when all are loaded.
        let found = self.find(user, ProjectTrust::Untrusted);
        let deciders: Vec<Arc<dyn Extension>> = found
            .extensions
            .into_iter()
            .filter(|extension| extension.manifest().handles(EventKind::ProjectTrust))
            .map(|extension| extension as Arc<dyn Extension>)
            .collect();
        if deciders.is_empty() {
            return None;
        }
        let given: FlagValues =
            self.arguments.unknown.iter().map(|flag| (flag.name.clone(), flag.value.clone())).collect();
        let runner = ExtensionRunner::new(deciders, given);
        runner.load().await;
        let decided = runner.project_trust(ProjectTrustEvent::new(&self.locations.cwd)).await;
        runner.close().await;
        notices.extend(runner.failures().iter().map(|failure| format!("Warning: {failure}")));
        let (trust, remember) = match decided {
            TrustDecision::Undecided => return None,
            TrustDecision::Trust(remember) => (ProjectTrust::Trusted, remember),
            TrustDecision::Distrust(remember) => (ProjectTrust::Untrusted, remember),
        };
        if remember == Remember::Always {
            let update = TrustUpdate { folder: self.locations.cwd.clone(), trust: Some(trust) };
            if let Err(error) = store.update(&[update]) {
                notices.push(format!("Warning: {error}; the decision holds for this run"));
            }
        }
        Some(trust)
    }
}

/// Whether an extension is named as upstream names those that are no paths.
pub(super) fn is_package_source(text: &str) -> bool {
    ["builtin:", "npm:", "git:", "http://", "https://", "ssh://"].iter().any(|prefix| text.starts_with(prefix))
}

/// The flags of an extension, with what they are for.
pub(super) fn flags_of(extension: &StdioExtension) -> Vec<(ExtensionFlag, Option<String>)> {
    let flags = extension.manifest().flags();
    flags
        .map(|(name, kind, description)| {
            (ExtensionFlag { name: name.to_owned(), kind }, description.map(str::to_owned))
        })
        .collect()
}

/// What kept extensions from being loaded, and what else went wrong in them before a session began.
pub(super) fn failures(runner: &ExtensionRunner, notices: &mut Vec<String>) -> Result<(), String> {
    use crate::extensions::FailurePlace;
    for failure in runner.failures() {
        if failure.place == FailurePlace::Loading {
            return Err(failure.to_string());
        }
        notices.push(format!("Warning: {failure}"));
    }
    Ok(())
}
