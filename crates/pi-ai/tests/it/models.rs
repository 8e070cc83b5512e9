//! The registry: configuration files, credentials, and what a request is sent with.

use std::{fs, path::PathBuf, sync::Arc};

use pi_ai::{
    ErrorKind, Model, StreamOptions, ThinkingLevel, Timestamp,
    models::{
        AuthFile, ConfigError, Environment, InlineKey, KeySource, ModelChoice, Models, ModelsBuilder, Provider,
        SelectError, SelectWarning,
    },
    time::FixedClock,
};
use serde_json::json;

/// A folder that is gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("pi-ai-models-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn with_file(text: &str) -> (Models, Folder) {
    let folder = Folder::new();
    let path = folder.write("models.json", text);
    (Models::builder().models_file(path).build(), folder)
}

fn with_auth(text: &str) -> (ModelsBuilder, Folder) {
    let folder = Folder::new();
    let path = folder.write("auth.json", text);
    (Models::builder().credentials(AuthFile::new(path)), folder)
}

fn model(models: &Models, provider: &str, id: &str) -> Arc<Model> {
    models.find(provider, id).unwrap()
}

/// The message of the one problem of a file.
fn problem(text: &str) -> String {
    let (models, folder) = with_file(text);
    let problems = models.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems[0].to_string().replace(&folder.0.display().to_string(), "")
}

#[test]
fn a_file_with_comments_a_mark_and_trailing_commas_adds_a_provider() {
    let (models, _folder) = with_file(
        "\u{feff}// mine\n{ \"providers\": { \"local\": { /* here */ \"baseUrl\": \"http://127.0.0.1:9/v1\", \
         \"api\": \"openai-completions\", \"models\": [{ \"id\": \"m\", \"unknown\": [1], },], }, }, }",
    );
    assert_eq!(*models.problems(), []);
    let model = model(&models, "local", "m");
    assert_eq!((&*model.name, &*model.api, &*model.base_url), ("m", "openai-completions", "http://127.0.0.1:9/v1"));
    assert_eq!((model.context_window, model.max_tokens, model.reasoning), (128_000, 16_384, false));
    assert_eq!(serde_json::to_value(&model.input).unwrap(), json!(["text"]));
    assert!(models.find("groq", "openai/gpt-oss-120b").is_some(), "built-in providers stay");
}

#[test]
fn a_missing_file_is_no_problem() {
    let models = Models::builder().models_file("/nowhere/models.json").build();
    assert_eq!(*models.problems(), []);
}

#[test]
fn a_file_that_is_wrong_is_ignored_and_says_where() {
    for (text, expected) in [
        ("", "line 1, the file: expected JSON"),
        ("{\n \"providers\": {\n  \"a\": oops\n }\n}", "line 3, the file: expected JSON"),
        ("[]", "line 1, the file: expected an object, found a list"),
        ("{}", "line 1, providers: expected an object, found nothing"),
        (
            "{\"providers\":\n{\"a\": {\n\"baseUrl\": 7}}}",
            "line 3, providers.a.baseUrl: expected text that is not empty, found the number 7",
        ),
        (
            "{\"providers\":{\"a\":{\"baseUrl\":\"x\",\"models\":[{\"id\":\"m\",\"contextWindow\":\"big\"}]}}}",
            "providers.a.models[0].contextWindow: expected a number above 0, found text",
        ),
        (
            "{\"providers\":{\"a\":{\"compat\":{\"thinkingFormat\":\"mine\"}}}}",
            "providers.a.compat.thinkingFormat: expected one of \"openai\", \"openrouter\"",
        ),
        (
            "{\"providers\":{\"a\":{\"baseUrl\":\"x\",\"models\":[{\"id\":\"m\",\"cost\":{\"input\":1}}]}}}",
            "providers.a.models[0].cost.output: expected a number, found nothing",
        ),
    ] {
        let said = problem(text);
        assert!(said.contains(expected), "{text}: {said}");
        assert!(said.starts_with("/models.json: ") && said.contains("ignored"), "{said}");
    }
}

