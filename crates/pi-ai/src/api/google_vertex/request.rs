//! Where a model is at Vertex, and who may ask it.

use crate::{
    api::{
        EncodeRequest, HttpRequest, Note,
        google_generative_ai::{Budgets, body},
        headers::HeaderMap,
    },
    error::{ErrorKind, ProviderError},
};

const VERSION: &str = "v1";
const GLOBAL: &str = "https://aiplatform.googleapis.com";

/// How a request authenticates: that decides where it goes.
enum Access<'a> {
    /// A key, which knows its project.
    Key(&'a str),
    /// A token of the environment's account, which a header brings.
    Account,
}

pub(super) fn encode(request: &EncodeRequest<'_>) -> Result<HttpRequest, ProviderError> {
    let access = access(request)?;
    let mut head = HeaderMap::for_model(request);
    if let Access::Key(key) = access {
        head.set("x-goog-api-key", key);
    }
    head.add_model(request.model);
    head.add_request(request);
    Ok(HttpRequest {
        url: format!(
            "{}/{}:streamGenerateContent?alt=sse",
            collection(request, &access)?,
            model_path(&request.model.id),
        ),
        headers: head.into_headers(),
        body: body(request, Budgets::WithoutFlashLite)?,
        note: Note::default(),
    })
}

/// A key that is none stands for the environment's account.
fn access<'a>(request: &EncodeRequest<'a>) -> Result<Access<'a>, ProviderError> {
    let key = request.options.api_key.as_ref().map(|key| key.expose().trim());
    let is_key = |key: &&str| !key.is_empty() && *key != "gcp-vertex-credentials" && !is_placeholder(key);
    if let Some(key) = key.filter(is_key) {
        return Ok(Access::Key(key));
    }
    let brings_token = request.options.headers.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case("authorization") && value.as_deref().is_some_and(|value| !value.trim().is_empty())
    });
    match brings_token {
        true => Ok(Access::Account),
        false => Err(ProviderError::new(
            ErrorKind::Auth,
            "Vertex has neither a key nor an account's token. Set GOOGLE_CLOUD_API_KEY, or log in with \
             `gcloud auth application-default login` and set GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION.",
        )),
    }
}

fn is_placeholder(key: &str) -> bool {
    key.strip_prefix('<').and_then(|key| key.strip_suffix('>')).is_some_and(|name| !name.contains('>'))
}

fn variable<'a>(request: &EncodeRequest<'a>, names: &[&str]) -> Result<&'a str, ProviderError> {
    let set = names.iter().find_map(|name| request.options.env.get(*name));
    set.map(|value| value.trim()).filter(|value| !value.is_empty()).ok_or_else(|| {
        let message = format!("Vertex needs to know its {}. Set {}.", names[0].to_lowercase(), names.join(" or "));
        ProviderError::new(ErrorKind::InvalidRequest, message)
    })
}

/// The address under which publishers and their models are.
fn collection(request: &EncodeRequest<'_>, access: &Access<'_>) -> Result<String, ProviderError> {
    let base = request.model.base_url.trim().trim_end_matches('/');
    // The catalog's address is a pattern; another one is a server of the user's.
    if !base.is_empty() && !base.contains("{location}") && !is_googles(base) {
        return Ok(if names_version(base) { base.to_owned() } else { format!("{base}/{VERSION}") });
    }
    if let Access::Key(_) = access {
        return Ok(format!("{GLOBAL}/{VERSION}"));
    }
    let project = variable(request, &["GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"])?;
    let location = variable(request, &["GOOGLE_CLOUD_LOCATION"])?;
    let host = match location {
        "global" => GLOBAL.to_owned(),
        "us" | "eu" => format!("https://aiplatform.{location}.rep.googleapis.com"),
        _ => format!("https://{location}-aiplatform.googleapis.com"),
    };
    Ok(format!("{host}/{VERSION}/projects/{project}/locations/{location}"))
}

