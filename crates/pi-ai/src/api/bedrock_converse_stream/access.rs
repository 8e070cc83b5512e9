//! Where a request goes, and as whom.

use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::{
    http_request::{SignableBody, SignableRequest, SigningSettings, sign as sign_request},
    sign::v4,
};

use crate::{
    api::{EncodeRequest, HttpRequest},
    error::{ErrorKind, ProviderError},
    options::Headers,
    time::Timestamp,
};

/// The service's name in signatures.
const SERVICE: &str = "bedrock";
const DEFAULT_REGION: &str = "us-east-1";

/// As whom a request is sent.
pub(super) enum Access<'a> {
    /// With a key.
    Bearer(&'a str),
    /// Signed with an account's secret.
    Signed(AccountKey<'a>),
    /// As nobody: a gateway knows who asks.
    Open,
}

/// The access key of an account or a role.
pub(super) struct AccountKey<'a> {
    id: &'a str,
    secret: &'a str,
    session_token: Option<&'a str>,
}

fn variable<'a>(request: &EncodeRequest<'a>, name: &str) -> Option<&'a str> {
    request.options.env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

impl<'a> Access<'a> {
    pub(super) fn of(request: &EncodeRequest<'a>) -> Result<Self, ProviderError> {
        if variable(request, "AWS_BEDROCK_SKIP_AUTH") == Some("1") {
            return Ok(Self::Open);
        }
        let key = request.options.api_key.as_ref().map(|key| key.expose().trim()).filter(|key| !key.is_empty());
        if let Some(key) = key.or_else(|| variable(request, "AWS_BEARER_TOKEN_BEDROCK")) {
            return Ok(Self::Bearer(key));
        }
        match (variable(request, "AWS_ACCESS_KEY_ID"), variable(request, "AWS_SECRET_ACCESS_KEY")) {
            (Some(id), Some(secret)) => {
                Ok(Self::Signed(AccountKey { id, secret, session_token: variable(request, "AWS_SESSION_TOKEN") }))
            }
            _ => Err(ProviderError::new(
                ErrorKind::Auth,
                "Bedrock has neither a key nor an account's access key. Set AWS_BEARER_TOKEN_BEDROCK, AWS_PROFILE, or \
                 AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
            )),
        }
    }
}

/// The base URL that requests go to. A server of the user's is kept; the catalog's own gives way to the region that is
/// asked for.
pub(super) fn endpoint(request: &EncodeRequest<'_>) -> Result<String, ProviderError> {
    let base = request.model.base_url.trim().trim_end_matches('/');
    let standard = StandardEndpoint::read(base);
    if standard.is_none() && !base.is_empty() {
        return Ok(base.to_owned());
    }
    if let Some(url) = variable(request, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME") {
        return Ok(url.trim_end_matches('/').to_owned());
    }
    match (standard, configured_region(request)) {
        (Some(_), None) => Ok(base.to_owned()),
        (standard, _) => {
            let region = region(request);
            let service = standard.map_or("bedrock-runtime", |standard| standard.service);
            let china = if region.starts_with("cn-") { ".cn" } else { "" };
            Ok(format!("https://{service}.{region}.amazonaws.com{china}"))
        }
    }
}

/// An address of AWS itself.
struct StandardEndpoint<'a> {
    service: &'static str,
    region: &'a str,
}

impl<'a> StandardEndpoint<'a> {
    fn read(base: &'a str) -> Option<Self> {
        let (_, host) = base.split_once("://")?;
        let host = host.split(['/', ':', '?']).next()?;
        let host = host.strip_suffix(".cn").unwrap_or(host).strip_suffix(".amazonaws.com")?;
        let (service, region) = host.split_once('.')?;
        let service = ["bedrock-runtime", "bedrock-runtime-fips"].into_iter().find(|known| *known == service)?;
        is_region(region).then_some(Self { service, region })
    }
}

fn is_region(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn configured_region<'a>(request: &EncodeRequest<'a>) -> Option<&'a str> {
    variable(request, "AWS_REGION").or_else(|| variable(request, "AWS_DEFAULT_REGION"))
}

/// The region that a request is signed for: the profile's own, the configured one, the address's.
fn region<'a>(request: &EncodeRequest<'a>) -> &'a str {
    let of_profile = || {
        let (partition, rest) = request.model.id.strip_prefix("arn:aws")?.split_once(":bedrock:")?;
        let region = rest.split_once(':')?.0;
        ((partition.is_empty() || partition.starts_with('-')) && is_region(region)).then_some(region)
    };
    of_profile()
        .or_else(|| configured_region(request))
        .or_else(|| Some(StandardEndpoint::read(request.model.base_url.trim())?.region))
        .unwrap_or(DEFAULT_REGION)
}

/// Whether a request goes to the regions of the US government.
pub(super) fn is_government(request: &EncodeRequest<'_>) -> bool {
    let id = request.model.id.to_lowercase();
    configured_region(request).is_some_and(|region| region.to_lowercase().starts_with("us-gov-"))
        || ["us-gov.", "arn:aws-us-gov:"].iter().any(|prefix| id.starts_with(prefix))
}

