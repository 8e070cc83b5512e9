//! The effective settings as types: every value checked, every default filled in.

use std::{path::PathBuf, time::Duration};

use indexmap::IndexMap;
use pi_ai::ThinkingLevel;

use crate::session::SyncPolicy;

macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// The value as it is written in settings.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl super::reader::Choice for $name {
            const WORDS: &'static [&'static str] = &[$($text),+];

            fn from_word(word: &str) -> Option<Self> {
                match word { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    )+};
}

choices! {
    /// How many waiting messages go to the model at once.
    QueueMode {
        /// One per turn.
        #[default] OneAtATime = "one-at-a-time",
        /// All of them.
        All = "all",
    }
    /// What two presses of escape in an empty editor do.
    DoubleEscapeAction {
        /// Open the tree.
        #[default] Tree = "tree",
        /// Fork.
        Fork = "fork",
        /// Nothing.
        None = "none",
    }
    /// What the tree shows at first.
    TreeFilter {
        /// The usual entries.
        #[default] Default = "default",
        /// Everything but tool results.
        NoTools = "no-tools",
        /// Messages of the user.
        UserOnly = "user-only",
        /// Entries with a label.
        LabeledOnly = "labeled-only",
        /// Everything.
        All = "all",
    }
    /// Whether a project without a decision is trusted.
    DefaultTrust {
        /// Ask where somebody can be asked, else no.
        #[default] Ask = "ask",
        /// Yes.
        Always = "always",
        /// No.
        Never = "never",
    }
    /// Whether commands and file tools are kept in a sandbox.
    SandboxMode {
        /// They are not.
        #[default] Off = "off",
        /// They are, and commands do not reach the network.
        On = "on",
        /// They are, and commands reach the network.
        Network = "network",
    }
    /// When the record of a conversation is forced to the disk, see [`SyncPolicy`].
    SessionSync {
        /// At the end of each turn.
        #[default] Turn = "turn",
        /// After each entry.
        Entry = "entry",
        /// When the operating system sees fit.
        Never = "never",
    }
    /// How answers are streamed, where a provider offers several ways.
    Transport {
        /// The provider's best.
        #[default] Auto = "auto",
        /// Server-sent events.
        Sse = "sse",
        /// A WebSocket per request.
        Websocket = "websocket",
        /// A WebSocket that is kept.
        WebsocketCached = "websocket-cached",
    }
    /// Whether cached prompts are kept warm.
    CacheWarming {
        /// Between runs too.
        #[default] Idle = "idle",
        /// While answers are streamed.
        Streaming = "streaming",
        /// Never.
        Off = "off",
    }
    /// Which screen the interactive mode uses.
    TuiMode {
        /// The whole terminal.
        #[default] Fullscreen = "fullscreen",
        /// The scrollback.
        Regular = "regular",
    }
    /// What the full screen leaves behind.
    ExitOutput {
        /// The conversation.
        #[default] Transcript = "transcript",
        /// How to go on.
        ResumeHint = "resume-hint",
    }
    /// When a scroll bar is shown.
    Scrollbar {
        /// While scrolling.
        #[default] Auto = "auto",
        /// Always.
        Always = "always",
        /// Never.
        Hidden = "hidden",
    }
    /// When diagrams in Markdown are drawn.
    Mermaid {
        /// As they come.
        #[default] Streaming = "streaming",
        /// When the message is complete.
        Final = "final",
        /// Never.
        Off = "off",
    }
    /// Where a shared session goes.
    ShareDestination {
        /// The best that is set up.
        #[default] Auto = "auto",
        /// A GitHub gist.
        Gist = "gist",
        /// Radius.
        Radius = "radius",
    }
}

/// How much is shown at the start of the interactive mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartupOutput {
    /// Everything.
    #[default]
    Full,
    /// The header.
    HeaderOnly,
    /// Nothing.
    Quiet,
}

/// Whether the terminal can do something: what it says, or what the user says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Capability {
    /// What the terminal says.
    #[default]
    Detect,
    /// Yes.
    On,
    /// No.
    Off,
}

/// How pictures are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImageProtocol {
    /// What the terminal says.
    #[default]
    Detect,
    /// Kitty's.
    Kitty,
    /// iTerm2's.
    Iterm2,
    /// Not at all.
    Off,
}

/// How far one turn of the mouse wheel scrolls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WheelLines {
    /// As the terminal reports it.
    #[default]
    Auto,
    /// This many lines, 1 to 100.
    Lines(u16),
}