#[test]
fn a_key_in_the_wrong_place_is_not_repeated_in_the_message() {
    let said = problem("{\"providers\":{\"a\":{\"baseUrl\":\"x\",\"authHeader\":\"sk-secret\"}}}");
    assert!(said.contains("expected true or false, found text") && !said.contains("sk-secret"), "{said}");
}

#[test]
fn every_problem_of_a_file_is_told_at_once() {
    let (models, _folder) = with_file("{\"providers\":{\"a\":{\"baseUrl\":1},\"b\":{\"api\":2}}}");
    let ConfigError::Invalid { problems, .. } = &models.problems()[0] else { panic!("{:?}", models.problems()) };
    assert_eq!(
        problems.iter().map(|problem| &*problem.at).collect::<Vec<_>>(),
        ["providers.a.baseUrl", "providers.b.api"]
    );
}

#[test]
fn an_entry_that_lacks_something_is_left_out_and_the_rest_is_used() {
    for (entry, expected) in [
        ("{\"name\": \"A\"}", "expected at least one of baseUrl"),
        ("{\"headers\": {\"x\": \"y\"}}", "expected a baseUrl, found nothing"),
        ("{\"baseUrl\": \"http://x\", \"models\": [{\"id\": \"m\"}]}", "models[0]: expected an api"),
    ] {
        let ok = "\"ok\": {\"baseUrl\": \"http://x\", \"api\": \"openai-completions\", \"models\": [{\"id\": \"m\"}]}";
        let (models, _folder) = with_file(&format!("{{\"providers\": {{\n\"bad\": {entry}, {ok}}}}}"));
        let said = models.problems()[0].to_string();
        assert!(said.contains(expected) && said.contains("line 2, providers.bad"), "{said}");
        assert!(models.find("ok", "m").is_some() && models.provider("bad").is_none());
    }
}

#[test]
fn a_built_in_provider_is_pointed_elsewhere_and_changed_in_parts() {
    let (models, _folder) = with_file(
        r#"{"providers": {"anthropic": {
            "baseUrl": "http://proxy.test", "compat": {"supportsTemperature": false, "forceAdaptiveThinking": false},
            "modelOverrides": {
                "claude-fable-5": {
                    "name": "Fable", "cost": {"output": 7}, "contextWindow": 1000.4,
                    "thinkingLevelMap": {"low": null, "off": "none"}, "compat": {"forceAdaptiveThinking": true},
                    "inputLimits": {"images": {"resize": {"maxWidth": 100}}}
                },
                "no such model": {"name": "ignored"}
            }
        }}}"#,
    );
    assert_eq!(*models.problems(), []);
    let before = model(&Models::builder().build(), "anthropic", "claude-fable-5");
    let after = model(&models, "anthropic", "claude-fable-5");
    assert_eq!((&*after.name, &*after.base_url, after.context_window), ("Fable", "http://proxy.test", 1000));
    assert_eq!((after.cost.rates.output, after.cost.rates.input), (7.0, before.cost.rates.input));
    assert_eq!(after.mapped_level(ThinkingLevel::Off), Some("none"));
    assert!(!after.supports(ThinkingLevel::Low) && after.supports(ThinkingLevel::Max));
    let compat = after.compat.as_ref().unwrap();
    assert_eq!((&compat["supportsTemperature"], &compat["forceAdaptiveThinking"]), (&json!(false), &json!(true)));
    assert_eq!(compat["supportsStrictTools"], json!(true), "what is not said stays");
    let images = after.input_limits.clone().unwrap().images.unwrap();
    assert_eq!((images.resize.unwrap().max_width, images.resize.unwrap().max_height), (100, 2000));
    assert_eq!(images.max_per_request, Some(600));
    let other = model(&models, "anthropic", "claude-fable-5-1");
    assert_eq!(
        (&*other.base_url, &other.compat.as_ref().unwrap()["forceAdaptiveThinking"]),
        ("http://proxy.test", &json!(false))
    );
    let heads = models.provider("anthropic").unwrap();
    assert!(heads.heads().any(|head| (head.id, head.name) == ("claude-fable-5", "Fable")));
}

