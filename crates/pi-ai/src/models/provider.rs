//! A provider as the registry holds it.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::{
    config::{self, ConfigError, ModelsFile, Problem, ProviderEntry},
    template::ValueTemplate,
};
use crate::{
    catalog::{Ambient, CatalogModel, CatalogProvider, KeyKind, KeyPlacement},
    id::{ApiId, ModelId, ProviderId},
    model::Model,
};

/// Who serves models: where, with which key, which headers. Built-in providers, those of a `models.json` and those of
/// an application are all of this type.
///
/// ```
/// use pi_ai::{Model, models::{Models, Provider}};
/// let provider = Provider::new("local", "http://127.0.0.1:8080/v1")
///     .api("openai-completions")
///     .api_key("$LOCAL_KEY")
///     .model(Model { id: "llama".into(), ..Model::default() });
/// let models = Models::builder().provider(provider).build();
/// assert_eq!(models.find("local", "llama").expect("it was just added").base_url, "http://127.0.0.1:8080/v1");
/// ```
#[derive(Clone, Debug)]
pub struct Provider {
    id: ProviderId,
    name: String,
    base_url: String,
    api: ApiId,
    catalog: Option<&'static CatalogProvider>,
    changes: CatalogChanges,
    /// Models that the catalog does not have, or that replace its own.
    declared: Vec<Arc<Model>>,
    pub(super) headers: Vec<(String, ValueTemplate)>,
    pub(super) model_headers: HashMap<ModelId, Vec<(String, ValueTemplate)>>,
    pub(super) auth: ProviderAuth,
}

/// What a configuration changes about a catalog's models.
#[derive(Clone, Debug, Default)]
struct CatalogChanges {
    base_url: Option<String>,
    compat: Option<Map<String, Value>>,
    overrides: IndexMap<ModelId, Map<String, Value>>,
}

/// Where a provider's key comes from and where it goes.
#[derive(Clone, Debug, Default)]
pub(super) struct ProviderAuth {
    /// The configured key.
    pub(super) key: Option<ValueTemplate>,
    /// Variables that may hold one.
    pub(super) variables: Vec<(Cow<'static, str>, KeyKind)>,
    pub(super) required: &'static [&'static str],
    pub(super) ambient: Ambient,
    pub(super) placement: KeyPlacement,
    pub(super) need: KeyNeed,
    pub(super) also_bearer: bool,
}

/// Whether requests need a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum KeyNeed {
    /// They do, but for servers on this machine or network when no key is configured.
    #[default]
    UnlessLocal,
    /// They do.
    Always,
    /// They do not.
    Never,
}

/// A model's names, as far as they are known without decoding it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelHead<'a> {
    /// Who serves it.
    pub provider: &'a str,
    /// Its id there.
    pub id: &'a str,
    /// Its name for people.
    pub name: &'a str,
}

impl Provider {
    /// A provider of one's own, without models yet.
    pub fn new(id: impl Into<ProviderId>, base_url: impl Into<String>) -> Self {
        let id = id.into();
        Self {
            name: id.to_string(),
            id,
            base_url: base_url.into(),
            api: ApiId::default(),
            catalog: None,
            changes: CatalogChanges::default(),
            declared: Vec::new(),
            headers: Vec::new(),
            model_headers: HashMap::new(),
            auth: ProviderAuth::default(),
        }
    }

    pub(super) fn built_in(catalog: &'static CatalogProvider) -> Self {
        let variables = catalog.keys.iter().map(|key| (Cow::Borrowed(key.name), key.holds));
        Self {
            name: catalog.name.into(),
            catalog: Some(catalog),
            auth: ProviderAuth {
                variables: variables.collect(),
                required: catalog.required,
                ambient: catalog.ambient,
                placement: catalog.placement,
                need: KeyNeed::Always,
                ..ProviderAuth::default()
            },
            ..Self::new(catalog.id, catalog.base_url)
        }
    }

    /// Its name for people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The wire of its models that name none.
    #[must_use]
    pub fn api(mut self, api: impl Into<ApiId>) -> Self {
        self.api = api.into();
        self
    }

    /// The key: text, `$VARIABLE` or `!command`, see [`ValueTemplate`].
    #[must_use]
    pub fn api_key(mut self, key: &str) -> Self {
        self.auth.key = Some(ValueTemplate::parse(key));
        self
    }

    /// A variable that may hold the key. The first that is set wins.
    #[must_use]
    pub fn key_variable(mut self, name: impl Into<String>) -> Self {
        self.auth.variables.push((Cow::Owned(name.into()), KeyKind::Key));
        self
    }

