//! Document → typed settings, with a problem for each value that is not what it should be.

use std::time::Duration;

use indexmap::IndexMap;
use pi_ai::ThinkingLevel;
use serde_json::{Map, Value};

use crate::resources::document::kind_of;

use super::{
    tools::resolve_default_tools,
    values::{
        BranchSummary, Capability, Codemode, Compaction, ImageProtocol, Images, Interface, ResourceEntries,
        ResourceLists, Retry, Settings, StartupOutput, WheelLines,
    },
};

/// A word out of a fixed set.
pub(crate) trait Choice: Copy + Default {
    const WORDS: &'static [&'static str];
    fn from_word(word: &str) -> Option<Self>;
}

/// A value that was not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueProblem {
    /// The keys that lead to it.
    pub(crate) path: Vec<&'static str>,
    pub(crate) message: String,
}

/// The documents that typed settings are read from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layers<'a> {
    pub(crate) merged: &'a Map<String, Value>,
    pub(crate) global: &'a Map<String, Value>,
    pub(crate) project: &'a Map<String, Value>,
}

/// Reads every known key. Unknown keys are none of its business.
pub(crate) fn read(layers: Layers<'_>) -> (Settings, Vec<ValueProblem>) {
    let mut problems = Problems::default();
    let p = &mut problems;
    let all = At::root(layers.merged);
    let global = At::root(layers.global);
    let settings = Settings {
        default_provider: all.text(p, "defaultProvider"),
        default_model: all.text(p, "defaultModel"),
        default_thinking_level: all.level(p, "defaultThinkingLevel"),
        model_thinking_levels: model_levels(all, p),
        thinking_budgets: thinking_budgets(all.inner(p, "thinkingBudgets"), p),
        enabled_models: all.texts(p, "enabledModels"),
        default_tools: all.texts(p, "defaultTools").map(|entries| resolve_default_tools(&entries)),
        steering_mode: all.choice(p, "steeringMode"),
        follow_up_mode: all.choice(p, "followUpMode"),
        default_project_trust: global.choice(p, "defaultProjectTrust"),
        session_dir: all.text(p, "sessionDir").filter(|dir| !dir.is_empty()),
        compaction: compaction(all.inner(p, "compaction"), p),
        branch_summary: branch_summary(all.inner(p, "branchSummary"), p),
        retry: retry(all.inner(p, "retry"), p),
        transport: all.choice(p, "transport"),
        http_proxy: global.text(p, "httpProxy").filter(|proxy| !proxy.trim().is_empty()),
        http_idle_timeout: all.timeout(p, "httpIdleTimeoutMs", 300_000),
        websocket_connect_timeout: all.timeout(p, "websocketConnectTimeoutMs", 15_000),
        cache_warming: global.choice(p, "cacheWarming"),
        shell_path: all.text(p, "shellPath"),
        shell_command_prefix: all.text(p, "shellCommandPrefix"),
        sandbox: global.choice(p, "sandbox"),
        session_sync: global.choice(p, "sessionSync"),
        npm_command: all.texts(p, "npmCommand"),
        self_update_command: global.texts(p, "selfUpdateCommand"),
        images: images(all.inner(p, "images"), p),
        codemode: codemode(all.inner(p, "codemode"), p),
        enable_skill_commands: all.flag(p, "enableSkillCommands").unwrap_or(true),
        resources: ResourceEntries {
            user: resource_lists(global, p),
            project: resource_lists(At::root(layers.project), p),
        },
        theme: all.text(p, "theme"),
        interface: interface(all, p),
    };
    // A key is looked at in more than one layer.
    problems.0.dedup();
    (settings, problems.0)
}

fn compaction(at: At<'_>, p: &mut Problems) -> Compaction {
    Compaction { enabled: at.flag(p, "enabled").unwrap_or(true), raw: at.fields.cloned().unwrap_or_default() }
}

fn branch_summary(at: At<'_>, p: &mut Problems) -> BranchSummary {
    BranchSummary {
        reserve_tokens: at.whole(p, "reserveTokens").unwrap_or(16_384),
        skip_prompt: at.flag(p, "skipPrompt").unwrap_or(false),
    }
}

fn retry(at: At<'_>, p: &mut Problems) -> Retry {
    let provider = at.inner(p, "provider");
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Retry {
        enabled: at.flag(p, "enabled").unwrap_or(true),
        max_retries: small(at.whole(p, "maxRetries").unwrap_or(3)),
        base_delay: Duration::from_millis(at.whole(p, "baseDelayMs").unwrap_or(2_000)),
        max_agent_delay: Duration::from_millis(at.whole(p, "maxAgentDelayMs").unwrap_or(60_000)),
        provider_timeout: provider.whole(p, "timeoutMs").map(Duration::from_millis),
        provider_max_retries: small(provider.whole(p, "maxRetries").unwrap_or(0)),
        provider_max_delay: Duration::from_millis(provider.whole(p, "maxRetryDelayMs").unwrap_or(60_000)),
    }
}

