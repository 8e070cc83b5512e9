//! Which model answers.

use std::sync::Arc;

use pi_ai::{
    Model, ProviderId, ThinkingLevel,
    models::{CredentialError, InlineKey, ModelChoice, ModelHead, Models, SelectError, resolve_scope},
};

use super::arguments::Arguments;
use crate::{agent_session::ScopedModel, guide::GuideModel, resources::Settings, session::SessionContext};

/// Who answers.
#[derive(Clone, Debug)]
pub(super) enum Answerer {
    /// A model of a provider.
    Model {
        /// The model.
        model: Arc<Model>,
        /// The level that was asked for; `None`: the usual one.
        level: Option<ThinkingLevel>,
    },
    /// The built-in guide, because no provider has a key and none was asked for.
    Guide,
}

/// Who answers, and whom a person can change to.
#[derive(Clone, Debug)]
pub(super) struct ModelChoiceMade {
    /// Who answers.
    pub(super) answerer: Answerer,
    /// What `--models`, else the setting `enabledModels`, names. Nothing: every model that has a key.
    pub(super) scope: Vec<ScopedModel>,
}

/// No model can answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum ModelChoiceError {
    /// It cannot be told which one is meant.
    #[error("{0}; `pi --list-models` shows those that have a key")]
    Select(#[from] SelectError),
    /// Stored credentials cannot be read.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    /// A model was chosen before, and cannot be used now.
    #[error(
        "{by} names {provider}/{model}, which cannot be used: {reason}. Name another one with --model provider/id."
    )]
    Unusable {
        /// Who named it.
        by: &'static str,
        /// The provider.
        provider: String,
        /// The model.
        model: String,
        /// Why it cannot be used.
        reason: String,
    },
    /// `--models` matches nothing.
    #[error("--models matches no model that has a key; `pi --list-models` shows those that do")]
    EmptyScope,
}

/// Chooses: `--model`, the session's own, `--models` or `enabledModels`, the settings', then the first one that has a
/// key. Warnings are pushed to `notices`.
pub(super) async fn choose_model(
    arguments: &Arguments,
    models: &Models,
    settings: &Settings,
    session: &SessionContext,
    notices: &mut Vec<String>,
) -> Result<ModelChoiceMade, ModelChoiceError> {
    let patterns = arguments.models.as_ref().or(settings.enabled_models.as_ref());
    if let (Some(key), None, Some(patterns)) = (&arguments.api_key, &arguments.model, &arguments.models)
        && let Some(provider) = provider_of_key(models, patterns, settings, session).await?
    {
        // Before the scope is made: it has only models whose provider has a key.
        models.set_api_key(provider, key.clone());
    }
    let mut scope = Vec::new();
    if let Some(patterns) = patterns.filter(|patterns| !patterns.is_empty()) {
        let resolved = models.scope(patterns).await?;
        notices.extend(resolved.warnings.iter().map(|warning| format!("Warning: {warning}")));
        scope.extend(resolved.models.into_iter().map(|(model, level)| ScopedModel { model, level }));
    }
    let answerer = choose_answerer(arguments, models, settings, session, &scope, notices).await?;
    Ok(ModelChoiceMade { answerer, scope })
}

/// The provider that `--api-key` is for where `--models` says who answers: the one whose model is going to.
async fn provider_of_key(
    models: &Models,
    patterns: &[String],
    settings: &Settings,
    session: &SessionContext,
) -> Result<Option<ProviderId>, ModelChoiceError> {
    if let Some(said) = session.model.as_ref().filter(|said| said.provider != *GuideModel::PROVIDER) {
        return Ok(Some(said.provider.clone()));
    }
    let all = models.all();
    let heads: Vec<ModelHead<'_>> =
        all.iter().map(|model| ModelHead { provider: &model.provider, id: &model.id, name: &model.name }).collect();
    let named = resolve_scope(patterns, &heads).models;
    if let Some((head, _)) = named.iter().find(|(head, _)| is_default(settings, head.provider, head.id)) {
        return Ok(Some(ProviderId::from(head.provider)));
    }
    // A pattern that several providers fit is for one that has a key already, as it is without `--api-key`.
    for pattern in patterns {
        if let Some((model, _)) = models.scope(&[pattern]).await?.models.into_iter().next() {
            return Ok(Some(model.provider.clone()));
        }
        if let Some((head, _)) = resolve_scope(&[pattern], &heads).models.first() {
            return Ok(Some(ProviderId::from(head.provider)));
        }
    }
    Ok(None)
}