    /// Requests need no key. (Servers on this machine or network need none anyway, unless one is configured.)
    #[must_use]
    pub fn without_key(mut self) -> Self {
        self.auth.need = KeyNeed::Never;
        self
    }

    /// A header of every request; the value is read as a key's is.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: &str) -> Self {
        self.headers.push((name.into(), ValueTemplate::parse(value)));
        self
    }

    /// Adds a model. What it leaves open (provider, wire, base URL, name) is the provider's.
    #[must_use]
    pub fn model(mut self, mut model: Model) -> Self {
        model.provider = self.id.clone();
        if model.api.is_empty() {
            model.api = self.api.clone();
        }
        if model.base_url.is_empty() {
            model.base_url.clone_from(&self.base_url);
        }
        if model.name.is_empty() {
            model.name = model.id.to_string();
        }
        self.declare(model);
        self
    }

    /// Its id.
    pub fn id(&self) -> &ProviderId {
        &self.id
    }

    /// Its name for people.
    pub fn display_name(&self) -> &str {
        &self.name
    }

    /// Where its models are served, unless they say otherwise; empty when that depends on the account or the model.
    pub fn base_url(&self) -> &str {
        self.changes.base_url.as_deref().unwrap_or(&self.base_url)
    }

    /// The model to take when none is asked for, where the provider has one.
    pub fn default_model(&self) -> Option<&'static str> {
        Some(self.catalog?.default_model)
    }

    /// The variables that may hold its key, those that win first.
    pub fn key_variables(&self) -> impl Iterator<Item = &str> {
        self.auth.variables.iter().map(|(name, _)| &**name)
    }

    /// The names of its models, in order.
    pub fn heads(&self) -> impl Iterator<Item = ModelHead<'_>> {
        let head = |id, name| ModelHead { provider: &self.id, id, name };
        let listed = self.catalog_entries().map(move |entry| match self.declared(entry.id) {
            Some(model) => head(&*model.id, &*model.name),
            None => head(entry.id, self.changed_name(entry)),
        });
        listed.chain(self.own().map(move |model| head(&*model.id, &*model.name)))
    }

    /// Its models, in order.
    pub fn models(&self) -> impl Iterator<Item = Arc<Model>> {
        let listed = self.catalog_entries().map(|entry| match self.declared(entry.id) {
            Some(model) => model.clone(),
            None => self.changed(entry),
        });
        listed.chain(self.own().cloned())
    }

    /// Its model of this id.
    pub fn find(&self, id: &str) -> Option<Arc<Model>> {
        let declared = self.declared(id).cloned();
        declared.or_else(|| Some(self.changed(self.catalog_entries().find(|entry| entry.id == id)?)))
    }

    fn catalog_entries(&self) -> impl Iterator<Item = &'static CatalogModel> {
        self.catalog.into_iter().flat_map(CatalogProvider::models)
    }

    fn declared(&self, id: &str) -> Option<&Arc<Model>> {
        self.declared.iter().find(|model| &*model.id == id)
    }

    /// The declared models that replace none of the catalog's.
    fn own(&self) -> impl Iterator<Item = &Arc<Model>> {
        self.declared.iter().filter(|model| !self.catalog_entries().any(|entry| entry.id == &*model.id))
    }

    fn changed_name<'a>(&'a self, entry: &'a CatalogModel) -> &'a str {
        let change = self.changes.overrides.get(entry.id);
        change.and_then(|change| change.get("name")?.as_str()).unwrap_or(entry.name)
    }

    fn changed(&self, entry: &'static CatalogModel) -> Arc<Model> {
        let Some(catalog) = self.catalog else { return Arc::default() };
        let mut model = catalog.decode(entry);
        let changes = &self.changes;
        if changes.base_url.is_some() || changes.compat.is_some() {
            let changed = Arc::make_mut(&mut model);
            if let Some(base_url) = &changes.base_url {
                changed.base_url.clone_from(base_url);
            }
            config::merge_compat(&mut changed.compat, changes.compat.as_ref());
        }
        match changes.overrides.get(entry.id) {
            Some(change) => self.overridden(model, change),
            None => model,
        }
    }

    fn overridden(&self, model: Arc<Model>, change: &Map<String, Value>) -> Arc<Model> {
        match config::apply_override(&model, change) {
            Ok(changed) => Arc::new(changed),
            Err(error) => {
                tracing::warn!(provider = %self.id, model = %model.id, %error, "a model override does not fit and is left out");
                model
            }
        }
    }

    fn declare(&mut self, model: Model) {
        match self.declared.iter_mut().find(|known| known.id == model.id) {
            Some(known) => *known = Arc::new(model),
            None => self.declared.push(Arc::new(model)),
        }
    }

    /// Applies what a `models.json` says of it (or makes it from that).
    ///
    /// # Errors
    /// When the entry lacks something; the provider is then to be used as it was.
    pub(super) fn configured(
        base: Option<&Self>,
        id: &str,
        entry: &ProviderEntry,
        file: &ModelsFile,
    ) -> Result<Self, ConfigError> {
        let incomplete = |at: String, expected: &str, found: &str| ConfigError::Incomplete {
            path: file.path.clone(),
            problem: Problem { line: entry.line, at, expected: expected.into(), found: found.into() },
        };
        let at = format!("providers.{id}");
        if !entry.has_effect() {
            let expected = "at least one of baseUrl, headers, compat, modelOverrides, models";
            return Err(incomplete(at, expected, "none of them"));
        }
        let base_url = entry.text("baseUrl").map(str::to_owned);
        if base_url.is_none() && (base.is_none() || entry.text("oauth").is_some()) {
            return Err(incomplete(at, "a baseUrl", "nothing"));
        }
        let mut provider = match base {
            Some(base) => base.clone(),
            None => Self::new(id, base_url.clone().unwrap_or_default()),
        };
        if let Some(name) = entry.text("name") {
            provider.name = name.to_owned();
        }
        if let Some(api) = entry.text("api") {
            provider.api = api.into();
        }
        if let Some(key) = entry.text("apiKey") {
            provider.auth.key = Some(ValueTemplate::parse(key));
        }
        provider.auth.also_bearer |= entry.sends_bearer();
        provider.headers.extend(templates(entry.texts("headers")));
        if base_url.is_some() {
            provider.changes.base_url = base_url;
        }
        config::merge_compat(&mut provider.changes.compat, entry.object("compat"));
        for (index, definition) in entry.models().enumerate() {
            let at = format!("{at}.models[{index}]");
            let model = provider.read_definition(definition, entry).map_err(|problem| match problem {
                Missing::Api => incomplete(at.clone(), "an api, here or at the provider", "none"),
                Missing::BaseUrl => incomplete(at.clone(), "a baseUrl, here or at the provider", "none"),
                Missing::Fit(error) => incomplete(at.clone(), "a model", &error.to_string()),
            })?;
            provider.add_model_headers(&model.id, definition);
            provider.declare(model);
        }
        for (id, change) in entry.overrides() {
            provider.add_model_headers(&id.into(), change);
            if let Some(known) = provider.declared(id).cloned() {
                let changed = provider.overridden(known, change);
                provider.declare(Arc::unwrap_or_clone(changed));
            } else {
                provider.changes.overrides.insert(id.into(), change.clone());
            }
        }
        Ok(provider)
    }

    /// A model as a `models.json` defines it. What it leaves open comes from the provider's entry, then from the
    /// catalog's model of that id, or of that wire, or else a typical one.
    fn read_definition(&self, definition: &Map<String, Value>, entry: &ProviderEntry) -> Result<Model, Missing> {
        let mut model = config::read_model(definition).map_err(Missing::Fit)?;
        let typical = || {
            let wanted = definition.get("api").and_then(Value::as_str).or(entry.text("api"));
            let of_api = |api: &str| self.models().find(|known| &*known.api == api);
            let same = self.catalog_entries().find(|entry| entry.id == &*model.id).map(|entry| self.changed(entry));
            same.or_else(|| of_api(wanted?)).or_else(|| of_api("openai-completions")).or_else(|| self.models().next())
        };
        if model.api.is_empty() {
            let own = Some(&self.api).filter(|api| !api.is_empty()).cloned();
            model.api = own.or_else(|| Some(typical()?.api.clone())).ok_or(Missing::Api)?;
        }
        if model.base_url.is_empty() {
            let own = entry.text("baseUrl").map(str::to_owned);
            let base_url = own.or_else(|| Some(typical()?.base_url.clone())).ok_or(Missing::BaseUrl)?;
            model.base_url = base_url;
        }
        model.provider = self.id.clone();
        let own = model.compat.take();
        config::merge_compat(&mut model.compat, self.changes.compat.as_ref());
        config::merge_compat(&mut model.compat, own.as_ref());
        Ok(model)
    }

    fn add_model_headers(&mut self, id: &ModelId, fields: &Map<String, Value>) {
        let headers = templates(config::texts(fields.get("headers").and_then(Value::as_object)));
        if !headers.is_empty() {
            self.model_headers.entry(id.clone()).or_default().extend(headers);
        }
    }
}

enum Missing {
    Api,
    BaseUrl,
    Fit(serde_json::Error),
}

fn templates<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, ValueTemplate)> {
    texts.map(|(name, value)| (name.to_owned(), ValueTemplate::parse(value))).collect()
}