/// The effective settings: all layers merged, every value checked, every default filled in.
///
/// A value of the wrong type counts as absent and is reported as a [`Diagnostic`](crate::resources::Diagnostic).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// The provider of the default model.
    pub default_provider: Option<String>,
    /// The default model.
    pub default_model: Option<String>,
    /// The thinking level of a new session, when one is set.
    pub default_thinking_level: Option<ThinkingLevel>,
    /// The thinking level by `provider/model`.
    pub model_thinking_levels: IndexMap<String, ThinkingLevel>,
    /// Tokens to think with, by level.
    pub thinking_budgets: IndexMap<ThinkingLevel, u64>,
    /// Patterns of the models to cycle through.
    pub enabled_models: Option<Vec<String>>,
    /// The active built-in tools: the list's result, `None` when no layer sets it.
    pub default_tools: Option<Vec<String>>,
    /// How waiting steering messages are sent.
    pub steering_mode: QueueMode,
    /// How waiting follow-ups are sent.
    pub follow_up_mode: QueueMode,
    /// Whether a project without a decision is trusted. Global only.
    pub default_project_trust: DefaultTrust,
    /// Where sessions are kept, as written; relative to the working folder.
    pub session_dir: Option<String>,
    /// Limits of the context; see also [`Settings::compaction_for`].
    pub compaction: Compaction,
    /// Summaries of branches that are left.
    pub branch_summary: BranchSummary,
    /// What happens after a failed request.
    pub retry: Retry,
    /// How answers are streamed.
    pub transport: Transport,
    /// A proxy for all requests. Global only.
    pub http_proxy: Option<String>,
    /// The longest wait for the next byte. `None`: no limit.
    pub http_idle_timeout: Option<Duration>,
    /// The longest wait for a WebSocket. `None`: no limit.
    pub websocket_connect_timeout: Option<Duration>,
    /// Whether cached prompts are kept warm. Global only.
    pub cache_warming: CacheWarming,
    /// The shell of the bash tool, as written.
    pub shell_path: Option<String>,
    /// Goes before every command of the bash tool.
    pub shell_command_prefix: Option<String>,
    /// Whether commands and file tools are kept in a sandbox. Global only: a project must not loosen it.
    pub sandbox: SandboxMode,
    /// When the record of a conversation is forced to the disk. Global only: it is the user's record.
    pub session_sync: SessionSync,
    /// The command that runs npm, with its arguments.
    pub npm_command: Option<Vec<String>>,
    /// The command that updates the program, with its arguments. Global only.
    pub self_update_command: Option<Vec<String>>,
    /// Pictures in messages.
    pub images: Images,
    /// Scripts over tools.
    pub codemode: Codemode,
    /// Whether skills are offered as `/skill:name`.
    pub enable_skill_commands: bool,
    /// What the user's and the project's settings add to the resources.
    pub resources: ResourceEntries,
    /// The theme, or a `light/dark` pair.
    pub theme: Option<String>,
    /// What people see.
    pub interface: Interface,
}

impl From<SessionSync> for SyncPolicy {
    fn from(sync: SessionSync) -> Self {
        match sync {
            SessionSync::Turn => Self::PerTurn,
            SessionSync::Entry => Self::PerEntry,
            SessionSync::Never => Self::Never,
        }
    }
}

/// Limits of the context.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Compaction {
    /// Whether the context is compacted by itself.
    pub enabled: bool,
    /// The unchecked numbers; [`Settings::compaction_for`] checks them.
    pub(crate) raw: serde_json::Map<String, serde_json::Value>,
}

/// Summaries of branches that are left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BranchSummary {
    /// Tokens kept free for prompt and answer.
    pub reserve_tokens: u64,
    /// Whether the question is left out and no summary made.
    pub skip_prompt: bool,
}

/// What happens after a failed request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retry {
    /// Whether the agent tries again.
    pub enabled: bool,
    /// Attempts of the agent after the first one.
    pub max_retries: u32,
    /// The agent's first wait; it doubles.
    pub base_delay: Duration,
    /// The agent's longest wait.
    pub max_agent_delay: Duration,
    /// The longest wait for the first byte. `None`: the idle timeout counts.
    pub provider_timeout: Option<Duration>,
    /// Attempts below the agent after the first one.
    pub provider_max_retries: u32,
    /// A provider that asks for a longer wait fails the request.
    pub provider_max_delay: Duration,
}

/// Pictures in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Images {
    /// Whether large ones are made smaller.
    pub auto_resize: bool,
    /// Whether none goes to a provider.
    pub block_images: bool,
}

/// Scripts over tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Codemode {
    /// Whether tools are only reachable from scripts.
    pub only: bool,
    /// Tokens for declarations inside the script tool's description.
    pub inline_budget: u64,
}

/// Entries of the resource lists of one layer, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceLists {
    /// Packages: `{source, …}` objects are reduced to their source.
    pub packages: Vec<String>,
    /// Extensions.
    pub extensions: Vec<String>,
    /// Skills.
    pub skills: Vec<String>,
    /// Prompt templates.
    pub prompts: Vec<String>,
    /// Themes.
    pub themes: Vec<String>,
}

/// The resource lists of both layers; all of them load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceEntries {
    /// The user's: relative paths are taken from the agent's folder.
    pub user: ResourceLists,
    /// The project's: relative paths are taken from its `.pi` folder.
    pub project: ResourceLists,
}