fn is_default(settings: &Settings, provider: &str, model: &str) -> bool {
    settings.default_provider.as_deref() == Some(provider) && settings.default_model.as_deref() == Some(model)
}

async fn choose_answerer(
    arguments: &Arguments,
    models: &Models,
    settings: &Settings,
    session: &SessionContext,
    scope: &[ScopedModel],
    notices: &mut Vec<String>,
) -> Result<Answerer, ModelChoiceError> {
    let level = thinking_level(arguments, notices);
    if let Some(name) = &arguments.model {
        let inline_key = if arguments.api_key.is_some() { InlineKey::Given } else { InlineKey::None };
        let choice = ModelChoice { provider: arguments.provider.clone(), model: name.clone(), level, inline_key };
        let selected = models.select(&choice).await?;
        notices.extend(selected.warning.map(|warning| format!("Warning: {warning}")));
        if let Some(key) = &arguments.api_key {
            models.set_api_key(selected.model.provider.clone(), key.clone());
        }
        return Ok(Answerer::Model { model: selected.model, level: level.or(selected.level) });
    }
    // The guide only stood in: whoever can be had now takes over.
    if let Some(said) = session.model.as_ref().filter(|said| said.provider != *GuideModel::PROVIDER) {
        return named(models, "The session", &said.provider, &said.model_id, level).await;
    }
    let is_saved = |scoped: &&ScopedModel| is_default(settings, &scoped.model.provider, &scoped.model.id);
    if let Some(ScopedModel { model, level: of_pattern }) = scope.iter().find(is_saved).or(scope.first()) {
        return Ok(Answerer::Model { model: model.clone(), level: level.or(*of_pattern) });
    }
    if arguments.models.is_some() {
        return Err(ModelChoiceError::EmptyScope);
    }
    if let (Some(provider), Some(model)) = (&settings.default_provider, &settings.default_model) {
        return named(models, "The setting defaultModel", provider, model, level).await;
    }
    if let Some(provider) = &settings.default_provider {
        return usual(models, "The setting defaultProvider", provider, level).await;
    }
    if let Some(model) = models.default_model().await? {
        return Ok(Answerer::Model { model, level });
    }
    // A key that is named and has no value was meant to be there: better to say so than to answer with the guide.
    match models.providers_with_named_keys().first() {
        Some(provider) => usual(models, "models.json", provider.id(), level).await,
        None => Ok(Answerer::Guide),
    }
}

/// The usual model of a provider that somebody named.
async fn usual(
    models: &Models,
    by: &'static str,
    provider: &str,
    level: Option<ThinkingLevel>,
) -> Result<Answerer, ModelChoiceError> {
    let known = models.provider(provider);
    let model = known.as_ref().and_then(|known| Some(known.default_model()?.to_owned()));
    let model = model.or_else(|| Some(known.as_ref()?.models().next()?.id.to_string()));
    named(models, by, provider, &model.unwrap_or_default(), level).await
}

async fn named(
    models: &Models,
    by: &'static str,
    provider: &str,
    model: &str,
    level: Option<ThinkingLevel>,
) -> Result<Answerer, ModelChoiceError> {
    let unusable = |reason: String| ModelChoiceError::Unusable {
        by,
        provider: provider.to_owned(),
        model: model.to_owned(),
        reason,
    };
    let Some(found) = models.find(provider, model) else {
        return Err(unusable("there is no such model".to_owned()));
    };
    let owner = models.provider(provider).ok_or_else(|| unusable("there is no such provider".to_owned()))?;
    match models.auth(&owner).await {
        Ok(_) => Ok(Answerer::Model { model: found, level }),
        Err(error) => Err(unusable(error.message().trim_end_matches('.').to_owned())),
    }
}