fn images(at: At<'_>, p: &mut Problems) -> Images {
    Images {
        auto_resize: at.flag(p, "autoResize").unwrap_or(true),
        block_images: at.flag(p, "blockImages").unwrap_or(false),
    }
}

fn codemode(at: At<'_>, p: &mut Problems) -> Codemode {
    Codemode {
        only: at.word(p, "mode", &["on", "only"]) == Some("only"),
        inline_budget: at.whole(p, "inlineBudget").unwrap_or(3_000),
    }
}

fn model_levels(at: At<'_>, p: &mut Problems) -> IndexMap<String, ThinkingLevel> {
    let levels = at.inner(p, "modelThinkingLevels");
    let entries = levels.fields.into_iter().flatten();
    entries
        .filter_map(|(model, level)| match level.as_str().and_then(|level| level.parse().ok()) {
            Some(level) => Some((model.clone(), level)),
            None => {
                let what = format!("modelThinkingLevels of {model}: expected a thinking level, found {level}");
                p.0.push(ValueProblem { path: vec!["modelThinkingLevels"], message: what });
                None
            }
        })
        .collect()
}

fn thinking_budgets(at: At<'_>, p: &mut Problems) -> IndexMap<ThinkingLevel, u64> {
    let levels = [ThinkingLevel::Minimal, ThinkingLevel::Low, ThinkingLevel::Medium, ThinkingLevel::High];
    levels.into_iter().filter_map(|level| Some((level, at.whole(p, level.as_str())?))).collect()
}

fn resource_lists(at: At<'_>, p: &mut Problems) -> ResourceLists {
    ResourceLists {
        packages: packages(at, p),
        extensions: at.texts(p, "extensions").unwrap_or_default(),
        skills: at.texts(p, "skills").unwrap_or_default(),
        prompts: at.texts(p, "prompts").unwrap_or_default(),
        themes: at.texts(p, "themes").unwrap_or_default(),
    }
}

fn packages(at: At<'_>, p: &mut Problems) -> Vec<String> {
    let source = |entry: &Value| match entry {
        Value::String(source) => Some(source.clone()),
        Value::Object(entry) => entry.get("source")?.as_str().map(str::to_owned),
        _ => None,
    };
    match at.get("packages") {
        None => Vec::new(),
        Some(Value::Array(entries)) => entries.iter().filter_map(source).collect(),
        Some(other) => {
            p.add(at, "packages", "a list", other);
            Vec::new()
        }
    }
}

fn interface(at: At<'_>, p: &mut Problems) -> Interface {
    let terminal = at.inner(p, "terminal");
    let markdown = at.inner(p, "markdown");
    Interface {
        tui_mode: at.choice(p, "tuiMode"),
        fullscreen_exit_output: at.choice(p, "fullscreenExitOutput"),
        fullscreen_scrollbar: at.choice(p, "fullscreenScrollbar"),
        fullscreen_copy_on_select: at.flag(p, "fullscreenCopyOnSelect").unwrap_or(true),
        fullscreen_wheel_scroll_lines: wheel_lines(at, p),
        startup: match at.get("quietStartup") {
            Some(Value::String(word)) if word == "header" => StartupOutput::HeaderOnly,
            _ if at.flag_or_word(p, "quietStartup", "header") == Some(true) => StartupOutput::Quiet,
            _ => StartupOutput::Full,
        },
        hide_thinking_block: at.flag(p, "hideThinkingBlock").unwrap_or(false),
        show_cache_miss_notices: at.flag(p, "showCacheMissNotices").unwrap_or(false),
        external_editor: at.text(p, "externalEditor").filter(|editor| !editor.trim().is_empty()),
        double_escape_action: at.choice(p, "doubleEscapeAction"),
        tree_filter: at.choice(p, "treeFilterMode"),
        editor_padding_x: at.clamped(p, "editorPaddingX", 0, 3).unwrap_or(0),
        output_pad: at.clamped(p, "outputPad", 0, 1).unwrap_or(1),
        autocomplete_max_visible: at.clamped(p, "autocompleteMaxVisible", 3, 20).unwrap_or(5),
        show_hardware_cursor: at.flag(p, "showHardwareCursor"),
        show_images: terminal.flag(p, "showImages").unwrap_or(true),
        image_width_cells: terminal.clamped(p, "imageWidthCells", 1, u16::MAX).unwrap_or(60),
        clear_on_shrink: terminal.flag(p, "clearOnShrink"),
        show_terminal_progress: terminal.flag(p, "showTerminalProgress").unwrap_or(false),
        hyperlinks: capability(terminal, p, "hyperlinks"),
        true_color: capability(terminal, p, "trueColor"),
        image_protocol: match terminal.get("images") {
            Some(Value::Bool(false)) => ImageProtocol::Off,
            _ => match terminal.word(p, "images", &["auto", "kitty", "iterm2"]) {
                Some("kitty") => ImageProtocol::Kitty,
                Some("iterm2") => ImageProtocol::Iterm2,
                _ => ImageProtocol::Detect,
            },
        },
        code_block_indent: markdown.text(p, "codeBlockIndent").unwrap_or_else(|| "  ".to_owned()),
        mermaid: markdown.choice(p, "mermaid"),
        share_destination: at.choice(p, "sessionShareDestination"),
        collapse_changelog: at.flag(p, "collapseChangelog").unwrap_or(false),
    }
}

