//! The built-in providers and their models, as data.
//!
//! Facts only: who serves which model where, what it can do and costs, and which environment variables hold keys.
//! [`Models`](crate::Models) makes a registry of it. Each provider's models are decoded when they are first asked for,
//! and a single model only when it is needed, so that a program pays for what it uses.
//!
//! ```
//! let provider = pi_ai::catalog::provider("groq").expect("a built-in provider");
//! let model = provider.model(provider.default_model).expect("its default model is in the catalog");
//! assert_eq!(model.base_url, provider.base_url);
//! ```

mod providers;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use serde_json::{Map, Value};

pub use providers::{PREFERENCE, providers};

use crate::model::Model;

/// A provider that this crate knows.
pub struct CatalogProvider {
    /// Its id, as models refer to it.
    pub id: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// Where its models are served; empty when that depends on the account or on the model.
    pub base_url: &'static str,
    /// The model to take when none is asked for.
    pub default_model: &'static str,
    /// The variables that may hold a key, the first that is set wins.
    pub keys: &'static [KeyVariable],
    /// Variables without which the provider cannot be used, whatever the key.
    pub required: &'static [&'static str],
    /// Where credentials may come from when there is no key.
    pub ambient: Ambient,
    /// How the key goes on the wire.
    pub placement: KeyPlacement,
    data: &'static str,
    entries: OnceLock<Entries>,
}

/// An environment variable that may hold a provider's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyVariable {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub holds: KeyKind,
}

/// What a key variable holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// A key, which goes where the wire wants it.
    Key,
    /// A token that always goes into `Authorization: Bearer`.
    Bearer,
}

/// Where credentials may come from when there is no key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ambient {
    /// Nowhere.
    #[default]
    None,
    /// AWS: profile, access keys, container or web identity.
    Aws,
    /// Google Cloud: application default credentials with project and location.
    GoogleCloud,
}

/// How a key goes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyPlacement {
    /// Where the model's wire puts keys.
    #[default]
    Wire,
    /// In `cf-aig-authorization`; the wire's own key headers are left out.
    CloudflareGateway,
}

struct Entries {
    /// What most of the models share, as JSON.
    shared: &'static str,
    /// Read when the first model is decoded: looking for a name goes through every provider.
    defaults: OnceLock<Map<String, Value>>,
    models: Vec<CatalogModel>,
}

/// A model of a [`CatalogProvider`]: its names at once, the rest on demand.
pub struct CatalogModel {
    /// Its id at the provider.
    pub id: &'static str,
    /// Its name for people.
    pub name: &'static str,
    differences: &'static str,
    model: OnceLock<Arc<Model>>,
}

/// The built-in provider of this id.
pub fn provider(id: &str) -> Option<&'static CatalogProvider> {
    providers().iter().find(|provider| provider.id == id)
}

impl CatalogProvider {
    /// Its models, in the catalog's order.
    pub fn models(&'static self) -> impl ExactSizeIterator<Item = &'static CatalogModel> {
        self.entries().models.iter()
    }

    /// Its model of this id.
    pub fn model(&'static self, id: &str) -> Option<Arc<Model>> {
        self.models().find(|model| model.id == id).map(|model| self.decode(model))
    }

    /// All that is known of one of its models.
    pub fn decode(&'static self, model: &'static CatalogModel) -> Arc<Model> {
        model.model.get_or_init(|| Arc::new(self.build(model))).clone()
    }

    fn entries(&'static self) -> &'static Entries {
        self.entries.get_or_init(|| Entries::read(self.data))
    }

    fn build(&'static self, entry: &CatalogModel) -> Model {
        let mut fields = object(entry.differences);
        for (key, value) in self.entries().defaults() {
            if !fields.contains_key(key) {
                fields.insert(key.clone(), value.clone());
            }
        }
        // `null` says that the model lacks what its neighbours have.
        fields.retain(|_, value| !value.is_null());
        fields.insert("id".into(), entry.id.into());
        fields.insert("name".into(), entry.name.into());
        fields.insert("provider".into(), self.id.into());
        serde_json::from_value(Value::Object(fields)).expect("a test decodes every embedded model")
    }
}

/// One line of defaults, then a line per model: id, name and the fields that differ from the defaults, separated by
/// tabs.
impl Entries {
    fn read(data: &'static str) -> Self {
        let (shared, models) = cut(data, b'\n').unwrap_or((data, ""));
        let models = std::iter::successors(cut(models, b'\n'), |(_, rest)| cut(rest, b'\n')).filter_map(|(line, _)| {
            let (id, rest) = cut(line, b'\t')?;
            let (name, differences) = cut(rest, b'\t')?;
            Some(CatalogModel { id, name, differences, model: OnceLock::new() })
        });
        Self { shared, defaults: OnceLock::new(), models: models.collect() }
    }

    fn defaults(&self) -> &Map<String, Value> {
        self.defaults.get_or_init(|| object(self.shared))
    }
}

/// Like [`str::split_once`]; the search for a model reads all data, so that its speed is felt at every start.
fn cut(text: &'static str, at: u8) -> Option<(&'static str, &'static str)> {
    let at = memchr::memchr(at, text.as_bytes())?;
    Some((&text[..at], &text[at + 1..]))
}

fn object(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).expect("a test decodes every embedded model")
}

impl fmt::Debug for CatalogProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatalogProvider")
            .field("id", &self.id)
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CatalogModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatalogModel").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model::{InputKind, ThinkingLevel};

    #[test]
    fn every_embedded_model_decodes_and_is_listed_once() {
        let mut count = 0;
        for provider in providers() {
            let mut ids = BTreeSet::new();
            for entry in provider.models() {
                let model = provider.decode(entry);
                assert!(ids.insert(entry.id), "{} lists {} twice", provider.id, entry.id);
                assert_eq!((&*model.id, &*model.provider), (entry.id, provider.id));
                assert!(!model.api.is_empty() && !model.name.is_empty(), "{}/{}", provider.id, entry.id);
                assert!(model.input.contains(&InputKind::Text), "{}/{}", provider.id, entry.id);
                assert!(model.context_window > 0 && model.max_tokens > 0, "{}/{}", provider.id, entry.id);
                count += 1;
            }
        }
        assert_eq!((providers().len(), count), (41, 1659));
    }

    #[test]
    fn what_a_model_shares_with_its_neighbours_and_what_it_does_not_are_both_its_own() {
        let model = provider("anthropic").unwrap().model("claude-fable-5").unwrap();
        assert_eq!(model.base_url, "https://api.anthropic.com");
        assert_eq!(model.cost.rates.cache_write, 12.5);
        assert!(!model.supports(ThinkingLevel::Off) && model.supports(ThinkingLevel::Max));
        let plain = provider("groq").unwrap().model("llama-3.1-8b-instant").unwrap();
        assert!(!plain.reasoning && plain.thinking_level_map.is_empty() && plain.input_limits.is_none());
    }

    #[test]
    fn every_provider_has_a_default_model_and_a_place_in_the_preference() {
        for provider in providers() {
            assert!(provider.model(provider.default_model).is_some(), "{}", provider.id);
        }
        let preferred: BTreeSet<_> = PREFERENCE.into_iter().collect();
        assert_eq!(preferred, providers().iter().map(|provider| provider.id).collect());
    }

    #[test]
    fn a_single_model_is_decoded_once() {
        let groq = provider("groq").unwrap();
        let id = groq.default_model;
        assert!(Arc::ptr_eq(&groq.model(id).unwrap(), &groq.model(id).unwrap()));
        assert!(groq.model("no such model").is_none() && provider("nobody").is_none());
    }
}
