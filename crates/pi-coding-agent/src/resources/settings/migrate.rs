//! Keys of older versions, under their new names.

use serde_json::{Map, Value};

/// Rewrites what older versions stored. Where both forms stand, the new one counts.
pub(crate) fn migrate(document: &mut Map<String, Value>) {
    if !document.contains_key("steeringMode")
        && let Some(mode) = document.remove("queueMode")
    {
        document.insert("steeringMode".into(), mode);
    }
    if !document.contains_key("transport")
        && let Some(Value::Bool(websockets)) = document.get("websockets")
    {
        let transport = if *websockets { "websocket" } else { "sse" };
        document.remove("websockets");
        document.insert("transport".into(), transport.into());
    }
    if let Some(Value::Object(skills)) = document.get("skills") {
        let commands = skills.get("enableSkillCommands").cloned();
        let folders = skills.get("customDirectories").cloned();
        match folders {
            Some(Value::Array(folders)) if !folders.is_empty() => {
                document.insert("skills".into(), Value::Array(folders));
            }
            _ => drop(document.remove("skills")),
        }
        if let Some(commands) = commands {
            document.entry("enableSkillCommands").or_insert(commands);
        }
    }
    if let Some(Value::Object(retry)) = document.get_mut("retry")
        && let Some(delay) = retry.remove("maxDelayMs")
        && delay.is_number()
    {
        let provider = retry.entry("provider").or_insert_with(|| Value::Object(Map::new()));
        if !provider.is_object() {
            *provider = Value::Object(Map::new());
        }
        if let Value::Object(provider) = provider
            && provider.get("maxRetryDelayMs").is_none_or(Value::is_null)
        {
            provider.insert("maxRetryDelayMs".into(), delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn older_keys_are_read_under_their_new_names() {
        for (old, new) in [
            (json!({"queueMode": "all"}), json!({"steeringMode": "all"})),
            (
                json!({"queueMode": "all", "steeringMode": "one-at-a-time"}),
                json!({"queueMode": "all", "steeringMode": "one-at-a-time"}),
            ),
            (json!({"websockets": true}), json!({"transport": "websocket"})),
            (json!({"websockets": false}), json!({"transport": "sse"})),
            (
                json!({"skills": {"enableSkillCommands": false, "customDirectories": ["a"]}}),
                json!({"skills": ["a"], "enableSkillCommands": false}),
            ),
            (json!({"skills": {"customDirectories": []}}), json!({})),
            (json!({"retry": {"maxDelayMs": 5}}), json!({"retry": {"provider": {"maxRetryDelayMs": 5}}})),
            (
                json!({"retry": {"maxDelayMs": 5, "provider": {"maxRetryDelayMs": 7}}}),
                json!({"retry": {"provider": {"maxRetryDelayMs": 7}}}),
            ),
        ] {
            let Value::Object(mut document) = old.clone() else { unreachable!() };
            migrate(&mut document);
            assert_eq!(Value::from(document), new, "{old}");
        }
    }
}
