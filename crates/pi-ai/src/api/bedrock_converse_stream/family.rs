//! Whose model it is: Bedrock serves many makers' over one API, and each takes fields of its own. The id tells; that of
//! an inference profile does not, but its name may.

use crate::model::Model;

/// Claude models whose thinking adapts to the task, beside those of [`FULL_CONTROL`].
const ADAPTIVE: [&str; 2] = ["opus-4-6", "sonnet-4-6"];

/// Claude models that know the effort `xhigh` and let stale thinking be dropped.
const FULL_CONTROL: [&str; 6] = ["opus-4-7", "opus-4-8", "opus-5", "sonnet-5", "haiku-5", "fable-5"];

/// Claude models that cache prompts.
const CACHING: [&str; 7] = ["fable-5", "opus-5", "sonnet-5", "haiku-5", "-4-", "claude-3-7-sonnet", "claude-3-5-haiku"];

/// A model's id and name, in all spellings that are looked for.
pub(super) struct Family {
    id: String,
    name: String,
    spellings: [String; 4],
}

impl Family {
    pub(super) fn of(model: &Model) -> Self {
        let (id, name) = (model.id.to_lowercase(), model.name.to_lowercase());
        let spellings = [id.clone(), name.clone(), dashed(&id), dashed(&name)];
        Self { id, name, spellings }
    }

    pub(super) fn is_claude(&self) -> bool {
        ["anthropic.claude", "anthropic/claude"].iter().any(|maker| self.id.contains(maker))
            || self.name.contains("claude")
    }

    pub(super) fn thinks_adaptively(&self) -> bool {
        self.is_one_of(&ADAPTIVE) || self.has_full_control()
    }

    pub(super) fn has_full_control(&self) -> bool {
        self.is_one_of(&FULL_CONTROL)
    }

    pub(super) fn names_claude(&self) -> bool {
        self.is_one_of(&["claude"])
    }

    pub(super) fn caches(&self) -> bool {
        self.names_claude() && self.is_one_of(&CACHING)
    }

    pub(super) fn is_gpt_oss(&self) -> bool {
        self.is_one_of(&["gpt-oss"])
    }

    pub(super) fn is_gpt(&self) -> bool {
        self.is_one_of(&["gpt-"])
    }

    fn is_one_of(&self, parts: &[&str]) -> bool {
        parts.iter().any(|part| self.spellings.iter().any(|spelling| spelling.contains(part)))
    }
}

/// The text with a dash for each run of blanks, dots, colons and underscores.
fn dashed(text: &str) -> String {
    let is_gap = |c: char| c.is_whitespace() || matches!(c, '_' | '.' | ':');
    let mut dashed = String::with_capacity(text.len());
    let mut in_gap = false;
    for c in text.chars() {
        match (is_gap(c), in_gap) {
            (true, false) => dashed.push('-'),
            (true, true) => {}
            (false, _) => dashed.push(c),
        }
        in_gap = is_gap(c);
    }
    dashed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(id: &str, name: &str) -> Family {
        Family::of(&Model { id: id.into(), name: name.into(), ..Model::default() })
    }

    #[test]
    fn a_profile_is_known_by_its_name() {
        let profile = family("arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc", "Claude Opus 4.6");
        assert!(profile.is_claude() && profile.thinks_adaptively() && profile.caches());
        assert!(!profile.has_full_control());
    }

    #[test]
    fn generations_differ() {
        let old = family("anthropic.claude-3-haiku-20240307-v1:0", "Claude 3 Haiku");
        assert!(old.is_claude() && !old.thinks_adaptively() && !old.caches());
        assert!(family("us.anthropic.claude-opus-5-v1", "").has_full_control());
        let nova = family("amazon.nova-pro-v1:0", "Nova");
        assert!(!nova.is_claude() && !nova.caches() && !nova.is_gpt());
        assert!(family("openai.gpt-oss-120b-1:0", "").is_gpt_oss());
    }
}