/// The headers that prove who asks.
pub(super) fn sign(request: &EncodeRequest<'_>, http: &HttpRequest, now: Timestamp) -> Result<Headers, ProviderError> {
    let Access::Signed(key) = Access::of(request)? else { return Ok(Headers::new()) };
    let failed = |error: &dyn std::error::Error| {
        let message = format!("The request to Bedrock could not be signed: {error}.");
        ProviderError::new(ErrorKind::InvalidRequest, message)
    };
    let token = key.session_token.map(str::to_owned);
    let identity = Credentials::new(key.id, key.secret, token, None, "options").into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(region(request))
        .name(SERVICE)
        .time(UNIX_EPOCH + Duration::from_millis(now.as_millis()))
        .settings(SigningSettings::default())
        .build()
        .map_err(|error| failed(&error))?
        .into();
    let headers = http.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let signable = SignableRequest::new("POST", &http.url, headers, SignableBody::Bytes(&http.body))
        .map_err(|error| failed(&error))?;
    let (instructions, _) = sign_request(signable, &params).map_err(|error| failed(&error))?.into_parts();
    Ok(instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Message, Model, StreamOptions, api::Concessions};

    const CATALOG: &str = "https://bedrock-runtime.us-east-1.amazonaws.com";
    const PROFILE: &str = "arn:aws-us-gov:bedrock:us-gov-west-1:1:application-inference-profile/abc";

    fn with<R>(base_url: &str, id: &str, env: &[(&str, &str)], ask: impl FnOnce(&EncodeRequest<'_>) -> R) -> R {
        let model = Model { id: id.into(), base_url: base_url.into(), ..Model::default() };
        let context = Context::from(vec![Message::user("hi")]).normalize();
        let mut options = StreamOptions::default();
        options.env.extend(env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        ask(&EncodeRequest {
            model: &model,
            context: &context,
            options: &options,
            concessions: &Concessions::default(),
        })
    }

    #[test]
    fn a_region_that_is_asked_for_moves_only_what_aws_serves() {
        let asked = |base: &str, id: &str, env: &[(&str, &str)]| {
            with(base, id, env, |request| (endpoint(request).unwrap(), region(request).to_owned()))
        };
        let pair = |url: &str, region: &str| (url.to_owned(), region.to_owned());
        let eu = [("AWS_REGION", "eu-west-1")];
        assert_eq!(asked(CATALOG, "m", &[]), pair(CATALOG, "us-east-1"));
        assert_eq!(asked(CATALOG, "m", &eu), pair("https://bedrock-runtime.eu-west-1.amazonaws.com", "eu-west-1"));
        let china = [("AWS_DEFAULT_REGION", "cn-north-1")];
        let url = "https://bedrock-runtime.cn-north-1.amazonaws.com.cn";
        assert_eq!(asked(CATALOG, "m", &china), pair(url, "cn-north-1"));
        assert_eq!(asked("https://gateway.example/b/", "m", &eu), pair("https://gateway.example/b", "eu-west-1"));
        assert_eq!(asked(CATALOG, PROFILE, &[]), pair(CATALOG, "us-gov-west-1"));
        let fips = "https://bedrock-runtime-fips.us-west-2.amazonaws.com";
        assert_eq!(asked(fips, "m", &eu).0, "https://bedrock-runtime-fips.eu-west-1.amazonaws.com");
        let local = [("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "http://127.0.0.1:9/")];
        assert_eq!(asked(CATALOG, "m", &local).0, "http://127.0.0.1:9");
    }

    #[test]
    fn who_asks_is_known_before_anything_is_sent() {
        let kind = |env: &[(&str, &str)]| {
            with(CATALOG, "m", env, |request| match Access::of(request) {
                Ok(Access::Bearer(key)) => key.to_owned(),
                Ok(Access::Signed(key)) => key.id.to_owned(),
                Ok(Access::Open) => "open".to_owned(),
                Err(error) => format!("{:?}", error.kind()),
            })
        };
        let keys = [("AWS_ACCESS_KEY_ID", "AKID"), ("AWS_SECRET_ACCESS_KEY", "s")];
        assert_eq!(kind(&keys), "AKID");
        assert_eq!(kind(&[keys[0], keys[1], ("AWS_BEARER_TOKEN_BEDROCK", "b")]), "b");
        assert_eq!(kind(&[keys[0]]), "Auth");
        assert_eq!(kind(&[("AWS_BEDROCK_SKIP_AUTH", "1")]), "open");
    }

    /// The signature was computed apart, from the published description of the algorithm.
    #[test]
    fn a_signature_covers_address_headers_and_body() {
        let env =
            [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "secret"), ("AWS_SESSION_TOKEN", "t")];
        let signed = with(CATALOG, "a.b-v1:0", &env, |request| {
            let http = HttpRequest {
                url: format!("{CATALOG}/model/a.b-v1%3A0/converse-stream"),
                headers: vec![("content-type".into(), "application/json".into()), ("user-agent".into(), "x".into())],
                body: b"{}".to_vec(),
                note: Default::default(),
            };
            sign(request, &http, Timestamp::from_millis(1_700_000_000_000)).unwrap()
        });
        let header = |wanted: &str| signed.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        assert_eq!(header("x-amz-date"), Some("20231114T221320Z"));
        assert_eq!(header("x-amz-security-token"), Some("t"));
        assert_eq!(
            header("authorization"),
            Some(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20231114/us-east-1/bedrock/aws4_request, \
                 SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature=eb2219b6adfcda2a84eb4bd7df96709dd99942751ce3210a60e910dc9b6dc2d0"
            )
        );
    }
}
