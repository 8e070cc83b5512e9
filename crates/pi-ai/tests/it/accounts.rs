//! Accounts of clouds that the environment names, where there is no key.

use std::path::PathBuf;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use fake_llm::{Reply, Script, Server, Wire};
use pi_ai::{
    AssistantMessage, Context, Message, StreamOptions,
    models::{Environment, Models},
};
use serde_json::{Value, json};

/// A folder that is gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("pi-ai-accounts-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn ask(models: &Models, provider: &str) -> AssistantMessage {
    let model = models.provider(provider).unwrap().models().next().unwrap();
    models.ask(&model, Context::from(vec![Message::user("hi")]), StreamOptions::default()).result().await
}

#[cfg(feature = "bedrock")]
#[tokio::test]
async fn a_container_or_a_web_identity_gives_the_keys_of_its_role() {
    let folder = Folder::new("aws");
    let token = folder.write("token", "web-token\n");
    let key = json!({"AccessKeyId": "AKROLE", "SecretAccessKey": "s", "Token": "session", "Expiration": "later"});
    let assumed = json!({"AssumeRoleWithWebIdentityResponse": {"AssumeRoleWithWebIdentityResult": {
        "Credentials": {"AccessKeyId": "AKROLE", "SecretAccessKey": "s", "SessionToken": "session"},
    }}});
    let script = Script::new(Wire::BedrockConverseStream)
        .when(|request| request.path() == "/role", Reply::json(200, key))
        .when(|request| request.path() == "/sts", Reply::json(200, assumed))
        .otherwise("well");
    let server = Server::start(script);
    let (url, role, sts) = (server.url(""), server.url("/role"), server.url("/sts"));
    let common = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", url.as_str());
    let container = [
        common,
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", role.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "let me in"),
    ];
    let web = [
        common,
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.as_str()),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/x"),
        ("AWS_ENDPOINT_URL_STS", sts.as_str()),
    ];
    for environment in [Environment::from(container), Environment::from(web)] {
        let models = Models::builder().environment(environment).build();
        let before = server.requests().len();
        for _ in 0..2 {
            let answer = ask(&models, "amazon-bedrock").await;
            assert_eq!((answer.text().as_str(), &answer.error_message), ("well", &None));
        }
        let requests = server.requests().split_off(before);
        assert_eq!(requests.len(), 3, "the keys are asked for once");
        for signed in &requests[1..] {
            assert!(signed.header("authorization").unwrap().contains("Credential=AKROLE/"));
            assert_eq!(signed.header("x-amz-security-token"), Some("session"));
        }
    }
    let requests = server.requests();
    assert_eq!(requests[0].header("authorization"), Some("let me in"));
    assert!(
        requests[3].target().contains("WebIdentityToken=web-token&") || requests[3].target().ends_with("web-token")
    );
}

#[cfg(feature = "bedrock")]
#[tokio::test]
async fn a_role_that_is_not_given_is_told() {
    let server = Server::start(
        Script::new(Wire::BedrockConverseStream)
            .when(|request| request.path() == "/role", Reply::error(403, "not you")),
    );
    let role = server.url("/role");
    let environment = Environment::from([("AWS_CONTAINER_CREDENTIALS_FULL_URI", role.as_str())]);
    let answer = ask(&Models::builder().environment(environment).build(), "amazon-bedrock").await;
    let said = answer.error_message.unwrap();
    assert!(said.contains("gave no credentials (status 403") && said.contains("not you"), "{said}");
}

#[cfg(feature = "vertex")]
#[tokio::test]
async fn a_login_of_gcloud_and_a_service_account_get_a_token_for_vertex() {
    let folder = Folder::new("google");
    let token = json!({"access_token": "ya29.t", "expires_in": 3600, "token_type": "Bearer"});
    let script = Script::new(Wire::GoogleGenerativeAi)
        .when(|request| request.path() == "/token", Reply::json(200, token))
        .otherwise("well");
    let server = Server::start(script);
    let providers = json!({"providers": {"google-vertex": {"baseUrl": server.url("")}}}).to_string();
    let models_file = folder.write("models.json", &providers);
    let pem = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/google/service_account.pem");
    let user = json!({
        "type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r/+",
        "token_uri": server.url("/token"),
    });
    let account = json!({
        "type": "service_account", "client_email": "a@b.iam", "private_key": std::fs::read_to_string(pem).unwrap(),
        "token_uri": server.url("/token"),
    });
    for (name, credentials) in [("user.json", user), ("account.json", account)] {
        let file = folder.write(name, &credentials.to_string());
        let environment = Environment::from([
            ("GOOGLE_APPLICATION_CREDENTIALS", file.as_str()),
            ("GOOGLE_CLOUD_PROJECT", "p"),
            ("GOOGLE_CLOUD_LOCATION", "l"),
        ]);
        let models = Models::builder().environment(environment).models_file(&models_file).build();
        let before = server.requests().len();
        for _ in 0..2 {
            let answer = ask(&models, "google-vertex").await;
            assert_eq!((answer.text().as_str(), &answer.error_message), ("well", &None), "{name}");
        }
        let requests = server.requests().split_off(before);
        assert_eq!(requests.len(), 3, "{name}: the token is asked for once");
        assert_eq!(requests[1].header("authorization"), Some("Bearer ya29.t"), "{name}");
    }
    let requests = server.requests();
    let form = |index: usize| String::from_utf8(requests[index].body().to_vec()).unwrap();
    assert_eq!(form(0), "grant_type=refresh_token&client_id=c&client_secret=s&refresh_token=r%2F%2B");
    let assertion = form(3).rsplit_once("assertion=").unwrap().1.to_owned();
    let claims = assertion.split('.').nth(1).unwrap();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    assert_eq!((&claims["iss"], &claims["aud"]), (&json!("a@b.iam"), &json!(server.url("/token"))));
    assert_eq!(URL_SAFE_NO_PAD.decode(assertion.rsplit_once('.').unwrap().1).unwrap().len(), 256);
}
