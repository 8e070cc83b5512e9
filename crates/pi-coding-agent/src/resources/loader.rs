//! Everything that a session takes from files, loaded together and loaded again on demand.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;

pub use super::sources::Discovery;
use super::{
    ContextFile, Diagnostic, Loaded, Locations, PromptTemplate, PromptText, ResourceKind, SettingsManager, Skill,
    SystemFile, SystemPromptOptions, Theme, load_context_files, prompt_templates::load_template, skills::load_skill,
    sources::Search, system_files, themes,
};

/// What a session takes from files.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Resources {
    /// The skills, each name once.
    pub skills: Vec<Skill>,
    /// The prompt templates, each name once.
    pub prompt_templates: Vec<PromptTemplate>,
    /// The themes besides the built-in ones, each name once.
    pub themes: Vec<Theme>,
    /// Instructions that lie beside the code.
    pub context_files: Vec<ContextFile>,
    /// What takes the place of the default prompt.
    pub system_prompt: Option<PromptText>,
    /// What is added to the prompt.
    pub append_system_prompt: Vec<PromptText>,
    /// What is wrong with any of it.
    pub diagnostics: Vec<Diagnostic>,
}

impl Resources {
    /// Puts what belongs into the system prompt there. What else the prompt is made of stays.
    pub fn add_to(&self, prompt: &mut SystemPromptOptions) {
        prompt.custom_prompt = self.system_prompt.as_ref().map(|own| own.text.clone());
        prompt.append_system_prompt = self.addendum();
        prompt.context_files = self.context_files.clone();
        prompt.skills = self.skills.clone();
    }

    /// The added texts as one, blank lines between them.
    pub fn addendum(&self) -> String {
        self.append_system_prompt.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n\n")
    }
}

/// Paths that extensions found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscoveredPaths {
    /// Skills: files or folders.
    pub skills: Vec<PathBuf>,
    /// Prompt templates: files or folders.
    pub prompts: Vec<PathBuf>,
    /// Themes: files or folders.
    pub themes: Vec<PathBuf>,
}

/// Where a session gets its resources from. [`DefaultResourceLoader`] reads files; a host may have its own.
#[async_trait]
pub trait ResourceLoader: Send + Sync + 'static {
    /// What was loaded last.
    fn resources(&self) -> Arc<Resources>;

    /// Loads everything again. What extensions found before is forgotten.
    async fn reload(&self);

    /// Adds what extensions found.
    async fn extend(&self, paths: DiscoveredPaths);
}

#[async_trait]
impl<T: ResourceLoader + ?Sized> ResourceLoader for Arc<T> {
    fn resources(&self) -> Arc<Resources> {
        (**self).resources()
    }

    async fn reload(&self) {
        (**self).reload().await;
    }

    async fn extend(&self, paths: DiscoveredPaths) {
        (**self).extend(paths).await;
    }
}

/// What a [`DefaultResourceLoader`] loads. Paths are as a user writes them, relative to the working folder.
#[derive(Clone, Debug)]
pub struct ResourceLoaderOptions {
    /// The folders.
    pub locations: Locations,
    /// The settings; they also say whether the project is trusted.
    pub settings: SettingsManager,
    /// Skills besides those that are found.
    pub skill_paths: Vec<String>,
    /// Prompt templates besides those that are found.
    pub prompt_template_paths: Vec<String>,
    /// Themes besides those that are found.
    pub theme_paths: Vec<String>,
    /// Whether skills are looked for.
    pub skills: Discovery,
    /// Whether prompt templates are looked for.
    pub prompt_templates: Discovery,
    /// Whether themes are looked for.
    pub themes: Discovery,
    /// Whether instructions beside the code are looked for.
    pub context_files: Discovery,
    /// A text or a file in the place of the default prompt, before any `SYSTEM.md`.
    pub system_prompt: Option<String>,
    /// Texts or files that are added, instead of any `APPEND_SYSTEM.md`.
    pub append_system_prompt: Vec<String>,
}

impl ResourceLoaderOptions {
    /// The usual: everything is looked for, nothing is added.
    pub fn new(locations: Locations, settings: SettingsManager) -> Self {
        Self {
            locations,
            settings,
            skill_paths: Vec::new(),
            prompt_template_paths: Vec::new(),
            theme_paths: Vec::new(),
            skills: Discovery::On,
            prompt_templates: Discovery::On,
            themes: Discovery::On,
            context_files: Discovery::On,
            system_prompt: None,
            append_system_prompt: Vec::new(),
        }
    }
}

/// Loads resources from files. It has none before the first [`reload`](ResourceLoader::reload).
#[derive(Debug)]
pub struct DefaultResourceLoader {
    options: Arc<ResourceLoaderOptions>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    resources: Arc<Resources>,
    discovered: DiscoveredPaths,
}

impl DefaultResourceLoader {
    /// A loader that has not loaded anything yet.
    pub fn new(options: ResourceLoaderOptions) -> Self {
        Self { options: Arc::new(options), state: Mutex::default() }
    }