fn thinking_level(arguments: &Arguments, notices: &mut Vec<String>) -> Option<ThinkingLevel> {
    match arguments.thinking.as_deref()?.parse() {
        Ok(level) => Some(level),
        Err(error) => {
            notices.push(format!("Warning: --thinking is ignored: {error}"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use pi_ai::models::Provider;

    use super::*;

    fn models() -> Models {
        let model = |id: &str| Model { id: id.into(), name: id.into(), ..Model::default() };
        let local = Provider::new("local", "http://127.0.0.1:1").api("openai-completions").without_key();
        Models::builder().provider(local.model(model("small")).model(model("large")).model(model("other"))).build()
    }

    async fn chosen(words: &[&str], settings: &Settings) -> (String, Vec<String>) {
        let arguments = Arguments::parse(words.iter().map(ToString::to_string)).unwrap();
        let session = crate::session::SessionManager::in_memory().context();
        let made = choose_model(&arguments, &models(), settings, &session, &mut Vec::new()).await.unwrap();
        let Answerer::Model { model, .. } = made.answerer else { panic!("the guide answers") };
        (model.id.to_string(), made.scope.iter().map(|scoped| scoped.model.id.to_string()).collect())
    }

    #[tokio::test]
    async fn the_models_of_the_command_line_are_handed_to_the_session_whoever_answers() {
        let usual = Settings::default();
        let (answers, scope) = chosen(&["--models", "small,large", "hi"], &usual).await;
        assert_eq!((answers.as_str(), scope), ("small", vec!["small".to_owned(), "large".to_owned()]));
        let (answers, scope) = chosen(&["--model", "local/other", "--models", "small,large", "hi"], &usual).await;
        assert_eq!((answers.as_str(), scope.len()), ("other", 2));
        // The setting stands in for the option, and the option counts more.
        let enabled = Settings { enabled_models: Some(vec!["large".to_owned()]), ..Settings::default() };
        assert_eq!(chosen(&["hi"], &enabled).await, ("large".to_owned(), vec!["large".to_owned()]));
        assert_eq!(chosen(&["--models", "other", "hi"], &enabled).await.1, ["other"]);
        assert_eq!(chosen(&["--model", "local/small", "hi"], &usual).await.1, Vec::<String>::new());
    }

    #[tokio::test]
    async fn the_key_of_the_command_line_makes_the_models_usable_that_it_names() {
        let model = |id: &str| Model { id: id.into(), name: id.into(), ..Model::default() };
        let keyed =
            |id: &str| Provider::new(id, "http://127.0.0.1:1").api("openai-completions").api_key("$NO_SUCH_KEY");
        let settings = Settings {
            default_provider: Some("second".to_owned()),
            default_model: Some("large".to_owned()),
            ..Settings::default()
        };
        for (patterns, settings, expected) in [
            ("second/small", &Settings::default(), "second/small"),
            ("first/*,second/*", &Settings::default(), "first/small"),
            ("first/*,second/*", &settings, "second/large"),
        ] {
            let small_and_large = |id: &str| keyed(id).model(model("small")).model(model("large"));
            let models =
                Models::builder().provider(small_and_large("first")).provider(small_and_large("second")).build();
            let words = ["--models", patterns, "--api-key", "given", "hi"];
            let arguments = Arguments::parse(words.iter().map(ToString::to_string)).unwrap();
            let session = crate::session::SessionManager::in_memory().context();
            let made = choose_model(&arguments, &models, settings, &session, &mut Vec::new()).await.unwrap();
            let Answerer::Model { model, .. } = made.answerer else { panic!("the guide answers") };
            assert_eq!(format!("{}/{}", model.provider, model.id), expected);
            assert!(made.scope.iter().all(|scoped| scoped.model.provider == model.provider), "{:?}", made.scope);
        }
    }
}