/// What people see.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Interface {
    /// The screen.
    pub tui_mode: TuiMode,
    /// What the full screen leaves behind.
    pub fullscreen_exit_output: ExitOutput,
    /// When a scroll bar is shown.
    pub fullscreen_scrollbar: Scrollbar,
    /// Whether selecting copies.
    pub fullscreen_copy_on_select: bool,
    /// How far the wheel scrolls.
    pub fullscreen_wheel_scroll_lines: WheelLines,
    /// How much is shown at the start.
    pub startup: StartupOutput,
    /// Whether reasoning is hidden.
    pub hide_thinking_block: bool,
    /// Whether costs of missed caches are shown.
    pub show_cache_miss_notices: bool,
    /// The editor's command, when settings name one.
    pub external_editor: Option<String>,
    /// What two presses of escape do.
    pub double_escape_action: DoubleEscapeAction,
    /// What the tree shows at first.
    pub tree_filter: TreeFilter,
    /// Blank columns beside the editor, 0 to 3.
    pub editor_padding_x: u16,
    /// Blank columns beside the conversation, 0 or 1.
    pub output_pad: u16,
    /// Lines of the completion list, 3 to 20.
    pub autocomplete_max_visible: u16,
    /// Whether the terminal's own cursor is shown. `None`: the environment decides.
    pub show_hardware_cursor: Option<bool>,
    /// Whether pictures are drawn.
    pub show_images: bool,
    /// The width of a picture in columns.
    pub image_width_cells: u16,
    /// Whether rows that become free are cleared. `None`: the environment decides.
    pub clear_on_shrink: Option<bool>,
    /// Whether the terminal's progress mark is used.
    pub show_terminal_progress: bool,
    /// Links.
    pub hyperlinks: Capability,
    /// 24-bit colours.
    pub true_color: Capability,
    /// How pictures are drawn.
    pub image_protocol: ImageProtocol,
    /// What goes before each line of a code block.
    pub code_block_indent: String,
    /// When diagrams are drawn.
    pub mermaid: Mermaid,
    /// Where a shared session goes.
    pub share_destination: ShareDestination,
    /// Whether the change log is shown in short.
    pub collapse_changelog: bool,
}

/// The checked limits of one model's context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Whether the context is compacted by itself.
    pub enabled: bool,
    /// Tokens kept free for the answer.
    pub reserve_tokens: u64,
    /// Tokens of recent messages that are kept as they are.
    pub keep_recent_tokens: u64,
}

/// A setting whose value cannot be used, where guessing would do harm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the setting {key} is {found}; expected {expected}")]
pub struct InvalidSetting {
    /// The setting, as a path of keys.
    pub key: String,
    /// What it is.
    pub found: String,
    /// What it should be.
    pub expected: &'static str,
}

impl Settings {
    /// The context limits of a model (`provider/id`): its own override, else the general value, else the default.
    ///
    /// # Errors
    /// When a value that counts is not a whole number from 0: a wrong limit would compact too early or never.
    pub fn compaction_for(&self, model: Option<&str>) -> Result<CompactionSettings, InvalidSetting> {
        Ok(CompactionSettings {
            enabled: self.compaction.enabled,
            reserve_tokens: self.compaction.tokens("reserveTokens", 16_384, model)?,
            keep_recent_tokens: self.compaction.tokens("keepRecentTokens", 20_000, model)?,
        })
    }

    /// Folders and files that the shell settings name, with `~` expanded.
    pub fn shell(&self, home: Option<&std::path::Path>) -> Option<PathBuf> {
        let path = self.shell_path.as_deref().filter(|path| !path.is_empty())?;
        Some(crate::resources::paths::expand_home(std::path::Path::new(path), home))
    }
}

impl Compaction {
    fn tokens(&self, field: &str, default: u64, model: Option<&str>) -> Result<u64, InvalidSetting> {
        let general = whole_number(self.raw.get(field), || format!("compaction.{field}"))?;
        let Some(model) = model else { return Ok(general.unwrap_or(default)) };
        let entry = self.raw.get("modelOverrides").and_then(|overrides| overrides.get(model));
        let own = match entry {
            None => None,
            Some(serde_json::Value::Object(entry)) => {
                whole_number(entry.get(field), || format!("compaction.modelOverrides[\"{model}\"].{field}"))?
            }
            Some(other) => {
                return Err(InvalidSetting {
                    key: format!("compaction.modelOverrides[\"{model}\"]"),
                    found: other.to_string(),
                    expected: "an object",
                });
            }
        };
        Ok(own.or(general).unwrap_or(default))
    }
}

fn whole_number(
    value: Option<&serde_json::Value>,
    key: impl FnOnce() -> String,
) -> Result<Option<u64>, InvalidSetting> {
    const LARGEST: u64 = (1 << 53) - 1;
    let Some(value) = value else { return Ok(None) };
    let number = value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (number.fract() == 0.0 && number >= 0.0 && number <= LARGEST as f64).then_some(number as u64)
    });
    match number.filter(|number| *number <= LARGEST) {
        Some(number) => Ok(Some(number)),
        None => {
            Err(InvalidSetting { key: key(), found: value.to_string(), expected: "a whole number from 0 to 2^53 - 1" })
        }
    }
}