    /// A loader that has loaded what there is, with the settings as they are.
    pub async fn open(options: ResourceLoaderOptions) -> Self {
        let loader = Self::new(options);
        loader.load(DiscoveredPaths::default()).await;
        loader
    }

    async fn load(&self, discovered: DiscoveredPaths) {
        let options = Arc::clone(&self.options);
        let paths = discovered.clone();
        let loading = tokio::task::spawn_blocking(move || load(&options, &paths));
        let resources = loading.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { resources: Arc::new(resources), discovered };
    }
}

#[async_trait]
impl ResourceLoader for DefaultResourceLoader {
    fn resources(&self) -> Arc<Resources> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).resources.clone()
    }

    async fn reload(&self) {
        let settings = self.options.settings.clone();
        let reading = tokio::task::spawn_blocking(move || settings.reload());
        reading.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
        self.load(DiscoveredPaths::default()).await;
    }

    async fn extend(&self, paths: DiscoveredPaths) {
        let mut all = self.state.lock().unwrap_or_else(PoisonError::into_inner).discovered.clone();
        all.skills.extend(paths.skills);
        all.prompts.extend(paths.prompts);
        all.themes.extend(paths.themes);
        self.load(all).await;
    }
}

fn load(options: &ResourceLoaderOptions, discovered: &DiscoveredPaths) -> Resources {
    let settings = options.settings.settings();
    let search = |kind, discovery, named, discovered| Search {
        kind,
        locations: &options.locations,
        trust: options.settings.project_trust(),
        entries: &settings.resources,
        discovery,
        named,
        discovered,
    };
    let mut resources = Resources::default();
    let into = &mut resources.diagnostics;
    let skills = search(ResourceKind::Skill, options.skills, &options.skill_paths, &discovered.skills);
    let skills = gather(&skills, load_skill, into);
    let prompts =
        search(ResourceKind::Prompt, options.prompt_templates, &options.prompt_template_paths, &discovered.prompts);
    let prompt_templates = gather(&prompts, load_template, into);
    let themes = search(ResourceKind::Theme, options.themes, &options.theme_paths, &discovered.themes);
    let themes = gather(&themes, themes::load_theme, into);
    resources.skills = skills;
    resources.prompt_templates = prompt_templates;
    resources.themes = themes;
    if options.context_files == Discovery::On {
        let found = load_context_files(&options.locations, options.settings.project_trust());
        resources.context_files = found.files;
        resources.diagnostics.extend(found.diagnostics);
    }
    load_prompts(options, &mut resources);
    resources
}

/// A resource that has a name and a file.
trait Named {
    fn name(&self) -> &str;
    fn file(&self) -> &Path;
}

impl Named for Skill {
    fn name(&self) -> &str {
        &self.name
    }

    fn file(&self) -> &Path {
        &self.file_path
    }
}

impl Named for PromptTemplate {
    fn name(&self) -> &str {
        &self.name
    }

    fn file(&self) -> &Path {
        &self.file_path
    }
}

impl Named for Theme {
    fn name(&self) -> &str {
        &self.name
    }

    fn file(&self) -> &Path {
        self.source.as_deref().unwrap_or(Path::new(""))
    }
}

/// Loads files; of several with one name the first one counts.
fn gather<T: Named>(search: &Search<'_>, load: fn(&Path) -> Loaded<T>, diagnostics: &mut Vec<Diagnostic>) -> Vec<T> {
    let files = search.files();
    diagnostics.extend(files.diagnostics);
    let mut loaded: Vec<T> = Vec::new();
    let mut taken: HashMap<String, usize> = HashMap::new();
    for file in &files.items {
        let one = load(file);
        diagnostics.extend(one.diagnostics);
        for item in one.items {
            match taken.get(item.name()) {
                Some(index) => {
                    let winner = loaded[*index].file();
                    diagnostics.push(Diagnostic::collision(search.kind, item.name(), winner, item.file()));
                }
                None => {
                    taken.insert(item.name().to_owned(), loaded.len());
                    loaded.push(item);
                }
            }
        }
    }
    loaded
}

fn load_prompts(options: &ResourceLoaderOptions, resources: &mut Resources) {
    let trust = options.settings.project_trust();
    let discovered =
        |file| system_files::discover(file, &options.locations, trust).map(|path| system_files::read(&path));
    let input = |text: &String| system_files::prompt_input(text, &options.locations);
    let prompt = match options.system_prompt.as_ref().filter(|text| !text.is_empty()) {
        Some(text) => Some(input(text)),
        None => discovered(SystemFile::Prompt),
    };
    let additions: Vec<_> = match options.append_system_prompt.as_slice() {
        [] => discovered(SystemFile::Addition).into_iter().collect(),
        given => given.iter().filter(|text| !text.is_empty()).map(input).collect(),
    };
    match prompt {
        Some(Ok(prompt)) => resources.system_prompt = Some(prompt),
        Some(Err(problem)) => resources.diagnostics.push(problem.into()),
        None => {}
    }
    for addition in additions {
        match addition {
            Ok(text) => resources.append_system_prompt.push(text),
            Err(problem) => resources.diagnostics.push(problem.into()),
        }
    }
}

#[cfg(test)]
mod tests;