#[test]
fn a_model_of_ones_own_replaces_the_built_in_one_in_its_place() {
    let (models, _folder) = with_file(
        r#"{"providers": {"groq": {"models": [
            {"id": "openai/gpt-oss-20b", "name": "Mine", "maxTokens": 5},
            {"id": "new", "api": "anthropic-messages", "baseUrl": "http://x"}
        ], "modelOverrides": {"new": {"reasoning": true}}}}}"#,
    );
    assert_eq!(*models.problems(), []);
    let provider = models.provider("groq").unwrap();
    let plain = Models::builder().build().provider("groq").unwrap();
    let ids = |provider: &Provider| provider.heads().map(|head| head.id.to_owned()).collect::<Vec<_>>();
    assert_eq!(ids(&provider)[..plain.heads().count()], ids(&plain));
    assert_eq!(ids(&provider).last().unwrap(), "new");
    assert_eq!(provider.models().map(|model| model.id.to_string()).collect::<Vec<_>>(), ids(&provider));
    let mine = provider.find("openai/gpt-oss-20b").unwrap();
    assert_eq!((&*mine.name, mine.max_tokens, mine.reasoning), ("Mine", 5, false));
    assert_eq!((&*mine.api, &*mine.base_url), ("openai-completions", plain.base_url()), "from the model it replaces");
    let new = provider.find("new").unwrap();
    assert_eq!((&*new.api, &*new.base_url, new.reasoning), ("anthropic-messages", "http://x", true));
}

#[test]
fn a_changed_file_is_seen_when_it_is_read_again() {
    let (models, folder) = with_file("{\"providers\": {}}");
    folder.write("models.json", "{\"providers\": {\"a\": {\"baseUrl\": \"http://x\"}}}");
    assert!(models.provider("a").is_none());
    models.reload();
    assert!(models.provider("a").is_some());
    folder.write("models.json", "{");
    models.reload();
    assert!(models.provider("a").is_none() && models.problems().len() == 1);
}

async fn prepared(models: &Models, provider: &str, id: &str) -> (Arc<Model>, StreamOptions) {
    models.prepare(&model(models, provider, id), StreamOptions::default()).await.unwrap()
}

fn key(options: &StreamOptions) -> Option<&str> {
    options.api_key.as_ref().map(|key| key.expose())
}