fn capability(at: At<'_>, p: &mut Problems, key: &'static str) -> Capability {
    match at.flag_or_word(p, key, "auto") {
        Some(true) => Capability::On,
        Some(false) => Capability::Off,
        None => Capability::Detect,
    }
}

fn wheel_lines(at: At<'_>, p: &mut Problems) -> WheelLines {
    match at.get("fullscreenWheelScrollLines") {
        Some(Value::String(word)) if word == "auto" => WheelLines::Auto,
        _ => at.clamped(p, "fullscreenWheelScrollLines", 1, 100).map_or(WheelLines::Auto, WheelLines::Lines),
    }
}

#[derive(Debug, Default)]
struct Problems(Vec<ValueProblem>);

impl Problems {
    fn add(&mut self, at: At<'_>, key: &'static str, expected: &str, found: &Value) {
        let path: Vec<_> = at.above.into_iter().flatten().chain([key]).collect();
        let shown = match found {
            Value::Array(_) | Value::Object(_) => kind_of(found).to_owned(),
            plain => plain.to_string(),
        };
        let message = format!("{}: expected {expected}, found {shown}; the default is used", path.join("."));
        self.0.push(ValueProblem { path, message });
    }
}

/// A place in a document.
#[derive(Clone, Copy, Debug)]
struct At<'a> {
    fields: Option<&'a Map<String, Value>>,
    /// The keys that lead here, from the outermost.
    above: [Option<&'static str>; 2],
}

impl<'a> At<'a> {
    fn root(document: &'a Map<String, Value>) -> Self {
        Self { fields: Some(document), above: [None, None] }
    }

