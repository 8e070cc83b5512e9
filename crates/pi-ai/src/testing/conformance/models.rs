//! The files `model_*` of the area `ai_data`.

use serde_json::{Map, Value, json};

use crate::{
    model::ThinkingLevel,
    models::{LevelSuffix, Matching, ModelHead, Reference, Resolution, resolve, resolve_scope},
    testing::vectors::Vector,
};

/// The models that references and patterns are resolved against.
const CATALOG: &str = include_str!("../../../tests/vectors/ai_data/model_catalog.json");

/// What this crate makes of `input`, a case of the file `file_stem`; `None` when there is no runner for that file.
pub fn run(file_stem: &str, input: &Value) -> Option<Value> {
    let catalog = serde_json::from_str::<Vec<Vector>>(CATALOG).ok()?.into_iter().next()?.expected;
    let text = |model: &'_ Value, key: &str| model[key].as_str().map(str::to_owned);
    let rows: Vec<(String, String, String)> = catalog
        .as_array()?
        .iter()
        .map(|model| Some((text(model, "provider")?, text(model, "id")?, text(model, "name")?)))
        .collect::<Option<_>>()?;
    let models: Vec<_> = rows.iter().map(|(provider, id, name)| ModelHead { provider, id, name }).collect();
    match file_stem {
        "model_catalog" => Some(catalog),
        "model_reference" => model_reference(input, &models),
        "model_scope" => model_scope(input, &models),
        _ => None,
    }
}

fn model_reference(input: &Value, models: &[ModelHead<'_>]) -> Option<Value> {
    let reference = Reference {
        text: input["text"].as_str()?,
        provider: input["provider"].as_str(),
        suffix: match input["thinkingSuffix"].as_str()? {
            "none" => LevelSuffix::NotRead,
            "strict" => LevelSuffix::Strict,
            "lenient" => LevelSuffix::Lenient,
            _ => return None,
        },
        matching: if input["fuzzy"].as_bool()? { Matching::Partial } else { Matching::Exact },
    };
    let usable = |provider: &str| match &input["usable"] {
        Value::Array(usable) => usable.iter().any(|known| known == provider),
        all => all == "all",
    };
    let mut outcome = Map::new();
    let mut set = |key: &str, value: Option<Value>| outcome.extend(value.map(|value| (key.to_owned(), value)));
    let named = |level: Option<ThinkingLevel>| level.map(|level| json!(level));
    match resolve(&reference, models, usable) {
        Resolution::Found { model, level, warning } => {
            set("status", Some("resolved".into()));
            set("model", Some(shown(&model)));
            set("thinkingLevel", named(level));
            set("warning", warning.map(|_| true.into()));
        }
        Resolution::Ambiguous { candidates, usable, level, warning } => {
            set("status", Some("ambiguous".into()));
            set("candidates", Some(candidates.iter().map(shown).collect()));
            set("usableCount", Some(usable.into()));
            set("thinkingLevel", named(level));
            set("warning", warning.map(|_| true.into()));
        }
        Resolution::NotFound { target } => {
            set("status", Some("not-found".into()));
            let target = target.map(|target| {
                let mut shown =
                    json!({"provider": target.sample.provider, "modelText": target.text, "modelId": target.id});
                if let Some(level) = target.level {
                    shown["thinkingLevel"] = json!(level);
                }
                shown
            });
            set("target", target);
        }
    }
    Some(outcome.into())
}

fn model_scope(input: &Value, models: &[ModelHead<'_>]) -> Option<Value> {
    let patterns: Vec<&str> = input["patterns"].as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?;
    let scope = resolve_scope(&patterns, models);
    let models = scope.models.iter().map(|(model, level)| {
        let mut entry = json!({"model": shown(model)});
        if let Some(level) = level {
            entry["thinkingLevel"] = json!(level);
        }
        entry
    });
    let warnings = scope
        .warnings
        .iter()
        .map(|warning| json!({"type": "warning", "code": warning.kind.code(), "pattern": warning.pattern}));
    Some(json!({"models": models.collect::<Vec<_>>(), "diagnostics": warnings.collect::<Vec<_>>()}))
}

fn shown(model: &ModelHead<'_>) -> Value {
    format!("{}|{}", model.provider, model.id).into()
}