async fn failure(models: &Models, provider: &str, id: &str) -> String {
    let error = models.prepare(&model(models, provider, id), StreamOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    error.to_string()
}

const GROQ: (&str, &str) = ("groq", "openai/gpt-oss-20b");

#[tokio::test]
async fn a_key_comes_from_the_request_then_the_run_then_the_store_then_the_file_then_the_environment() {
    let folder = Folder::new();
    let auth = folder.write("auth.json", r#"{"groq": {"type": "api_key", "key": "$STORED"}}"#);
    let file = folder.write("models.json", r#"{"providers": {"groq": {"apiKey": "from-file"}}}"#);
    let environment = || Environment::from([("GROQ_API_KEY", "from-environment"), ("STORED", "from-store")]);
    let source = async |models: &Models| models.key_source(&models.provider("groq").unwrap()).await.unwrap().unwrap();

    let models = Models::builder().environment(environment()).build();
    assert_eq!(key(&prepared(&models, GROQ.0, GROQ.1).await.1), Some("from-environment"));
    assert_eq!(source(&models).await, KeySource::Variable("GROQ_API_KEY".into()));

    let models = Models::builder().environment(environment()).models_file(&file).build();
    assert_eq!(key(&prepared(&models, GROQ.0, GROQ.1).await.1), Some("from-file"));
    assert_eq!(source(&models).await, KeySource::Configured);

    let store = AuthFile::new(auth);
    let models = Models::builder().environment(environment()).models_file(&file).credentials(store).build();
    assert_eq!(key(&prepared(&models, GROQ.0, GROQ.1).await.1), Some("from-store"));
    assert_eq!(source(&models).await, KeySource::Stored);

    models.set_api_key("groq", "from-run");
    assert_eq!(key(&prepared(&models, GROQ.0, GROQ.1).await.1), Some("from-run"));
    assert_eq!(source(&models).await, KeySource::Runtime);

    let options = StreamOptions { api_key: Some("from-request".into()), ..StreamOptions::default() };
    let (_, options) = models.prepare(&model(&models, GROQ.0, GROQ.1), options).await.unwrap();
    assert_eq!(key(&options), Some("from-request"));
}

#[tokio::test]
async fn a_missing_key_names_the_variables_to_set() {
    let models = Models::builder().environment(Environment::from([("CLOUDFLARE_API_KEY", "k")])).build();
    let first = |provider: &str| models.provider(provider).unwrap().heads().next().unwrap().id.to_owned();
    for (provider, expected) in [
        ("groq", "set GROQ_API_KEY"),
        ("anthropic", "ANTHROPIC_AUTH_TOKEN or ANTHROPIC_OAUTH_TOKEN or ANTHROPIC_API_KEY"),
        ("cloudflare-ai-gateway", "set CLOUDFLARE_ACCOUNT_ID and CLOUDFLARE_GATEWAY_ID"),
        ("amazon-bedrock", "AWS_PROFILE"),
        ("google-vertex", "GOOGLE_CLOUD_PROJECT"),
        ("openai-codex", "sign in"),
    ] {
        let said = failure(&models, provider, &first(provider)).await;
        assert!(said.contains(expected), "{said}");
    }
    let (models, _folder) = with_file(r#"{"providers": {"groq": {"apiKey": "$A-$B"}}}"#);
    assert!(failure(&models, GROQ.0, GROQ.1).await.contains("the variables A, B are not set"));
    assert!(models.available().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_stored_credential_owns_its_provider() {
    let (builder, _folder) = with_auth(
        r#"{"groq": {"type": "api_key", "key": "$UNSET"}, "xai": {"type": "oauth", "access": "a", "refresh": "r", "expires": 1000}}"#,
    );
    let environment = Environment::from([("GROQ_API_KEY", "k"), ("XAI_API_KEY", "k")]);
    let models = builder.environment(environment).clock(FixedClock(Timestamp::from_millis(1000))).build();
    assert!(failure(&models, GROQ.0, GROQ.1).await.contains("UNSET"));
    let xai = models.provider("xai").unwrap().default_model().unwrap();
    let said = failure(&models, "xai", xai).await;
    assert!(said.contains("sign-in") && said.contains("expired"), "{said}");
}

#[tokio::test]
async fn a_sign_in_that_is_still_valid_is_used() {
    let (builder, _folder) = with_auth(
        r#"{"xai": {"type": "oauth", "access": "a-1", "refresh": "r", "expires": 1001.5},
            "kimi-coding": {"type": "oauth", "access": "a-2", "refresh": "r", "expires": 9999},
            "github-copilot": {"type": "oauth", "access": "tid=1;proxy-ep=proxy.team.example.com;x=2", "refresh": "r", "expires": 9999}}"#,
    );
    let models = builder.clock(FixedClock(Timestamp::from_millis(1000))).build();
    let default = |provider: &str| models.provider(provider).unwrap().default_model().unwrap();
    assert_eq!(key(&prepared(&models, "xai", default("xai")).await.1), Some("a-1"));
    let (_, options) = prepared(&models, "kimi-coding", default("kimi-coding")).await;
    assert_eq!((key(&options), &options.headers["authorization"]), (None, &Some("Bearer a-2".to_owned())));
    let (model, options) = prepared(&models, "github-copilot", default("github-copilot")).await;
    assert_eq!(&*model.base_url, "https://api.team.example.com");
    assert!(key(&options).unwrap().starts_with("tid=1"));
}

#[tokio::test]
async fn a_broken_credential_file_is_never_taken_for_signed_out() {
    for (text, expected) in [
        ("{\"groq\": {\"type\": \"api_key\",", "line 1"),
        ("[]", "expected an object"),
        ("{\"groq\": {\"type\": \"api_key\", \"key\": 7}}", "credential of `groq`"),
        ("{\"groq\": {\"type\": \"token\", \"key\": \"sk-secret\"}}", "credential of `groq`"),
        ("{\"groq\": {\"type\": \"oauth\", \"access\": \"sk-secret\"}}", "credential of `groq`"),
    ] {
        let (builder, folder) = with_auth(text);
        let models = builder.environment(Environment::from([("GROQ_API_KEY", "k")])).build();
        let said = failure(&models, GROQ.0, GROQ.1).await;
        assert!(said.contains(expected) && said.contains("auth.json") && !said.contains("secret"), "{said}");
        assert_eq!(fs::read_to_string(folder.0.join("auth.json")).unwrap(), text);
    }
    let (builder, _folder) = with_auth("{");
    assert!(builder.build().available().await.is_err());
}

#[cfg(unix)]
#[tokio::test]
async fn a_credential_file_that_cannot_be_read_is_an_error() {
    let folder = Folder::new();
    // A folder in the file's place cannot be read by anybody, root included.
    fs::create_dir(folder.0.join("auth.json")).unwrap();
    let models = Models::builder().credentials(AuthFile::new(folder.0.join("auth.json"))).build();
    assert!(failure(&models, GROQ.0, GROQ.1).await.contains("cannot be read"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_named_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for() {
    let folder = Folder::new();
    let (auth, file) = (folder.0.join("auth.json"), folder.0.join("models.json"));
    assert!(std::process::Command::new("mkfifo").args([&auth, &file]).status().unwrap().success());

    let models = Models::builder().credentials(AuthFile::new(auth)).build();
    assert!(failure(&models, GROQ.0, GROQ.1).await.contains("not a regular file"));

    let models = Models::builder().models_file(file).build();
    assert!(models.problems()[0].to_string().contains("not a regular file"));
}

#[tokio::test]
async fn headers_rise_from_provider_to_model_to_request_whatever_their_case() {
    let (models, _folder) = with_file(
        r#"{"providers": {"local": {
            "baseUrl": "http://localhost:1/v1", "api": "openai-completions", "apiKey": "k", "authHeader": true,
            "headers": {"X-One": "provider", "x-two": "provider", "x-three": "$$provider"},
            "models": [{"id": "m", "headers": {"x-one": "model", "X-Two": "!printf model"}}]
        }}}"#,
    );
    let headers = [("X-ONE".to_owned(), Some("request".to_owned())), ("x-three".to_owned(), None)];
    let options = StreamOptions { headers: headers.into_iter().collect(), ..StreamOptions::default() };
    let (_, options) = models.prepare(&model(&models, "local", "m"), options).await.unwrap();
    let mut sent: Vec<_> = options.headers.iter().map(|(name, value)| (&**name, value.as_deref())).collect();
    sent.sort_unstable();
    let expected =
        [("authorization", Some("Bearer k")), ("x-one", Some("request")), ("x-three", None), ("x-two", Some("model"))];
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn what_a_wire_needs_of_the_environment_comes_along() {
    let environment = Environment::from([
        ("AZURE_OPENAI_API_KEY", "k"),
        ("AZURE_OPENAI_RESOURCE_NAME", "mine"),
        ("CLOUDFLARE_API_KEY", "cf"),
        ("CLOUDFLARE_ACCOUNT_ID", "acc"),
        ("CLOUDFLARE_GATEWAY_ID", "gw"),
        ("ANTHROPIC_AUTH_TOKEN", "token"),
        ("ANTHROPIC_API_KEY", "key"),
    ]);
    let models = Models::builder().environment(environment).build();
    let default = |provider: &str| models.provider(provider).unwrap().default_model().unwrap();
    let (_, azure) = prepared(&models, "azure", default("azure")).await;
    assert_eq!(azure.env["AZURE_OPENAI_RESOURCE_NAME"], "mine");
    assert!(!azure.env.contains_key("CLOUDFLARE_ACCOUNT_ID"), "only what the wire reads");

    let (model, gateway) = prepared(&models, "cloudflare-ai-gateway", default("cloudflare-ai-gateway")).await;
    assert_eq!(&*model.base_url, "https://gateway.ai.cloudflare.com/v1/acc/gw/compat");
    assert_eq!((key(&gateway), &gateway.headers["cf-aig-authorization"]), (None, &Some("Bearer cf".to_owned())));
    assert_eq!((&gateway.headers["authorization"], &gateway.headers["x-api-key"]), (&None, &None));

    let (_, anthropic) = prepared(&models, "anthropic", default("anthropic")).await;
    assert_eq!((key(&anthropic), &anthropic.headers["authorization"]), (None, &Some("Bearer token".to_owned())));
}

#[tokio::test]
async fn opencode_learns_which_conversation_a_request_belongs_to() {
    let models = Models::builder().environment(Environment::from([("OPENCODE_API_KEY", "k")])).build();
    let provider = models.provider("opencode").unwrap();
    let model = provider.models().next().unwrap();
    let options = || StreamOptions { session_id: Some("s-1".into()), ..StreamOptions::default() };
    let (_, sent) = models.prepare(&model, options()).await.unwrap();
    assert_eq!(sent.headers["x-opencode-session"].as_deref(), Some("s-1"));
    let without = [("X-OpenCode-Session".to_owned(), None)].into_iter().collect();
    let (_, sent) = models.prepare(&model, StreamOptions { headers: without, ..options() }).await.unwrap();
    assert_eq!(sent.headers["x-opencode-session"], None);
}

#[tokio::test]
async fn a_local_server_needs_no_key_and_a_remote_one_does() {
    let entry = |base_url: &str| {
        format!(r#"{{"baseUrl": "{base_url}", "api": "openai-completions", "models": [{{"id": "m"}}]}}"#)
    };
    let text = format!(
        r#"{{"providers": {{"near": {}, "far": {}}}}}"#,
        entry("http://localhost:11434/v1"),
        entry("https://models.example.com/v1")
    );
    let (models, _folder) = with_file(&text);
    assert_eq!(key(&prepared(&models, "near", "m").await.1), Some(""));
    assert!(failure(&models, "far", "m").await.contains("apiKey"));
    let usable: Vec<_> = models.available().await.unwrap().iter().map(|model| model.provider.to_string()).collect();
    assert_eq!(usable, ["near"]);
}

#[tokio::test]
async fn a_model_that_is_not_registered_can_be_asked_with_a_key_of_the_request() {
    let models = Models::builder().build();
    let model = Arc::new(Model {
        id: "m".into(),
        provider: "elsewhere".into(),
        base_url: "https://x.example.com".into(),
        ..Model::default()
    });
    assert!(models.prepare(&model, StreamOptions::default()).await.is_err());
    let options = StreamOptions { api_key: Some("k".into()), ..StreamOptions::default() };
    assert_eq!(key(&models.prepare(&model, options).await.unwrap().1), Some("k"));
}

#[tokio::test]
async fn nothing_that_holds_a_key_prints_it() {
    let (builder, _folder) = with_auth(
        r#"{"groq": {"type": "api_key", "key": "sk-secret", "env": {"E": "sk-secret"}},
            "xai": {"type": "oauth", "access": "sk-secret", "refresh": "sk-secret", "expires": 9, "id_token": "sk-secret"}}"#,
    );
    let models = builder.clock(FixedClock(Timestamp::from_millis(1))).build();
    models.set_api_key("openai", "sk-secret");
    for provider in ["groq", "xai", "openai"] {
        let auth = models.auth(&models.provider(provider).unwrap()).await.unwrap();
        assert!(!format!("{auth:?}").contains("sk-secret"), "{auth:?}");
    }
    let provider = Provider::new("p", "http://x").api_key("sk-secret").header("authorization", "sk-secret");
    assert!(!format!("{models:?} {provider:?}").contains("sk-secret"));
}

fn choice(model: &str) -> ModelChoice {
    ModelChoice { model: model.into(), ..ModelChoice::default() }
}

#[tokio::test]
async fn a_model_is_chosen_by_a_part_of_its_name() {
    let models = Models::builder().environment(Environment::from([("GROQ_API_KEY", "k")])).build();
    let selected = models.select(&choice("groq/gpt-oss-20:high")).await.unwrap();
    assert_eq!((&*selected.model.provider, &*selected.model.id), GROQ);
    assert_eq!((selected.level, selected.warning), (Some(ThinkingLevel::High), None));
    let elsewhere = ModelChoice { provider: Some("GROQ".into()), ..choice("gpt-oss-20b") };
    assert_eq!(&*models.select(&elsewhere).await.unwrap().model.id, GROQ.1);
}

#[tokio::test]
async fn an_id_that_the_provider_does_not_list_is_asked_for_all_the_same() {
    let models = Models::builder().build();
    let selected = models.select(&choice("groq/brand-new:high")).await.unwrap();
    assert_eq!(
        (&*selected.model.id, &*selected.model.name, selected.model.reasoning),
        ("brand-new", "brand-new", true)
    );
    assert_eq!(selected.level, Some(ThinkingLevel::High));
    assert_eq!(selected.warning, Some(SelectWarning::Unlisted { provider: "groq".into(), id: "brand-new".into() }));
    let with_level = ModelChoice { level: Some(ThinkingLevel::Low), ..choice("groq/brand-new:high") };
    let selected = models.select(&with_level).await.unwrap();
    assert_eq!((&*selected.model.id, selected.level), ("brand-new:high", None));
}

#[tokio::test]
async fn a_choice_that_fits_nothing_or_too_much_is_an_error() {
    let models = Models::builder().build();
    assert!(matches!(models.select(&choice("no-such-model")).await, Err(SelectError::NotFound { .. })));
    let nobody = ModelChoice { provider: Some("nobody".into()), ..choice("x") };
    assert!(matches!(models.select(&nobody).await, Err(SelectError::UnknownProvider { .. })));

    let shared = |id: &str| {
        Provider::new(id, "http://x.example.com")
            .api("openai-completions")
            .api_key("k")
            .model(Model { id: "shared".into(), ..Model::default() })
    };
    let models = Models::builder().provider(shared("b")).provider(shared("a")).build();
    let Err(error @ SelectError::Ambiguous { .. }) = models.select(&choice("shared")).await else {
        panic!("not ambiguous")
    };
    assert!(error.to_string().contains("(a/shared, b/shared); more than one of them has a key"), "{error}");
    let inline = ModelChoice { inline_key: InlineKey::Given, ..choice("shared") };
    assert!(models.select(&inline).await.unwrap_err().to_string().contains("does not choose"));
}

#[tokio::test]
async fn without_a_choice_the_first_preferred_provider_with_a_key_is_taken() {
    let models =
        Models::builder().environment(Environment::from([("ZAI_API_KEY", "k"), ("GROQ_API_KEY", "k")])).build();
    let default = models.default_model().await.unwrap().unwrap();
    assert_eq!((&*default.provider, &*default.id), ("groq", models.provider("groq").unwrap().default_model().unwrap()));
    assert!(Models::builder().build().default_model().await.unwrap().is_none());
}

#[tokio::test]
async fn a_scope_has_usable_models_only() {
    let models = Models::builder().environment(Environment::from([("GROQ_API_KEY", "k")])).build();
    let scope = models.scope(&["groq/openai/gpt-*s-20b:low", "claude"]).await.unwrap();
    let found: Vec<_> = scope.models.iter().map(|(model, level)| (&*model.id, *level)).collect();
    assert_eq!(found, [("openai/gpt-oss-20b", Some(ThinkingLevel::Low))]);
    assert_eq!(scope.warnings[0].kind.code(), "no-match");
}

#[tokio::test]
async fn a_provider_registered_while_the_program_runs_is_there_until_it_is_taken_away() {
    let models = Models::builder().build();
    let other = models.clone();
    models.register(Provider::new("mine", "http://x").model(Model { id: "m".into(), ..Model::default() }));
    models.register(Provider::new("groq", "http://x"));
    assert!(other.find("mine", "m").is_some() && other.find(GROQ.0, GROQ.1).is_none());
    models.unregister("mine");
    models.unregister("groq");
    assert!(other.provider("mine").is_none() && other.find(GROQ.0, GROQ.1).is_some());
}