    fn get(self, key: &str) -> Option<&'a Value> {
        self.fields?.get(key)
    }

    fn inner(self, p: &mut Problems, key: &'static str) -> Self {
        let fields = self.checked(p, key, "an object", Value::as_object);
        let above = if self.above[0].is_none() { [Some(key), None] } else { [self.above[0], Some(key)] };
        Self { fields, above }
    }

    fn checked<T>(
        self,
        p: &mut Problems,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(key)?;
        let checked = read(value);
        if checked.is_none() {
            p.add(self, key, expected, value);
        }
        checked
    }

    fn text(self, p: &mut Problems, key: &'static str) -> Option<String> {
        self.checked(p, key, "a text", |value| value.as_str().map(str::to_owned))
    }

    fn flag(self, p: &mut Problems, key: &'static str) -> Option<bool> {
        self.checked(p, key, "true or false", Value::as_bool)
    }

    /// A flag, where one word says that it is not set.
    fn flag_or_word(self, p: &mut Problems, key: &'static str, word: &str) -> Option<bool> {
        if self.get(key).and_then(Value::as_str) == Some(word) {
            return None;
        }
        self.checked(p, key, &format!("true, false or \"{word}\""), Value::as_bool)
    }

    fn texts(self, p: &mut Problems, key: &'static str) -> Option<Vec<String>> {
        self.checked(p, key, "a list of texts", |value| {
            value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
        })
    }

    fn whole(self, p: &mut Problems, key: &'static str) -> Option<u64> {
        self.checked(p, key, "a number from 0", |value| value.as_f64().filter(|n| *n >= 0.0).map(|n| n as u64))
    }

    fn clamped(self, p: &mut Problems, key: &'static str, least: u16, most: u16) -> Option<u16> {
        let number = self.checked(p, key, "a number", Value::as_f64)?;
        Some(number.floor().clamp(f64::from(least), f64::from(most)) as u16)
    }

    fn word(self, p: &mut Problems, key: &'static str, words: &'static [&'static str]) -> Option<&'static str> {
        let expected = format!("one of {}", words.join(", "));
        self.checked(p, key, &expected, |value| words.iter().find(|word| value.as_str() == Some(word)).copied())
    }

    fn choice<T: Choice>(self, p: &mut Problems, key: &'static str) -> T {
        self.word(p, key, T::WORDS).and_then(T::from_word).unwrap_or_default()
    }

    fn level(self, p: &mut Problems, key: &'static str) -> Option<ThinkingLevel> {
        let expected = "one of off, minimal, low, medium, high, xhigh, max";
        self.checked(p, key, expected, |value| value.as_str()?.parse().ok())
    }

    /// Milliseconds; 0 or "disabled" is no limit.
    fn timeout(self, p: &mut Problems, key: &'static str, default: u64) -> Option<Duration> {
        let milliseconds = self.checked(p, key, "milliseconds from 0, or \"disabled\"", |value| match value {
            Value::String(word) if word.trim().eq_ignore_ascii_case("disabled") => Some(0),
            Value::String(digits) => digits.trim().parse::<f64>().ok().filter(|n| *n >= 0.0).map(|n| n as u64),
            other => other.as_f64().filter(|n| *n >= 0.0).map(|n| n as u64),
        });
        Some(milliseconds.unwrap_or(default)).filter(|limit| *limit > 0).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resources::settings::values::{QueueMode, TuiMode};

    fn read_one(document: Value) -> (Settings, Vec<ValueProblem>) {
        let Value::Object(document) = document else { panic!("a layer is an object") };
        read(Layers { merged: &document, global: &document, project: &Map::new() })
    }

    #[test]
    fn without_settings_every_default_holds() {
        let (settings, problems) = read_one(json!({}));
        assert_eq!(problems, []);
        assert_eq!(settings.steering_mode, QueueMode::OneAtATime);
        assert_eq!(settings.http_idle_timeout, Some(Duration::from_secs(300)));
        assert_eq!(settings.retry.max_retries, 3);
        assert_eq!(settings.interface.tui_mode, TuiMode::Fullscreen);
        assert_eq!(settings.interface.code_block_indent, "  ");
        let limits = settings.compaction_for(Some("a/b")).unwrap();
        assert_eq!((limits.enabled, limits.reserve_tokens, limits.keep_recent_tokens), (true, 16_384, 20_000));
    }

    #[test]
    fn a_value_of_the_wrong_type_counts_as_absent_and_is_reported() {
        let (settings, problems) = read_one(json!({
            "theme": 5, "steeringMode": "sometimes", "retry": {"maxRetries": "many"}, "images": [],
            "httpIdleTimeoutMs": -1, "unknown": {"kept": true},
        }));
        assert_eq!(settings.theme, None);
        assert_eq!(settings.retry.max_retries, 3);
        let paths: Vec<_> = problems.iter().map(|problem| problem.path.join(".")).collect();
        assert_eq!(paths, ["steeringMode", "retry.maxRetries", "httpIdleTimeoutMs", "images", "theme"]);
        assert!(problems[0].message.contains("one-at-a-time, all"), "{}", problems[0].message);
    }

    #[test]
    fn a_wrong_limit_of_the_context_is_an_error_for_whom_it_counts() {
        let (settings, _) = read_one(json!({"compaction": {
            "reserveTokens": 100.0,
            "modelOverrides": {"p/good": {"reserveTokens": 5}, "p/bad": {"keepRecentTokens": -1}, "p/odd": 3}
        }}));
        assert_eq!(settings.compaction_for(None).unwrap().reserve_tokens, 100);
        assert_eq!(settings.compaction_for(Some("p/good")).unwrap().reserve_tokens, 5);
        assert_eq!(settings.compaction_for(Some("p/good")).unwrap().keep_recent_tokens, 20_000);
        let error = settings.compaction_for(Some("p/bad")).unwrap_err();
        assert_eq!(error.key, "compaction.modelOverrides[\"p/bad\"].keepRecentTokens");
        assert!(settings.compaction_for(Some("p/odd")).is_err());
    }

    #[test]
    fn waits_can_be_switched_off() {
        for off in [json!(0), json!("disabled"), json!(" Disabled ")] {
            let (settings, problems) = read_one(json!({"httpIdleTimeoutMs": off}));
            assert_eq!((settings.http_idle_timeout, problems), (None, vec![]));
        }
    }
}
