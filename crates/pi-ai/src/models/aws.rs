//! The account that requests to Bedrock are signed for, where it is named by a profile: access keys and region of the
//! files that the AWS command line keeps.

use std::path::PathBuf;

use indexmap::IndexMap;

use crate::error::{ErrorKind, ProviderError};

/// Adds a profile's access keys and region to the variables, unless there is a key or are access keys already. A
/// profile that was chosen for the provider counts more than access keys of the environment.
pub(super) async fn add_profile(
    env: &mut IndexMap<String, String>,
    chosen: Option<&String>,
) -> Result<(), ProviderError> {
    let has_keys = env.contains_key("AWS_ACCESS_KEY_ID") && env.contains_key("AWS_SECRET_ACCESS_KEY");
    let profile = match (chosen, env.get("AWS_PROFILE")) {
        (Some(profile), _) => profile.clone(),
        (None, Some(profile)) if !has_keys => profile.clone(),
        _ => return Ok(()),
    };
    let files = Files::of(env);
    let read = tokio::task::spawn_blocking(move || files.profile(&profile));
    let profile = read.await.map_err(|error| unusable(format!("The AWS files could not be read: {error}.")))??;
    env.insert("AWS_ACCESS_KEY_ID".into(), profile.id);
    env.insert("AWS_SECRET_ACCESS_KEY".into(), profile.secret);
    match profile.session_token {
        Some(token) => drop(env.insert("AWS_SESSION_TOKEN".into(), token)),
        None => drop(env.shift_remove("AWS_SESSION_TOKEN")),
    }
    if let Some(region) = profile.region
        && !env.contains_key("AWS_DEFAULT_REGION")
    {
        env.entry("AWS_REGION".into()).or_insert(region);
    }
    Ok(())
}

fn unusable(message: String) -> ProviderError {
    ProviderError::new(ErrorKind::Auth, message)
}

/// Where profiles stand.
struct Files {
    credentials: PathBuf,
    config: PathBuf,
}

#[derive(Debug, PartialEq, Eq)]
struct Profile {
    id: String,
    secret: String,
    session_token: Option<String>,
    region: Option<String>,
}

impl Files {
    fn of(env: &IndexMap<String, String>) -> Self {
        let folder = PathBuf::from(env.get("HOME").map_or("", String::as_str)).join(".aws");
        let file = |variable: &str, name: &str| env.get(variable).map_or_else(|| folder.join(name), PathBuf::from);
        Self {
            credentials: file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            config: file("AWS_CONFIG_FILE", "config"),
        }
    }

    fn profile(&self, name: &str) -> Result<Profile, ProviderError> {
        let credentials = read(&self.credentials)?;
        let config = read(&self.config)?;
        let in_config = if name == "default" { "default".to_owned() } else { format!("profile {name}") };
        let setting = |key: &str| {
            let value = value_of(&credentials, name, key).or_else(|| value_of(&config, &in_config, key));
            value.filter(|value| !value.is_empty()).map(str::to_owned)
        };
        match (setting("aws_access_key_id"), setting("aws_secret_access_key")) {
            (Some(id), Some(secret)) => {
                Ok(Profile { id, secret, session_token: setting("aws_session_token"), region: setting("region") })
            }
            _ => {
                let other = ["sso_session", "sso_start_url", "role_arn", "credential_process", "login_session"];
                let why = match other.iter().find(|key| setting(key).is_some()) {
                    Some(key) => format!("it is of a kind (`{key}`) that is not read here"),
                    None => "it has no access key".to_owned(),
                };
                Err(unusable(format!(
                    "The AWS profile `{name}` cannot be used: {why} (looked in {} and {}). Run \
                     `aws configure export-credentials --profile {name} --format env` and set what it prints.",
                    self.credentials.display(),
                    self.config.display(),
                )))
            }
        }
    }
}

/// A file that is not there is empty.
fn read(path: &PathBuf) -> Result<String, ProviderError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(unusable(format!("{} cannot be read: {error}.", path.display()))),
    }
}

/// A setting of a section. Lines that are indented belong to the setting above them and are passed over.
fn value_of<'a>(file: &'a str, section: &str, key: &str) -> Option<&'a str> {
    let mut here = false;
    let mut found = None;
    for line in file.lines() {
        let text = line.trim_end();
        if let Some(name) = text.trim().strip_prefix('[').and_then(|name| name.split(']').next()) {
            here = name.split_whitespace().eq(section.split_whitespace());
        } else if here
            && !text.starts_with([' ', '\t', '#', ';'])
            && let Some((name, value)) = text.split_once('=')
            && name.trim().eq_ignore_ascii_case(key)
        {
            let value = value.split(" #").next().unwrap_or_default().split(" ;").next().unwrap_or_default();
            found = Some(value.trim());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "[default]\nregion = us-west-2\n[profile  work] # ours\nregion=eu-west-1 ; here\ns3 =\n  region = no\n\
                          [profile sso]\nsso_session = x\n";
    const CREDENTIALS: &str = "# keys\n[work]\naws_access_key_id = AKID\nAWS_SECRET_ACCESS_KEY = a=b/c+\n";

    #[tokio::test]
    async fn a_profile_gives_keys_and_region() {
        let folder = std::env::temp_dir().join(format!("pi-ai-aws-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let files = [
            ("AWS_CONFIG_FILE".to_owned(), path("config", CONFIG)),
            ("AWS_SHARED_CREDENTIALS_FILE".to_owned(), path("credentials", CREDENTIALS)),
        ];
        let with = |more: &[(&str, &str)]| {
            let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            files.iter().cloned().chain(more).collect::<IndexMap<_, _>>()
        };
        let get = |env: &IndexMap<String, String>, name: &str| env.get(name).cloned().unwrap_or_default();

        let mut env = with(&[("AWS_PROFILE", "work"), ("AWS_SESSION_TOKEN", "stale")]);
        add_profile(&mut env, None).await.unwrap();
        assert_eq!(get(&env, "AWS_ACCESS_KEY_ID"), "AKID");
        assert_eq!(get(&env, "AWS_SECRET_ACCESS_KEY"), "a=b/c+");
        assert_eq!((get(&env, "AWS_REGION"), get(&env, "AWS_SESSION_TOKEN")), ("eu-west-1".into(), String::new()));

        let keys = [("AWS_ACCESS_KEY_ID", "other"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "us-east-2")];
        let mut env = with(&[keys[0], keys[1], keys[2], ("AWS_PROFILE", "work")]);
        add_profile(&mut env, None).await.unwrap();
        assert_eq!(get(&env, "AWS_ACCESS_KEY_ID"), "other");
        add_profile(&mut env, Some(&"work".to_owned())).await.unwrap();
        assert_eq!((get(&env, "AWS_ACCESS_KEY_ID"), get(&env, "AWS_REGION")), ("AKID".into(), "us-east-2".into()));

        for (name, why) in [("sso", "`sso_session`"), ("nobody", "no access key")] {
            let mut env = with(&[("AWS_PROFILE", name)]);
            let error = add_profile(&mut env, None).await.unwrap_err();
            assert!(error.message().contains(why), "{}", error.message());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