/// The catalog's own address with the location filled in.
fn is_googles(base: &str) -> bool {
    base.strip_prefix("https://")
        .is_some_and(|host| host.ends_with("-aiplatform.googleapis.com") && !host.contains('/'))
}

/// Whether an address names the API's version itself: `v1`, `v1beta1`.
fn names_version(base: &str) -> bool {
    let path = base.split_once("://").map_or(base, |(_, rest)| rest).split('?').next().unwrap_or_default();
    path.split('/').skip(1).any(|part| {
        let Some(rest) = part.strip_prefix('v') else { return false };
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let beta = &rest[digits..];
        let is_beta = beta.strip_prefix("beta").is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        digits > 0 && (beta.is_empty() || is_beta)
    })
}

fn model_path(id: &str) -> String {
    if ["publishers/", "projects/", "models/"].iter().any(|start| id.starts_with(start)) {
        return id.to_owned();
    }
    match id.split_once('/') {
        Some((publisher, model)) => format!("publishers/{publisher}/models/{model}"),
        None => format!("publishers/google/models/{id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Message, Model, StreamOptions, api::Concessions};

    fn url(base_url: &str, id: &str, change: impl FnOnce(&mut StreamOptions)) -> Result<String, ProviderError> {
        let model = Model { id: id.into(), base_url: base_url.into(), ..Model::default() };
        let context = Context::from(vec![Message::user("hi")]).normalize();
        let mut options = StreamOptions::default();
        change(&mut options);
        let request =
            EncodeRequest { model: &model, context: &context, options: &options, concessions: &Concessions::default() };
        encode(&request).map(|request| request.url)
    }

    const PATTERN: &str = "https://{location}-aiplatform.googleapis.com";

    #[test]
    fn a_key_goes_to_the_global_address() {
        let key = |options: &mut StreamOptions| options.api_key = Some("AIza".into());
        let ends = ":streamGenerateContent?alt=sse";
        for (base, id, expected) in [
            (PATTERN, "gemini-3-pro", "https://aiplatform.googleapis.com/v1/publishers/google/models/gemini-3-pro"),
            ("https://p.example/x", "gemini-3-pro", "https://p.example/x/v1/publishers/google/models/gemini-3-pro"),
            ("https://p.example/v1beta1/", "publishers/a/models/c", "https://p.example/v1beta1/publishers/a/models/c"),
            ("https://p.example", "anthropic/claude", "https://p.example/v1/publishers/anthropic/models/claude"),
        ] {
            assert_eq!(url(base, id, key).unwrap(), format!("{expected}{ends}"));
        }
    }

    #[test]
    fn an_account_goes_to_its_project_and_location() {
        let account = |location: &'static str| {
            move |options: &mut StreamOptions| {
                options.headers.insert("Authorization".into(), Some("Bearer t".into()));
                options.env.insert("GOOGLE_CLOUD_PROJECT".into(), "p".into());
                options.env.insert("GOOGLE_CLOUD_LOCATION".into(), location.into());
            }
        };
        for (location, host) in [
            ("europe-west1", "europe-west1-aiplatform.googleapis.com"),
            ("global", "aiplatform.googleapis.com"),
            ("eu", "aiplatform.eu.rep.googleapis.com"),
        ] {
            let expected = format!(
                "https://{host}/v1/projects/p/locations/{location}/publishers/google/models/g:streamGenerateContent?alt=sse"
            );
            assert_eq!(url(PATTERN, "g", account(location)).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(url(PATTERN, "g", |_| {}).unwrap_err().kind(), ErrorKind::Auth);
        assert_eq!(
            url(PATTERN, "g", |options| options.api_key = Some("<your key>".into())).unwrap_err().kind(),
            ErrorKind::Auth
        );
        let no_project = |options: &mut StreamOptions| {
            options.headers.insert("authorization".into(), Some("Bearer t".into()));
        };
        assert!(url(PATTERN, "g", no_project).unwrap_err().message().contains("GCLOUD_PROJECT"));
    }
}
